/* How text becomes records: one file a format, a table of them all.
 *
 * A format knows its columns by name and order (the canonical ones); a file may lack some or have
 * them in another order. Features refer to canonical columns. */
#ifndef TDM_DATA_RECORD_FORMAT_H
#define TDM_DATA_RECORD_FORMAT_H

#include "core/config.h"
#include "tandem/plugin.h"

typedef struct tdm_record_format_type tdm_record_format_type;

typedef enum tdm_header_mode {
    TDM_HEADER_YES = 0, /* the first line of every file names the columns */
    TDM_HEADER_NO = 1,
} tdm_header_mode;

typedef struct tdm_format_options {
    int type;            /* index in tdm_record_formats */
    char separator;      /* csv, tsv; 0: the format's own */
    int header;          /* csv, tsv: of tdm_header_mode */
    tdm_strings columns; /* csv, tsv: the canonical names; none: from the first file's header */
} tdm_format_options;

typedef struct tdm_record_format {
    const tdm_record_format_type *type;
    char separator;
    int header; /* of tdm_header_mode */
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

/* Text being cut into records, some hundred at a time. */
typedef struct tdm_parse {
    /* set by the caller */
    const char *text; /* [size], ends with a newline unless the file ends without one; readable for
                         TDM_TEXT_PADDING bytes before and behind */
    uint32_t size;
    const tdm_file_layout *layout;
    int64_t max_record_bytes; /* a longer record is rejected; its line end does not count */
    tdm_span *cells;          /* [capacity, columns]: becomes records.cells */
    tdm_span *record_spans;   /* [capacity] */
    uint32_t *record_lines;   /* [capacity]: line within the text */
    int64_t capacity;
    uint32_t *separators; /* scratch, [TDM_PARSE_SCRATCH] */
    void (*reject)(void *context, uint32_t line, tdm_span span, int32_t column, const char *reason);
    void *context;
    /* moved on by each call */
    uint32_t cursor;
    uint32_t line;
    /* the result of a call */
    int64_t count;
} tdm_parse;

#define TDM_RECORD_TOO_LONG "longer than data.max_record_bytes"

#define TDM_TEXT_PADDING  64
#define TDM_PARSE_RECORDS 256
#define TDM_PARSE_SCRATCH 32768

struct tdm_record_format_type {
    const char *name; /* what data.format says */
    const char *help;

    /* Parses the next records; count 0 with cursor at size means the end. A record that is too long
     * or does not fit the layout, or holds a NUL byte or bytes that are not UTF-8, is rejected. */
    void (*parse)(const tdm_record_format *format, tdm_parse *parse);

    char separator; /* the default */

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

void tdm_file_layout_deinit(tdm_file_layout *layout);

/* ---- shared by formats whose records are lines of separated cells (separated_lines.c) -------- */

void tdm_parse_separated_lines(const tdm_record_format *format, tdm_parse *parse);

/* Splits the first line of file `name`, which holds the names of columns, at the separator; *cells
 * is freed with tdm_free(). TDM_E_DATA for text that is not UTF-8 without NUL, and for too many. */
TDM_MUST_CHECK tdm_status tdm_split_header(const char *name, const char *line, size_t bytes,
                                           char separator, tdm_span **cells, int32_t *count);

/* The layout whose `physical_count` columns are the canonical ones from `first` on. */
TDM_MUST_CHECK tdm_status tdm_file_layout_identity(int32_t physical_count, int32_t first,
                                                   tdm_file_layout *out);

/* True where the bytes are valid UTF-8 (RFC 3629: no overlong forms, no surrogates). */
bool tdm_utf8_valid(const char *text, size_t bytes);

#endif
