#include "models/layers.h"

#include <assert.h>

typedef struct sum_layer {
    tdm_layer base;
    tdm_value inputs[TDM_SUM_INPUTS];
    bool accumulate[TDM_SUM_INPUTS];
    int count;
    int bias; /* a parameter, or -1 */
    tdm_value output;
} sum_layer;

static tdm_status add(const tdm_step *step, tdm_matrix x, tdm_matrix y, bool accumulate)
{
    const tdm_add_args args = {
        .x = x, .y = y, .accumulate = accumulate, .rows = tdm_step_rows(step)};
    return step->backend->ops->add(step->backend, &args, step->stream);
}

static tdm_status sum_forward(tdm_layer *base, const tdm_step *step)
{
    const sum_layer *layer = (const sum_layer *)base;
    tdm_matrix y = tdm_step_value(step, layer->output);
    for (int i = 0; i < layer->count; i++)
        TDM_TRY(add(step, tdm_step_value(step, layer->inputs[i]), y, i > 0));
    if (layer->bias < 0)
        return TDM_OK;
    /* One row that repeats. */
    tdm_matrix bias = y;
    bias.data = tdm_step_parameter(step, layer->bias);
    bias.stride = 0;
    return add(step, bias, y, true);
}

static tdm_status sum_backward(tdm_layer *base, const tdm_step *step)
{
    const sum_layer *layer = (const sum_layer *)base;
    tdm_matrix dy = tdm_step_gradient(step, layer->output);
    for (int i = 0; i < layer->count; i++)
        TDM_TRY(add(step, dy, tdm_step_gradient(step, layer->inputs[i]), layer->accumulate[i]));
    if (layer->bias < 0)
        return TDM_OK;
    const tdm_column_sum_args args = {
        .x = dy,
        .sums = tdm_step_parameter_gradient(step, layer->bias),
        .rows = tdm_step_rows(step),
    };
    return step->backend->ops->column_sum(step->backend, &args, step->stream);
}

static const tdm_layer_type sum_type = {.forward = sum_forward, .backward = sum_backward};

tdm_status tdm_sum_add(tdm_plan *plan, const char *name, const tdm_value *inputs, int count,
                       bool bias, tdm_value *output)
{
    sum_layer *layer;
    assert(count <= TDM_SUM_INPUTS);
    TDM_TRY(tdm_plan_layer(plan, &sum_type, name, sizeof *layer, &layer));
    layer->bias = -1;
    for (int i = 0; i < count; i++) {
        if (inputs[i] != TDM_NO_VALUE)
            layer->inputs[layer->count++] = inputs[i];
    }
    if (bias)
        TDM_TRY(tdm_plan_parameter(plan, name, "bias", (tdm_shape){1, {1}},
                                   (tdm_init){TDM_INIT_ZERO, 0}, false, false, &layer->bias));
    TDM_TRY(tdm_plan_value(plan, tdm_plan_rows(plan), 1, &layer->output));
    for (int i = 0; i < layer->count; i++)
        TDM_TRY(tdm_plan_input(plan, layer->inputs[i], &layer->accumulate[i]));
    *output = layer->output;
    return TDM_OK;
}
