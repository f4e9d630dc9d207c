#include "models/encoder_layers.h"

typedef struct residual_norm_layer {
    tdm_layer base;
    tdm_encoder_batch batch;
    int weight, bias; /* parameters; bias -1: none */
    float eps, dropout;
    tdm_value x, residual; /* residual may be TDM_NO_VALUE */
    tdm_value sum, y;
    tdm_scratch means, rstds;
    bool accumulate_x, accumulate_residual;
} residual_norm_layer;

static tdm_status residual_norm_forward(tdm_layer *base, const tdm_step *step)
{
    const residual_norm_layer *layer = (const residual_norm_layer *)base;
    bool has_residual = layer->residual != TDM_NO_VALUE;
    tdm_layer_norm_fwd_args args = {
        .x = tdm_step_value(step, layer->x),
        .gamma = tdm_step_parameter(step, layer->weight),
        .beta = layer->bias < 0 ? NULL : tdm_step_parameter(step, layer->bias),
        .eps = layer->eps,
        .y = tdm_step_value(step, layer->y),
        .means = step->training ? tdm_step_scratch(step, layer->means) : NULL,
        .rstds = step->training ? tdm_step_scratch(step, layer->rstds) : NULL,
        .rows = tdm_step_value_rows(step, layer->x),
    };
    if (has_residual) {
        args.residual = tdm_step_value(step, layer->residual);
        args.dropout = tdm_step_token_dropout(step, &layer->batch, base->name, layer->dropout);
        args.sum = tdm_step_value(step, layer->sum);
    }
    return step->backend->ops->layer_norm_fwd(step->backend, &args, step->stream);
}

static tdm_status residual_norm_backward(tdm_layer *base, const tdm_step *step)
{
    const residual_norm_layer *layer = (const residual_norm_layer *)base;
    bool has_residual = layer->residual != TDM_NO_VALUE;
    tdm_layer_norm_bwd_args args = {
        .sum = tdm_step_value(step, layer->sum),
        .gamma = tdm_step_parameter(step, layer->weight),
        .means = tdm_step_scratch(step, layer->means),
        .rstds = tdm_step_scratch(step, layer->rstds),
        .dy = tdm_step_gradient(step, layer->y),
        .dx = tdm_step_gradient(step, layer->x),
        .accumulate_dx = layer->accumulate_x,
        .gamma_gradient = tdm_step_parameter_gradient(step, layer->weight),
        .beta_gradient = layer->bias < 0 ? NULL : tdm_step_parameter_gradient(step, layer->bias),
        .rows = tdm_step_value_rows(step, layer->x),
    };
    if (has_residual) {
        if (tdm_plan_is_read(step->plan, layer->sum))
            args.dsum = tdm_step_gradient(step, layer->sum);
        args.dropout = tdm_step_token_dropout(step, &layer->batch, base->name, layer->dropout);
        args.d_residual = tdm_step_gradient(step, layer->residual);
        args.accumulate_residual = layer->accumulate_residual;
    }
    return step->backend->ops->layer_norm_bwd(step->backend, &args, step->stream);
}

static const tdm_layer_type residual_norm_type = {.forward = residual_norm_forward,
                                                  .backward = residual_norm_backward};

static tdm_status plan_parameters(tdm_plan *plan, const char *name, int64_t columns, bool bias,
                                  residual_norm_layer *layer)
{
    const tdm_shape shape = {1, {columns}};
    layer->bias = -1;
    TDM_TRY(tdm_plan_parameter(plan, name, "weight", shape, (tdm_init){TDM_INIT_ONE, 0}, false,
                               false, &layer->weight));
    if (!bias)
        return TDM_OK;
    return tdm_plan_parameter(plan, name, "bias", shape, (tdm_init){TDM_INIT_ZERO, 0}, false, false,
                              &layer->bias);
}

tdm_status tdm_norm_add(tdm_plan *plan, const char *name, const tdm_norm_options *options,
                        const tdm_encoder_batch *batch, tdm_value x, tdm_value residual,
                        tdm_value *sum, tdm_value *y)
{
    residual_norm_layer *layer;
    tdm_axis axis = tdm_plan_axis(plan, x);
    int64_t columns = tdm_plan_columns(plan, x);
    size_t bytes = (size_t)axis.size * sizeof(float);
    TDM_TRY(tdm_plan_layer(plan, &residual_norm_type, name, sizeof *layer, &layer));
    layer->batch = *batch;
    layer->eps = options->eps;
    layer->dropout = (float)options->dropout;
    layer->x = layer->sum = x;
    layer->residual = residual;
    TDM_TRY(plan_parameters(plan, name, columns, options->bias, layer));
    TDM_TRY(tdm_plan_scratch(plan, bytes, TDM_SCRATCH_KEPT, &layer->means));
    TDM_TRY(tdm_plan_scratch(plan, bytes, TDM_SCRATCH_KEPT, &layer->rstds));
    TDM_TRY(tdm_plan_input(plan, x, &layer->accumulate_x));
    if (residual != TDM_NO_VALUE) {
        TDM_TRY(tdm_plan_input(plan, residual, &layer->accumulate_residual));
        TDM_TRY(tdm_plan_value(plan, axis, columns, &layer->sum));
    }
    TDM_TRY(tdm_plan_keep(plan, layer->sum));
    TDM_TRY(tdm_plan_value(plan, axis, columns, &layer->y));
    *sum = layer->sum;
    *y = layer->y;
    return TDM_OK;
}
