/* What a recipe's reader is told: expected values, the reference, and likely meanings of typos. */
#include "core/config_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- expected values ------------------------------------------------------------------------- */

static tdm_status append_range(const tdm_config_key *key, tdm_text *text)
{
    if (key->min == 0 && key->max == 0)
        return TDM_OK;
    bool is_int = key->type == TDM_CONFIG_INT || key->type == TDM_CONFIG_INTS;
    bool low = isfinite(key->min) && !(is_int && key->min <= -0x1p63);
    bool high = isfinite(key->max) && !(is_int && key->max >= 0x1p63);
    char min[TDM_NUMBER_BYTES], max[TDM_NUMBER_BYTES];
    tdm_number_format(key->min, min);
    tdm_number_format(key->max, max);
    if (low && high)
        return tdm_text_printf(text, " from %s to %s", min, max);
    if (low)
        return tdm_text_printf(text, " of at least %s", min);
    return high ? tdm_text_printf(text, " of at most %s", max) : TDM_OK;
}

static tdm_status append_choices(const tdm_config_key *key, tdm_text *text)
{
    TDM_TRY(tdm_text_printf(text, "one of "));
    for (int i = 0; key->choices[i] != NULL; i++)
        TDM_TRY(tdm_text_printf(text, "%s%s", i > 0 ? ", " : "", key->choices[i]));
    return TDM_OK;
}

tdm_status tdm_config_expected(const tdm_config_key *key, tdm_text *text)
{
    switch (key->type) {
    case TDM_CONFIG_BOOL:
        return tdm_text_printf(text, "true or false");
    case TDM_CONFIG_INT:
        TDM_TRY(tdm_text_printf(text, "a whole number"));
        return append_range(key, text);
    case TDM_CONFIG_FLOAT:
        TDM_TRY(tdm_text_printf(text, "a number"));
        return append_range(key, text);
    case TDM_CONFIG_STRING:
        return tdm_text_printf(text, "a text");
    case TDM_CONFIG_CHOICE:
        return append_choices(key, text);
    case TDM_CONFIG_SHARE:
        return tdm_text_printf(text, "a count such as 1000 or a share from 0%% to 100%%");
    case TDM_CONFIG_STRINGS:
        return tdm_text_printf(text, "a text or a list of them");
    case TDM_CONFIG_INTS:
    case TDM_CONFIG_FLOATS:
        TDM_TRY(tdm_text_printf(text, "a list of %snumbers",
                                key->type == TDM_CONFIG_INTS ? "whole " : ""));
        if (key->min != 0 || key->max != 0)
            TDM_TRY(tdm_text_printf(text, ", each"));
        return append_range(key, text);
    case TDM_CONFIG_SECTION:
        return tdm_text_printf(text, "a mapping");
    case TDM_CONFIG_SECTIONS:
        return tdm_text_printf(text, "a list of mappings");
    case TDM_CONFIG_NODE:
        break;
    }
    return tdm_text_printf(text, "a value");
}

/* ---- the reference --------------------------------------------------------------------------- */

static tdm_status describe_key(const tdm_config_key *key, const char *path, tdm_text *text)
{
    const char *fallback = key->fallback != NULL             ? key->fallback
                           : key->type == TDM_CONFIG_SECTION ? "{}"
                                                             : "(required)";
    const char *dot = path[0] != '\0' ? "." : "";
    TDM_TRY(tdm_text_printf(text, "%s%s%s  %s  %s (", path, dot, key->name, fallback, key->help));
    TDM_TRY(tdm_config_expected(key, text));
    TDM_TRY(tdm_text_printf(text, ")\n"));
    if (key->type != TDM_CONFIG_SECTION && key->type != TDM_CONFIG_SECTIONS)
        return TDM_OK;
    tdm_text inner = {0};
    const char *items = key->type == TDM_CONFIG_SECTIONS ? "[]" : "";
    tdm_status status = tdm_text_printf(&inner, "%s%s%s%s", path, dot, key->name, items);
    if (status == TDM_OK)
        status = tdm_config_describe(key->section, inner.bytes, text);
    tdm_text_free(&inner);
    return status;
}

tdm_status tdm_config_describe(const tdm_config_schema *schema, const char *path, tdm_text *text)
{
    for (int i = 0; i < schema->count; i++)
        TDM_TRY(describe_key(&schema->keys[i], path, text));
    return TDM_OK;
}

/* ---- did you mean ---------------------------------------------------------------------------- */

#define MAX_WORD 64

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
 * string alignment). Both are at most MAX_WORD long. */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][MAX_WORD + 1];
    int *two_above = rows[0], *above = rows[1], *row = rows[2];
    int columns = (int)strlen(b);
    for (int j = 0; j <= columns; j++)
        row[j] = j;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        int *recycled = two_above;
        two_above = above;
        above = row;
        row = recycled;
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return row[columns];
}

int tdm_name_find(const char *const *names, const char *name)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

const char *tdm_nearest(const char *word, const char *const *candidates, int count)
{
    size_t length = strlen(word);
    if (length > MAX_WORD)
        return NULL;
    const char *nearest = NULL;
    /* A third of the word may be wrong, and more than half of two letters must be right. */
    int best = length < 3 ? (int)length - 1 : (int)(length + 2) / 3;
    for (int i = 0; i < count; i++) {
        if (strlen(candidates[i]) > MAX_WORD)
            continue;
        int distance = edit_distance(word, candidates[i]);
        if (distance < best || (distance == best && nearest == NULL)) {
            best = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}

const char *tdm_did_you_mean(const char *word, const char *const *candidates, int count,
                             char advice[TDM_ADVICE_BYTES])
{
    const char *nearest = tdm_nearest(word, candidates, count);
    advice[0] = '\0';
    if (nearest != NULL)
        snprintf(advice, TDM_ADVICE_BYTES, "; did you mean %s?", nearest);
    return advice;
}
