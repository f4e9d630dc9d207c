/* A batch of the featurizers of text and of labelled text, seen by whoever reads it on the host. */
#ifndef TDM_TEXT_MASKED_BATCH_H
#define TDM_TEXT_MASKED_BATCH_H

#include "core/batch.h"

/* Tensors as text/text_featurizer.h and text/label_featurizer.h describe them, in the batch's
 * memory. */
typedef struct tdm_masked_batch {
    int64_t rows;
    int64_t tokens;     /* padding not counted */
    int64_t max_seqlen; /* the longest sequence's */
    int64_t row_stride; /* tokens from one row to the next where it is padded; else 0 */
    const uint32_t *ids, *types, *positions;
    const int32_t *cu_seqlens; /* NULL where it is padded */
    const int32_t *lengths;    /* NULL where it is not */
    const int32_t *mask_positions;
    const uint32_t *mask_labels;
    int64_t mask_count;          /* 0 of labelled text, without the two */
    const uint32_t *pair_labels; /* NULL without pairs */
    const void *labels;          /* NULL where they are none, like words */
    const uint32_t *words;
    const uint64_t *samples;
} tdm_masked_batch;

tdm_masked_batch tdm_masked_batch_of(const tdm_batch *batch);

/* Where a row's tokens lie. */
typedef struct tdm_token_range {
    int64_t begin, end;
} tdm_token_range;

tdm_token_range tdm_masked_batch_row(const tdm_masked_batch *batch, int64_t row);

/* The first prediction from `from` on that lies at `token` or behind it. */
int64_t tdm_masked_batch_find(const tdm_masked_batch *batch, int64_t from, int64_t token);

#endif
