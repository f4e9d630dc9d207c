/* Finds the tensor in which numbers first went wrong: it runs the step once more and looks at what
 * each layer has made, copying it off the device in pieces. It is asked only when a step has
 * failed. */
#include "models/model_state.h"

#include <math.h>
#include <stdio.h>

#define PIECE_FLOATS ((int64_t)1 << 20)
#define NAME_BYTES   128

typedef struct finder {
    tdm_model *model;
    tdm_step step;
    float *piece;
    char *name; /* [NAME_BYTES]; "" until something is found */
} finder;

static tdm_status copy_out(const finder *find, void *host, const void *device, size_t bytes)
{
    tdm_backend *backend = find->model->backend;
    TDM_TRY(backend->type->copy_out(backend, host, device, bytes, NULL));
    return backend->type->stream_sync(backend, NULL);
}

static bool found(const finder *find)
{
    return find->name[0] != '\0';
}

static void look(finder *find, const float *numbers, int64_t count, const char *name,
                 const char *suffix)
{
    for (int64_t i = 0; i < count && !found(find); i++) {
        if (!isfinite(numbers[i]))
            snprintf(find->name, NAME_BYTES, "%s%s", name, suffix);
    }
}

static tdm_status scan(finder *find, const float *data, int64_t count, const char *name,
                       const char *suffix)
{
    for (int64_t begin = 0; begin < count && !found(find); begin += PIECE_FLOATS) {
        int64_t piece = count - begin < PIECE_FLOATS ? count - begin : PIECE_FLOATS;
        TDM_TRY(copy_out(find, find->piece, data + begin, (size_t)piece * sizeof(float)));
        look(find, find->piece, piece, name, suffix);
    }
    return TDM_OK;
}

static tdm_status scan_parameters(finder *find)
{
    const tdm_plan *plan = find->model->plan;
    for (int i = 0; i < plan->parameters.count && !found(find); i++) {
        const tdm_parameter *parameter = &plan->parameters.items[i];
        TDM_TRY(scan(find, tdm_model_values(find->model, parameter),
                     tdm_shape_elements(&parameter->shape), parameter->name, ""));
    }
    return TDM_OK;
}

/* The valid rows of a value or its gradient. */
static tdm_status scan_matrix(finder *find, tdm_value value, tdm_matrix matrix, const char *suffix)
{
    const int64_t *device_rows = tdm_step_value_rows(&find->step, value);
    int64_t rows = matrix.rows;
    if (device_rows != NULL)
        TDM_TRY(copy_out(find, &rows, device_rows, sizeof rows));
    if (rows > matrix.rows)
        rows = matrix.rows;
    const char *name = find->model->plan->values.items[value].name;
    int64_t per_piece = PIECE_FLOATS / matrix.stride > 0 ? PIECE_FLOATS / matrix.stride : 1;
    for (int64_t row = 0; row < rows && !found(find); row += per_piece) {
        int64_t some = rows - row < per_piece ? rows - row : per_piece;
        const float *data = (const float *)matrix.data + row * matrix.stride;
        size_t elements = (size_t)((some - 1) * matrix.stride + matrix.columns);
        TDM_TRY(copy_out(find, find->piece, data, elements * sizeof(float)));
        for (int64_t r = 0; r < some; r++)
            look(find, find->piece + r * matrix.stride, matrix.columns, name, suffix);
    }
    return TDM_OK;
}

/* Values of the batch come before the first layer, -1. What only training computes is not there
 * where it has not trained. */
static tdm_status scan_values_of(finder *find, int layer)
{
    const tdm_plan *plan = find->model->plan;
    const char *suffix = layer < 0 ? "" : " output";
    for (int i = 0; i < plan->values.count && !found(find); i++) {
        const tdm_plan_value_state *value = &plan->values.items[i];
        if (value->layer == layer && (find->step.training || !value->training_only))
            TDM_TRY(scan_matrix(find, i, tdm_step_value(&find->step, i), suffix));
    }
    return TDM_OK;
}

static tdm_status scan_forward(finder *find)
{
    TDM_TRY(scan_values_of(find, -1));
    for (int i = 0; i < find->model->plan->layers.count && !found(find); i++) {
        TDM_TRY(tdm_model_layer_forward(find->model, i, &find->step));
        TDM_TRY(scan_values_of(find, i));
    }
    return TDM_OK;
}

/* The gradients that the backward of a layer has written. */
static tdm_status scan_gradients_of(finder *find, int layer)
{
    const tdm_plan *plan = find->model->plan;
    for (int i = 0; i < plan->uses.count && !found(find); i++) {
        const tdm_plan_use *use = &plan->uses.items[i];
        if (use->layer != layer || use->in_backward || !tdm_plan_has_gradient(plan, use->value))
            continue;
        TDM_TRY(scan_matrix(find, use->value, tdm_step_gradient(&find->step, use->value),
                            " output gradient"));
    }
    return TDM_OK;
}

static tdm_status scan_backward(finder *find)
{
    for (int i = find->model->plan->layers.count - 1; i >= 0 && !found(find); i--) {
        TDM_TRY(tdm_model_layer_backward(find->model, i, &find->step));
        TDM_TRY(scan_gradients_of(find, i));
    }
    return TDM_OK;
}

static tdm_status scan_dense_gradients(finder *find)
{
    const tdm_plan *plan = find->model->plan;
    for (int i = plan->parameters.count - 1; i >= 0 && !found(find); i--) {
        const tdm_parameter *parameter = &plan->parameters.items[i];
        if (!parameter->sparse)
            TDM_TRY(scan(find, tdm_step_parameter_gradient(&find->step, i),
                         tdm_shape_elements(&parameter->shape), parameter->name, " gradient"));
    }
    return TDM_OK;
}

static const char *table_name(const tdm_plan *plan, const tdm_embedding_field *field)
{
    int i = 0;
    while (!plan->parameters.items[i].sparse || plan->parameters.items[i].offset != field->table)
        i++;
    return plan->parameters.items[i].name;
}

static tdm_status scan_sparse_gradients(finder *find)
{
    const tdm_plan *plan = find->model->plan;
    for (int i = plan->sparse.count - 1; i >= 0; i--) {
        tdm_sparse_gradient sparse = tdm_model_sparse_gradient(find->model, i, find->model->batch);
        for (int f = 0; f < sparse.field_count && !found(find); f++) {
            const tdm_embedding_field *field = &sparse.fields[f];
            int32_t count;
            TDM_TRY(copy_out(find, &count, sparse.distinct.counts + field->index, sizeof count));
            TDM_TRY(scan(find, sparse.gradients + field->gradients, (int64_t)count * field->dim,
                         table_name(plan, field), " gradient"));
        }
    }
    return TDM_OK;
}

static tdm_status scan_step(finder *find)
{
    const tdm_model *model = find->model;
    TDM_TRY(scan_forward(find));
    if (!model->was_training || found(find))
        return TDM_OK;
    TDM_TRY(tdm_model_zero_gradients(model, NULL));
    TDM_TRY(scan_backward(find));
    TDM_TRY(scan_dense_gradients(find));
    return scan_sparse_gradients(find);
}

/* Room for a piece, or the widest row of all. */
static size_t piece_bytes(const tdm_plan *plan)
{
    int64_t floats = PIECE_FLOATS;
    for (int i = 0; i < plan->values.count; i++) {
        if (plan->values.items[i].stride > floats)
            floats = plan->values.items[i].stride;
    }
    return (size_t)floats * sizeof(float);
}

tdm_status tdm_model_find_non_finite(tdm_model *model, char name[128])
{
    tdm_backend *backend = model->backend;
    finder find = {.model = model, .name = name};
    tdm_status status;
    name[0] = '\0';
    TDM_FAIL_IF(!model->allocated, TDM_E_STATE, "the model's memory is not allocated");
    find.step = tdm_model_step(model, model->batch, model->scalars, model->was_training, NULL);
    TDM_TRY(backend->type->host_alloc(backend, piece_bytes(model->plan), &find.piece));
    TDM_TRY_GOTO(scan_parameters(&find), done);
    if (model->has_forward)
        TDM_TRY_GOTO(scan_step(&find), done);
done:
    backend->type->host_free(backend, find.piece);
    return status;
}
