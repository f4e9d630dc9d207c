#include "core/config.h"

#include "core/config_internal.h"
#include "core/memory.h"
#include "tests/support/check_main.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- a schema with every type ------------------------------------------------------------------
 */

typedef struct options_field {
    char *column;
    int64_t buckets;
} options_field;

typedef struct options_rule {
    int type;
    double learning_rate;
} options_rule;

typedef struct options {
    bool shuffle;
    int64_t epochs;
    double clip_norm;
    char *name;
    int device;
    tdm_share bad;
    tdm_strings train;
    tdm_ints units;
    options_rule rule;
    tdm_sections fields;
    const tdm_config_node *model;
} options;

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
static const tdm_config_schema schema = {sizeof(options), keys, 11};

static tdm_status parse(const char *text, tdm_config **out)
{
    return tdm_config_parse(text, strlen(text), "r.yaml", NULL, 0, out);
}

static tdm_status parse_with(const char *text, const char *override, tdm_config **out)
{
    return tdm_config_parse(text, strlen(text), "r.yaml", &override, 1, out);
}

/* Parses and binds; the recipe is kept for NODE values. */
static tdm_status bind(const char *text, const char *override, options *out, tdm_config **config)
{
    TDM_TRY(tdm_config_parse(text, strlen(text), "r.yaml", &override, override != NULL, config));
    tdm_status status = tdm_config_bind(tdm_config_root(*config), &schema, out);
    if (status != TDM_OK) {
        tdm_config_free(*config);
        *config = NULL;
    }
    return status;
}

/* The whole message of a failure. */
static void assert_message(tdm_status status, const char *message)
{
    ck_assert_int_eq(status, TDM_E_CONFIG);
    ck_assert_str_eq(tdm_error_message(), message);
}

static void assert_parse_fails(const char *text, const char *message)
{
    tdm_config *config;
    assert_message(parse(text, &config), message);
    ck_assert_ptr_null(config);
}

static void assert_bind_fails(const char *text, const char *message)
{
    tdm_config *config;
    options values;
    static const options zeros;
    assert_message(bind(text, NULL, &values, &config), message);
    ck_assert_mem_eq(&values, &zeros, sizeof values);
}

static void assert_override_fails(const char *override, const char *message)
{
    tdm_config *config;
    options values;
    assert_message(bind("epochs: 1", override, &values, &config), message);
}

/* ---- the tree ----------------------------------------------------------------------------------
 */

START_TEST(tree_has_what_the_file_says)
{
    tdm_config *config;
    ck_assert_ok(parse("a: x\nb: [1, {c: d}]\ne: ~\nf:\n  g: ''\n", &config));
    const tdm_config_node *root = tdm_config_root(config);
    ck_assert(tdm_config_is_mapping(root));
    ck_assert_str_eq(tdm_config_text(tdm_config_get(root, "a")), "x");
    const tdm_config_node *list = tdm_config_get(root, "b");
    ck_assert(tdm_config_is_sequence(list));
    ck_assert(!tdm_config_is_mapping(list));
    ck_assert_ptr_null(tdm_config_text(list));
    ck_assert_int_eq(tdm_config_count(list), 2);
    ck_assert_str_eq(tdm_config_text(tdm_config_item(list, 0)), "1");
    ck_assert_str_eq(tdm_config_text(tdm_config_get(tdm_config_item(list, 1), "c")), "d");
    ck_assert_ptr_null(tdm_config_item(list, 2));
    ck_assert_ptr_null(tdm_config_item(list, -1));
    ck_assert_str_eq(tdm_config_text(tdm_config_get(tdm_config_get(root, "f"), "g")), "");
    tdm_config_free(config);
}
END_TEST

START_TEST(tree_has_nulls_for_absent_values)
{
    tdm_config *config;
    ck_assert_ok(parse("a: ~\nb: null\nc:\nd: [~, '~']\n", &config));
    const tdm_config_node *root = tdm_config_root(config);
    ck_assert_ptr_null(tdm_config_get(root, "a"));
    ck_assert_ptr_null(tdm_config_get(root, "b"));
    ck_assert_ptr_null(tdm_config_get(root, "c"));
    ck_assert_ptr_null(tdm_config_get(root, "absent"));
    ck_assert_ptr_null(tdm_config_get(NULL, "a"));
    const tdm_config_node *list = tdm_config_get(root, "d");
    ck_assert_ptr_null(tdm_config_get(list, "a"));
    ck_assert_ptr_null(tdm_config_text(tdm_config_item(list, 0)));
    ck_assert_str_eq(tdm_config_text(tdm_config_item(list, 1)), "~");
    ck_assert_int_eq(tdm_config_count(root), 0);
    ck_assert_int_eq(tdm_config_count(NULL), 0);
    tdm_config_free(config);
    tdm_config_free(NULL);
}
END_TEST

START_TEST(errors_name_file_line_and_path)
{
    tdm_config *config;
    ck_assert_ok(parse("a:\n  b:\n    - x\n    - c: 1\n", &config));
    const tdm_config_node *root = tdm_config_root(config);
    const tdm_config_node *list = tdm_config_get(tdm_config_get(root, "a"), "b");
    const tdm_config_node *inner = tdm_config_get(tdm_config_item(list, 1), "c");
    assert_message(tdm_config_fail(inner, "is %d", 7), "r.yaml:4: a.b[1].c: is 7");
    assert_message(tdm_config_fail(tdm_config_item(list, 0), "no"), "r.yaml:3: a.b[0]: no");
    assert_message(tdm_config_fail(root, "no"), "r.yaml:1: no");
    assert_message(tdm_config_fail(NULL, "no"), "recipe: no");
    tdm_config_free(config);
}
END_TEST

START_TEST(bad_yaml_is_refused)
{
    assert_parse_fails("", "r.yaml:1: the recipe is empty");
    assert_parse_fails("# nothing\n", "r.yaml:1: the recipe is empty");
    assert_parse_fails("~\n", "r.yaml:1: the recipe is empty");
    assert_parse_fails("- a\n",
                       "r.yaml:1: a recipe is a mapping such as \"task: ctr\", not a list");
    assert_parse_fails("\nword\n",
                       "r.yaml:2: a recipe is a mapping such as \"task: ctr\", not a text");
    assert_parse_fails("a: 1\nb: [1, 2\nc: 3\n",
                       "r.yaml:3: b: not YAML: did not find expected ',' or ']' while parsing a "
                       "flow sequence, in column 2");
    assert_parse_fails("a:\n\tb: 1\n", "r.yaml:2: a: not YAML: found character that cannot start "
                                       "any token while scanning for the next token, in column 1");
    assert_parse_fails("a: 1\n---\nb: 2\n",
                       "r.yaml:2: a second YAML document begins here; a recipe is one");
}
END_TEST

START_TEST(other_encodings_are_refused)
{
    assert_parse_fails("a: 1\nb: \xff\n",
                       "r.yaml:2: not YAML in UTF-8: invalid leading UTF-8 octet (0xff)");
    assert_parse_fails("\xff\xfe\x61", "r.yaml:1: not YAML in UTF-8: invalid leading UTF-8 octet "
                                       "(0xff)");
    assert_parse_fails("a: 1\x01\n",
                       "r.yaml:1: not YAML in UTF-8: control characters are not allowed (0x1)");
    tdm_config *config;
    ck_assert_fails(tdm_config_parse("a: b\0c", 6, "r.yaml", NULL, 0, &config), TDM_E_CONFIG,
                    "control characters are not allowed (0x0)");
    assert_parse_fails("a: \"b\\0c\"\n", "r.yaml:1: a: a text must not hold the character \\0");
    ck_assert_ok(parse("\xef\xbb\xbf"
                       "a: \xc3\xa9\n",
                       &config));
    ck_assert_str_eq(tdm_config_text(tdm_config_get(tdm_config_root(config), "a")), "\xc3\xa9");
    tdm_config_free(config);
}
END_TEST

START_TEST(bad_keys_are_refused)
{
    assert_parse_fails("a: 1\nb: 2\na: 3\n", "r.yaml:3: a: the same key twice, first in line 1");
    assert_parse_fails("x:\n  a: 1\n  a: {}\n",
                       "r.yaml:3: x.a: the same key twice, first in line 2");
    assert_parse_fails("x: [{a: 1}, {b: 1, b: 1}]\n",
                       "r.yaml:1: x[1].b: the same key twice, first in line 1");
    assert_parse_fails("? [a, b]\n: 1\n",
                       "r.yaml:1: a key must be a text, not a mapping or a list");
    assert_parse_fails("x:\n  ? {a: b}\n  : 1\n",
                       "r.yaml:2: x: a key must be a text, not a mapping or a list");
    assert_parse_fails("'': 1\n", "r.yaml:1: a key must not be empty");
    char text[TDM_CONFIG_MAX_KEY + 8];
    snprintf(text, sizeof text, "%0*d: 1\n", TDM_CONFIG_MAX_KEY + 1, 0);
    assert_parse_fails(text, "r.yaml:1: the key \"0000000000000000000000000000000000000000…\" is "
                             "longer than 200 bytes");
    snprintf(text, sizeof text, "%0*d: 1\n", TDM_CONFIG_MAX_KEY, 0);
    tdm_config *config;
    ck_assert_ok(parse(text, &config));
    tdm_config_free(config);
}
END_TEST

START_TEST(anchors_aliases_and_tags_are_refused)
{
    assert_parse_fails("a: 1\nb: *x\n",
                       "r.yaml:2: b: anchors and aliases are not allowed; quote a text that begins "
                       "with & or *: \"*x\"");
    assert_parse_fails("a: &x 1\n",
                       "r.yaml:1: a: anchors and aliases are not allowed; quote a text that begins "
                       "with & or *: \"&x\"");
    ck_assert_fails(parse("a: &x [1]\n", &(tdm_config *){NULL}), TDM_E_CONFIG, "\"&x\"");
    ck_assert_fails(parse("a: &x {b: 1}\n", &(tdm_config *){NULL}), TDM_E_CONFIG, "\"&x\"");
    assert_parse_fails("a: !mine 1\n", "r.yaml:1: a: tags are not allowed; quote a text that "
                                       "begins with !: \"!mine\"");
    ck_assert_fails(parse("a: !!map {}\n", &(tdm_config *){NULL}), TDM_E_CONFIG, "tags");
    ck_assert_fails(parse("a: !!seq []\n", &(tdm_config *){NULL}), TDM_E_CONFIG, "tags");
}
END_TEST

static char *repeat(const char *head, const char *text, int count, const char *tail)
{
    tdm_text all = {0};
    ck_assert_ok(tdm_text_printf(&all, "%s", head));
    for (int i = 0; i < count; i++)
        ck_assert_ok(tdm_text_printf(&all, "%s", text));
    ck_assert_ok(tdm_text_printf(&all, "%s", tail));
    return all.bytes;
}

START_TEST(bombs_are_refused)
{
    tdm_config *config;
    char *deep = repeat("a: ", "[", TDM_CONFIG_MAX_DEPTH, "");
    ck_assert_fails(parse(deep, &config), TDM_E_CONFIG, ": nested deeper than 64 levels");
    tdm_free(deep);
    deep = repeat("a: ", "[", 1 << 20, "");
    ck_assert_fails(parse(deep, &config), TDM_E_CONFIG, ": nested deeper than 64 levels");
    tdm_free(deep);
    char *open = repeat("a: ", "[", TDM_CONFIG_MAX_DEPTH - 1, "");
    deep = repeat(open, "]", TDM_CONFIG_MAX_DEPTH - 1, "");
    ck_assert_ok(parse(deep, &config));
    tdm_config_free(config);
    ck_assert_fails(parse_with("a: 1", "b.c=[[1]]", &config), TDM_OK, "");
    tdm_config_free(config);
    tdm_free(open);
    tdm_free(deep);

    /* The root, a key and its list make three. */
    char *many = repeat("a: [", "1,", TDM_CONFIG_MAX_NODES - 3, "]");
    ck_assert_ok(parse(many, &config));
    tdm_config_free(config);
    ck_assert_fails(parse_with(many, "b=1", &config), TDM_E_CONFIG,
                    "command line: b: more than 100000 keys and values");
    tdm_free(many);
    many = repeat("a: [", "1,", TDM_CONFIG_MAX_NODES - 2, "]");
    assert_parse_fails(many, "r.yaml:1: a: more than 100000 keys and values");
    tdm_free(many);

    char *big = repeat("a: 1\n#", "0123456789abcdef", TDM_CONFIG_MAX_BYTES / 16, "\n");
    assert_parse_fails(big, "r.yaml: longer than 4194304 bytes");
    tdm_free(big);
}
END_TEST

/* ---- extends -----------------------------------------------------------------------------------
 */

static const char *folder;

static const char *put(const char *name, const char *text)
{
    const char *path = tdm_test_path(folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static const char *text_at(const tdm_config *config, const char *section, const char *key)
{
    const tdm_config_node *root = tdm_config_root(config);
    return tdm_config_text(tdm_config_get(tdm_config_get(root, section), key));
}

START_TEST(extends_merges_mappings_and_replaces_the_rest)
{
    folder = tdm_test_folder();
    put("a.yaml", "s: {x: 1, y: 1, z: 1}\nlist: [1, 2]\nt: {x: 1}\nu: {x: 1}\nkept: 1\n");
    put("b.yaml", "extends: a.yaml\ns: {y: 2, z: 2}\nlist: [3]\nt: 5\nu: ~\n");
    const char *path = put("c.yaml", "s:\n  z: 3\n  w: 3\nextends: b.yaml\nt: {y: 2}\n");
    tdm_config *config;
    ck_assert_ok(tdm_config_load(path, NULL, 0, &config));
    ck_assert_str_eq(text_at(config, "s", "x"), "1");
    ck_assert_str_eq(text_at(config, "s", "y"), "2");
    ck_assert_str_eq(text_at(config, "s", "z"), "3");
    ck_assert_str_eq(text_at(config, "s", "w"), "3");
    const tdm_config_node *root = tdm_config_root(config);
    ck_assert_int_eq(tdm_config_count(tdm_config_get(root, "list")), 1);
    ck_assert_str_eq(tdm_config_text(tdm_config_get(root, "kept")), "1");
    ck_assert_ptr_null(tdm_config_get(root, "extends"));
    ck_assert_ptr_null(tdm_config_get(root, "u"));
    /* b's 5 replaced a's mapping before c's came. */
    ck_assert_ptr_null(text_at(config, "t", "x"));
    ck_assert_str_eq(text_at(config, "t", "y"), "2");
    char message[1024];
    snprintf(message, sizeof message, "%s/a.yaml:1: s.x: no", folder);
    assert_message(tdm_config_fail(tdm_config_get(tdm_config_get(root, "s"), "x"), "no"), message);
    snprintf(message, sizeof message, "%s/c.yaml:2: s.z: no", folder);
    assert_message(tdm_config_fail(tdm_config_get(tdm_config_get(root, "s"), "z"), "no"), message);
    tdm_config_free(config);
}
END_TEST

START_TEST(extends_is_relative_to_the_file_that_says_it)
{
    folder = tdm_test_folder();
    put("base.yaml", "s: {x: 1}\n");
    const char *path = put("child.yaml", "{}\n");
    tdm_config *config;
    char text[512];
    ck_assert_ok(tdm_config_parse("extends: base.yaml", 18, path, NULL, 0, &config));
    ck_assert_str_eq(text_at(config, "s", "x"), "1");
    tdm_config_free(config);
    snprintf(text, sizeof text, "extends: %s/base.yaml\n", folder);
    ck_assert_ok(parse(text, &config));
    ck_assert_str_eq(text_at(config, "s", "x"), "1");
    tdm_config_free(config);
    ck_assert_ok(parse("extends: ~\na: 1\n", &config));
    ck_assert_ptr_null(tdm_config_get(tdm_config_root(config), "extends"));
    tdm_config_free(config);
}
END_TEST

START_TEST(bad_extends_are_refused)
{
    folder = tdm_test_folder();
    tdm_config *config;
    char message[1400], prefix[600];
    const char *path = put("self.yaml", "a: 1\nextends: self.yaml\n");
    snprintf(message, sizeof message,
             "%s:2: extends: %s extends this file, so this file cannot extend it", path, path);
    assert_message(tdm_config_load(path, NULL, 0, &config), message);

    put("one.yaml", "extends: two.yaml\n");
    put("two.yaml", "extends: three.yaml\n");
    put("three.yaml", "extends: ./one.yaml\n");
    snprintf(message, sizeof message,
             "%s/three.yaml:1: extends: %s/./one.yaml extends this file, so this file cannot "
             "extend it",
             folder, folder);
    assert_message(tdm_config_load(tdm_test_path(folder, "one.yaml"), NULL, 0, &config), message);

    path = put("lost.yaml", "extends: nowhere.yaml\n");
    ck_assert_fails(tdm_config_load(path, NULL, 0, &config), TDM_E_IO, "nowhere.yaml");
    snprintf(prefix, sizeof prefix, "%s/lost.yaml:1: extends: ", folder);
    ck_assert_ptr_eq(strstr(tdm_error_message(), prefix), tdm_error_message());

    put("broken.yaml", "a: 1\na: 2\n");
    path = put("child.yaml", "extends: broken.yaml\n");
    snprintf(message, sizeof message, "%s/broken.yaml:2: a: the same key twice, first in line 1",
             folder);
    assert_message(tdm_config_load(path, NULL, 0, &config), message);
    assert_parse_fails("extends: [a]\n", "r.yaml:1: extends: expected the path of one recipe");
    assert_parse_fails("extends: ''\n", "r.yaml:1: extends: expected the path of one recipe");
    ck_assert_fails(tdm_config_load("/nowhere/r.yaml", NULL, 0, &config), TDM_E_IO,
                    "/nowhere/r.yaml");
    ck_assert_ptr_null(config);
}
END_TEST

/* ---- overrides ---------------------------------------------------------------------------------
 */

START_TEST(overrides_replace_and_create)
{
    const char *overrides[] = {
        "epochs=3", "train=[a.tsv, b=c]", "rule.type=sgd", "model.x.y=1", "name=", "units=~"};
    const char *text = "epochs: 1\nname: n\nmodel: {x: 5, z: 1}\nunits: 7\n";
    tdm_config *config;
    options values;
    ck_assert_ok(tdm_config_parse(text, strlen(text), "r.yaml", overrides, 6, &config));
    ck_assert_ok(tdm_config_bind(tdm_config_root(config), &schema, &values));
    ck_assert_int_eq(values.epochs, 3);
    ck_assert_int_eq(values.train.count, 2);
    ck_assert_str_eq(values.train.items[1], "b=c");
    ck_assert_int_eq(values.rule.type, 1);
    ck_assert_ptr_null(values.name);
    ck_assert_int_eq(values.units.count, 2);
    ck_assert_str_eq(tdm_config_text(tdm_config_get(tdm_config_get(values.model, "x"), "y")), "1");
    ck_assert_str_eq(tdm_config_text(tdm_config_get(values.model, "z")), "1");
    tdm_config_unbind(&schema, &values);
    tdm_config_free(config);
}
END_TEST

START_TEST(override_of_a_mapping_replaces_it)
{
    tdm_config *config;
    ck_assert_ok(parse_with("rule: {type: sgd, learning_rate: 1}", "rule={type: adam}", &config));
    ck_assert_str_eq(text_at(config, "rule", "type"), "adam");
    ck_assert_ptr_null(text_at(config, "rule", "learning_rate"));
    tdm_config_free(config);
}
END_TEST

START_TEST(bad_overrides_are_refused)
{
    assert_override_fails("epochs", "command line: expected key.path=value, not \"epochs\"");
    assert_override_fails("=1", "command line: expected key.path=value, not \"=1\"");
    assert_override_fails("a..b=1", "command line: expected key.path=value, not \"a..b=1\"");
    assert_override_fails("a.=1", "command line: expected key.path=value, not \"a.=1\"");
    assert_override_fails("epochs=two", "command line: epochs: expected a whole number from 1 to "
                                        "100, not two");
    assert_override_fails("units=[1, x]", "command line: units[1]: expected a whole number from 1 "
                                          "to 4096, not x");
    assert_override_fails("rule.typ=sgd",
                          "command line: rule.typ: unknown key, did you mean type?; "
                          "known here: type, learning_rate");
    assert_override_fails("units=[1, {2",
                          "command line: units[1]: not YAML: did not find expected ',' or '}' "
                          "while parsing a flow mapping, in column 7");
    assert_override_fails("train=*.gz", "command line: train: not YAML: did not find expected "
                                        "alphabetic or numeric character while scanning an alias, "
                                        "in column 2");
    assert_override_fails("model={a: 1, a: 2}", "command line: model.a: the same key twice");
    assert_override_fails("name=\xff",
                          "command line: name: not YAML in UTF-8: invalid leading UTF-8 octet "
                          "(0xff)");
    char *path = repeat("a", ".a", TDM_CONFIG_MAX_DEPTH - 1, "=1");
    tdm_config *config;
    ck_assert_ok(parse_with("b: 1", path, &config));
    tdm_config_free(config);
    tdm_free(path);
    path = repeat("a", ".a", TDM_CONFIG_MAX_DEPTH - 1, "=[1]");
    ck_assert_fails(parse_with("b: 1", path, &config), TDM_E_CONFIG, "nested deeper than 64");
    tdm_free(path);
    path = repeat("a", ".a", TDM_CONFIG_MAX_DEPTH, "=1");
    ck_assert_fails(parse_with("b: 1", path, &config), TDM_E_CONFIG, "expected key.path=value");
    tdm_free(path);
}
END_TEST

/* ---- binding -----------------------------------------------------------------------------------
 */

START_TEST(every_type_is_read)
{
    tdm_config *config;
    options values;
    ck_assert_ok(bind("shuffle: false\nepochs: 7\nclip_norm: 2.5e-1\nname: 0123\ndevice: 'gpu'\n"
                      "bad: 250\ntrain: [true, 1.5, 'null']\nunits: [1, 4096]\n"
                      "rule: {type: adagrad, learning_rate: 1}\n"
                      "fields: [{column: C1}, {column: C2, buckets: 5}]\nmodel: {type: deepfm}\n",
                      NULL, &values, &config));
    ck_assert(!values.shuffle);
    ck_assert_int_eq(values.epochs, 7);
    ck_assert_double_eq(values.clip_norm, 0.25);
    ck_assert_str_eq(values.name, "0123");
    ck_assert_int_eq(values.device, 2);
    ck_assert(!values.bad.is_share);
    ck_assert_double_eq(values.bad.value, 250);
    ck_assert_int_eq(values.train.count, 3);
    ck_assert_str_eq(values.train.items[0], "true");
    ck_assert_str_eq(values.train.items[1], "1.5");
    ck_assert_str_eq(values.train.items[2], "null");
    ck_assert_int_eq(values.units.items[1], 4096);
    ck_assert_int_eq(values.rule.type, 2);
    ck_assert_double_eq(values.rule.learning_rate, 1);
    ck_assert_int_eq(values.fields.count, 2);
    const options_field *fields = values.fields.items;
    ck_assert_str_eq(fields[0].column, "C1");
    ck_assert_int_eq(fields[0].buckets, 1000);
    ck_assert_int_eq(fields[1].buckets, 5);
    ck_assert_str_eq(tdm_config_text(tdm_config_get(values.model, "type")), "deepfm");
    tdm_config_unbind(&schema, &values);
    ck_assert_ptr_null(values.fields.items);
    ck_assert_ptr_null(values.name);
    tdm_config_free(config);
}
END_TEST

static void assert_defaults(const options *values)
{
    ck_assert(values->shuffle);
    ck_assert_int_eq(values->epochs, 1);
    ck_assert_double_eq(values->clip_norm, 10);
    ck_assert_ptr_null(values->name);
    ck_assert_int_eq(values->device, 0);
    ck_assert(values->bad.is_share);
    ck_assert_double_eq(values->bad.value, 0.001);
    ck_assert_int_eq(values->train.count, 0);
    ck_assert_int_eq(values->units.count, 2);
    ck_assert_int_eq(values->units.items[0], 400);
    ck_assert_double_eq(values->rule.learning_rate, 0.001);
    ck_assert_int_eq(values->fields.count, 0);
    ck_assert_ptr_null(values->model);
}

START_TEST(absent_values_get_their_defaults)
{
    tdm_config *config;
    options values;
    ck_assert_ok(tdm_config_bind(NULL, &schema, &values));
    assert_defaults(&values);
    tdm_config_unbind(&schema, &values);
    ck_assert_ok(
        bind("epochs: ~\nunits:\nrule:\nfields: null\nmodel: ~\n", NULL, &values, &config));
    assert_defaults(&values);
    tdm_config_unbind(&schema, &values);
    tdm_config_free(config);
}
END_TEST

START_TEST(one_value_stands_for_a_list)
{
    tdm_config *config;
    options values;
    ck_assert_ok(bind("train: a.tsv\nunits: 8\n", NULL, &values, &config));
    ck_assert_int_eq(values.train.count, 1);
    ck_assert_str_eq(values.train.items[0], "a.tsv");
    ck_assert_int_eq(values.units.count, 1);
    ck_assert_int_eq(values.units.items[0], 8);
    tdm_config_unbind(&schema, &values);
    tdm_config_free(config);
}
END_TEST

#define ALL_KEYS "shuffle, epochs, clip_norm, name, device, bad, train, units, rule, fields, model"

START_TEST(unknown_keys_are_refused)
{
    assert_bind_fails("epochs: 1\nepoch: 2\n",
                      "r.yaml:2: epoch: unknown key, did you mean epochs?; known here: " ALL_KEYS);
    assert_bind_fails("epochs: 1\nlr: 2\n", "r.yaml:2: lr: unknown key; known here: " ALL_KEYS);
    assert_bind_fails("rule:\n  laerning_rate:\n    1\n",
                      "r.yaml:2: rule.laerning_rate: unknown key, did you mean learning_rate?; "
                      "known here: type, learning_rate");
    assert_bind_fails("fields:\n- {column: a}\n- {colum: b}\n",
                      "r.yaml:3: fields[1].colum: unknown key, did you mean column?; known here: "
                      "column, buckets");
    static const tdm_config_schema nothing = {0};
    tdm_config *config;
    ck_assert_ok(parse("a: 1\n", &config));
    assert_message(tdm_config_bind(tdm_config_root(config), &nothing, &(int){0}),
                   "r.yaml:1: a: unknown key; known here: none");
    tdm_config_free(config);
}
END_TEST

START_TEST(wrong_types_are_refused)
{
    assert_bind_fails("shuffle: yes\n", "r.yaml:1: shuffle: expected true or false, not yes");
    assert_bind_fails("shuffle: True\n", "r.yaml:1: shuffle: expected true or false, not True");
    assert_bind_fails("shuffle: 'true'\n",
                      "r.yaml:1: shuffle: expected true or false, not the text \"true\"");
    assert_bind_fails("epochs: [1]\n",
                      "r.yaml:1: epochs: expected a whole number from 1 to 100, not a list");
    assert_bind_fails("epochs: '1'\n", "r.yaml:1: epochs: expected a whole number from 1 to 100, "
                                       "not the text \"1\"");
    assert_bind_fails("epochs: 4k\n",
                      "r.yaml:1: epochs: expected a whole number from 1 to 100, not 4k");
    assert_bind_fails("clip_norm:\n  {}\n",
                      "r.yaml:2: clip_norm: expected a number, not a mapping");
    assert_bind_fails("clip_norm: .inf\n", "r.yaml:1: clip_norm: expected a number, not .inf");
    assert_bind_fails("name: [a]\n", "r.yaml:1: name: expected a text, not a list");
    assert_bind_fails("device: [cpu]\n",
                      "r.yaml:1: device: expected one of auto, cpu, gpu, not a list");
    assert_bind_fails("bad: {a: 1}\n", "r.yaml:1: bad: expected a count such as 1000 or a share "
                                       "from 0% to 100%, not a mapping");
    assert_bind_fails("train: {a: 1}\n",
                      "r.yaml:1: train: expected a text or a list of them, not a mapping");
    assert_bind_fails("train:\n- a\n- ~\n", "r.yaml:3: train[1]: expected a text, not nothing");
    assert_bind_fails("train: [[a]]\n", "r.yaml:1: train[0]: expected a text, not a list");
    assert_bind_fails("units: {}\n", "r.yaml:1: units: expected a list of whole numbers, each from "
                                     "1 to 4096, not a mapping");
    assert_bind_fails("units: [8, 8.5]\n", "r.yaml:1: units[1]: expected a whole number from 1 to "
                                           "4096, not 8.5");
    assert_bind_fails("rule: sgd\n", "r.yaml:1: rule: expected a mapping, not sgd");
    assert_bind_fails("fields: {column: a}\n",
                      "r.yaml:1: fields: expected a list of mappings, not a mapping");
    assert_bind_fails("fields: [a]\n", "r.yaml:1: fields[0]: expected a mapping, not a");
    char *text = repeat("epochs: ", "x", 81, "");
    char *message =
        repeat("r.yaml:1: epochs: expected a whole number from 1 to 100, not ", "x", 80, "…");
    assert_bind_fails(text, message);
    tdm_free(text);
    tdm_free(message);
    tdm_config *config;
    options values;
    ck_assert_ok(parse("a: 1\n", &config));
    assert_message(tdm_config_bind(tdm_config_get(tdm_config_root(config), "a"), &schema, &values),
                   "r.yaml:1: a: expected a mapping");
    tdm_config_free(config);
}
END_TEST

START_TEST(numbers_out_of_range_are_refused)
{
    assert_bind_fails("epochs: 0\n",
                      "r.yaml:1: epochs: expected a whole number from 1 to 100, not 0");
    assert_bind_fails("epochs: 101\n",
                      "r.yaml:1: epochs: expected a whole number from 1 to 100, not 101");
    assert_bind_fails("epochs: 9223372036854775808\n",
                      "r.yaml:1: epochs: expected a whole number from 1 to 100, not "
                      "9223372036854775808, which does not fit in 64 bits");
    assert_bind_fails("clip_norm: 1e999\n", "r.yaml:1: clip_norm: expected a number, not 1e999, "
                                            "which no 64-bit float can hold");
    assert_bind_fails("rule: {learning_rate: -0.1}\n",
                      "r.yaml:1: rule.learning_rate: expected a number from 0 to 10, not -0.1");
    assert_bind_fails("units: 0\n",
                      "r.yaml:1: units: expected a whole number from 1 to 4096, not 0");
    assert_bind_fails("fields: [{column: a, buckets: 0}]\n",
                      "r.yaml:1: fields[0].buckets: expected a whole number of at least 1, not 0");
    assert_bind_fails("bad: -1\n", "r.yaml:1: bad: expected a count such as 1000 or a share from "
                                   "0% to 100%, not -1");
    assert_bind_fails("bad: 100.5%\n", "r.yaml:1: bad: expected a count such as 1000 or a share "
                                       "from 0% to 100%, not 100.5%");
    ck_assert_fails(bind("bad: 0.5\n", NULL, &(options){0}, &(tdm_config *){NULL}), TDM_E_CONFIG,
                    "not 0.5");
    ck_assert_fails(bind("bad: 9007199254740993\n", NULL, &(options){0}, &(tdm_config *){NULL}),
                    TDM_E_CONFIG, "not 9007199254740993");
    ck_assert_fails(bind("bad: '5'\n", NULL, &(options){0}, &(tdm_config *){NULL}), TDM_E_CONFIG,
                    "not the text \"5\"");
}
END_TEST

START_TEST(unknown_choices_are_refused)
{
    assert_bind_fails("rule: {type: adm}\n", "r.yaml:1: rule.type: expected one of adam, sgd, "
                                             "adagrad, not adm; did you mean adam?");
    assert_bind_fails("rule: {type: lamb3}\n",
                      "r.yaml:1: rule.type: expected one of adam, sgd, adagrad, not lamb3");
}
END_TEST

typedef struct required {
    struct {
        int64_t inner;
    } section;
} required;

static const tdm_config_key inner_keys[] = {
    {"inner", TDM_CONFIG_INT, 0, .min = -5, .max = 5, .help = "needed"},
};
static const tdm_config_schema inner_schema = {sizeof(int64_t), inner_keys, 1};
static const tdm_config_key outer_keys[] = {
    {"section", TDM_CONFIG_SECTION, 0, .section = &inner_schema, .help = "around it"},
};
static const tdm_config_schema outer_schema = {sizeof(required), outer_keys, 1};
static const tdm_config_key outermost_keys[] = {
    {"outer", TDM_CONFIG_SECTION, 0, .section = &outer_schema, .help = "around both"},
};
static const tdm_config_schema outermost_schema = {sizeof(required), outermost_keys, 1};

START_TEST(missing_keys_are_refused)
{
    assert_bind_fails("epochs: 1\nfields:\n  - column: a\n  - buckets: 5\n",
                      "r.yaml:4: fields[1].column: missing; expected a text: its column");
    tdm_config *config;
    required values;
    ck_assert_ok(parse("\nouter:\n  section:\n    inner:\n", &config));
    assert_message(tdm_config_bind(tdm_config_root(config), &outermost_schema, &values),
                   "r.yaml:3: outer.section.inner: missing; expected a whole number from -5 to 5: "
                   "needed");
    tdm_config_free(config);
    ck_assert_ok(parse("\nouter: {}\n", &config));
    assert_message(tdm_config_bind(tdm_config_root(config), &outermost_schema, &values),
                   "r.yaml:2: outer.section.inner: missing; expected a whole number from -5 to 5: "
                   "needed");
    tdm_config_free(config);
    ck_assert_ok(parse("\n{}\n", &config));
    assert_message(tdm_config_bind(tdm_config_root(config), &outermost_schema, &values),
                   "r.yaml:2: outer.section.inner: missing; expected a whole number from -5 to 5: "
                   "needed");
    tdm_config_free(config);
    assert_message(tdm_config_bind(NULL, &outermost_schema, &values),
                   "recipe: outer.section.inner: missing; expected a whole number from -5 to 5: "
                   "needed");
}
END_TEST

START_TEST(a_bad_default_names_its_key)
{
    static const tdm_config_key bad_keys[] = {
        {"count", TDM_CONFIG_INT, 0, "many", .help = "wrong"},
    };
    static const tdm_config_schema bad_schema = {sizeof(int64_t), bad_keys, 1};
    int64_t value;
    assert_message(tdm_config_bind(NULL, &bad_schema, &value),
                   "key count: default: expected a whole number, not many");
}
END_TEST

/* ---- numbers -----------------------------------------------------------------------------------
 */

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
    char *longest = repeat("0.", "0", 80, "1%");
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
    folder = tdm_test_folder();
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

/* ---- the resolved recipe -----------------------------------------------------------------------
 */

static const char resolved[] = "shuffle: false\n"
                               "epochs: 7\n"
                               "clip_norm: 0.1\n"
                               "name: \"a: b\"\n"
                               "device: gpu\n"
                               "bad: 0.07%\n"
                               "train: [day_0.tsv, \"*.gz\", \"null\"]\n"
                               "units: [1, 4096]\n"
                               "rule:\n"
                               "  type: sgd\n"
                               "  learning_rate: 1.0e-05\n"
                               "fields:\n"
                               "  - column: C1\n"
                               "    buckets: 1000\n"
                               "  - column: \"5\"\n"
                               "    buckets: 6\n"
                               "model:\n"
                               "  type: deepfm\n"
                               "  x: {units: [1, \"2\", true], \"y\": ~, \"a,b\": {}, z: []}\n";

START_TEST(emit_writes_every_key_with_its_value)
{
    tdm_config *config;
    options values;
    tdm_text text = {0};
    ck_assert_ok(bind("model: {type: deepfm, x: {units: [1, '2', true], y: ~, 'a,b': {}, z: []}}\n"
                      "fields: [{column: C1}, {column: 5, buckets: 6}]\n"
                      "rule: {type: sgd, learning_rate: 0.00001}\n"
                      "units: [+1, 4096]\ntrain: [day_0.tsv, '*.gz', 'null']\nbad: 0.070%\n"
                      "device: gpu\nname: 'a: b'\nclip_norm: 1e-1\nepochs: 7\nshuffle: false\n",
                      NULL, &values, &config));
    ck_assert_ok(tdm_config_emit(&schema, &values, 0, &text));
    ck_assert_str_eq(text.bytes, resolved);
    tdm_config_unbind(&schema, &values);
    tdm_config_free(config);
    ck_assert_ok(bind(resolved, NULL, &values, &config));
    tdm_text again = {0};
    ck_assert_ok(tdm_config_emit(&schema, &values, 0, &again));
    ck_assert_str_eq(again.bytes, resolved);
    tdm_text_free(&text);
    tdm_text_free(&again);
    tdm_config_unbind(&schema, &values);
    tdm_config_free(config);
}
END_TEST

START_TEST(emit_writes_defaults_and_empty_values)
{
    options values;
    tdm_text text = {0};
    ck_assert_ok(tdm_config_bind(NULL, &schema, &values));
    ck_assert_ok(tdm_config_emit(&schema, &values, 2, &text));
    ck_assert_str_eq(text.bytes, "  shuffle: true\n"
                                 "  epochs: 1\n"
                                 "  clip_norm: 10\n"
                                 "  name: ~\n"
                                 "  device: auto\n"
                                 "  bad: 0.1%\n"
                                 "  train: []\n"
                                 "  units: [400, 200]\n"
                                 "  rule:\n"
                                 "    type: adam\n"
                                 "    learning_rate: 0.001\n"
                                 "  fields: []\n"
                                 "  model: ~\n");
    tdm_text_free(&text);
    tdm_config_unbind(&schema, &values);
}
END_TEST

static void assert_emitted_name(const char *name, const char *yaml)
{
    static const tdm_config_key name_keys[] = {
        {"name", TDM_CONFIG_STRING, 0, "~", .help = "any text"},
    };
    static const tdm_config_schema name_schema = {sizeof(char *), name_keys, 1};
    tdm_text text = {0};
    ck_assert_ok(tdm_config_emit(&name_schema, &name, 0, &text));
    char expected[256];
    snprintf(expected, sizeof expected, "name: %s\n", yaml);
    ck_assert_str_eq(text.bytes, expected);
    tdm_config *config;
    ck_assert_ok(parse(text.bytes, &config));
    char *back;
    ck_assert_ok(tdm_config_bind(tdm_config_root(config), &name_schema, &back));
    ck_assert_str_eq(back, name);
    tdm_config_unbind(&name_schema, &back);
    tdm_config_free(config);
    tdm_text_free(&text);
}

START_TEST(emit_quotes_where_it_must)
{
    assert_emitted_name("runs/a-b_c.1+2", "runs/a-b_c.1+2");
    assert_emitted_name("/data", "/data");
    assert_emitted_name("_", "_");
    static const char *const quoted[] = {
        "",    "~",  "null", "Null", "true", "No",   "ON",  "y",    "5",  "1e5", ".5",  "-a",
        "a b", " a", "a,b",  "a:",   "#a",   "a #b", "*a",  "&a",   "!a", "[a]", "{a}", "%a",
        "@a",  "`a", "|",    ">",    "'a'",  "...",  "---", "0.5%", "a?", "=",   "<<"};
    char yaml[32];
    for (size_t i = 0; i < sizeof quoted / sizeof quoted[0]; i++) {
        snprintf(yaml, sizeof yaml, "\"%s\"", quoted[i]);
        assert_emitted_name(quoted[i], yaml);
    }
    assert_emitted_name("a\"b\\c", "\"a\\\"b\\\\c\"");
    assert_emitted_name("a\nb\tc\rd\x01\x7f", "\"a\\nb\\tc\\x0dd\\x01\\x7f\"");
    assert_emitted_name("caf\xc3\xa9 \xf0\x9f\x98\x80", "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"");
    assert_emitted_name("\xc2\x85\xe2\x80\xa8\xef\xbb\xbf\xef\xbf\xbf",
                        "\"\\u0085\\u2028\\ufeff\\uffff\"");
}
END_TEST

START_TEST(emit_refuses_texts_that_are_not_utf8)
{
    static const tdm_config_key name_keys[] = {
        {"name", TDM_CONFIG_STRING, 0, "~", .help = "any text"},
    };
    static const tdm_config_schema name_schema = {sizeof(char *), name_keys, 1};
    static const char *const bad[] = {"\xff",
                                      "\xc3",
                                      "\x80",
                                      "\xc0\x80",
                                      "\xe0\x80\x80",
                                      "\xed\xa0\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xf4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tdm_text text = {0};
        ck_assert_fails(tdm_config_emit(&name_schema, &bad[i], 0, &text), TDM_E_ARG, "not UTF-8");
        tdm_text_free(&text);
    }
}
END_TEST

START_TEST(emit_writes_empty_schemas)
{
    static const tdm_config_schema nothing = {.size = 8};
    static const tdm_config_key empty_keys[] = {
        {"section", TDM_CONFIG_SECTION, 0, .section = &nothing, .help = "no keys"},
        {"sections", TDM_CONFIG_SECTIONS, 8, "[]", .section = &nothing, .help = "no keys"},
    };
    static const tdm_config_schema empty_schema = {8 + sizeof(tdm_sections), empty_keys, 2};
    _Alignas(16) char values[8 + sizeof(tdm_sections)];
    tdm_config *config;
    ck_assert_ok(parse("section: {}\nsections: [{}, {}]\n", &config));
    ck_assert_ok(tdm_config_bind(tdm_config_root(config), &empty_schema, values));
    tdm_text text = {0};
    ck_assert_ok(tdm_config_emit(&empty_schema, values, 0, &text));
    ck_assert_str_eq(text.bytes, "section: {}\nsections:\n  - {}\n  - {}\n");
    tdm_text_free(&text);
    tdm_config_unbind(&empty_schema, values);
    tdm_config_free(config);
}
END_TEST

START_TEST(emit_writes_lists_of_mappings_line_by_line)
{
    tdm_config *config;
    options values;
    tdm_text text = {0};
    ck_assert_ok(bind("model: [{column: I1..I13, t: 0.5%}, 7]\n", NULL, &values, &config));
    ck_assert_ok(tdm_config_emit(&schema, &values, 0, &text));
    ck_assert_ptr_nonnull(
        strstr(text.bytes, "model:\n  - {column: I1..I13, t: \"0.5%\"}\n  - 7\n"));
    tdm_text_free(&text);
    tdm_config_unbind(&schema, &values);
    tdm_config_free(config);
}
END_TEST

START_TEST(describe_lists_every_key)
{
    tdm_text text = {0};
    ck_assert_ok(tdm_config_describe(&schema, "", &text));
    ck_assert_str_eq(text.bytes,
                     "shuffle  true  permute rows (true or false)\n"
                     "epochs  1  passes (a whole number from 1 to 100)\n"
                     "clip_norm  10  largest norm (a number)\n"
                     "name  ~  of the run (a text)\n"
                     "device  auto  where to train (one of auto, cpu, gpu)\n"
                     "bad  0.1%  bad records (a count such as 1000 or a share from 0% to 100%)\n"
                     "train  []  files (a text or a list of them)\n"
                     "units  [400, 200]  widths (a list of whole numbers, each from 1 to 4096)\n"
                     "rule  {}  the optimizer (a mapping)\n"
                     "rule.type  adam  the rule (one of adam, sgd, adagrad)\n"
                     "rule.learning_rate  0.001  step size (a number from 0 to 10)\n"
                     "fields  ~  the features (a list of mappings)\n"
                     "fields[].column  (required)  its column (a text)\n"
                     "fields[].buckets  1000  rows of the table (a whole number of at least 1)\n"
                     "model  ~  the model (a value)\n");
    tdm_text_free(&text);
    static const tdm_config_key most_keys[] = {
        {"n", TDM_CONFIG_FLOAT, 0, "0", -INFINITY, 1, .help = "a bound above"},
    };
    static const tdm_config_schema most_schema = {sizeof(double), most_keys, 1};
    ck_assert_ok(tdm_config_describe(&most_schema, "x.y", &text));
    ck_assert_str_eq(text.bytes, "x.y.n  0  a bound above (a number of at most 1)\n");
    tdm_text_free(&text);
}
END_TEST

/* ---- differences -------------------------------------------------------------------------------
 */

static tdm_status list_difference(void *context, const char *key, const char *in_a,
                                  const char *in_b)
{
    return tdm_text_printf(context, "%s: %s -> %s\n", key, in_a != NULL ? in_a : "(none)",
                           in_b != NULL ? in_b : "(none)");
}

static tdm_status stop_at_once(void *context, const char *key, const char *in_a, const char *in_b)
{
    (void)context, (void)in_a, (void)in_b;
    return tdm_fail(TDM_E_STATE, "stopped at %s", key);
}

START_TEST(diff_names_the_leaves_that_differ)
{
    tdm_config *a, *b;
    tdm_text text = {0};
    ck_assert_ok(parse("same: 1\nquoted: 'x'\ns: {x: 1, y: 2, only: [1]}\nlist: [1, 2]\n"
                       "kind: {p: 1, q: {}}\nnumber: 5\nnull_a: ~\nempty: {}\n",
                       &a));
    ck_assert_ok(parse("list: [1, 3]\ns: {y: 3, x: 1}\nquoted: x\nsame: 1\nkind: 7\n"
                       "number: '5'\nnew: {z: {w: on}}\nnull_a: 0\n",
                       &b));
    ck_assert_ok(tdm_config_diff(tdm_config_root(a), tdm_config_root(b), list_difference, &text));
    ck_assert_str_eq(text.bytes, "s.y: 2 -> 3\n"
                                 "s.only: [1] -> (none)\n"
                                 "list: [1, 2] -> [1, 3]\n"
                                 "kind: (none) -> 7\n"
                                 "kind.p: 1 -> (none)\n"
                                 "number: 5 -> \"5\"\n"
                                 "null_a: (none) -> 0\n"
                                 "new.z.w: (none) -> \"on\"\n");
    tdm_text_free(&text);
    ck_assert_ok(tdm_config_diff(tdm_config_root(a), tdm_config_root(a), stop_at_once, NULL));
    ck_assert_fails(tdm_config_diff(NULL, tdm_config_root(b), stop_at_once, NULL), TDM_E_STATE,
                    "stopped at list");
    tdm_config_free(a);
    tdm_config_free(b);
}
END_TEST

/* ---- did you mean ------------------------------------------------------------------------------
 */

START_TEST(nearest_suggests_likely_words_only)
{
    static const char *const words[] = {"epochs", "batch_size", "learning_rate", "lr", "seed"};
    ck_assert_str_eq(tdm_nearest("epoch", words, 5), "epochs");
    ck_assert_str_eq(tdm_nearest("batchsize", words, 5), "batch_size");
    ck_assert_str_eq(tdm_nearest("laerning_rat", words, 5), "learning_rate");
    ck_assert_str_eq(tdm_nearest("sede", words, 5), "seed");
    ck_assert_str_eq(tdm_nearest("rl", words, 5), "lr");
    ck_assert_ptr_null(tdm_nearest("x", words, 5));
    ck_assert_ptr_null(tdm_nearest("", words, 5));
    ck_assert_ptr_null(tdm_nearest("momentum", words, 5));
    ck_assert_ptr_null(tdm_nearest("epochs", words, 0));
    static const char *const nearer_later[] = {"train_b", "train_a", "trains"};
    ck_assert_str_eq(tdm_nearest("trains", nearer_later, 3), "trains");
    ck_assert_str_eq(tdm_nearest("train", nearer_later, 3), "trains");
    char *longest = repeat("", "x", 65, "");
    const char *same = longest;
    ck_assert_ptr_null(tdm_nearest(longest, &same, 1));
    ck_assert_ptr_null(tdm_nearest("xxxx", &same, 1));
    ck_assert_ptr_eq(tdm_nearest(longest + 1, (const char *[]){longest + 1}, 1), longest + 1);
    tdm_free(longest);
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------
 */

/* All that allocates, from a file on the disk to a difference. */
static tdm_status use_everything(const char *path)
{
    static const char *const overrides[] = {"rule.type=sgd", "new.key=[1, 2]", "new=~"};
    tdm_config *config = NULL, *other = NULL;
    options values = {0};
    tdm_text text = {0};
    tdm_status status;
    TDM_TRY_GOTO(tdm_config_load(path, overrides, 3, &config), done);
    TDM_TRY_GOTO(parse(resolved, &other), done);
    TDM_TRY_GOTO(tdm_config_bind(tdm_config_root(other), &schema, &values), done);
    TDM_TRY_GOTO(tdm_config_emit(&schema, &values, 0, &text), done);
    TDM_TRY_GOTO(tdm_config_describe(&schema, "a", &text), done);
    TDM_TRY_GOTO(
        tdm_config_diff(tdm_config_root(config), tdm_config_root(other), list_difference, &text),
        done);
done:
    tdm_text_free(&text);
    tdm_config_unbind(&schema, &values);
    tdm_config_free(config);
    tdm_config_free(other);
    return status;
}

/* Errors allocate their words. */
static tdm_status fail_to_bind(const char *text)
{
    tdm_config *config;
    options values;
    tdm_status status = bind(text, NULL, &values, &config);
    return status == TDM_E_CONFIG ? TDM_OK : status;
}

static tdm_status fail_to_bind_unknown(const char *unused)
{
    (void)unused;
    return fail_to_bind("train: [a]\nepoch: 1\n");
}

static tdm_status fail_to_bind_missing(const char *unused)
{
    (void)unused;
    return fail_to_bind("train: [a]\nfields: [{column: a}, {buckets: 1}]\n");
}

static tdm_status fail_to_bind_wrong(const char *unused)
{
    (void)unused;
    return fail_to_bind("train: [a]\nname: b\nrule: {type: 5}\n");
}

static void fail_each_allocation(tdm_status (*use)(const char *path), const char *path)
{
    int64_t live = tdm_memory_stats_get().live_bytes;
    int64_t n = 1;
    for (tdm_status status = TDM_E_NOMEM; status != TDM_OK; n++) {
        tdm_memory_fail_at(n, n % 2 == 0);
        status = use(path);
        tdm_memory_fail_at(0, false);
        ck_assert_msg(status == TDM_OK || status == TDM_E_NOMEM, "allocation %lld: %s",
                      (long long)n, tdm_error_message());
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
    }
    ck_assert_int_gt(n, 3);
}

START_TEST(failing_allocations_leave_nothing_behind)
{
    folder = tdm_test_folder();
    put("base.yaml", "train: [b.tsv]\nrule: {type: adam}\n");
    char path[512];
    snprintf(path, sizeof path, "%s",
             put("child.yaml", "extends: base.yaml\nrule: {learning_rate: 1}\nmodel: {a: [1]}\n"));
    fail_each_allocation(use_everything, path);
    fail_each_allocation(fail_to_bind_unknown, NULL);
    fail_each_allocation(fail_to_bind_missing, NULL);
    fail_each_allocation(fail_to_bind_wrong, NULL);
}
END_TEST

TDM_CHECK_MAIN(tree_has_what_the_file_says, tree_has_nulls_for_absent_values,
               errors_name_file_line_and_path, bad_yaml_is_refused, other_encodings_are_refused,
               bad_keys_are_refused, anchors_aliases_and_tags_are_refused, bombs_are_refused,
               extends_merges_mappings_and_replaces_the_rest,
               extends_is_relative_to_the_file_that_says_it, bad_extends_are_refused,
               overrides_replace_and_create, override_of_a_mapping_replaces_it,
               bad_overrides_are_refused, every_type_is_read, absent_values_get_their_defaults,
               one_value_stands_for_a_list, unknown_keys_are_refused, wrong_types_are_refused,
               numbers_out_of_range_are_refused, unknown_choices_are_refused,
               missing_keys_are_refused, a_bad_default_names_its_key, integers_are_read_strictly,
               floats_are_read_strictly, percents_are_read_strictly,
               numbers_are_written_with_the_fewest_digits, numbers_read_back_to_the_same_bits,
               numbers_do_not_depend_on_the_locale, emit_writes_every_key_with_its_value,
               emit_writes_defaults_and_empty_values, emit_quotes_where_it_must,
               emit_refuses_texts_that_are_not_utf8, emit_writes_empty_schemas,
               emit_writes_lists_of_mappings_line_by_line, describe_lists_every_key,
               diff_names_the_leaves_that_differ, nearest_suggests_likely_words_only,
               failing_allocations_leave_nothing_behind)
