#include "tests/support/bundle_rig.h"

#include "core/file.h"
#include "interchange/crc32c.h"
#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>

#define BYTES 65536

typedef struct buffer {
    unsigned char data[BYTES];
    size_t bytes;
} buffer;

static void put(buffer *to, const void *data, size_t bytes)
{
    ck_assert_uint_le(to->bytes + bytes, BYTES);
    memcpy(to->data + to->bytes, data, bytes);
    to->bytes += bytes;
}

static void put_varint(buffer *to, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)(value & 0x7f);
        value >>= 7;
        if (value > 0)
            byte |= 0x80;
        put(to, &byte, 1);
    } while (value > 0);
}

static void put_fixed32(buffer *to, uint32_t value)
{
    put(to, &value, sizeof value);
}

/* A field of the wire type 0 or 2. */
static void put_number(buffer *to, int field, uint64_t value)
{
    put_varint(to, (uint64_t)field << 3);
    put_varint(to, value);
}

static void put_bytes(buffer *to, int field, const buffer *value)
{
    put_varint(to, (uint64_t)field << 3 | 2);
    put_varint(to, value->bytes);
    put(to, value->data, value->bytes);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void put_header(buffer *to, const tdm_test_bundle *bundle)
{
    static buffer version;
    version.bytes = 0;
    put_number(&version, 1, 1);
    put_number(to, 1, (uint64_t)bundle->shards);
    if (bundle->endianness != 0)
        put_number(to, 2, (uint64_t)bundle->endianness);
    put_bytes(to, 3, &version);
}

static void put_entry(buffer *to, const tdm_test_entry *entry)
{
    static buffer shape, size;
    shape.bytes = 0;
    for (int i = 0; i < entry->shape.rank; i++) {
        size.bytes = 0;
        put_number(&size, 1, (uint64_t)entry->shape.sizes[i]);
        put_bytes(&shape, 2, &size);
    }
    put_number(to, 1, (uint64_t)entry->dtype);
    put_bytes(to, 2, &shape);
    if (entry->shard != 0)
        put_number(to, 3, (uint64_t)entry->shard);
    if (entry->offset != 0)
        put_number(to, 4, (uint64_t)entry->offset);
    put_number(to, 5, (uint64_t)entry->size);
    uint32_t crc = entry->data != NULL ? tdm_crc32c(0, entry->data, (size_t)entry->size) : 0;
    put_varint(to, 6 << 3 | 5);
    put_fixed32(to, tdm_crc32c_mask(crc) ^ entry->checksum_xor);
    if (entry->sliced)
        put_bytes(to, 7, &(buffer){.bytes = 0});
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Appends key and value; the key shares what it can with the one before. */
static void put_record(buffer *block, const char *before, const char *key, const buffer *value)
{
    size_t shared = 0;
    while (before[shared] != '\0' && before[shared] == key[shared])
        shared++;
    put_varint(block, shared);
    put_varint(block, strlen(key) - shared);
    put_varint(block, value->bytes);
    put(block, key + shared, strlen(key) - shared);
    put(block, value->data, value->bytes);
}

/* Ends the block and appends it to the file; *handle is where it lies. */
static void put_block(buffer *file, buffer *block, int compression, uint32_t spoil, buffer *handle)
{
    put_fixed32(block, 0);
    put_fixed32(block, 1);
    handle->bytes = 0;
    put_varint(handle, file->bytes);
    put_varint(handle, block->bytes);
    unsigned char kind = (unsigned char)compression;
    put(block, &kind, 1);
    uint32_t crc = tdm_crc32c_mask(tdm_crc32c(0, block->data, block->bytes));
    put(file, block->data, block->bytes);
    put_fixed32(file, crc ^ spoil);
}

static void put_index(buffer *file, const tdm_test_bundle *bundle)
{
    static buffer block, index, value, handle, meta;
    const char *before = "", *last_of_block = "";
    block.bytes = index.bytes = meta.bytes = value.bytes = 0;
    put_header(&value, bundle);
    if (!bundle->no_header)
        put_record(&block, "", "", &value);
    for (int i = 0; i < bundle->count; i++) {
        const char *name = bundle->entries[i].name;
        if (bundle->entries_per_block > 0 && i > 0 && i % bundle->entries_per_block == 0) {
            put_block(file, &block, bundle->compression, bundle->block_xor, &handle);
            put_record(&index, last_of_block, before, &handle);
            last_of_block = before;
            block.bytes = 0;
            before = "";
        }
        value.bytes = 0;
        put_entry(&value, &bundle->entries[i]);
        put_record(&block, before, name, &value);
        before = name;
    }
    put_block(file, &block, bundle->compression, bundle->block_xor, &handle);
    put_record(&index, last_of_block, before, &handle);
    put_block(file, &meta, 0, 0, &handle);
    static buffer footer;
    footer.bytes = 0;
    put(&footer, handle.data, handle.bytes);
    put_block(file, &index, 0, 0, &handle);
    put(&footer, handle.data, handle.bytes);
    memset(footer.data + footer.bytes, 0, 40 - footer.bytes);
    footer.bytes = 40;
    uint64_t magic = 0xdb4775248b80fb57u;
    put(&footer, &magic, sizeof magic);
    put(file, footer.data, footer.bytes);
}

void tdm_test_bundle_write(const char *prefix, const tdm_test_bundle *bundle)
{
    static buffer file;
    char path[512];
    file.bytes = 0;
    put_index(&file, bundle);
    snprintf(path, sizeof path, "%s.index", prefix);
    ck_assert_ok(tdm_file_put(path, file.data, file.bytes, NULL));
    for (int shard = 0; shard < bundle->shards; shard++) {
        memset(file.data, 0, BYTES);
        file.bytes = 0;
        for (int i = 0; i < bundle->count; i++) {
            const tdm_test_entry *entry = &bundle->entries[i];
            if (entry->shard != shard || entry->data == NULL)
                continue;
            size_t end = (size_t)(entry->offset + entry->size);
            ck_assert_uint_le(end, BYTES);
            memcpy(file.data + entry->offset, entry->data, (size_t)entry->size);
            file.bytes = end > file.bytes ? end : file.bytes;
        }
        snprintf(path, sizeof path, "%s.data-%05d-of-%05d", prefix, shard, bundle->shards);
        ck_assert_ok(tdm_file_put(path, file.data, file.bytes, NULL));
    }
}
