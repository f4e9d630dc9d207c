#include "core/file.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "interchange/pretrained_tensors.h"
#include "tests/support/bundle_rig.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const float floats[4] = {1.5f, -2.0f, 0.1f, 1e-40f};

static void write_text(const char *folder, const char *name, const char *text)
{
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, name), text, strlen(text), NULL));
}

static void write_floats(const char *folder, const char *file, const char *tensor)
{
    const tdm_safetensors_source source = {tensor, TDM_F32, {1, {4}}, floats, NULL, NULL};
    ck_assert_ok(
        tdm_safetensors_write(tdm_test_path(folder, file), &source, 1, NULL, 0, NULL, NULL));
}

static void check_refused(const char *path, tdm_status status, const char *message)
{
    tdm_pretrained_tensors *tensors;
    ck_assert_fails(tdm_pretrained_tensors_open(path, &tensors), status, message);
    ck_assert_ptr_null(tensors);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}

/* Every half, from its definition. */
static double half_value(uint16_t half)
{
    int exponent = half >> 10 & 0x1f;
    double mantissa = half & 0x3ff, sign = half >> 15 == 0 ? 1 : -1;
    if (exponent == 0)
        return sign * ldexp(mantissa, -24);
    return sign * ldexp(1024 + mantissa, exponent - 25);
}

START_TEST(test_element_types)
{
    static uint16_t halves[65536];
    static float read[65536];
    static const uint16_t brains[3] = {0x3f80, 0xc000, 0x0001};
    static const double doubles[3] = {0.1, -1e-50, 1e300};
    static const int64_t integers[2] = {1, 2};
    for (int i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    const tdm_safetensors_source sources[] = {
        {"half", TDM_F16, {1, {65536}}, halves, NULL, NULL},
        {"brain", TDM_BF16, {1, {3}}, brains, NULL, NULL},
        {"double", TDM_F64, {1, {3}}, doubles, NULL, NULL},
        {"float", TDM_F32, {1, {4}}, floats, NULL, NULL},
        {"ids", TDM_I64, {1, {2}}, integers, NULL, NULL},
    };
    const char *folder = tdm_test_folder();
    ck_assert_ok(tdm_safetensors_write(tdm_test_path(folder, "model.safetensors"), sources, 5, NULL,
                                       0, NULL, NULL));
    tdm_pretrained_tensors *tensors;
    ck_assert_ok(tdm_pretrained_tensors_open(folder, &tensors));
    ck_assert_int_eq(tdm_pretrained_tensors_count(tensors), 5);
    ck_assert_str_eq(tdm_pretrained_tensors_get(tensors, 0)->name, "brain");
    ck_assert(!tdm_pretrained_tensors_are_tensorflow(tensors));
    int half = tdm_pretrained_tensors_find(tensors, "half");
    ck_assert_ok(tdm_pretrained_tensors_read(tensors, half, 0, read, 65536));
    for (int i = 0; i < 65536; i++) {
        if ((i >> 10 & 0x1f) == 0x1f)
            ck_assert_int_eq((i & 0x3ff) == 0, isinf(read[i]) != 0);
        else
            ck_assert_double_eq((double)read[i], half_value((uint16_t)i));
        ck_assert_int_eq(signbit(read[i]) != 0, i >> 15);
    }
    ck_assert_ok(tdm_pretrained_tensors_read(tensors, half, 65535, read, 1));
    ck_assert(isnan(read[0]));
    ck_assert_ok(tdm_pretrained_tensors_read(tensors, 0, 0, read, 3));
    ck_assert(read[0] == 1 && read[1] == -2 && read[2] == 0x1p-133f);
    ck_assert_ok(tdm_pretrained_tensors_read(
        tensors, tdm_pretrained_tensors_find(tensors, "double"), 0, read, 3));
    ck_assert(read[0] == 0.1f && read[1] == 0 && isinf(read[2]));
    int index = tdm_pretrained_tensors_find(tensors, "float");
    ck_assert_ok(tdm_pretrained_tensors_read(tensors, index, 1, read, 3));
    ck_assert(memcmp(read, floats + 1, 12) == 0);
    ck_assert_fails(tdm_pretrained_tensors_read(tensors, index, 2, read, 3), TDM_E_ARG,
                    "tensor \"float\" has 4 elements");
    ck_assert_fails(tdm_pretrained_tensors_read(tensors, index, -1, read, 1), TDM_E_ARG, "float");
    ck_assert_fails(tdm_pretrained_tensors_read(
                        tensors, tdm_pretrained_tensors_find(tensors, "ids"), 0, read, 1),
                    TDM_E_UNSUPPORTED, "tensor \"ids\" has elements of type I64");
    ck_assert_int_eq(tdm_pretrained_tensors_find(tensors, "x"), -1);
    tdm_pretrained_tensors_close(tensors);
    tdm_pretrained_tensors_close(NULL);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_what_a_folder_holds)
{
    const char *folder = tdm_test_folder();
    char path[512];
    snprintf(path, sizeof path, "%s", folder);
    check_refused(path, TDM_E_DATA, "holds no checkpoint: model.safetensors");
    write_text(path, "pytorch_model.bin", "x");
    check_refused(path, TDM_E_UNSUPPORTED, "is a Python pickle");
    check_refused(path, TDM_E_UNSUPPORTED, "'model.safetensors')\"");
    check_refused(tdm_test_path(path, "pytorch_model.bin"), TDM_E_UNSUPPORTED, "pickle");
    check_refused(tdm_test_path(path, "missing.safetensors"), TDM_E_IO, "missing.safetensors");
    const tdm_test_entry entry = {"w", 1, {1, {4}}, 0, 0, sizeof floats, floats, 0, false};
    char prefix[600];
    snprintf(prefix, sizeof prefix, "%s/bert_model.ckpt", path);
    tdm_test_bundle_write(prefix, &(tdm_test_bundle){.entries = &entry, .count = 1, .shards = 1});
    tdm_pretrained_tensors *tensors;
    float read[4];
    const char *const paths[] = {path, prefix, tdm_test_path(path, "bert_model.ckpt.index")};
    for (int i = 0; i < 3; i++) {
        ck_assert_ok(tdm_pretrained_tensors_open(paths[i], &tensors));
        ck_assert(tdm_pretrained_tensors_are_tensorflow(tensors));
        ck_assert_ok(tdm_pretrained_tensors_read(tensors, 0, 0, read, 4));
        ck_assert(memcmp(read, floats, sizeof floats) == 0);
        tdm_pretrained_tensors_close(tensors);
    }
    write_text(path, "model.ckpt-100.index", "");
    check_refused(path, TDM_E_DATA, "holds several checkpoints");
    write_floats(path, "model.safetensors", "a");
    ck_assert_ok(tdm_pretrained_tensors_open(path, &tensors)); /* before all others */
    ck_assert_str_eq(tdm_pretrained_tensors_get(tensors, 0)->name, "a");
    tdm_pretrained_tensors_close(tensors);
}
END_TEST

START_TEST(test_several_files)
{
    char folder[512];
    tdm_pretrained_tensors *tensors;
    snprintf(folder, sizeof folder, "%s", tdm_test_folder());
    write_floats(folder, "one.safetensors", "a");
    write_floats(folder, "two.safetensors", "b");
    write_text(folder, "model.safetensors.index.json",
               "{\"metadata\": {}, \"weight_map\": {\"b\": \"two.safetensors\", "
               "\"a\": \"one.safetensors\"}}");
    ck_assert_ok(tdm_pretrained_tensors_open(folder, &tensors));
    ck_assert_int_eq(tdm_pretrained_tensors_count(tensors), 2);
    ck_assert_str_eq(tdm_pretrained_tensors_get(tensors, 0)->name, "a");
    ck_assert_int_eq(tdm_pretrained_tensors_find(tensors, "b"), 1);
    float read[4];
    ck_assert_ok(tdm_pretrained_tensors_read(tensors, 1, 0, read, 4));
    ck_assert(memcmp(read, floats, sizeof floats) == 0);
    tdm_pretrained_tensors_close(tensors);
    static const struct {
        const char *text;
        tdm_status status;
        const char *message;
    } cases[] = {
        {"{\"weight_map\": {\"c\": \"one.safetensors\"}}", TDM_E_FORMAT,
         "tensor \"c\" is not in one.safetensors"},
        {"{\"weight_map\": {\"c\": \"three.safetensors\"}}", TDM_E_IO, "three.safetensors"},
        {"{\"weight_map\": {\"c\": \"../one.safetensors\"}}", TDM_E_FORMAT,
         "is not a file of the same folder"},
        {"{\"weight_map\": {\"c\": 1}}", TDM_E_FORMAT, "\"c\" has no file"},
        {"{\"weight_map\": [1]}", TDM_E_FORMAT, "has no \"weight_map\""},
        {"{}", TDM_E_FORMAT, "has no \"weight_map\""},
        {"{\"weight_map\": ", TDM_E_FORMAT, "damaged"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text(folder, "model.safetensors.index.json", cases[i].text);
        check_refused(folder, cases[i].status, cases[i].message);
    }
}
END_TEST

/* Files that are cut off, whose headers lie, or whose tensors overlap. */
START_TEST(test_damaged_files)
{
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [0, 16]}}",
         "lie outside of the 8 bytes of data"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [3], \"data_offsets\": [0, 8]}}",
         "its shape does not fit"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}, "
         "\"b\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [4, 8]}}",
         "not at 8 where the one before it ends"},
        {"{\"a\": ", "byte"},
    };
    char path[512];
    snprintf(path, sizeof path, "%s", tdm_test_path(tdm_test_folder(), "model.safetensors"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char file[512] = {0};
        size_t bytes = strlen(cases[i].header);
        file[0] = (unsigned char)bytes;
        file[1] = (unsigned char)(bytes >> 8);
        memcpy(file + 8, cases[i].header, bytes);
        ck_assert_ok(tdm_file_put(path, file, bytes + 16, NULL));
        check_refused(path, TDM_E_FORMAT, cases[i].message);
    }
    const tdm_safetensors_source source = {"a", TDM_F32, {1, {4}}, floats, NULL, NULL};
    ck_assert_ok(tdm_safetensors_write(path, &source, 1, NULL, 0, NULL, NULL));
    char *data;
    size_t bytes;
    ck_assert_ok(tdm_file_get(path, 1 << 16, &data, &bytes));
    for (size_t length = 0; length < bytes; length++) {
        ck_assert_ok(tdm_file_put(path, data, length, NULL));
        tdm_pretrained_tensors *tensors;
        ck_assert_int_eq(tdm_pretrained_tensors_open(path, &tensors), TDM_E_FORMAT);
    }
    tdm_free(data);
}
END_TEST

START_TEST(test_out_of_memory)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s", tdm_test_folder());
    write_floats(folder, "one.safetensors", "a");
    write_text(folder, "model.safetensors.index.json",
               "{\"weight_map\": {\"a\": \"one.safetensors\"}}");
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status == TDM_E_NOMEM; n++) {
        tdm_pretrained_tensors *tensors;
        tdm_memory_fail_at(n, true);
        status = tdm_pretrained_tensors_open(folder, &tensors);
        tdm_memory_fail_at(0, false);
        tdm_pretrained_tensors_close(tensors);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    }
    ck_assert_int_eq(status, TDM_OK);
}
END_TEST

TDM_CHECK_MAIN(test_element_types, test_what_a_folder_holds, test_several_files, test_damaged_files,
               test_out_of_memory)
