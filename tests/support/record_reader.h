/* The records of inputs as text, for tests of formats and blocks: no features, no pipeline. What
 * fails, fails the test, unless the name says `try`. */
#ifndef TDM_TESTS_RECORD_READER_H
#define TDM_TESTS_RECORD_READER_H

#include "data/extract.h"

/* A featurizer that makes a row of every record, without columns. */
extern const tdm_featurizer tdm_row_featurizer;

typedef struct tdm_reading_options {
    const char *const *files;
    int file_count;
    tdm_format_options format;
    int64_t block_bytes;      /* 0: 1 MiB */
    int64_t max_record_bytes; /* 0: 1 MiB */
    bool in_order;            /* as a stream, also where the input can seek */
    bool all_columns;         /* are kept; else the first one */
    tdm_selection selection;
    double hold_out;
} tdm_reading_options;

typedef struct tdm_records_read {
    tdm_text records; /* "<cell,…>" for each */
    tdm_text bad;     /* a line "file:line: column: reason" for each, with "fatal " or "dropped "
                         before where it is not judged */
    int64_t rows, bad_count, encoding_errors, blocks;
} tdm_records_read;

tdm_status tdm_records_try_read(const tdm_reading_options *options, tdm_records_read *out);
void tdm_records_read_all(const tdm_reading_options *options, tdm_records_read *out);
void tdm_records_free(tdm_records_read *read);

/* The same from one file that holds `bytes`. */
void tdm_records_of_bytes(const tdm_reading_options *options, const char *folder, const char *name,
                          const void *bytes, size_t size, tdm_records_read *out);

#endif
