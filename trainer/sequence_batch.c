#include "trainer/sequence_batch.h"

#include "models/encoder.h"

static void add_vector(tdm_batch_layout *layout, const char *name, tdm_dtype dtype, int64_t count)
{
    tdm_batch_layout_add(layout, name, dtype, (tdm_shape){1, {count}});
}

static void lay_out(tdm_batch_layout *layout, const tdm_sequence_room *room)
{
    tdm_batch_layout_init(layout, room->sequences);
    layout->max_tokens = room->tokens;
    add_vector(layout, "ids", TDM_U32, room->tokens);
    add_vector(layout, "types", TDM_U32, room->tokens);
    add_vector(layout, "positions", TDM_U32, room->tokens);
    add_vector(layout, "token_rows", TDM_U32, room->tokens);
    add_vector(layout, "token_count", TDM_I64, 1);
    add_vector(layout, "cu_seqlens", TDM_I32, room->sequences + 1);
    if (room->predictions == 0)
        return;
    add_vector(layout, "mask_positions", TDM_U32, room->predictions);
    add_vector(layout, "mask_count", TDM_I64, 1);
    if (!room->labels)
        return;
    add_vector(layout, "mask_labels", TDM_U32, room->predictions);
    add_vector(layout, "mask_parts", TDM_I64,
               (room->predictions + TDM_MASKED_PART - 1) / TDM_MASKED_PART);
}

tdm_status tdm_sequence_batch_init(tdm_sequence_batch *batch, const tdm_sequence_room *room,
                                   tdm_backend *backend)
{
    const tdm_backend_type *type = backend->type;
    tdm_backend_properties properties;
    *batch = (tdm_sequence_batch){.backend = backend,
                                  .max_sequences = room->sequences,
                                  .max_tokens = room->tokens,
                                  .max_predictions = room->predictions};
    lay_out(&batch->layout, room);
    TDM_TRY(type->properties(backend, &properties));
    TDM_TRY(type->host_alloc(backend, batch->layout.bytes, &batch->host));
    batch->device = batch->host;
    if (properties.host_memory)
        return TDM_OK;
    batch->device = NULL;
    return type->alloc(backend, batch->layout.bytes, &batch->device);
}

void tdm_sequence_batch_deinit(tdm_sequence_batch *batch)
{
    if (batch->device != NULL && batch->device != batch->host)
        batch->backend->type->free(batch->backend, batch->device);
    if (batch->host != NULL)
        batch->backend->type->host_free(batch->backend, batch->host);
    *batch = (tdm_sequence_batch){0};
}

/* A tensor in host memory; NULL: there is none. */
static void *tensor(const tdm_sequence_batch *batch, const char *name)
{
    int index = tdm_batch_layout_find(&batch->layout, name);
    return index < 0 ? NULL : batch->host + batch->layout.tensors[index].offset;
}

uint32_t *tdm_sequence_batch_add(tdm_sequence_batch *batch, int64_t length, int64_t second)
{
    int64_t first = batch->tokens;
    uint32_t *ids = (uint32_t *)tensor(batch, "ids") + first;
    uint32_t *types = (uint32_t *)tensor(batch, "types") + first;
    uint32_t *positions = (uint32_t *)tensor(batch, "positions") + first;
    uint32_t *rows = (uint32_t *)tensor(batch, "token_rows") + first;
    ((int32_t *)tensor(batch, "cu_seqlens"))[batch->sequences] = (int32_t)first;
    for (int64_t t = 0; t < length; t++) {
        types[t] = t >= second;
        positions[t] = (uint32_t)t;
        rows[t] = (uint32_t)batch->sequences;
    }
    batch->sequences++;
    batch->tokens += length;
    return ids;
}

void tdm_sequence_batch_predict(tdm_sequence_batch *batch, int64_t token, uint32_t label)
{
    int64_t first = tdm_sequence_batch_begins(batch)[batch->sequences - 1];
    uint32_t *labels = tensor(batch, "mask_labels");
    ((uint32_t *)tensor(batch, "mask_positions"))[batch->predictions] = (uint32_t)(first + token);
    if (labels != NULL)
        labels[batch->predictions] = label;
    batch->predictions++;
}

const int32_t *tdm_sequence_batch_begins(const tdm_sequence_batch *batch)
{
    return tensor(batch, "cu_seqlens");
}

static void count_parts(const tdm_sequence_batch *batch)
{
    int index = tdm_batch_layout_find(&batch->layout, "mask_parts");
    int64_t *parts = tensor(batch, "mask_parts");
    if (parts == NULL)
        return;
    for (int64_t p = 0; p < batch->layout.tensors[index].shape.sizes[0]; p++) {
        int64_t left = batch->predictions - p * TDM_MASKED_PART;
        left = left < 0 ? 0 : left;
        parts[p] = left < TDM_MASKED_PART ? left : TDM_MASKED_PART;
    }
}

tdm_status tdm_sequence_batch_put(tdm_sequence_batch *batch)
{
    const tdm_batch_tensor *tensors = batch->layout.tensors;
    float *weights = (void *)(batch->host + tensors[TDM_BATCH_WEIGHT].offset);
    int32_t *cu_seqlens = tensor(batch, "cu_seqlens");
    for (int64_t s = 0; s < batch->max_sequences; s++)
        weights[s] = s < batch->sequences ? 1 : 0;
    for (int64_t s = batch->sequences; s <= batch->max_sequences; s++)
        cu_seqlens[s] = (int32_t)batch->tokens;
    *(int64_t *)(void *)(batch->host + tensors[TDM_BATCH_ROWS].offset) = batch->sequences;
    *(int64_t *)tensor(batch, "token_count") = batch->tokens;
    if (batch->max_predictions > 0)
        *(int64_t *)tensor(batch, "mask_count") = batch->predictions;
    count_parts(batch);
    if (batch->device == batch->host)
        return TDM_OK;
    return batch->backend->type->copy_in(batch->backend, batch->device, batch->host,
                                         batch->layout.bytes, NULL);
}

void tdm_sequence_batch_empty(tdm_sequence_batch *batch)
{
    batch->sequences = batch->tokens = batch->predictions = 0;
}
