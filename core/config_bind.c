#include "core/config_internal.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

#define MAX_EXACT_COUNT (INT64_C(1) << 53) /* a double holds every count up to it */

/* A section being bound. Sections that are absent have no node, so errors name the innermost one
 * that is there and the keys from it on. */
typedef struct binding_scope {
    const struct binding_scope *outer;
    const tdm_config_node *node; /* NULL: absent */
    const char *name;            /* in `outer` */
} binding_scope;

/* ---- errors ---------------------------------------------------------------------------------- */

static void missing_place(const binding_scope *scope, const char *below,
                          char place[TDM_CONFIG_PLACE_BYTES])
{
    if (scope->node != NULL) {
        tdm_config_place(scope->node, scope->node->key_line, below, place);
        return;
    }
    if (scope->outer == NULL) {
        tdm_config_node nowhere = {.file = "recipe"};
        tdm_config_place(&nowhere, 0, below, place);
        return;
    }
    char longer[TDM_CONFIG_PLACE_BYTES];
    size_t length = strlen(scope->name); /* of a schema's key: short */
    snprintf(longer, sizeof longer, "%s.%.*s", scope->name, (int)(sizeof longer - length - 2),
             below);
    missing_place(scope->outer, longer, place);
}

static tdm_status fail_missing(const binding_scope *scope, const tdm_config_key *key)
{
    char place[TDM_CONFIG_PLACE_BYTES];
    missing_place(scope, key->name, place);
    tdm_text expected = {0};
    tdm_status status = tdm_config_expected(key, &expected);
    if (status == TDM_OK)
        status = tdm_config_fail_at(place, "missing; expected %s: %s", expected.bytes, key->help);
    tdm_text_free(&expected);
    return status;
}

static tdm_status found_text(const tdm_config_node *node, tdm_text *text)
{
    switch (node->kind) {
    case TDM_NODE_NULL:
        return tdm_text_printf(text, "nothing");
    case TDM_NODE_SEQUENCE:
        return tdm_text_printf(text, "a list");
    case TDM_NODE_MAPPING:
        return tdm_text_printf(text, "a mapping");
    case TDM_NODE_SCALAR:
        break;
    }
    const char *cut = strlen(node->text) > 80 ? "…" : "";
    if (node->quoted)
        return tdm_text_printf(text, "the text \"%.80s%s\"", node->text, cut);
    return tdm_text_printf(text, "%.80s%s", node->text, cut);
}

static tdm_status fail_expected(const tdm_config_key *key, const tdm_config_node *node,
                                const char *advice)
{
    tdm_text expected = {0}, found = {0};
    tdm_status status;
    TDM_TRY_GOTO(tdm_config_expected(key, &expected), done);
    TDM_TRY_GOTO(found_text(node, &found), done);
    status = tdm_config_fail(node, "expected %s, not %s%s", expected.bytes, found.bytes, advice);
done:
    tdm_text_free(&expected);
    tdm_text_free(&found);
    return status;
}

static tdm_status fail_unknown(const tdm_config_node *node, const tdm_config_schema *schema)
{
    tdm_text known = {0};
    const char **names = NULL;
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)schema->count, sizeof *names, &names), done);
    for (int i = 0; i < schema->count; i++) {
        names[i] = schema->keys[i].name;
        TDM_TRY_GOTO(tdm_text_printf(&known, "%s%s", i > 0 ? ", " : "", names[i]), done);
    }
    char advice[TDM_ADVICE_BYTES];
    tdm_did_you_mean(node->key, names, schema->count, advice);
    char place[TDM_CONFIG_PLACE_BYTES];
    tdm_config_place(node, node->key_line, NULL, place);
    status =
        tdm_config_fail_at(place, "unknown key%s Known here: %s", advice[0] != '\0' ? advice : ".",
                           schema->count > 0 ? known.bytes : "none");
done:
    tdm_free(names);
    tdm_text_free(&known);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool in_range(const tdm_config_key *key, double value)
{
    return (key->min == 0 && key->max == 0) || (value >= key->min && value <= key->max);
}

/* The text of a plain scalar, which alone can be a number or a bool; "" for other nodes. */
static const char *plain_text(const tdm_config_node *node)
{
    return node->kind == TDM_NODE_SCALAR && !node->quoted ? node->text : "";
}

static tdm_status read_bool(const tdm_config_key *key, const tdm_config_node *node, bool *out)
{
    const char *text = plain_text(node);
    *out = strcmp(text, "true") == 0;
    if (!*out && strcmp(text, "false") != 0)
        return fail_expected(key, node, "");
    return TDM_OK;
}

static tdm_status read_int(const tdm_config_key *key, const tdm_config_node *node, int64_t *out)
{
    tdm_number_result result = tdm_number_parse_int(plain_text(node), out);
    if (result == TDM_NUMBER_TOO_LARGE)
        return fail_expected(key, node, ", which does not fit in 64 bits");
    if (result != TDM_NUMBER_OK || !in_range(key, (double)*out))
        return fail_expected(key, node, "");
    return TDM_OK;
}

static tdm_status read_float(const tdm_config_key *key, const tdm_config_node *node, double *out)
{
    tdm_number_result result = tdm_number_parse_float(plain_text(node), out);
    if (result == TDM_NUMBER_TOO_LARGE)
        return fail_expected(key, node, ", which no 64-bit float can hold");
    if (result != TDM_NUMBER_OK || !in_range(key, *out))
        return fail_expected(key, node, "");
    return TDM_OK;
}

static tdm_status read_string(const tdm_config_key *key, const tdm_config_node *node, char **out)
{
    if (node->kind != TDM_NODE_SCALAR)
        return fail_expected(key, node, "");
    return tdm_strdup(node->text, out);
}

static tdm_status read_choice(const tdm_config_key *key, const tdm_config_node *node, int *out)
{
    const char *text = tdm_config_text(node);
    if (text == NULL)
        return fail_expected(key, node, "");
    int count = 0;
    for (; key->choices[count] != NULL; count++) {
        if (strcmp(text, key->choices[count]) == 0) {
            *out = count;
            return TDM_OK;
        }
    }
    char advice[TDM_ADVICE_BYTES];
    return fail_expected(key, node, tdm_did_you_mean(text, key->choices, count, advice));
}

static tdm_status read_share(const tdm_config_key *key, const tdm_config_node *node, tdm_share *out)
{
    const char *text = tdm_config_text(node);
    int64_t count;
    if (text != NULL && tdm_number_parse_percent(text, &out->value) == TDM_NUMBER_OK) {
        out->is_share = true;
        return out->value >= 0 && out->value <= 1 ? TDM_OK : fail_expected(key, node, "");
    }
    if (tdm_number_parse_int(plain_text(node), &count) != TDM_NUMBER_OK || count < 0 ||
        count > MAX_EXACT_COUNT)
        return fail_expected(key, node, "");
    *out = (tdm_share){.value = (double)count};
    return TDM_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A single value stands for a list of itself. */
static int64_t list_count(const tdm_config_node *node)
{
    return node->kind == TDM_NODE_SEQUENCE ? node->count : 1;
}

static const tdm_config_node *list_item(const tdm_config_node *node, int64_t index)
{
    return node->kind == TDM_NODE_SEQUENCE ? node->children[index] : node;
}

static tdm_status read_strings(const tdm_config_key *key, const tdm_config_node *node,
                               tdm_strings *out)
{
    if (node->kind == TDM_NODE_MAPPING)
        return fail_expected(key, node, "");
    tdm_config_key item = *key;
    item.type = TDM_CONFIG_STRING;
    TDM_TRY(tdm_alloc((size_t)list_count(node), sizeof *out->items, &out->items));
    out->count = list_count(node);
    for (int64_t i = 0; i < out->count; i++)
        TDM_TRY(read_string(&item, list_item(node, i), &out->items[i]));
    return TDM_OK;
}

static tdm_status read_ints(const tdm_config_key *key, const tdm_config_node *node, tdm_ints *out)
{
    if (node->kind == TDM_NODE_MAPPING)
        return fail_expected(key, node, "");
    tdm_config_key item = *key;
    item.type = TDM_CONFIG_INT;
    TDM_TRY(tdm_alloc((size_t)list_count(node), sizeof *out->items, &out->items));
    out->count = list_count(node);
    for (int64_t i = 0; i < out->count; i++)
        TDM_TRY(read_int(&item, list_item(node, i), &out->items[i]));
    return TDM_OK;
}

static tdm_status read_floats(const tdm_config_key *key, const tdm_config_node *node,
                              tdm_floats *out)
{
    if (node->kind == TDM_NODE_MAPPING)
        return fail_expected(key, node, "");
    tdm_config_key item = *key;
    item.type = TDM_CONFIG_FLOAT;
    TDM_TRY(tdm_alloc((size_t)list_count(node), sizeof *out->items, &out->items));
    out->count = list_count(node);
    for (int64_t i = 0; i < out->count; i++)
        TDM_TRY(read_float(&item, list_item(node, i), &out->items[i]));
    return TDM_OK;
}

/* ---- sections -------------------------------------------------------------------------------- */

static tdm_status bind_section(const binding_scope *scope, const tdm_config_schema *schema,
                               void *out);

static tdm_status read_section(const binding_scope *outer, const tdm_config_key *key,
                               const tdm_config_node *node, void *out)
{
    if (node != NULL && node->kind != TDM_NODE_MAPPING)
        return fail_expected(key, node, "");
    binding_scope inner = {.outer = outer, .node = node, .name = key->name};
    return bind_section(&inner, key->section, out);
}

static tdm_status read_sections(const binding_scope *outer, const tdm_config_key *key,
                                const tdm_config_node *node, tdm_sections *out)
{
    if (node->kind != TDM_NODE_SEQUENCE)
        return fail_expected(key, node, "");
    tdm_config_key item = *key;
    item.type = TDM_CONFIG_SECTION;
    TDM_TRY(tdm_alloc((size_t)node->count, key->section->size, &out->items));
    out->count = node->count;
    for (int64_t i = 0; i < node->count; i++)
        TDM_TRY(read_section(outer, &item, node->children[i],
                             (char *)out->items + (size_t)i * key->section->size));
    return TDM_OK;
}

static tdm_status read_value(const binding_scope *outer, const tdm_config_key *key,
                             const tdm_config_node *node, void *slot)
{
    switch (key->type) {
    case TDM_CONFIG_BOOL:
        return read_bool(key, node, slot);
    case TDM_CONFIG_INT:
        return read_int(key, node, slot);
    case TDM_CONFIG_FLOAT:
        return read_float(key, node, slot);
    case TDM_CONFIG_STRING:
        return read_string(key, node, slot);
    case TDM_CONFIG_CHOICE:
        return read_choice(key, node, slot);
    case TDM_CONFIG_SHARE:
        return read_share(key, node, slot);
    case TDM_CONFIG_STRINGS:
        return read_strings(key, node, slot);
    case TDM_CONFIG_INTS:
        return read_ints(key, node, slot);
    case TDM_CONFIG_FLOATS:
        return read_floats(key, node, slot);
    case TDM_CONFIG_SECTION:
        return read_section(outer, key, node, slot);
    case TDM_CONFIG_SECTIONS:
        return read_sections(outer, key, node, slot);
    case TDM_CONFIG_NODE:
        *(const tdm_config_node **)slot = node;
        return TDM_OK;
    }
    return tdm_fail(TDM_E_ARG, "the schema's key %s has no type", key->name);
}

/* Reads the default as if it stood in the recipe. A null leaves the zeros of an absent value. */
static tdm_status read_fallback(const binding_scope *outer, const tdm_config_key *key, void *slot)
{
    tdm_config_source source = {
        .text = key->fallback, .bytes = strlen(key->fallback), .name = "default"};
    tdm_config *config;
    TDM_TRY(tdm_config_create(&config));
    tdm_status status = tdm_config_read(config, &source, &config->root);
    bool absent = status == TDM_OK && config->root->kind == TDM_NODE_NULL &&
                  (key->type == TDM_CONFIG_STRING || key->type == TDM_CONFIG_STRINGS ||
                   key->type == TDM_CONFIG_INTS || key->type == TDM_CONFIG_FLOATS ||
                   key->type == TDM_CONFIG_SECTIONS);
    if (status == TDM_OK && !absent)
        status = read_value(outer, key, config->root, slot);
    tdm_config_free(config);
    return status == TDM_OK ? TDM_OK : tdm_fail_context(status, "key %s", key->name);
}

static tdm_status bind_section(const binding_scope *scope, const tdm_config_schema *schema,
                               void *out)
{
    for (int64_t i = 0; scope->node != NULL && i < scope->node->count; i++) {
        const tdm_config_node *child = scope->node->children[i];
        int known = 0;
        while (known < schema->count && strcmp(schema->keys[known].name, child->key) != 0)
            known++;
        if (known == schema->count)
            return fail_unknown(child, schema);
    }
    for (int i = 0; i < schema->count; i++) {
        const tdm_config_key *key = &schema->keys[i];
        void *slot = (char *)out + key->offset;
        const tdm_config_node *value = tdm_config_get(scope->node, key->name);
        if (value != NULL)
            TDM_TRY(read_value(scope, key, value, slot));
        else if (key->type == TDM_CONFIG_SECTION)
            TDM_TRY(read_section(scope, key, NULL, slot));
        else if (key->fallback == NULL)
            return fail_missing(scope, key);
        else if (key->type != TDM_CONFIG_NODE)
            TDM_TRY(read_fallback(scope, key, slot));
    }
    return TDM_OK;
}

tdm_status tdm_config_bind(const tdm_config_node *node, const tdm_config_schema *schema, void *out)
{
    memset(out, 0, schema->size);
    if (node != NULL && node->kind == TDM_NODE_NULL)
        node = NULL;
    if (node != NULL && node->kind != TDM_NODE_MAPPING)
        return tdm_config_fail(node, "expected a mapping");
    binding_scope outermost = {.node = node};
    tdm_status status = bind_section(&outermost, schema, out);
    if (status != TDM_OK)
        tdm_config_unbind(schema, out);
    return status;
}

tdm_status tdm_config_bind_strings(const tdm_config_node *node, tdm_strings *out)
{
    *out = (tdm_strings){0};
    const tdm_config_key key = {.name = "value", .type = TDM_CONFIG_STRINGS};
    tdm_status status = read_strings(&key, node, out);
    if (status != TDM_OK)
        tdm_strings_free(out);
    return status;
}

void tdm_strings_free(tdm_strings *strings)
{
    for (int64_t i = 0; i < strings->count; i++)
        tdm_free(strings->items[i]);
    tdm_free(strings->items);
    *strings = (tdm_strings){0};
}

static void unbind_value(const tdm_config_key *key, void *slot)
{
    if (key->type == TDM_CONFIG_STRING) {
        tdm_free(*(char **)slot);
    } else if (key->type == TDM_CONFIG_STRINGS) {
        tdm_strings_free(slot);
    } else if (key->type == TDM_CONFIG_INTS) {
        tdm_free(((tdm_ints *)slot)->items);
    } else if (key->type == TDM_CONFIG_FLOATS) {
        tdm_free(((tdm_floats *)slot)->items);
    } else if (key->type == TDM_CONFIG_SECTION) {
        tdm_config_unbind(key->section, slot);
    } else if (key->type == TDM_CONFIG_SECTIONS) {
        tdm_sections *sections = slot;
        for (int64_t i = 0; i < sections->count; i++)
            tdm_config_unbind(key->section,
                              (char *)sections->items + (size_t)i * key->section->size);
        tdm_free(sections->items);
    }
}

void tdm_config_unbind(const tdm_config_schema *schema, void *values)
{
    for (int i = 0; i < schema->count; i++)
        unbind_value(&schema->keys[i], (char *)values + schema->keys[i].offset);
    memset(values, 0, schema->size);
}
