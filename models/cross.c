#include "models/affine.h"
#include "models/layers.h"

typedef struct cross_layer {
    tdm_layer base;
    tdm_affine affine;
    tdm_value x0, x, output;
    tdm_scratch u;
    bool accumulate_x0, accumulate_x;
} cross_layer;

static size_t matrix_bytes(const tdm_plan *plan, int64_t columns)
{
    return (size_t)(tdm_plan_batch(plan)->batch_size * columns) * sizeof(float);
}

static tdm_matrix plain_matrix(const tdm_step *step, void *data, int64_t columns)
{
    return (tdm_matrix){.data = data,
                        .rows = tdm_plan_batch(step->plan)->batch_size,
                        .columns = columns,
                        .stride = columns,
                        .dtype = TDM_F32};
}

static tdm_status cross_forward(tdm_layer *base, const tdm_step *step)
{
    const cross_layer *layer = (const cross_layer *)base;
    const tdm_cross_fwd_args args = {
        .x0 = tdm_step_value(step, layer->x0),
        .x = tdm_step_value(step, layer->x),
        .u = plain_matrix(step, tdm_step_scratch(step, layer->u), layer->affine.inputs),
        .y = tdm_step_value(step, layer->output),
        .rows = tdm_step_rows(step),
    };
    TDM_TRY(tdm_affine_forward(&layer->affine, step, args.x, args.u, TDM_ACTIVATION_NONE, NULL));
    return step->backend->ops->cross_fwd(step->backend, &args, step->stream);
}

/* The part of dx0 and dx that goes round W, and du. In the first cross x is x0, and one gradient
 * takes what goes to either. */
static tdm_status cross_elementwise_backward(const cross_layer *layer, const tdm_step *step,
                                             tdm_matrix du)
{
    const tdm_cross_bwd_args args = {
        .x0 = tdm_step_value(step, layer->x0),
        .u = plain_matrix(step, tdm_step_scratch(step, layer->u), layer->affine.inputs),
        .dy = tdm_step_gradient(step, layer->output),
        .du = du,
        .dx0 = tdm_step_gradient(step, layer->x0),
        .dx = tdm_step_gradient(step, layer->x),
        .accumulate_dx0 = layer->accumulate_x0,
        .accumulate_dx = layer->x == layer->x0 || layer->accumulate_x,
        .rows = tdm_step_rows(step),
    };
    return step->backend->ops->cross_bwd(step->backend, &args, step->stream);
}

static tdm_status cross_backward(tdm_layer *base, const tdm_step *step)
{
    const cross_layer *layer = (const cross_layer *)base;
    tdm_matrix du = plain_matrix(step, tdm_step_workspace(step), layer->affine.inputs);
    TDM_TRY(cross_elementwise_backward(layer, step, du));
    const tdm_column_sum_args bias_args = {
        .x = du,
        .sums = tdm_affine_bias_gradient(&layer->affine, step),
        .rows = tdm_step_rows(step),
    };
    TDM_TRY(step->backend->ops->column_sum(step->backend, &bias_args, step->stream));
    return tdm_affine_backward(&layer->affine, step, tdm_step_value(step, layer->x), du,
                               tdm_step_gradient(step, layer->x), true);
}

static void cross_products(const tdm_layer *base, const tdm_plan *plan, tdm_product_list *list)
{
    const cross_layer *layer = (const cross_layer *)base;
    (void)plan;
    tdm_affine_products(&layer->affine, true, true, list);
}

static const tdm_layer_type cross_type = {
    .forward = cross_forward,
    .backward = cross_backward,
    .products = cross_products,
};

tdm_status tdm_cross_add(tdm_plan *plan, const char *name, tdm_value x0, tdm_value x,
                         tdm_value *output)
{
    cross_layer *layer;
    int64_t columns = tdm_plan_columns(plan, x0);
    TDM_TRY(tdm_plan_layer(plan, &cross_type, name, sizeof *layer, &layer));
    layer->x0 = x0;
    layer->x = x;
    TDM_TRY(tdm_affine_plan(plan, name, tdm_plan_rows(plan), columns, columns, true, 0,
                            &layer->affine));
    TDM_TRY(tdm_plan_scratch(plan, matrix_bytes(plan, columns), TDM_SCRATCH_KEPT, &layer->u));
    tdm_plan_workspace(plan, matrix_bytes(plan, columns));
    TDM_TRY(tdm_plan_value(plan, tdm_plan_rows(plan), columns, &layer->output));
    TDM_TRY(tdm_plan_input(plan, x0, &layer->accumulate_x0));
    TDM_TRY(tdm_plan_keep(plan, x0));
    if (x != x0) {
        TDM_TRY(tdm_plan_input(plan, x, &layer->accumulate_x));
        TDM_TRY(tdm_plan_keep(plan, x));
    }
    *output = layer->output;
    return TDM_OK;
}
