/* Recipes of labelled text: their sections, defaults and checks, and the classes that complete
 * them. */
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "trainer/recipe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char minimal[] = "task: classify\n"
                              "data: {train: a.tsv}\n"
                              "text: {tokenizer: vocab.txt}\n"
                              "model: {type: bert}\n";

static tdm_status parse(const char *text, const char *const *overrides, int count, tdm_recipe **out)
{
    const tdm_recipe_arguments arguments = {.overrides = overrides, .override_count = count};
    return tdm_recipe_parse(text, strlen(text), "r.yaml", &arguments, out);
}

static tdm_recipe *parse_good(const char *text, const char *const *overrides, int count)
{
    tdm_recipe *recipe;
    ck_assert_ok(parse(text, overrides, count, &recipe));
    return recipe;
}

static const char *format_of(const tdm_recipe *recipe)
{
    return tdm_record_formats[recipe->data.format]->name;
}

START_TEST(test_defaults)
{
    tdm_recipe *recipe = parse_good(minimal, NULL, 0);
    ck_assert_int_eq(recipe->task, TDM_TASK_CLASSIFY);
    ck_assert_str_eq(format_of(recipe), "tsv");
    ck_assert(recipe->data.header);
    ck_assert_int_eq(recipe->labels.type, TDM_LABEL_CLASSES);
    ck_assert_str_eq(recipe->labels.column, "label");
    ck_assert_str_eq(recipe->labels.text, "text");
    ck_assert_ptr_null(recipe->labels.text_pair);
    ck_assert(tdm_label_classes_are_auto(&recipe->labels));
    ck_assert_int_eq(recipe->text.max_length, 128);
    ck_assert_int_eq(recipe->train.batch_tokens, 16384);
    ck_assert_ptr_eq(recipe->model_type, &tdm_bert);
    tdm_recipe_free(recipe);
}
END_TEST

/* What the type of labels, the format and the columns say of each other. */
START_TEST(test_records_that_follow)
{
    static const char *const tokens[] = {"labels.type=tokens"};
    static const char *const columns[] = {"data.columns=[label, text]"};
    static const char *const both[] = {"data.columns=[label, text]", "data.header=true"};
    static const char *const json[] = {"data.format=jsonl", "labels.column=y", "labels.text=a",
                                       "labels.text_pair=b"};
    static const char *const named[] = {"data.format=jsonl", "data.columns=[text, label, id]"};
    tdm_recipe *recipe = parse_good(minimal, tokens, 1);
    ck_assert_str_eq(format_of(recipe), "text");
    tdm_recipe_free(recipe);
    recipe = parse_good(minimal, columns, 1);
    ck_assert(!recipe->data.header);
    tdm_recipe_free(recipe);
    recipe = parse_good(minimal, both, 2);
    ck_assert(recipe->data.header);
    tdm_recipe_free(recipe);
    recipe = parse_good(minimal, json, 4);
    ck_assert_int_eq(recipe->data.columns.count, 3);
    ck_assert_str_eq(recipe->data.columns.items[0], "y");
    ck_assert_str_eq(recipe->data.columns.items[2], "b");
    tdm_recipe_free(recipe);
    recipe = parse_good(minimal, named, 2);
    ck_assert_int_eq(recipe->data.columns.count, 3);
    ck_assert_str_eq(recipe->data.columns.items[2], "id");
    tdm_recipe_free(recipe);
}
END_TEST

static void assert_bad(const char *override, const char *message)
{
    tdm_recipe *recipe;
    ck_assert_fails(parse(minimal, &override, 1, &recipe), TDM_E_CONFIG, message);
    ck_assert_ptr_null(recipe);
}

static void assert_bad_labels(const char *labels, const char *message)
{
    char *text;
    tdm_recipe *recipe;
    ck_assert_ok(tdm_format(&text, "%slabels: {%s}\n", minimal, labels));
    ck_assert_fails(parse(text, NULL, 0, &recipe), TDM_E_CONFIG, message);
    tdm_free(text);
}

START_TEST(test_what_is_refused)
{
    assert_bad("labels.type=class", "expected one of classes, multiple, regression, tokens");
    assert_bad("labels.colum=y", "did you mean column?");
    assert_bad("text.masking={}", "text.masking: unknown key");
    assert_bad("text.sequences=full_sentences", "text.sequences: unknown key");
    assert_bad("features.label=x", "features: unknown key");
    assert_bad("train.batch_size=32", "train.batch_size: unknown key");
    assert_bad("data.format=criteo", "data.format: classify reads labelled records: take csv, tsv");
    assert_bad("data.format=text", "data.format: classify reads labelled records");
    assert_bad("train.batch_tokens=1024", "2048 would be enough");
    assert_bad("model.hidden=100", "model.hidden: 100 is not a multiple of model.heads, 12");
    assert_bad_labels("text: label", "r.yaml:5: labels.text: is the column of the label");
    assert_bad_labels("text_pair: text", "labels.text_pair: is the column of the text");
    assert_bad_labels("type: tokens, text_pair: b", "r.yaml:5: labels.text_pair: goes with labels");
    assert_bad_labels("separator: pipe", "labels.separator: goes with type: multiple and tokens");
    assert_bad_labels("type: multiple, separator: ab", "labels.separator: expected one ASCII");
    assert_bad_labels("type: multiple, separator: tab",
                      "labels.separator: is what separates columns (data.separator)");
}
END_TEST

START_TEST(test_classes_that_are_refused)
{
    assert_bad_labels("classes: [a]", "labels.classes: expected two at least, or auto");
    assert_bad_labels("classes: []", "labels.classes: expected two at least, or auto");
    assert_bad_labels("classes: [a, b, a]", "labels.classes: names a twice");
    assert_bad_labels("classes: [a, ' b']", "labels.classes: a name is empty, or begins or ends");
    assert_bad_labels("classes: [a, '']", "labels.classes: a name is empty");
    assert_bad_labels("type: regression, classes: [a, b]", "regression has none: take them out");
    assert_bad_labels("type: multiple, classes: ['a,b', c]", "a,b holds what separates labels");
    assert_bad_labels("type: tokens, classes: ['a b', c]", "a b holds what separates labels");
    static const char *const one[] = {"labels={type: multiple, classes: [a]}"};
    tdm_recipe_free(parse_good(minimal, one, 1));
    assert_bad_labels("type: tokens, separator: pipe, classes: ['a|b', c]", "a|b holds what");
    static const char *const comma[] = {"labels={classes: ['a, b', c]}"};
    tdm_recipe_free(parse_good(minimal, comma, 1));
    static const char *const blank[] = {
        "labels={type: tokens, separator: pipe, classes: [a b, c]}"};
    tdm_recipe_free(parse_good(minimal, blank, 1));
    static const char *const lists[] = {"labels={type: multiple, classes: ['a,b', c]}",
                                        "data.format=jsonl"};
    tdm_recipe_free(parse_good(minimal, lists, 2));
}
END_TEST

START_TEST(test_combinations_that_are_refused)
{
    static const char *const csv[] = {"data.format=csv", "labels.type=multiple"};
    static const char *const lines[] = {"labels.type=tokens", "data.documents=line"};
    static const char *const field[] = {"data.format=jsonl", "data.field=body"};
    tdm_recipe *recipe;
    ck_assert_fails(parse(minimal, csv, 2, &recipe), TDM_E_CONFIG,
                    "labels.separator: is what separates columns");
    ck_assert_fails(parse(minimal, lines, 2, &recipe), TDM_E_CONFIG,
                    "data.documents: labels of tokens are read a word a line: take blank_line");
    ck_assert_fails(parse(minimal, field, 2, &recipe), TDM_E_CONFIG,
                    "data.field: is of mlm: labels.text names the field of the text");
    static const char mlm[] = "task: mlm\ntext: {tokenizer: v}\nmodel: {type: bert}\n"
                              "data: {format: jsonl, columns: [a]}\n";
    ck_assert_fails(parse(mlm, NULL, 0, &recipe), TDM_E_CONFIG,
                    "r.yaml:4: data.columns: mlm reads");
    static const char labels[] = "task: mlm\nmodel: {type: bert}\nlabels: {}\n";
    ck_assert_fails(parse(labels, NULL, 0, &recipe), TDM_E_CONFIG, "labels: unknown key");
}
END_TEST

static const char full[] =
    "task: classify\n"
    "seed: 7\n"
    "data: {format: jsonl, train: [a.jsonl.gz], eval: {hold_out: 5%}, lanes: 4}\n"
    "text: {tokenizer: tokenizer.json, lowercase: false, max_length: 512, batch: padded}\n"
    "labels: {type: multiple, column: y, text: a, text_pair: b, classes: [no, '1', \"x "
    "\\u00e4\"],\n"
    "         separator: pipe}\n"
    "model: {type: bert, layers: 4, hidden: 256, heads: 4, dropout: 0.2}\n"
    "train: {epochs: 3, batch_tokens: 4096}\n"
    "output: {dir: runs/x}\n";

START_TEST(test_emitted_recipes_load)
{
    tdm_text first = {0}, second = {0};
    tdm_recipe *recipe = parse_good(full, NULL, 0);
    ck_assert_ok(tdm_recipe_emit(recipe, &first));
    tdm_recipe *again = parse_good(first.bytes, NULL, 0);
    ck_assert_ok(tdm_recipe_emit(again, &second));
    ck_assert_str_eq(first.bytes, second.bytes);
    ck_assert_int_eq(again->labels.classes.count, 3);
    ck_assert_str_eq(again->labels.classes.items[0], "no");
    ck_assert_str_eq(again->labels.classes.items[2], "x \xc3\xa4");
    ck_assert_int_eq(again->data.columns.count, 3);
    ck_assert_int_eq(again->text.batch, TDM_TEXT_PADDED);
    ck_assert_ptr_null(strstr(first.bytes, "masking"));
    tdm_text_free(&first);
    tdm_text_free(&second);
    tdm_recipe_free(recipe);
    tdm_recipe_free(again);
}
END_TEST

/* ---- classes --------------------------------------------------------------------------------- */

static void find_classes(tdm_recipe *recipe, tdm_label_use use, tdm_label_spec **spec)
{
    tdm_pool *pool;
    tdm_input *input;
    ck_assert_ok(tdm_pool_create(2, &pool));
    ck_assert_ok(tdm_recipe_open_input(recipe, pool, NULL, &input));
    ck_assert_ok(tdm_recipe_label_spec(recipe, input, pool, use, spec));
    tdm_input_close(input);
    tdm_pool_destroy(pool);
}

/* What is found stands in the resolved recipe, and is not looked for again. */
START_TEST(test_classes_complete_the_recipe)
{
    char folder[TDM_FOLDER_BYTES], *override;
    tdm_new_folder(folder);
    char *path = tdm_data_rig_put_text(folder, "a.tsv", "label\ttext\n10\ta\nno\tb\n9\tc\n");
    ck_assert_ok(tdm_format(&override, "data.train=%s", path));
    tdm_recipe *recipe = parse_good(minimal, (const char *const *)&override, 1);
    tdm_label_spec *spec;
    tdm_text text = {0};
    find_classes(recipe, TDM_LABEL_PREDICTION, &spec);
    ck_assert_int_eq(spec->classes.size, 0);
    ck_assert(tdm_label_classes_are_auto(&recipe->labels));
    tdm_label_spec_destroy(spec);
    find_classes(recipe, TDM_LABEL_TRAINING, &spec);
    ck_assert_int_eq(spec->classes.size, 3);
    ck_assert_int_eq(tdm_vocabulary_find(&spec->classes, "9", 1), 0);
    tdm_label_spec_destroy(spec);
    ck_assert_ok(tdm_recipe_emit(recipe, &text));
    ck_assert_ptr_nonnull(strstr(text.bytes, "  classes: [\"9\", \"10\", \"no\"]\n"));
    tdm_recipe *again = parse_good(text.bytes, NULL, 0);
    tdm_free(tdm_data_rig_put_text(folder, "a.tsv", "label\ttext\nx\ta\n"));
    find_classes(again, TDM_LABEL_TRAINING, &spec);
    ck_assert_int_eq(spec->classes.size, 3);
    tdm_label_spec_destroy(spec);
    tdm_recipe_free(again);
    tdm_text_free(&text);
    tdm_recipe_free(recipe);
    tdm_free(override);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

static char warning[256];

static void note_warning(void *context, tdm_log_level level, const char *message)
{
    (void)context;
    (void)level;
    snprintf(warning, sizeof warning, "%s", message);
}

/* A text in the place of the label is another one in each record. */
START_TEST(test_a_column_that_is_no_label)
{
    char folder[TDM_FOLDER_BYTES], *override, text[4096];
    int length = snprintf(text, sizeof text, "label\ttext\n");
    tdm_new_folder(folder);
    for (int i = 0; i < 100; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "no %d\ta\n", i);
    char *path = tdm_data_rig_put_text(folder, "a.tsv", text);
    ck_assert_ok(tdm_format(&override, "data.train=%s", path));
    tdm_recipe *recipe = parse_good(minimal, (const char *const *)&override, 1);
    tdm_label_spec *spec;
    tdm_log_set_sink(note_warning, NULL);
    find_classes(recipe, TDM_LABEL_TRAINING, &spec);
    tdm_log_set_sink(NULL, NULL);
    ck_assert_int_eq(spec->classes.size, 100);
    ck_assert_str_eq(warning,
                     "labels.column: label has 100 different labels, and has 100 in all: is "
                     "it the right column?");
    tdm_label_spec_destroy(spec);
    tdm_recipe_free(recipe);
    tdm_free(override);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_standard_input_has_no_second_pass)
{
    static const char *const overrides[] = {"data.train=['-']", "data.columns=[label, text]"};
    tdm_recipe *recipe = parse_good(minimal, overrides, 2);
    tdm_pool *pool;
    tdm_input *input;
    tdm_label_spec *spec;
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "a\tb\n", 4), 4);
    close(ends[1]);
    ck_assert_int_ge(dup2(ends[0], 0), 0);
    close(ends[0]);
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_recipe_open_input(recipe, pool, NULL, &input));
    ck_assert_fails(
        tdm_recipe_label_spec(recipe, input, pool, TDM_LABEL_TRAINING, &spec), TDM_E_CONFIG,
        "labels.classes: finding them takes a pass of its own, and standard input can be read");
    ck_assert_ptr_null(spec);
    tdm_input_close(input);
    tdm_pool_destroy(pool);
    tdm_recipe_free(recipe);
}
END_TEST

/* Every allocation of a load fails once: nothing leaks (the sanitizers look) and it says so. */
START_TEST(test_out_of_memory)
{
    tdm_recipe *recipe;
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status != TDM_OK && n < 5000; n++) {
        tdm_memory_fail_at(n, false);
        status = parse(full, NULL, 0, &recipe);
        tdm_memory_fail_at(0, false);
        ck_assert_msg(status == TDM_OK || status == TDM_E_NOMEM, "allocation %lld: %s",
                      (long long)n, tdm_error_message());
    }
    ck_assert_int_eq(status, TDM_OK);
    tdm_recipe_free(recipe);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

TDM_CHECK_MAIN(test_defaults, test_records_that_follow, test_what_is_refused,
               test_classes_that_are_refused, test_combinations_that_are_refused,
               test_emitted_recipes_load, test_classes_complete_the_recipe,
               test_a_column_that_is_no_label, test_standard_input_has_no_second_pass,
               test_out_of_memory)
