/* Records out of text, against literal expectations and a byte loop. */
#include "core/log.h"
#include "core/memory.h"
#include "data/options.h"
#include "data/separator_scan.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/format_rig.h"

#include <stdio.h>
#include <string.h>

static const tdm_format_options csv = {.type = TDM_FORMAT_CSV};
static const tdm_format_options tsv = {.type = TDM_FORMAT_TSV};

/* ---- CSV and TSV ----------------------------------------------------------------------------- */

START_TEST(test_header_names_the_columns)
{
    tdm_check_parsed(&csv, "a,b,c\n1,2,3\n,,\n4,,6\n", "1: 1|2|3\n2: ||\n3: 4||6\n");
    tdm_check_parsed(&csv, "a,b,c\r\n1,2,3\r\n,,\r\n4,5,6", "1: 1|2|3\n2: ||\n3: 4|5|6\n");
    tdm_check_parsed(&tsv, "a\tb\n1,x\t2\n\"3\t4\"\n", "1: 1,x|2\n2: \"3|4\"\n");
    tdm_check_parsed(&csv, "a\nx\n\n\r\ny\n", "1: x\n4: y\n");
    tdm_check_parsed(&csv, "a,b\n", "");
}
END_TEST

START_TEST(test_ragged_lines_are_refused)
{
    tdm_check_parsed(&csv, "a,b,c\n1,2\n1,2,3\n1,2,3,4\nx\n\n,,,,,\n",
                     "1! -1: 2 columns, expected 3\n2: 1|2|3\n3! -1: 4 columns, expected 3\n"
                     "4! -1: 1 columns, expected 3\n6! -1: 6 columns, expected 3\n");
}
END_TEST

static void keep_warning(void *context, tdm_log_level level, const char *message)
{
    ck_assert_int_eq(level, TDM_LOG_WARNING);
    snprintf(context, TDM_ERROR_BYTES, "%s", message);
}

START_TEST(test_a_column_that_a_file_lacks_is_named)
{
    char warning[TDM_ERROR_BYTES] = "";
    tdm_parser p = {0};
    tdm_format_options options = {.type = 1};
    ck_assert_ok(tdm_record_format_create(&options, "f.csv", "a,b,c", 5, &p.format));
    tdm_log_set_sink(keep_warning, warning);
    ck_assert_ok(p.format->type->open_file(p.format, "g.csv", "c,a", 3, &p.layout));
    tdm_log_set_sink(NULL, NULL);
    ck_assert_str_eq(warning, "g.csv:1: the header lacks the column b: its values are missing");
    tdm_file_layout_deinit(&p.layout);
    tdm_record_format_destroy(p.format);
}
END_TEST

START_TEST(test_columns_in_another_order)
{
    tdm_parser p;
    ck_assert_ok(tdm_parser_try_open(&p, &csv, "a,b,c\n"));
    ck_assert(p.layout.identity);
    tdm_file_layout_deinit(&p.layout);
    const char *text = "x,c,a\n1,2,3\n4,,5\n6,7,\"\n";
    ck_assert_ok(p.format->type->open_file(p.format, "g.csv", text, 5, &p.layout));
    ck_assert(!p.layout.identity);
    tdm_parser_parse(&p, text, strlen(text));
    tdm_parser_check(
        &p, "1: 3||2\n2: 5||\n"
            "3! 0: begins with a quote and ends in another line, which is not supported\n");
    tdm_parser_close(&p);
}
END_TEST

START_TEST(test_named_columns_without_a_header)
{
    char *names[] = {"a", "b"};
    tdm_format_options options = {
        .type = TDM_FORMAT_CSV, .header = TDM_HEADER_NO, .columns = {names, 2}, .separator = ';'};
    tdm_check_parsed(&options, "1;2\n3;4,5\n", "0: 1|2\n1: 3|4,5\n");
    options.columns.count = 0;
    tdm_parser p;
    ck_assert_fails(tdm_parser_try_open(&p, &options, "1;2\n"), TDM_E_CONFIG,
                    "data.columns: a csv file");
    names[1] = names[0];
    options.columns.count = 2;
    ck_assert_fails(tdm_parser_try_open(&p, &options, "1;2\n"), TDM_E_CONFIG,
                    "data.columns: names a twice");
}
END_TEST

START_TEST(test_headers_that_cannot_be)
{
    tdm_parser p;
    ck_assert_fails(tdm_parser_try_open(&p, &csv, "a,b,a\n"), TDM_E_DATA,
                    "f.csv:1: the header names a twice");
    ck_assert_fails(tdm_parser_try_open(&p, &csv, "a,,c\n"), TDM_E_DATA,
                    "f.csv:1: column 2 of the header");
    ck_assert_fails(tdm_parser_try_open(&p, &csv, "\n"), TDM_E_DATA,
                    "f.csv:1: column 1 of the header");
    ck_assert_fails(tdm_parser_try_open(&p, &csv, "a,\xff\n"), TDM_E_DATA,
                    "f.csv:1: the header is not text");
    tdm_text header = {0};
    for (int i = 0; i <= TDM_MAX_RECORD_COLUMNS; i++)
        ck_assert_ok(tdm_text_printf(&header, "%s%d", i == 0 ? "" : ",", i));
    ck_assert_fails(tdm_parser_try_open(&p, &csv, header.bytes), TDM_E_DATA, "16385 columns");
    tdm_text_free(&header);

    ck_assert_ok(tdm_parser_try_open(&p, &csv, "a,b\n"));
    tdm_file_layout other;
    const char *unlike = "c,d";
    ck_assert_fails(p.format->type->open_file(p.format, "g.csv", unlike, 3, &other), TDM_E_DATA,
                    "g.csv:1: the first line names none of the columns (a, …)");
    tdm_file_layout_deinit(&other);
    ck_assert_fails(p.format->type->open_file(p.format, "g.csv", "b,b", 3, &other), TDM_E_DATA,
                    "g.csv:1: the header names b twice");
    tdm_file_layout_deinit(&other);
    tdm_parser_close(&p);
}
END_TEST

START_TEST(test_text_that_is_no_text)
{
    tdm_parser p;
    ck_assert_ok(tdm_parser_try_open(&p, &csv, "a,b\n"));
    static const char text[] =
        "a,b\n1,2\n1,\0\n\xc3\xa4,\xe2\x82\xac\n\xff,2\n\xed\xa0\x80,2\n"
        "\xc0\xaf,1\n\xf4\x90\x80\x80,1\n\xf0\x9f\x98\x80,1\n\xc3\n,\xe2\x82";
    tdm_parser_parse(&p, text, sizeof text - 1);
    tdm_parser_check(&p, "1: 1|2\n2! -1: holds a NUL byte\n3: \xc3\xa4|\xe2\x82\xac\n"
                         "4! -1: is not valid UTF-8\n5! -1: is not valid UTF-8\n"
                         "6! -1: is not valid UTF-8\n7! -1: is not valid UTF-8\n"
                         "8: \xf0\x9f\x98\x80|1\n9! -1: is not valid UTF-8\n"
                         "10! -1: is not valid UTF-8\n");
    tdm_parser_close(&p);
}
END_TEST

/* More cells than the scan has room for at once: counted, whatever their number. */
START_TEST(test_lines_of_very_many_cells)
{
    tdm_parser p;
    for (int extra = 32000; extra<32800; extra += extra> 32250 && extra < 32300 ? 1 : 50) {
        ck_assert_ok(tdm_parser_try_open(&p, &csv, "a,b\n"));
        char *text;
        ck_assert_ok(tdm_alloc((size_t)extra + 32, 1, &text));
        memcpy(text, "a,b\n1,2\n", 8);
        memset(text + 8, ',', (size_t)extra);
        memcpy(text + 8 + extra, "\n3,4\n", 6);
        char expected[100];
        snprintf(expected, sizeof expected, "1: 1|2\n2! -1: %d columns, expected 2\n3: 3|4\n",
                 extra + 1);
        tdm_parser_parse(&p, text, strlen(text));
        tdm_parser_check(&p, expected);
        tdm_free(text);
        tdm_parser_close(&p);
    }
}
END_TEST

/* ---- Criteo ---------------------------------------------------------------------------------- */

/* `cells` cells "0", "1", …, with an end. */
static void add_cells(tdm_text *text, int cells, const char *end)
{
    for (int i = 0; i < cells; i++)
        ck_assert_ok(tdm_text_printf(text, "%s%d", i == 0 ? "" : "\t", i));
    ck_assert_ok(tdm_text_printf(text, "%s", end));
}

START_TEST(test_criteo_with_and_without_label)
{
    static const tdm_format_options criteo = {.type = TDM_FORMAT_CRITEO};
    for (int first = 38; first <= 41; first++) {
        tdm_text text = {0};
        tdm_parser p;
        add_cells(&text, first, "\r\n");
        for (int cells = 37; cells <= 41; cells++)
            add_cells(&text, cells, "\n");
        ck_assert_ok(tdm_parser_try_open(&p, &criteo, text.bytes));
        ck_assert_int_eq(p.layout.physical_count, first == 39 ? 39 : 40);
        ck_assert_int_eq(tdm_record_format_find(p.format, "C26"), 39);
        ck_assert_int_eq(tdm_record_format_find(p.format, "I13"), 13);
        ck_assert_int_eq(tdm_record_format_find(p.format, "label"), 0);
        ck_assert_int_eq(tdm_record_format_find(p.format, "C27"), -1);
        tdm_parser_parse(&p, text.bytes, text.length);
        for (int line = 0; line < 6; line++) {
            int cells = line == 0 ? first : 36 + line;
            bool good = cells == p.layout.physical_count;
            ck_assert_int_eq(p.records[line] != NULL, good);
            ck_assert_int_eq(p.refused[line] != NULL, !good);
            if (good && cells == 40)
                ck_assert_int_eq(strncmp(p.records[line], "0|1|2|", 6), 0);
            if (good && cells == 39) /* the label is missing */
                ck_assert_int_eq(strncmp(p.records[line], "|0|1|2|", 7), 0);
            if (good)
                ck_assert_str_eq(strrchr(p.records[line], '|') + 1, cells == 40 ? "39" : "38");
        }
        tdm_text_free(&text);
        tdm_parser_close(&p);
    }
}
END_TEST

/* ---- separators ------------------------------------------------------------------------------ */

static void check_separator(const char *text, char expected)
{
    tdm_data_options options = {.format = TDM_FORMAT_CSV, .separator = (char *)(uintptr_t)text};
    tdm_format_options format;
    if (expected != 0) {
        ck_assert_ok(tdm_data_format_options(&options, &format));
        ck_assert_int_eq(format.separator, expected);
    } else {
        ck_assert_fails(tdm_data_format_options(&options, &format), TDM_E_CONFIG,
                        "data.separator: ");
    }
}

START_TEST(test_separator_names)
{
    static const struct {
        const char *text;
        char separator;
    } cases[] = {{"tab", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"space", ' '},  {"pipe", '|'},
                 {"|", '|'},    {"\t", '\t'},   {"\x01", 1},        {"tabs", 0},     {"", 0},
                 {"\n", 0},     {"\r", 0},      {"\"", 0},          {"\xc2\xa7", 0}, {",,", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_separator(cases[i].text, cases[i].separator);
    tdm_data_options options = {.format = TDM_FORMAT_TSV};
    tdm_format_options format;
    ck_assert_ok(tdm_data_format_options(&options, &format));
    ck_assert_int_eq(format.separator, 0);
    ck_assert_int_eq(format.header, TDM_HEADER_NO);
}
END_TEST

/* ---- the scan -------------------------------------------------------------------------------- */

static uint32_t random_word(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* A byte at a time. */
static void check_scan(const char *text, uint32_t begin, uint32_t size, char separator,
                       uint32_t room, uint32_t newline_room)
{
    static uint32_t positions[4096], newlines[4096];
    tdm_separator_scan scan = {.positions = positions, .newlines = newlines};
    tdm_scan_separators(text, begin, size, separator, room, newline_room, &scan);
    ck_assert_uint_le(scan.end, size);
    ck_assert(scan.end == size || (scan.end - begin) % 64 == 0);
    ck_assert(scan.end == size || scan.count >= room || scan.newline_count >= newline_room);
    ck_assert_uint_lt(scan.count, room + 64);
    ck_assert_uint_lt(scan.newline_count, newline_room + 64);
    uint32_t count = 0, newline_count = 0;
    bool plain = true;
    for (uint32_t i = begin; i < scan.end; i++) {
        plain = plain && text[i] != 0 && (unsigned char)text[i] < 0x80;
        if (text[i] != separator && text[i] != '\n')
            continue;
        ck_assert_uint_lt(count, scan.count);
        ck_assert_uint_eq(positions[count], i);
        if (text[i] == '\n') {
            ck_assert_uint_lt(newline_count, scan.newline_count);
            ck_assert_uint_eq(newlines[newline_count++], count);
        }
        count++;
    }
    ck_assert_uint_eq(count, scan.count);
    ck_assert_uint_eq(newline_count, scan.newline_count);
    ck_assert_int_eq(plain, scan.plain);
}

START_TEST(test_scan_at_every_level)
{
    static const char alphabet[] = "ab\t\n\xff";
    uint64_t state = 42;
    int levels = 0;
    for (int level = -1; level < 3; level++) {
        if (!tdm_scan_separators_force(level))
            continue;
        levels++;
        for (int round = 0; round < 3000; round++) {
            /* Exactly the padding that the contract asks for. */
            uint32_t size = random_word(&state) % 700;
            char *text;
            ck_assert_ok(tdm_alloc(size + 2 * TDM_TEXT_PADDING, 1, &text));
            uint32_t letters = 1 + random_word(&state) % 6;
            for (uint32_t i = 0; i < size; i++) {
                uint32_t letter = random_word(&state) % letters;
                text[TDM_TEXT_PADDING + i] = letter == 5 ? '\0' : alphabet[letter];
            }
            memset(text + TDM_TEXT_PADDING + size, '\t', TDM_TEXT_PADDING);
            uint32_t begin = size == 0 ? 0 : random_word(&state) % size;
            check_scan(text + TDM_TEXT_PADDING, begin, size, '\t', 1 + random_word(&state) % 1000,
                       1 + random_word(&state) % 300);
            tdm_free(text);
        }
    }
    tdm_scan_separators_force(-1);
    ck_assert_int_ge(levels, 2);
    ck_assert(!tdm_scan_separators_force(3));
}
END_TEST

/* Random lines, against a literal splitter. */
static void check_random_text(uint64_t seed, int columns)
{
    tdm_text text = {0}, expected = {0};
    uint64_t state = seed;
    tdm_parser p;
    ck_assert_ok(tdm_text_printf(&expected, "%s", ""));
    for (int i = 0; i < columns; i++)
        ck_assert_ok(tdm_text_printf(&text, "%sc%d", i == 0 ? "" : "\t", i));
    ck_assert_ok(tdm_text_printf(&text, "\n"));
    ck_assert_ok(tdm_parser_try_open(&p, &tsv, text.bytes));
    int lines = (int)(random_word(&state) % 700);
    for (int line = 1; line <= lines; line++) {
        int cells = random_word(&state) % 9 == 0 ? (int)(random_word(&state) % 6) : columns;
        size_t start = text.length;
        tdm_text record = {0};
        ck_assert_ok(tdm_text_printf(&record, "%s", ""));
        for (int c = 0; c < cells; c++) {
            char cell[32];
            memset(cell, 'a' + c % 26, sizeof cell);
            int length = (int)(random_word(&state) % 12);
            ck_assert_ok(tdm_text_printf(&text, "%s%.*s", c == 0 ? "" : "\t", length, cell));
            ck_assert_ok(tdm_text_printf(&record, "%s%.*s", c == 0 ? "" : "|", length, cell));
        }
        bool blank = text.length == start;
        if (!blank && cells == columns)
            ck_assert_ok(tdm_text_printf(&expected, "%d: %s\n", line, record.bytes));
        else if (!blank)
            ck_assert_ok(tdm_text_printf(&expected, "%d! -1: %d columns, expected %d\n", line,
                                         cells, columns));
        bool unended = line == lines && random_word(&state) % 2 == 0;
        ck_assert_ok(tdm_text_printf(&text, "%s",
                                     unended                        ? ""
                                     : random_word(&state) % 3 == 0 ? "\r\n"
                                                                    : "\n"));
        tdm_text_free(&record);
    }
    tdm_parser_parse(&p, text.bytes, text.length);
    tdm_parser_check(&p, expected.bytes);
    tdm_parser_close(&p);
    tdm_text_free(&text);
    tdm_text_free(&expected);
}

START_TEST(test_random_text_at_every_level)
{
    for (int level = -1; level < 3; level++) {
        if (!tdm_scan_separators_force(level))
            continue;
        for (uint64_t seed = 0; seed < 60; seed++)
            check_random_text(seed, 1 + (int)(seed % 7) * (int)(seed % 5));
    }
    tdm_scan_separators_force(-1);
}
END_TEST

TDM_CHECK_MAIN(test_header_names_the_columns, test_ragged_lines_are_refused,
               test_columns_in_another_order, test_a_column_that_a_file_lacks_is_named,
               test_named_columns_without_a_header, test_headers_that_cannot_be,
               test_text_that_is_no_text, test_lines_of_very_many_cells,
               test_criteo_with_and_without_label, test_separator_names, test_scan_at_every_level,
               test_random_text_at_every_level)
