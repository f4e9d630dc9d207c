/* The tensors of a checkpoint that another program wrote, as floats:
 *
 *   FOLDER/model.safetensors                   or any file *.safetensors
 *   FOLDER/model.safetensors.index.json        {"weight_map": {"tensor": "file", …}}: a
 *                                              checkpoint of Hugging Face in several files
 *   FOLDER/NAME.ckpt.index                     TensorFlow's (tensor_bundle.h); also NAME.ckpt
 *
 * One thread at a time. Errors name the file and the tensor. */
#ifndef TDM_INTERCHANGE_PRETRAINED_TENSORS_H
#define TDM_INTERCHANGE_PRETRAINED_TENSORS_H

#include "core/tensor.h"

#include <stdbool.h>

typedef struct tdm_pretrained_tensors tdm_pretrained_tensors;

/* Borrowed from the open checkpoint. */
typedef struct tdm_pretrained_tensor {
    const char *name;
    tdm_dtype dtype;
    tdm_shape shape;
} tdm_pretrained_tensor;

/* Opens a file, or what a folder holds: of several kinds the first in the list above. TDM_E_DATA
 * where there is none; TDM_E_UNSUPPORTED, with what to do, for pytorch_model.bin. */
TDM_MUST_CHECK tdm_status tdm_pretrained_tensors_open(const char *path,
                                                      tdm_pretrained_tensors **out);

/* NULL is allowed. */
void tdm_pretrained_tensors_close(tdm_pretrained_tensors *tensors);

/* The file or folder that was opened. */
const char *tdm_pretrained_tensors_path(const tdm_pretrained_tensors *tensors);
bool tdm_pretrained_tensors_are_tensorflow(const tdm_pretrained_tensors *tensors);

/* Tensors in the order of their names (strcmp). */
int tdm_pretrained_tensors_count(const tdm_pretrained_tensors *tensors);
const tdm_pretrained_tensor *tdm_pretrained_tensors_get(const tdm_pretrained_tensors *tensors,
                                                        int index);

/* The index of the tensor called `name`, or -1. */
int tdm_pretrained_tensors_find(const tdm_pretrained_tensors *tensors, const char *name);

/* Reads `count` elements from element `first` on. F32, F16 and BF16 come as they are, F64 rounded;
 * TDM_E_UNSUPPORTED for other types. TDM_E_ARG where the tensor is shorter. */
TDM_MUST_CHECK tdm_status tdm_pretrained_tensors_read(tdm_pretrained_tensors *tensors, int index,
                                                      int64_t first, float *out, int64_t count);

#endif
