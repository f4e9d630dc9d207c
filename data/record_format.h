/* How text becomes records: one file a format, a table of them all.
 *
 * A format knows its columns by name and order (the canonical ones); a file may lack some or have
 * them in another order. Features refer to canonical columns. */
#ifndef TDM_DATA_RECORD_FORMAT_H
#define TDM_DATA_RECORD_FORMAT_H

#include "core/config.h"
#include "core/featurizer.h"
#include "data/utf8.h"

typedef struct tdm_record_format_type tdm_record_format_type;

typedef enum tdm_header_mode {
    TDM_HEADER_YES = 0, /* the first line of every file names the columns */
    TDM_HEADER_NO = 1,
} tdm_header_mode;

typedef enum tdm_documents {
    TDM_DOCUMENTS_LINE = 0,       /* a line is a document */
    TDM_DOCUMENTS_BLANK_LINE = 1, /* a blank line ends a document, whose lines are sentences */
    TDM_DOCUMENTS_FILE = 2,       /* a file is a document */
} tdm_documents;

/* What becomes of text that is not UTF-8. */
typedef enum tdm_encoding_errors {
    TDM_ENCODING_REPLACE = 0, /* it stays as it is, and is counted */
    TDM_ENCODING_SKIP = 1,    /* TDM_BAD_DROPPED */
    TDM_ENCODING_FAIL = 2,    /* TDM_BAD_FATAL */
} tdm_encoding_errors;

typedef struct tdm_format_options {
    int type;            /* index in tdm_record_formats */
    char separator;      /* csv, tsv; 0: the format's own */
    int header;          /* csv, tsv: of tdm_header_mode */
    tdm_strings columns; /* csv, tsv: the canonical names; none: from the first file's header.
                            jsonl: the fields that are columns; none: `field` alone, as "text" */
    int documents;       /* text: of tdm_documents */
    const char *field;   /* jsonl: that holds the text; NULL: "text" */
    int encoding_errors; /* text, jsonl: of tdm_encoding_errors */
} tdm_format_options;

typedef struct tdm_record_format {
    const tdm_record_format_type *type;
    char separator;
    int header;    /* of tdm_header_mode */
    int documents; /* of tdm_documents; LINE where records are lines */
    char *field;   /* NULL where records have no named fields */
    int encoding_errors;
    int32_t column_count;
    char **columns; /* canonical names */
} tdm_record_format;

#define TDM_MAX_RECORD_COLUMNS 16384

/* How one file's columns lie. */
typedef struct tdm_file_layout {
    int32_t physical_count; /* cells in each of its records */
    int32_t *canonical; /* [physical_count]: the canonical column, -1 for one that is not used */
    bool identity;      /* canonical[i] is i for all, and all canonical columns are there */
    bool header;        /* its first line is no record */
} tdm_file_layout;

/* Memory that grows. */
typedef struct tdm_scratch_text {
    char *bytes;
    size_t capacity;
} tdm_scratch_text;

/* Text being cut into records, some hundred at a time. */
typedef struct tdm_parse {
    /* set by the caller */
    const char *text; /* [size], ends with a newline unless the file, or a record that is too long,
                         ends it; readable for TDM_TEXT_PADDING bytes before and behind */
    uint32_t size;
    const tdm_file_layout *layout;
    int64_t max_record_bytes; /* a longer record is rejected; its line end does not count */
    tdm_span *cells;          /* [capacity, columns]: becomes records.cells */
    tdm_span *record_spans;   /* [capacity] */
    uint32_t *record_lines;   /* [capacity]: line within the text */
    int64_t capacity;
    uint32_t *separators; /* scratch, [TDM_PARSE_SCRATCH] */
    tdm_scratch_text *scratch;
    void (*reject)(void *context, uint32_t line, tdm_span span, int32_t column, const char *reason,
                   tdm_bad_kind kind);
    void *context;
    /* moved on by each call */
    uint32_t cursor;
    uint32_t line;
    int64_t encoding_errors; /* records with bytes that are not UTF-8 */
    /* the result of a call */
    int64_t count;
    const char *cell_text; /* that cells are spans of: `text`, as the caller sets it, or scratch
                              with the same padding */
} tdm_parse;

#define TDM_RECORD_TOO_LONG "longer than data.max_record_bytes"

#define TDM_TEXT_PADDING  64
#define TDM_PARSE_RECORDS 256
#define TDM_PARSE_SCRATCH 32768

struct tdm_record_format_type {
    const char *name; /* what data.format says */
    const char *help;

    /* Parses the next records; count 0 with cursor at size means the end. A record that is too long
     * or does not fit the layout is rejected, and where records have cells one that holds a NUL
     * byte or bytes that are not UTF-8. */
    tdm_status (*parse)(const tdm_record_format *format, tdm_parse *parse);

    char separator; /* the default */
    bool quotes;    /* cells may stand in double quotes */

    /* Sets format->columns. */
    tdm_status (*create)(const tdm_format_options *options, const char *file,
                         const char *first_line, size_t bytes, tdm_record_format *format);

    /* Makes the layout of a file from its first line (without line end); the caller frees it with
     * tdm_file_layout_deinit(). */
    tdm_status (*open_file)(const tdm_record_format *format, const char *name, const char *line,
                            size_t bytes, tdm_file_layout *out);
};

extern const tdm_record_format_type tdm_format_criteo;
extern const tdm_record_format_type tdm_format_csv;
extern const tdm_record_format_type tdm_format_tsv;
extern const tdm_record_format_type tdm_format_text;
extern const tdm_record_format_type tdm_format_jsonl;

/* Ended by NULL; names for the recipe's choice in the same order. */
extern const tdm_record_format_type *const tdm_record_formats[];
extern const char *const tdm_record_format_names[];

/* `first_line` is that of the first file, which names the columns where the options do not. */
TDM_MUST_CHECK tdm_status tdm_record_format_create(const tdm_format_options *options,
                                                   const char *file, const char *first_line,
                                                   size_t bytes, tdm_record_format **out);
/* NULL is allowed. */
void tdm_record_format_destroy(tdm_record_format *format);

/* The canonical column called `name`, or -1. */
int32_t tdm_record_format_find(const tdm_record_format *format, const char *name);

/* Sets format->columns to these names. TDM_E_CONFIG for too many, and for one that comes twice. */
TDM_MUST_CHECK tdm_status tdm_format_copy_columns(const tdm_strings *names,
                                                  tdm_record_format *format);

void tdm_file_layout_deinit(tdm_file_layout *layout);

/* ---- shared by formats whose records are lines of separated cells (separated_lines.c) -------- */

tdm_status tdm_parse_separated_lines(const tdm_record_format *format, tdm_parse *parse);

/* Splits the first line of file `name`, which holds the names of columns, at the separator; *cells
 * is freed with tdm_free(). TDM_E_DATA for text that is not UTF-8 without NUL, for too many, and for
 * quotes within a name. */
TDM_MUST_CHECK tdm_status tdm_split_header(const tdm_record_format *format, const char *name,
                                           const char *line, size_t bytes, tdm_span **cells,
                                           int32_t *count);

/* The layout whose `physical_count` columns are the canonical ones from `first` on. */
TDM_MUST_CHECK tdm_status tdm_file_layout_identity(int32_t physical_count, int32_t first,
                                                   tdm_file_layout *out);

/* ---- shared by formats of text (format_text.c) ----------------------------------------------- */

/* One column, "text". */
tdm_status tdm_text_column_create(const tdm_format_options *options, const char *file,
                                  const char *first_line, size_t bytes, tdm_record_format *format);
/* All files have all columns. */
tdm_status tdm_text_column_open_file(const tdm_record_format *format, const char *name,
                                     const char *line, size_t bytes, tdm_file_layout *out);

/* Does what data.encoding_errors says about a record's text, which begins in line `line`. False
 * where it was rejected; *valid is false where it is not UTF-8. */
bool tdm_text_accept(const tdm_record_format *format, tdm_parse *parse, tdm_span span,
                     uint32_t line, bool *valid);

/* True for nothing but white space of ASCII. */
bool tdm_text_is_blank(const char *text, size_t bytes);

#endif
