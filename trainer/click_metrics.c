#include "trainer/metrics.h"
#include "trainer/saved_number.h"

#include <math.h>
#include <string.h>

/* ---- adding ---------------------------------------------------------------------------------- */

/* The likelihoods of labels 1 and 0; 1 - p is exact in double. */
static double likelihood_of_one(double p)
{
    return p == 0.0 ? 0x1p-150 : p;
}

static double likelihood_of_zero(double p)
{
    return p == 1.0 ? 0x1p-25 : 1.0 - p;
}

static double cross_entropy(double p, double label)
{
    return -(label * log(likelihood_of_one(p)) + (1.0 - label) * log(likelihood_of_zero(p)));
}

static void add_rows(tdm_click_metrics *metrics, const float *probabilities, const float *labels,
                     const float *weights, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double weight = weights == NULL ? 1.0 : (double)weights[i];
        if (weight == 0.0)
            continue;
        double p = (double)probabilities[i], label = (double)labels[i];
        metrics->rows++;
        metrics->positives += label > 0.5;
        metrics->weight_sum += weight;
        metrics->loss_sum += weight * cross_entropy(p, label);
        metrics->label_sum += weight * label;
        metrics->prediction_sum += weight * p;
    }
}

/* Whether all weights are 1 and all labels 0 or 1, by their bits (bit 29 is set from 2^-63 on). */
static bool are_plain(const float *labels, const float *weights, int64_t count)
{
    const uint32_t one = 0x3f800000;
    uint32_t odd = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t label, weight = one;
        memcpy(&label, &labels[i], sizeof label);
        if (weights != NULL)
            memcpy(&weight, &weights[i], sizeof weight);
        uint32_t nearest = (0u - (label >> 29)) & one;
        odd |= (label ^ nearest) | (weight ^ one);
    }
    return odd == 0;
}

/* add_rows() for plain rows, which nearly all are: they multiply up their likelihoods, so that many
 * of them share one logarithm, and do not branch on the label. */
static void add_plain_rows(tdm_click_metrics *metrics, const float *probabilities,
                           const float *labels, int64_t count)
{
    double loss = 0.0, likelihood = 1.0, label_sum = 0.0, prediction_sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double p = (double)probabilities[i], label = (double)labels[i];
        double factor = fabs(p - (1.0 - label));
        if (!(factor > 0.0))
            factor = label == 1.0 ? likelihood_of_one(p) : likelihood_of_zero(p);
        likelihood *= factor;
        label_sum += label;
        prediction_sum += p;
        if (likelihood < 0x1p-800) {
            loss -= log(likelihood);
            likelihood = 1.0;
        }
    }
    metrics->rows += count;
    metrics->positives += (int64_t)label_sum;
    metrics->weight_sum += (double)count;
    metrics->loss_sum += loss - log(likelihood);
    metrics->label_sum += label_sum;
    metrics->prediction_sum += prediction_sum;
}

tdm_status tdm_click_metrics_add(tdm_click_metrics *metrics, const float *probabilities,
                                 const float *labels, const float *weights, int64_t count)
{
    TDM_TRY(tdm_auc_add(&metrics->auc, probabilities, labels, weights, count));
    const int64_t step = 256;
    for (int64_t at = 0; at < count; at += step) {
        int64_t some = count - at < step ? count - at : step;
        const float *some_weights = weights == NULL ? NULL : weights + at;
        if (are_plain(labels + at, some_weights, some))
            add_plain_rows(metrics, probabilities + at, labels + at, some);
        else
            add_rows(metrics, probabilities + at, labels + at, some_weights, some);
    }
    return TDM_OK;
}

/* ---- the accumulator ------------------------------------------------------------------------- */

static tdm_status init(tdm_metrics *metrics)
{
    return tdm_auc_init(&metrics->click.auc, metrics->exact_auc_rows);
}

static void deinit(tdm_metrics *metrics)
{
    tdm_auc_deinit(&metrics->click.auc);
}

static void reset(tdm_metrics *metrics)
{
    tdm_auc auc = metrics->click.auc;
    tdm_auc_reset(&auc);
    metrics->click = (tdm_click_metrics){.auc = auc};
}

static tdm_status merge(tdm_metrics *into_all, const tdm_metrics *from_all)
{
    tdm_click_metrics *into = &into_all->click;
    const tdm_click_metrics *from = &from_all->click;
    TDM_TRY(tdm_auc_merge(&into->auc, &from->auc));
    into->rows += from->rows;
    into->positives += from->positives;
    into->weight_sum += from->weight_sum;
    into->loss_sum += from->loss_sum;
    into->label_sum += from->label_sum;
    into->prediction_sum += from->prediction_sum;
    return TDM_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static int save(const tdm_metrics *metrics, json_t *object)
{
    const tdm_click_metrics *click = &metrics->click;
    int failed = json_object_set_new(object, "rows", json_integer(click->rows));
    failed |= json_object_set_new(object, "positives", json_integer(click->positives));
    failed |= json_object_set_new(object, "weight_sum", tdm_saved_double(click->weight_sum));
    failed |= json_object_set_new(object, "loss_sum", tdm_saved_double(click->loss_sum));
    failed |= json_object_set_new(object, "label_sum", tdm_saved_double(click->label_sum));
    failed |=
        json_object_set_new(object, "prediction_sum", tdm_saved_double(click->prediction_sum));
    failed |= json_object_set_new(object, "auc_bins", tdm_auc_save(&click->auc));
    return failed;
}

static tdm_status restore(tdm_metrics *metrics, const json_t *saved)
{
    tdm_click_metrics *click = &metrics->click;
    TDM_TRY(tdm_saved_count_restore(saved, "rows", &click->rows));
    TDM_TRY(tdm_saved_count_restore(saved, "positives", &click->positives));
    TDM_TRY(tdm_saved_double_restore(saved, "weight_sum", &click->weight_sum));
    TDM_TRY(tdm_saved_double_restore(saved, "loss_sum", &click->loss_sum));
    TDM_TRY(tdm_saved_double_restore(saved, "label_sum", &click->label_sum));
    TDM_TRY(tdm_saved_double_restore(saved, "prediction_sum", &click->prediction_sum));
    return tdm_auc_restore(&click->auc, json_object_get(saved, "auc_bins"));
}

/* ---- the result ------------------------------------------------------------------------------ */

/* In nats, of a coin that shows 1 with probability p; 0 where there is nothing to tell. */
static double entropy(double p)
{
    return p > 0.0 && p < 1.0 ? cross_entropy(p, p) : 0.0;
}

enum {
    AUC,
    AUC_ERROR,
    LOGLOSS,
    NORMALIZED_ENTROPY,
    CALIBRATION,
    MEAN_LABEL,
    MEAN_PREDICTION,
    POSITIVES,
    METRICS,
};

static const tdm_metric metrics_of_clicks[METRICS] = {
    [AUC] = {.name = "auc",
             .title = "auc",
             .brief = "AUC",
             .headline = 2,
             .decimals = 5,
             .goal = TDM_GOAL_HIGHER},
    [AUC_ERROR] = {.name = "auc_error", .title = "auc error, at most", .is_error = true},
    [LOGLOSS] = {.name = "logloss",
                 .title = "logloss",
                 .brief = "loss",
                 .headline = 1,
                 .decimals = 5,
                 .goal = TDM_GOAL_LOWER},
    [NORMALIZED_ENTROPY] = {.name = "normalized_entropy",
                            .title = "normalized entropy",
                            .brief = "normalized entropy",
                            .headline = 3,
                            .decimals = 5},
    [CALIBRATION] = {.name = "calibration",
                     .title = "calibration",
                     .brief = "calibration",
                     .headline = 4,
                     .decimals = 4},
    [MEAN_LABEL] = {.name = "mean_label", .title = "mean label"},
    [MEAN_PREDICTION] = {.name = "mean_prediction", .title = "mean prediction"},
    [POSITIVES] = {.name = "positives", .title = "positives", .is_count = true},
};

static tdm_status result(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out)
{
    tdm_click_metrics *click = &metrics->click;
    tdm_auc_result auc;
    TDM_TRY(tdm_auc_get(&click->auc, pool, &auc));
    if (isnan(click->prediction_sum))
        auc = (tdm_auc_result){NAN, NAN};
    double mean_label = tdm_ratio(click->label_sum, click->weight_sum);
    double mean_prediction = tdm_ratio(click->prediction_sum, click->weight_sum);
    double logloss = tdm_ratio(click->loss_sum, click->weight_sum);
    const double values[METRICS] = {
        [AUC] = auc.auc,
        [AUC_ERROR] = auc.error,
        [LOGLOSS] = logloss,
        [NORMALIZED_ENTROPY] = tdm_ratio(logloss, entropy(mean_label)),
        [CALIBRATION] = tdm_ratio(mean_prediction, mean_label),
        [MEAN_LABEL] = mean_label,
        [MEAN_PREDICTION] = mean_prediction,
        [POSITIVES] = (double)click->positives,
    };
    *out = (tdm_metrics_result){.rows = click->rows};
    for (int i = 0; i < METRICS; i++)
        tdm_metrics_result_add(out, &metrics_of_clicks[i], values[i]);
    return TDM_OK;
}

const tdm_metrics_type tdm_click_metrics_type = {
    .name = "clicks",
    .metrics = metrics_of_clicks,
    .metric_count = METRICS,
    .best = "auc",
    .init = init,
    .deinit = deinit,
    .reset = reset,
    .merge = merge,
    .save = save,
    .restore = restore,
    .result = result,
};
