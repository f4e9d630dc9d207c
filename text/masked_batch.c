#include "text/masked_batch.h"

static const void *tensor_of(const tdm_batch *batch, const char *name)
{
    int tensor = tdm_batch_layout_find(batch->layout, name);
    return tensor < 0 ? NULL : tdm_batch_data(batch, tensor);
}

static int64_t number_of(const tdm_batch *batch, const char *name)
{
    const int64_t *number = tensor_of(batch, name);
    return number == NULL ? 0 : *number;
}

tdm_masked_batch tdm_masked_batch_of(const tdm_batch *batch)
{
    int ids = tdm_batch_layout_find(batch->layout, "ids");
    const tdm_shape *shape = &batch->layout->tensors[ids].shape;
    return (tdm_masked_batch){.rows = batch->rows,
                              .tokens = number_of(batch, "token_count"),
                              .max_seqlen = number_of(batch, "max_seqlen"),
                              .row_stride = shape->rank == 2 ? shape->sizes[1] : 0,
                              .ids = tdm_batch_data(batch, ids),
                              .types = tensor_of(batch, "types"),
                              .positions = tensor_of(batch, "positions"),
                              .cu_seqlens = tensor_of(batch, "cu_seqlens"),
                              .lengths = tensor_of(batch, "lengths"),
                              .mask_positions = tensor_of(batch, "mask_positions"),
                              .mask_labels = tensor_of(batch, "mask_labels"),
                              .mask_count = number_of(batch, "mask_count"),
                              .pair_labels = tensor_of(batch, "pair_labels"),
                              .labels = tensor_of(batch, "labels"),
                              .words = tensor_of(batch, "words"),
                              .samples = tdm_batch_data(batch, TDM_BATCH_SAMPLE)};
}

tdm_token_range tdm_masked_batch_row(const tdm_masked_batch *batch, int64_t row)
{
    if (batch->cu_seqlens != NULL)
        return (tdm_token_range){batch->cu_seqlens[row], batch->cu_seqlens[row + 1]};
    int64_t begin = row * batch->row_stride;
    return (tdm_token_range){begin, begin + batch->lengths[row]};
}

int64_t tdm_masked_batch_find(const tdm_masked_batch *batch, int64_t from, int64_t token)
{
    while (from < batch->mask_count && batch->mask_positions[from] < token)
        from++;
    return from;
}
