#include "core/config_internal.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- text ------------------------------------------------------------------------------------ */

tdm_status tdm_text_printf(tdm_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    tdm_status status =
        tdm_grow(&text->bytes, &text->capacity, text->length + (size_t)length + 1, 1);
    if (status == TDM_OK) {
        vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    return status;
}

void tdm_text_free(tdm_text *text)
{
    tdm_free(text->bytes);
    *text = (tdm_text){0};
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* True for texts that every YAML reader takes for a text without quotes, in a list too. */
static bool is_plain_text(const char *text)
{
    static const char *const special[] = {"null", "true", "false", "yes", "no",
                                          "on",   "off",  "y",     "n"};
    if (!is_letter(text[0]) && text[0] != '_' && text[0] != '/')
        return false;
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (strcasecmp(text, special[i]) == 0)
            return false;
    }
    for (const char *c = text; *c != '\0'; c++) {
        if (!is_letter(*c) && !(*c >= '0' && *c <= '9') && strchr("_./-+", *c) == NULL)
            return false;
    }
    return true;
}

/* The length of the UTF-8 sequence at `text`, 0 where there is none; *code is its character. */
static int decode(const char *text, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text[0];
    int length = first < 0x80 ? 1 : first < 0xC0 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    *code = length == 1 ? first : length == 0 ? 0 : first & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        unsigned char next = (unsigned char)text[i];
        if ((next & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (next & 0x3Fu);
    }
    bool surrogate = *code >= 0xD800 && *code <= 0xDFFF;
    return first > 0xF4 || *code < smallest[length] || *code > 0x10FFFF || surrogate ? 0 : length;
}

/* Characters that may stand in a quoted text as they are: what YAML calls printable, without those
 * that it takes for the end of a line. */
static bool is_printable(uint32_t code)
{
    return (code >= 0x20 && code < 0x7F) || (code >= 0xA0 && code != 0x2028 && code != 0x2029 &&
                                             code != 0xFEFF && code != 0xFFFE && code != 0xFFFF);
}

static tdm_status refuse_bytes(const char *string)
{
    char shown[512];
    tdm_printable(string, shown, sizeof shown);
    return tdm_fail(TDM_E_ARG, "a recipe cannot hold a text that is not UTF-8: %s", shown);
}

static tdm_status emit_quoted(const char *string, tdm_text *text)
{
    const char *whole = string;
    TDM_TRY(tdm_text_printf(text, "\""));
    for (int length; *string != '\0'; string += length) {
        uint32_t code;
        length = decode(string, &code);
        if (length == 0)
            return refuse_bytes(whole);
        if (code == '"' || code == '\\')
            TDM_TRY(tdm_text_printf(text, "\\%c", (int)code));
        else if (code == '\n')
            TDM_TRY(tdm_text_printf(text, "\\n"));
        else if (code == '\t')
            TDM_TRY(tdm_text_printf(text, "\\t"));
        else if (is_printable(code))
            TDM_TRY(tdm_text_printf(text, "%.*s", length, string));
        else
            TDM_TRY(tdm_text_printf(text, code < 0x80 ? "\\x%02x" : "\\u%04x", code));
    }
    return tdm_text_printf(text, "\"");
}

static tdm_status emit_string(const char *string, tdm_text *text)
{
    if (string == NULL)
        return tdm_text_printf(text, "~");
    if (is_plain_text(string))
        return tdm_text_printf(text, "%s", string);
    return emit_quoted(string, text);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* A plain scalar stays plain where it may be a number or a bool to whoever reads it. */
static tdm_status emit_scalar(const tdm_config_node *node, tdm_text *text)
{
    double number;
    bool is_plain =
        !node->quoted && (tdm_number_parse_float(node->text, &number) != TDM_NUMBER_MALFORMED ||
                          strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0);
    if (is_plain)
        return tdm_text_printf(text, "%s", node->text);
    return emit_string(node->text, text);
}

/* On one line. */
static tdm_status emit_flow(const tdm_config_node *node, tdm_text *text)
{
    if (node->kind == TDM_NODE_NULL)
        return tdm_text_printf(text, "~");
    if (node->kind == TDM_NODE_SCALAR)
        return emit_scalar(node, text);
    bool is_mapping = node->kind == TDM_NODE_MAPPING;
    TDM_TRY(tdm_text_printf(text, is_mapping ? "{" : "["));
    for (int64_t i = 0; i < node->count; i++) {
        TDM_TRY(tdm_text_printf(text, i > 0 ? ", " : ""));
        if (is_mapping) {
            TDM_TRY(emit_string(node->children[i]->key, text));
            TDM_TRY(tdm_text_printf(text, ": "));
        }
        TDM_TRY(emit_flow(node->children[i], text));
    }
    return tdm_text_printf(text, is_mapping ? "}" : "]");
}

/* Behind "key:": a mapping and a list of mappings with a line for each child, others on this one.
 */
static tdm_status emit_node(const tdm_config_node *node, int indent, tdm_text *text)
{
    bool is_mapping = tdm_config_is_mapping(node);
    bool is_long = node != NULL && node->count > 0 &&
                   (is_mapping || node->children[0]->kind == TDM_NODE_MAPPING);
    if (!is_long) {
        TDM_TRY(tdm_text_printf(text, " "));
        TDM_TRY(node == NULL ? tdm_text_printf(text, "~") : emit_flow(node, text));
        return tdm_text_printf(text, "\n");
    }
    TDM_TRY(tdm_text_printf(text, "\n"));
    for (int64_t i = 0; i < node->count; i++) {
        TDM_TRY(tdm_text_printf(text, "%*s%s", indent + 2, "", is_mapping ? "" : "- "));
        if (is_mapping) {
            TDM_TRY(emit_string(node->children[i]->key, text));
            TDM_TRY(tdm_text_printf(text, ": "));
        }
        TDM_TRY(emit_flow(node->children[i], text));
        TDM_TRY(tdm_text_printf(text, "\n"));
    }
    return TDM_OK;
}

/* ---- bound structs --------------------------------------------------------------------------- */

static tdm_status emit_number(double value, tdm_text *text)
{
    char number[TDM_NUMBER_BYTES];
    tdm_number_format(value, number);
    return tdm_text_printf(text, "%s", number);
}

static tdm_status emit_share(const tdm_share *share, tdm_text *text)
{
    if (!share->is_share)
        return emit_number(share->value, text);
    char percent[TDM_NUMBER_BYTES];
    tdm_number_format_percent(share->value, percent);
    return tdm_text_printf(text, "%s", percent);
}

static tdm_status emit_strings(const tdm_strings *strings, tdm_text *text)
{
    TDM_TRY(tdm_text_printf(text, "["));
    for (int64_t i = 0; i < strings->count; i++) {
        TDM_TRY(tdm_text_printf(text, i > 0 ? ", " : ""));
        TDM_TRY(emit_string(strings->items[i], text));
    }
    return tdm_text_printf(text, "]");
}

static tdm_status emit_ints(const tdm_ints *ints, tdm_text *text)
{
    TDM_TRY(tdm_text_printf(text, "["));
    for (int64_t i = 0; i < ints->count; i++)
        TDM_TRY(tdm_text_printf(text, "%s%lld", i > 0 ? ", " : "", (long long)ints->items[i]));
    return tdm_text_printf(text, "]");
}

static tdm_status emit_floats(const tdm_floats *floats, tdm_text *text)
{
    TDM_TRY(tdm_text_printf(text, "["));
    for (int64_t i = 0; i < floats->count; i++) {
        TDM_TRY(tdm_text_printf(text, i > 0 ? ", " : ""));
        TDM_TRY(emit_number(floats->items[i], text));
    }
    return tdm_text_printf(text, "]");
}

static tdm_status emit_leaf(const tdm_config_key *key, const void *slot, tdm_text *text)
{
    switch (key->type) {
    case TDM_CONFIG_BOOL:
        return tdm_text_printf(text, *(const bool *)slot ? "true" : "false");
    case TDM_CONFIG_INT:
        return tdm_text_printf(text, "%lld", (long long)*(const int64_t *)slot);
    case TDM_CONFIG_FLOAT:
        return emit_number(*(const double *)slot, text);
    case TDM_CONFIG_STRING:
        return emit_string(*(char *const *)slot, text);
    case TDM_CONFIG_CHOICE:
        return tdm_text_printf(text, "%s", key->choices[*(const int *)slot]);
    case TDM_CONFIG_SHARE:
        return emit_share(slot, text);
    case TDM_CONFIG_STRINGS:
        return emit_strings(slot, text);
    case TDM_CONFIG_INTS:
        return emit_ints(slot, text);
    case TDM_CONFIG_FLOATS:
        return emit_floats(slot, text);
    default:
        return tdm_fail(TDM_E_ARG, "the schema's key %s has no type", key->name);
    }
}

static tdm_status emit_section(const tdm_config_schema *schema, const void *values, int indent,
                               tdm_text *text)
{
    if (schema->count == 0)
        return tdm_text_printf(text, " {}\n");
    TDM_TRY(tdm_text_printf(text, "\n"));
    return tdm_config_emit(schema, values, indent + 2, text);
}

static tdm_status emit_sections(const tdm_config_schema *schema, const tdm_sections *sections,
                                int indent, tdm_text *text)
{
    if (sections->count == 0)
        return tdm_text_printf(text, " []\n");
    TDM_TRY(tdm_text_printf(text, "\n"));
    for (int64_t i = 0; i < sections->count; i++) {
        const char *item = (const char *)sections->items + (size_t)i * schema->size;
        size_t start = text->length;
        if (schema->count == 0)
            TDM_TRY(tdm_text_printf(text, "%*s{}\n", indent + 4, ""));
        TDM_TRY(tdm_config_emit(schema, item, indent + 4, text));
        text->bytes[start + (size_t)indent + 2] = '-';
    }
    return TDM_OK;
}

tdm_status tdm_config_emit(const tdm_config_schema *schema, const void *values, int indent,
                           tdm_text *text)
{
    for (int i = 0; i < schema->count; i++) {
        const tdm_config_key *key = &schema->keys[i];
        const void *slot = (const char *)values + key->offset;
        TDM_TRY(tdm_text_printf(text, "%*s%s:", indent, "", key->name));
        if (key->type == TDM_CONFIG_SECTION) {
            TDM_TRY(emit_section(key->section, slot, indent, text));
        } else if (key->type == TDM_CONFIG_SECTIONS) {
            TDM_TRY(emit_sections(key->section, slot, indent, text));
        } else if (key->type == TDM_CONFIG_NODE) {
            TDM_TRY(emit_node(*(const tdm_config_node *const *)slot, indent, text));
        } else {
            TDM_TRY(tdm_text_printf(text, " "));
            TDM_TRY(emit_leaf(key, slot, text));
            TDM_TRY(tdm_text_printf(text, "\n"));
        }
    }
    return TDM_OK;
}

/* ---- differences ----------------------------------------------------------------------------- */

typedef struct tree_comparison {
    tdm_status (*differ)(void *context, const char *key, const char *in_a, const char *in_b);
    void *context;
} tree_comparison;

static tdm_status compare(const tree_comparison *comparison, const char *path,
                          const tdm_config_node *a, const tdm_config_node *b);

static bool is_leaf(const tdm_config_node *node)
{
    return node != NULL && node->kind != TDM_NODE_MAPPING && node->kind != TDM_NODE_NULL;
}

static tdm_status compare_leaves(const tree_comparison *comparison, const char *path,
                                 const tdm_config_node *a, const tdm_config_node *b)
{
    tdm_text in_a = {0}, in_b = {0};
    tdm_status status = TDM_OK;
    if (is_leaf(a))
        TDM_TRY_GOTO(emit_flow(a, &in_a), done);
    if (is_leaf(b))
        TDM_TRY_GOTO(emit_flow(b, &in_b), done);
    bool same = in_a.bytes == NULL || in_b.bytes == NULL ? in_a.bytes == in_b.bytes
                                                         : strcmp(in_a.bytes, in_b.bytes) == 0;
    if (!same)
        status = comparison->differ(comparison->context, path, in_a.bytes, in_b.bytes);
done:
    tdm_text_free(&in_a);
    tdm_text_free(&in_b);
    return status;
}

static tdm_status compare_child(const tree_comparison *comparison, const char *path,
                                const char *key, const tdm_config_node *a, const tdm_config_node *b)
{
    char *longer;
    TDM_TRY(tdm_format(&longer, "%s%s%s", path, path[0] != '\0' ? "." : "", key));
    tdm_status status = compare(comparison, longer, a, b);
    tdm_free(longer);
    return status;
}

static tdm_status compare(const tree_comparison *comparison, const char *path,
                          const tdm_config_node *a, const tdm_config_node *b)
{
    TDM_TRY(compare_leaves(comparison, path, a, b));
    for (int64_t i = 0; tdm_config_is_mapping(a) && i < a->count; i++) {
        const char *key = a->children[i]->key;
        TDM_TRY(compare_child(comparison, path, key, a->children[i], tdm_config_get(b, key)));
    }
    for (int64_t i = 0; tdm_config_is_mapping(b) && i < b->count; i++) {
        const char *key = b->children[i]->key;
        if (!tdm_config_is_mapping(a) || tdm_config_find(a, key) == NULL)
            TDM_TRY(compare_child(comparison, path, key, NULL, b->children[i]));
    }
    return TDM_OK;
}

tdm_status tdm_config_diff(const tdm_config_node *a, const tdm_config_node *b,
                           tdm_status (*differ)(void *context, const char *key, const char *in_a,
                                                const char *in_b),
                           void *context)
{
    tree_comparison comparison = {.differ = differ, .context = context};
    return compare(&comparison, "", a, b);
}
