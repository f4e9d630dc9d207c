/* The metrics of binary predictions, over a training window (progressive: each row is predicted
 * before it is trained on) or over an evaluation.
 *
 * An accumulator belongs to one thread at a time. */
#ifndef TDM_TRAINER_METRICS_H
#define TDM_TRAINER_METRICS_H

#include "core/config.h"
#include "trainer/auc.h"

#include <jansson.h>

/* ---- the recipe's `metrics` section ---------------------------------------------------------- */

typedef struct tdm_metrics_options {
    int64_t exact_auc_rows; /* of an evaluation */
} tdm_metrics_options;

extern const tdm_config_schema tdm_metrics_schema;

/* ---- the accumulator ------------------------------------------------------------------------- */

/* Rows of weight 0 are counted nowhere. */
typedef struct tdm_metrics {
    int64_t rows;
    int64_t positives; /* rows whose label is above 1/2 */
    double weight_sum;
    double loss_sum;                  /* Σ weight · cross-entropy in nats */
    double label_sum, prediction_sum; /* weighted */
    tdm_auc auc;
} tdm_metrics;

/* exact_auc_rows: see auc.h. 0, for progressive metrics: adding never allocates. */
TDM_MUST_CHECK tdm_status tdm_metrics_init(tdm_metrics *metrics, int64_t exact_auc_rows);
void tdm_metrics_deinit(tdm_metrics *metrics);

/* Forgets all rows, as for the next window. */
void tdm_metrics_reset(tdm_metrics *metrics);

/* Adds `count` rows in host memory: probabilities and labels in [0, 1], weights at least 0 (NULL:
 * all 1). A probability that float rounded to 0, or to 1, and that is wrong costs as much as half
 * of float's last step from there, 2^-150 or 2^-25: 104 or 17.4 nats, never infinity. One that is
 * NaN makes the loss, and all that predictions enter, NaN. */
TDM_MUST_CHECK tdm_status tdm_metrics_add(tdm_metrics *metrics, const float *probabilities,
                                          const float *labels, const float *weights, int64_t count);

/* Adds the rows of `from`, which stays as it is. */
TDM_MUST_CHECK tdm_status tdm_metrics_merge(tdm_metrics *into, const tdm_metrics *from);

/* *out is a new JSON object from which tdm_metrics_restore() makes the same bits. TDM_E_STATE where
 * rows are kept for the exact AUC: evaluations are not saved. */
TDM_MUST_CHECK tdm_status tdm_metrics_save(const tdm_metrics *metrics, json_t **out);

/* Replaces what an initialised accumulator with exact_auc_rows 0 holds. TDM_E_FORMAT naming the key
 * where `saved` is no such object; the accumulator is then empty. */
TDM_MUST_CHECK tdm_status tdm_metrics_restore(tdm_metrics *metrics, const json_t *saved);

/* ---- the result ------------------------------------------------------------------------------ */

/* What is not defined (no rows, one class only) is NaN. Means are weighted. */
typedef struct tdm_metrics_result {
    int64_t rows;
    double auc, auc_error; /* see auc.h */
    double logloss;        /* mean cross-entropy, in nats */
    double
        normalized_entropy; /* logloss / that of always predicting mean_label (He et al., 2014) */
    double calibration;     /* mean_prediction / mean_label */
    double mean_label, mean_prediction;
    int64_t positives;
} tdm_metrics_result;

/* The result so far; more rows may follow. The pool sorts for the exact AUC. */
TDM_MUST_CHECK tdm_status tdm_metrics_get(tdm_metrics *metrics, tdm_pool *pool,
                                          tdm_metrics_result *out);

/* *out is a new JSON object with the fields' names as keys; null for NaN. */
TDM_MUST_CHECK tdm_status tdm_metrics_result_json(const tdm_metrics_result *result, json_t **out);

/* Appends one line a metric, "  name  value", values below each other; n/a for NaN. */
TDM_MUST_CHECK tdm_status tdm_metrics_result_text(const tdm_metrics_result *result, tdm_text *text);

#endif
