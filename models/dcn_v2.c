/* DCN-v2, parallel form (Wang et al., "DCN V2: improved deep & cross network and practical lessons
 * for web-scale learning to rank systems", WWW 2021): full-rank crosses beside an MLP, both on
 * embeddings and dense columns. The last linear layer on the two outputs side by side is the sum of
 * one on each. */
#include "models/ctr_models.h"

#include "core/memory.h"

#include <stddef.h>

static tdm_status add_cross(tdm_plan *plan, int64_t index, tdm_value x0, tdm_value x,
                            tdm_value *output)
{
    char *name;
    TDM_TRY(tdm_format(&name, "cross.%lld", (long long)index));
    tdm_status status = tdm_cross_add(plan, name, x0, x, output);
    tdm_free(name);
    return status;
}

static tdm_status dcn_v2_build(const void *bound, const tdm_model_inputs *inputs, tdm_plan *plan)
{
    const tdm_dcn_v2_options *options = bound;
    tdm_value dense, x0, crossed, terms[2], logits;
    TDM_TRY(tdm_inputs_check(inputs));
    TDM_TRY(tdm_dense_input(plan, inputs, &dense));
    TDM_TRY(tdm_embedding_add(plan, "embedding", inputs, options->embedding_init, dense, &x0));
    crossed = x0;
    for (int64_t i = 0; i < options->crosses; i++)
        TDM_TRY(add_cross(plan, i, x0, crossed, &crossed));
    const tdm_linear_options logit = {.units = 1};
    TDM_TRY(tdm_linear_add(plan, "cross.logit", crossed, &logit, &terms[0]));
    TDM_TRY(tdm_mlp_add(plan, "mlp", x0, &options->mlp, &terms[1]));
    TDM_TRY(tdm_sum_add(plan, "logit", terms, 2, false, &logits));
    return tdm_bce_loss_add(plan, "loss", logits, "label", true);
}

static const tdm_config_key dcn_v2_keys[] = {
    {.name = "crosses",
     .type = TDM_CONFIG_INT,
     .offset = offsetof(tdm_dcn_v2_options, crosses),
     .fallback = "3",
     .min = 1,
     .max = 64,
     .help = "cross layers"},
    {.name = "mlp",
     .type = TDM_CONFIG_SECTION,
     .offset = offsetof(tdm_dcn_v2_options, mlp),
     .section = &tdm_mlp_schema,
     .help = "the MLP beside the crosses"},
    {.name = "embedding_init",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_dcn_v2_options, embedding_init),
     .fallback = "0.01",
     .min = 0,
     .max = 1,
     .help = "standard deviation of the embeddings' initial values, which are uniform"},
};

static const tdm_config_schema dcn_v2_schema = {
    .size = sizeof(tdm_dcn_v2_options),
    .keys = dcn_v2_keys,
    .count = sizeof dcn_v2_keys / sizeof dcn_v2_keys[0],
};

const tdm_model_type tdm_dcn_v2 = {
    .name = "dcn_v2",
    .help = "full-rank crosses beside an MLP",
    .schema = &dcn_v2_schema,
    .build = dcn_v2_build,
};
