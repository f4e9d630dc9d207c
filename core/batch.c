#include "core/batch.h"

#include "core/memory.h"

#include <assert.h>
#include <string.h>

void tdm_batch_layout_init(tdm_batch_layout *layout, int64_t batch_size)
{
    memset(layout, 0, sizeof *layout);
    layout->batch_size = batch_size;
    tdm_batch_layout_add(layout, "rows", TDM_I64, (tdm_shape){1, {1}});
    tdm_batch_layout_add(layout, "weight", TDM_F32, (tdm_shape){1, {batch_size}});
    tdm_batch_layout_add(layout, "sample", TDM_U64, (tdm_shape){1, {batch_size}});
    tdm_batch_layout_add(layout, "occurrence", TDM_U32, (tdm_shape){1, {batch_size}});
}

int tdm_batch_layout_add(tdm_batch_layout *layout, const char *name, tdm_dtype dtype,
                         tdm_shape shape)
{
    assert(layout->count < TDM_BATCH_MAX_TENSORS);
    size_t bytes = (size_t)tdm_shape_elements(&shape) * tdm_dtype_size(dtype);
    layout->tensors[layout->count] =
        (tdm_batch_tensor){.name = name, .dtype = dtype, .shape = shape, .offset = layout->bytes};
    layout->bytes += (bytes + TDM_ALIGNMENT - 1) / TDM_ALIGNMENT * TDM_ALIGNMENT;
    return layout->count++;
}

int tdm_batch_layout_find(const tdm_batch_layout *layout, const char *name)
{
    for (int i = 0; i < layout->count; i++) {
        if (strcmp(layout->tensors[i].name, name) == 0)
            return i;
    }
    return -1;
}
