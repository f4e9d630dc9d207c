#include "trainer/optimizer.h"

#include "core/memory.h"

#include <stdlib.h>

/* Dense parameters that one call updates, from the start of the slab. */
typedef struct update_region {
    int64_t offset, count;
    bool decay;
} update_region;

/* The moments of a slab; NULL those that the rule does not use. */
typedef struct moment_slabs {
    float *slabs[2];
} moment_slabs;

struct tdm_optimizer {
    tdm_model *model;
    tdm_backend *backend;
    tdm_update_rule dense_rule, sparse_rule;
    moment_slabs dense, sparse;
    update_region *regions;
    int region_count;
    tdm_optimizer_tensor *tensors;
    int tensor_count;
};

static tdm_update_rule make_rule(const tdm_update_options *options)
{
    bool decoupled = options->type == TDM_UPDATE_ADAMW || options->type == TDM_UPDATE_LAMB;
    double l2 = decoupled ? options->weight_decay : options->l2;
    return (tdm_update_rule){
        .type = (tdm_update_type)options->type,
        .momentum = (float)options->momentum,
        .beta1 = (float)options->beta1,
        .beta2 = (float)options->beta2,
        .eps = (float)options->eps,
        .l2 = (float)l2,
    };
}

static int count_moments(const tdm_update_options *options)
{
    switch ((tdm_update_type)options->type) {
    case TDM_UPDATE_SGD:
        return options->momentum > 0.0 ? 1 : 0;
    case TDM_UPDATE_ADAGRAD:
        return 1;
    case TDM_UPDATE_ADAM:
    case TDM_UPDATE_ADAMW:
    case TDM_UPDATE_LAMB:
        return 2;
    }
    return 0;
}

tdm_optimizer_memory tdm_optimizer_memory_get(const tdm_optimizer_options *options,
                                              const tdm_model *model)
{
    tdm_model_memory memory = tdm_model_memory_get(model);
    const int64_t element = sizeof(float);
    return (tdm_optimizer_memory){
        .dense_bytes = memory.dense_elements * count_moments(&options->dense) * element,
        .sparse_bytes = memory.sparse_elements * count_moments(&options->sparse) * element,
    };
}

/* ---- creating -------------------------------------------------------------------------------- */

/* Sets `count` floats on the device to `value`, through a piece of host memory. */
static tdm_status fill(tdm_backend *backend, float *device, int64_t count, float value)
{
    const tdm_backend_type *type = backend->type;
    const int64_t piece = count < 1 << 18 ? count : 1 << 18;
    float *host;
    tdm_status status;
    TDM_TRY(type->host_alloc(backend, (size_t)piece * sizeof *host, &host));
    for (int64_t i = 0; i < piece; i++)
        host[i] = value;
    for (int64_t at = 0; at < count; at += piece) {
        int64_t some = count - at < piece ? count - at : piece;
        TDM_TRY_GOTO(type->copy_in(backend, device + at, host, (size_t)some * sizeof *host, NULL),
                     done);
    }
    status = type->stream_sync(backend, NULL);
done:
    type->host_free(backend, host);
    return status;
}

static tdm_status create_moments(tdm_backend *backend, const tdm_update_options *options,
                                 int64_t elements, const char *what, moment_slabs *out)
{
    size_t bytes = (size_t)elements * sizeof(float);
    for (int i = 0; elements > 0 && i < count_moments(options); i++) {
        tdm_status status = backend->type->alloc(backend, bytes, &out->slabs[i]);
        if (status != TDM_OK)
            return tdm_fail_context(status, "optimizer state of the %s, %zu bytes", what, bytes);
    }
    if (options->type != TDM_UPDATE_ADAGRAD || elements == 0)
        return TDM_OK;
    return fill(backend, out->slabs[0], elements, (float)options->initial_accumulator);
}

static int compare_regions(const void *a, const void *b)
{
    const update_region *left = a, *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

/* Neighbours can be updated in one call where they are decayed alike, unless lamb, which goes by
 * the norm of each tensor, decays them. */
static bool can_merge(const tdm_update_rule *rule, const update_region *left,
                      const update_region *right)
{
    if (rule->l2 == 0.0f)
        return true;
    return left->decay == right->decay && !(rule->type == TDM_UPDATE_LAMB && left->decay);
}

/* One region a dense parameter in the order of the slab, then neighbours merged. Regions include
 * the padding behind them: its values, gradients and moments stay as they began. */
static tdm_status plan_regions(tdm_optimizer *optimizer)
{
    const tdm_model *model = optimizer->model;
    int parameters = tdm_model_parameter_count(model), count = 0;
    TDM_TRY(tdm_alloc((size_t)parameters, sizeof(update_region), &optimizer->regions));
    update_region *regions = optimizer->regions;
    for (int i = 0; i < parameters; i++) {
        const tdm_parameter *parameter = tdm_model_parameter(model, i);
        if (!parameter->sparse)
            regions[count++] =
                (update_region){.offset = parameter->offset, .decay = parameter->decay};
    }
    if (count == 0)
        return TDM_OK;
    qsort(regions, (size_t)count, sizeof *regions, compare_regions);
    int merged = 1;
    for (int i = 1; i < count; i++) {
        if (!can_merge(&optimizer->dense_rule, &regions[merged - 1], &regions[i]))
            regions[merged++] = regions[i];
    }
    int64_t end = tdm_model_memory_get(model).dense_elements;
    for (int i = merged - 1; i >= 0; i--) {
        regions[i].count = end - regions[i].offset;
        end = regions[i].offset;
    }
    optimizer->region_count = merged;
    return TDM_OK;
}

static tdm_status list_tensors(tdm_optimizer *optimizer)
{
    const tdm_model *model = optimizer->model;
    int parameters = tdm_model_parameter_count(model);
    TDM_TRY(tdm_alloc(2 * (size_t)parameters, sizeof *optimizer->tensors, &optimizer->tensors));
    for (int i = 0; i < parameters; i++) {
        const tdm_parameter *parameter = tdm_model_parameter(model, i);
        const moment_slabs *moments = parameter->sparse ? &optimizer->sparse : &optimizer->dense;
        for (int m = 0; m < 2 && moments->slabs[m] != NULL; m++) {
            tdm_optimizer_tensor *tensor = &optimizer->tensors[optimizer->tensor_count];
            TDM_TRY(tdm_format(&tensor->name, "%s.moment%d", parameter->name, m + 1));
            tensor->dtype = TDM_F32;
            tensor->shape = parameter->shape;
            tensor->data = moments->slabs[m] + parameter->offset;
            optimizer->tensor_count++;
        }
    }
    return TDM_OK;
}

tdm_status tdm_optimizer_create(const tdm_optimizer_options *options, tdm_model *model,
                                tdm_backend *backend, tdm_optimizer **out)
{
    tdm_optimizer *optimizer;
    tdm_status status;
    tdm_model_memory memory = tdm_model_memory_get(model);
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *optimizer, &optimizer));
    optimizer->model = model;
    optimizer->backend = backend;
    optimizer->dense_rule = make_rule(&options->dense);
    optimizer->sparse_rule = make_rule(&options->sparse);
    TDM_TRY_GOTO(create_moments(backend, &options->dense, memory.dense_elements, "dense parameters",
                                &optimizer->dense),
                 fail);
    TDM_TRY_GOTO(create_moments(backend, &options->sparse, memory.sparse_elements, "tables",
                                &optimizer->sparse),
                 fail);
    TDM_TRY_GOTO(plan_regions(optimizer), fail);
    TDM_TRY_GOTO(list_tensors(optimizer), fail);
    *out = optimizer;
    return TDM_OK;
fail:
    tdm_optimizer_destroy(optimizer);
    return status;
}

static void free_moments(tdm_backend *backend, moment_slabs *moments)
{
    for (int i = 0; i < 2; i++) {
        if (moments->slabs[i] != NULL)
            backend->type->free(backend, moments->slabs[i]);
    }
}

void tdm_optimizer_destroy(tdm_optimizer *optimizer)
{
    if (optimizer == NULL)
        return;
    free_moments(optimizer->backend, &optimizer->dense);
    free_moments(optimizer->backend, &optimizer->sparse);
    for (int i = 0; i < optimizer->tensor_count; i++)
        tdm_free(optimizer->tensors[i].name);
    tdm_free(optimizer->tensors);
    tdm_free(optimizer->regions);
    tdm_free(optimizer);
}

/* ---- a step ---------------------------------------------------------------------------------- */

static tdm_status find_norm(const tdm_optimizer *optimizer, const unsigned char *batch,
                            tdm_step_scalars *scalars, tdm_stream *stream)
{
    tdm_backend *backend = optimizer->backend;
    const tdm_model *model = optimizer->model;
    if (optimizer->region_count > 0) {
        const tdm_dense_norm_args args = {
            .x = tdm_model_dense_gradients(model),
            .count = tdm_model_memory_get(model).dense_elements,
            .scalars = scalars,
        };
        TDM_TRY(backend->ops->dense_norm(backend, &args, stream));
    }
    for (int i = 0; i < tdm_model_sparse_gradient_count(model); i++) {
        tdm_sparse_gradient gradient = tdm_model_sparse_gradient(model, i, batch);
        const tdm_sparse_norm_args args = {
            .fields = gradient.fields,
            .field_count = gradient.field_count,
            .distinct = gradient.distinct,
            .gradients = gradient.gradients,
            .scalars = scalars,
        };
        TDM_TRY(backend->ops->sparse_norm(backend, &args, stream));
    }
    const tdm_prepare_update_args prepare = {.scalars = scalars};
    return backend->ops->prepare_update(backend, &prepare, stream);
}

static float *slab_at(float *slab, int64_t offset)
{
    return slab == NULL ? NULL : slab + offset;
}

static tdm_status update_dense(const tdm_optimizer *optimizer, const tdm_step_scalars *scalars,
                               tdm_stream *stream)
{
    tdm_backend *backend = optimizer->backend;
    for (int i = 0; i < optimizer->region_count; i++) {
        const update_region *region = &optimizer->regions[i];
        tdm_dense_update_args args = {
            .rule = optimizer->dense_rule,
            .scalars = scalars,
            .values = tdm_model_dense_values(optimizer->model) + region->offset,
            .gradients = tdm_model_dense_gradients(optimizer->model) + region->offset,
            .moment1 = slab_at(optimizer->dense.slabs[0], region->offset),
            .moment2 = slab_at(optimizer->dense.slabs[1], region->offset),
            .count = region->count,
        };
        if (!region->decay)
            args.rule.l2 = 0.0f;
        TDM_TRY(backend->ops->dense_update(backend, &args, stream));
    }
    return TDM_OK;
}

static tdm_status update_sparse(const tdm_optimizer *optimizer, const unsigned char *batch,
                                const tdm_step_scalars *scalars, tdm_stream *stream)
{
    tdm_backend *backend = optimizer->backend;
    for (int i = 0; i < tdm_model_sparse_gradient_count(optimizer->model); i++) {
        tdm_sparse_gradient gradient = tdm_model_sparse_gradient(optimizer->model, i, batch);
        const tdm_sparse_update_args args = {
            .rule = optimizer->sparse_rule,
            .scalars = scalars,
            .fields = gradient.fields,
            .field_count = gradient.field_count,
            .distinct = gradient.distinct,
            .tables = tdm_model_sparse_values(optimizer->model),
            .moment1 = optimizer->sparse.slabs[0],
            .moment2 = optimizer->sparse.slabs[1],
            .gradients = gradient.gradients,
        };
        TDM_TRY(backend->ops->sparse_update(backend, &args, stream));
    }
    return TDM_OK;
}

tdm_status tdm_optimizer_step(tdm_optimizer *optimizer, const unsigned char *batch,
                              tdm_step_scalars *scalars, tdm_stream *stream)
{
    TDM_FAIL_IF(optimizer->region_count > 0 && tdm_model_dense_gradients(optimizer->model) == NULL,
                TDM_E_STATE, "the model was not allocated for training");
    TDM_TRY(find_norm(optimizer, batch, scalars, stream));
    TDM_TRY(update_dense(optimizer, scalars, stream));
    return update_sparse(optimizer, batch, scalars, stream);
}

/* ---- state ----------------------------------------------------------------------------------- */

int tdm_optimizer_tensor_count(const tdm_optimizer *optimizer)
{
    return optimizer->tensor_count;
}

const tdm_optimizer_tensor *tdm_optimizer_tensor_get(const tdm_optimizer *optimizer, int index)
{
    return &optimizer->tensors[index];
}
