#include "models/model_state.h"

#include "core/memory.h"

#include <string.h>

tdm_status tdm_model_create(const tdm_model_type *type, const void *options,
                            const tdm_model_inputs *inputs, const tdm_batch_layout *batch,
                            tdm_backend *backend, const tdm_model_setup *setup, tdm_model **out)
{
    tdm_model *model = NULL;
    tdm_status status;
    *out = NULL;
    TDM_TRY(tdm_ops_check(backend));
    TDM_TRY(tdm_alloc(1, sizeof *model, &model));
    model->backend = backend;
    model->setup = *setup;
    TDM_TRY_GOTO(tdm_plan_create(batch, setup->recompute, &model->plan), fail);
    TDM_TRY_GOTO(type->build(options, inputs, model->plan), fail);
    TDM_TRY_GOTO(tdm_plan_finish(model->plan), fail);
    *out = model;
    return TDM_OK;
fail:
    tdm_model_destroy(model);
    return status;
}

static void free_memory(tdm_model *model)
{
    const tdm_backend_type *device = model->backend->type;
    void *const pieces[] = {model->dense_values, model->dense_gradients, model->sparse_values,
                            model->arena};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        if (pieces[i] != NULL)
            device->free(model->backend, pieces[i]);
    }
    model->dense_values = model->dense_gradients = model->sparse_values = NULL;
    model->arena = NULL;
}

void tdm_model_destroy(tdm_model *model)
{
    if (model == NULL)
        return;
    free_memory(model);
    tdm_plan_destroy(model->plan);
    tdm_free(model);
}

tdm_model_memory tdm_model_memory_get(const tdm_model *model)
{
    return (tdm_model_memory){
        .dense_elements = model->plan->dense_elements,
        .sparse_elements = model->plan->sparse_elements,
        .arena_bytes = (int64_t)model->plan->training_bytes,
        .inference_arena_bytes = (int64_t)model->plan->inference_bytes,
    };
}

static tdm_status device_alloc(tdm_model *model, const char *what, size_t bytes, void *out)
{
    if (bytes == 0)
        return TDM_OK;
    tdm_status status = model->backend->type->alloc(model->backend, bytes, out);
    if (status != TDM_OK)
        return tdm_fail_context(status, "%s of the model, %zu bytes", what, bytes);
    return TDM_OK;
}

tdm_status tdm_model_allocate(tdm_model *model, bool training)
{
    tdm_plan *plan = model->plan;
    size_t dense_bytes = (size_t)plan->dense_elements * sizeof(float);
    size_t sparse_bytes = (size_t)plan->sparse_elements * sizeof(float);
    size_t arena_bytes;
    tdm_status status;
    TDM_FAIL_IF(model->allocated, TDM_E_STATE, "the model's memory is allocated already");
    TDM_FAIL_IF(training && plan->missing_tensor != NULL, TDM_E_STATE,
                "the model cannot be trained: its batches have no tensor \"%s\"",
                plan->missing_tensor);
    TDM_TRY(tdm_plan_place(plan, training, &arena_bytes));
    TDM_TRY_GOTO(device_alloc(model, "dense parameters", dense_bytes, &model->dense_values), fail);
    TDM_TRY_GOTO(device_alloc(model, "tables", sparse_bytes, &model->sparse_values), fail);
    if (training)
        TDM_TRY_GOTO(device_alloc(model, "dense gradients", dense_bytes, &model->dense_gradients),
                     fail);
    TDM_TRY_GOTO(device_alloc(model, "values", arena_bytes, &model->arena), fail);
    model->allocated = true;
    model->can_train = training;
    return TDM_OK;
fail:
    free_memory(model);
    return status;
}

/* ---- parts ----------------------------------------------------------------------------------- */

int tdm_model_parameter_count(const tdm_model *model)
{
    return model->plan->parameters.count;
}

const tdm_parameter *tdm_model_parameter(const tdm_model *model, int index)
{
    return tdm_plan_parameter_get(model->plan, index);
}

float *tdm_model_dense_values(const tdm_model *model)
{
    return model->dense_values;
}

float *tdm_model_dense_gradients(const tdm_model *model)
{
    return model->dense_gradients;
}

float *tdm_model_sparse_values(const tdm_model *model)
{
    return model->sparse_values;
}

float *tdm_model_values(const tdm_model *model, const tdm_parameter *parameter)
{
    return (parameter->sparse ? model->sparse_values : model->dense_values) + parameter->offset;
}

int tdm_model_sparse_gradient_count(const tdm_model *model)
{
    return model->plan->sparse.count;
}

tdm_sparse_gradient tdm_model_sparse_gradient(const tdm_model *model, int index,
                                              const unsigned char *batch)
{
    const tdm_plan_sparse *sparse = &model->plan->sparse.items[index];
    size_t offset = model->plan->scratch.items[sparse->gradients].offset;
    return (tdm_sparse_gradient){
        .fields = sparse->fields,
        .field_count = sparse->field_count,
        .distinct = tdm_plan_distinct(model->plan, sparse, batch),
        .gradients = (const float *)(model->arena + offset),
    };
}

void tdm_model_products(const tdm_model *model, tdm_product *products, int capacity, int *count)
{
    tdm_product_list list = {.items = products, .capacity = capacity};
    for (int i = 0; i < model->plan->layers.count; i++) {
        const tdm_layer *layer = model->plan->layers.items[i];
        if (layer->type->products != NULL)
            layer->type->products(layer, model->plan, &list);
    }
    *count = list.count;
}

/* ---- running --------------------------------------------------------------------------------- */

tdm_step tdm_model_step(const tdm_model *model, const unsigned char *batch,
                        tdm_step_scalars *scalars, bool training, tdm_stream *stream)
{
    return (tdm_step){
        .backend = model->backend,
        .stream = stream,
        .plan = model->plan,
        .batch = batch,
        .scalars = scalars,
        .arena = model->arena,
        .dense_values = model->dense_values,
        .dense_gradients = model->dense_gradients,
        .sparse_values = model->sparse_values,
        .seed = model->setup.seed,
        .compute = model->setup.compute,
        .training = training,
    };
}

tdm_status tdm_model_layer_forward(const tdm_model *model, int index, const tdm_step *step)
{
    tdm_layer *layer = model->plan->layers.items[index];
    tdm_status status = layer->type->forward(layer, step);
    return status == TDM_OK ? TDM_OK : tdm_fail_context(status, "forward pass of %s", layer->name);
}

tdm_status tdm_model_layer_backward(const tdm_model *model, int index, const tdm_step *step)
{
    tdm_layer *layer = model->plan->layers.items[index];
    const tdm_plan_segment *segment = tdm_plan_segment_ending(model->plan, index);
    for (int i = segment == NULL ? 0 : segment->first; segment != NULL && i < segment->end; i++)
        TDM_TRY(tdm_model_layer_forward(model, i, step));
    tdm_status status = layer->type->backward(layer, step);
    return status == TDM_OK ? TDM_OK : tdm_fail_context(status, "backward pass of %s", layer->name);
}

tdm_status tdm_model_zero_gradients(const tdm_model *model, tdm_stream *stream)
{
    size_t bytes = (size_t)model->plan->dense_elements * sizeof(float);
    return model->backend->type->zero(model->backend, model->dense_gradients, bytes, stream);
}

tdm_status tdm_model_forward(tdm_model *model, const unsigned char *batch,
                             tdm_step_scalars *scalars, bool training, tdm_stream *stream)
{
    TDM_FAIL_IF(!model->allocated, TDM_E_STATE, "the model's memory is not allocated");
    TDM_FAIL_IF(training && !model->can_train, TDM_E_STATE,
                "the model was allocated for predicting only");
    tdm_step step = tdm_model_step(model, batch, scalars, training, stream);
    model->has_gradient = false;
    for (int i = 0; i < model->plan->layers.count; i++)
        TDM_TRY(tdm_model_layer_forward(model, i, &step));
    model->batch = batch;
    model->scalars = scalars;
    model->has_forward = true;
    model->was_training = model->has_gradient = training;
    return TDM_OK;
}

tdm_status tdm_model_backward(tdm_model *model, const unsigned char *batch,
                              tdm_step_scalars *scalars, bool accumulate, tdm_stream *stream)
{
    TDM_FAIL_IF(!model->has_gradient || batch != model->batch, TDM_E_STATE,
                "a backward pass needs a forward pass of the same batch, with training, before it");
    tdm_step step = tdm_model_step(model, batch, scalars, true, stream);
    if (!accumulate)
        TDM_TRY(tdm_model_zero_gradients(model, stream));
    model->has_gradient = false;
    for (int i = model->plan->layers.count - 1; i >= 0; i--)
        TDM_TRY(tdm_model_layer_backward(model, i, &step));
    return TDM_OK;
}

tdm_status tdm_model_output(const tdm_model *model, const char *name, tdm_matrix *out)
{
    const tdm_plan *plan = model->plan;
    for (int i = 0; i < plan->values.count; i++) {
        const char *output = plan->values.items[i].output_name;
        if (output == NULL || strcmp(output, name) != 0)
            continue;
        tdm_step step = tdm_model_step(model, model->batch, NULL, false, NULL);
        *out = tdm_step_value(&step, i);
        return TDM_OK;
    }
    return tdm_fail(TDM_E_ARG, "the model has no output \"%s\"", name);
}
