/* The metrics of predicted numbers, over a training window (progressive: each row is predicted
 * before it is trained on) or over an evaluation:
 *
 *   loss      what training lowers: the mean squared error as the step has summed it
 *   mse       the same from the predictions, in double
 *   pearson   the correlation of predictions and labels
 *   r2        1 - mse / the labels' variance: 0 for always predicting their mean
 *
 * Means are weighted. What is not defined is NaN: no rows, or numbers that are all the same. One
 * NaN makes all that it enters NaN.
 *
 * An accumulator belongs to one thread at a time; it is used through metrics.h but for adding. */
#ifndef TDM_TRAINER_REGRESSION_METRICS_H
#define TDM_TRAINER_REGRESSION_METRICS_H

#include "core/ops.h"

/* Means, and sums of products of what differs from them: they are added to, and put together,
 * without cancellation (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
 * computing sample variances", 1979). */
typedef struct tdm_regression_metrics {
    int64_t rows;
    tdm_loss_scalars loss;
    double weight_sum;
    double label_mean, prediction_mean;
    double label_squares, prediction_squares, products; /* about the means */
    double error_squares;                               /* Σ weight · (prediction - label)² */
} tdm_regression_metrics;

/* Adds `rows` rows in host memory; weights at least 0 (NULL: all 1). Rows of weight 0 are counted
 * nowhere. */
void tdm_regression_metrics_add(tdm_regression_metrics *metrics, const float *predictions,
                                const float *labels, const float *weights, int64_t rows,
                                const tdm_loss_scalars *loss);

#endif
