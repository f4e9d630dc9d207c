/* Cells in quotes. */
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/format_rig.h"

#include <string.h>

static const tdm_format_options csv = {.type = TDM_FORMAT_CSV};
static const tdm_format_options tsv = {.type = TDM_FORMAT_TSV};

#define BROKEN   "begins with a quote and ends in another line, which is not supported"
#define BEHIND   "text stands behind its closing quote"
#define UNOPENED "ends with a quote that it does not begin with"

START_TEST(test_quoted_cells)
{
    tdm_check_parsed(&csv, "a,b\n\"1\",2\n1,\"2,3\"\n\"\",\"\"\r\n\",\",\",,\"",
                     "1: 1|2\n2: 1|2,3\n3: |\n4: ,|,,\n");
    /* Doubled ones, first, between others and last. */
    tdm_check_parsed(
        &csv, "a,b\n\"\"\"\",\"x\"\n1,2\n\"say \"\"no\"\"\",\"3\"\n\"4\",\"\"\"\"\"\"\r\n5,6\n",
        "1: \"|x\n2: 1|2\n3: say \"no\"|3\n4: 4|\"\"\n5: 5|6\n");
    /* Those of a cell that does not stand in quotes are its own. */
    tdm_check_parsed(&csv, "a,b\n1,x\"y\"\nx\"\"y,\"\"\"\"\n", "1: 1|x\"y\"\n2: x\"\"y|\"\n");
    tdm_check_parsed(&tsv, "a\tb\n\"1\"\t\"\"\n", "1: \"1\"|\"\"\n");
}
END_TEST

START_TEST(test_quotes_that_are_refused)
{
    tdm_check_parsed(
        &csv, "a,b\n1,\"\n\"a\n\"x\"y,2\n\"x\" ,2\n\"1\",2,3\n\"1,2\"\n5,6\n\"\"\",1\n\",\"\n",
        "1! 1: " BROKEN "\n2! 0: " BROKEN "\n3! 0: " BEHIND "\n4! 0: " BEHIND "\n"
        "5! -1: 3 columns, expected 2\n6! -1: 1 columns, expected 2\n7: 5|6\n"
        "8! 0: " BROKEN "\n9! -1: 1 columns, expected 2\n");
    /* Both lines of a cell that is broken, though the second has as many cells. */
    tdm_check_parsed(&csv, "a,b\n\"one\ntwo\",x\ny,\"one\ntwo, and \"\"three\"\"\"\n",
                     "1! 0: " BROKEN "\n2! 0: " UNOPENED "\n3! 1: " BROKEN "\n4! 1: " UNOPENED
                     "\n");
}
END_TEST

/* Names may stand in quotes, and columns that are not used, too. */
START_TEST(test_quotes_in_headers)
{
    tdm_parser p;
    tdm_check_parsed(&csv, "\"a\",\"b,c\"\r\n1,\"2\"\n", "1: 1|2\n");
    ck_assert_fails(tdm_parser_try_open(&p, &csv, "a,\"b\nc\""), TDM_E_DATA,
                    "f.csv:1: column 2 of the header " BROKEN);
    tdm_parser_close(&p);
    ck_assert_fails(tdm_parser_try_open(&p, &csv, "\"a\"\"b\",c\n"), TDM_E_DATA,
                    "f.csv:1: column 1 of the header holds a quote");
    tdm_parser_close(&p);
    ck_assert_ok(tdm_parser_try_open(&p, &csv, "a,b\n"));
    tdm_file_layout_deinit(&p.layout);
    const char *text = "\"x\",\"b\",\"a\"\n\"1,1\",\"2\",\"\"\"\"\n\"1\n3,4,5\n";
    ck_assert_ok(p.format->type->open_file(p.format, "g.csv", text, 11, &p.layout));
    tdm_parser_parse(&p, text, strlen(text));
    tdm_parser_check(&p, "1: \"|2\n2! -1: " BROKEN "\n3: 5|4\n");
    tdm_parser_close(&p);
}
END_TEST

/* A text that begins with a separator, in its first byte. */
START_TEST(test_an_empty_first_cell)
{
    char *names[] = {"a", "b"};
    const tdm_format_options options = {
        .type = TDM_FORMAT_CSV, .header = TDM_HEADER_NO, .columns = {names, 2}};
    tdm_check_parsed(&options, ",x\n,\"y\"\n", "0: |x\n1: |y\n");
    tdm_check_parsed(&options, ",\"\"\"\"\n", "0: |\"\n");
}
END_TEST

/* Groups are made with and without doubled quotes, as the lines come. */
START_TEST(test_many_quoted_lines)
{
    static const char *const cells[][2] = {{"\"", "\"\"\"\""}, {",", "\",\""}, {"x", "x"}};
    tdm_text text = {0}, expected = {0};
    ck_assert_ok(tdm_text_printf(&text, "a,b\n"));
    for (int i = 1; i <= 2000; i++) {
        const char *const *cell = cells[i > 1000 || i % 7 == 0 ? i % 3 : 1 + i % 2];
        const char *quote = i % 4 == 0 ? "\"" : "";
        ck_assert_ok(tdm_text_printf(&text, "%s%d%s,%s\n", quote, i, quote, cell[1]));
        ck_assert_ok(tdm_text_printf(&expected, "%d: %d|%s\n", i, i, cell[0]));
    }
    tdm_check_parsed(&csv, text.bytes, expected.bytes);
    tdm_text_free(&text);
    tdm_text_free(&expected);
}
END_TEST

/* More than a group holds. */
START_TEST(test_long_cells_with_doubled_quotes)
{
    static char letters[700000];
    tdm_text text = {0}, expected = {0};
    memset(letters, 'x', sizeof letters - 1);
    ck_assert_ok(tdm_text_printf(&text, "a,b\n"));
    for (int i = 1; i <= 5; i++) {
        ck_assert_ok(tdm_text_printf(&text, "%d,\"\"\"%s\"\n", i, letters));
        ck_assert_ok(tdm_text_printf(&expected, "%d: %d|\"%s\n", i, i, letters));
    }
    tdm_check_parsed(&csv, text.bytes, expected.bytes);
    tdm_text_free(&text);
    tdm_text_free(&expected);
}
END_TEST

/* Its separators are more than a scan notes. */
START_TEST(test_a_quoted_cell_of_many_separators)
{
    tdm_text text = {0}, expected = {0};
    ck_assert_ok(tdm_text_printf(&text, "a,b\n1,\""));
    ck_assert_ok(tdm_text_printf(&expected, "1: 1|"));
    for (int i = 0; i < 50000; i++) {
        ck_assert_ok(tdm_text_printf(&text, ","));
        ck_assert_ok(tdm_text_printf(&expected, ","));
    }
    ck_assert_ok(tdm_text_printf(&text, "\"\n2,3\n"));
    ck_assert_ok(tdm_text_printf(&expected, "\n2: 2|3\n"));
    tdm_check_parsed(&csv, text.bytes, expected.bytes);
    tdm_text_free(&text);
    tdm_text_free(&expected);
}
END_TEST

TDM_CHECK_MAIN(test_quoted_cells, test_quotes_that_are_refused, test_quotes_in_headers,
               test_an_empty_first_cell, test_many_quoted_lines,
               test_long_cells_with_doubled_quotes, test_a_quoted_cell_of_many_separators)
