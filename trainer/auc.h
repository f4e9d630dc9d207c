/* Area under the ROC curve of weighted rows: the weight of the pairs (positive row, negative row)
 * in which the positive row scores higher, ties counted half, as a share of the weight of all pairs
 * (Fawcett, "An introduction to ROC analysis", 2006).
 *
 * Scores are probabilities. Up to a number of rows they are all kept and the result is exact;
 * beyond it they are counted in a histogram, whose bins are about 2^-11 apart in logits: 2^15 from
 * probability 2^-17 (below it all share one) to 1/2, and the same mirrored above. Pairs in one bin
 * are counted half, so the result is off by at most half of their weight, which is given with it:
 * 2e-5 to 1e-4 where logits spread over a few units. */
#ifndef TDM_TRAINER_AUC_H
#define TDM_TRAINER_AUC_H

#include "core/pool.h"

#include <jansson.h>
#include <stdbool.h>

#define TDM_AUC_BINS (1 << 16)

typedef struct tdm_auc_bin {
    double negatives, positives; /* weights */
} tdm_auc_bin;

/* A row kept for the exact result. */
typedef struct tdm_auc_entry {
    uint32_t score; /* the bits of the probability, which order as it does */
    float weight;   /* below 0: of a negative row */
} tdm_auc_entry;

typedef struct tdm_auc {
    int64_t exact_rows;     /* so many entries are kept at most */
    tdm_auc_entry *entries; /* 8 bytes a row, in storage that doubles; NULL once there are bins */
    size_t count, capacity;
    tdm_auc_bin *bins; /* [TDM_AUC_BINS], 1 MiB; NULL while the result is exact */
} tdm_auc;

typedef struct tdm_auc_result {
    double auc;   /* NaN where one class has no weight */
    double error; /* |auc - exact| is at most this; 0 where exact, NaN where auc is */
} tdm_auc_result;

/* exact_rows 0: a histogram from the start, so that adding allocates nothing. */
TDM_MUST_CHECK tdm_status tdm_auc_init(tdm_auc *auc, int64_t exact_rows);
void tdm_auc_deinit(tdm_auc *auc);

/* Forgets all rows; an accumulator that had gone over to the histogram is exact again. */
void tdm_auc_reset(tdm_auc *auc);

/* Adds `count` rows: scores in [0, 1], labels in [0, 1], and weights, finite and at least 0 (NULL:
 * all 1). A label between 0 and 1 makes the row a positive of that share of its weight and a
 * negative of the rest (two entries). Rows of weight 0 are not looked at; scores outside of [0, 1]
 * count as the nearer end and NaN as either. Goes over to the histogram where exact_rows would be
 * passed. */
TDM_MUST_CHECK tdm_status tdm_auc_add(tdm_auc *auc, const float *scores, const float *labels,
                                      const float *weights, int64_t count);

/* Adds the rows of `from`, which stays as it is. */
TDM_MUST_CHECK tdm_status tdm_auc_merge(tdm_auc *into, const tdm_auc *from);

/* The result so far; more rows may follow. Entries are sorted in place, on the pool, so that only a
 * few KiB are needed beside them; the same bits on any number of threads. */
TDM_MUST_CHECK tdm_status tdm_auc_get(tdm_auc *auc, tdm_pool *pool, tdm_auc_result *out);

/* The histogram as a new JSON array, [bin, negatives, positives, bin, …] of the bins that hold
 * anything; NULL without memory. Only of one that had exact_rows 0. */
json_t *tdm_auc_save(const tdm_auc *auc);

/* Fills an empty accumulator of exact_rows 0 with what was saved, to the bit. TDM_E_FORMAT where it
 * is damaged; reset it then. */
TDM_MUST_CHECK tdm_status tdm_auc_restore(tdm_auc *auc, const json_t *saved);

#endif
