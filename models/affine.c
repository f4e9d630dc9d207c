#include "models/affine.h"

#include <math.h>

tdm_status tdm_affine_plan(tdm_plan *plan, const char *name, tdm_axis axis, int64_t inputs,
                           int64_t outputs, bool bias, double initializer, tdm_affine *out)
{
    tdm_init init = {TDM_INIT_UNIFORM, (float)sqrt(6.0 / (double)(inputs + outputs))};
    if (initializer > 0)
        init = (tdm_init){TDM_INIT_NORMAL, (float)(2.0 * initializer)};
    *out = (tdm_affine){.bias = -1, .inputs = inputs, .outputs = outputs, .axis = axis};
    TDM_TRY(tdm_plan_parameter(plan, name, "weight", (tdm_shape){2, {outputs, inputs}}, init, true,
                               false, &out->weight));
    if (bias)
        TDM_TRY(tdm_plan_parameter(plan, name, "bias", (tdm_shape){1, {outputs}},
                                   (tdm_init){TDM_INIT_ZERO, 0}, false, false, &out->bias));
    return TDM_OK;
}

static tdm_matrix weight_matrix(const tdm_affine *affine, float *data)
{
    return (tdm_matrix){.data = data,
                        .rows = affine->outputs,
                        .columns = affine->inputs,
                        .stride = affine->inputs,
                        .dtype = TDM_F32};
}

tdm_status tdm_affine_forward(const tdm_affine *affine, const tdm_step *step, tdm_matrix x,
                              tdm_matrix y, tdm_activation activation,
                              const tdm_matrix *preactivation)
{
    tdm_gemm_args args = {
        .a = x,
        .b = weight_matrix(affine, tdm_step_parameter(step, affine->weight)),
        .c = y,
        .trans_b = true,
        .bias = affine->bias < 0 ? NULL : tdm_step_parameter(step, affine->bias),
        .activation = activation,
        .compute = step->compute,
        .rows = tdm_step_axis_rows(step, affine->axis),
    };
    if (preactivation != NULL)
        args.preactivation = *preactivation;
    return step->backend->ops->gemm(step->backend, &args, step->stream);
}

tdm_status tdm_affine_backward(const tdm_affine *affine, const tdm_step *step, tdm_matrix x,
                               tdm_matrix dy, tdm_matrix dx, bool accumulate_dx)
{
    const tdm_gemm_args weight_args = {
        .a = dy,
        .b = x,
        .c = weight_matrix(affine, tdm_step_parameter_gradient(step, affine->weight)),
        .trans_a = true,
        .accumulate = true,
        .compute = step->compute,
        .rows = tdm_step_axis_rows(step, affine->axis),
    };
    TDM_TRY(step->backend->ops->gemm(step->backend, &weight_args, step->stream));
    if (dx.data == NULL)
        return TDM_OK;
    const tdm_gemm_args input_args = {
        .a = dy,
        .b = weight_matrix(affine, tdm_step_parameter(step, affine->weight)),
        .c = dx,
        .accumulate = accumulate_dx,
        .compute = step->compute,
        .rows = tdm_step_axis_rows(step, affine->axis),
    };
    return step->backend->ops->gemm(step->backend, &input_args, step->stream);
}

float *tdm_affine_bias_gradient(const tdm_affine *affine, const tdm_step *step)
{
    return affine->bias < 0 ? NULL : tdm_step_parameter_gradient(step, affine->bias);
}

static void append_product(tdm_product_list *list, tdm_product product)
{
    if (list->count < list->capacity)
        list->items[list->count] = product;
    list->count++;
}

void tdm_affine_products(const tdm_affine *affine, bool has_dx, bool accumulate_dx,
                         tdm_product_list *list)
{
    int64_t rows = affine->axis.size;
    append_product(list, (tdm_product){.m = rows,
                                       .n = affine->outputs,
                                       .k = affine->inputs,
                                       .trans_b = true,
                                       .count = affine->axis.count});
    append_product(list, (tdm_product){.m = affine->outputs,
                                       .n = affine->inputs,
                                       .k = rows,
                                       .trans_a = true,
                                       .accumulate = true,
                                       .count = affine->axis.count});
    if (has_dx)
        append_product(list, (tdm_product){.m = rows,
                                           .n = affine->inputs,
                                           .k = affine->outputs,
                                           .accumulate = accumulate_dx,
                                           .count = affine->axis.count});
}
