#include "core/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale;

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What a number consists of. */
typedef struct number_parts {
    bool negative;
    uint64_t digits;  /* the first 19 significant ones */
    int significant;  /* how many there are in all */
    int64_t exponent; /* of ten, of the last digit in `digits` */
} number_parts;

static size_t take_digits(const char *text, size_t bytes, size_t at, bool fraction,
                          number_parts *parts)
{
    for (; at < bytes && is_digit(text[at]); at++) {
        if (parts->significant > 0 || text[at] != '0')
            parts->significant++;
        if (parts->significant <= 19)
            parts->digits = parts->digits * 10 + (uint64_t)(text[at] - '0');
        parts->exponent += (parts->significant > 19) - (fraction ? 1 : 0);
    }
    return at;
}

static bool take_exponent(const char *text, size_t bytes, size_t *at, number_parts *parts)
{
    if (*at == bytes || (text[*at] != 'e' && text[*at] != 'E'))
        return true;
    size_t i = *at + 1;
    bool negative = i < bytes && text[i] == '-';
    i += i < bytes && (text[i] == '-' || text[i] == '+');
    if (i == bytes)
        return false;
    int64_t value = 0;
    for (; i < bytes && is_digit(text[i]); i++)
        value = value < 100000 ? value * 10 + (text[i] - '0') : value;
    parts->exponent += negative ? -value : value;
    *at = i;
    return true;
}

static bool split_number(const char *text, size_t bytes, number_parts *parts)
{
    *parts = (number_parts){0};
    size_t at = 0;
    if (bytes > 0 && (text[0] == '-' || text[0] == '+')) {
        parts->negative = text[0] == '-';
        at = 1;
    }
    size_t integer = at;
    at = take_digits(text, bytes, at, false, parts);
    size_t count = at - integer;
    if (at < bytes && text[at] == '.') {
        size_t fraction = at + 1;
        at = take_digits(text, bytes, fraction, true, parts);
        count += at - fraction;
    }
    return count > 0 && take_exponent(text, bytes, &at, parts) && at == bytes;
}

bool tdm_parse_number(const char *text, size_t bytes, double *out)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    number_parts parts;
    if (bytes > TDM_MAX_NUMBER_BYTES || !split_number(text, bytes, &parts))
        return false;
    /* Both factors are exact in double, so one operation rounds once (Clinger, 1990). */
    if (parts.significant <= 15 && parts.exponent >= -22 && parts.exponent <= 22) {
        double value = (double)parts.digits;
        value =
            parts.exponent < 0 ? value / powers[-parts.exponent] : value * powers[parts.exponent];
        *out = parts.negative ? -value : value;
        return true;
    }
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_locale);
    char copy[TDM_MAX_NUMBER_BYTES + 1];
    if (c_locale == (locale_t)0)
        return false;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    *out = strtod_l(copy, NULL, c_locale);
    return isfinite(*out);
}
