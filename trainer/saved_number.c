#include "trainer/saved_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_exact_integer(double value)
{
    return fabs(value) <= 0x1p53 && value == floor(value) && !(value == 0.0 && signbit(value));
}

json_t *tdm_saved_double(double value)
{
    if (is_exact_integer(value))
        return json_integer((json_int_t)value);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)bits);
    return json_string(text);
}

bool tdm_saved_double_get(const json_t *json, double *out)
{
    if (json_is_integer(json)) {
        *out = (double)json_integer_value(json);
        return true;
    }
    const char *text = json_string_value(json);
    if (text == NULL || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    uint64_t bits = strtoull(text, NULL, 16);
    memcpy(out, &bits, sizeof bits);
    return true;
}

tdm_status tdm_saved_count_restore(const json_t *saved, const char *key, int64_t *out)
{
    const json_t *json = json_object_get(saved, key);
    TDM_FAIL_IF(!json_is_integer(json) || json_integer_value(json) < 0, TDM_E_FORMAT,
                "saved metrics: %s is not a count", key);
    *out = json_integer_value(json);
    return TDM_OK;
}

tdm_status tdm_saved_double_restore(const json_t *saved, const char *key, double *out)
{
    TDM_FAIL_IF(!tdm_saved_double_get(json_object_get(saved, key), out), TDM_E_FORMAT,
                "saved metrics: %s is not a saved number", key);
    return TDM_OK;
}
