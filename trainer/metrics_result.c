#include "trainer/metrics_result.h"

#include "core/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

tdm_metrics_result tdm_metrics_result_make(const tdm_metric *metrics, int count, double value)
{
    tdm_metrics_result result = {0};
    for (int i = 0; i < count; i++)
        tdm_metrics_result_add(&result, &metrics[i], value);
    return result;
}

void tdm_metrics_result_add(tdm_metrics_result *result, const tdm_metric *metric, double value)
{
    result->items[result->count++] = (tdm_metric_value){metric, value};
}

double tdm_metrics_result_get(const tdm_metrics_result *result, const char *name)
{
    for (int i = 0; i < result->count; i++) {
        if (strcmp(result->items[i].metric->name, name) == 0)
            return result->items[i].value;
    }
    return NAN;
}

const tdm_metric_value *tdm_metrics_result_headline(const tdm_metrics_result *result, int headline)
{
    for (int i = 0; i < result->count; i++) {
        if (result->items[i].metric->headline == headline)
            return &result->items[i];
    }
    return NULL;
}

double tdm_metrics_result_work(const tdm_metrics_result *result, const char **name)
{
    for (int i = 0; i < result->count; i++) {
        const tdm_metric_value *item = &result->items[i];
        if (!item->metric->is_work)
            continue;
        *name = item->metric->name;
        return result->rows > 0 ? item->value / (double)result->rows : NAN;
    }
    *name = "rows";
    return 1;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

int tdm_metrics_result_set_speed(const tdm_metrics_result *result, double rows_per_second,
                                 json_t *object)
{
    const char *work;
    char key[64];
    double per_row = tdm_metrics_result_work(result, &work);
    snprintf(key, sizeof key, "%s_per_second", work);
    return json_object_set_new(object, key, tdm_json_number(rows_per_second * per_row));
}

tdm_status tdm_metrics_result_json(const tdm_metrics_result *result, json_t **out)
{
    json_t *object = json_object();
    int failed = json_object_set_new(object, "rows", json_integer(result->rows));
    for (int i = 0; i < result->count; i++) {
        const tdm_metric_value *item = &result->items[i];
        bool is_integer = item->metric->is_count && !isnan(item->value);
        json_t *value =
            is_integer ? json_integer((json_int_t)item->value) : tdm_json_number(item->value);
        failed |= json_object_set_new(object, item->metric->name, value);
    }
    *out = NULL;
    if (!failed) {
        *out = object;
        return TDM_OK;
    }
    json_decref(object);
    return tdm_fail(TDM_E_NOMEM, "out of memory for the metrics' JSON");
}

static bool restore_value(const json_t *saved, bool is_count, double *out)
{
    *out = json_is_null(saved) ? NAN : json_number_value(saved);
    return is_count ? json_is_integer(saved) : json_is_number(saved) || json_is_null(saved);
}

tdm_status tdm_metrics_result_restore(const json_t *saved, const tdm_metric *metrics, int count,
                                      tdm_metrics_result *out)
{
    const json_t *rows = json_object_get(saved, "rows");
    *out = (tdm_metrics_result){.rows = json_integer_value(rows)};
    TDM_FAIL_IF(!json_is_integer(rows), TDM_E_FORMAT, "rows is missing or wrong");
    for (int i = 0; i < count; i++) {
        const json_t *value = json_object_get(saved, metrics[i].name);
        double number;
        if (value == NULL && metrics[i].is_optional)
            continue;
        TDM_FAIL_IF(!restore_value(value, metrics[i].is_count, &number), TDM_E_FORMAT,
                    "%s is missing or wrong", metrics[i].name);
        tdm_metrics_result_add(out, &metrics[i], number);
    }
    return TDM_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

static tdm_status append_line(tdm_text *text, const tdm_metric_value *item)
{
    const char *title = item->metric->title;
    if (isnan(item->value))
        return tdm_text_printf(text, "  %-18s  %12s\n", title, "n/a");
    if (item->metric->is_count)
        return tdm_text_printf(text, "  %-18s  %12.0f\n", title, item->value);
    if (fabs(item->value) >= 1e12)
        return tdm_text_printf(text, "  %-18s  %12.6g\n", title, item->value);
    return tdm_text_printf(text, "  %-18s  %12.6f\n", title, item->value);
}

tdm_status tdm_metrics_result_text(const tdm_metrics_result *result, tdm_text *text)
{
    TDM_TRY(tdm_text_printf(text, "  %-18s  %12lld\n", "rows", (long long)result->rows));
    for (int i = 0; i < result->count; i++) {
        const tdm_metric_value *item = &result->items[i];
        if (item->metric->is_error && !(item->value > 0.0))
            continue;
        TDM_TRY(append_line(text, item));
    }
    return TDM_OK;
}
