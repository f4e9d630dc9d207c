#include "models/encoder_layers.h"

typedef struct drop_layer {
    tdm_layer base;
    tdm_encoder_batch batch;
    bool by_tokens;
    float rate;
    tdm_value x, output;
    bool accumulate; /* always false: nothing else reads x */
} drop_layer;

static tdm_status run(const drop_layer *layer, const tdm_step *step, tdm_matrix x, tdm_matrix y)
{
    const tdm_dropout_args args = {
        .x = x,
        .y = y,
        .draws = layer->by_tokens
                     ? tdm_step_token_dropout(step, &layer->batch, layer->base.name, layer->rate)
                     : tdm_step_dropout(step, layer->base.name, layer->rate),
        .rows = tdm_step_value_rows(step, layer->x),
    };
    return step->backend->ops->dropout(step->backend, &args, step->stream);
}

static tdm_status drop_forward(tdm_layer *base, const tdm_step *step)
{
    const drop_layer *layer = (const drop_layer *)base;
    return run(layer, step, tdm_step_value(step, layer->x), tdm_step_value(step, layer->output));
}

static tdm_status drop_backward(tdm_layer *base, const tdm_step *step)
{
    const drop_layer *layer = (const drop_layer *)base;
    return run(layer, step, tdm_step_gradient(step, layer->output),
               tdm_step_gradient(step, layer->x));
}

static const tdm_layer_type drop_type = {.forward = drop_forward, .backward = drop_backward};

tdm_status tdm_drop_add(tdm_plan *plan, const char *name, const tdm_encoder_batch *batch,
                        double rate, tdm_value x, tdm_value *output)
{
    drop_layer *layer;
    *output = x;
    if (rate <= 0)
        return TDM_OK;
    TDM_TRY(tdm_plan_layer(plan, &drop_type, name, sizeof *layer, &layer));
    layer->batch = *batch;
    layer->by_tokens = tdm_plan_axis(plan, x).count == batch->tokens.count;
    layer->rate = (float)rate;
    layer->x = x;
    TDM_TRY(
        tdm_plan_value(plan, tdm_plan_axis(plan, x), tdm_plan_columns(plan, x), &layer->output));
    TDM_TRY(tdm_plan_input(plan, x, &layer->accumulate));
    *output = layer->output;
    return TDM_OK;
}
