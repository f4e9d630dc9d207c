#include "core/file.h"
#include "core/memory.h"
#include "interchange/crc32c.h"
#include "interchange/sorted_table.h"
#include "interchange/tensor_bundle.h"
#include "tests/support/bundle_rig.h"
#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>

enum { FLOAT = 1, DOUBLE = 2, STRING = 7, INT64 = 9, COMPLEX = 18 };

static const float weights[6] = {1.0f, -2.0f, 3.5f, 0.0f, 1e-30f, 7.0f};
static const int64_t step = 20;
static const double doubles[2] = {0.1, 0.2};

/* A new PREFIX in a static buffer. */
static const char *new_prefix(void)
{
    static char prefix[512];
    snprintf(prefix, sizeof prefix, "%s", tdm_test_path(tdm_test_folder(), "model.ckpt"));
    return prefix;
}

/* The status of opening what is written; nothing may be left in memory. */
static tdm_status open_written(const tdm_test_bundle *bundle)
{
    tdm_tensor_bundle *opened;
    const char *prefix = new_prefix();
    tdm_test_bundle_write(prefix, bundle);
    tdm_status status = tdm_tensor_bundle_open(prefix, &opened);
    ck_assert((status == TDM_OK) == (opened != NULL));
    tdm_tensor_bundle_close(opened);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    return status;
}

/* The same of one tensor in one shard. */
static tdm_status open_one(tdm_test_entry entry)
{
    return open_written(&(tdm_test_bundle){.entries = &entry, .count = 1, .shards = 1});
}

static tdm_test_entry good_entry(void)
{
    return (tdm_test_entry){
        .name = "w", .dtype = FLOAT, .shape = {2, {2, 3}}, .size = sizeof weights, .data = weights};
}

/* RFC 3720, appendix B.4. */
START_TEST(test_crc32c)
{
    unsigned char bytes[32];
    memset(bytes, 0, sizeof bytes);
    ck_assert_uint_eq(tdm_crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    ck_assert_uint_eq(tdm_crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    ck_assert_uint_eq(tdm_crc32c(0, bytes, sizeof bytes), 0x46dd794e);
    for (size_t cut = 0; cut <= sizeof bytes; cut++)
        ck_assert_uint_eq(tdm_crc32c(tdm_crc32c(0, bytes, cut), bytes + cut, sizeof bytes - cut),
                          0x46dd794e);
    ck_assert_uint_eq(tdm_crc32c_mask(0x46dd794e),
                      (0x46dd794eu >> 15 | 0x46dd794eu << 17) + 0xa282ead8u);
}
END_TEST

static void check_round_trip(int entries_per_block)
{
    const tdm_test_entry entries[] = {
        {"layer/a", FLOAT, {2, {2, 3}}, 0, 0, sizeof weights, weights, 0, false},
        {"layer/a/adam_m", FLOAT, {2, {2, 3}}, 1, 16, sizeof weights, weights, 0, false},
        {"layer/b", DOUBLE, {1, {2}}, 1, 0, sizeof doubles, doubles, 0, false},
        {"names", STRING, {1, {2}}, 0, 24, 8, doubles, 0, false},
        {"spectrum", COMPLEX, {1, {1}}, 0, 32, 8, doubles, 0, false},
        {"step", INT64, {0, {0}}, 0, 40, sizeof step, &step, 0, false},
    };
    const char *prefix = new_prefix();
    tdm_test_bundle_write(prefix, &(tdm_test_bundle){.entries = entries,
                                                     .count = 6,
                                                     .shards = 2,
                                                     .entries_per_block = entries_per_block});
    tdm_tensor_bundle *bundle;
    ck_assert_ok(tdm_tensor_bundle_open(prefix, &bundle));
    ck_assert_int_eq(tdm_tensor_bundle_count(bundle), 4); /* texts and complex numbers left out */
    const tdm_bundle_tensor *tensor = tdm_tensor_bundle_get(bundle, 1);
    ck_assert_str_eq(tensor->name, "layer/a/adam_m");
    ck_assert_int_eq(tensor->dtype, TDM_F32);
    ck_assert_int_eq(tensor->shape.rank, 2);
    ck_assert_int_eq(tensor->shape.sizes[1], 3);
    ck_assert_str_eq(tdm_tensor_bundle_get(bundle, 3)->name, "step");
    ck_assert_int_eq(tdm_tensor_bundle_get(bundle, 3)->dtype, TDM_I64);
    float read[6];
    int64_t read_step;
    double read_doubles[2];
    ck_assert_ok(tdm_tensor_bundle_read(bundle, 1, 0, read, sizeof read));
    ck_assert(memcmp(read, weights, sizeof weights) == 0);
    ck_assert_ok(tdm_tensor_bundle_read(bundle, 0, 8, read, 8));
    ck_assert(memcmp(read, weights + 2, 8) == 0);
    ck_assert_ok(tdm_tensor_bundle_read(bundle, 2, 0, read_doubles, sizeof read_doubles));
    ck_assert(memcmp(read_doubles, doubles, sizeof doubles) == 0);
    ck_assert_ok(tdm_tensor_bundle_read(bundle, 3, 0, &read_step, 8));
    ck_assert_int_eq(read_step, step);
    ck_assert_fails(tdm_tensor_bundle_read(bundle, 3, 1, &read_step, 8), TDM_E_ARG,
                    "tensor \"step\" has 8 bytes");
    tdm_tensor_bundle_close(bundle);
    tdm_tensor_bundle_close(NULL);
}

START_TEST(test_round_trip)
{
    check_round_trip(0);
    check_round_trip(1);
    check_round_trip(4);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_no_file)
{
    tdm_tensor_bundle *bundle;
    const char *prefix = new_prefix();
    ck_assert_fails(tdm_tensor_bundle_open(prefix, &bundle), TDM_E_IO, "model.ckpt.index");
    const tdm_test_entry entry = good_entry();
    tdm_test_bundle_write(prefix, &(tdm_test_bundle){.entries = &entry, .count = 1, .shards = 1});
    char path[600];
    snprintf(path, sizeof path, "%s.data-00000-of-00001", prefix);
    ck_assert_ok(tdm_file_remove(path));
    ck_assert_fails(tdm_tensor_bundle_open(prefix, &bundle), TDM_E_IO, "data-00000-of-00001");
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_tables_that_are_refused)
{
    const tdm_test_entry entry = good_entry();
    tdm_test_bundle bundle = {.entries = &entry, .count = 1, .shards = 1, .compression = 1};
    ck_assert_fails(open_written(&bundle), TDM_E_UNSUPPORTED, "snappy");
    bundle.compression = 4;
    ck_assert_fails(open_written(&bundle), TDM_E_UNSUPPORTED, "compression of kind 4");
    bundle.compression = 0;
    bundle.block_xor = 1;
    ck_assert_fails(open_written(&bundle), TDM_E_FORMAT, "the checksum of a block is wrong");
    bundle.block_xor = 0;
    bundle.endianness = 1;
    ck_assert_fails(open_written(&bundle), TDM_E_UNSUPPORTED, "big-endian");
    bundle.endianness = 0;
    bundle.no_header = true;
    ck_assert_fails(open_written(&bundle), TDM_E_FORMAT, "it has no header");
    bundle.no_header = false;
    ck_assert_ok(open_written(&bundle));
    const tdm_test_entry unordered[] = {
        {"b", FLOAT, {1, {1}}, 0, 0, 4, weights, 0, false},
        {"a", FLOAT, {1, {1}}, 0, 4, 4, weights, 0, false},
    };
    bundle = (tdm_test_bundle){.entries = unordered, .count = 2, .shards = 1};
    ck_assert_fails(open_written(&bundle), TDM_E_FORMAT, "its keys are not in order");
    bundle.entries_per_block = 1;
    ck_assert_fails(open_written(&bundle), TDM_E_FORMAT, "its keys are not in order");
    const tdm_test_entry twice[] = {unordered[1], unordered[1]};
    bundle.entries = twice;
    ck_assert_fails(open_written(&bundle), TDM_E_FORMAT, "its keys are not in order");
}
END_TEST

START_TEST(test_tensors_that_are_refused)
{
    tdm_test_entry entry = good_entry();
    entry.sliced = true;
    ck_assert_fails(open_one(entry), TDM_E_UNSUPPORTED, "tensor \"w\" is stored in slices");
    entry = good_entry();
    entry.shape.sizes[0] = 3;
    ck_assert_fails(open_one(entry), TDM_E_FORMAT, "tensor \"w\": its shape does not fit");
    entry.shape.sizes[0] = INT64_C(-1);
    ck_assert_fails(open_one(entry), TDM_E_FORMAT, "tensor \"w\"");
    entry.shape = (tdm_shape){3, {INT64_MAX, INT64_MAX, 6}};
    ck_assert_fails(open_one(entry), TDM_E_FORMAT, "tensor \"w\": its shape does not fit");
    entry = good_entry();
    entry.shard = 1;
    ck_assert_fails(open_one(entry), TDM_E_FORMAT, "a shard that is not there");
    entry = good_entry();
    entry.data = NULL;
    entry.offset = INT64_MAX - 3;
    ck_assert_fails(open_one(entry), TDM_E_FORMAT, "it is cut off, or of another checkpoint");
    entry.offset = -1;
    ck_assert_fails(open_one(entry), TDM_E_FORMAT, "tensor \"w\"");
}
END_TEST

START_TEST(test_overlap)
{
    tdm_test_entry entries[] = {
        {"a", FLOAT, {1, {2}}, 0, 0, 8, weights, 0, false},
        {"b", FLOAT, {1, {2}}, 0, 4, 8, weights, 0, false},
    };
    const tdm_test_bundle bundle = {.entries = entries, .count = 2, .shards = 2};
    ck_assert_fails(open_written(&bundle), TDM_E_FORMAT, "tensors \"a\" and \"b\" overlap");
    entries[1].shard = 1;
    ck_assert_ok(open_written(&bundle));
}
END_TEST

START_TEST(test_content_is_checked)
{
    tdm_test_entry entry = good_entry();
    entry.checksum_xor = 1;
    const char *prefix = new_prefix();
    tdm_test_bundle_write(prefix, &(tdm_test_bundle){.entries = &entry, .count = 1, .shards = 1});
    tdm_tensor_bundle *bundle;
    float value;
    ck_assert_ok(tdm_tensor_bundle_open(prefix, &bundle));
    ck_assert_fails(tdm_tensor_bundle_read(bundle, 0, 4, &value, sizeof value), TDM_E_FORMAT,
                    "the checksum of tensor \"w\" is wrong");
    tdm_tensor_bundle_close(bundle);
}
END_TEST

/* Every beginning of an index, and every index with a byte changed, is refused or read, no more. */
START_TEST(test_damage)
{
    const tdm_test_entry entries[] = {
        {"a", FLOAT, {2, {2, 3}}, 0, 0, sizeof weights, weights, 0, false},
        {"ab", DOUBLE, {1, {2}}, 0, 24, sizeof doubles, doubles, 0, false},
    };
    char prefix[512], path[520], *data;
    size_t bytes;
    snprintf(prefix, sizeof prefix, "%s", new_prefix());
    snprintf(path, sizeof path, "%s.index", prefix);
    tdm_test_bundle_write(prefix, &(tdm_test_bundle){.entries = entries, .count = 2, .shards = 1});
    ck_assert_ok(tdm_file_get(path, 1 << 20, &data, &bytes));
    tdm_tensor_bundle *bundle;
    for (size_t length = 0; length < bytes; length++) {
        ck_assert_ok(tdm_file_put(path, data, length, NULL));
        ck_assert_int_eq(tdm_tensor_bundle_open(prefix, &bundle), TDM_E_FORMAT);
    }
    for (size_t at = 0; at < bytes; at++) {
        data[at] ^= 0x41;
        ck_assert_ok(tdm_file_put(path, data, bytes, NULL));
        tdm_status status = tdm_tensor_bundle_open(prefix, &bundle);
        ck_assert(status == TDM_E_FORMAT || status == TDM_OK);
        tdm_tensor_bundle_close(bundle);
        data[at] ^= 0x41;
    }
    tdm_free(data);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_out_of_memory)
{
    const tdm_test_entry entry = good_entry();
    const char *prefix = new_prefix();
    tdm_test_bundle_write(prefix, &(tdm_test_bundle){.entries = &entry, .count = 1, .shards = 1});
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status == TDM_E_NOMEM; n++) {
        tdm_tensor_bundle *bundle;
        tdm_memory_fail_at(n, true);
        status = tdm_tensor_bundle_open(prefix, &bundle);
        tdm_memory_fail_at(0, false);
        tdm_tensor_bundle_close(bundle);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    }
    ck_assert_int_eq(status, TDM_OK);
}
END_TEST

static size_t put_little_endian(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
    return (size_t)bytes;
}

/* Kind of compression and checksum behind a block's `bytes`; returns where the next one begins. */
static size_t end_block(unsigned char *block, size_t bytes)
{
    block[bytes] = 0;
    put_little_endian(block + bytes + 1, tdm_crc32c_mask(tdm_crc32c(0, block, bytes + 1)), 4);
    return bytes + 5;
}

static tdm_status take_nothing(void *context, const char *key, size_t key_bytes, tdm_wire value)
{
    (void)context, (void)key, (void)key_bytes, (void)value;
    return TDM_OK;
}

/* Always of four bytes. */
static size_t put_varint(unsigned char *to, size_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)((value >> 7 * i & 127) | (i < 3 ? 128 : 0));
    return 4;
}

static size_t put_entry(unsigned char *to, size_t shared, const void *key, size_t further,
                        size_t value_bytes)
{
    size_t end = put_varint(to, shared);
    end += put_varint(to + end, further);
    end += put_varint(to + end, value_bytes);
    memcpy(to + end, key, further);
    return end + further;
}

/* Reads `table`, whose data block has the first `bytes`, that the index names `times` times. */
static tdm_status read_table(unsigned char *table, size_t bytes, int times)
{
    size_t index = end_block(table, bytes), end = index;
    for (int i = 0; i < times; i++) {
        const char key = (char)('a' + i);
        end += put_entry(table + end, 0, &key, 1, 8);
        end += put_varint(table + end, 0);
        end += put_varint(table + end, bytes);
    }
    end += put_little_endian(table + end, 0, 4);
    size_t index_bytes = end - index;
    end = index + end_block(table + index, index_bytes);
    memset(table + end, 0, 48);
    put_varint(table + end + 2, index);
    put_varint(table + end + 6, index_bytes);
    put_little_endian(table + end + 40, 0xdb4775248b80fb57u, 8);
    return tdm_sorted_table_read(table, end + 48, "t.index", take_nothing, NULL);
}

/* A data block of 20 restarts and no entry. */
static tdm_status read_repeated(int times)
{
    unsigned char table[512] = {0};
    put_little_endian(table + 80, 20, 4);
    return read_table(table, 84, times);
}

/* Entries that share all but the last two bytes of keys of 60,002. */
static tdm_status read_long_keys(int count)
{
    static unsigned char table[1 << 17], key[60002];
    size_t end = 0;
    for (int i = 0; i < count; i++) {
        key[60000] = (unsigned char)(i >> 8);
        key[60001] = (unsigned char)i;
        size_t shared = i == 0 ? 0 : 60000;
        end += put_entry(table + end, shared, key + shared, sizeof key - shared, 0);
    }
    end += put_little_endian(table + end, 0, 4);
    return read_table(table, end, 1);
}

/* Else a small file could ask for memory without end. */
START_TEST(test_long_keys)
{
    ck_assert_ok(read_long_keys(1118));
    ck_assert_fails(read_long_keys(1119), TDM_E_FORMAT, "its keys have more than 64 MiB together");
}
END_TEST

/* Else a small file could name a large block, whose checksum is looked at, without end. */
START_TEST(test_blocks_are_not_shared)
{
    ck_assert_ok(read_repeated(1));
    ck_assert_fails(read_repeated(2), TDM_E_FORMAT, "its blocks have more bytes than the file");
}
END_TEST

TDM_CHECK_MAIN(test_crc32c, test_long_keys, test_blocks_are_not_shared, test_round_trip,
               test_no_file, test_tables_that_are_refused, test_tensors_that_are_refused,
               test_overlap, test_content_is_checked, test_damage, test_out_of_memory)
