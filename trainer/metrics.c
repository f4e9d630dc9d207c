#include "trainer/metrics.h"

#include <stddef.h>

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

tdm_status tdm_metrics_init(tdm_metrics *metrics, const tdm_metrics_spec *spec,
                            int64_t exact_auc_rows)
{
    *metrics = (tdm_metrics){.spec = *spec, .exact_auc_rows = exact_auc_rows};
    tdm_status status = spec->type->init == NULL ? TDM_OK : spec->type->init(metrics);
    if (status != TDM_OK)
        tdm_metrics_deinit(metrics);
    return status;
}

void tdm_metrics_deinit(tdm_metrics *metrics)
{
    if (metrics->spec.type != NULL && metrics->spec.type->deinit != NULL)
        metrics->spec.type->deinit(metrics);
    *metrics = (tdm_metrics){0};
}

void tdm_metrics_reset(tdm_metrics *metrics)
{
    metrics->spec.type->reset(metrics);
}

tdm_status tdm_metrics_merge(tdm_metrics *into, const tdm_metrics *from)
{
    return into->spec.type->merge(into, from);
}

tdm_status tdm_metrics_save(const tdm_metrics *metrics, json_t **out)
{
    const tdm_metrics_type *type = metrics->spec.type;
    *out = NULL;
    TDM_FAIL_IF(metrics->exact_auc_rows > 0, TDM_E_STATE,
                "metrics that keep their rows for an exact AUC cannot be saved");
    json_t *object = json_object();
    if (type->save(metrics, object) == 0) {
        *out = object;
        return TDM_OK;
    }
    json_decref(object);
    return tdm_fail(TDM_E_NOMEM, "out of memory for the metrics' JSON");
}

tdm_status tdm_metrics_restore(tdm_metrics *metrics, const json_t *saved)
{
    const tdm_metrics_type *type = metrics->spec.type;
    TDM_FAIL_IF(metrics->exact_auc_rows > 0, TDM_E_STATE,
                "metrics that keep their rows for an exact AUC cannot be restored");
    type->reset(metrics);
    tdm_status status = type->restore(metrics, saved);
    if (status != TDM_OK)
        type->reset(metrics);
    return status;
}

tdm_status tdm_metrics_get(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out)
{
    return metrics->spec.type->result(metrics, pool, out);
}
