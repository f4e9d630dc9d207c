/* DeepFM (Guo et al., "DeepFM: a factorization-machine based neural network for CTR prediction",
 * IJCAI 2017): first-order weights, a factorization machine and an MLP, which share their
 * embeddings. Dense columns have a first-order weight each and enter the MLP behind the embeddings.
 */
#include "models/ctr_models.h"

#include <stddef.h>

static tdm_status check_dims(const tdm_model_inputs *inputs)
{
    TDM_FAIL_IF(inputs->field_count == 0, TDM_E_CONFIG,
                "features.fields: deepfm pairs the vectors of fields and there are none: name "
                "columns, or choose model.type dcn_v2 for dense columns alone");
    const tdm_model_field *first = &inputs->fields[0];
    for (int i = 1; i < inputs->field_count; i++) {
        const tdm_model_field *field = &inputs->fields[i];
        TDM_FAIL_IF(field->embedding_dim != first->embedding_dim, TDM_E_CONFIG,
                    "features.fields: deepfm needs one embedding_dim for all fields, and %s has %d "
                    "but %s has %d: make them equal, or choose model.type dcn_v2",
                    first->name, (int)first->embedding_dim, field->name, (int)field->embedding_dim);
    }
    return TDM_OK;
}

static tdm_status deepfm_build(const void *bound, const tdm_model_inputs *inputs, tdm_plan *plan)
{
    const tdm_deepfm_options *options = bound;
    tdm_value dense, x, logits;
    TDM_TRY(check_dims(inputs));
    TDM_TRY(tdm_dense_input(plan, inputs, &dense));
    tdm_value terms[] = {TDM_NO_VALUE, TDM_NO_VALUE, TDM_NO_VALUE, TDM_NO_VALUE};
    TDM_TRY(tdm_first_order_add(plan, "first_order", inputs, &terms[0]));
    if (dense != TDM_NO_VALUE) {
        const tdm_linear_options linear = {.units = 1};
        TDM_TRY(tdm_linear_add(plan, "linear", dense, &linear, &terms[1]));
    }
    TDM_TRY(tdm_embedding_add(plan, "embedding", inputs, options->embedding_init, dense, &x));
    TDM_TRY(
        tdm_fm_add(plan, "fm", x, inputs->field_count, inputs->fields[0].embedding_dim, &terms[2]));
    TDM_TRY(tdm_mlp_add(plan, "mlp", x, &options->mlp, &terms[3]));
    TDM_TRY(tdm_sum_add(plan, "logit", terms, 4, false, &logits));
    return tdm_bce_loss_add(plan, "loss", logits, "label", true);
}

static const tdm_config_key deepfm_keys[] = {
    {.name = "mlp",
     .type = TDM_CONFIG_SECTION,
     .offset = offsetof(tdm_deepfm_options, mlp),
     .section = &tdm_mlp_schema,
     .help = "the deep part"},
    {.name = "embedding_init",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_deepfm_options, embedding_init),
     .fallback = "0.01",
     .min = 0,
     .max = 1,
     .help = "standard deviation of the embeddings' initial values, which are uniform"},
};

static const tdm_config_schema deepfm_schema = {
    .size = sizeof(tdm_deepfm_options),
    .keys = deepfm_keys,
    .count = sizeof deepfm_keys / sizeof deepfm_keys[0],
};

const tdm_model_type tdm_deepfm = {
    .name = "deepfm",
    .help = "first-order weights, a factorization machine and an MLP on shared embeddings",
    .schema = &deepfm_schema,
    .build = deepfm_build,
};
