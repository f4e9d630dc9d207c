/* The metrics of binary predictions, over a training window (progressive: each row is predicted
 * before it is trained on) or over an evaluation:
 *
 *   auc, auc_error       see auc.h
 *   logloss              mean cross-entropy, in nats
 *   normalized_entropy   logloss / that of always predicting mean_label (He et al., "Practical
 *                        lessons from predicting clicks on ads at Facebook", 2014)
 *   calibration          mean_prediction / mean_label
 *   mean_label, mean_prediction
 *   positives            rows whose label is above 1/2
 *
 * What is not defined (no rows, one class only) is NaN. Means are weighted.
 *
 * An accumulator belongs to one thread at a time; it is used through metrics.h but for adding. */
#ifndef TDM_TRAINER_CLICK_METRICS_H
#define TDM_TRAINER_CLICK_METRICS_H

#include "trainer/auc.h"

/* Rows of weight 0 are counted nowhere. */
typedef struct tdm_click_metrics {
    int64_t rows;
    int64_t positives; /* rows whose label is above 1/2 */
    double weight_sum;
    double loss_sum;                  /* Σ weight · cross-entropy in nats */
    double label_sum, prediction_sum; /* weighted */
    tdm_auc auc;
} tdm_click_metrics;

/* Adds `count` rows in host memory: probabilities and labels in [0, 1], weights at least 0 (NULL:
 * all 1). A probability that float rounded to 0, or to 1, and that is wrong costs as much as half
 * of float's last step from there, 2^-150 or 2^-25: 104 or 17.4 nats, never infinity. One that is
 * NaN makes the loss, and all that predictions enter, NaN. */
TDM_MUST_CHECK tdm_status tdm_click_metrics_add(tdm_click_metrics *metrics,
                                                const float *probabilities, const float *labels,
                                                const float *weights, int64_t count);

#endif
