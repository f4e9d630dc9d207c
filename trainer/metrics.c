#include "trainer/metrics.h"

#include "core/json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const tdm_config_key metrics_keys[] = {
    {.name = "exact_auc_rows",
     .type = TDM_CONFIG_INT,
     .offset = offsetof(tdm_metrics_options, exact_auc_rows),
     .fallback = "100000000",
     .min = 0,
     .max = 1e12,
     .help = "rows of an evaluation whose AUC is exact (8 bytes each); beyond, a histogram"},
};

const tdm_config_schema tdm_metrics_schema = {
    .size = sizeof(tdm_metrics_options),
    .keys = metrics_keys,
    .count = sizeof metrics_keys / sizeof metrics_keys[0],
};

/* ---- the accumulator ------------------------------------------------------------------------- */

tdm_status tdm_metrics_init(tdm_metrics *metrics, int64_t exact_auc_rows)
{
    *metrics = (tdm_metrics){0};
    return tdm_auc_init(&metrics->auc, exact_auc_rows);
}

void tdm_metrics_deinit(tdm_metrics *metrics)
{
    tdm_auc_deinit(&metrics->auc);
    *metrics = (tdm_metrics){0};
}

void tdm_metrics_reset(tdm_metrics *metrics)
{
    tdm_auc auc = metrics->auc;
    tdm_auc_reset(&auc);
    *metrics = (tdm_metrics){.auc = auc};
}

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

static void add_rows(tdm_metrics *metrics, const float *probabilities, const float *labels,
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
static void add_plain_rows(tdm_metrics *metrics, const float *probabilities, const float *labels,
                           int64_t count)
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

tdm_status tdm_metrics_add(tdm_metrics *metrics, const float *probabilities, const float *labels,
                           const float *weights, int64_t count)
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

tdm_status tdm_metrics_merge(tdm_metrics *into, const tdm_metrics *from)
{
    TDM_TRY(tdm_auc_merge(&into->auc, &from->auc));
    into->rows += from->rows;
    into->positives += from->positives;
    into->weight_sum += from->weight_sum;
    into->loss_sum += from->loss_sum;
    into->label_sum += from->label_sum;
    into->prediction_sum += from->prediction_sum;
    return TDM_OK;
}

/* ---- the result ------------------------------------------------------------------------------ */

static double divide(double a, double b)
{
    return b > 0.0 ? a / b : NAN;
}

/* In nats, of a coin that shows 1 with probability p; 0 where there is nothing to tell. */
static double entropy(double p)
{
    return p > 0.0 && p < 1.0 ? cross_entropy(p, p) : 0.0;
}

tdm_status tdm_metrics_get(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out)
{
    tdm_auc_result auc;
    TDM_TRY(tdm_auc_get(&metrics->auc, pool, &auc));
    if (isnan(metrics->prediction_sum))
        auc = (tdm_auc_result){NAN, NAN};
    double mean_label = divide(metrics->label_sum, metrics->weight_sum);
    double mean_prediction = divide(metrics->prediction_sum, metrics->weight_sum);
    double logloss = divide(metrics->loss_sum, metrics->weight_sum);
    *out = (tdm_metrics_result){
        .rows = metrics->rows,
        .auc = auc.auc,
        .auc_error = auc.error,
        .logloss = logloss,
        .normalized_entropy = divide(logloss, entropy(mean_label)),
        .calibration = divide(mean_prediction, mean_label),
        .mean_label = mean_label,
        .mean_prediction = mean_prediction,
        .positives = metrics->positives,
    };
    return TDM_OK;
}

static int set_number(json_t *object, const char *key, double value)
{
    return json_object_set_new(object, key, tdm_json_number(value));
}

tdm_status tdm_metrics_result_json(const tdm_metrics_result *result, json_t **out)
{
    json_t *object = json_object();
    int failed = json_object_set_new(object, "rows", json_integer(result->rows));
    failed |= set_number(object, "auc", result->auc);
    failed |= set_number(object, "auc_error", result->auc_error);
    failed |= set_number(object, "logloss", result->logloss);
    failed |= set_number(object, "normalized_entropy", result->normalized_entropy);
    failed |= set_number(object, "calibration", result->calibration);
    failed |= set_number(object, "mean_label", result->mean_label);
    failed |= set_number(object, "mean_prediction", result->mean_prediction);
    failed |= json_object_set_new(object, "positives", json_integer(result->positives));
    *out = NULL;
    if (!failed) {
        *out = object;
        return TDM_OK;
    }
    json_decref(object);
    return tdm_fail(TDM_E_NOMEM, "out of memory for the metrics' JSON");
}

static tdm_status append_line(tdm_text *text, const char *name, double value)
{
    if (isnan(value))
        return tdm_text_printf(text, "  %-18s  %12s\n", name, "n/a");
    return tdm_text_printf(text, "  %-18s  %12.6f\n", name, value);
}

tdm_status tdm_metrics_result_text(const tdm_metrics_result *result, tdm_text *text)
{
    TDM_TRY(tdm_text_printf(text, "  %-18s  %12lld\n", "rows", (long long)result->rows));
    TDM_TRY(append_line(text, "auc", result->auc));
    if (result->auc_error > 0.0)
        TDM_TRY(append_line(text, "auc error, at most", result->auc_error));
    TDM_TRY(append_line(text, "logloss", result->logloss));
    TDM_TRY(append_line(text, "normalized entropy", result->normalized_entropy));
    TDM_TRY(append_line(text, "calibration", result->calibration));
    TDM_TRY(append_line(text, "mean label", result->mean_label));
    TDM_TRY(append_line(text, "mean prediction", result->mean_prediction));
    return tdm_text_printf(text, "  %-18s  %12lld\n", "positives", (long long)result->positives);
}
