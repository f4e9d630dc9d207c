#include "core/config_internal.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 17 /* tell any two doubles apart */

static const char *skip_digits(const char *text)
{
    while (*text >= '0' && *text <= '9')
        text++;
    return text;
}

static const char *skip_sign(const char *text)
{
    return *text == '-' || *text == '+' ? text + 1 : text;
}

/* Where the digits of a decimal integer end; NULL where it has a leading zero. */
static const char *scan_integer(const char *digits)
{
    const char *end = skip_digits(digits);
    return digits[0] == '0' && end - digits > 1 ? NULL : end;
}

/* Where the digits before the exponent end, or NULL where there are none. */
static const char *scan_mantissa(const char *text)
{
    text = skip_sign(text);
    const char *end = scan_integer(text);
    if (end == NULL)
        return NULL;
    int64_t digits = end - text;
    if (*end == '.') {
        const char *fraction = end + 1;
        end = skip_digits(fraction);
        digits += end - fraction;
    }
    return digits > 0 ? end : NULL;
}

/* Where a number ends; NULL where the text does not begin with one. *exponent is where its "e" is,
 * or its end. */
static const char *scan_float(const char *text, const char **exponent)
{
    const char *end = scan_mantissa(text);
    *exponent = end;
    if (end == NULL || (*end != 'e' && *end != 'E'))
        return end;
    const char *digits = skip_sign(end + 1);
    end = skip_digits(digits);
    return end > digits ? end : NULL;
}

static double to_double(const char *text)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double value = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    return value;
}

static tdm_number_result convert(const char *text, double *out)
{
    errno = 0;
    *out = to_double(text);
    bool lost = errno == ERANGE && (isinf(*out) || *out == 0);
    return lost ? TDM_NUMBER_TOO_LARGE : TDM_NUMBER_OK;
}

tdm_number_result tdm_number_parse_int(const char *text, int64_t *out)
{
    const char *digits = skip_sign(text);
    const char *end = scan_integer(digits);
    if (end == NULL || end == digits || *end != '\0')
        return TDM_NUMBER_MALFORMED;
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return errno == ERANGE ? TDM_NUMBER_TOO_LARGE : TDM_NUMBER_OK;
}

tdm_number_result tdm_number_parse_float(const char *text, double *out)
{
    const char *exponent;
    const char *end = scan_float(text, &exponent);
    if (end == NULL || *end != '\0')
        return TDM_NUMBER_MALFORMED;
    return convert(text, out);
}

tdm_number_result tdm_number_parse_percent(const char *text, double *out)
{
    const char *exponent;
    const char *end = scan_float(text, &exponent);
    char shifted[96];
    if (end == NULL || strcmp(end, "%") != 0 || end - text > 64)
        return TDM_NUMBER_MALFORMED;
    long power = exponent == end ? 0 : strtol(exponent + 1, NULL, 10);
    if (power > 9999 || power < -9999)
        return TDM_NUMBER_TOO_LARGE;
    snprintf(shifted, sizeof shifted, "%.*se%ld", (int)(exponent - text), text, power - 2);
    return convert(shifted, out);
}

/* printf("%.*<conversion>", precision, value) with a point, whatever the locale. */
static void print_number(char text[TDM_NUMBER_BYTES], char conversion, int precision, double value)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t callers = uselocale(c_locale);
    if (conversion == 'e')
        snprintf(text, TDM_NUMBER_BYTES, "%.*e", precision, value);
    else
        snprintf(text, TDM_NUMBER_BYTES, "%.*g", precision, value);
    uselocale(callers);
    freelocale(c_locale);
}

/* The fewest significant digits that tell `value` from its neighbours. */
static int digits_needed(double value)
{
    char text[TDM_NUMBER_BYTES];
    int digits = 0;
    do
        print_number(text, 'e', digits++, value);
    while (digits < MAX_DIGITS && to_double(text) != value);
    return digits;
}

void tdm_number_format(double value, char text[TDM_NUMBER_BYTES])
{
    bool whole = fabs(value) < 1e15 && value == trunc(value);
    print_number(text, 'g', whole ? 15 : digits_needed(value), value);
    /* YAML 1.1 readers, PyYAML among them, take 1e-06 for a text and 1.0e-06 for a number. */
    char *exponent = strchr(text, 'e');
    if (exponent != NULL && strchr(text, '.') == NULL) {
        memmove(exponent + 2, exponent, strlen(exponent) + 1);
        memcpy(exponent, ".0", 2);
    }
}

void tdm_number_format_percent(double value, char text[TDM_NUMBER_BYTES])
{
    int digits = digits_needed(value);
    double back;
    print_number(text, 'g', digits < 3 ? 3 : digits, value * 100);
    strcat(text, "%");
    if (tdm_number_parse_percent(text, &back) == TDM_NUMBER_OK && back == value)
        return;
    /* The product was rounded: move the point of the exact digits instead. */
    print_number(text, 'e', digits - 1, value);
    char *exponent = strchr(text, 'e');
    long power = strtol(exponent + 1, NULL, 10);
    snprintf(exponent, TDM_NUMBER_BYTES - (size_t)(exponent - text), "e%ld%%", power + 2);
}
