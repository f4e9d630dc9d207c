#include "core/tensor.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [TDM_F32] = {"F32", 4}, [TDM_BF16] = {"BF16", 2}, [TDM_F16] = {"F16", 2},
    [TDM_F64] = {"F64", 8}, [TDM_I32] = {"I32", 4},   [TDM_U32] = {"U32", 4},
    [TDM_I64] = {"I64", 8}, [TDM_U64] = {"U64", 8},   [TDM_U16] = {"U16", 2},
    [TDM_U8] = {"U8", 1},
};

size_t tdm_dtype_size(tdm_dtype dtype)
{
    return dtypes[dtype].size;
}

const char *tdm_dtype_name(tdm_dtype dtype)
{
    return dtypes[dtype].name;
}

tdm_status tdm_dtype_from_name(const char *name, tdm_dtype *out)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *out = (tdm_dtype)i;
            return TDM_OK;
        }
    }
    return tdm_fail(TDM_E_FORMAT, "unknown element type \"%s\"", name);
}

int64_t tdm_shape_elements(const tdm_shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        elements *= shape->sizes[i];
    return elements;
}
