/* Tensors in a file: safetensors (https://huggingface.co/docs/safetensors, format of version 0.4).
 *
 *   8 bytes   N, the length of the header, little-endian
 *   N bytes   JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}, an
 *             optional "__metadata__" of strings; blanks behind it
 *   the rest  the tensors' elements, little-endian, row-major, without holes
 *
 * Errors name the file and the tensor. */
#ifndef TDM_CORE_SAFETENSORS_H
#define TDM_CORE_SAFETENSORS_H

#include "core/tensor.h"

#define TDM_SAFETENSORS_MAX_HEADER ((int64_t)100 * 1000 * 1000)

/* ---- writing --------------------------------------------------------------------------------- */

/* A tensor to write. Its bytes are `data`, or where that is NULL come in pieces from `next`: a
 * piece begins at byte `offset` of the tensor, has at least one byte and ends within the tensor; it
 * must stay as it is until the next call. */
typedef struct tdm_safetensors_source {
    const char *name;
    tdm_dtype dtype;
    tdm_shape shape;
    const void *data;
    tdm_status (*next)(void *context, int64_t offset, const void **piece, int64_t *bytes);
    void *context;
} tdm_safetensors_source;

typedef struct tdm_safetensors_text {
    const char *key;
    const char *value;
} tdm_safetensors_text;

/* Writes the tensors, in the order of their names, whole or not at all (core/file.h). The data
 * begins at a multiple of 64 bytes. `metadata` may be NULL where metadata_count is 0. Gives back
 * hash and length of the file as tdm_file_writer_commit() does; either may be NULL. Names that
 * occur twice or are no UTF-8 are TDM_E_ARG; a failing `next` ends the writing with its status. */
TDM_MUST_CHECK tdm_status tdm_safetensors_write(const char *path,
                                                const tdm_safetensors_source *sources, int count,
                                                const tdm_safetensors_text *metadata,
                                                int metadata_count, uint64_t *hash, int64_t *bytes);

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct tdm_safetensors tdm_safetensors;

/* Borrowed from the open file. */
typedef struct tdm_safetensors_tensor {
    const char *name;
    tdm_dtype dtype;
    tdm_shape shape;
    int64_t offset; /* of its first byte in the file */
    int64_t bytes;
} tdm_safetensors_tensor;

/* Opens a file and checks all of its header: TDM_E_FORMAT unless it is JSON without duplicates,
 * every tensor has a known element type, a shape whose size is that of its data, and the data of
 * all tensors fills the file exactly. Tensors of more than TDM_MAX_RANK dimensions and element
 * types that tandem lacks are TDM_E_UNSUPPORTED. */
TDM_MUST_CHECK tdm_status tdm_safetensors_open(const char *path, tdm_safetensors **out);

/* NULL is allowed. */
void tdm_safetensors_close(tdm_safetensors *file);

/* Tensors in the order of their names (strcmp). */
int tdm_safetensors_count(const tdm_safetensors *file);
const tdm_safetensors_tensor *tdm_safetensors_get(const tdm_safetensors *file, int index);

/* The index of the tensor called `name`, or -1. */
int tdm_safetensors_find(const tdm_safetensors *file, const char *name);

/* The text at `key` of the metadata, or NULL. */
const char *tdm_safetensors_metadata(const tdm_safetensors *file, const char *key);

/* Reads `bytes` bytes of a tensor from its byte `offset` on. TDM_E_ARG where the tensor is shorter.
 * May be called from several threads at a time. */
TDM_MUST_CHECK tdm_status tdm_safetensors_read(const tdm_safetensors *file, int index,
                                               int64_t offset, void *buffer, size_t bytes);

#endif
