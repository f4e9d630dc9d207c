/* Recipes: what binds must, once emitted, bind to the same values. */
#include "core/config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct item {
    char *name;
    tdm_share share;
} item;

typedef struct recipe {
    bool flag;
    int64_t whole;
    double real;
    char *text;
    int choice;
    tdm_share share;
    tdm_strings texts;
    tdm_ints wholes;
    item section;
    tdm_sections sections;
    const tdm_config_node *node;
} recipe;

static const char *const choices[] = {"auto", "cpu", "gpu", NULL};

static const tdm_config_key item_keys[] = {
    {"name", TDM_CONFIG_STRING, offsetof(item, name), "none", .help = "-"},
    {"share", TDM_CONFIG_SHARE, offsetof(item, share), "1%", .help = "-"},
};
static const tdm_config_schema item_schema = {sizeof(item), item_keys, 2};

static const tdm_config_key keys[] = {
    {"flag", TDM_CONFIG_BOOL, offsetof(recipe, flag), "true", .help = "-"},
    {"whole", TDM_CONFIG_INT, offsetof(recipe, whole), "1", .help = "-"},
    {"real", TDM_CONFIG_FLOAT, offsetof(recipe, real), "0.5", .help = "-"},
    {"text", TDM_CONFIG_STRING, offsetof(recipe, text), "~", .help = "-"},
    {"choice", TDM_CONFIG_CHOICE, offsetof(recipe, choice), "cpu", .choices = choices, .help = "-"},
    {"share", TDM_CONFIG_SHARE, offsetof(recipe, share), "10", .help = "-"},
    {"texts", TDM_CONFIG_STRINGS, offsetof(recipe, texts), "[a, b]", .help = "-"},
    {"wholes", TDM_CONFIG_INTS, offsetof(recipe, wholes), "[]", -1e6, 1e6, .help = "-"},
    {"section", TDM_CONFIG_SECTION, offsetof(recipe, section), .section = &item_schema,
     .help = "-"},
    {"sections", TDM_CONFIG_SECTIONS, offsetof(recipe, sections), "[]", .section = &item_schema,
     .help = "-"},
    {"node", TDM_CONFIG_NODE, offsetof(recipe, node), "~", .help = "-"},
};
static const tdm_config_schema schema = {sizeof(recipe), keys, sizeof keys / sizeof keys[0]};

static tdm_status differ(void *context, const char *key, const char *in_a, const char *in_b)
{
    (void)context, (void)key, (void)in_a, (void)in_b;
    abort();
}

/* Binds and emits; *config keeps the nodes. */
static tdm_status pass(const char *text, size_t bytes, tdm_config **config, tdm_text *emitted)
{
    TDM_TRY(tdm_config_parse(text, bytes, "fuzz.yaml", NULL, 0, config));
    recipe values;
    TDM_TRY(tdm_config_bind(tdm_config_root(*config), &schema, &values));
    tdm_status status = tdm_config_emit(&schema, &values, 0, emitted);
    tdm_config_unbind(&schema, &values);
    return status;
}

/* The first line as the value of an override. */
static void override_node(const char *text, size_t bytes)
{
    size_t length = 0;
    while (length < bytes && text[length] != '\n' && text[length] != '\0')
        length++;
    char *override = malloc(length + 6);
    if (override == NULL)
        return;
    memcpy(override, "node=", 5);
    memcpy(override + 5, text, length);
    override[length + 5] = '\0';
    tdm_config *config;
    const char *overrides[] = {override};
    tdm_status status = tdm_config_parse("whole: 2", 8, "fuzz.yaml", overrides, 1, &config);
    tdm_config_free(status == TDM_OK ? config : NULL);
    free(override);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tdm_config *first = NULL, *second = NULL;
    tdm_text emitted = {0}, again = {0};
    override_node((const char *)data, size);
    if (pass((const char *)data, size, &first, &emitted) == TDM_OK) {
        if (pass(emitted.bytes, emitted.length, &second, &again) != TDM_OK)
            abort();
        if (strcmp(emitted.bytes, again.bytes) != 0)
            abort();
        if (tdm_config_diff(tdm_config_get(tdm_config_root(first), "node"),
                            tdm_config_get(tdm_config_root(second), "node"), differ,
                            NULL) != TDM_OK)
            abort();
    }
    tdm_text_free(&emitted);
    tdm_text_free(&again);
    tdm_config_free(first);
    tdm_config_free(second);
    return 0;
}
