/* JSON beyond what jansson does. */
#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <string.h>

START_TEST(test_numbers)
{
    json_t *number = tdm_json_number(0.1);
    ck_assert(json_is_real(number));
    ck_assert_double_eq(json_real_value(number), 0.1);
    json_decref(number);
    ck_assert(json_is_null(tdm_json_number(NAN)));
    ck_assert(json_is_null(tdm_json_number(-INFINITY)));
}
END_TEST

static const char *put(const char *folder, const char *text)
{
    const char *path = tdm_test_path(folder, "x.json");
    ck_assert_ok(tdm_file_put(path, text, strlen(text), NULL));
    return path;
}

START_TEST(test_files)
{
    const char *folder = tdm_test_folder();
    json_t *json;
    ck_assert_ok(tdm_json_file_get(put(folder, "{\"a\": [1]}"), 20, &json));
    ck_assert_uint_eq(json_array_size(json_object_get(json, "a")), 1);
    json_decref(json);
    ck_assert_fails(tdm_json_file_get(put(folder, "{\"a\": 1,\n \"a\": 2}"), 20, &json),
                    TDM_E_FORMAT, "x.json:2: damaged: duplicate object key");
    ck_assert_ptr_null(json);
    ck_assert_fails(tdm_json_file_get(put(folder, "{\"a\": "), 20, &json), TDM_E_FORMAT,
                    "x.json:1: damaged: ");
    ck_assert_fails(tdm_json_file_get(put(folder, "{\"a\": \"long\"}"), 10, &json), TDM_E_FORMAT,
                    "x.json: ");
    ck_assert_fails(tdm_json_file_get("/nowhere/x.json", 10, &json), TDM_E_IO, "/nowhere/x.json");
    ck_assert_ptr_null(json);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

TDM_CHECK_MAIN(test_numbers, test_files)
