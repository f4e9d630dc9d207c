/* Opens any bytes as a TensorFlow checkpoint of one shard. What opens must be readable to the
 * last byte, but for checksums.
 *
 * An input is a byte, the length of its index (two bytes, little-endian), the index, and the
 * shard. The byte's low bit says what the index is: 0 the file, 1 the entries of its one data
 * block, which is made a table with good checksums here. */
#include "core/file.h"
#include "core/memory.h"
#include "interchange/crc32c.h"
#include "interchange/tensor_bundle.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void put_little_endian(FILE *file, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(value >> 8 * i & 0xff), file);
}

/* Entries and, where there are some, the place of their only restart; then the checksum. */
static void put_block(FILE *file, const uint8_t *entries, size_t bytes)
{
    uint8_t *block;
    require(tdm_alloc(bytes + 9, 1, &block) == TDM_OK);
    memcpy(block, entries, bytes);
    block[bytes + 4] = 1; /* one restart, at 0 */
    fwrite(block, 1, bytes + 9, file);
    put_little_endian(file, tdm_crc32c_mask(tdm_crc32c(0, block, bytes + 9)), 4);
    tdm_free(block);
}

/* An offset and a size as varints of four bytes each. */
static void make_handle(uint8_t handle[8], size_t offset, size_t bytes)
{
    for (int i = 0; i < 4; i++) {
        uint8_t more = i < 3 ? 0x80 : 0;
        handle[i] = (uint8_t)((offset >> 7 * i & 0x7f) | more);
        handle[4 + i] = (uint8_t)((bytes >> 7 * i & 0x7f) | more);
    }
}

static void put_table(FILE *file, const uint8_t *entries, size_t bytes)
{
    uint8_t record[3 + 8] = {0, 0, 8};
    uint8_t footer[40] = {0};
    make_handle(record + 3, 0, bytes + 8);
    put_block(file, entries, bytes);
    put_block(file, record, sizeof record);
    make_handle(footer + 8, bytes + 8 + 5, sizeof record + 8);
    fwrite(footer, 1, sizeof footer, file);
    put_little_endian(file, 0xdb4775248b80fb57u, 8);
}

static FILE *create(const char *prefix, const char *ending)
{
    char path[128];
    snprintf(path, sizeof path, "%s%s", prefix, ending);
    FILE *file = fopen(path, "wb");
    require(file != NULL);
    return file;
}

static void write_files(const char *prefix, const uint8_t *data, size_t size)
{
    size_t index_bytes = (size_t)data[1] | (size_t)data[2] << 8;
    if (index_bytes > size - HEAD_BYTES)
        index_bytes = size - HEAD_BYTES;
    const uint8_t *index = data + HEAD_BYTES;
    FILE *file = create(prefix, ".index");
    if ((data[0] & 1) != 0)
        put_table(file, index, index_bytes);
    else
        fwrite(index, 1, index_bytes, file);
    require(fclose(file) == 0);
    file = create(prefix, ".data-00000-of-00001");
    fwrite(index + index_bytes, 1, size - HEAD_BYTES - index_bytes, file);
    require(fclose(file) == 0);
}

static void read_all(tdm_tensor_bundle *bundle, size_t size)
{
    size_t total = 0;
    for (int i = 0; i < tdm_tensor_bundle_count(bundle); i++) {
        const tdm_bundle_tensor *tensor = tdm_tensor_bundle_get(bundle, i);
        require(tdm_shape_elements(&tensor->shape) * (int64_t)tdm_dtype_size(tensor->dtype) ==
                tensor->bytes);
        require(i == 0 || strcmp(tdm_tensor_bundle_get(bundle, i - 1)->name, tensor->name) < 0);
        unsigned char *bytes;
        require(tdm_alloc((size_t)tensor->bytes, 1, &bytes) == TDM_OK);
        tdm_status status = tdm_tensor_bundle_read(bundle, i, 0, bytes, (size_t)tensor->bytes);
        require(status == TDM_OK || status == TDM_E_FORMAT);
        tdm_free(bytes);
        total += (size_t)tensor->bytes;
    }
    require(total <= size);
}

static char folder[] = "/tmp/tandem-fuzz-XXXXXX";

static void remove_folder(void)
{
    require(tdm_folder_remove(folder) == TDM_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char prefix[64];
    if (prefix[0] == '\0') {
        require(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
        snprintf(prefix, sizeof prefix, "%s/model.ckpt", folder);
    }
    if (size < HEAD_BYTES)
        return 0;
    write_files(prefix, data, size);
    tdm_tensor_bundle *bundle;
    if (tdm_tensor_bundle_open(prefix, &bundle) == TDM_OK)
        read_all(bundle, size);
    tdm_tensor_bundle_close(bundle);
    require(tdm_memory_stats_get().live_bytes == 0);
    return 0;
}
