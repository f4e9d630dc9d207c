#include "interchange/tensor_bundle.h"

#include "core/file.h"
#include "core/file_reader.h"
#include "core/memory.h"
#include "interchange/crc32c.h"
#include "interchange/sorted_table.h"

#include <stdlib.h>
#include <string.h>

#define INDEX_LIMIT ((size_t)256 << 20)
#define MAX_SHARDS  99999 /* what five digits hold */
#define PIECE_BYTES ((size_t)1 << 20)

typedef struct entry {
    tdm_bundle_tensor tensor;
    char *name; /* tensor.name, owned */
    int64_t shard;
    int64_t offset;
    uint32_t checksum; /* masked */
    bool is_checked;
} entry;

struct tdm_tensor_bundle {
    char *index_path;
    tdm_file_reader *shards; /* [shard_count]; zeros: holds no tensor */
    int64_t shard_count;
    entry *entries;
    int count;
    size_t capacity;
};

static tdm_status damaged(const tdm_tensor_bundle *bundle, const char *name, const char *why)
{
    return tdm_fail(TDM_E_FORMAT, "%s: damaged, or not a TensorFlow checkpoint: %s%s%s%s",
                    bundle->index_path, name == NULL ? "" : "tensor \"", name == NULL ? "" : name,
                    name == NULL ? "" : "\": ", why);
}

/* ---- the index ------------------------------------------------------------------------------- */

static tdm_status parse_header(tdm_tensor_bundle *bundle, tdm_wire message)
{
    uint64_t shards = 0, endianness = 0;
    bool good = true;
    for (tdm_wire_field field; tdm_wire_next(&message, &field, &good);) {
        if (field.number == 1 && field.type == TDM_WIRE_VARINT)
            shards = field.value;
        else if (field.number == 2 && field.type == TDM_WIRE_VARINT)
            endianness = field.value;
    }
    if (!good || shards < 1 || shards > MAX_SHARDS)
        return damaged(bundle, NULL, "its header makes no sense");
    TDM_FAIL_IF(endianness != 0, TDM_E_UNSUPPORTED,
                "%s: was written on a big-endian machine: only little-endian ones are read",
                bundle->index_path);
    bundle->shard_count = (int64_t)shards;
    return tdm_alloc((size_t)shards, sizeof *bundle->shards, &bundle->shards);
}

/* False for types that tandem lacks. */
static bool dtype_of(uint64_t number, tdm_dtype *out)
{
    /* tensorflow/core/framework/types.proto */
    static const struct {
        uint64_t number;
        tdm_dtype dtype;
    } dtypes[] = {{1, TDM_F32},   {2, TDM_F64},  {3, TDM_I32},  {4, TDM_U8},   {9, TDM_I64},
                  {14, TDM_BF16}, {17, TDM_U16}, {19, TDM_F16}, {22, TDM_U32}, {23, TDM_U64}};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (dtypes[i].number == number) {
            *out = dtypes[i].dtype;
            return true;
        }
    }
    return false;
}

/* A TensorShapeProto: dim = 2, each {size = 1}; unknown_rank = 3. `rank` goes on counting beyond
 * TDM_MAX_RANK. */
static bool parse_shape(tdm_wire message, tdm_shape *shape)
{
    bool good = true;
    *shape = (tdm_shape){0};
    for (tdm_wire_field field; tdm_wire_next(&message, &field, &good);) {
        if (field.number != 2 || field.type != TDM_WIRE_BYTES)
            continue;
        int64_t size = 0;
        bool is_good = true;
        for (tdm_wire_field part; tdm_wire_next(&field.bytes, &part, &is_good);) {
            if (part.number == 1 && part.type == TDM_WIRE_VARINT)
                size = (int64_t)part.value;
        }
        if (!is_good || size < 0)
            return false;
        if (shape->rank < TDM_MAX_RANK)
            shape->sizes[shape->rank] = size;
        shape->rank++;
    }
    return good;
}

typedef struct entry_fields {
    uint64_t dtype, shard, offset, size, checksum;
    tdm_wire shape;
    bool is_sliced;
} entry_fields;

static bool parse_fields(tdm_wire message, entry_fields *out)
{
    bool good = true;
    *out = (entry_fields){0};
    for (tdm_wire_field field; tdm_wire_next(&message, &field, &good);) {
        bool is_varint = field.type == TDM_WIRE_VARINT;
        if (field.number == 1 && is_varint)
            out->dtype = field.value;
        else if (field.number == 2 && field.type == TDM_WIRE_BYTES)
            out->shape = field.bytes;
        else if (field.number == 3 && is_varint)
            out->shard = field.value;
        else if (field.number == 4 && is_varint)
            out->offset = field.value;
        else if (field.number == 5 && is_varint)
            out->size = field.value;
        else if (field.number == 6 && field.type == TDM_WIRE_FIXED32)
            out->checksum = field.value;
        else if (field.number == 7)
            out->is_sliced = true;
    }
    return good;
}

/* Bytes of a tensor, false where they do not fit an int64_t. */
static bool tensor_bytes(tdm_dtype dtype, const tdm_shape *shape, int64_t *bytes)
{
    *bytes = (int64_t)tdm_dtype_size(dtype);
    for (int i = 0; i < shape->rank; i++) {
        if (__builtin_mul_overflow(*bytes, shape->sizes[i], bytes))
            return false;
    }
    return true;
}

static tdm_status add_entry(tdm_tensor_bundle *bundle, const char *key, size_t key_bytes,
                            tdm_wire value)
{
    entry_fields fields;
    entry added = {0};
    TDM_TRY(tdm_grow(&bundle->entries, &bundle->capacity, (size_t)bundle->count + 1,
                     sizeof *bundle->entries));
    if (memchr(key, 0, key_bytes) != NULL)
        return damaged(bundle, NULL, "a name holds a zero byte");
    TDM_TRY(tdm_strndup(key, key_bytes, &added.name));
    added.tensor.name = added.name;
    bundle->entries[bundle->count] = added;
    entry *last = &bundle->entries[bundle->count++];
    tdm_bundle_tensor *tensor = &last->tensor;
    if (!parse_fields(value, &fields) || !parse_shape(fields.shape, &tensor->shape))
        return damaged(bundle, last->name, "its description is no message");
    TDM_FAIL_IF(fields.is_sliced, TDM_E_UNSUPPORTED,
                "%s: tensor \"%s\" is stored in slices: write the checkpoint without partitioned "
                "variables",
                bundle->index_path, last->name);
    if (!dtype_of(fields.dtype, &tensor->dtype) || tensor->shape.rank > TDM_MAX_RANK) {
        tdm_free(last->name);
        bundle->count--;
        return TDM_OK;
    }
    if (!tensor_bytes(tensor->dtype, &tensor->shape, &tensor->bytes) ||
        (uint64_t)tensor->bytes != fields.size)
        return damaged(bundle, last->name, "its shape does not fit its bytes");
    if (fields.shard >= (uint64_t)bundle->shard_count || fields.offset > INT64_MAX)
        return damaged(bundle, last->name, "it lies in a shard that is not there");
    last->shard = (int64_t)fields.shard;
    last->offset = (int64_t)fields.offset;
    last->checksum = (uint32_t)fields.checksum;
    return TDM_OK;
}

static tdm_status take_entry(void *context, const char *key, size_t key_bytes, tdm_wire value)
{
    tdm_tensor_bundle *bundle = context;
    if (key_bytes == 0)
        return parse_header(bundle, value);
    if (bundle->shards == NULL)
        return damaged(bundle, NULL, "it has no header");
    return add_entry(bundle, key, key_bytes, value);
}

static tdm_status read_index(tdm_tensor_bundle *bundle)
{
    char *data;
    size_t bytes;
    TDM_TRY(tdm_file_get(bundle->index_path, INDEX_LIMIT, &data, &bytes));
    tdm_status status = tdm_sorted_table_read(data, bytes, bundle->index_path, take_entry, bundle);
    tdm_free(data);
    TDM_TRY(status);
    if (bundle->shards == NULL)
        return damaged(bundle, NULL, "it has no header");
    return TDM_OK;
}

/* ---- the shards ------------------------------------------------------------------------------ */

/* Only those that hold tensors: of checkpoints that were merged the others may be gone. */
static tdm_status open_shards(tdm_tensor_bundle *bundle, const char *prefix)
{
    tdm_status status = TDM_OK;
    for (int i = 0; i < bundle->count && status == TDM_OK; i++) {
        int64_t shard = bundle->entries[i].shard;
        char *path;
        if (bundle->shards[shard].path != NULL)
            continue;
        TDM_TRY(tdm_format(&path, "%s.data-%05lld-of-%05lld", prefix, (long long)shard,
                           (long long)bundle->shard_count));
        status = tdm_file_reader_open(path, &bundle->shards[shard]);
        tdm_free(path);
    }
    return status;
}

static int compare_places(const void *a, const void *b)
{
    const entry *x = *(const entry *const *)a, *y = *(const entry *const *)b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->tensor.bytes > y->tensor.bytes) - (x->tensor.bytes < y->tensor.bytes);
}

static tdm_status check_sorted(const tdm_tensor_bundle *bundle, const entry *const *sorted)
{
    for (int i = 0; i < bundle->count; i++) {
        const entry *one = sorted[i];
        const tdm_file_reader *part = &bundle->shards[one->shard];
        int64_t bytes = one->tensor.bytes;
        TDM_FAIL_IF(one->offset > part->bytes || bytes > part->bytes - one->offset, TDM_E_FORMAT,
                    "%s: tensor \"%s\" is to have %lld bytes from byte %lld on, and the file has "
                    "%lld: it is cut off, or of another checkpoint",
                    part->path, one->name, (long long)bytes, (long long)one->offset,
                    (long long)part->bytes);
        const entry *next = i + 1 < bundle->count ? sorted[i + 1] : NULL;
        TDM_FAIL_IF(next != NULL && next->shard == one->shard && next->offset < one->offset + bytes,
                    TDM_E_FORMAT, "%s: damaged: tensors \"%s\" and \"%s\" overlap",
                    bundle->index_path, one->name, next->name);
    }
    return TDM_OK;
}

/* Each tensor lies within its shard, and none in another. */
static tdm_status check_places(const tdm_tensor_bundle *bundle)
{
    const entry **sorted;
    TDM_TRY(tdm_alloc((size_t)bundle->count + 1, sizeof *sorted, &sorted));
    for (int i = 0; i < bundle->count; i++)
        sorted[i] = &bundle->entries[i];
    qsort(sorted, (size_t)bundle->count, sizeof *sorted, compare_places);
    tdm_status status = check_sorted(bundle, sorted);
    tdm_free(sorted);
    return status;
}

/* ---- open bundles ---------------------------------------------------------------------------- */

tdm_status tdm_tensor_bundle_open(const char *prefix, tdm_tensor_bundle **out)
{
    *out = NULL;
    tdm_tensor_bundle *bundle;
    TDM_TRY(tdm_alloc(1, sizeof *bundle, &bundle));
    tdm_status status;
    TDM_TRY_GOTO(tdm_format(&bundle->index_path, "%s.index", prefix), fail);
    TDM_TRY_GOTO(read_index(bundle), fail);
    TDM_TRY_GOTO(open_shards(bundle, prefix), fail);
    TDM_TRY_GOTO(check_places(bundle), fail);
    *out = bundle;
    return TDM_OK;
fail:
    tdm_tensor_bundle_close(bundle);
    return status;
}

void tdm_tensor_bundle_close(tdm_tensor_bundle *bundle)
{
    if (bundle == NULL)
        return;
    for (int i = 0; i < bundle->count; i++)
        tdm_free(bundle->entries[i].name);
    for (int64_t i = 0; i < bundle->shard_count && bundle->shards != NULL; i++)
        tdm_file_reader_close(&bundle->shards[i]);
    tdm_free(bundle->shards);
    tdm_free(bundle->entries);
    tdm_free(bundle->index_path);
    tdm_free(bundle);
}

int tdm_tensor_bundle_count(const tdm_tensor_bundle *bundle)
{
    return bundle->count;
}

const tdm_bundle_tensor *tdm_tensor_bundle_get(const tdm_tensor_bundle *bundle, int index)
{
    return &bundle->entries[index].tensor;
}

static tdm_status check_content(const tdm_file_reader *part, entry *one)
{
    unsigned char *piece;
    uint32_t crc = 0;
    tdm_status status = TDM_OK;
    TDM_TRY(tdm_alloc(PIECE_BYTES, 1, &piece));
    size_t some;
    for (size_t at = 0, all = (size_t)one->tensor.bytes; at < all; at += some) {
        some = all - at < PIECE_BYTES ? all - at : PIECE_BYTES;
        TDM_TRY_GOTO(tdm_file_reader_read(part, one->offset + (int64_t)at, piece, some), done);
        crc = tdm_crc32c(crc, piece, some);
    }
    one->is_checked = tdm_crc32c_mask(crc) == one->checksum;
    if (!one->is_checked)
        status = tdm_fail(TDM_E_FORMAT, "%s: damaged: the checksum of tensor \"%s\" is wrong",
                          part->path, one->name);
done:
    tdm_free(piece);
    return status;
}

tdm_status tdm_tensor_bundle_read(tdm_tensor_bundle *bundle, int index, int64_t offset,
                                  void *buffer, size_t bytes)
{
    entry *one = &bundle->entries[index];
    const tdm_file_reader *part = &bundle->shards[one->shard];
    int64_t all = one->tensor.bytes;
    TDM_FAIL_IF(offset < 0 || offset > all || bytes > (size_t)(all - offset), TDM_E_ARG,
                "%s: tensor \"%s\" has %lld bytes: %zu bytes from %lld on are asked for",
                part->path, one->name, (long long)all, bytes, (long long)offset);
    if (!one->is_checked)
        TDM_TRY(check_content(part, one));
    return tdm_file_reader_read(part, one->offset + offset, buffer, bytes);
}
