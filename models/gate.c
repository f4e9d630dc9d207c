#include "models/encoder_layers.h"

typedef struct gate_layer {
    tdm_layer base;
    tdm_activation activation;
    tdm_value x, output;
    bool accumulate; /* always false: nothing else reads x */
} gate_layer;

static tdm_status gate_forward(tdm_layer *base, const tdm_step *step)
{
    const gate_layer *layer = (const gate_layer *)base;
    const tdm_gated_fwd_args args = {
        .activation = layer->activation,
        .x = tdm_step_value(step, layer->x),
        .y = tdm_step_value(step, layer->output),
        .rows = tdm_step_value_rows(step, layer->x),
    };
    return step->backend->ops->gated_fwd(step->backend, &args, step->stream);
}

static tdm_status gate_backward(tdm_layer *base, const tdm_step *step)
{
    const gate_layer *layer = (const gate_layer *)base;
    const tdm_gated_bwd_args args = {
        .activation = layer->activation,
        .x = tdm_step_value(step, layer->x),
        .dy = tdm_step_gradient(step, layer->output),
        .dx = tdm_step_gradient(step, layer->x),
        .rows = tdm_step_value_rows(step, layer->x),
    };
    return step->backend->ops->gated_bwd(step->backend, &args, step->stream);
}

static const tdm_layer_type gate_type = {.forward = gate_forward, .backward = gate_backward};

tdm_status tdm_gate_add(tdm_plan *plan, const char *name, tdm_activation activation, tdm_value x,
                        tdm_value *output)
{
    gate_layer *layer;
    TDM_TRY(tdm_plan_layer(plan, &gate_type, name, sizeof *layer, &layer));
    layer->activation = activation;
    layer->x = x;
    TDM_TRY(tdm_plan_value(plan, tdm_plan_axis(plan, x), tdm_plan_columns(plan, x) / 2,
                           &layer->output));
    TDM_TRY(tdm_plan_input(plan, x, &layer->accumulate));
    TDM_TRY(tdm_plan_keep(plan, x));
    *output = layer->output;
    return TDM_OK;
}
