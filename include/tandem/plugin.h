/* What a feature extractor sees: records as they were read and rows as they will be trained.
 *
 * This header stands alone (C99 and C++, no other header of tandem) so that it can be copied into
 * another project. The features that are built in read records through the same view.
 *
 * All memory is the host's. Views are valid for the one call they are passed to. */
#ifndef TANDEM_PLUGIN_H
#define TANDEM_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes [begin, end) of the text of the records. A missing value is an empty span. */
typedef struct tdm_span {
    uint32_t begin;
    uint32_t end;
} tdm_span;

/* A group of parsed records, a few hundred at a time. Cells hold the value with escapes undone and
 * quotes removed. The text is valid UTF-8 without NUL bytes; it is not terminated. */
typedef struct tdm_records {
    uint32_t struct_size; /* sizeof(tdm_records) of the host: later fields are appended */
    uint32_t columns;     /* cells in each record */
    int64_t count;
    const char *text;
    const tdm_span *cells; /* [count, columns], row after row */
} tdm_records;

/* Rows being made of those records, one for each. Row r of a column lies at `values + r * stride`.
 * An extractor writes the columns that it was given and no others. */
typedef struct tdm_rows {
    uint32_t struct_size;
    uint32_t ids_stride;   /* elements from one row of `ids` to the next */
    uint32_t dense_stride; /* elements from one row of `dense` to the next */
    uint32_t reserved;
    int64_t count;
    uint32_t
        *ids; /* rows of embedding tables: 0 padding, 1 missing, 2 unseen, 3 rare, values from 4 */
    float *dense; /* finite numbers */

    /* Refuses record `row`: it will be a bad record with this reason, named with column `column`
     * (-1: the whole record). `reason` is copied. Only the first refusal of a row counts. */
    void (*reject)(void *reject_context, int64_t row, int32_t column, const char *reason);
    void *reject_context;
} tdm_rows;

#ifdef __cplusplus
}
#endif
#endif
