#include "core/config_internal.h"
#include "core/memory.h"
#include "tests/support/config_options.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

START_TEST(integers_are_read_strictly)
{
    static const char *const bad[] = {"",    "-",  "+",  "1.0", "1e3", "0x10", "10_000",  "4k",
                                      "010", " 1", "1 ", "--1", "1,0", "nan",  "\xd9\xa1"};
    int64_t value;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(tdm_number_parse_int(bad[i], &value) == TDM_NUMBER_MALFORMED, "%s", bad[i]);
    ck_assert_int_eq(tdm_number_parse_int("-9223372036854775808", &value), TDM_NUMBER_OK);
    ck_assert(value == INT64_MIN);
    ck_assert_int_eq(tdm_number_parse_int("+9223372036854775807", &value), TDM_NUMBER_OK);
    ck_assert(value == INT64_MAX);
    ck_assert_int_eq(tdm_number_parse_int("-9223372036854775809", &value), TDM_NUMBER_TOO_LARGE);
    ck_assert_int_eq(tdm_number_parse_int("0", &value), TDM_NUMBER_OK);
    ck_assert_int_eq(value, 0);
}
END_TEST

START_TEST(floats_are_read_strictly)
{
    static const char *const bad[] = {"",     ".",       "e5",   "1e",   "1e+",
                                      "inf",  "nan",     ".inf", "0x1p", "1,5",
                                      "1.5f", "1_000.0", "01.5", "1..2", "1e5.0"};
    double value;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(tdm_number_parse_float(bad[i], &value) == TDM_NUMBER_MALFORMED, "%s", bad[i]);
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0},        {"1.", 1},          {".5", 0.5},    {"-2.5E+3", -2500},
        {"+1e-3", 1e-3}, {"5e-324", 5e-324}, {"0e999", 0.0}, {"1.7976931348623157e308", DBL_MAX}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_int_eq(tdm_number_parse_float(good[i].text, &value), TDM_NUMBER_OK);
        ck_assert_double_eq(value, good[i].value);
    }
    ck_assert_int_eq(tdm_number_parse_float("1e309", &value), TDM_NUMBER_TOO_LARGE);
    ck_assert_int_eq(tdm_number_parse_float("1e-400", &value), TDM_NUMBER_TOO_LARGE);
}
END_TEST

START_TEST(percents_are_read_strictly)
{
    double value;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0.1%", 0.001}, {"100%", 1}, {"0.07%", 0.0007}, {"29%", 0.29}, {"1e-3%", 1e-5}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_int_eq(tdm_number_parse_percent(good[i].text, &value), TDM_NUMBER_OK);
        ck_assert_double_eq(value, good[i].value);
    }
    static const char *const bad[] = {"%", "1", "1%%", "1 %", "%1", "01%", "1e%"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(tdm_number_parse_percent(bad[i], &value), TDM_NUMBER_MALFORMED);
    ck_assert_int_eq(tdm_number_parse_percent("1e99999%", &value), TDM_NUMBER_TOO_LARGE);
    ck_assert_int_eq(tdm_number_parse_percent("1e-99999%", &value), TDM_NUMBER_TOO_LARGE);
    char *longest = tdm_test_repeat("0.", "0", 80, "1%");
    ck_assert_int_eq(tdm_number_parse_percent(longest, &value), TDM_NUMBER_MALFORMED);
    tdm_free(longest);
}
END_TEST

START_TEST(numbers_are_written_with_the_fewest_digits)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {-0.0, "-0"},
                 {1, "1"},
                 {-2.5, "-2.5"},
                 {0.1, "0.1"},
                 {0.001, "0.001"},
                 {1e6, "1000000"},
                 {123456789012345, "123456789012345"},
                 {1e15, "1.0e+15"},
                 {1e-6, "1.0e-06"},
                 {2.5e-7, "2.5e-07"},
                 {1.0 / 3, "0.3333333333333333"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {DBL_MAX, "1.7976931348623157e+308"},
                 {5e-324, "5.0e-324"}};
    char text[TDM_NUMBER_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_number_format(cases[i].value, text);
        ck_assert_str_eq(text, cases[i].text);
    }
    tdm_number_format_percent(0.001, text);
    ck_assert_str_eq(text, "0.1%");
    tdm_number_format_percent(1, text);
    ck_assert_str_eq(text, "100%");
    tdm_number_format_percent(0.5, text);
    ck_assert_str_eq(text, "50%");
}
END_TEST

START_TEST(numbers_read_back_to_the_same_bits)
{
    uint64_t state = 1;
    char text[TDM_NUMBER_BYTES];
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double value, back;
        uint64_t bits = state ^ state >> 29;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        tdm_number_format(value, text);
        ck_assert_int_eq(tdm_number_parse_float(text, &back), TDM_NUMBER_OK);
        ck_assert_mem_eq(&back, &value, sizeof value);
        double share = (double)(bits >> 11) * 0x1p-53;
        tdm_number_format_percent(share, text);
        ck_assert_int_eq(tdm_number_parse_percent(text, &back), TDM_NUMBER_OK);
        ck_assert_mem_eq(&back, &share, sizeof share);
    }
}
END_TEST

/* Switches to a locale with a decimal comma, made here where none is installed. */
static bool use_decimal_comma(void)
{
    if (setlocale(LC_ALL, "de_DE.UTF-8") != NULL)
        return true;
    const char *folder = tdm_test_folder();
    char command[512];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2> /dev/null",
             folder);
    if (system(command) != 0)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

START_TEST(numbers_do_not_depend_on_the_locale)
{
    if (!use_decimal_comma()) {
        tdm_test_skip("no locale with a decimal comma");
        return;
    }
    char text[TDM_NUMBER_BYTES];
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, "1,5");
    double value;
    ck_assert_int_eq(tdm_number_parse_float("1.5", &value), TDM_NUMBER_OK);
    ck_assert_double_eq(value, 1.5);
    tdm_number_format(1.5, text);
    ck_assert_str_eq(text, "1.5");
    setlocale(LC_ALL, "C");
}
END_TEST

TDM_CHECK_MAIN(integers_are_read_strictly, floats_are_read_strictly, percents_are_read_strictly,
               numbers_are_written_with_the_fewest_digits, numbers_read_back_to_the_same_bits,
               numbers_do_not_depend_on_the_locale)
