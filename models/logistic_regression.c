/* Logistic regression: one weight an id, one a dense column, and a bias. */
#include "models/ctr_models.h"

static tdm_status logistic_regression_build(const void *options, const tdm_model_inputs *inputs,
                                            tdm_plan *plan)
{
    (void)options;
    TDM_TRY(tdm_inputs_check(inputs));
    tdm_value dense, logits;
    tdm_value terms[] = {TDM_NO_VALUE, TDM_NO_VALUE};
    TDM_TRY(tdm_dense_input(plan, inputs, &dense));
    if (inputs->field_count > 0)
        TDM_TRY(tdm_first_order_add(plan, "first_order", inputs, &terms[0]));
    if (dense != TDM_NO_VALUE) {
        const tdm_linear_options linear = {.units = 1};
        TDM_TRY(tdm_linear_add(plan, "linear", dense, &linear, &terms[1]));
    }
    TDM_TRY(tdm_sum_add(plan, "logit", terms, 2, true, &logits));
    return tdm_bce_loss_add(plan, "loss", logits, "label", true);
}

static const tdm_config_schema logistic_regression_schema = {.size = 0, .keys = NULL, .count = 0};

const tdm_model_type tdm_logistic_regression = {
    .name = "logistic_regression",
    .help = "one weight an id, one a dense column, and a bias",
    .schema = &logistic_regression_schema,
    .build = logistic_regression_build,
};
