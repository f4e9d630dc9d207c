#include "core/config.h"

#include "core/config_internal.h"
#include "core/memory.h"
#include "tests/support/config_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the tree -------------------------------------------------------------------------------- */

START_TEST(tree_has_what_the_file_says)
{
    tdm_config *config;
    ck_assert_ok(tdm_test_parse("a: x\nb: [1, {c: d}]\ne: ~\nf:\n  g: ''\n", &config));
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
    ck_assert_ok(tdm_test_parse("a: ~\nb: null\nc:\nd: [~, '~']\n", &config));
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
    ck_assert_ok(tdm_test_parse("a:\n  b:\n    - x\n    - c: 1\n", &config));
    const tdm_config_node *root = tdm_config_root(config);
    const tdm_config_node *list = tdm_config_get(tdm_config_get(root, "a"), "b");
    const tdm_config_node *inner = tdm_config_get(tdm_config_item(list, 1), "c");
    tdm_test_message(tdm_config_fail(inner, "is %d", 7), "r.yaml:4: a.b[1].c: is 7");
    tdm_test_message(tdm_config_fail(tdm_config_item(list, 0), "no"), "r.yaml:3: a.b[0]: no");
    tdm_test_message(tdm_config_fail(root, "no"), "r.yaml:1: no");
    tdm_test_message(tdm_config_fail(NULL, "no"), "recipe: no");
    tdm_config_free(config);
}
END_TEST

START_TEST(bad_yaml_is_refused)
{
    tdm_test_parse_fails("", "r.yaml:1: the recipe is empty");
    tdm_test_parse_fails("# nothing\n", "r.yaml:1: the recipe is empty");
    tdm_test_parse_fails("~\n", "r.yaml:1: the recipe is empty");
    tdm_test_parse_fails("- a\n",
                         "r.yaml:1: a recipe is a mapping such as \"task: ctr\", not a list");
    tdm_test_parse_fails("\nword\n",
                         "r.yaml:2: a recipe is a mapping such as \"task: ctr\", not a text");
    tdm_test_parse_fails("a: 1\nb: [1, 2\nc: 3\n",
                         "r.yaml:3: b: not YAML: did not find expected ',' or ']' while parsing a "
                         "flow sequence, in column 2");
    tdm_test_parse_fails("a:\n\tb: 1\n",
                         "r.yaml:2: a: not YAML: found character that cannot start "
                         "any token while scanning for the next token, in column 1");
    tdm_test_parse_fails("a: 1\n---\nb: 2\n",
                         "r.yaml:2: a second YAML document begins here; a recipe is one");
}
END_TEST

START_TEST(other_encodings_are_refused)
{
    tdm_test_parse_fails("a: 1\nb: \xff\n",
                         "r.yaml:2: not YAML in UTF-8: invalid leading UTF-8 octet (0xff)");
    tdm_test_parse_fails("\xff\xfe\x61", "r.yaml:1: not YAML in UTF-8: invalid leading UTF-8 octet "
                                         "(0xff)");
    tdm_test_parse_fails("a: 1\x01\n",
                         "r.yaml:1: not YAML in UTF-8: control characters are not allowed (0x1)");
    tdm_config *config;
    ck_assert_fails(tdm_config_parse("a: b\0c", 6, "r.yaml", NULL, 0, &config), TDM_E_CONFIG,
                    "control characters are not allowed (0x0)");
    tdm_test_parse_fails("a: \"b\\0c\"\n", "r.yaml:1: a: a text must not hold the character \\0");
    ck_assert_ok(tdm_test_parse("\xef\xbb\xbf"
                                "a: \xc3\xa9\n",
                                &config));
    ck_assert_str_eq(tdm_config_text(tdm_config_get(tdm_config_root(config), "a")), "\xc3\xa9");
    tdm_config_free(config);
}
END_TEST

START_TEST(bad_keys_are_refused)
{
    tdm_test_parse_fails("a: 1\nb: 2\na: 3\n", "r.yaml:3: a: the same key twice, first in line 1");
    tdm_test_parse_fails("x:\n  a: 1\n  a: {}\n",
                         "r.yaml:3: x.a: the same key twice, first in line 2");
    tdm_test_parse_fails("x: [{a: 1}, {b: 1, b: 1}]\n",
                         "r.yaml:1: x[1].b: the same key twice, first in line 1");
    tdm_test_parse_fails("? [a, b]\n: 1\n",
                         "r.yaml:1: a key must be a text, not a mapping or a list");
    tdm_test_parse_fails("x:\n  ? {a: b}\n  : 1\n",
                         "r.yaml:2: x: a key must be a text, not a mapping or a list");
    tdm_test_parse_fails("'': 1\n", "r.yaml:1: a key must not be empty");
    char text[TDM_CONFIG_MAX_KEY + 8];
    snprintf(text, sizeof text, "%0*d: 1\n", TDM_CONFIG_MAX_KEY + 1, 0);
    tdm_test_parse_fails(text, "r.yaml:1: the key \"0000000000000000000000000000000000000000…\" is "
                               "longer than 200 bytes");
    snprintf(text, sizeof text, "%0*d: 1\n", TDM_CONFIG_MAX_KEY, 0);
    tdm_config *config;
    ck_assert_ok(tdm_test_parse(text, &config));
    tdm_config_free(config);
}
END_TEST

START_TEST(anchors_aliases_and_tags_are_refused)
{
    tdm_test_parse_fails(
        "a: 1\nb: *x\n",
        "r.yaml:2: b: anchors and aliases are not allowed; quote a text that begins "
        "with & or *: \"*x\"");
    tdm_test_parse_fails(
        "a: &x 1\n", "r.yaml:1: a: anchors and aliases are not allowed; quote a text that begins "
                     "with & or *: \"&x\"");
    ck_assert_fails(tdm_test_parse("a: &x [1]\n", &(tdm_config *){NULL}), TDM_E_CONFIG, "\"&x\"");
    ck_assert_fails(tdm_test_parse("a: &x {b: 1}\n", &(tdm_config *){NULL}), TDM_E_CONFIG,
                    "\"&x\"");
    tdm_test_parse_fails("a: !mine 1\n", "r.yaml:1: a: tags are not allowed; quote a text that "
                                         "begins with !: \"!mine\"");
    ck_assert_fails(tdm_test_parse("a: !!map {}\n", &(tdm_config *){NULL}), TDM_E_CONFIG, "tags");
    ck_assert_fails(tdm_test_parse("a: !!seq []\n", &(tdm_config *){NULL}), TDM_E_CONFIG, "tags");
}
END_TEST

START_TEST(bombs_are_refused)
{
    tdm_config *config;
    char *deep = tdm_test_repeat("a: ", "[", TDM_CONFIG_MAX_DEPTH, "");
    ck_assert_fails(tdm_test_parse(deep, &config), TDM_E_CONFIG, ": nested deeper than 64 levels");
    tdm_free(deep);
    deep = tdm_test_repeat("a: ", "[", 1 << 20, "");
    ck_assert_fails(tdm_test_parse(deep, &config), TDM_E_CONFIG, ": nested deeper than 64 levels");
    tdm_free(deep);
    char *open = tdm_test_repeat("a: ", "[", TDM_CONFIG_MAX_DEPTH - 1, "");
    deep = tdm_test_repeat(open, "]", TDM_CONFIG_MAX_DEPTH - 1, "");
    ck_assert_ok(tdm_test_parse(deep, &config));
    tdm_config_free(config);
    tdm_free(open);
    tdm_free(deep);

    /* The root, a key and its list make three. */
    char *many = tdm_test_repeat("a: [", "1,", TDM_CONFIG_MAX_NODES - 3, "]");
    ck_assert_ok(tdm_test_parse(many, &config));
    tdm_config_free(config);
    ck_assert_fails(tdm_test_parse_with(many, "b=1", &config), TDM_E_CONFIG,
                    "command line: b: more than 100000 keys and values");
    tdm_free(many);
    many = tdm_test_repeat("a: [", "1,", TDM_CONFIG_MAX_NODES - 2, "]");
    tdm_test_parse_fails(many, "r.yaml:1: a: more than 100000 keys and values");
    tdm_free(many);

    char *big = tdm_test_repeat("a: 1\n#", "0123456789abcdef", TDM_CONFIG_MAX_BYTES / 16, "\n");
    tdm_test_parse_fails(big, "r.yaml: longer than 4194304 bytes");
    tdm_free(big);
}
END_TEST

/* ---- extends --------------------------------------------------------------------------------- */

static const char *text_at(const tdm_config *config, const char *section, const char *key)
{
    const tdm_config_node *root = tdm_config_root(config);
    return tdm_config_text(tdm_config_get(tdm_config_get(root, section), key));
}

START_TEST(extends_merges_mappings_and_replaces_the_rest)
{
    const char *folder = tdm_test_folder();
    tdm_test_put(folder, "a.yaml",
                 "s: {x: 1, y: 1, z: 1}\nlist: [1, 2]\nt: {x: 1}\nu: {x: 1}\nkept: 1\n");
    tdm_test_put(folder, "b.yaml", "extends: a.yaml\ns: {y: 2, z: 2}\nlist: [3]\nt: 5\nu: ~\n");
    const char *path =
        tdm_test_put(folder, "c.yaml", "s:\n  z: 3\n  w: 3\nextends: b.yaml\nt: {y: 2}\n");
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
    tdm_test_message(tdm_config_fail(tdm_config_get(tdm_config_get(root, "s"), "x"), "no"),
                     message);
    snprintf(message, sizeof message, "%s/c.yaml:2: s.z: no", folder);
    tdm_test_message(tdm_config_fail(tdm_config_get(tdm_config_get(root, "s"), "z"), "no"),
                     message);
    tdm_config_free(config);
}
END_TEST

START_TEST(extends_is_relative_to_the_file_that_says_it)
{
    const char *folder = tdm_test_folder();
    tdm_test_put(folder, "base.yaml", "s: {x: 1}\n");
    const char *path = tdm_test_put(folder, "child.yaml", "{}\n");
    tdm_config *config;
    char text[512];
    ck_assert_ok(tdm_config_parse("extends: base.yaml", 18, path, NULL, 0, &config));
    ck_assert_str_eq(text_at(config, "s", "x"), "1");
    tdm_config_free(config);
    snprintf(text, sizeof text, "extends: %s/base.yaml\n", folder);
    ck_assert_ok(tdm_test_parse(text, &config));
    ck_assert_str_eq(text_at(config, "s", "x"), "1");
    tdm_config_free(config);
    ck_assert_ok(tdm_test_parse("extends: ~\na: 1\n", &config));
    ck_assert_ptr_null(tdm_config_get(tdm_config_root(config), "extends"));
    tdm_config_free(config);
}
END_TEST

START_TEST(bad_extends_are_refused)
{
    const char *folder = tdm_test_folder();
    tdm_config *config;
    char message[1400], prefix[600];
    const char *path = tdm_test_put(folder, "self.yaml", "a: 1\nextends: self.yaml\n");
    snprintf(message, sizeof message,
             "%s:2: extends: %s extends this file, so this file cannot extend it", path, path);
    tdm_test_message(tdm_config_load(path, NULL, 0, &config), message);

    tdm_test_put(folder, "one.yaml", "extends: two.yaml\n");
    tdm_test_put(folder, "two.yaml", "extends: three.yaml\n");
    tdm_test_put(folder, "three.yaml", "extends: ./one.yaml\n");
    snprintf(message, sizeof message,
             "%s/three.yaml:1: extends: %s/./one.yaml extends this file, so this file cannot "
             "extend it",
             folder, folder);
    tdm_test_message(tdm_config_load(tdm_test_path(folder, "one.yaml"), NULL, 0, &config), message);

    char name[32], text[64];
    for (int i = 0; i <= TDM_CONFIG_MAX_FILES; i++) {
        snprintf(name, sizeof name, "%d.yaml", i);
        snprintf(text, sizeof text, i > 0 ? "extends: %d.yaml\n" : "a: %d\n", i - 1);
        path = tdm_test_put(folder, name, text);
        if (i == TDM_CONFIG_MAX_FILES - 1)
            ck_assert_ok(tdm_config_load(path, NULL, 0, &config));
    }
    tdm_config_free(config);
    snprintf(message, sizeof message, "%s/1.yaml:1: extends: more than 32 files in a row", folder);
    tdm_test_message(tdm_config_load(path, NULL, 0, &config), message);

    path = tdm_test_put(folder, "big.yaml", "a: 1\n#");
    FILE *file = fopen(path, "r+");
    ck_assert_int_eq(ftruncate(fileno(file), TDM_CONFIG_MAX_BYTES + 1), 0);
    fclose(file);
    snprintf(message, sizeof message, "%s: longer than 4194304 bytes", path);
    tdm_test_message(tdm_config_load(path, NULL, 0, &config), message);

    path = tdm_test_put(folder, "lost.yaml", "extends: nowhere.yaml\n");
    ck_assert_fails(tdm_config_load(path, NULL, 0, &config), TDM_E_IO, "nowhere.yaml");
    snprintf(prefix, sizeof prefix, "%s/lost.yaml:1: extends: ", folder);
    ck_assert_ptr_eq(strstr(tdm_error_message(), prefix), tdm_error_message());

    tdm_test_put(folder, "broken.yaml", "a: 1\na: 2\n");
    path = tdm_test_put(folder, "child.yaml", "extends: broken.yaml\n");
    snprintf(message, sizeof message, "%s/broken.yaml:2: a: the same key twice, first in line 1",
             folder);
    tdm_test_message(tdm_config_load(path, NULL, 0, &config), message);
    tdm_test_parse_fails("extends: [a]\n", "r.yaml:1: extends: expected the path of one recipe");
    tdm_test_parse_fails("extends: ''\n", "r.yaml:1: extends: expected the path of one recipe");
    ck_assert_fails(tdm_config_load("/nowhere/r.yaml", NULL, 0, &config), TDM_E_IO,
                    "/nowhere/r.yaml");
    ck_assert_ptr_null(config);
}
END_TEST

/* ---- overrides ------------------------------------------------------------------------------- */

START_TEST(overrides_replace_and_create)
{
    const char *overrides[] = {
        "epochs=3", "train=[a.tsv, b=c]", "rule.type=sgd", "model.x.y=1", "name=", "units=~"};
    const char *text = "epochs: 1\nname: n\nmodel: {x: 5, z: 1}\nunits: 7\n";
    tdm_config *config;
    options values;
    ck_assert_ok(tdm_config_parse(text, strlen(text), "r.yaml", overrides, 6, &config));
    ck_assert_ok(tdm_config_bind(tdm_config_root(config), &tdm_test_schema, &values));
    ck_assert_int_eq(values.epochs, 3);
    ck_assert_int_eq(values.train.count, 2);
    ck_assert_str_eq(values.train.items[1], "b=c");
    ck_assert_int_eq(values.rule.type, 1);
    ck_assert_ptr_null(values.name);
    ck_assert_int_eq(values.units.count, 2);
    ck_assert_str_eq(tdm_config_text(tdm_config_get(tdm_config_get(values.model, "x"), "y")), "1");
    ck_assert_str_eq(tdm_config_text(tdm_config_get(values.model, "z")), "1");
    tdm_config_unbind(&tdm_test_schema, &values);
    tdm_config_free(config);
}
END_TEST

START_TEST(override_of_a_mapping_replaces_it)
{
    tdm_config *config;
    ck_assert_ok(
        tdm_test_parse_with("rule: {type: sgd, learning_rate: 1}", "rule={type: adam}", &config));
    ck_assert_str_eq(text_at(config, "rule", "type"), "adam");
    ck_assert_ptr_null(text_at(config, "rule", "learning_rate"));
    tdm_config_free(config);
}
END_TEST

START_TEST(bad_overrides_are_refused)
{
    tdm_test_override_fails("epochs", "command line: expected key.path=value, not \"epochs\"");
    tdm_test_override_fails("=1", "command line: expected key.path=value, not \"=1\"");
    tdm_test_override_fails("a..b=1", "command line: expected key.path=value, not \"a..b=1\"");
    tdm_test_override_fails("a.=1", "command line: expected key.path=value, not \"a.=1\"");
    tdm_test_override_fails("epochs=two", "command line: epochs: expected a whole number from 1 to "
                                          "100, not two");
    tdm_test_override_fails("units=[1, x]",
                            "command line: units[1]: expected a whole number from 1 "
                            "to 4096, not x");
    tdm_test_override_fails("rule.typ=sgd",
                            "command line: rule.typ: unknown key; did you mean type? "
                            "Known here: type, learning_rate");
    tdm_test_override_fails("units=[1, {2",
                            "command line: units[1]: not YAML: did not find expected ',' or '}' "
                            "while parsing a flow mapping, in column 7");
    tdm_test_override_fails("train=*.gz",
                            "command line: train: not YAML: did not find expected "
                            "alphabetic or numeric character while scanning an alias, "
                            "in column 2");
    tdm_test_override_fails("model={a: 1, a: 2}", "command line: model.a: the same key twice");
    tdm_test_override_fails("name=\xff",
                            "command line: name: not YAML in UTF-8: invalid leading UTF-8 octet "
                            "(0xff)");
    char *path = tdm_test_repeat("a", ".a", TDM_CONFIG_MAX_DEPTH - 1, "=1");
    tdm_config *config;
    ck_assert_ok(tdm_test_parse_with("b: 1", path, &config));
    tdm_config_free(config);
    tdm_free(path);
    path = tdm_test_repeat("a", ".a", TDM_CONFIG_MAX_DEPTH - 1, "=[1]");
    ck_assert_fails(tdm_test_parse_with("b: 1", path, &config), TDM_E_CONFIG,
                    "nested deeper than 64");
    tdm_free(path);
    path = tdm_test_repeat("a", ".a", TDM_CONFIG_MAX_DEPTH, "=1");
    ck_assert_fails(tdm_test_parse_with("b: 1", path, &config), TDM_E_CONFIG,
                    "expected key.path=value");
    tdm_free(path);
}
END_TEST

TDM_CHECK_MAIN(tree_has_what_the_file_says, tree_has_nulls_for_absent_values,
               errors_name_file_line_and_path, bad_yaml_is_refused, other_encodings_are_refused,
               bad_keys_are_refused, anchors_aliases_and_tags_are_refused, bombs_are_refused,
               extends_merges_mappings_and_replaces_the_rest,
               extends_is_relative_to_the_file_that_says_it, bad_extends_are_refused,
               overrides_replace_and_create, override_of_a_mapping_replaces_it,
               bad_overrides_are_refused)
