/* TensorFlow's checkpoints, "tensor bundles" (tensorflow/core/util/tensor_bundle, version 2 of
 * the format: what tf.train.Saver has written since 2016).
 *
 *   PREFIX.index                  a sorted table (sorted_table.h). The value of key "" is a
 *                                 BundleHeaderProto: num_shards = 1, endianness = 2 (0: little),
 *                                 version = 3. The other keys are names of tensors, their values
 *                                 BundleEntryProtos: dtype = 1, shape = 2, shard_id = 3, offset =
 *                                 4, size = 5, crc32c = 6 (masked), slices = 7
 *   PREFIX.data-SSSSS-of-NNNNN    the shards: elements, little-endian, row-major
 *
 * One thread at a time. Errors name the file and the tensor. */
#ifndef TDM_INTERCHANGE_TENSOR_BUNDLE_H
#define TDM_INTERCHANGE_TENSOR_BUNDLE_H

#include "core/tensor.h"

typedef struct tdm_tensor_bundle tdm_tensor_bundle;

/* Borrowed from the open bundle. */
typedef struct tdm_bundle_tensor {
    const char *name;
    tdm_dtype dtype;
    tdm_shape shape;
    int64_t bytes;
} tdm_bundle_tensor;

/* Opens PREFIX.index and its shards. TDM_E_FORMAT where the index is damaged, a tensor's shape
 * does not fit its bytes, lies outside of its shard or overlaps another one. Tensors of texts, of
 * element types and of ranks that tandem lacks, are left out; ones that are stored in slices are
 * TDM_E_UNSUPPORTED. */
TDM_MUST_CHECK tdm_status tdm_tensor_bundle_open(const char *prefix, tdm_tensor_bundle **out);

/* NULL is allowed. */
void tdm_tensor_bundle_close(tdm_tensor_bundle *bundle);

/* Tensors in the order of their names (memcmp). */
int tdm_tensor_bundle_count(const tdm_tensor_bundle *bundle);
const tdm_bundle_tensor *tdm_tensor_bundle_get(const tdm_tensor_bundle *bundle, int index);

/* Reads `bytes` bytes of a tensor from its byte `offset` on. TDM_E_ARG where the tensor is
 * shorter, TDM_E_FORMAT where its checksum, which is looked at before its first bytes are given
 * out, is wrong. */
TDM_MUST_CHECK tdm_status tdm_tensor_bundle_read(tdm_tensor_bundle *bundle, int index,
                                                 int64_t offset, void *buffer, size_t bytes);

#endif
