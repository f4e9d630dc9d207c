#include "tests/support/config_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const rules[] = {"adam", "sgd", "adagrad", NULL};
static const char *const devices[] = {"auto", "cpu", "gpu", NULL};

static const tdm_config_key field_keys[] = {
    {"column", TDM_CONFIG_STRING, offsetof(options_field, column), .help = "its column"},
    {"buckets", TDM_CONFIG_INT, offsetof(options_field, buckets), "1000", 1, INFINITY,
     .help = "rows of the table"},
};
static const tdm_config_schema field_schema = {sizeof(options_field), field_keys, 2};

static const tdm_config_key rule_keys[] = {
    {"type", TDM_CONFIG_CHOICE, offsetof(options_rule, type), "adam", .choices = rules,
     .help = "the rule"},
    {"learning_rate", TDM_CONFIG_FLOAT, offsetof(options_rule, learning_rate), "0.001", 0, 10,
     .help = "step size"},
};
static const tdm_config_schema rule_schema = {sizeof(options_rule), rule_keys, 2};

static const tdm_config_key keys[] = {
    {"shuffle", TDM_CONFIG_BOOL, offsetof(options, shuffle), "true", .help = "permute rows"},
    {"epochs", TDM_CONFIG_INT, offsetof(options, epochs), "1", 1, 100, .help = "passes"},
    {"clip_norm", TDM_CONFIG_FLOAT, offsetof(options, clip_norm), "10", .help = "largest norm"},
    {"name", TDM_CONFIG_STRING, offsetof(options, name), "~", .help = "of the run"},
    {"device", TDM_CONFIG_CHOICE, offsetof(options, device), "auto", .choices = devices,
     .help = "where to train"},
    {"bad", TDM_CONFIG_SHARE, offsetof(options, bad), "0.1%", .help = "bad records"},
    {"train", TDM_CONFIG_STRINGS, offsetof(options, train), "[]", .help = "files"},
    {"units", TDM_CONFIG_INTS, offsetof(options, units), "[400, 200]", 1, 4096, .help = "widths"},
    {"rule", TDM_CONFIG_SECTION, offsetof(options, rule), .section = &rule_schema,
     .help = "the optimizer"},
    {"fields", TDM_CONFIG_SECTIONS, offsetof(options, fields), "~", .section = &field_schema,
     .help = "the features"},
    {"model", TDM_CONFIG_NODE, offsetof(options, model), "~", .help = "the model"},
};
const tdm_config_schema tdm_test_schema = {sizeof(options), keys, 11};

tdm_status tdm_test_parse(const char *text, tdm_config **out)
{
    return tdm_config_parse(text, strlen(text), "r.yaml", NULL, 0, out);
}

tdm_status tdm_test_parse_with(const char *text, const char *override, tdm_config **out)
{
    return tdm_config_parse(text, strlen(text), "r.yaml", &override, 1, out);
}

tdm_status tdm_test_bind(const char *text, const char *override, options *out, tdm_config **config)
{
    TDM_TRY(tdm_config_parse(text, strlen(text), "r.yaml", &override, override != NULL, config));
    tdm_status status = tdm_config_bind(tdm_config_root(*config), &tdm_test_schema, out);
    if (status != TDM_OK) {
        tdm_config_free(*config);
        *config = NULL;
    }
    return status;
}

void tdm_test_message(tdm_status status, const char *message)
{
    ck_assert_int_eq(status, TDM_E_CONFIG);
    ck_assert_str_eq(tdm_error_message(), message);
}

void tdm_test_parse_fails(const char *text, const char *message)
{
    tdm_config *config;
    tdm_test_message(tdm_test_parse(text, &config), message);
    ck_assert_ptr_null(config);
}

void tdm_test_bind_fails(const char *text, const char *message)
{
    tdm_config *config;
    options values;
    static const options zeros;
    tdm_test_message(tdm_test_bind(text, NULL, &values, &config), message);
    ck_assert_mem_eq(&values, &zeros, sizeof values);
}

void tdm_test_override_fails(const char *override, const char *message)
{
    tdm_config *config;
    options values;
    tdm_test_message(tdm_test_bind("epochs: 1", override, &values, &config), message);
}

char *tdm_test_repeat(const char *head, const char *text, int count, const char *tail)
{
    tdm_text all = {0};
    ck_assert_ok(tdm_text_printf(&all, "%s", head));
    for (int i = 0; i < count; i++)
        ck_assert_ok(tdm_text_printf(&all, "%s", text));
    ck_assert_ok(tdm_text_printf(&all, "%s", tail));
    return all.bytes;
}

const char *tdm_test_put(const char *folder, const char *name, const char *text)
{
    const char *path = tdm_test_path(folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    return path;
}
