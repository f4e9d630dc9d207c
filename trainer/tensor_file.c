#include "trainer/tensor_file.h"

#include "core/memory.h"
#include "core/safetensors.h"

#include <math.h>

/* ---- lists ----------------------------------------------------------------------------------- */

tdm_status tdm_model_tensors(const tdm_model *model, tdm_saved_tensor **tensors, int *count)
{
    *count = tdm_model_parameter_count(model);
    TDM_TRY(tdm_alloc((size_t)*count, sizeof **tensors, tensors));
    for (int i = 0; i < *count; i++) {
        const tdm_parameter *parameter = tdm_model_parameter(model, i);
        float *slab =
            parameter->sparse ? tdm_model_sparse_values(model) : tdm_model_dense_values(model);
        (*tensors)[i] = (tdm_saved_tensor){
            .name = parameter->name, .shape = parameter->shape, .data = slab + parameter->offset};
    }
    return TDM_OK;
}

tdm_status tdm_optimizer_tensors(const tdm_optimizer *optimizer, tdm_saved_tensor **tensors,
                                 int *count)
{
    *count = tdm_optimizer_tensor_count(optimizer);
    TDM_TRY(tdm_alloc((size_t)*count, sizeof **tensors, tensors));
    for (int i = 0; i < *count; i++) {
        const tdm_optimizer_tensor *tensor = tdm_optimizer_tensor_get(optimizer, i);
        (*tensors)[i] =
            (tdm_saved_tensor){.name = tensor->name, .shape = tensor->shape, .data = tensor->data};
    }
    return TDM_OK;
}

static size_t tensor_bytes(const tdm_saved_tensor *tensor)
{
    return (size_t)tdm_shape_elements(&tensor->shape) * sizeof(float);
}

static size_t piece_bytes(const tdm_saved_tensor *tensor, size_t offset)
{
    size_t left = tensor_bytes(tensor) - offset;
    return left < TDM_TENSOR_FILE_BYTES ? left : TDM_TENSOR_FILE_BYTES;
}

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct tensor_reader {
    const tdm_saved_tensor *tensor;
    tdm_backend *backend;
    float *staging; /* [TDM_TENSOR_FILE_BYTES], shared */
} tensor_reader;

static tdm_status next_piece(void *context, int64_t offset, const void **piece, int64_t *bytes)
{
    const tensor_reader *reader = context;
    tdm_backend *backend = reader->backend;
    size_t some = piece_bytes(reader->tensor, (size_t)offset);
    const unsigned char *from = (const unsigned char *)reader->tensor->data + offset;
    TDM_TRY(backend->type->copy_out(backend, reader->staging, from, some, NULL));
    TDM_TRY(backend->type->stream_sync(backend, NULL));
    int bad = 0;
    for (size_t i = 0; i < some / sizeof(float); i++)
        bad |= !isfinite(reader->staging[i]);
    TDM_FAIL_IF(bad, TDM_E_NUMERIC, "%s holds a number that is not finite", reader->tensor->name);
    *piece = reader->staging;
    *bytes = (int64_t)some;
    return TDM_OK;
}

tdm_status tdm_tensor_file_save(const char *path, tdm_backend *backend,
                                const tdm_saved_tensor *tensors, int count, uint64_t *hash,
                                int64_t *bytes)
{
    tdm_safetensors_source *sources = NULL;
    tensor_reader *readers = NULL;
    float *staging = NULL;
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)count, sizeof *sources, &sources), done);
    TDM_TRY_GOTO(tdm_alloc((size_t)count, sizeof *readers, &readers), done);
    TDM_TRY_GOTO(backend->type->host_alloc(backend, TDM_TENSOR_FILE_BYTES, &staging), done);
    for (int i = 0; i < count; i++) {
        readers[i] = (tensor_reader){.tensor = &tensors[i], .backend = backend, .staging = staging};
        sources[i] = (tdm_safetensors_source){
            .name = tensors[i].name,
            .dtype = TDM_F32,
            .shape = tensors[i].shape,
            .next = next_piece,
            .context = &readers[i],
        };
    }
    const tdm_safetensors_text metadata = {.key = "format", .value = "tandem " TDM_VERSION};
    status = tdm_safetensors_write(path, sources, count, &metadata, 1, hash, bytes);
done:
    if (staging != NULL)
        backend->type->host_free(backend, staging);
    tdm_free(readers);
    tdm_free(sources);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool fits(const tdm_saved_tensor *tensor, const tdm_safetensors_tensor *saved)
{
    if (saved->dtype != TDM_F32 || saved->shape.rank != tensor->shape.rank)
        return false;
    for (int i = 0; i < tensor->shape.rank; i++) {
        if (saved->shape.sizes[i] != tensor->shape.sizes[i])
            return false;
    }
    return true;
}

static tdm_status load_tensor(const tdm_safetensors *file, int index, tdm_backend *backend,
                              const tdm_saved_tensor *tensor, float *staging)
{
    size_t total = tensor_bytes(tensor);
    for (size_t offset = 0; offset < total;) {
        size_t some = piece_bytes(tensor, offset);
        TDM_TRY(tdm_safetensors_read(file, index, (int64_t)offset, staging, some));
        unsigned char *to = (unsigned char *)tensor->data + offset;
        TDM_TRY(backend->type->copy_in(backend, to, staging, some, NULL));
        TDM_TRY(backend->type->stream_sync(backend, NULL));
        offset += some;
    }
    return TDM_OK;
}

static tdm_status load_tensors(const tdm_safetensors *file, const char *path, bool all,
                               tdm_backend *backend, const tdm_saved_tensor *tensors, int count,
                               float *staging, int *loaded)
{
    for (int i = 0; i < count; i++) {
        int index = tdm_safetensors_find(file, tensors[i].name);
        bool good = index >= 0 && fits(&tensors[i], tdm_safetensors_get(file, index));
        TDM_FAIL_IF(all && !good, TDM_E_FORMAT, "%s: tensor %s %s", path, tensors[i].name,
                    index < 0 ? "is missing" : "has another shape or element type");
        if (!good)
            continue;
        TDM_TRY(load_tensor(file, index, backend, &tensors[i], staging));
        (*loaded)++;
    }
    return TDM_OK;
}

static tdm_status load_file(const char *path, bool all, tdm_backend *backend,
                            const tdm_saved_tensor *tensors, int count, int *loaded)
{
    tdm_safetensors *file;
    float *staging = NULL;
    tdm_status status;
    *loaded = 0;
    TDM_TRY(tdm_safetensors_open(path, &file));
    if (all && tdm_safetensors_count(file) != count) {
        status = tdm_fail(TDM_E_FORMAT, "%s: has %d tensors, the model %d", path,
                          tdm_safetensors_count(file), count);
        goto done;
    }
    TDM_TRY_GOTO(backend->type->host_alloc(backend, TDM_TENSOR_FILE_BYTES, &staging), done);
    status = load_tensors(file, path, all, backend, tensors, count, staging, loaded);
    backend->type->host_free(backend, staging);
done:
    tdm_safetensors_close(file);
    return status;
}

tdm_status tdm_tensor_file_load(const char *path, tdm_backend *backend,
                                const tdm_saved_tensor *tensors, int count)
{
    int loaded;
    return load_file(path, true, backend, tensors, count, &loaded);
}

tdm_status tdm_tensor_file_load_some(const char *path, tdm_backend *backend,
                                     const tdm_saved_tensor *tensors, int count, int *loaded)
{
    return load_file(path, false, backend, tensors, count, loaded);
}
