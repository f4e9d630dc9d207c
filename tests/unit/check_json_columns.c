/* JSON Lines whose fields are columns, against literal expectations. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/record_reader.h"

#include <locale.h>
#include <string.h>

static char *names[] = {"a", "b", "c"};

static void check_records(const char *text, const char *records, const char *bad)
{
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    for (int64_t block_bytes = 16; block_bytes < 1 << 20; block_bytes *= 64) {
        const tdm_reading_options options = {
            .format = {.type = TDM_FORMAT_JSONL, .columns = {names, 3}},
            .all_columns = true,
            .block_bytes = block_bytes,
            .max_record_bytes = 1024};
        tdm_records_read read;
        tdm_records_of_bytes(&options, folder, "a.jsonl", text, strlen(text), &read);
        ck_assert_str_eq(read.records.bytes, records);
        ck_assert_str_eq(read.bad.bytes, bad);
        tdm_records_free(&read);
    }
    ck_assert_ok(tdm_folder_remove(folder));
}

START_TEST(test_texts)
{
    check_records("{\"a\": \"x\", \"b\": \"y, z\", \"c\": \"\"}\n"
                  "\n{\"c\": \"3\", \"d\": {\"e\": []}, \"a\": null}\r\n"
                  "{\"b\": \"\\u00e4\\ud83d\\ude00\\n\\\"\"}",
                  "<x,\"y, z\",><,,3><,\"\xc3\xa4\xf0\x9f\x98\x80\n\"\"\",>", "");
}
END_TEST

/* The fewest digits that give the same number, in any locale. */
START_TEST(test_numbers)
{
    (void)setlocale(LC_ALL, "de_DE.UTF-8");
    check_records("{\"a\": 3, \"b\": -0.1, \"c\": 12345678901}\n"
                  "{\"a\": 1.0, \"b\": 1e3, \"c\": 0.30000000000000004}\n"
                  "{\"a\": 1e300, \"b\": 1e-7, \"c\": 12345678901234567890}\n"
                  "{\"a\": 9007199254740993, \"b\": -9223372036854775808, \"c\": 1e17}\n",
                  "<3,-0.1,12345678901><1,1000,0.30000000000000004>"
                  "<1e300,1e-7,1.2345678901234567e19>"
                  "<9007199254740993,-9223372036854775808,1e17>",
                  "");
}
END_TEST

START_TEST(test_truth_and_lists)
{
    check_records("{\"a\": true, \"b\": false, \"c\": []}\n"
                  "{\"a\": [\"x\", \"y z\"], \"b\": [1, 2.5, true, null], \"c\": [\"p\\nq\"]}\n",
                  "<true,false,><\"x\ny z\n\",\"1\n2.5\ntrue\n\n\",\"p q\n\">", "");
    /* Lists end with a line feed, texts do not. */
    check_records("{\"a\": \"x\\ny\\n\", \"b\": \"\\n\", \"c\": [\"\\n\", \"\"]}\n",
                  "<\"x\ny \", ,\" \n\n\">", "");
}
END_TEST

#define NO_CELL                                                                                    \
    "expected a text, a number, true, false or a list of these, without NUL characters\n"

START_TEST(test_values_that_are_no_cells)
{
    check_records("{\"a\": \"x\", \"b\": {}}\n{\"a\": [[1]]}\n{\"a\": [{\"b\": 1}]}\n"
                  "{\"c\": \"x\\u0000\"}\n{\"c\": [\"\\u0000\"]}\n[]\n{\"a\": 1\n"
                  "{\"a\": 1, \"a\": 2}\n{\"b\": \"good\"}\n",
                  "<,good,>",
                  "a.jsonl:1: b: " NO_CELL "a.jsonl:2: a: " NO_CELL "a.jsonl:3: a: " NO_CELL
                  "a.jsonl:4: c: " NO_CELL "a.jsonl:5: c: " NO_CELL
                  "a.jsonl:6: is a JSON array, expected an object\n"
                  "a.jsonl:7: is not JSON: '}' expected near end of file\n"
                  "a.jsonl:8: is not JSON: duplicate object key\n");
}
END_TEST

START_TEST(test_columns_that_cannot_be)
{
    char folder[TDM_FOLDER_BYTES];
    char *twice[] = {"a", "a"};
    tdm_new_folder(folder);
    char *path = tdm_data_rig_put_text(folder, "a.jsonl", "{}\n");
    const tdm_reading_options options = {
        .files = (const char *const *)&path,
        .file_count = 1,
        .format = {.type = TDM_FORMAT_JSONL, .columns = {twice, 2}}};
    tdm_records_read read;
    ck_assert_fails(tdm_records_try_read(&options, &read), TDM_E_CONFIG,
                    "data.columns: names a twice");
    tdm_records_free(&read);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

TDM_CHECK_MAIN(test_texts, test_numbers, test_truth_and_lists, test_values_that_are_no_cells,
               test_columns_that_cannot_be)
