#include "core/file.h"
#include "core/memory.h"
#include "interchange/export_parts.h"

#include <string.h>

#define STAGING_BYTES ((int64_t)1 << 20)

/* Bytes of a parameter that become a tensor. */
typedef struct piece {
    char name[TDM_WEIGHT_NAME_BYTES];
    int parameter;
    int64_t first, bytes;
    struct weights *all;
} piece;

typedef struct weights {
    const tdm_export *from;
    const tdm_export_class *is;
    piece *pieces;
    tdm_safetensors_source *sources;
    int count;
    size_t pieces_capacity, sources_capacity;
    float *zeros;   /* [2, hidden] */
    float *staging; /* [STAGING_BYTES] */
} weights;

static tdm_status next_piece(void *context, int64_t offset, const void **data, int64_t *bytes)
{
    const piece *one = context;
    int64_t left = one->bytes - offset;
    *bytes = left < STAGING_BYTES ? left : STAGING_BYTES;
    *data = one->all->staging;
    return tdm_safetensors_read(one->all->from->parameters, one->parameter, one->first + offset,
                                one->all->staging, (size_t)*bytes);
}

/* ---- what there is --------------------------------------------------------------------------- */

static bool is_wanted(const weights *all, const tdm_weight *weight)
{
    const tdm_bert_options *options = all->from->options;
    bool is_first_norm = weight->layer == 0 && strstr(weight->ours, ".attention.norm.") != NULL;
    if (!all->is->has[weight->group] || (weight->is_bias && !options->bias))
        return false;
    return !(is_first_norm && options->norm == TDM_NORM_PRE && options->embedding_norm);
}

static tdm_status check_parameter(const weights *all, const tdm_weight *weight, int index)
{
    const tdm_safetensors_tensor *tensor = tdm_safetensors_get(all->from->parameters, index);
    TDM_FAIL_IF(tensor->dtype != TDM_F32 || tensor->shape.rank != weight->rank, TDM_E_FORMAT,
                "the checkpoint's tensor \"%s\" is none of an encoder", weight->ours);
    for (int i = 0; i < weight->rank; i++) {
        const char *key;
        int64_t size =
            tdm_weight_size(weight->sizes[i], all->from->options, all->from->inputs, &key);
        TDM_FAIL_IF(tensor->shape.sizes[i] != size, TDM_E_FORMAT,
                    "the checkpoint's tensor \"%s\" has %lld in dimension %d, and %s makes it "
                    "%lld",
                    weight->ours, (long long)tensor->shape.sizes[i], i, key, (long long)size);
    }
    return TDM_OK;
}

static tdm_status grow(weights *all)
{
    size_t needed = (size_t)all->count + 1;
    TDM_TRY(tdm_grow(&all->pieces, &all->pieces_capacity, needed, sizeof *all->pieces));
    return tdm_grow(&all->sources, &all->sources_capacity, needed, sizeof *all->sources);
}

static tdm_status add_weight(void *context, const tdm_weight *weight)
{
    weights *all = context;
    if (!is_wanted(all, weight))
        return TDM_OK;
    int index = tdm_safetensors_find(all->from->parameters, weight->ours);
    bool is_zero =
        strcmp(weight->ours, "embeddings.type.weight") == 0 && !all->from->options->types;
    TDM_FAIL_IF(index < 0 && !is_zero, TDM_E_FORMAT, "the checkpoint has no tensor \"%s\"",
                weight->ours);
    TDM_TRY(grow(all));
    piece *one = &all->pieces[all->count];
    tdm_safetensors_source *source = &all->sources[all->count++];
    const char *prefix = tdm_weight_prefix((tdm_weight_naming)all->is->family);
    bool is_base = strcmp(all->is->head, "Model") == 0;
    *one = (piece){.parameter = index, .all = all};
    strcpy(one->name, weight->theirs + (is_base ? strlen(prefix) : 0));
    *source = (tdm_safetensors_source){.dtype = TDM_F32};
    if (is_zero) {
        source->shape = (tdm_shape){2, {2, all->from->options->hidden}};
        source->data = all->zeros;
        return TDM_OK;
    }
    TDM_TRY(check_parameter(all, weight, index));
    source->shape = tdm_safetensors_get(all->from->parameters, index)->shape;
    source->shape.sizes[0] /= weight->parts;
    source->next = next_piece;
    one->bytes = tdm_shape_elements(&source->shape) * (int64_t)sizeof(float);
    one->first = weight->part * one->bytes;
    return TDM_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static tdm_status write_weights(weights *all, const char *folder)
{
    static const tdm_safetensors_text metadata = {"format", "pt"};
    char *path;
    for (int i = 0; i < all->count; i++) {
        all->sources[i].name = all->pieces[i].name;
        all->sources[i].context = &all->pieces[i];
    }
    TDM_TRY(tdm_path_join(folder, "model.safetensors", &path));
    tdm_status status =
        tdm_safetensors_write(path, all->sources, all->count, &metadata, 1, NULL, NULL);
    tdm_free(path);
    return status;
}

tdm_status tdm_export_weights(const tdm_export *from, const tdm_export_class *is,
                              const char *folder)
{
    weights all = {.from = from, .is = is};
    size_t zeros = 2 * (size_t)from->options->hidden;
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc(zeros, sizeof *all.zeros, &all.zeros), done);
    TDM_TRY_GOTO(tdm_alloc((size_t)STAGING_BYTES, 1, &all.staging), done);
    TDM_TRY_GOTO(tdm_weight_names_each((tdm_weight_naming)is->family, from->options->layers,
                                       add_weight, &all),
                 done);
    status = write_weights(&all, folder);
done:
    tdm_free(all.zeros);
    tdm_free(all.staging);
    tdm_free(all.pieces);
    tdm_free(all.sources);
    return status;
}
