/* Element types and shaped views of memory. */
#ifndef TDM_CORE_TENSOR_H
#define TDM_CORE_TENSOR_H

#include "core/status.h"

typedef enum tdm_dtype {
    TDM_F32 = 0,
    TDM_BF16 = 1,
    TDM_F16 = 2,
    TDM_F64 = 3,
    TDM_I32 = 4,
    TDM_U32 = 5,
    TDM_I64 = 6,
    TDM_U64 = 7,
    TDM_U16 = 8,
    TDM_U8 = 9,
} tdm_dtype;

/* Bytes of one element. */
size_t tdm_dtype_size(tdm_dtype dtype);

/* The name that safetensors uses: "F32", "BF16", …  */
const char *tdm_dtype_name(tdm_dtype dtype);
TDM_MUST_CHECK tdm_status tdm_dtype_from_name(const char *name, tdm_dtype *out);

#define TDM_MAX_RANK 4

typedef struct tdm_shape {
    int rank;
    int64_t sizes[TDM_MAX_RANK]; /* the last is contiguous */
} tdm_shape;

int64_t tdm_shape_elements(const tdm_shape *shape);

/* A tensor of f32 that files hold; `data` is on a device. */
typedef struct tdm_saved_tensor {
    const char *name;
    tdm_shape shape;
    float *data;
} tdm_saved_tensor;

#endif
