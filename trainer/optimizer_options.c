#include "trainer/optimizer.h"

#include <stddef.h>

static const char *const update_types[] = {"sgd", "adagrad", "adam", "adamw", NULL};

static const tdm_config_key update_keys[] = {
    {.name = "type",
     .type = TDM_CONFIG_CHOICE,
     .offset = offsetof(tdm_update_options, type),
     .fallback = "adam",
     .choices = update_types,
     .help = "the update rule"},
    {.name = "learning_rate",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_update_options, learning_rate),
     .fallback = "0.001",
     .min = 0,
     .max = 1e6,
     .help = "before the schedule"},
    {.name = "momentum",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_update_options, momentum),
     .fallback = "0",
     .min = 0,
     .max = 0.999999,
     .help = "of sgd"},
    {.name = "beta1",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_update_options, beta1),
     .fallback = "0.9",
     .min = 0,
     .max = 0.999999,
     .help = "of adam and adamw: decay of the mean gradient"},
    {.name = "beta2",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_update_options, beta2),
     .fallback = "0.999",
     .min = 0,
     .max = 0.999999,
     .help = "of adam and adamw: decay of the mean squared gradient"},
    {.name = "eps",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_update_options, eps),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "added to the root that updates are divided by; 0: 1e-10 for adagrad, else 1e-8"},
    {.name = "l2",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_update_options, l2),
     .fallback = "0",
     .min = 0,
     .max = 1e6,
     .help = "of sgd, adagrad and adam: adds l2 times the parameter to its gradient"},
    {.name = "weight_decay",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_update_options, weight_decay),
     .fallback = "0",
     .min = 0,
     .max = 1e6,
     .help = "of adamw: share of the parameter, times the learning rate, that a step takes away"},
    {.name = "initial_accumulator",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_update_options, initial_accumulator),
     .fallback = "0.1",
     .min = 0,
     .max = 1e6,
     .help = "of adagrad: what the sums of squared gradients begin with"},
};

static const tdm_config_schema update_schema = {
    .size = sizeof(tdm_update_options),
    .keys = update_keys,
    .count = sizeof update_keys / sizeof update_keys[0],
};

static const tdm_config_key optimizer_keys[] = {
    {.name = "dense",
     .type = TDM_CONFIG_SECTION,
     .offset = offsetof(tdm_optimizer_options, dense),
     .section = &update_schema,
     .help = "of all parameters but embedding tables"},
    {.name = "sparse",
     .type = TDM_CONFIG_SECTION,
     .offset = offsetof(tdm_optimizer_options, sparse),
     .section = &update_schema,
     .help = "of embedding tables, the rows that a batch uses"},
    {.name = "schedule",
     .type = TDM_CONFIG_SECTION,
     .offset = offsetof(tdm_optimizer_options, schedule),
     .section = &tdm_schedule_schema,
     .help = "of both learning rates"},
};

const tdm_config_schema tdm_optimizer_schema = {
    .size = sizeof(tdm_optimizer_options),
    .keys = optimizer_keys,
    .count = sizeof optimizer_keys / sizeof optimizer_keys[0],
};

static tdm_status refuse(const tdm_config_node *section, const char *key, int type,
                         const char *advice)
{
    const tdm_config_node *node = tdm_config_get(section, key);
    if (node == NULL)
        return tdm_fail(TDM_E_CONFIG, "%s: %s has none: %s", key, update_types[type], advice);
    return tdm_config_fail(node, "%s has none: %s", update_types[type], advice);
}

static tdm_status resolve(const tdm_config_node *section, tdm_update_options *options)
{
    int type = options->type;
    if (options->momentum > 0.0 && type != TDM_UPDATE_SGD)
        return refuse(section, "momentum", type,
                      "remove it, or choose type: sgd (adam and adamw have beta1)");
    if (options->l2 > 0.0 && type == TDM_UPDATE_ADAMW)
        return refuse(section, "l2", type, "set weight_decay, or choose type: adam");
    if (options->weight_decay > 0.0 && type != TDM_UPDATE_ADAMW)
        return refuse(section, "weight_decay", type, "set l2, or choose type: adamw");
    if (options->eps == 0.0)
        options->eps = type == TDM_UPDATE_ADAGRAD ? 1e-10 : 1e-8;
    return TDM_OK;
}

tdm_status tdm_optimizer_resolve(const tdm_config_node *node, tdm_optimizer_options *options)
{
    TDM_TRY(resolve(tdm_config_get(node, "dense"), &options->dense));
    return resolve(tdm_config_get(node, "sparse"), &options->sparse);
}

void tdm_optimizer_learning_rates(const tdm_optimizer_options *options, int64_t step,
                                  double progress, tdm_step_scalars *scalars)
{
    double factor = tdm_schedule_factor(&options->schedule, step, progress);
    scalars->dense_learning_rate = options->dense.learning_rate * factor;
    scalars->sparse_learning_rate = options->sparse.learning_rate * factor;
}
