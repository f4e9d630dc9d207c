#include "core/memory.h"
#include "models/layers.h"

#include <math.h>

typedef struct embedding_layer {
    tdm_layer base;
    tdm_embedding_field *fields;
    int field_count;
    bool sum_fields;
    int ids;         /* a tensor of the batch */
    int64_t columns; /* of the fields; `dense` lies behind them */
    tdm_value dense; /* or TDM_NO_VALUE */
    tdm_value output;
    tdm_plan_sparse sparse;
} embedding_layer;

tdm_status tdm_dense_input(tdm_plan *plan, const tdm_model_inputs *inputs, tdm_value *out)
{
    *out = TDM_NO_VALUE;
    if (inputs->dense_count == 0)
        return TDM_OK;
    int tensor;
    tdm_shape shape = {2, {tdm_plan_batch(plan)->batch_size, inputs->dense_count}};
    TDM_TRY(tdm_plan_batch_tensor(plan, "dense", TDM_F32, shape, &tensor));
    return tdm_plan_batch_value(plan, tensor, out);
}

static tdm_status copy_dense(const embedding_layer *layer, const tdm_step *step)
{
    tdm_matrix dense = tdm_step_value(step, layer->dense);
    tdm_matrix columns = tdm_step_value(step, layer->output);
    columns.data = (float *)columns.data + layer->columns;
    columns.columns = dense.columns;
    const tdm_add_args args = {.x = dense, .y = columns, .rows = tdm_step_rows(step)};
    return step->backend->ops->add(step->backend, &args, step->stream);
}

static tdm_status embedding_forward(tdm_layer *base, const tdm_step *step)
{
    const embedding_layer *layer = (const embedding_layer *)base;
    if (layer->dense != TDM_NO_VALUE)
        TDM_TRY(copy_dense(layer, step));
    if (layer->field_count == 0)
        return TDM_OK;
    tdm_embedding_fwd_args args = {
        .fields = layer->fields,
        .field_count = layer->field_count,
        .sum_fields = layer->sum_fields,
        .tables = step->sparse_values,
        .ids = (const uint32_t *)tdm_step_batch(step, layer->ids),
        .out = tdm_step_value(step, layer->output),
        .rows = tdm_step_rows(step),
    };
    args.out.columns = layer->columns;
    return step->backend->ops->embedding_fwd(step->backend, &args, step->stream);
}

static tdm_status embedding_backward(tdm_layer *base, const tdm_step *step)
{
    const embedding_layer *layer = (const embedding_layer *)base;
    if (layer->field_count == 0)
        return TDM_OK;
    tdm_embedding_bwd_args args = {
        .fields = layer->fields,
        .field_count = layer->field_count,
        .distinct = tdm_plan_distinct(step->plan, &layer->sparse, step->batch),
        .dout = tdm_step_gradient(step, layer->output),
        .gradients = tdm_step_scratch(step, layer->sparse.gradients),
    };
    args.dout.columns = layer->columns;
    return step->backend->ops->embedding_bwd(step->backend, &args, step->stream);
}

static void embedding_destroy(tdm_layer *base)
{
    tdm_free(((embedding_layer *)base)->fields);
}

static const tdm_layer_type embedding_type = {
    .forward = embedding_forward,
    .backward = embedding_backward,
    .destroy = embedding_destroy,
};

static tdm_status add_table(tdm_plan *plan, embedding_layer *layer, int index,
                            const tdm_model_field *source, tdm_init init, int64_t *gradients)
{
    int64_t batch = tdm_plan_batch(plan)->batch_size;
    int32_t dim = layer->sum_fields ? 1 : source->embedding_dim;
    char *name;
    int parameter;
    TDM_TRY(tdm_format(&name, "%s.weight", source->name));
    tdm_status status =
        tdm_plan_parameter(plan, layer->base.name, name, (tdm_shape){2, {source->table_rows, dim}},
                           init, true, true, &parameter);
    tdm_free(name);
    TDM_TRY(status);
    layer->fields[index] = (tdm_embedding_field){
        .table = tdm_plan_parameter_get(plan, parameter)->offset,
        .table_rows = source->table_rows,
        .values = index * batch,
        .gradients = *gradients,
        .offsets = -1,
        .dim = dim,
        .column = layer->sum_fields ? 0 : (int32_t)layer->columns,
        .index = index,
    };
    layer->columns = layer->sum_fields ? 1 : layer->columns + dim;
    *gradients += batch * dim;
    return TDM_OK;
}

static tdm_status plan_gradients(tdm_plan *plan, embedding_layer *layer, int64_t elements)
{
    int64_t batch = tdm_plan_batch(plan)->batch_size;
    int64_t fields = layer->field_count;
    if (tdm_batch_layout_find(tdm_plan_batch(plan), "distinct_counts") < 0) {
        tdm_plan_cannot_train(plan, "distinct_counts");
        return TDM_OK;
    }
    tdm_plan_sparse *sparse = &layer->sparse;
    sparse->fields = layer->fields;
    sparse->field_count = layer->field_count;
    const tdm_shape values = {2, {fields, batch}};
    const tdm_shape starts = {2, {fields, batch + 1}};
    TDM_TRY(tdm_plan_batch_tensor(plan, "distinct_counts", TDM_I32, (tdm_shape){1, {fields}},
                                  &sparse->counts));
    TDM_TRY(tdm_plan_batch_tensor(plan, "distinct_ids", TDM_U32, values, &sparse->ids));
    TDM_TRY(tdm_plan_batch_tensor(plan, "distinct_starts", TDM_I32, starts, &sparse->starts));
    TDM_TRY(tdm_plan_batch_tensor(plan, "distinct_positions", TDM_I32, values, &sparse->positions));
    TDM_TRY(tdm_plan_scratch(plan, (size_t)elements * sizeof(float), TDM_SCRATCH_GRADIENT,
                             &sparse->gradients));
    return tdm_plan_sparse_gradient(plan, sparse);
}

static tdm_status add_embedding(tdm_plan *plan, const char *name, const tdm_model_inputs *inputs,
                                bool sum_fields, tdm_init init, tdm_value dense, tdm_value *output)
{
    embedding_layer *layer;
    int64_t batch = tdm_plan_batch(plan)->batch_size;
    int64_t gradient_elements = 0;
    TDM_TRY(tdm_plan_layer(plan, &embedding_type, name, sizeof *layer, &layer));
    layer->field_count = inputs->field_count;
    layer->sum_fields = sum_fields;
    layer->dense = dense;
    TDM_TRY(tdm_alloc((size_t)inputs->field_count, sizeof *layer->fields, &layer->fields));
    for (int i = 0; i < inputs->field_count; i++)
        TDM_TRY(add_table(plan, layer, i, &inputs->fields[i], init, &gradient_elements));
    if (inputs->field_count > 0) {
        const tdm_shape shape = {2, {inputs->field_count, batch}};
        TDM_TRY(tdm_plan_batch_tensor(plan, "ids", TDM_U32, shape, &layer->ids));
        TDM_TRY(plan_gradients(plan, layer, gradient_elements));
    }
    int64_t dense_columns = 0;
    if (dense != TDM_NO_VALUE)
        dense_columns = tdm_plan_columns(plan, dense);
    TDM_TRY(
        tdm_plan_value(plan, tdm_plan_rows(plan), layer->columns + dense_columns, &layer->output));
    *output = layer->output;
    return TDM_OK;
}

tdm_status tdm_embedding_add(tdm_plan *plan, const char *name, const tdm_model_inputs *inputs,
                             double deviation, tdm_value dense, tdm_value *output)
{
    const tdm_init init = {TDM_INIT_UNIFORM, (float)(deviation * sqrt(3.0))};
    return add_embedding(plan, name, inputs, false, init, dense, output);
}

tdm_status tdm_first_order_add(tdm_plan *plan, const char *name, const tdm_model_inputs *inputs,
                               tdm_value *output)
{
    const tdm_init init = {TDM_INIT_ZERO, 0};
    return add_embedding(plan, name, inputs, true, init, TDM_NO_VALUE, output);
}
