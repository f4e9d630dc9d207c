/* Documents out of text and JSON Lines, against literal expectations. */
#include "core/file.h"
#include "core/memory.h"
#include "data/options.h"
#include "data/utf8.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/record_reader.h"

#include <string.h>

static char folder[TDM_FOLDER_BYTES];

typedef struct text_case {
    const char *bytes;
    size_t size;
    const char *records, *bad;
    int64_t encoding_errors;
} text_case;

#define TEXT(text) (text), sizeof(text) - 1

/* Each text from a plain file, and as a stream. */
static void check_cases(const tdm_format_options *format, const text_case *cases, size_t count)
{
    static const char *const names[] = {"a.txt", "a.txt.gz"};
    tdm_new_folder(folder);
    for (size_t i = 0; i < 2 * count; i++) {
        const text_case *expected = &cases[i / 2];
        const tdm_reading_options options = {.format = *format, .max_record_bytes = 1024};
        tdm_records_read read;
        tdm_records_of_bytes(&options, folder, names[i % 2], expected->bytes, expected->size,
                             &read);
        const char *bad = expected->bad == NULL ? "" : expected->bad;
        tdm_text named = {0};
        for (const char *at = bad; *at != '\0'; at++) /* $: the file's name */
            ck_assert_ok(*at == '$' ? tdm_text_printf(&named, "%s", names[i % 2])
                                    : tdm_text_printf(&named, "%c", *at));
        size_t length = strlen(expected->records);
        ck_assert_msg(read.records.length == length &&
                          memcmp(read.records.bytes, expected->records, length) == 0,
                      "case %zu: %s", i / 2, read.records.bytes);
        ck_assert_str_eq(read.bad.bytes, named.bytes == NULL ? "" : named.bytes);
        ck_assert_int_eq(read.encoding_errors, expected->encoding_errors);
        tdm_text_free(&named);
        tdm_records_free(&read);
    }
    ck_assert_ok(tdm_folder_remove(folder));
}

#define CHECK_CASES(format, cases) check_cases(format, cases, sizeof cases / sizeof cases[0])

/* ---- documents ------------------------------------------------------------------------------- */

START_TEST(test_a_line_is_a_document)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_LINE};
    static const text_case cases[] = {
        {TEXT("a\nb c\n\n d \n"), "<a><b c>< d >", NULL, 0},
        {TEXT("a\r\n\r\nb\r\n \t\v\f\r\nc"), "<a><b><c>", NULL, 0},
        {TEXT("one\rline\r\r\n"), "<one\rline\r>", NULL, 0},
        {TEXT("\xef\xbb\xbf"
              "a\nb"),
         "<a><b>", NULL, 0},
        {TEXT("\xef\xbb\xbf\n\xef\xbb\xbf"
              "b"),
         "<\xef\xbb\xbf"
         "b>",
         NULL, 0},
        {TEXT("\n\n \n\t"), "", NULL, 0},
        {TEXT("\xe3\x80\x80\n\xc2\xa0\n"), "<\xe3\x80\x80><\xc2\xa0>", NULL, 0},
    };
    CHECK_CASES(&format, cases);
}
END_TEST

START_TEST(test_blank_lines_end_documents)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_BLANK_LINE};
    static const text_case cases[] = {
        {TEXT("a\nb\n\nc\n"), "<a\nb><c>", NULL, 0},
        {TEXT("\n\n \n a\nb \n\t\n\n\n\nc\nd\n\n\n"), "< a\nb ><c\nd>", NULL, 0},
        {TEXT("a\r\nb\r\n\r\nc\r\n"), "<a\r\nb><c>", NULL, 0},
        {TEXT("a\rb\r\n\r\r\nc"), "<a\rb><c>", NULL, 0},
        {TEXT("\n \n\r\n"), "", NULL, 0},
        {TEXT("\xef\xbb\xbf\na"), "<a>", NULL, 0},
        {TEXT("a"), "<a>", NULL, 0},
    };
    CHECK_CASES(&format, cases);
}
END_TEST

START_TEST(test_a_file_is_a_document)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_FILE};
    static const text_case cases[] = {
        {TEXT("a\nb\n\nc\n"), "<a\nb\n\nc>", NULL, 0},
        {TEXT("\n\n \r\na\r\n \r\nb\r\n\n\n"), "<a\r\n \r\nb>", NULL, 0},
        {TEXT(" \n\n"), "", NULL, 0},
    };
    CHECK_CASES(&format, cases);
}
END_TEST

START_TEST(test_zero_bytes_stay)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_BLANK_LINE};
    tdm_new_folder(folder);
    tdm_records_read read;
    const tdm_reading_options options = {.format = format};
    static const char text[] = "a\0b\n\0\n\n\0\n";
    tdm_records_of_bytes(&options, folder, "a.txt", text, sizeof text - 1, &read);
    ck_assert_uint_eq(read.records.length, 10);
    ck_assert_mem_eq(read.records.bytes, "<a\0b\n\0><\0>", 10);
    ck_assert_str_eq(read.bad.bytes, "");
    tdm_records_free(&read);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* A document goes on behind a line that is too long, as another one. */
START_TEST(test_long_lines_are_bad)
{
    static const int documents[] = {TDM_DOCUMENTS_LINE, TDM_DOCUMENTS_BLANK_LINE,
                                    TDM_DOCUMENTS_FILE};
    static const char *const expected[] = {"<a><b><c><d>", "<a\nb><c><d>", "<a\nb><c\n\nd>"};
    char line[1025];
    memset(line, 'x', sizeof line);
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "a\nb\n%.1025s\r\nc\n\nd\n%.1025s", line, line));
    tdm_new_folder(folder);
    for (int i = 0; i < 3; i++) {
        const tdm_reading_options options = {
            .format = {.type = TDM_FORMAT_TEXT, .documents = documents[i]},
            .max_record_bytes = 1024};
        tdm_records_read read;
        tdm_records_of_bytes(&options, folder, "a.txt", text.bytes, text.length, &read);
        ck_assert_str_eq(read.records.bytes, expected[i]);
        ck_assert_str_eq(read.bad.bytes, "a.txt:3: longer than data.max_record_bytes\n"
                                         "a.txt:7: longer than data.max_record_bytes\n");
        tdm_records_free(&read);
    }
    tdm_text_free(&text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* A document is held out where the hash of its bytes says so, wherever it stands. */
START_TEST(test_documents_are_held_out_whole)
{
    static const char *const texts[] = {"a\nb\n\nc\nd\n\ne\nf\n\ng\n\nh\ni\nj\n\nk\n",
                                        "k\n\ng\n\n\na\nb\n\nh\ni\nj\n\ne\nf\n\nc\nd"};
    tdm_new_folder(folder);
    tdm_records_read read[2][2];
    for (int t = 0; t < 2; t++) {
        for (int part = 0; part < 2; part++) {
            const tdm_reading_options options = {
                .format = {.type = TDM_FORMAT_TEXT, .documents = TDM_DOCUMENTS_BLANK_LINE},
                .selection = part == 0 ? TDM_SELECT_TRAINING : TDM_SELECT_HELD_OUT,
                .hold_out = 0.4};
            tdm_records_of_bytes(&options, folder, "a.txt", texts[t], strlen(texts[t]),
                                 &read[t][part]);
        }
        ck_assert_int_eq(read[t][0].rows + read[t][1].rows, 6);
        ck_assert_int_gt(read[t][1].rows, 0);
    }
    static const char *const records[] = {"<a\nb>", "<c\nd>", "<e\nf>", "<g>", "<h\ni\nj>", "<k>"};
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(strstr(read[0][1].records.bytes, records[i]) != NULL,
                         strstr(read[1][1].records.bytes, records[i]) != NULL);
    for (int i = 0; i < 4; i++)
        tdm_records_free(&read[i / 2][i % 2]);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- encoding -------------------------------------------------------------------------------- */

#define BAD_A "\xc0\xaf"         /* overlong */
#define BAD_B "\xe0\x80\xaf"     /* overlong */
#define BAD_C "\xf0\x80\x80\xaf" /* overlong */
#define BAD_D "\xed\xa0\x80"     /* a surrogate */
#define BAD_E "\xf4\x90\x80\x80" /* above U+10FFFF */
#define BAD_F "\x80"             /* stray */
#define BAD_G "\xe2\x82"         /* cut off */
#define BAD_H "\xff"

static const char *const bad_sequences[] = {BAD_A, BAD_B, BAD_C, BAD_D, BAD_E, BAD_F, BAD_G, BAD_H};

START_TEST(test_utf8_errors_are_found_anywhere)
{
    char text[200];
    for (size_t i = 0; i < sizeof bad_sequences / sizeof *bad_sequences; i++) {
        size_t bytes = strlen(bad_sequences[i]);
        for (size_t before = 0; before < 100; before++) {
            memset(text, 'a', sizeof text);
            if (before >= 4)
                memcpy(text + before - 4, "\xf0\x9f\x98\x80", 4);
            memcpy(text + before, bad_sequences[i], bytes);
            ck_assert_uint_eq(tdm_utf8_error(text, sizeof text), before);
            ck_assert_uint_eq(tdm_utf8_error(text, before + bytes), before);
            ck_assert_uint_eq(tdm_utf8_error(text, before), before);
        }
    }
    /* The first and last characters of each length. */
    static const char good[] =
        "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"
        "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
    ck_assert(tdm_utf8_valid(good, sizeof good - 1));
    ck_assert(tdm_utf8_valid("", 0));
}
END_TEST

START_TEST(test_encoding_errors_are_replaced_and_counted)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_BLANK_LINE,
                                              .encoding_errors = TDM_ENCODING_REPLACE};
    static const text_case cases[] = {
        {TEXT("a" BAD_A "\n\nb" BAD_B "\n\n" BAD_C "\n\nok\n\n" BAD_D),
         "<a" BAD_A "><b" BAD_B "><" BAD_C "><ok><" BAD_D ">", NULL, 4},
        {TEXT(BAD_E "\n" BAD_F "\n\n" BAD_G "\n" BAD_H "\n"),
         "<" BAD_E "\n" BAD_F "><" BAD_G "\n" BAD_H ">", NULL, 2},
    };
    CHECK_CASES(&format, cases);
}
END_TEST

START_TEST(test_records_with_encoding_errors_are_dropped)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_BLANK_LINE,
                                              .encoding_errors = TDM_ENCODING_SKIP};
    static const text_case cases[] = {
        {TEXT("a\n" BAD_A "\n\nb\n\n\nc\n" BAD_B "\n\n" BAD_C "\n\nok\n\n" BAD_D), "<b><ok>",
         "dropped $:1: is not valid UTF-8\ndropped $:7: is not valid UTF-8\n"
         "dropped $:10: is not valid UTF-8\ndropped $:14: is not valid UTF-8\n",
         4},
    };
    CHECK_CASES(&format, cases);
}
END_TEST

START_TEST(test_encoding_errors_are_fatal)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_BLANK_LINE,
                                              .encoding_errors = TDM_ENCODING_FAIL};
    static const text_case cases[] = {
        {TEXT("a\nbc" BAD_A "\n\nb\n\n\n" BAD_B "\n\n\n"), "<b>",
         "fatal $:2: byte 3 of the line is not valid UTF-8\n"
         "fatal $:7: byte 1 of the line is not valid UTF-8\n",
         2},
    };
    CHECK_CASES(&format, cases);
}
END_TEST

/* ---- JSON Lines ------------------------------------------------------------------------------ */

START_TEST(test_json_lines)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_JSONL};
    static const text_case cases[] = {
        {TEXT(
             "{\"text\": \"a b\"}\n{\"id\": 7, \"text\": \"c\", \"more\": [1, {\"x\": null}]}\r\n"),
         "<a b><c>", NULL, 0},
        {TEXT("\xef\xbb\xbf{\"text\":\"a\"}"), "<a>", NULL, 0},
        {TEXT("\n \t\r\n{\"text\":\"\"}\n{\"text\":\" \\n\\t\"}\n{\"text\":\"x\"}\n"), "<x>", NULL,
         0},
        {TEXT("{\"text\": \"a\\nb\\r\\n\\tc\\\\\\/\"}\n"), "<a\nb\r\n\tc\\/>", NULL, 0},
        {TEXT("{\"text\":\"\\u00e9\\u4e2d\\ud83d\\ude00\"}\n{\"te\\u0078t\":\"k\"}\n"),
         "<\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80><k>", NULL, 0},
        {TEXT("{\"n\": 123456789012345678901234567890, \"text\": \"big\"}\n"), "<big>", NULL, 0},
    };
    CHECK_CASES(&format, cases);
}
END_TEST

START_TEST(test_lines_that_are_no_good_json)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_JSONL};
    static const text_case cases[] = {
        {TEXT("text\n{\"text\": \"a\"}\n{\"text\": \"b\n"), "<a>",
         "$:1: is not JSON: '[' or '{' expected\n$:3: is not JSON: premature end of input\n", 0},
        {TEXT("{\"text\": \"a\"} x\n[\"text\"]\n"), "",
         "$:1: is not JSON: end of file expected\n$:2: is a JSON array, expected an object\n", 0},
        {TEXT("{\"texts\": \"a\"}\n{\"text\": 1}\n{\"text\": null}\n{\"a\": {\"text\": \"b\"}}\n"),
         "",
         "$:1: text: is missing\n$:2: text: is not a string\n$:3: text: is not a string\n"
         "$:4: text: is missing\n",
         0},
        {TEXT("{\"text\":\"a\",\"text\":\"b\"}\n{\"text\":\"c\"}\n"), "<c>",
         "$:1: is not JSON: duplicate object key\n", 0},
        {TEXT("{\"text\":\"\\ud83d\"}\n{\"text\":\"\\ud83d\\u0041\"}\n{\"text\":\"\\ude00\"}\n"),
         "",
         "$:1: is not JSON: invalid Unicode '\\uD83D'\n"
         "$:2: is not JSON: invalid Unicode '\\uD83D\\u0041'\n"
         "$:3: is not JSON: invalid Unicode '\\uDE00'\n",
         0},
        {TEXT("{\"text\":\"a\tb\"}\n{\"text\":\"a\0b\"}\n"), "",
         "$:1: is not JSON: control character 0x9\n$:2: is not JSON: control character 0x0\n", 0},
        {TEXT("{\"text\":\"\\x\"}\n{\"text\":\"\\u12g4\"}\n{'text':\"a\"}\n{\"text\":\"a\",}\n"),
         "",
         "$:1: is not JSON: invalid escape\n$:2: is not JSON: invalid escape\n"
         "$:3: is not JSON: string or '}' expected\n$:4: is not JSON: string or '}' expected\n",
         0},
    };
    CHECK_CASES(&format, cases);
}
END_TEST

START_TEST(test_json_of_another_field)
{
    static const tdm_format_options format = {.type = TDM_FORMAT_JSONL, .field = "body"};
    static const text_case cases[] = {
        {TEXT("{\"text\": \"a\", \"body\": \"b\"}\n{\"text\": \"a\"}\n"), "<b>",
         "$:2: body: is missing\n", 0},
    };
    CHECK_CASES(&format, cases);
}
END_TEST

START_TEST(test_json_with_zero_characters)
{
    tdm_new_folder(folder);
    tdm_records_read read;
    const tdm_reading_options options = {.format = {.type = TDM_FORMAT_JSONL}};
    static const char text[] = "{\"text\":\"a\\u0000b\"}\n";
    tdm_records_of_bytes(&options, folder, "a.jsonl", text, sizeof text - 1, &read);
    ck_assert_uint_eq(read.records.length, 5);
    ck_assert_mem_eq(read.records.bytes, "<a\0b>", 5);
    tdm_records_free(&read);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

#define R "\xef\xbf\xbd"

START_TEST(test_json_that_is_not_utf8)
{
    static const text_case replaced[] = {
        {TEXT("{\"text\":\"a" BAD_A "b\"}\n{\"x\":\"" BAD_B "\",\"text\":\"ok\"}\n{" BAD_F "}\n"),
         "<a" R R "b><ok>", "$:3: is not JSON: string or '}' expected\n", 3},
        {TEXT("{\"text\":\"" BAD_C BAD_D BAD_E BAD_G BAD_H "\"}\n"),
         "<" R R R R R R R R R R R R R R ">", NULL, 1},
    };
    static const text_case dropped[] = {{TEXT("{\"text\":\"a" BAD_A "b\"}\n{\"text\":\"ok\"}\n"),
                                         "<ok>", "dropped $:1: is not valid UTF-8\n", 1}};
    static const text_case fatal[] = {{TEXT("{\"text\":\"ok\"}\n{\"text\":\"a" BAD_A "b\"}\n"),
                                       "<ok>",
                                       "fatal $:2: byte 11 of the line is not valid UTF-8\n", 1}};
    tdm_format_options format = {.type = TDM_FORMAT_JSONL};
    CHECK_CASES(&format, replaced);
    format.encoding_errors = TDM_ENCODING_SKIP;
    CHECK_CASES(&format, dropped);
    format.encoding_errors = TDM_ENCODING_FAIL;
    CHECK_CASES(&format, fatal);
}
END_TEST

/* More text than a group of records holds, and records longer than that. */
START_TEST(test_long_json_records)
{
    enum { LONG = (1 << 20) + 4321 };
    char *text;
    ck_assert_ok(tdm_alloc(5 * (size_t)LONG, 1, &text));
    size_t size = 0;
    static const size_t lengths[] = {LONG, 10, LONG / 2, LONG / 2, LONG / 2, 1};
    for (size_t i = 0; i < 6; i++) {
        memcpy(text + size, "{\"text\":\"", 9);
        memset(text + size + 9, 'a' + (int)i, lengths[i]);
        memcpy(text + size + 9 + lengths[i], "\"}\n", 3);
        size += lengths[i] + 12;
    }
    const tdm_reading_options options = {.format = {.type = TDM_FORMAT_JSONL},
                                         .max_record_bytes = 2 * LONG};
    tdm_records_read read;
    tdm_new_folder(folder);
    tdm_records_of_bytes(&options, folder, "a.jsonl", text, size, &read);
    ck_assert_int_eq(read.rows, 6);
    const char *at = read.records.bytes;
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_eq(*at, '<');
        for (size_t b = 1; b <= lengths[i]; b++)
            ck_assert_int_eq(at[b], 'a' + (int)i);
        at += lengths[i] + 2;
    }
    tdm_records_free(&read);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- options --------------------------------------------------------------------------------- */

static tdm_status bind(const char *recipe, tdm_data_options *options)
{
    tdm_config *config;
    TDM_TRY(tdm_config_parse(recipe, strlen(recipe), "r.yaml", NULL, 0, &config));
    tdm_status status =
        tdm_config_bind(tdm_config_get(tdm_config_root(config), "data"), &tdm_data_schema, options);
    tdm_config_free(config);
    return status;
}

START_TEST(test_options_of_text)
{
    tdm_data_options options;
    tdm_format_options format;
    ck_assert_ok(bind("data: {format: text}", &options));
    ck_assert_ok(tdm_data_format_options(&options, &format));
    ck_assert_int_eq(format.type, TDM_FORMAT_TEXT);
    ck_assert_int_eq(format.documents, TDM_DOCUMENTS_BLANK_LINE);
    ck_assert_int_eq(format.encoding_errors, TDM_ENCODING_REPLACE);
    tdm_config_unbind(&tdm_data_schema, &options);
    ck_assert_ok(bind("data: {format: jsonl, field: body, documents: file, encoding_errors: skip}",
                      &options));
    ck_assert_ok(tdm_data_format_options(&options, &format));
    ck_assert_int_eq(format.type, TDM_FORMAT_JSONL);
    ck_assert_int_eq(format.documents, TDM_DOCUMENTS_FILE);
    ck_assert_int_eq(format.encoding_errors, TDM_ENCODING_SKIP);
    ck_assert_str_eq(format.field, "body");
    tdm_config_unbind(&tdm_data_schema, &options);
    ck_assert_fails(bind("data: {documents: paragraph}", &options), TDM_E_CONFIG,
                    "r.yaml:1: data.documents: expected one of line, blank_line, file");
    ck_assert_fails(bind("data: {encoding_errors: ignore}", &options), TDM_E_CONFIG,
                    "r.yaml:1: data.encoding_errors: expected one of replace, skip, fail");
    tdm_record_format *made;
    format.field = "";
    ck_assert_fails(tdm_record_format_create(&format, "f", "", 0, &made), TDM_E_CONFIG,
                    "data.field: names no field");
}
END_TEST

TDM_CHECK_MAIN(test_a_line_is_a_document, test_blank_lines_end_documents, test_a_file_is_a_document,
               test_zero_bytes_stay, test_long_lines_are_bad, test_documents_are_held_out_whole,
               test_utf8_errors_are_found_anywhere, test_encoding_errors_are_replaced_and_counted,
               test_records_with_encoding_errors_are_dropped, test_encoding_errors_are_fatal,
               test_json_lines, test_lines_that_are_no_good_json, test_json_of_another_field,
               test_json_with_zero_characters, test_json_that_is_not_utf8, test_long_json_records,
               test_options_of_text)
