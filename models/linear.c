#include "models/affine.h"
#include "models/layers.h"

typedef struct linear_layer {
    tdm_layer base;
    tdm_affine affine;
    tdm_activation activation;
    float dropout;
    tdm_value input, output;
    bool accumulate;
} linear_layer;

/* In place; the same call drops values and their gradients. */
static tdm_status drop(const linear_layer *layer, const tdm_step *step, tdm_matrix x)
{
    const tdm_dropout_args args = {
        .x = x,
        .y = x,
        .draws = {.rate = layer->dropout,
                  .key = tdm_philox_make_key(step->seed, TDM_PURPOSE_DROPOUT,
                                             tdm_layer_word(layer->base.name)),
                  .samples = (const uint64_t *)tdm_step_batch(step, TDM_BATCH_SAMPLE),
                  .scalars = step->scalars},
        .rows = tdm_step_rows(step),
    };
    return step->backend->ops->dropout(step->backend, &args, step->stream);
}

static tdm_status linear_forward(tdm_layer *base, const tdm_step *step)
{
    const linear_layer *layer = (const linear_layer *)base;
    tdm_matrix y = tdm_step_value(step, layer->output);
    TDM_TRY(tdm_affine_forward(&layer->affine, step, tdm_step_value(step, layer->input), y,
                               layer->activation));
    return layer->dropout > 0 && step->training ? drop(layer, step, y) : TDM_OK;
}

/* Makes dy the gradient of x Wᵀ + b, in place, and adds it up for the bias. Values that were
 * dropped are 0, as those that ReLU cut: behind it nothing needs to be drawn again. */
static tdm_status activation_backward(const linear_layer *layer, const tdm_step *step,
                                      tdm_matrix dy)
{
    float *bias_gradient = tdm_affine_bias_gradient(&layer->affine, step);
    bool drops = layer->dropout > 0 && step->training;
    if (layer->activation == TDM_ACTIVATION_RELU) {
        const tdm_relu_bwd_args args = {
            .y = tdm_step_value(step, layer->output),
            .dy = dy,
            .dx = dy,
            .scale = drops ? 1.0f / (1.0f - layer->dropout) : 1.0f,
            .bias_gradient = bias_gradient,
            .rows = tdm_step_rows(step),
        };
        return step->backend->ops->relu_bwd(step->backend, &args, step->stream);
    }
    if (drops)
        TDM_TRY(drop(layer, step, dy));
    if (bias_gradient == NULL)
        return TDM_OK;
    const tdm_column_sum_args args = {.x = dy, .sums = bias_gradient, .rows = tdm_step_rows(step)};
    return step->backend->ops->column_sum(step->backend, &args, step->stream);
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
    tdm_affine_products(&layer->affine, plan, tdm_plan_has_gradient(plan, layer->input),
                        layer->accumulate, list);
}

static const tdm_layer_type linear_type = {
    .forward = linear_forward,
    .backward = linear_backward,
    .products = linear_products,
};

tdm_status tdm_linear_add(tdm_plan *plan, const char *name, tdm_value input,
                          const tdm_linear_options *options, tdm_value *output)
{
    linear_layer *layer;
    TDM_TRY(tdm_plan_layer(plan, &linear_type, name, sizeof *layer, &layer));
    layer->activation = options->activation;
    layer->dropout = (float)options->dropout;
    layer->input = input;
    TDM_TRY(tdm_affine_plan(plan, name, tdm_plan_columns(plan, input), options->units,
                            options->bias, &layer->affine));
    TDM_TRY(tdm_plan_value(plan, options->units, &layer->output));
    tdm_plan_input(plan, input, &layer->accumulate);
    *output = layer->output;
    return TDM_OK;
}
