/* Saving a window's sums, to the bit. JSON numbers do not carry every double, so one that is no
 * integer is written as its 64 bits in hexadecimal: "3fb999999999999a" is 0.1. */
#include "trainer/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_exact_integer(double value)
{
    return fabs(value) <= 0x1p53 && value == floor(value) && !(value == 0.0 && signbit(value));
}

static json_t *pack_double(double value)
{
    if (is_exact_integer(value))
        return json_integer((json_int_t)value);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)bits);
    return json_string(text);
}

static bool unpack_double(const json_t *json, double *out)
{
    if (json_is_integer(json)) {
        *out = (double)json_integer_value(json);
        return true;
    }
    const char *text = json_string_value(json);
    if (text == NULL || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    uint64_t bits = strtoull(text, NULL, 16);
    memcpy(out, &bits, sizeof bits);
    return true;
}

/* [bin, negatives, positives, bin, …] of the bins that hold anything; NULL without memory. */
static json_t *pack_bins(const tdm_auc_bin *bins)
{
    json_t *array = json_array();
    int failed = array == NULL;
    for (int i = 0; i < TDM_AUC_BINS && !failed; i++) {
        if (bins[i].negatives == 0.0 && bins[i].positives == 0.0)
            continue;
        failed |= json_array_append_new(array, json_integer(i));
        failed |= json_array_append_new(array, pack_double(bins[i].negatives));
        failed |= json_array_append_new(array, pack_double(bins[i].positives));
    }
    if (!failed)
        return array;
    json_decref(array);
    return NULL;
}

tdm_status tdm_metrics_save(const tdm_metrics *metrics, json_t **out)
{
    *out = NULL;
    TDM_FAIL_IF(metrics->auc.bins == NULL, TDM_E_STATE,
                "metrics that keep their rows for an exact AUC cannot be saved");
    json_t *object = json_object();
    int failed = json_object_set_new(object, "rows", json_integer(metrics->rows));
    failed |= json_object_set_new(object, "positives", json_integer(metrics->positives));
    failed |= json_object_set_new(object, "weight_sum", pack_double(metrics->weight_sum));
    failed |= json_object_set_new(object, "loss_sum", pack_double(metrics->loss_sum));
    failed |= json_object_set_new(object, "label_sum", pack_double(metrics->label_sum));
    failed |= json_object_set_new(object, "prediction_sum", pack_double(metrics->prediction_sum));
    failed |= json_object_set_new(object, "auc_bins", pack_bins(metrics->auc.bins));
    if (!failed) {
        *out = object;
        return TDM_OK;
    }
    json_decref(object);
    return tdm_fail(TDM_E_NOMEM, "out of memory for the metrics' JSON");
}

static tdm_status restore_int(const json_t *saved, const char *key, int64_t *out)
{
    const json_t *json = json_object_get(saved, key);
    TDM_FAIL_IF(!json_is_integer(json) || json_integer_value(json) < 0, TDM_E_FORMAT,
                "saved metrics: %s is not a count", key);
    *out = json_integer_value(json);
    return TDM_OK;
}

static tdm_status restore_double(const json_t *saved, const char *key, double *out)
{
    TDM_FAIL_IF(!unpack_double(json_object_get(saved, key), out), TDM_E_FORMAT,
                "saved metrics: %s is not a saved number", key);
    return TDM_OK;
}

static tdm_status restore_bins(const json_t *saved, tdm_auc_bin *bins)
{
    const json_t *array = json_object_get(saved, "auc_bins");
    TDM_FAIL_IF(!json_is_array(array) || json_array_size(array) % 3 != 0, TDM_E_FORMAT,
                "saved metrics: auc_bins is not a list of triples");
    json_int_t last = -1;
    for (size_t i = 0; i < json_array_size(array); i += 3) {
        const json_t *index = json_array_get(array, i);
        json_int_t bin = json_is_integer(index) ? json_integer_value(index) : -1;
        tdm_auc_bin weights;
        bool good = bin > last && bin < TDM_AUC_BINS &&
                    unpack_double(json_array_get(array, i + 1), &weights.negatives) &&
                    unpack_double(json_array_get(array, i + 2), &weights.positives) &&
                    weights.negatives >= 0.0 && weights.positives >= 0.0;
        TDM_FAIL_IF(!good, TDM_E_FORMAT, "saved metrics: auc_bins is damaged at item %zu", i);
        bins[bin] = weights;
        last = bin;
    }
    return TDM_OK;
}

static tdm_status restore(tdm_metrics *metrics, const json_t *saved)
{
    TDM_TRY(restore_int(saved, "rows", &metrics->rows));
    TDM_TRY(restore_int(saved, "positives", &metrics->positives));
    TDM_TRY(restore_double(saved, "weight_sum", &metrics->weight_sum));
    TDM_TRY(restore_double(saved, "loss_sum", &metrics->loss_sum));
    TDM_TRY(restore_double(saved, "label_sum", &metrics->label_sum));
    TDM_TRY(restore_double(saved, "prediction_sum", &metrics->prediction_sum));
    return restore_bins(saved, metrics->auc.bins);
}

tdm_status tdm_metrics_restore(tdm_metrics *metrics, const json_t *saved)
{
    TDM_FAIL_IF(metrics->auc.bins == NULL, TDM_E_STATE,
                "metrics that keep their rows for an exact AUC cannot be restored");
    tdm_metrics_reset(metrics);
    tdm_status status = restore(metrics, saved);
    if (status != TDM_OK)
        tdm_metrics_reset(metrics);
    return status;
}
