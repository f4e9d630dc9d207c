#include "models/encoder_layers.h"

typedef struct gather_layer {
    tdm_layer base;
    int positions; /* a tensor of the batch */
    tdm_value x, output;
    bool accumulate;
} gather_layer;

static tdm_status gather_forward(tdm_layer *base, const tdm_step *step)
{
    const gather_layer *layer = (const gather_layer *)base;
    const tdm_lookup_fwd_args args = {
        .table = tdm_step_value(step, layer->x),
        .ids = tdm_step_batch(step, layer->positions),
        .out = tdm_step_value(step, layer->output),
        .rows = tdm_step_value_rows(step, layer->output),
    };
    return step->backend->ops->lookup_fwd(step->backend, &args, step->stream);
}

static tdm_status gather_backward(tdm_layer *base, const tdm_step *step)
{
    const gather_layer *layer = (const gather_layer *)base;
    const tdm_lookup_bwd_args args = {
        .dout = tdm_step_gradient(step, layer->output),
        .ids = tdm_step_batch(step, layer->positions),
        .table_gradient = tdm_step_gradient(step, layer->x),
        .rows = tdm_step_value_rows(step, layer->output),
    };
    const tdm_matrix *dx = &args.table_gradient;
    size_t bytes = (size_t)(dx->rows * dx->stride) * sizeof(float);
    if (!layer->accumulate)
        TDM_TRY(step->backend->type->zero(step->backend, dx->data, bytes, step->stream));
    return step->backend->ops->lookup_bwd(step->backend, &args, step->stream);
}

static const tdm_layer_type gather_type = {.forward = gather_forward, .backward = gather_backward};

tdm_status tdm_gather_add(tdm_plan *plan, const char *name, tdm_axis axis, int positions,
                          tdm_value x, tdm_value *output)
{
    gather_layer *layer;
    TDM_TRY(tdm_plan_layer(plan, &gather_type, name, sizeof *layer, &layer));
    layer->positions = positions;
    layer->x = x;
    TDM_TRY(tdm_plan_value(plan, axis, tdm_plan_columns(plan, x), &layer->output));
    TDM_TRY(tdm_plan_input(plan, x, &layer->accumulate));
    *output = layer->output;
    return TDM_OK;
}
