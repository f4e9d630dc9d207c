#include "core/config.h"

#include "core/memory.h"
#include "tests/support/config_options.h"

#include <string.h>

/* ---- binding --------------------------------------------------------------------------------- */

START_TEST(every_type_is_read)
{
    tdm_config *config;
    options values;
    ck_assert_ok(
        tdm_test_bind("shuffle: false\nepochs: 7\nclip_norm: 2.5e-1\nname: 0123\ndevice: 'gpu'\n"
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
    tdm_config_unbind(&tdm_test_schema, &values);
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
    ck_assert_ok(tdm_config_bind(NULL, &tdm_test_schema, &values));
    assert_defaults(&values);
    tdm_config_unbind(&tdm_test_schema, &values);
    ck_assert_ok(tdm_test_bind("epochs: ~\nunits:\nrule:\nfields: null\nmodel: ~\n", NULL, &values,
                               &config));
    assert_defaults(&values);
    tdm_config_unbind(&tdm_test_schema, &values);
    tdm_config_free(config);
}
END_TEST

START_TEST(one_value_stands_for_a_list)
{
    tdm_config *config;
    options values;
    ck_assert_ok(tdm_test_bind("train: a.tsv\nunits: 8\n", NULL, &values, &config));
    ck_assert_int_eq(values.train.count, 1);
    ck_assert_str_eq(values.train.items[0], "a.tsv");
    ck_assert_int_eq(values.units.count, 1);
    ck_assert_int_eq(values.units.items[0], 8);
    tdm_config_unbind(&tdm_test_schema, &values);
    tdm_config_free(config);
}
END_TEST

START_TEST(a_list_is_read_alone)
{
    tdm_config *config;
    tdm_strings files = {0};
    ck_assert_ok(tdm_test_parse("a: {b: [x, y]}\nc: [x, ~]\nd: z\n", &config));
    const tdm_config_node *root = tdm_config_root(config);
    ck_assert_ok(tdm_config_bind_strings(tdm_config_get(tdm_config_get(root, "a"), "b"), &files));
    ck_assert_int_eq(files.count, 2);
    ck_assert_str_eq(files.items[1], "y");
    tdm_strings_free(&files);
    ck_assert_ok(tdm_config_bind_strings(tdm_config_get(root, "d"), &files));
    ck_assert_int_eq(files.count, 1);
    tdm_strings_free(&files);
    tdm_test_message(tdm_config_bind_strings(tdm_config_get(root, "c"), &files),
                     "r.yaml:2: c[1]: expected a text, not nothing");
    ck_assert_ptr_null(files.items);
    ck_assert_int_eq(files.count, 0);
    tdm_config_free(config);
}
END_TEST

/* Lists of numbers: read, described, written, refused. */
START_TEST(numbers_are_lists_too)
{
    tdm_floats values;
    const tdm_config_key key = {"split", TDM_CONFIG_FLOATS, 0, "[0.8, 0.1, 1e-1]", 0,
                                1,       .help = "shares"};
    const tdm_config_schema schema = {sizeof values, &key, 1};
    tdm_config *config;
    tdm_text text = {0};
    ck_assert_ok(tdm_config_bind(NULL, &schema, &values));
    ck_assert_ok(tdm_config_emit(&schema, &values, 0, &text));
    ck_assert_ok(tdm_config_describe(&schema, "", &text));
    ck_assert_str_eq(text.bytes, "split: [0.8, 0.1, 0.1]\n"
                                 "split  [0.8, 0.1, 1e-1]  shares (a list of numbers, each from 0 "
                                 "to 1)\n");
    tdm_config_unbind(&schema, &values);
    ck_assert_ok(tdm_test_parse("split: 0.25", &config));
    ck_assert_ok(tdm_config_bind(tdm_config_root(config), &schema, &values));
    ck_assert_int_eq(values.count, 1);
    ck_assert_double_eq(values.items[0], 0.25);
    tdm_config_unbind(&schema, &values);
    tdm_config_free(config);
    ck_assert_ok(tdm_test_parse("split:\n- 1\n- 1.5\n", &config));
    tdm_test_message(tdm_config_bind(tdm_config_root(config), &schema, &values),
                     "r.yaml:3: split[1]: expected a number from 0 to 1, not 1.5");
    tdm_config_free(config);
    ck_assert_ok(tdm_test_parse("split: {}", &config));
    tdm_test_message(tdm_config_bind(tdm_config_root(config), &schema, &values),
                     "r.yaml:1: split: expected a list of numbers, each from 0 to 1, not a "
                     "mapping");
    tdm_config_free(config);
    tdm_text_free(&text);
}
END_TEST

#define ALL_KEYS "shuffle, epochs, clip_norm, name, device, bad, train, units, rule, fields, model"

START_TEST(unknown_keys_are_refused)
{
    tdm_test_bind_fails("epochs: 1\nepoch: 2\n",
                        "r.yaml:2: epoch: unknown key; did you mean epochs? Known here: " ALL_KEYS);
    tdm_test_bind_fails("epochs: 1\nlr: 2\n", "r.yaml:2: lr: unknown key. Known here: " ALL_KEYS);
    tdm_test_bind_fails("rule:\n  laerning_rate:\n    1\n",
                        "r.yaml:2: rule.laerning_rate: unknown key; did you mean learning_rate? "
                        "Known here: type, learning_rate");
    tdm_test_bind_fails("fields:\n- {column: a}\n- {colum: b}\n",
                        "r.yaml:3: fields[1].colum: unknown key; did you mean column? Known here: "
                        "column, buckets");
    static const tdm_config_schema nothing = {0};
    tdm_config *config;
    ck_assert_ok(tdm_test_parse("a: 1\n", &config));
    tdm_test_message(tdm_config_bind(tdm_config_root(config), &nothing, &(int){0}),
                     "r.yaml:1: a: unknown key. Known here: none");
    tdm_config_free(config);
}
END_TEST

START_TEST(wrong_types_are_refused)
{
    tdm_test_bind_fails("shuffle: yes\n", "r.yaml:1: shuffle: expected true or false, not yes");
    tdm_test_bind_fails("shuffle: True\n", "r.yaml:1: shuffle: expected true or false, not True");
    tdm_test_bind_fails("shuffle: 'true'\n",
                        "r.yaml:1: shuffle: expected true or false, not the text \"true\"");
    tdm_test_bind_fails("epochs: [1]\n",
                        "r.yaml:1: epochs: expected a whole number from 1 to 100, not a list");
    tdm_test_bind_fails("epochs: '1'\n", "r.yaml:1: epochs: expected a whole number from 1 to 100, "
                                         "not the text \"1\"");
    tdm_test_bind_fails("epochs: 4k\n",
                        "r.yaml:1: epochs: expected a whole number from 1 to 100, not 4k");
    tdm_test_bind_fails("clip_norm:\n  {}\n",
                        "r.yaml:2: clip_norm: expected a number, not a mapping");
    tdm_test_bind_fails("clip_norm: .inf\n", "r.yaml:1: clip_norm: expected a number, not .inf");
    tdm_test_bind_fails("name: [a]\n", "r.yaml:1: name: expected a text, not a list");
    tdm_test_bind_fails("device: [cpu]\n",
                        "r.yaml:1: device: expected one of auto, cpu, gpu, not a list");
    tdm_test_bind_fails("bad: {a: 1}\n", "r.yaml:1: bad: expected a count such as 1000 or a share "
                                         "from 0% to 100%, not a mapping");
    tdm_test_bind_fails("train: {a: 1}\n",
                        "r.yaml:1: train: expected a text or a list of them, not a mapping");
    tdm_test_bind_fails("train:\n- a\n- ~\n", "r.yaml:3: train[1]: expected a text, not nothing");
    tdm_test_bind_fails("train: [[a]]\n", "r.yaml:1: train[0]: expected a text, not a list");
    tdm_test_bind_fails("units: {}\n",
                        "r.yaml:1: units: expected a list of whole numbers, each from "
                        "1 to 4096, not a mapping");
    tdm_test_bind_fails("units: [8, 8.5]\n",
                        "r.yaml:1: units[1]: expected a whole number from 1 to "
                        "4096, not 8.5");
    tdm_test_bind_fails("rule: sgd\n", "r.yaml:1: rule: expected a mapping, not sgd");
    tdm_test_bind_fails("fields: {column: a}\n",
                        "r.yaml:1: fields: expected a list of mappings, not a mapping");
    tdm_test_bind_fails("fields: [a]\n", "r.yaml:1: fields[0]: expected a mapping, not a");
    char *text = tdm_test_repeat("epochs: ", "x", 81, "");
    char *message = tdm_test_repeat("r.yaml:1: epochs: expected a whole number from 1 to 100, not ",
                                    "x", 80, "…");
    tdm_test_bind_fails(text, message);
    tdm_free(text);
    tdm_free(message);
    tdm_config *config;
    options values;
    ck_assert_ok(tdm_test_parse("a: 1\n", &config));
    tdm_test_message(
        tdm_config_bind(tdm_config_get(tdm_config_root(config), "a"), &tdm_test_schema, &values),
        "r.yaml:1: a: expected a mapping");
    tdm_config_free(config);
}
END_TEST

START_TEST(numbers_out_of_range_are_refused)
{
    tdm_test_bind_fails("epochs: 0\n",
                        "r.yaml:1: epochs: expected a whole number from 1 to 100, not 0");
    tdm_test_bind_fails("epochs: 101\n",
                        "r.yaml:1: epochs: expected a whole number from 1 to 100, not 101");
    tdm_test_bind_fails("epochs: 9223372036854775808\n",
                        "r.yaml:1: epochs: expected a whole number from 1 to 100, not "
                        "9223372036854775808, which does not fit in 64 bits");
    tdm_test_bind_fails("clip_norm: 1e999\n", "r.yaml:1: clip_norm: expected a number, not 1e999, "
                                              "which no 64-bit float can hold");
    tdm_test_bind_fails("rule: {learning_rate: -0.1}\n",
                        "r.yaml:1: rule.learning_rate: expected a number from 0 to 10, not -0.1");
    tdm_test_bind_fails("units: 0\n",
                        "r.yaml:1: units: expected a whole number from 1 to 4096, not 0");
    tdm_test_bind_fails(
        "fields: [{column: a, buckets: 0}]\n",
        "r.yaml:1: fields[0].buckets: expected a whole number of at least 1, not 0");
    tdm_test_bind_fails("bad: -1\n", "r.yaml:1: bad: expected a count such as 1000 or a share from "
                                     "0% to 100%, not -1");
    tdm_test_bind_fails("bad: 100.5%\n", "r.yaml:1: bad: expected a count such as 1000 or a share "
                                         "from 0% to 100%, not 100.5%");
    ck_assert_fails(tdm_test_bind("bad: 0.5\n", NULL, &(options){0}, &(tdm_config *){NULL}),
                    TDM_E_CONFIG, "not 0.5");
    ck_assert_fails(
        tdm_test_bind("bad: 9007199254740993\n", NULL, &(options){0}, &(tdm_config *){NULL}),
        TDM_E_CONFIG, "not 9007199254740993");
    ck_assert_fails(tdm_test_bind("bad: '5'\n", NULL, &(options){0}, &(tdm_config *){NULL}),
                    TDM_E_CONFIG, "not the text \"5\"");
}
END_TEST

START_TEST(unknown_choices_are_refused)
{
    tdm_test_bind_fails("rule: {type: adm}\n", "r.yaml:1: rule.type: expected one of adam, sgd, "
                                               "adagrad, not adm; did you mean adam?");
    tdm_test_bind_fails("rule: {type: lamb3}\n",
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
    tdm_test_bind_fails("epochs: 1\nfields:\n  - column: a\n  - buckets: 5\n",
                        "r.yaml:4: fields[1].column: missing; expected a text: its column");
    tdm_config *config;
    required values;
    ck_assert_ok(tdm_test_parse("\nouter:\n  section:\n    inner:\n", &config));
    tdm_test_message(
        tdm_config_bind(tdm_config_root(config), &outermost_schema, &values),
        "r.yaml:3: outer.section.inner: missing; expected a whole number from -5 to 5: "
        "needed");
    tdm_config_free(config);
    ck_assert_ok(tdm_test_parse("\nouter: {}\n", &config));
    tdm_test_message(
        tdm_config_bind(tdm_config_root(config), &outermost_schema, &values),
        "r.yaml:2: outer.section.inner: missing; expected a whole number from -5 to 5: "
        "needed");
    tdm_config_free(config);
    ck_assert_ok(tdm_test_parse("\n{}\n", &config));
    tdm_test_message(
        tdm_config_bind(tdm_config_root(config), &outermost_schema, &values),
        "r.yaml:2: outer.section.inner: missing; expected a whole number from -5 to 5: "
        "needed");
    tdm_config_free(config);
    tdm_test_message(tdm_config_bind(NULL, &outermost_schema, &values),
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
    tdm_test_message(tdm_config_bind(NULL, &bad_schema, &value),
                     "key count: default: expected a whole number, not many");
}
END_TEST

/* ---- did you mean ---------------------------------------------------------------------------- */

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
    char *longest = tdm_test_repeat("", "x", 65, "");
    const char *same = longest;
    ck_assert_ptr_null(tdm_nearest(longest, &same, 1));
    ck_assert_ptr_null(tdm_nearest("xxxx", &same, 1));
    ck_assert_ptr_eq(tdm_nearest(longest + 1, (const char *[]){longest + 1}, 1), longest + 1);
    char advice[TDM_ADVICE_BYTES];
    ck_assert_str_eq(tdm_did_you_mean("sede", words, 5, advice), "; did you mean seed?");
    ck_assert_str_eq(tdm_did_you_mean("momentum", words, 5, advice), "");
    tdm_did_you_mean(longest + 1, (const char *[]){longest + 1}, 1, advice);
    ck_assert_uint_eq(strlen(advice), strlen("; did you mean ?") + 64);
    tdm_free(longest);
}
END_TEST

TDM_CHECK_MAIN(numbers_are_lists_too, every_type_is_read, absent_values_get_their_defaults,
               one_value_stands_for_a_list, a_list_is_read_alone, unknown_keys_are_refused,
               wrong_types_are_refused, numbers_out_of_range_are_refused,
               unknown_choices_are_refused, missing_keys_are_refused, a_bad_default_names_its_key,
               nearest_suggests_likely_words_only)
