/* The `data` section of a recipe. */
#ifndef TDM_DATA_OPTIONS_H
#define TDM_DATA_OPTIONS_H

#include "data/record_format.h"

typedef enum tdm_bad_record_policy {
    TDM_BAD_RECORD_FAIL = 0,
    TDM_BAD_RECORD_SKIP = 1,
    TDM_BAD_RECORD_QUARANTINE = 2,
} tdm_bad_record_policy;

typedef enum tdm_cache_mode {
    TDM_CACHE_AUTO = 0, /* when a second epoch follows */
    TDM_CACHE_ON = 1,
    TDM_CACHE_OFF = 2,
} tdm_cache_mode;

typedef struct tdm_data_options {
    int format; /* index in tdm_record_formats */
    char *separator;
    bool header;
    tdm_strings columns;
    int documents; /* of tdm_documents */
    char *field;
    int encoding_errors;          /* of tdm_encoding_errors */
    const tdm_config_node *train; /* files, and {files:, weight:} */
    const tdm_config_node *eval;  /* file names, or {hold_out: share} */
    int on_bad_record;            /* of tdm_bad_record_policy */
    tdm_share max_bad_records;
    int64_t max_record_bytes;
    int cache; /* of tdm_cache_mode */
    int64_t lanes;
    int64_t window_blocks;
    int64_t block_bytes; /* 0: from the input's size */
} tdm_data_options;

extern const tdm_config_schema tdm_data_schema;

/* What data.train says. */
typedef struct tdm_train_source {
    tdm_strings files; /* freed with tdm_train_source_deinit() */
    double *weights;   /* [files.count] */
} tdm_train_source;

TDM_MUST_CHECK tdm_status tdm_train_source_bind(const tdm_config_node *node, tdm_train_source *out);
void tdm_train_source_deinit(tdm_train_source *source);

/* What data.eval says. */
typedef struct tdm_eval_source {
    tdm_strings files; /* freed with tdm_eval_source_deinit() */
    double hold_out;   /* share of the training records, 0 where files are named */
} tdm_eval_source;

TDM_MUST_CHECK tdm_status tdm_eval_source_bind(const tdm_config_node *node, tdm_eval_source *out);
void tdm_eval_source_deinit(tdm_eval_source *source);

/* One ASCII character but a quote, CR or LF, or tab, comma, semicolon, space, pipe by name. False
 * for anything else. */
bool tdm_separator_parse(const char *text, char *out);

/* The format's own options; borrows from `options`. */
TDM_MUST_CHECK tdm_status tdm_data_format_options(const tdm_data_options *options,
                                                  tdm_format_options *out);

#endif
