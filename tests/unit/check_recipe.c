#include "core/memory.h"
#include "models/ctr_models.h"
#include "tests/support/check_main.h"
#include "trainer/recipe.h"

#include <stdlib.h>
#include <string.h>

static const char minimal[] = "data: {train: a.tsv}\n"
                              "features: {fields: [{column: C1}]}\n"
                              "model: {type: deepfm, mlp: {units: [8]}}\n";

static tdm_status parse(const char *text, const char *const *overrides, int count, tdm_recipe **out)
{
    const tdm_recipe_arguments arguments = {.overrides = overrides, .override_count = count};
    return tdm_recipe_parse(text, strlen(text), "recipes/ctr/small.yaml", &arguments, out);
}

static tdm_recipe *parse_good(const char *text)
{
    tdm_recipe *recipe;
    ck_assert_ok(parse(text, NULL, 0, &recipe));
    return recipe;
}

static void assert_bad(const char *override, tdm_status code, const char *message)
{
    tdm_recipe *recipe;
    ck_assert_fails(parse(minimal, &override, 1, &recipe), code, message);
    ck_assert_ptr_null(recipe);
}

/* Passes the load but cannot be trained. */
static void assert_untrainable(const char *overrides[], int count, const char *message)
{
    tdm_recipe *recipe;
    ck_assert_ok(parse(minimal, overrides, count, &recipe));
    ck_assert_fails(tdm_recipe_check_training(recipe), TDM_E_CONFIG, message);
    tdm_recipe_free(recipe);
}

START_TEST(test_defaults)
{
    tdm_recipe *recipe = parse_good(minimal);
    ck_assert_int_eq(recipe->task, TDM_TASK_CTR);
    ck_assert_int_eq(recipe->seed, 1);
    ck_assert_int_eq(recipe->train.epochs, 1);
    ck_assert_int_eq(recipe->train.max_steps, 0);
    ck_assert_int_eq(recipe->train.batch_size, 4096);
    ck_assert_int_eq(recipe->train.precision, TDM_PRECISION_FP32);
    ck_assert_double_eq(recipe->train.clip_norm, 0);
    ck_assert_double_eq(recipe->checkpoint.every_minutes, 10);
    ck_assert_int_eq(recipe->checkpoint.keep_last, 3);
    ck_assert_str_eq(tdm_keep_best_names(recipe->task)[recipe->checkpoint.keep_best], "auc");
    ck_assert_str_eq(recipe->output.dir, "runs/small");
    ck_assert_ptr_eq(recipe->model_type, &tdm_deepfm);
    ck_assert_ptr_null(recipe->init_from);
    const tdm_deepfm_options *options = recipe->model_options;
    ck_assert_int_eq(options->mlp.units.count, 1);
    ck_assert_int_eq(options->mlp.units.items[0], 8);
    ck_assert_ok(tdm_recipe_check_training(recipe));
    tdm_recipe_free(recipe);
}
END_TEST

START_TEST(test_max_steps_alone_lifts_the_epochs)
{
    tdm_recipe *recipe;
    const char *steps[] = {"train.max_steps=10", "train.epochs=2"};
    ck_assert_ok(parse(minimal, steps, 1, &recipe));
    ck_assert_int_eq(recipe->train.epochs, 0);
    tdm_recipe_free(recipe);
    ck_assert_ok(parse(minimal, steps, 2, &recipe));
    ck_assert_int_eq(recipe->train.epochs, 2);
    tdm_recipe_free(recipe);
    const char *from_stdin[] = {"train.max_steps=10", "data.train=\"-\""};
    ck_assert_ok(parse(minimal, from_stdin, 2, &recipe));
    ck_assert_int_eq(recipe->train.epochs, 1);
    tdm_recipe_free(recipe);
}
END_TEST

START_TEST(test_files_of_the_command_line_replace_the_recipe)
{
    static const char *const train[] = {"b c.tsv", "-", "d's \"e\".tsv"};
    static const char *const eval[] = {"f*.tsv"};
    const tdm_recipe_arguments arguments = {
        .train = train, .train_count = 3, .eval = eval, .eval_count = 1};
    tdm_recipe *recipe;
    ck_assert_ok(tdm_recipe_parse(minimal, strlen(minimal), "small.yaml", &arguments, &recipe));
    ck_assert_int_eq(recipe->corpora.files.count, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(recipe->corpora.files.items[i], train[i]);
    ck_assert_int_eq(recipe->eval.files.count, 1);
    ck_assert_str_eq(recipe->eval.files.items[0], "f*.tsv");
    tdm_recipe_free(recipe);
}
END_TEST

static const char full[] =
    "seed: 7\n"
    "data:\n"
    "  format: csv\n"
    "  separator: semicolon\n"
    "  train: ['-x.csv', \"b,c.csv\", 0.5]\n"
    "  eval: {hold_out: 0.5%}\n"
    "  max_bad_records: 0.1%\n"
    "features:\n"
    "  label: y\n"
    "  defaults: {buckets: 10, embedding_dim: 2}\n"
    "  fields:\n"
    "    - {column: a}\n"
    "    - {column: b, buckets: 7}\n"
    "  dense: [{column: c, transform: log1p}]\n"
    "model: {type: dcn_v2, init_from: runs/a b, crosses: 2, mlp: {units: []}}\n"
    "optimizer:\n"
    "  dense: {type: adamw, learning_rate: 0.1, weight_decay: 1.0e-7}\n"
    "  sparse: {type: adagrad}\n"
    "  schedule: {type: cosine, warmup_steps: 3, final: 0.01}\n"
    "train: {max_steps: 9, batch_size: 32, clip_norm: 10}\n"
    "checkpoint: {every_minutes: 0.5, keep_best: logloss}\n"
    "metrics: {exact_auc_rows: 1000}\n"
    "cache: {dir: /tmp/c}\n"
    "output: {dir: runs/x}\n";

/* What is emitted is the same recipe, and emitting that changes nothing. */
START_TEST(test_emitted_recipes_load)
{
    tdm_text first = {0}, second = {0};
    tdm_recipe *recipe = parse_good(full);
    ck_assert_ok(tdm_recipe_emit(recipe, &first));
    tdm_recipe *again = parse_good(first.bytes);
    ck_assert_ok(tdm_recipe_emit(again, &second));
    ck_assert_str_eq(first.bytes, second.bytes);
    ck_assert_double_eq(again->eval.hold_out, 0.005);
    ck_assert_str_eq(again->init_from, "runs/a b");
    ck_assert_ptr_eq(again->model_type, &tdm_dcn_v2);
    ck_assert_str_eq(again->corpora.files.items[0], "-x.csv");
    ck_assert_str_eq(again->corpora.files.items[2], "0.5");
    ck_assert_int_eq(again->features.fields.count, 2);
    ck_assert_double_eq(again->optimizer.sparse.eps, recipe->optimizer.sparse.eps);
    ck_assert_ptr_nonnull(strstr(first.bytes, "  crosses: 2\n"));
    ck_assert_ptr_nonnull(strstr(first.bytes, "  epochs: 0\n"));
    tdm_text_free(&first);
    tdm_text_free(&second);
    tdm_recipe_free(recipe);
    tdm_recipe_free(again);
}
END_TEST

START_TEST(test_other_tasks)
{
    tdm_recipe *recipe;
    static const char text[] = "# a comment\ntask: mlm\ntext: {tokenizer: vocab.txt}\n"
                               "model: {type: bert}\ndata: {train: [a.txt]}\n";
    ck_assert_ok(parse(text, NULL, 0, &recipe));
    ck_assert_ok(tdm_recipe_check_training(recipe));
    tdm_recipe_free(recipe);
    static const char labelled[] = "# a comment\ntask: classify\ntext: {tokenizer: vocab.txt}\n"
                                   "model: {type: bert}\ndata: {train: [a.tsv]}\n";
    ck_assert_ok(parse(labelled, NULL, 0, &recipe));
    ck_assert_ok(tdm_recipe_check_training(recipe));
    tdm_recipe_free(recipe);
    assert_bad("task=classify", TDM_E_CONFIG, "unknown key");
    assert_bad("task=ctrr", TDM_E_CONFIG, "ctr");
}
END_TEST

START_TEST(test_model_types)
{
    tdm_recipe *recipe;
    assert_bad("model.type=deepfn", TDM_E_CONFIG, "did you mean deepfm?");
    assert_bad("model.type=[a]", TDM_E_CONFIG, "expected one of ");
    assert_bad("model.crosses=3", TDM_E_CONFIG, "unknown key");
    assert_bad("model.mlp.unitz=[3]", TDM_E_CONFIG, "did you mean units?");
    static const char no_type[] = "model: {mlp: {units: [8]}}\n";
    ck_assert_fails(parse(no_type, NULL, 0, &recipe), TDM_E_CONFIG, "small.yaml:1: model: type");
    static const char no_model[] = "seed: 1\n";
    ck_assert_fails(parse(no_model, NULL, 0, &recipe), TDM_E_CONFIG, "model.type: missing");
    static const char unknown[] = "modell: {type: deepfm}\n";
    ck_assert_fails(parse(unknown, NULL, 0, &recipe), TDM_E_CONFIG, "did you mean model?");
}
END_TEST

START_TEST(test_impossible_combinations)
{
    tdm_recipe *recipe;
    assert_bad("train.batch_size=100", TDM_E_CONFIG, "112 would be");
    assert_bad("optimizer.dense.momentum=0.9", TDM_E_CONFIG, "momentum");
    assert_bad("data.eval={hold_out: 5}", TDM_E_CONFIG, "share");
    static const char lines[] = "model: {type: deepfm, mlp: {units: [8]}}\ntrain:\n"
                                "  epochs: 1\n  batch_size: 17\n";
    ck_assert_fails(parse(lines, NULL, 0, &recipe), TDM_E_CONFIG,
                    "small.yaml:4: train.batch_size: 17 is not a multiple of data.lanes, 16: 32");
}
END_TEST

START_TEST(test_what_cannot_be_trained)
{
    const char *none[] = {"data.train=[]"};
    assert_untrainable(none, 1, "data.train: there is nothing to train on");
    const char *epochs[] = {"data.train=\"-\"", "train.epochs=2", "data.cache=off"};
    assert_untrainable(epochs, 3, "train.epochs: standard input can be read once only");
    const char *decay[] = {"data.train=\"-\"", "optimizer.schedule.type=linear"};
    assert_untrainable(decay, 2, "needs train.max_steps");
    const char *hold_out[] = {"data.train=\"-\"", "data.eval={hold_out: 1%}"};
    assert_untrainable(hold_out, 2, "data.eval: hold_out reads the training data again");
    const char *eval[] = {"data.eval=\"-\""};
    assert_untrainable(eval, 1, "evaluations read their data again");
}
END_TEST

START_TEST(test_cache_folder)
{
    char *folder;
    tdm_recipe *recipe = parse_good(minimal);
    setenv("XDG_CACHE_HOME", "/var/x", 1);
    ck_assert_ok(tdm_recipe_cache_folder(recipe, &folder));
    ck_assert_str_eq(folder, "/var/x/tandem");
    tdm_free(folder);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/home/a", 1);
    ck_assert_ok(tdm_recipe_cache_folder(recipe, &folder));
    ck_assert_str_eq(folder, "/home/a/.cache/tandem");
    tdm_free(folder);
    unsetenv("HOME");
    ck_assert_ok(tdm_recipe_cache_folder(recipe, &folder));
    ck_assert_str_eq(folder, "runs/small/cache");
    tdm_free(folder);
    tdm_recipe_free(recipe);
    recipe = parse_good(full);
    ck_assert_ok(tdm_recipe_cache_folder(recipe, &folder));
    ck_assert_str_eq(folder, "/tmp/c");
    tdm_free(folder);
    tdm_recipe_free(recipe);
}
END_TEST

START_TEST(test_reference_has_every_section)
{
    static const char *const keys[] = {
        "seed",          "data.format",          "features.label",  "model.type",
        "model.crosses", "optimizer.dense.type", "train.epochs",    "checkpoint.keep_best",
        "cache.dir",     "output.dir",           "model.init_from", "text.masking.rate",
        "model.heads",   "train.batch_tokens",
    };
    tdm_text text = {0};
    ck_assert_ok(tdm_recipe_describe(&text));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_msg(strstr(text.bytes, keys[i]) != NULL, "%s is missing", keys[i]);
    tdm_text_free(&text);
}
END_TEST

/* Every allocation of a load fails once: nothing leaks (the sanitizers look) and it says so. */
START_TEST(test_out_of_memory)
{
    tdm_recipe *recipe;
    tdm_status status = TDM_E_NOMEM;
    int64_t n = 1;
    for (; status != TDM_OK && n < 5000; n++) {
        tdm_memory_fail_at(n, false);
        status = parse(full, NULL, 0, &recipe);
        tdm_memory_fail_at(0, false);
        ck_assert_msg(status == TDM_OK || status == TDM_E_NOMEM, "allocation %lld: %s",
                      (long long)n, tdm_error_message());
    }
    ck_assert_int_eq(status, TDM_OK);
    ck_assert_int_gt(n, 50);
    tdm_recipe_free(recipe);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

TDM_CHECK_MAIN(test_defaults, test_max_steps_alone_lifts_the_epochs,
               test_files_of_the_command_line_replace_the_recipe, test_emitted_recipes_load,
               test_other_tasks, test_model_types, test_impossible_combinations,
               test_what_cannot_be_trained, test_cache_folder, test_reference_has_every_section,
               test_out_of_memory)
