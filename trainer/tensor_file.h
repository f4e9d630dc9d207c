/* Tensors on a device, to and from safetensors files. Private to this folder. */
#ifndef TDM_TRAINER_TENSOR_FILE_H
#define TDM_TRAINER_TENSOR_FILE_H

#include "models/model.h"
#include "trainer/optimizer.h"

/* All parameters of the model, or all moments of the optimizer; *tensors is freed with tdm_free().
 */
TDM_MUST_CHECK tdm_status tdm_model_tensors(const tdm_model *model, tdm_saved_tensor **tensors,
                                            int *count);
TDM_MUST_CHECK tdm_status tdm_optimizer_tensors(const tdm_optimizer *optimizer,
                                                tdm_saved_tensor **tensors, int *count);

/* The names of both files in a checkpoint. */
#define TDM_MODEL_FILE     "model.safetensors"
#define TDM_OPTIMIZER_FILE "optimizer.safetensors"

/* Host memory that saving and loading take. */
#define TDM_TENSOR_FILE_BYTES ((size_t)4 << 20)

/* Writes the file whole or not at all. TDM_E_NUMERIC naming the tensor where a number is not
 * finite. Syncs. */
TDM_MUST_CHECK tdm_status tdm_tensor_file_save(const char *path, tdm_backend *backend,
                                               const tdm_saved_tensor *tensors, int count,
                                               uint64_t *hash, int64_t *bytes);

/* Fills all tensors from a file that holds exactly these: TDM_E_FORMAT naming the one that is
 * missing or has another shape. Syncs. */
TDM_MUST_CHECK tdm_status tdm_tensor_file_load(const char *path, tdm_backend *backend,
                                               const tdm_saved_tensor *tensors, int count);

/* Fills those tensors that the file has with the same name and shape; *loaded is their number. */
TDM_MUST_CHECK tdm_status tdm_tensor_file_load_some(const char *path, tdm_backend *backend,
                                                    const tdm_saved_tensor *tensors, int count,
                                                    int *loaded);

#endif
