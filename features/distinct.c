#include "features/distinct.h"

#include "core/memory.h"

#include <string.h>

tdm_status tdm_distinct_scratch_init(tdm_distinct_scratch *scratch, int64_t batch_size)
{
    scratch->slot_bits = 4;
    while (((int64_t)1 << scratch->slot_bits) < 2 * batch_size)
        scratch->slot_bits++;
    TDM_TRY(tdm_alloc((size_t)1 << scratch->slot_bits, sizeof *scratch->slots, &scratch->slots));
    return tdm_alloc((size_t)batch_size, sizeof *scratch->indices, &scratch->indices);
}

void tdm_distinct_scratch_deinit(tdm_distinct_scratch *scratch)
{
    tdm_free(scratch->slots);
    tdm_free(scratch->indices);
}

void tdm_distinct_layout_add(tdm_batch_layout *layout, int32_t fields)
{
    int64_t batch_size = layout->batch_size;
    tdm_batch_layout_add(layout, "distinct_counts", TDM_I32, (tdm_shape){1, {fields}});
    tdm_batch_layout_add(layout, "distinct_ids", TDM_U32, (tdm_shape){2, {fields, batch_size}});
    tdm_batch_layout_add(layout, "distinct_starts", TDM_I32,
                         (tdm_shape){2, {fields, batch_size + 1}});
    tdm_batch_layout_add(layout, "distinct_positions", TDM_I32,
                         (tdm_shape){2, {fields, batch_size}});
}

/* Numbers the ids in order of first use; starts[k + 1] counts the uses of id k. */
static int32_t number_ids(const uint32_t *ids, int64_t rows, tdm_distinct_scratch *scratch,
                          uint32_t *distinct, int32_t *starts)
{
    uint32_t mask = ((uint32_t)1 << scratch->slot_bits) - 1;
    int shift = 32 - scratch->slot_bits;
    memset(scratch->slots, 0, ((size_t)mask + 1) * sizeof *scratch->slots);
    int32_t count = 0;
    starts[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        uint32_t id = ids[i];
        if (id == 0) {
            scratch->indices[i] = -1;
            continue;
        }
        uint32_t slot = (id * 0x9E3779B1u) >> shift;
        while (scratch->slots[slot] != 0 && distinct[scratch->slots[slot] - 1] != id)
            slot = (slot + 1) & mask;
        if (scratch->slots[slot] == 0) {
            distinct[count] = id;
            starts[count + 1] = 0;
            scratch->slots[slot] = (uint32_t)++count;
        }
        int32_t index = (int32_t)scratch->slots[slot] - 1;
        starts[index + 1]++;
        scratch->indices[i] = index;
    }
    return count;
}

void tdm_find_distinct(tdm_batch *batch, int ids_tensor, int32_t field,
                       tdm_distinct_scratch *scratch)
{
    int64_t batch_size = batch->layout->batch_size;
    int64_t values = field * batch_size;
    const uint32_t *ids = (const uint32_t *)tdm_batch_data(batch, ids_tensor) + values;
    int32_t *counts = tdm_batch_data(batch, ids_tensor + 1);
    uint32_t *distinct = (uint32_t *)tdm_batch_data(batch, ids_tensor + 2) + values;
    int32_t *starts = (int32_t *)tdm_batch_data(batch, ids_tensor + 3) + values + field;
    int32_t *positions = (int32_t *)tdm_batch_data(batch, ids_tensor + 4) + values;
    int32_t count = number_ids(ids, batch->rows, scratch, distinct, starts);
    counts[field] = count;
    for (int32_t k = 0; k < count; k++)
        starts[k + 1] += starts[k];
    /* While positions are dealt, starts[k] is where the next of id k goes; it ends at starts[k +
     * 1]. */
    for (int64_t i = 0; i < batch->rows; i++) {
        int32_t index = scratch->indices[i];
        if (index >= 0)
            positions[starts[index]++] = (int32_t)i;
    }
    for (int32_t k = count; k > 0; k--)
        starts[k] = starts[k - 1];
    starts[0] = 0;
}
