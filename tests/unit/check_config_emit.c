#include "core/config.h"

#include "core/memory.h"
#include "tests/support/config_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* ---- the resolved recipe --------------------------------------------------------------------- */

START_TEST(emit_writes_every_key_with_its_value)
{
    tdm_config *config;
    options values;
    tdm_text text = {0};
    ck_assert_ok(
        tdm_test_bind("model: {type: deepfm, x: {units: [1, '2', true], y: ~, 'a,b': {}, z: []}}\n"
                      "fields: [{column: C1}, {column: 5, buckets: 6}]\n"
                      "rule: {type: sgd, learning_rate: 0.00001}\n"
                      "units: [+1, 4096]\ntrain: [day_0.tsv, '*.gz', 'null']\nbad: 0.070%\n"
                      "device: gpu\nname: 'a: b'\nclip_norm: 1e-1\nepochs: 7\nshuffle: false\n",
                      NULL, &values, &config));
    ck_assert_ok(tdm_config_emit(&tdm_test_schema, &values, 0, &text));
    ck_assert_str_eq(text.bytes, resolved);
    tdm_config_unbind(&tdm_test_schema, &values);
    tdm_config_free(config);
    ck_assert_ok(tdm_test_bind(resolved, NULL, &values, &config));
    tdm_text again = {0};
    ck_assert_ok(tdm_config_emit(&tdm_test_schema, &values, 0, &again));
    ck_assert_str_eq(again.bytes, resolved);
    tdm_text_free(&text);
    tdm_text_free(&again);
    tdm_config_unbind(&tdm_test_schema, &values);
    tdm_config_free(config);
}
END_TEST

START_TEST(emit_writes_defaults_and_empty_values)
{
    options values;
    tdm_text text = {0};
    ck_assert_ok(tdm_config_bind(NULL, &tdm_test_schema, &values));
    ck_assert_ok(tdm_config_emit(&tdm_test_schema, &values, 2, &text));
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
    tdm_config_unbind(&tdm_test_schema, &values);
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
    ck_assert_ok(tdm_test_parse(text.bytes, &config));
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
    ck_assert_ok(tdm_test_parse("section: {}\nsections: [{}, {}]\n", &config));
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
    ck_assert_ok(tdm_test_bind("model: [{column: I1..I13, t: 0.5%}, 7]\n", NULL, &values, &config));
    ck_assert_ok(tdm_config_emit(&tdm_test_schema, &values, 0, &text));
    ck_assert_ptr_nonnull(
        strstr(text.bytes, "model:\n  - {column: I1..I13, t: \"0.5%\"}\n  - 7\n"));
    tdm_text_free(&text);
    tdm_config_unbind(&tdm_test_schema, &values);
    tdm_config_free(config);
}
END_TEST

START_TEST(describe_lists_every_key)
{
    tdm_text text = {0};
    ck_assert_ok(tdm_config_describe(&tdm_test_schema, "", &text));
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

/* ---- differences ----------------------------------------------------------------------------- */

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
    ck_assert_ok(tdm_test_parse("same: 1\nquoted: 'x'\ns: {x: 1, y: 2, only: [1]}\nlist: [1, 2]\n"
                                "kind: {p: 1, q: {}}\nnumber: 5\nnull_a: ~\nempty: {}\n",
                                &a));
    ck_assert_ok(tdm_test_parse("list: [1, 3]\ns: {y: 3, x: 1}\nquoted: x\nsame: 1\nkind: 7\n"
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

/* ---- memory ---------------------------------------------------------------------------------- */

/* All that allocates, from a file on the disk to a difference. */
static tdm_status use_everything(const char *path)
{
    static const char *const overrides[] = {"rule.type=sgd", "new.key=[1, 2]", "new=~"};
    tdm_config *config = NULL, *other = NULL;
    options values = {0};
    tdm_text text = {0};
    tdm_status status;
    TDM_TRY_GOTO(tdm_config_load(path, overrides, 3, &config), done);
    TDM_TRY_GOTO(tdm_test_parse(resolved, &other), done);
    TDM_TRY_GOTO(tdm_config_bind(tdm_config_root(other), &tdm_test_schema, &values), done);
    TDM_TRY_GOTO(tdm_config_emit(&tdm_test_schema, &values, 0, &text), done);
    TDM_TRY_GOTO(tdm_config_describe(&tdm_test_schema, "a", &text), done);
    TDM_TRY_GOTO(
        tdm_config_diff(tdm_config_root(config), tdm_config_root(other), list_difference, &text),
        done);
done:
    tdm_text_free(&text);
    tdm_config_unbind(&tdm_test_schema, &values);
    tdm_config_free(config);
    tdm_config_free(other);
    return status;
}

/* Errors allocate their words. */
static tdm_status fail_to_bind(const char *text)
{
    tdm_config *config;
    options values;
    tdm_status status = tdm_test_bind(text, NULL, &values, &config);
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
    const char *folder = tdm_test_folder();
    tdm_test_put(folder, "base.yaml", "train: [b.tsv]\nrule: {type: adam}\n");
    char path[512];
    snprintf(path, sizeof path, "%s",
             tdm_test_put(folder, "child.yaml",
                          "extends: base.yaml\nrule: {learning_rate: 1}\nmodel: {a: [1]}\n"));
    fail_each_allocation(use_everything, path);
    fail_each_allocation(fail_to_bind_unknown, NULL);
    fail_each_allocation(fail_to_bind_missing, NULL);
    fail_each_allocation(fail_to_bind_wrong, NULL);
}
END_TEST

TDM_CHECK_MAIN(emit_writes_every_key_with_its_value, emit_writes_defaults_and_empty_values,
               emit_quotes_where_it_must, emit_refuses_texts_that_are_not_utf8,
               emit_writes_empty_schemas, emit_writes_lists_of_mappings_line_by_line,
               describe_lists_every_key, diff_names_the_leaves_that_differ,
               failing_allocations_leave_nothing_behind)
