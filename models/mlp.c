#include "core/memory.h"
#include "models/layers.h"

#include <stddef.h>

static const tdm_config_key mlp_keys[] = {
    {.name = "units",
     .type = TDM_CONFIG_INTS,
     .offset = offsetof(tdm_mlp_options, units),
     .fallback = "[400, 400, 400]",
     .min = 1,
     .max = 65536,
     .help = "units of each hidden layer"},
    {.name = "dropout",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_mlp_options, dropout),
     .fallback = "0",
     .min = 0,
     .max = 0.99,
     .help = "share of the hidden units that training drops"},
};

const tdm_config_schema tdm_mlp_schema = {
    .size = sizeof(tdm_mlp_options),
    .keys = mlp_keys,
    .count = sizeof mlp_keys / sizeof mlp_keys[0],
};

static tdm_status add_hidden(tdm_plan *plan, const char *name, int64_t index, tdm_value input,
                             const tdm_mlp_options *options, tdm_value *output)
{
    char *hidden_name;
    TDM_TRY(tdm_format(&hidden_name, "%s.%lld", name, (long long)index));
    const tdm_linear_options hidden = {
        .units = options->units.items[index],
        .bias = true,
        .activation = TDM_ACTIVATION_RELU,
        .dropout = options->dropout,
    };
    tdm_status status = tdm_linear_add(plan, hidden_name, input, &hidden, output);
    tdm_free(hidden_name);
    return status;
}

tdm_status tdm_mlp_add(tdm_plan *plan, const char *name, tdm_value input,
                       const tdm_mlp_options *options, tdm_value *output)
{
    tdm_value value = input;
    for (int64_t i = 0; i < options->units.count; i++)
        TDM_TRY(add_hidden(plan, name, i, value, options, &value));
    char *logit_name;
    TDM_TRY(tdm_format(&logit_name, "%s.logit", name));
    const tdm_linear_options logit = {.units = 1, .bias = true};
    tdm_status status = tdm_linear_add(plan, logit_name, value, &logit, output);
    tdm_free(logit_name);
    return status;
}
