#include "models/affine.h"
#include "models/layers.h"

typedef struct linear_layer {
    tdm_layer base;
    tdm_affine affine;
    tdm_activation activation;
    float dropout;
    tdm_value input, output;
    tdm_value preactivation; /* where the activation's gradient needs it; or TDM_NO_VALUE */
    bool accumulate;
} linear_layer;

/* In place; the same call drops values and their gradients. */
static tdm_status drop(const linear_layer *layer, const tdm_step *step, tdm_matrix x)
{
    const tdm_dropout_args args = {
        .x = x,
        .y = x,
        .draws = tdm_step_dropout(step, layer->base.name, layer->dropout),
        .rows = tdm_step_value_rows(step, layer->output),
    };
    return step->backend->ops->dropout(step->backend, &args, step->stream);
}

static tdm_status linear_forward(tdm_layer *base, const tdm_step *step)
{
    const linear_layer *layer = (const linear_layer *)base;
    tdm_matrix y = tdm_step_value(step, layer->output), preactivation;
    bool keeps = layer->preactivation != TDM_NO_VALUE && step->training;
    if (keeps)
        preactivation = tdm_step_value(step, layer->preactivation);
    TDM_TRY(tdm_affine_forward(&layer->affine, step, tdm_step_value(step, layer->input), y,
                               layer->activation, keeps ? &preactivation : NULL));
    return layer->dropout > 0 && step->training ? drop(layer, step, y) : TDM_OK;
}

static tdm_status add_up_bias(const linear_layer *layer, const tdm_step *step, tdm_matrix dy)
{
    const tdm_column_sum_args args = {
        .x = dy,
        .sums = tdm_affine_bias_gradient(&layer->affine, step),
        .rows = tdm_step_value_rows(step, layer->output),
    };
    return args.sums == NULL ? TDM_OK
                             : step->backend->ops->column_sum(step->backend, &args, step->stream);
}

static tdm_status relu_backward(const linear_layer *layer, const tdm_step *step, tdm_matrix dy)
{
    const tdm_relu_bwd_args args = {
        .y = tdm_step_value(step, layer->output),
        .dy = dy,
        .dx = dy,
        .scale = layer->dropout > 0 ? 1.0f / (1.0f - layer->dropout) : 1.0f,
        .bias_gradient = tdm_affine_bias_gradient(&layer->affine, step),
        .rows = tdm_step_value_rows(step, layer->output),
    };
    return step->backend->ops->relu_bwd(step->backend, &args, step->stream);
}

/* Makes dy the gradient of x Wᵀ + b, in place, and adds it up for the bias. Values that were
 * dropped are 0, as those that ReLU cut: behind it nothing needs to be drawn again. */
static tdm_status activation_backward(const linear_layer *layer, const tdm_step *step,
                                      tdm_matrix dy)
{
    if (layer->activation == TDM_ACTIVATION_RELU)
        return relu_backward(layer, step, dy);
    if (layer->dropout > 0)
        TDM_TRY(drop(layer, step, dy));
    if (layer->activation == TDM_ACTIVATION_NONE)
        return add_up_bias(layer, step, dy);
    bool by_output = layer->activation == TDM_ACTIVATION_TANH;
    const tdm_activation_bwd_args args = {
        .activation = layer->activation,
        .x = tdm_step_value(step, by_output ? layer->output : layer->preactivation),
        .dy = dy,
        .dx = dy,
        .bias_gradient = tdm_affine_bias_gradient(&layer->affine, step),
        .rows = tdm_step_value_rows(step, layer->output),
    };
    return step->backend->ops->activation_bwd(step->backend, &args, step->stream);
}

static tdm_status linear_backward(tdm_layer *base, const tdm_step *step)
{
    const linear_layer *layer = (const linear_layer *)base;
    tdm_matrix dy = tdm_step_gradient(step, layer->output);
    TDM_TRY(activation_backward(layer, step, dy));
    return tdm_affine_backward(&layer->affine, step, tdm_step_value(step, layer->input), dy,
                               tdm_step_gradient(step, layer->input), layer->accumulate);
}

static void linear_products(const tdm_layer *base, const tdm_plan *plan, tdm_product_list *list)
{
    const linear_layer *layer = (const linear_layer *)base;
    tdm_affine_products(&layer->affine, tdm_plan_has_gradient(plan, layer->input),
                        layer->accumulate, list);
}

static const tdm_layer_type linear_type = {
    .forward = linear_forward,
    .backward = linear_backward,
    .products = linear_products,
};

/* What the activation's gradient is made of. */
static tdm_status plan_activation(tdm_plan *plan, linear_layer *layer, tdm_axis axis)
{
    layer->preactivation = TDM_NO_VALUE;
    switch (layer->activation) {
    case TDM_ACTIVATION_NONE:
        return TDM_OK;
    case TDM_ACTIVATION_RELU:
    case TDM_ACTIVATION_TANH:
        return tdm_plan_keep(plan, layer->output);
    case TDM_ACTIVATION_GELU:
    case TDM_ACTIVATION_GELU_TANH:
        break;
    }
    return tdm_plan_saved_value(plan, axis, layer->affine.outputs, &layer->preactivation);
}

tdm_status tdm_linear_add(tdm_plan *plan, const char *name, tdm_value input,
                          const tdm_linear_options *options, tdm_value *output)
{
    linear_layer *layer;
    tdm_axis axis = tdm_plan_axis(plan, input);
    TDM_TRY(tdm_plan_layer(plan, &linear_type, name, sizeof *layer, &layer));
    layer->activation = options->activation;
    layer->dropout = (float)options->dropout;
    layer->input = input;
    TDM_TRY(tdm_affine_plan(plan, name, axis, tdm_plan_columns(plan, input), options->units,
                            options->bias, options->initializer, &layer->affine));
    TDM_TRY(tdm_plan_value(plan, axis, options->units, &layer->output));
    TDM_TRY(plan_activation(plan, layer, axis));
    TDM_TRY(tdm_plan_input(plan, input, &layer->accumulate));
    TDM_TRY(tdm_plan_keep(plan, input));
    *output = layer->output;
    return TDM_OK;
}
