#include "models/plan_state.h"

#include "core/memory.h"

#include <string.h>
#include <xxhash.h>

#define ALIGNED_FLOATS ((int64_t)(TDM_ALIGNMENT / sizeof(float)))

static int64_t align_floats(int64_t count)
{
    return (count + ALIGNED_FLOATS - 1) / ALIGNED_FLOATS * ALIGNED_FLOATS;
}

tdm_status tdm_plan_create(const tdm_batch_layout *layout, bool recompute, tdm_plan **out)
{
    TDM_TRY(tdm_alloc(1, sizeof **out, out));
    (*out)->batch = *layout;
    (*out)->recompute = recompute;
    return TDM_OK;
}

void tdm_plan_destroy(tdm_plan *plan)
{
    if (plan == NULL)
        return;
    for (int i = 0; i < plan->layers.count; i++) {
        tdm_layer *layer = plan->layers.items[i];
        if (layer->type->destroy != NULL)
            layer->type->destroy(layer);
        tdm_free(layer->name);
        tdm_free(layer);
    }
    for (int i = 0; i < plan->parameters.count; i++)
        tdm_free(plan->parameters.items[i].name);
    tdm_free(plan->layers.items);
    tdm_free(plan->parameters.items);
    tdm_free(plan->values.items);
    tdm_free(plan->uses.items);
    tdm_free(plan->scratch.items);
    tdm_free(plan->segments.items);
    tdm_free(plan->sparse.items);
    tdm_free(plan);
}

/* ---- declarations ---------------------------------------------------------------------------- */

tdm_status tdm_plan_layer(tdm_plan *plan, const tdm_layer_type *type, const char *name, size_t size,
                          void *out)
{
    tdm_layer *layer;
    TDM_TRY(TDM_PLAN_GROW(plan->layers));
    TDM_TRY(tdm_alloc(1, size, &layer));
    layer->type = type;
    tdm_status status = tdm_strdup(name, &layer->name);
    if (status != TDM_OK) {
        tdm_free(layer);
        return status;
    }
    plan->layers.items[plan->layers.count++] = layer;
    memcpy(out, &layer, sizeof layer);
    return TDM_OK;
}

static int last_layer(const tdm_plan *plan)
{
    return plan->layers.count - 1;
}

uint32_t tdm_layer_word(const char *name)
{
    return (uint32_t)XXH3_64bits(name, strlen(name)) & 0xffffu;
}

tdm_status tdm_plan_parameter(tdm_plan *plan, const char *prefix, const char *name, tdm_shape shape,
                              tdm_init init, bool decay, bool sparse, int *out)
{
    tdm_parameter parameter = {
        .shape = shape, .init = init, .decay = decay, .sparse = sparse, .offset = -1};
    TDM_TRY(TDM_PLAN_GROW(plan->parameters));
    TDM_TRY(tdm_format(&parameter.name, "%s.%s", prefix, name));
    for (int i = 0; i < plan->parameters.count; i++) {
        if (strcmp(plan->parameters.items[i].name, parameter.name) != 0)
            continue;
        tdm_status status = tdm_fail(TDM_E_CONFIG,
                                     "two parameters of the model would be called "
                                     "%s: give each field a name of its own",
                                     parameter.name);
        tdm_free(parameter.name);
        return status;
    }
    if (sparse) {
        parameter.offset = plan->sparse_elements;
        plan->sparse_elements += align_floats(tdm_shape_elements(&shape));
    }
    *out = plan->parameters.count;
    plan->parameters.items[plan->parameters.count++] = parameter;
    return TDM_OK;
}

const tdm_parameter *tdm_plan_parameter_get(const tdm_plan *plan, int index)
{
    return &plan->parameters.items[index];
}

tdm_status tdm_plan_sparse_gradient(tdm_plan *plan, const tdm_plan_sparse *sparse)
{
    TDM_TRY(TDM_PLAN_GROW(plan->sparse));
    plan->sparse.items[plan->sparse.count++] = *sparse;
    return TDM_OK;
}

tdm_distinct_ids tdm_plan_distinct(const tdm_plan *plan, const tdm_plan_sparse *sparse,
                                   const unsigned char *batch)
{
    const tdm_batch_tensor *tensors = plan->batch.tensors;
    return (tdm_distinct_ids){
        .counts = (const int32_t *)(batch + tensors[sparse->counts].offset),
        .ids = (const uint32_t *)(batch + tensors[sparse->ids].offset),
        .starts = (const int32_t *)(batch + tensors[sparse->starts].offset),
        .positions = (const int32_t *)(batch + tensors[sparse->positions].offset),
    };
}

void tdm_plan_cannot_train(tdm_plan *plan, const char *tensor)
{
    plan->missing_tensor = tensor;
}

static tdm_status append_value(tdm_plan *plan, const tdm_plan_value_state *value, tdm_value *out)
{
    TDM_TRY(TDM_PLAN_GROW(plan->values));
    *out = plan->values.count;
    plan->values.items[plan->values.count++] = *value;
    return TDM_OK;
}

tdm_axis tdm_plan_rows(const tdm_plan *plan)
{
    return (tdm_axis){.size = plan->batch.batch_size, .count = TDM_BATCH_ROWS};
}

tdm_status tdm_plan_value(tdm_plan *plan, tdm_axis axis, int64_t columns, tdm_value *out)
{
    int layer = last_layer(plan);
    tdm_plan_value_state value = {
        .name = plan->layers.items[layer]->name,
        .axis = axis,
        .columns = columns,
        .stride = columns < ALIGNED_FLOATS ? columns : align_floats(columns),
        .layer = layer,
    };
    return append_value(plan, &value, out);
}

static tdm_status append_use(tdm_plan *plan, tdm_value value, bool in_backward)
{
    TDM_TRY(TDM_PLAN_GROW(plan->uses));
    plan->uses.items[plan->uses.count++] =
        (tdm_plan_use){.value = value, .layer = last_layer(plan), .in_backward = in_backward};
    return TDM_OK;
}

tdm_status tdm_plan_saved_value(tdm_plan *plan, tdm_axis axis, int64_t columns, tdm_value *out)
{
    TDM_TRY(tdm_plan_value(plan, axis, columns, out));
    plan->values.items[*out].training_only = true;
    return append_use(plan, *out, true);
}

tdm_status tdm_plan_batch_value(tdm_plan *plan, int tensor, tdm_value *out)
{
    const tdm_batch_tensor *found = &plan->batch.tensors[tensor];
    int64_t columns = found->shape.sizes[1];
    tdm_plan_value_state value = {
        .name = found->name,
        .axis = tdm_plan_rows(plan),
        .columns = columns,
        .stride = columns,
        .layer = -1,
        .offset = found->offset,
    };
    return append_value(plan, &value, out);
}

tdm_status tdm_plan_input(tdm_plan *plan, tdm_value value, bool *accumulate)
{
    tdm_plan_value_state *state = &plan->values.items[value];
    if (state->last_input != NULL)
        *state->last_input = true;
    *accumulate = false;
    state->last_input = accumulate;
    return append_use(plan, value, false);
}

tdm_status tdm_plan_keep(tdm_plan *plan, tdm_value value)
{
    return append_use(plan, value, true);
}

bool tdm_plan_is_read(const tdm_plan *plan, tdm_value value)
{
    return plan->values.items[value].last_input != NULL;
}

void tdm_plan_output(tdm_plan *plan, const char *name, tdm_value value)
{
    plan->values.items[value].output_name = name;
}

int64_t tdm_plan_columns(const tdm_plan *plan, tdm_value value)
{
    return plan->values.items[value].columns;
}

tdm_axis tdm_plan_axis(const tdm_plan *plan, tdm_value value)
{
    return plan->values.items[value].axis;
}

bool tdm_plan_has_gradient(const tdm_plan *plan, tdm_value value)
{
    return plan->values.items[value].layer >= 0;
}

tdm_status tdm_plan_begin_recompute(tdm_plan *plan)
{
    if (!plan->recompute)
        return TDM_OK;
    TDM_TRY(TDM_PLAN_GROW(plan->segments));
    plan->segments.items[plan->segments.count++] =
        (tdm_plan_segment){.first = plan->layers.count, .end = plan->layers.count};
    return TDM_OK;
}

void tdm_plan_end_recompute(tdm_plan *plan)
{
    if (plan->recompute)
        plan->segments.items[plan->segments.count - 1].end = plan->layers.count;
}

tdm_status tdm_plan_scratch(tdm_plan *plan, size_t bytes, tdm_scratch_life life, tdm_scratch *out)
{
    TDM_TRY(TDM_PLAN_GROW(plan->scratch));
    *out = plan->scratch.count;
    plan->scratch.items[plan->scratch.count++] =
        (tdm_plan_scratch_state){.bytes = bytes, .layer = last_layer(plan), .life = life};
    return TDM_OK;
}

void tdm_plan_workspace(tdm_plan *plan, size_t bytes)
{
    if (bytes > plan->workspace_bytes)
        plan->workspace_bytes = bytes;
}

const tdm_batch_layout *tdm_plan_batch(const tdm_plan *plan)
{
    return &plan->batch;
}

tdm_status tdm_plan_batch_tensor(const tdm_plan *plan, const char *name, tdm_dtype dtype,
                                 tdm_shape shape, int *out)
{
    int index = tdm_batch_layout_find(&plan->batch, name);
    TDM_FAIL_IF(index < 0, TDM_E_ARG, "the batch has no tensor \"%s\"", name);
    const tdm_batch_tensor *tensor = &plan->batch.tensors[index];
    bool same = tensor->dtype == dtype && tensor->shape.rank == shape.rank;
    for (int i = 0; same && i < shape.rank; i++)
        same = tensor->shape.sizes[i] == shape.sizes[i];
    TDM_FAIL_IF(!same, TDM_E_ARG,
                "tensor \"%s\" of the batch is not what the model reads: %s "
                "of rank %d, %lld elements",
                name, tdm_dtype_name(dtype), shape.rank, (long long)tdm_shape_elements(&shape));
    *out = index;
    return TDM_OK;
}

tdm_status tdm_plan_batch_axis(const tdm_plan *plan, const char *count, int64_t size, tdm_axis *out)
{
    out->size = size;
    return tdm_plan_batch_tensor(plan, count, TDM_I64, (tdm_shape){1, {1}}, &out->count);
}

tdm_status tdm_plan_finish(tdm_plan *plan)
{
    for (int i = plan->parameters.count - 1; i >= 0; i--) {
        tdm_parameter *parameter = &plan->parameters.items[i];
        if (parameter->sparse)
            continue;
        parameter->offset = plan->dense_elements;
        plan->dense_elements += align_floats(tdm_shape_elements(&parameter->shape));
    }
    TDM_TRY(tdm_plan_place(plan, false, &plan->inference_bytes));
    return tdm_plan_place(plan, true, &plan->training_bytes);
}

/* ---- running --------------------------------------------------------------------------------- */

float *tdm_step_parameter(const tdm_step *step, int index)
{
    return step->dense_values + step->plan->parameters.items[index].offset;
}

float *tdm_step_parameter_gradient(const tdm_step *step, int index)
{
    return step->dense_gradients + step->plan->parameters.items[index].offset;
}

const int64_t *tdm_step_axis_rows(const tdm_step *step, tdm_axis axis)
{
    return axis.count < 0 ? NULL : (const int64_t *)tdm_step_batch(step, axis.count);
}

const int64_t *tdm_step_value_rows(const tdm_step *step, tdm_value value)
{
    return tdm_step_axis_rows(step, step->plan->values.items[value].axis);
}

tdm_dropout_draws tdm_step_dropout(const tdm_step *step, const char *name, float rate)
{
    return (tdm_dropout_draws){
        .rate = step->training ? rate : 0.0f,
        .key = tdm_philox_make_key(step->seed, TDM_PURPOSE_DROPOUT, tdm_layer_word(name)),
        .samples = tdm_step_batch(step, TDM_BATCH_SAMPLE),
        .occurrences = tdm_step_batch(step, TDM_BATCH_OCCURRENCE),
        .scalars = step->scalars,
    };
}

tdm_matrix tdm_step_value(const tdm_step *step, tdm_value value)
{
    const tdm_plan_value_state *state = &step->plan->values.items[value];
    /* Nothing writes to the batch: a value of it is only ever an input. */
    unsigned char *base = state->layer >= 0 ? step->arena : (unsigned char *)step->batch;
    return (tdm_matrix){.data = base + state->offset,
                        .rows = state->axis.size,
                        .columns = state->columns,
                        .stride = state->stride,
                        .dtype = TDM_F32};
}

tdm_matrix tdm_step_gradient(const tdm_step *step, tdm_value value)
{
    const tdm_plan_value_state *state = &step->plan->values.items[value];
    tdm_matrix gradient = tdm_step_value(step, value);
    gradient.data = state->layer >= 0 ? step->arena + state->gradient_offset : NULL;
    return gradient;
}

void *tdm_step_scratch(const tdm_step *step, tdm_scratch scratch)
{
    return step->arena + step->plan->scratch.items[scratch].offset;
}

void *tdm_step_workspace(const tdm_step *step)
{
    return step->arena + step->plan->workspace_offset;
}
