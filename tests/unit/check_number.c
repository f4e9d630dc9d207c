/* Numbers out of text against strtod, transforms, bins. */
#include "features/number.h"
#include "tests/support/check_main.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t random_word(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* The grammar, literally. */
static bool is_number(const char *text)
{
    size_t at = strspn(text, "+-");
    if (at > 1)
        return false;
    size_t digits = strspn(text + at, "0123456789");
    at += digits;
    if (text[at] == '.') {
        size_t fraction = strspn(text + at + 1, "0123456789");
        at += 1 + fraction;
        digits += fraction;
    }
    if (digits == 0)
        return false;
    if (text[at] == 'e' || text[at] == 'E') {
        at++;
        at += text[at] == '+' || text[at] == '-';
        size_t exponent = strspn(text + at, "0123456789");
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return text[at] == '\0';
}

static void check_text(const char *text)
{
    /* Behind and before it stands what would change the number. */
    char framed[200];
    snprintf(framed, sizeof framed, "9%s9", text);
    double number = 17;
    bool parsed = tdm_parse_number(framed + 1, strlen(text), &number);
    double expected = is_number(text) ? strtod(text, NULL) : NAN;
    ck_assert_msg(parsed == (bool)isfinite(expected), "\"%s\" parsed: %d", text, parsed);
    if (parsed)
        ck_assert_msg(memcmp(&number, &expected, sizeof number) == 0, "\"%s\": %.17g, not %.17g",
                      text, number, expected);
}

START_TEST(test_texts_that_are_or_are_no_numbers)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "+0",
        "1",
        "-1",
        "+1",
        "260.0",
        "1.",
        ".5",
        "-.5e1",
        ".",
        "",
        "-",
        "+",
        "e",
        "e5",
        ".e5",
        "1e",
        "1e+",
        "1e-",
        "1e5",
        "1E-5",
        "1e+05",
        "1e5.0",
        "1.2.3",
        "--1",
        "+-1",
        "1-",
        "1 ",
        " 1",
        "0x10",
        "0x",
        "1_000",
        "1,5",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "infinity",
        "1e308",
        "1e309",
        "-1e309",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "4.9e-324",
        "2.4e-324",
        "2.5e-324",
        "1e-400",
        "-1e-400",
        "0e999999999",
        "0e-999999999",
        "1e999999999999",
        "1e-999999999999",
        "9007199254740993",
        "9007199254740992",
        "9007199254740991",
        "99999999999999999999",
        "123456789012345",
        "1234567890123456",
        "0.000000000000000000000000000001",
        "100000000000000000000000",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "123456789012345e22",
        "123456789012345e-22",
        "123456789012345e23",
        "0.1",
        "0.2",
        "0.3",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649",
        "00000000000000000000000000000000000000000000000000000000000001",
        "0.00000000000000000000000000000000000000000000000000000000000001e60",
        "1\0002",
        "1\t",
        "\n",
        "1f",
        "1d",
        "١"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_text(texts[i]);
}
END_TEST

START_TEST(test_long_texts)
{
    char text[400];
    double number;
    memset(text, '1', sizeof text);
    ck_assert(tdm_parse_number(text, 127, &number));
    text[127] = '\0';
    ck_assert(number == strtod(text, NULL));
    text[127] = '1';
    ck_assert(!tdm_parse_number(text, 128, &number));
    memset(text, '0', sizeof text);
    ck_assert(!tdm_parse_number(text, 400, &number));
}
END_TEST

START_TEST(test_random_texts)
{
    static const char alphabet[] = "0123456789012345678900000..eE+-x";
    uint64_t state = 1;
    for (int round = 0; round < 300000; round++) {
        char text[48];
        size_t length = random_word(&state) % (round % 3 == 0 ? 45 : 9);
        for (size_t i = 0; i < length; i++)
            text[i] = alphabet[random_word(&state) % (sizeof alphabet - 1)];
        text[length] = '\0';
        check_text(text);
    }
}
END_TEST

START_TEST(test_random_numbers)
{
    static const char *const formats[] = {"%.17g", "%.16g", "%.15g", "%.6f", "%g", "%.20e", "%.3e"};
    uint64_t state = 2;
    for (int round = 0; round < 100000; round++) {
        uint64_t bits = (uint64_t)random_word(&state) << 33 ^ (uint64_t)random_word(&state) << 11 ^
                        random_word(&state);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (round % 2 == 0)
            x = ((double)random_word(&state) - 1e9) / (1 << random_word(&state) % 20);
        if (!isfinite(x))
            continue;
        char text[400];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, formats[round % 7], x);
#pragma GCC diagnostic pop
        if (strlen(text) < 128)
            check_text(text);
    }
}
END_TEST

/* A decimal comma in the locale changes nothing. */
START_TEST(test_locale_does_not_matter)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"};
    for (size_t i = 0; i < 4; i++)
        setlocale(LC_ALL, names[i]);
    double number;
    ck_assert(tdm_parse_number("1234567890.12345678901", 22, &number));
    ck_assert(number == 1234567890.12345678901);
    ck_assert(!tdm_parse_number("1,5", 3, &number));
}
END_TEST

/* ---- short integers -------------------------------------------------------------------------- */

static void check_short(const char *text, size_t bytes)
{
    char framed[32] = "0000000";
    memset(framed, '7', 8);
    memcpy(framed + 8, text, bytes);
    framed[8 + bytes] = '7';
    int32_t value = 12345;
    bool parsed = tdm_parse_short_integer(framed + 8, (uint32_t)bytes, &value);
    size_t digits = bytes > 0 && text[0] == '-' ? 1 : 0;
    bool good = bytes > digits && bytes <= 8;
    for (size_t i = digits; i < bytes; i++)
        good = good && text[i] >= '0' && text[i] <= '9';
    ck_assert_msg(parsed == good, "\"%.*s\" parsed: %d", (int)bytes, text, parsed);
    if (good) {
        char copy[16] = {0};
        memcpy(copy, text, bytes);
        ck_assert_int_eq(value, strtol(copy, NULL, 10));
    }
}

START_TEST(test_short_integers)
{
    char text[16];
    for (int x = -2000000; x<2000000; x += x> - 2000 && x < 2000 ? 1 : 137)
        check_short(text, (size_t)snprintf(text, sizeof text, "%d", x));
    static const char *const texts[] = {
        "",          "-",        "--1", "+1", "00000000", "99999999", "100000000", "-9999999",
        "-99999999", "0000000a", "1.0", " 1", "1 ",       "-0",       "000"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_short(texts[i], strlen(texts[i]));
    /* Every byte at every place of every length. */
    for (size_t bytes = 1; bytes <= 9; bytes++) {
        for (size_t at = 0; at < bytes; at++) {
            for (int byte = 0; byte < 256; byte++) {
                memset(text, '5', sizeof text);
                text[at] = (char)byte;
                check_short(text, bytes);
            }
        }
    }
}
END_TEST

/* ---- transforms ------------------------------------------------------------------------------ */

static const double extremes[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  2,
                                  2.5,
                                  3,
                                  1e10,
                                  -1e10,
                                  DBL_MAX,
                                  -DBL_MAX,
                                  DBL_MIN,
                                  -DBL_MIN,
                                  4.9e-324,
                                  -4.9e-324,
                                  FLT_MAX,
                                  -FLT_MAX,
                                  1e300,
                                  -1e300,
                                  0x1p63,
                                  -0x1p63,
                                  0x1p62,
                                  1.9999999999999998,
                                  2.0000000000000004,
                                  -0.9999999999999999};

START_TEST(test_transforms_are_total)
{
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
        for (int transform = 0; transform <= TDM_TRANSFORM_CLIP; transform++) {
            double x = extremes[i];
            double y = tdm_transform_apply((tdm_transform)transform, x, -5, 7.5);
            ck_assert_msg(isfinite(y), "transform %d of %g is %g", transform, x, y);
            int64_t bin = tdm_transform_bin((tdm_transform)transform, x, -5, 7.5);
            double rounded = transform == TDM_TRANSFORM_LN_SQUARED ? trunc(y) : floor(y);
            if (rounded >= 0x1p63)
                ck_assert_int_eq(bin, INT64_MAX);
            else if (rounded <= -0x1p63)
                ck_assert_int_eq(bin, INT64_MIN);
            else
                ck_assert(rounded == (double)bin);
        }
    }
}
END_TEST

START_TEST(test_transforms_are_what_they_are_called)
{
    static const double xs[] = {-7, -3.5, -1, -0.25, 0, 0.25, 1, 2, 2.5, 3, 17, 1e6};
    for (size_t i = 0; i < sizeof xs / sizeof xs[0]; i++) {
        double x = xs[i];
        ck_assert(tdm_transform_apply(TDM_TRANSFORM_NONE, x, 0, 0) == x);
        ck_assert(tdm_transform_apply(TDM_TRANSFORM_IDENTITY, x, 0, 0) == x);
        ck_assert_double_eq_tol(tdm_transform_apply(TDM_TRANSFORM_LOG1P, x, 0, 0),
                                x < 0 ? 0 : log(1 + x), 1e-14);
        ck_assert_double_eq_tol(tdm_transform_apply(TDM_TRANSFORM_SIGNED_LOG, x, 0, 0),
                                x < 0 ? -log(1 - x) : log(1 + x), 1e-14);
        ck_assert_double_eq_tol(tdm_transform_apply(TDM_TRANSFORM_LN_SQUARED, x, 0, 0),
                                x > 2 ? pow(log(x), 2) : x, 1e-11);
        ck_assert(tdm_transform_apply(TDM_TRANSFORM_CLIP, x, -1, 2.5) == (x < -1    ? -1
                                                                          : x > 2.5 ? 2.5
                                                                                    : x));
    }
    /* Criteo's: int(math.log(x) ** 2) for x > 2, else int(x). */
    static const struct {
        double x;
        int64_t bin;
    } bins[] = {{-3, -3}, {-0.5, 0}, {2, 2},    {2.9, 1},      {3, 1},
                {4, 1},   {5, 2},    {100, 21}, {1618112, 204}};
    for (size_t i = 0; i < sizeof bins / sizeof bins[0]; i++)
        ck_assert_int_eq(tdm_transform_bin(TDM_TRANSFORM_LN_SQUARED, bins[i].x, 0, 0), bins[i].bin);
}
END_TEST

/* By tables or by definition, a bin is the same: at every boundary, and here and there. */
START_TEST(test_bins_by_tables)
{
    static tdm_ln_squared_bins tables;
    tdm_ln_squared_bins_init(&tables);
    for (int32_t x = -10; x < 200000; x++)
        ck_assert_int_eq(tdm_ln_squared_bin(&tables, x),
                         tdm_transform_bin(TDM_TRANSFORM_LN_SQUARED, x, 0, 0));
    uint64_t state = 3;
    for (int round = 0; round < 300000; round++) {
        int32_t x = (int32_t)(random_word(&state) % 100000000);
        ck_assert_int_eq(tdm_ln_squared_bin(&tables, x),
                         tdm_transform_bin(TDM_TRANSFORM_LN_SQUARED, x, 0, 0));
    }
    int32_t last = 0;
    for (int bin = 1; bin <= 339; bin++) {
        int32_t middle = (int32_t)exp(sqrt((double)bin));
        for (int32_t x = middle < 4 ? 0 : middle - 3; x <= middle + 3 && x < 100000000; x++) {
            int32_t got = tdm_ln_squared_bin(&tables, x);
            ck_assert_int_eq(got, tdm_transform_bin(TDM_TRANSFORM_LN_SQUARED, x, 0, 0));
            last = got > last ? got : last;
        }
    }
    ck_assert_int_eq(last, 339);
    ck_assert_int_eq(tdm_ln_squared_bin(&tables, 99999999), 339);
    for (int power = 1; power < 27; power++) {
        for (int32_t x = (1 << power) - 2; x <= (1 << power) + 2 && x < 100000000; x++)
            ck_assert_int_eq(tdm_ln_squared_bin(&tables, x),
                             tdm_transform_bin(TDM_TRANSFORM_LN_SQUARED, x, 0, 0));
    }
}
END_TEST

TDM_CHECK_MAIN(test_texts_that_are_or_are_no_numbers, test_long_texts, test_random_texts,
               test_random_numbers, test_locale_does_not_matter, test_short_integers,
               test_transforms_are_total, test_transforms_are_what_they_are_called,
               test_bins_by_tables)
