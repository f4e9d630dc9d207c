#include "tests/support/ctr_rig.h"

#include "core/memory.h"
#include "tests/support/check_main.h"

#include <string.h>

static void *new_memory(size_t count, size_t size)
{
    void *memory = calloc(count == 0 ? 1 : count, size);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

tdm_batch_layout tdm_rig_layout(const tdm_model_inputs *inputs, int64_t batch_size, bool inference)
{
    tdm_batch_layout layout;
    const int64_t fields = inputs->field_count;
    const tdm_shape values = {2, {fields, batch_size}};
    tdm_batch_layout_init(&layout, batch_size);
    if (!inference)
        tdm_batch_layout_add(&layout, "label", TDM_F32, (tdm_shape){1, {batch_size}});
    if (inputs->dense_count > 0)
        tdm_batch_layout_add(&layout, "dense", TDM_F32,
                             (tdm_shape){2, {batch_size, inputs->dense_count}});
    if (fields == 0)
        return layout;
    tdm_batch_layout_add(&layout, "ids", TDM_U32, values);
    if (inference)
        return layout;
    tdm_batch_layout_add(&layout, "distinct_counts", TDM_I32, (tdm_shape){1, {fields}});
    tdm_batch_layout_add(&layout, "distinct_ids", TDM_U32, values);
    tdm_batch_layout_add(&layout, "distinct_starts", TDM_I32,
                         (tdm_shape){2, {fields, batch_size + 1}});
    tdm_batch_layout_add(&layout, "distinct_positions", TDM_I32, values);
    return layout;
}

static void alloc_device(tdm_rig *rig, size_t bytes, void *out)
{
    ck_assert_ok(rig->backend->type->alloc(rig->backend, bytes, out));
}

void tdm_rig_init(tdm_rig *rig, const tdm_rig_options *options)
{
    memset(rig, 0, sizeof *rig);
    rig->options = *options;
    rig->layout = tdm_rig_layout(&options->inputs, options->batch_size, options->inference);
    ck_assert_ok(tdm_pool_create(options->threads == 0 ? 1 : options->threads, &rig->pool));
    if (options->deferred)
        ck_assert_ok(tdm_cpu_create_deferred(rig->pool, &rig->backend));
    else
        ck_assert_ok(tdm_cpu_create(rig->pool, &rig->backend));
    const tdm_model_setup setup = {.seed = options->seed};
    ck_assert_ok(tdm_model_create(options->type, options->options, &options->inputs, &rig->layout,
                                  rig->backend, &setup, &rig->model));
    ck_assert_ok(tdm_model_allocate(rig->model, !options->inference));
    ck_assert_ok(tdm_model_init(rig->model));
    rig->host_batch = new_memory(rig->layout.bytes, 1);
    alloc_device(rig, rig->layout.bytes, &rig->batch);
    alloc_device(rig, sizeof *rig->device_scalars, &rig->device_scalars);
    tdm_model_memory memory = tdm_model_memory_get(rig->model);
    for (int i = 0; i < 4; i++) {
        int64_t elements = i < 2 ? memory.dense_elements : memory.sparse_elements;
        if (elements > 0)
            alloc_device(rig, (size_t)elements * sizeof(float), &rig->moments[i]);
    }
}

void tdm_rig_deinit(tdm_rig *rig)
{
    const tdm_backend_type *device = rig->backend->type;
    tdm_model_destroy(rig->model);
    device->free(rig->backend, rig->batch);
    device->free(rig->backend, rig->device_scalars);
    for (int i = 0; i < 4; i++) {
        if (rig->moments[i] != NULL)
            device->free(rig->backend, rig->moments[i]);
    }
    free(rig->host_batch);
    tdm_backend_destroy(rig->backend);
    tdm_pool_destroy(rig->pool);
}

static void *batch_tensor(const tdm_rig *rig, const char *name)
{
    int index = tdm_batch_layout_find(&rig->layout, name);
    ck_assert_int_ge(index, 0);
    return rig->host_batch + rig->layout.tensors[index].offset;
}

/* The distinct ids of field `field`, by search: slow and plain. */
static void find_distinct(tdm_rig *rig, int field, int64_t rows)
{
    const int64_t batch = rig->options.batch_size;
    const uint32_t *values = (uint32_t *)batch_tensor(rig, "ids") + field * batch;
    int32_t *counts = batch_tensor(rig, "distinct_counts");
    uint32_t *ids = (uint32_t *)batch_tensor(rig, "distinct_ids") + field * batch;
    int32_t *starts = (int32_t *)batch_tensor(rig, "distinct_starts") + field * batch + field;
    int32_t *positions = (int32_t *)batch_tensor(rig, "distinct_positions") + field * batch;
    int32_t count = 0, end = 0;
    for (int64_t r = 0; r < rows; r++) {
        int32_t u = 0;
        while (u < count && ids[u] != values[r])
            u++;
        if (values[r] != 0 && u == count)
            ids[count++] = values[r];
    }
    for (int32_t u = 0; u < count; u++) {
        starts[u] = end;
        for (int64_t r = 0; r < rows; r++) {
            if (values[r] == ids[u])
                positions[end++] = (int32_t)r;
        }
    }
    starts[count] = end;
    counts[field] = count;
}

void tdm_rig_load(tdm_rig *rig, const tdm_rig_rows *rows)
{
    const tdm_rig_options *options = &rig->options;
    size_t batch = (size_t)options->batch_size;
    uint64_t *samples = batch_tensor(rig, "sample");
    memcpy(batch_tensor(rig, "rows"), &rows->rows, sizeof rows->rows);
    memcpy(batch_tensor(rig, "weight"), rows->weight, batch * sizeof(float));
    for (size_t r = 0; r < batch; r++)
        samples[r] = ((uint64_t)3 << 32) + r;
    if (!options->inference)
        memcpy(batch_tensor(rig, "label"), rows->label, batch * sizeof(float));
    if (options->inputs.dense_count > 0)
        memcpy(batch_tensor(rig, "dense"), rows->dense,
               batch * (size_t)options->inputs.dense_count * sizeof(float));
    if (options->inputs.field_count > 0)
        memcpy(batch_tensor(rig, "ids"), rows->ids,
               batch * (size_t)options->inputs.field_count * sizeof(uint32_t));
    for (int f = 0; f < options->inputs.field_count && !options->inference; f++)
        find_distinct(rig, f, rows->rows);
    ck_assert_ok(rig->backend->type->copy_in(rig->backend, rig->batch, rig->host_batch,
                                             rig->layout.bytes, NULL));
    ck_assert_ok(rig->backend->type->stream_sync(rig->backend, NULL));
}

double tdm_rig_run(tdm_rig *rig, int64_t step, int64_t epoch, bool training)
{
    tdm_backend *backend = rig->backend;
    rig->scalars = (tdm_step_scalars){
        .step = step,
        .epoch = epoch,
        .dense_learning_rate = 1e-2,
        .sparse_learning_rate = 1e-2,
        .loss_scale = 1,
        .gradient_scale = 1,
    };
    ck_assert_ok(backend->type->copy_in(backend, rig->device_scalars, &rig->scalars,
                                        sizeof rig->scalars, NULL));
    ck_assert_ok(tdm_model_forward(rig->model, rig->batch, rig->device_scalars, training, NULL));
    if (training)
        ck_assert_ok(tdm_model_backward(rig->model, rig->batch, rig->device_scalars, false, NULL));
    tdm_rig_copy_out(rig, &rig->scalars, rig->device_scalars, sizeof rig->scalars);
    return rig->scalars.losses[0].loss_sum / rig->scalars.losses[0].weight_sum;
}

void tdm_rig_update(tdm_rig *rig)
{
    const tdm_update_rule rule = {
        .type = TDM_UPDATE_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    const tdm_dense_update_args dense = {
        .rule = rule,
        .scalars = rig->device_scalars,
        .values = tdm_model_dense_values(rig->model),
        .gradients = tdm_model_dense_gradients(rig->model),
        .moment1 = rig->moments[0],
        .moment2 = rig->moments[1],
        .count = tdm_model_memory_get(rig->model).dense_elements,
    };
    ck_assert_ok(rig->backend->ops->dense_update(rig->backend, &dense, NULL));
    for (int i = 0; i < tdm_model_sparse_gradient_count(rig->model); i++) {
        tdm_sparse_gradient gradient = tdm_model_sparse_gradient(rig->model, i, rig->batch);
        const tdm_sparse_update_args sparse = {
            .rule = rule,
            .scalars = rig->device_scalars,
            .fields = gradient.fields,
            .field_count = gradient.field_count,
            .distinct = gradient.distinct,
            .tables = tdm_model_sparse_values(rig->model),
            .moment1 = rig->moments[2],
            .moment2 = rig->moments[3],
            .gradients = gradient.gradients,
        };
        ck_assert_ok(rig->backend->ops->sparse_update(rig->backend, &sparse, NULL));
    }
    ck_assert_ok(rig->backend->type->stream_sync(rig->backend, NULL));
}

void tdm_rig_copy_out(tdm_rig *rig, void *host, const void *device, size_t bytes)
{
    ck_assert_ok(rig->backend->type->copy_out(rig->backend, host, device, bytes, NULL));
    ck_assert_ok(rig->backend->type->stream_sync(rig->backend, NULL));
}

void tdm_rig_probabilities(tdm_rig *rig, float *host, int64_t count)
{
    tdm_matrix probabilities;
    ck_assert_ok(tdm_model_output(rig->model, "probabilities", &probabilities));
    tdm_rig_copy_out(rig, host, probabilities.data, (size_t)count * sizeof *host);
}

const tdm_parameter *tdm_rig_parameter(const tdm_rig *rig, const char *name)
{
    for (int i = 0; i < tdm_model_parameter_count(rig->model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(rig->model, i);
        if (strcmp(parameter->name, name) == 0)
            return parameter;
    }
    ck_abort_msg("no parameter %s", name);
}

float *tdm_rig_values(const tdm_rig *rig, const tdm_parameter *parameter)
{
    float *slab = parameter->sparse ? tdm_model_sparse_values(rig->model)
                                    : tdm_model_dense_values(rig->model);
    return slab + parameter->offset;
}

static double *read_floats(tdm_rig *rig, const float *device, int64_t count)
{
    float *host = new_memory((size_t)count, sizeof *host);
    double *out = new_memory((size_t)count, sizeof *out);
    tdm_rig_copy_out(rig, host, device, (size_t)count * sizeof *host);
    for (int64_t i = 0; i < count; i++)
        out[i] = host[i];
    free(host);
    return out;
}

double *tdm_rig_read_values(tdm_rig *rig, const tdm_parameter *parameter)
{
    return read_floats(rig, tdm_rig_values(rig, parameter), tdm_shape_elements(&parameter->shape));
}

static double *read_sparse_gradients(tdm_rig *rig, const tdm_sparse_gradient *gradient,
                                     const tdm_embedding_field *field)
{
    double *table = new_memory((size_t)(field->table_rows * field->dim), sizeof *table);
    int32_t count;
    tdm_rig_copy_out(rig, &count, gradient->distinct.counts + field->index, sizeof count);
    uint32_t *ids = new_memory((size_t)count, sizeof *ids);
    tdm_rig_copy_out(rig, ids, gradient->distinct.ids + field->values, (size_t)count * sizeof *ids);
    double *rows =
        read_floats(rig, gradient->gradients + field->gradients, (int64_t)count * field->dim);
    for (int32_t u = 0; u < count; u++)
        memcpy(table + (int64_t)ids[u] * field->dim, rows + (int64_t)u * field->dim,
               (size_t)field->dim * sizeof *table);
    free(rows);
    free(ids);
    return table;
}

double *tdm_rig_read_gradients(tdm_rig *rig, const tdm_parameter *parameter)
{
    if (!parameter->sparse)
        return read_floats(rig, tdm_model_dense_gradients(rig->model) + parameter->offset,
                           tdm_shape_elements(&parameter->shape));
    for (int i = 0; i < tdm_model_sparse_gradient_count(rig->model); i++) {
        tdm_sparse_gradient gradient = tdm_model_sparse_gradient(rig->model, i, rig->batch);
        for (int f = 0; f < gradient.field_count; f++) {
            if (gradient.fields[f].table == parameter->offset)
                return read_sparse_gradients(rig, &gradient, &gradient.fields[f]);
        }
    }
    ck_abort_msg("no sparse gradient of %s", parameter->name);
}

static uint32_t draw(uint64_t seed, uint32_t list, int64_t element)
{
    tdm_philox_key key = tdm_philox_make_key(seed, TDM_PURPOSE_SYNTH, list);
    return tdm_random(key, 0, 0, (uint32_t)element);
}

tdm_rig_rows tdm_rig_random_rows(const tdm_rig_options *options, int64_t rows, uint64_t seed)
{
    const int64_t batch = options->batch_size;
    const int fields = options->inputs.field_count;
    const int64_t dense_count = batch * options->inputs.dense_count;
    uint32_t *ids = new_memory((size_t)(batch * fields), sizeof *ids);
    float *dense = new_memory((size_t)dense_count, sizeof *dense);
    float *label = new_memory((size_t)batch, sizeof *label);
    float *weight = new_memory((size_t)batch, sizeof *weight);
    for (int f = 0; f < fields; f++) {
        uint32_t table_rows = (uint32_t)options->inputs.fields[f].table_rows;
        for (int64_t r = 0; r < batch; r++) {
            uint32_t word = draw(seed, (uint32_t)f, r);
            uint32_t below = word % 3 == 0 && table_rows > 10 ? 10 : table_rows;
            ids[f * batch + r] = (word >> 8) % below;
        }
    }
    for (int64_t i = 0; i < dense_count; i++)
        dense[i] = 2 * tdm_uniform(draw(seed, 1000, i)) - 1;
    for (int64_t r = 0; r < batch; r++) {
        label[r] = (float)(draw(seed, 1001, r) >> 31);
        weight[r] = r < rows ? 1 + tdm_uniform(draw(seed, 1002, r)) : 0;
    }
    return (tdm_rig_rows){
        .rows = rows, .ids = ids, .dense = dense, .label = label, .weight = weight};
}

void tdm_rig_rows_free(tdm_rig_rows *rows)
{
    free((void *)rows->ids);
    free((void *)rows->dense);
    free((void *)rows->label);
    free((void *)rows->weight);
}
