/* Finds the tensor in which numbers first went wrong. It copies everything off the device in
 * pieces, and is asked only when a step has failed. */
#include "models/model_state.h"

#include <math.h>
#include <stdio.h>

#define PIECE_FLOATS ((int64_t)1 << 20)
#define NAME_BYTES   128

typedef struct finder {
    tdm_model *model;
    tdm_step step;
    int64_t rows;
    float *piece;
    char *name; /* [NAME_BYTES]; "" until something is found */
} finder;

static tdm_status copy_out(const finder *find, void *host, const void *device, size_t bytes)
{
    tdm_backend *backend = find->model->backend;
    TDM_TRY(backend->type->copy_out(backend, host, device, bytes, NULL));
    return backend->type->stream_sync(backend, NULL);
}

static tdm_status scan(finder *find, const float *data, int64_t count, const char *name,
                       const char *suffix)
{
    for (int64_t begin = 0; begin < count; begin += PIECE_FLOATS) {
        int64_t piece = count - begin < PIECE_FLOATS ? count - begin : PIECE_FLOATS;
        TDM_TRY(copy_out(find, find->piece, data + begin, (size_t)piece * sizeof(float)));
        for (int64_t i = 0; i < piece; i++) {
            if (!isfinite(find->piece[i])) {
                snprintf(find->name, NAME_BYTES, "%s%s", name, suffix);
                return TDM_OK;
            }
        }
    }
    return TDM_OK;
}

static bool found(const finder *find)
{
    return find->name[0] != '\0';
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

static tdm_status scan_values(finder *find)
{
    const tdm_plan *plan = find->model->plan;
    for (int i = 0; i < plan->values.count && !found(find); i++) {
        tdm_matrix value = tdm_step_value(&find->step, i);
        const char *suffix = tdm_plan_has_gradient(plan, i) ? " output" : "";
        TDM_TRY(
            scan(find, value.data, find->rows * value.stride, plan->values.items[i].name, suffix));
    }
    return TDM_OK;
}

static tdm_status scan_value_gradients(finder *find)
{
    const tdm_plan *plan = find->model->plan;
    for (int i = plan->values.count - 1; i >= 0 && !found(find); i--) {
        tdm_matrix gradient = tdm_step_gradient(&find->step, i);
        if (gradient.data != NULL)
            TDM_TRY(scan(find, gradient.data, find->rows * gradient.stride,
                         plan->values.items[i].name, " output gradient"));
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
    TDM_TRY(copy_out(find, &find->rows, tdm_step_rows(&find->step), sizeof find->rows));
    if (find->rows > model->plan->batch.batch_size)
        find->rows = model->plan->batch.batch_size;
    TDM_TRY(scan_values(find));
    if (!model->can_train)
        return TDM_OK;
    TDM_TRY(scan_value_gradients(find));
    TDM_TRY(scan_dense_gradients(find));
    return scan_sparse_gradients(find);
}

tdm_status tdm_model_find_non_finite(tdm_model *model, char name[128])
{
    tdm_backend *backend = model->backend;
    finder find = {.model = model, .name = name};
    tdm_status status;
    name[0] = '\0';
    TDM_FAIL_IF(!model->allocated, TDM_E_STATE, "the model's memory is not allocated");
    find.step = tdm_model_step(model, model->batch, NULL, false, NULL);
    TDM_TRY(backend->type->host_alloc(backend, (size_t)PIECE_FLOATS * sizeof(float), &find.piece));
    TDM_TRY_GOTO(scan_parameters(&find), done);
    if (model->has_forward)
        TDM_TRY_GOTO(scan_step(&find), done);
done:
    backend->type->host_free(backend, find.piece);
    return status;
}
