#include "core/file.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "tests/support/check_main.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const float weights[6] = {1.0f, -2.0f, 3.5f, 0.0f, 1e-30f, 7.0f};
static const uint16_t halves[3] = {0x3f80, 0xc000, 0x0001};

/* Gives a tensor of `bytes` bytes, i mod 251 at byte i, in pieces of at most `piece`. */
typedef struct supplier {
    int64_t bytes, piece;
    int64_t fail_at; /* the offset that fails; -1: none */
    unsigned char buffer[1000];
} supplier;

static tdm_status supply(void *context, int64_t offset, const void **piece, int64_t *bytes)
{
    supplier *from = context;
    TDM_FAIL_IF(offset == from->fail_at, TDM_E_DEVICE, "the copy failed");
    int64_t left = from->bytes - offset;
    *bytes = left < from->piece ? left : from->piece;
    for (int64_t i = 0; i < *bytes && i < (int64_t)sizeof from->buffer; i++)
        from->buffer[i] = (unsigned char)((offset + i) % 251);
    *piece = from->buffer;
    return TDM_OK;
}

static void write_example(const char *path, supplier *from)
{
    const tdm_safetensors_source sources[] = {
        {"mlp.0.weight", TDM_F32, {2, {2, 3}}, weights, NULL, NULL},
        {"state.step", TDM_I64, {0, {0}}, &(int64_t){1200}, NULL, NULL},
        {"empty", TDM_F32, {2, {0, 5}}, NULL, NULL, NULL},
        {"bias", TDM_BF16, {1, {3}}, halves, NULL, NULL},
        {"embedding.\"C1\"", TDM_U32, {2, {from->bytes / 4, 1}}, NULL, supply, from},
    };
    const tdm_safetensors_text metadata[] = {{"format", "pt"}, {"model", "deepfm"}};
    uint64_t hash, hash_again;
    int64_t bytes, bytes_again;
    ck_assert_ok(tdm_safetensors_write(path, sources, 5, metadata, 2, &hash, &bytes));
    ck_assert_ok(tdm_file_hash(path, &hash_again, &bytes_again));
    ck_assert_uint_eq(hash, hash_again);
    ck_assert_int_eq(bytes, bytes_again);
}

static void check_tensor(const tdm_safetensors *file, const char *name, tdm_dtype dtype, int rank,
                         int64_t first_size, int64_t bytes)
{
    int index = tdm_safetensors_find(file, name);
    ck_assert_int_ge(index, 0);
    const tdm_safetensors_tensor *tensor = tdm_safetensors_get(file, index);
    ck_assert_str_eq(tensor->name, name);
    ck_assert_int_eq(tensor->dtype, dtype);
    ck_assert_int_eq(tensor->shape.rank, rank);
    if (rank > 0)
        ck_assert_int_eq(tensor->shape.sizes[0], first_size);
    ck_assert_int_eq(tensor->bytes, bytes);
}

START_TEST(test_round_trip)
{
    const char *path = tdm_test_path(tdm_test_folder(), "model.safetensors");
    supplier from = {.bytes = 4096, .piece = 1000, .fail_at = -1};
    write_example(path, &from);

    tdm_safetensors *file;
    ck_assert_ok(tdm_safetensors_open(path, &file));
    ck_assert_int_eq(tdm_safetensors_count(file), 5);
    check_tensor(file, "mlp.0.weight", TDM_F32, 2, 2, 24);
    check_tensor(file, "state.step", TDM_I64, 0, 0, 8);
    check_tensor(file, "empty", TDM_F32, 2, 0, 0);
    check_tensor(file, "bias", TDM_BF16, 1, 3, 6);
    check_tensor(file, "embedding.\"C1\"", TDM_U32, 2, 1024, 4096);
    ck_assert_int_eq(tdm_safetensors_find(file, "mlp"), -1);
    ck_assert_int_eq(tdm_safetensors_find(file, "__metadata__"), -1);
    ck_assert_str_eq(tdm_safetensors_metadata(file, "model"), "deepfm");
    ck_assert_ptr_null(tdm_safetensors_metadata(file, "other"));

    float read_weights[6];
    int64_t step;
    unsigned char read_bytes[96];
    ck_assert_ok(tdm_safetensors_read(file, tdm_safetensors_find(file, "mlp.0.weight"), 0,
                                      read_weights, sizeof read_weights));
    ck_assert(memcmp(read_weights, weights, sizeof weights) == 0);
    ck_assert_ok(tdm_safetensors_read(file, tdm_safetensors_find(file, "state.step"), 0, &step, 8));
    ck_assert_int_eq(step, 1200);
    int table = tdm_safetensors_find(file, "embedding.\"C1\"");
    ck_assert_ok(tdm_safetensors_read(file, table, 4000, read_bytes, 96));
    for (int i = 0; i < 96; i++)
        ck_assert_int_eq(read_bytes[i], (4000 + i) % 251);
    ck_assert_ok(tdm_safetensors_read(file, table, 4096, read_bytes, 0));
    ck_assert_fails(tdm_safetensors_read(file, table, 4001, read_bytes, 96), TDM_E_ARG,
                    "tensor \"embedding.\"C1\"\" has 4096 bytes");
    ck_assert_fails(tdm_safetensors_read(file, table, -1, read_bytes, 1), TDM_E_ARG, "4096");
    tdm_safetensors_close(file);
    tdm_safetensors_close(NULL);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

/* The very bytes: names sorted, blanks up to a multiple of 64, then the data. */
START_TEST(test_layout)
{
    static const char expected[] =
        "{\"a\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[6,30]}}";
    const char *path = tdm_test_path(tdm_test_folder(), "a.safetensors");
    const tdm_safetensors_source sources[] = {
        {"b", TDM_F32, {2, {2, 3}}, weights, NULL, NULL},
        {"a", TDM_BF16, {1, {3}}, halves, NULL, NULL},
    };
    ck_assert_ok(tdm_safetensors_write(path, sources, 2, NULL, 0, NULL, NULL));
    char *data;
    size_t bytes;
    ck_assert_ok(tdm_file_get(path, 1000, &data, &bytes));
    ck_assert_uint_eq(bytes, 128 + 30);
    ck_assert(memcmp(data, "\x78\0\0\0\0\0\0\0", 8) == 0);
    ck_assert(memcmp(data + 8, expected, sizeof expected - 1) == 0);
    for (size_t i = 8 + sizeof expected - 1; i < 128; i++)
        ck_assert_int_eq(data[i], ' ');
    ck_assert(memcmp(data + 128, halves, 6) == 0);
    ck_assert(memcmp(data + 134, weights, 24) == 0);
    tdm_free(data);
}
END_TEST

START_TEST(test_write_refuses)
{
    const char *path = tdm_test_path(tdm_test_folder(), "a.safetensors");
    tdm_safetensors_source sources[2] = {
        {"a", TDM_F32, {1, {6}}, weights, NULL, NULL},
        {"a", TDM_F32, {1, {6}}, weights, NULL, NULL},
    };
    ck_assert_fails(tdm_safetensors_write(path, sources, 2, NULL, 0, NULL, NULL), TDM_E_ARG,
                    "two tensors are called \"a\"");
    sources[1].name = "__metadata__";
    ck_assert_fails(tdm_safetensors_write(path, sources, 2, NULL, 0, NULL, NULL), TDM_E_ARG,
                    "cannot be called");
    sources[1].name = "\xff";
    ck_assert_fails(tdm_safetensors_write(path, sources, 2, NULL, 0, NULL, NULL), TDM_E_ARG,
                    "not UTF-8");
    sources[1].name = "b";
    const tdm_safetensors_text metadata = {"key", "\xff"};
    ck_assert_fails(tdm_safetensors_write(path, sources, 2, &metadata, 1, NULL, NULL), TDM_E_ARG,
                    "\"key\": out of memory, or text that is not UTF-8");
    sources[1].shape = (tdm_shape){2, {INT64_MAX / 4, 3}};
    ck_assert_fails(tdm_safetensors_write(path, sources, 2, NULL, 0, NULL, NULL), TDM_E_ARG,
                    "tensor \"b\": not a shape");
    sources[1].shape = (tdm_shape){2, {-2, -3}};
    ck_assert_fails(tdm_safetensors_write(path, sources, 2, NULL, 0, NULL, NULL), TDM_E_ARG,
                    "tensor \"b\": not a shape");
    sources[1].shape = (tdm_shape){1, {6}};
    sources[1].data = NULL;
    ck_assert_fails(tdm_safetensors_write(path, sources, 2, NULL, 0, NULL, NULL), TDM_E_ARG,
                    "tensor \"b\" has no data");
    ck_assert(!tdm_file_exists(path));
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_write_pieces_fail)
{
    const char *path = tdm_test_path(tdm_test_folder(), "a.safetensors");
    supplier from = {.bytes = 4000, .piece = 1000, .fail_at = 2000};
    tdm_safetensors_source source = {"a", TDM_F32, {1, {1000}}, NULL, supply, &from};
    ck_assert_fails(tdm_safetensors_write(path, &source, 1, NULL, 0, NULL, NULL), TDM_E_DEVICE,
                    "a.safetensors: tensor \"a\": the copy failed");
    from = (supplier){.bytes = 4001, .piece = 5000, .fail_at = -1};
    ck_assert_fails(tdm_safetensors_write(path, &source, 1, NULL, 0, NULL, NULL), TDM_E_ARG,
                    "a piece of 4001 bytes where 4000 are left");
    from.piece = 0;
    ck_assert_fails(tdm_safetensors_write(path, &source, 1, NULL, 0, NULL, NULL), TDM_E_ARG,
                    "a piece of 0 bytes");
    ck_assert(!tdm_file_exists(path));
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

/* ---- damaged files --------------------------------------------------------------------------- */

/* Writes `claimed` as the header's length, the header, and data_bytes zeros. */
static void put_raw(const char *path, uint64_t claimed, const char *header, size_t header_bytes,
                    size_t data_bytes)
{
    static const char zeros[256];
    tdm_file_writer *writer;
    ck_assert_ok(tdm_file_writer_open(path, &writer));
    ck_assert_ok(tdm_file_writer_write(writer, &claimed, 8));
    ck_assert_ok(tdm_file_writer_write(writer, header, header_bytes));
    ck_assert_ok(tdm_file_writer_write(writer, zeros, data_bytes));
    ck_assert_ok(tdm_file_writer_commit(writer, NULL, NULL));
    tdm_file_writer_close(writer);
}

static tdm_status open_header(const char *header, size_t data_bytes)
{
    static char path[300];
    if (path[0] == '\0')
        snprintf(path, sizeof path, "%s/x.safetensors", tdm_test_folder());
    put_raw(path, strlen(header), header, strlen(header), data_bytes);
    tdm_safetensors *file;
    tdm_status status = tdm_safetensors_open(path, &file);
    ck_assert_int_eq(status == TDM_OK, file != NULL);
    tdm_safetensors_close(file);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    return status;
}

#define TENSOR(dtype, shape, begin, end)                                                           \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

START_TEST(test_headers)
{
    static const struct {
        const char *header;
        size_t data_bytes;
        tdm_status status;
        const char *message; /* NULL: the header is good */
    } cases[] = {
        {"{}", 0, TDM_OK, NULL},
        {"{}   ", 0, TDM_OK, NULL},
        {"{\"a\":" TENSOR("F32", "[2,3]", 0, 24) "}", 24, TDM_OK, NULL},
        {"{\"a\":" TENSOR("F32", "[]", 8, 12) ",\"b\":" TENSOR("I64", "[1]", 0, 8) "}", 12, TDM_OK,
         NULL},
        {"{\"__metadata__\":{\"k\":\"v\"},\"a\":" TENSOR("F32", "[0]", 0, 0) "}", 0, TDM_OK, NULL},
        {"{\"a\":" TENSOR("U16", "[2]", 0, 4) ",\"b\":" TENSOR("U8", "[3]", 4, 7) "}", 7, TDM_OK,
         NULL},
        /* JSON */
        {"", 0, TDM_E_FORMAT, "does not begin with {"},
        {" {}", 0, TDM_E_FORMAT, "does not begin with {"},
        {"[]", 0, TDM_E_FORMAT, "does not begin with {"},
        {"{\"a\":", 0, TDM_E_FORMAT, "of the header"},
        {"{}x", 0, TDM_E_FORMAT, "of the header"},
        {"{\"a\":" TENSOR("F32", "[]", 0, 4) ",\"a\":" TENSOR("F32", "[]", 0, 4) "}", 4,
         TDM_E_FORMAT, "duplicate"},
        {"{\"a\\u0000b\":" TENSOR("F32", "[]", 0, 4) "}", 4, TDM_E_FORMAT, "of the header"},
        {"{\"__metadata__\":[]}", 0, TDM_E_FORMAT, "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"k\":1}}", 0, TDM_E_FORMAT, "__metadata__: \"k\" is not a string"},
        /* the description */
        {"{\"a\":[]}", 0, TDM_E_FORMAT, "tensor \"a\" is not described"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, TDM_E_FORMAT, "tensor \"a\" is not desc"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"offsets\":[0,4]}}", 4, TDM_E_FORMAT,
         "tensor \"a\" has no data_offsets"},
        {"{\"a\":{\"dtype\":7,\"shape\":[],\"data_offsets\":[0,4]}}", 4, TDM_E_FORMAT,
         "tensor \"a\" has no dtype"},
        {"{\"a\":" TENSOR("F33", "[]", 0, 4) "}", 4, TDM_E_FORMAT,
         "tensor \"a\": unknown element type \"F33\""},
        {"{\"a\":" TENSOR("I8", "[4]", 0, 4) "}", 4, TDM_E_UNSUPPORTED,
         "tensor \"a\": element type I8"},
        {"{\"a\":" TENSOR("F32", "4", 0, 4) "}", 4, TDM_E_FORMAT, "tensor \"a\" has no shape"},
        {"{\"a\":" TENSOR("F32", "[1,1,1,1,1]", 0, 4) "}", 4, TDM_E_UNSUPPORTED,
         "tensor \"a\" has 5 dimensions"},
        {"{\"a\":" TENSOR("F32", "[-1]", 0, 4) "}", 4, TDM_E_FORMAT, "dimension 0 is not a size"},
        {"{\"a\":" TENSOR("F32", "[1.0]", 0, 4) "}", 4, TDM_E_FORMAT, "dimension 0 is not a size"},
        {"{\"a\":" TENSOR("F32", "[1,99999999999999999999]", 0, 4) "}", 4, TDM_E_FORMAT,
         "of the header"},
        /* sizes */
        {"{\"a\":" TENSOR("F32", "[2]", 0, 4) "}", 4, TDM_E_FORMAT, "shape does not fit its 4"},
        {"{\"a\":" TENSOR("F32", "[4611686018427387904]", 0, 0) "}", 0, TDM_E_FORMAT,
         "shape does not fit"},
        {"{\"a\":" TENSOR("F32", "[4294967296,4294967296,1]", 0, 0) "}", 0, TDM_E_FORMAT,
         "shape does not fit"},
        /* places */
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4,8]}}", 4, TDM_E_FORMAT,
         "tensor \"a\" has no data_offsets"},
        {"{\"a\":" TENSOR("F32", "[]", 0, 4.0) "}", 4, TDM_E_FORMAT, "has no data_offsets"},
        {"{\"a\":" TENSOR("F32", "[]", 4, 0) "}", 4, TDM_E_FORMAT, "tensor \"a\": data_offsets"},
        {"{\"a\":" TENSOR("F32", "[]", -4, 0) "}", 4, TDM_E_FORMAT, "tensor \"a\": data_offsets"},
        {"{\"a\":" TENSOR("F32", "[]", 4, 8) "}", 7, TDM_E_FORMAT, "outside of the 7 bytes"},
        {"{\"a\":" TENSOR("F32", "[]", 1, 5) "}", 5, TDM_E_FORMAT, "begins at byte 1 of the data"},
        {"{\"a\":" TENSOR("F32", "[]", 0, 4) ",\"b\":" TENSOR("F32", "[]", 5, 9) "}", 9,
         TDM_E_FORMAT, "tensor \"b\" begins at byte 5 of the data, not at 4"},
        {"{\"a\":" TENSOR("F32", "[]", 0, 4) ",\"b\":" TENSOR("F32", "[]", 3, 7) "}", 7,
         TDM_E_FORMAT, "tensor \"b\" begins at byte 3 of the data, not at 4"},
        {"{\"a\":" TENSOR("F32", "[]", 0, 4) ",\"b\":" TENSOR("F32", "[]", 0, 4) "}", 4,
         TDM_E_FORMAT, "begins at byte 0 of the data, not at 4"},
        {"{\"a\":" TENSOR("F32", "[]", 0, 4) "}", 5, TDM_E_FORMAT,
         "its tensors have 4 bytes, its data 5"},
        {"{}", 1, TDM_E_FORMAT, "its tensors have 0 bytes, its data 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_status status = open_header(cases[i].header, cases[i].data_bytes);
        ck_assert_msg(status == cases[i].status, "%s: status %d: %s", cases[i].header, status,
                      tdm_error_message());
        if (cases[i].message == NULL)
            continue;
        ck_assert_msg(strstr(tdm_error_message(), cases[i].message) != NULL,
                      "%s: \"%s\" lacks \"%s\"", cases[i].header, tdm_error_message(),
                      cases[i].message);
        ck_assert_msg(strstr(tdm_error_message(), "x.safetensors: ") != NULL, "no file in \"%s\"",
                      tdm_error_message());
    }
}
END_TEST

START_TEST(test_header_lengths)
{
    const char *folder = tdm_test_folder();
    const char *path = tdm_test_path(folder, "a");
    tdm_safetensors *file;
    ck_assert_fails(tdm_safetensors_open(path, &file), TDM_E_IO, "a: cannot open: no such file");
    ck_assert_ptr_null(file);
    ck_assert_fails(tdm_safetensors_open(folder, &file), TDM_E_IO, "not a file");
    ck_assert_ok(tdm_file_put(path, "1234567", 7, NULL));
    ck_assert_fails(tdm_safetensors_open(path, &file), TDM_E_FORMAT, "it has 7 bytes");
    put_raw(path, 3, "{}", 2, 0);
    ck_assert_fails(tdm_safetensors_open(path, &file), TDM_E_FORMAT,
                    "the header claims 3 bytes, and the file has 10");
    put_raw(path, (uint64_t)TDM_SAFETENSORS_MAX_HEADER + 1, "{}", 2, 0);
    ck_assert_fails(tdm_safetensors_open(path, &file), TDM_E_FORMAT, "more than the 100000000");
    put_raw(path, UINT64_MAX, "{}", 2, 0);
    ck_assert_fails(tdm_safetensors_open(path, &file), TDM_E_FORMAT, "more than the 100000000");
}
END_TEST

/* At once, and not when somebody writes to it. */
START_TEST(test_a_pipe_is_refused)
{
    const char *path = tdm_test_path(tdm_test_folder(), "pipe");
    tdm_safetensors *file;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_fails(tdm_safetensors_open(path, &file), TDM_E_IO, "pipe: not a file");
}
END_TEST

/* A file cut anywhere is refused when it is opened, and so is one with bytes behind its end. */
START_TEST(test_truncation)
{
    const char *folder = tdm_test_folder();
    supplier from = {.bytes = 64, .piece = 10, .fail_at = -1};
    char whole[300];
    snprintf(whole, sizeof whole, "%s/whole", folder);
    write_example(whole, &from);
    char *data;
    size_t bytes;
    ck_assert_ok(tdm_file_get(whole, 10000, &data, &bytes));
    const char *path = tdm_test_path(folder, "cut");
    tdm_safetensors *file;
    for (size_t length = 0; length < bytes; length++) {
        ck_assert_ok(tdm_file_put(path, data, length, NULL));
        ck_assert_fails(tdm_safetensors_open(path, &file), TDM_E_FORMAT, "cut: damaged");
    }
    ck_assert_ok(tdm_file_put(path, data, bytes + 1, NULL));
    ck_assert_fails(tdm_safetensors_open(path, &file), TDM_E_FORMAT, "cut: damaged");

    /* Cut after it was opened. */
    ck_assert_ok(tdm_safetensors_open(whole, &file));
    ck_assert_int_eq(truncate(whole, (off_t)bytes - 4), 0);
    int last = tdm_safetensors_find(file, "state.step");
    ck_assert_fails(tdm_safetensors_read(file, last, 0, data, 8), TDM_E_FORMAT,
                    "whole: has become shorter");
    tdm_safetensors_close(file);
    tdm_free(data);
}
END_TEST

START_TEST(test_out_of_memory)
{
    const char *path = tdm_test_path(tdm_test_folder(), "a");
    const tdm_safetensors_source source = {"a", TDM_F32, {1, {6}}, weights, NULL, NULL};
    for (int operation = 0; operation < 2; operation++) {
        int failures = 0;
        for (int64_t n = 1;; n++) {
            tdm_safetensors *file = NULL;
            tdm_memory_fail_at(n, false);
            tdm_status status = operation == 0
                                    ? tdm_safetensors_write(path, &source, 1, NULL, 0, NULL, NULL)
                                    : tdm_safetensors_open(path, &file);
            tdm_memory_fail_at(0, false);
            tdm_safetensors_close(file);
            ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
            if (status == TDM_OK)
                break;
            ck_assert_int_eq(status, TDM_E_NOMEM);
            failures++;
        }
        ck_assert_int_ge(failures, 4);
    }
}
END_TEST

TDM_CHECK_MAIN(test_round_trip, test_layout, test_write_refuses, test_write_pieces_fail,
               test_headers, test_header_lengths, test_a_pipe_is_refused, test_truncation,
               test_out_of_memory)
