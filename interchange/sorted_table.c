#include "interchange/sorted_table.h"

#include "core/memory.h"
#include "interchange/crc32c.h"

#include <string.h>

#define FOOTER_BYTES  48
#define TRAILER_BYTES 5
#define MAGIC         0xdb4775248b80fb57u
#define MAX_KEY_BYTES 65536

/* Of all keys together. They share beginnings, so that a small file can hold many long ones. */
#define MAX_KEYS_BYTES ((size_t)64 << 20)

typedef struct table {
    const unsigned char *data;
    size_t bytes; /* without the footer */
    const char *name;
    size_t blocks_left; /* bytes that further blocks may have: they share none */
    tdm_sorted_table_take take;
    void *context;
    char *last_key; /* [last_bytes] of the data blocks so far */
    size_t last_bytes, last_capacity;
    size_t keys_bytes; /* of them all */
} table;

static tdm_status damaged(const table *from, const char *why)
{
    return tdm_fail(TDM_E_FORMAT, "%s: damaged, or not a checkpoint's index: %s", from->name, why);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static tdm_status check_block(const table *from, const unsigned char *block, size_t bytes)
{
    uint32_t stored = (uint32_t)tdm_little_endian(block + bytes + 1, 4);
    if (tdm_crc32c_mask(tdm_crc32c(0, block, bytes + 1)) != stored)
        return damaged(from, "the checksum of a block is wrong");
    TDM_FAIL_IF(block[bytes] == 1, TDM_E_UNSUPPORTED,
                "%s: its blocks are compressed with snappy, which TensorFlow does not do to "
                "checkpoints: write it without compression",
                from->name);
    TDM_FAIL_IF(block[bytes] != 0, TDM_E_UNSUPPORTED, "%s: a block has compression of kind %d",
                from->name, block[bytes]);
    return TDM_OK;
}

/* The entries of the block at the handle, without what stands behind them. */
static tdm_status open_block(table *from, tdm_wire *handle, tdm_wire *entries)
{
    uint64_t offset, bytes;
    if (!tdm_wire_varint(handle, &offset) || !tdm_wire_varint(handle, &bytes))
        return damaged(from, "the place of a block is missing");
    if (offset > from->bytes || bytes > from->bytes - offset ||
        from->bytes - offset - bytes < TRAILER_BYTES)
        return damaged(from, "a block lies outside of the file");
    if (bytes + TRAILER_BYTES > from->blocks_left)
        return damaged(from, "its blocks have more bytes than the file");
    from->blocks_left -= bytes + TRAILER_BYTES;
    const unsigned char *block = from->data + offset;
    TDM_TRY(check_block(from, block, bytes));
    if (bytes < 4)
        return damaged(from, "a block is too short");
    uint64_t restarts = tdm_little_endian(block + bytes - 4, 4);
    if (restarts > (bytes - 4) / 4)
        return damaged(from, "a block is shorter than its list of restarts");
    *entries = (tdm_wire){block, block + bytes - 4 - restarts * 4};
    return TDM_OK;
}

/* ---- entries --------------------------------------------------------------------------------- */

typedef struct entry_key {
    char *text; /* [bytes] */
    size_t bytes, capacity;
} entry_key;

static tdm_status next_entry(const table *from, tdm_wire *entries, entry_key *key, tdm_wire *value)
{
    uint64_t shared, further, value_bytes;
    if (!tdm_wire_varint(entries, &shared) || !tdm_wire_varint(entries, &further) ||
        !tdm_wire_varint(entries, &value_bytes))
        return damaged(from, "an entry is cut off");
    size_t left = tdm_wire_left(entries);
    if (further > left || value_bytes > left - further)
        return damaged(from, "an entry is longer than its block");
    if (shared > key->bytes || further > MAX_KEY_BYTES - shared)
        return damaged(from, "an entry shares more than the key before it has");
    TDM_TRY(tdm_grow(&key->text, &key->capacity, shared + further + 1, 1));
    memcpy(key->text + shared, entries->next, further);
    key->bytes = shared + further;
    entries->next += further;
    *value = (tdm_wire){entries->next, entries->next + value_bytes};
    entries->next += value_bytes;
    return TDM_OK;
}

/* Keys ascend, from block to block too; the first may be empty. */
static tdm_status check_key(table *from, const entry_key *key)
{
    size_t both = key->bytes < from->last_bytes ? key->bytes : from->last_bytes;
    from->keys_bytes += key->bytes;
    if (from->keys_bytes > MAX_KEYS_BYTES)
        return damaged(from, "its keys have more than 64 MiB together");
    if (from->last_key != NULL) {
        int order = memcmp(from->last_key, key->text, both);
        if (order > 0 || (order == 0 && from->last_bytes >= key->bytes))
            return damaged(from, "its keys are not in order");
    }
    TDM_TRY(tdm_grow(&from->last_key, &from->last_capacity, key->bytes + 1, 1));
    memcpy(from->last_key, key->text, key->bytes);
    from->last_bytes = key->bytes;
    return TDM_OK;
}

static tdm_status read_data_block(table *from, tdm_wire handle)
{
    tdm_wire entries, value;
    TDM_TRY(open_block(from, &handle, &entries));
    entry_key key = {0};
    tdm_status status = TDM_OK;
    while (status == TDM_OK && entries.next < entries.end) {
        TDM_TRY_GOTO(next_entry(from, &entries, &key, &value), done);
        TDM_TRY_GOTO(check_key(from, &key), done);
        status = from->take(from->context, key.text, key.bytes, value);
    }
done:
    tdm_free(key.text);
    return status;
}

static tdm_status read_blocks(table *from, tdm_wire index)
{
    entry_key key = {0};
    tdm_wire handle;
    tdm_status status = TDM_OK;
    while (status == TDM_OK && index.next < index.end) {
        TDM_TRY_GOTO(next_entry(from, &index, &key, &handle), done);
        status = read_data_block(from, handle);
    }
done:
    tdm_free(key.text);
    return status;
}

tdm_status tdm_sorted_table_read(const void *data, size_t bytes, const char *name,
                                 tdm_sorted_table_take take, void *context)
{
    table from = {.data = data, .name = name, .take = take, .context = context};
    if (bytes < FOOTER_BYTES)
        return damaged(&from, "it is shorter than a footer");
    from.bytes = bytes - FOOTER_BYTES;
    from.blocks_left = from.bytes;
    const unsigned char *footer = from.data + from.bytes;
    if (tdm_little_endian(footer + FOOTER_BYTES - 8, 8) != MAGIC)
        return damaged(&from, "it does not end as one");
    tdm_wire handles = {footer, footer + FOOTER_BYTES - 8}, index;
    uint64_t meta_offset, meta_bytes;
    if (!tdm_wire_varint(&handles, &meta_offset) || !tdm_wire_varint(&handles, &meta_bytes))
        return damaged(&from, "the place of a block is missing");
    TDM_TRY(open_block(&from, &handles, &index));
    tdm_status status = read_blocks(&from, index);
    tdm_free(from.last_key);
    return status;
}
