/* Trainings of text that begin from weights which are there already. */
#include "core/file.h"
#include "core/memory.h"
#include "interchange/pretrained_tensors.h"
#include "tests/support/check_main.h"
#include "tests/support/text_runs.h"
#include "tests/support/training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Weights stay what they began as. */
#define STILL "optimizer.learning_rate=0"

static char source_override[1200];

/* "model.init_from=<folder>/<name>", or a path of its own. */
static const char *from(const char *name)
{
    snprintf(source_override, sizeof source_override, "model.init_from=%s",
             name[0] == '/' ? name : tdm_text_path(name));
    return source_override;
}

static const char *golden(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, TDM_SOURCE_DIR "/tests/golden/interchange/%s", name);
    return path;
}

static void same_tensor(const char *a_run, const char *b_run, const char *name)
{
    int64_t a_count, b_count;
    float *a = tdm_text_run_tensor(a_run, name, &a_count);
    float *b = tdm_text_run_tensor(b_run, name, &b_count);
    ck_assert_msg(a != NULL && b != NULL, "%s is not there", name);
    ck_assert_int_eq(a_count, b_count);
    ck_assert_msg(memcmp(a, b, (size_t)a_count * sizeof *a) == 0, "%s differs", name);
    tdm_free(a);
    tdm_free(b);
}

/* ---- runs ------------------------------------------------------------------------------------ */

START_TEST(test_sizes_come_from_a_run)
{
    tdm_recipe *recipe;
    tdm_text_runs_begin();
    const char *const model[] = {"model.norm=pre", "model.pooler=false", "model.dropout=0.05",
                                 NULL};
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", model));
    ck_assert_ok(tdm_text_recipe(TDM_TASK_CLASSIFY, "fine", WITH(from("mlm")), &recipe));
    const tdm_bert_options *options = recipe->model_options;
    ck_assert_int_eq(options->layers, 2);
    ck_assert_int_eq(options->hidden, 16);
    ck_assert_int_eq(options->heads, 2);
    ck_assert_int_eq(options->norm, TDM_NORM_PRE);
    ck_assert_int_eq(options->max_positions, 32);
    ck_assert(!options->pooler);
    ck_assert_double_eq(options->dropout, 0.05);
    ck_assert_str_eq(recipe->text.tokenizer, tdm_text_path("mlm/tokenizer.json"));
    tdm_recipe_free(recipe);
    /* What is said, and makes no other function of the weights, is kept. */
    ck_assert_ok(tdm_text_recipe(TDM_TASK_CLASSIFY, "fine",
                                 WITH(from("mlm"), "model.dropout=0.3", "model.pooler=true",
                                      "text.tokenizer=vocab.txt", "text.max_length=16"),
                                 &recipe));
    options = recipe->model_options;
    ck_assert_double_eq(options->dropout, 0.3);
    ck_assert(options->pooler);
    ck_assert_int_eq(options->max_positions, 32);
    ck_assert_str_eq(recipe->text.tokenizer, tdm_text_path("vocab.txt"));
    tdm_recipe_free(recipe);
    tdm_text_runs_end();
}
END_TEST

START_TEST(test_a_classifier_shares_the_encoder)
{
    static const char *const shared[] = {"embeddings.word.weight", "embeddings.position.weight",
                                         "embeddings.norm.bias", "layer.0.attention.qkv.weight",
                                         "layer.1.mlp.output.bias"};
    tdm_recipe *recipe;
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
    const char *log = tdm_test_log();
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "fine", WITH(from("mlm"), STILL)));
    ck_assert_ptr_nonnull(strstr(log, "has no values for these parameters, which keep their "
                                      "initial ones: pooler.weight, pooler.bias, "
                                      "classifier.weight, classifier.bias\n"));
    ck_assert_ptr_nonnull(strstr(log, "model.init_from: 29 of 33 tensors start from step 4 of "));
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        same_tensor("mlm", "fine", shared[i]);
    int64_t elements;
    ck_assert_ptr_null(tdm_text_run_tensor("fine", "masked.bias", &elements));
    /* The run says all by itself: what it began from may go. */
    ck_assert_ok(tdm_folder_remove(tdm_text_path("mlm")));
    ck_assert_ok(tdm_recipe_load_run(tdm_text_path("fine"), &recipe));
    ck_assert_int_eq(((const tdm_bert_options *)recipe->model_options)->hidden, 16);
    tdm_recipe_free(recipe);
    tdm_text_runs_end();
}
END_TEST

START_TEST(test_further_training_of_the_same_task)
{
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
    const char *log = tdm_test_log();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "more", WITH(from("mlm"), STILL)));
    ck_assert_ptr_nonnull(strstr(log, "model.init_from: 34 of 34 tensors start from step 4 of "));
    ck_assert_ptr_null(strstr(log, "no place"));
    same_tensor("mlm", "more", "masked.bias");
    same_tensor("mlm", "more", "masked.dense.weight");
    same_tensor("mlm", "more", "layer.1.attention.output.weight");
    tdm_text_runs_end();
}
END_TEST

START_TEST(test_a_grown_vocabulary)
{
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
    char *words = tdm_test_read(tdm_text_path("vocab.txt"));
    FILE *file = fopen(tdm_text_path("grown.txt"), "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%sstonelight\n", words);
    ck_assert_int_eq(fclose(file), 0);
    tdm_free(words);
    char tokenizer[600];
    snprintf(tokenizer, sizeof tokenizer, "text.tokenizer=%s", tdm_text_path("grown.txt"));
    const char *log = tdm_test_log();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "grown", WITH(from("mlm"), STILL, tokenizer)));
    ck_assert_ptr_nonnull(strstr(log, "1 tokens are new and begin as the mean of their pieces"));
    int64_t before, after;
    float *old = tdm_text_run_tensor("mlm", "embeddings.word.weight", &before);
    float *new = tdm_text_run_tensor("grown", "embeddings.word.weight", &after);
    ck_assert_int_eq(after, before + 16);
    ck_assert(memcmp(old, new, (size_t)before * sizeof *old) == 0);
    /* stone ##l ##i ##g ##h ##t */
    static const char *const pieces[] = {"stone", "##l", "##i", "##g", "##h", "##t"};
    tdm_tokenizer *mlm;
    ck_assert_ok(tdm_tokenizer_open(tdm_text_path("vocab.txt"), NULL, &mlm));
    for (int c = 0; c < 16; c++) {
        double mean = 0;
        for (int p = 0; p < 6; p++) {
            int64_t id = tdm_tokenizer_find(mlm, pieces[p], strlen(pieces[p]));
            mean += (double)old[id * 16 + c] / 6;
        }
        ck_assert_double_eq_tol((double)new[before + c], mean, 1e-6);
    }
    tdm_tokenizer_close(mlm);
    tdm_free(old);
    tdm_free(new);
    tdm_text_runs_end();
}
END_TEST

/* ---- other programs -------------------------------------------------------------------------- */

/* Equal to a tensor of a checkpoint of theirs. */
static void same_as_theirs(const char *run, const char *ours, const char *folder,
                           const char *theirs)
{
    tdm_pretrained_tensors *tensors;
    int64_t elements;
    float *values = tdm_text_run_tensor(run, ours, &elements), *expected;
    ck_assert_ptr_nonnull(values);
    ck_assert_ok(tdm_pretrained_tensors_open(folder, &tensors));
    int index = tdm_pretrained_tensors_find(tensors, theirs);
    ck_assert_int_ge(index, 0);
    ck_assert_ok(tdm_alloc((size_t)elements, sizeof *expected, &expected));
    ck_assert_ok(tdm_pretrained_tensors_read(tensors, index, 0, expected, elements));
    ck_assert(memcmp(values, expected, (size_t)elements * sizeof *values) == 0);
    tdm_pretrained_tensors_close(tensors);
    tdm_free(values);
    tdm_free(expected);
}

START_TEST(test_a_folder_of_hugging_face)
{
    tdm_recipe *recipe;
    tdm_text_runs_begin();
    const char *const overrides[] = {from(golden("bert_masked")), STILL, "text.max_length=12",
                                     NULL};
    ck_assert_ok(tdm_text_recipe(TDM_TASK_CLASSIFY, "fine", overrides, &recipe));
    const tdm_bert_options *options = recipe->model_options;
    ck_assert_int_eq(options->layers, 2);
    ck_assert_int_eq(options->hidden, 16);
    ck_assert_int_eq(options->intermediate, 20);
    ck_assert_int_eq(options->max_positions, 12);
    ck_assert_int_eq(options->activation, TDM_ENCODER_GELU_TANH);
    ck_assert_double_eq(options->norm_eps, 1e-5);
    ck_assert_int_eq(recipe->text.lowercase, 2);
    tdm_recipe_free(recipe);
    const char *log = tdm_test_log();
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "fine", overrides));
    ck_assert_ptr_nonnull(strstr(log, "model.init_from: 29 of 33 tensors start from "));
    same_as_theirs("fine", "embeddings.word.weight", golden("bert_masked"),
                   "bert.embeddings.word_embeddings.weight");
    same_as_theirs("fine", "layer.1.mlp.input.bias", golden("bert_masked"),
                   "bert.encoder.layer.1.intermediate.dense.bias");
    tdm_text_runs_end();
}
END_TEST

START_TEST(test_a_checkpoint_of_tensorflow)
{
    char path[600];
    if (tdm_test_data() == NULL) {
        tdm_test_skip("a checkpoint of the test data");
        return;
    }
    tdm_text_runs_begin();
    snprintf(path, sizeof path, "%s/checkpoint/keras-bert-tiny", tdm_test_data());
    const char *const overrides[] = {from(path), STILL, "text.max_length=16", NULL};
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "fine", overrides));
    same_as_theirs("fine", "embeddings.word.weight", path, "bert/embeddings/word_embeddings");
    snprintf(path, sizeof path, "%s/checkpoint/keras-bert-tiny/bert_model.ckpt", tdm_test_data());
    const char *const named[] = {from(path), STILL, "text.max_length=16", NULL};
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "named", named));
    same_tensor("fine", "named", "pooler.weight");
    tdm_text_runs_end();
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(test_sizes_that_differ)
{
    tdm_recipe *recipe;
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
    ck_assert_fails(
        tdm_text_recipe(TDM_TASK_CLASSIFY, "fine", WITH(from("mlm"), "model.hidden=32"), &recipe),
        TDM_E_CONFIG, "model.hidden is 32 here and 16 there");
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "mlm/recipe.yaml is of another model"));
    ck_assert_fails(tdm_text_recipe(TDM_TASK_MLM, "more",
                                    WITH(from(golden("bert_masked")), "model.norm=pre"), &recipe),
                    TDM_E_CONFIG, "config.json is of another model: model.norm is pre here");
    /* What the recipe says of lengths, the checkpoint has not. */
    ck_assert_fails(
        tdm_text_train(TDM_TASK_CLASSIFY, "fine", WITH(from("mlm"), "text.max_length=64")),
        TDM_E_CONFIG,
        "model.max_positions: 32, that of model.init_from, is less than text.max_length, 64");
    tdm_text_runs_end();
}
END_TEST

static void copy_file(const char *folder, const char *name, const char *to, size_t cut)
{
    char path[600], *data;
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_ok(tdm_file_get(path, 1 << 20, &data, &bytes));
    snprintf(path, sizeof path, "%s/%s", to, name);
    ck_assert_ok(tdm_file_put(path, data, bytes - cut, NULL));
    tdm_free(data);
}

START_TEST(test_folders_that_cannot_be_used)
{
    tdm_recipe *recipe;
    tdm_text_runs_begin();
    ck_assert_fails(tdm_text_recipe(TDM_TASK_CLASSIFY, "fine", WITH(from("nowhere")), &recipe),
                    TDM_E_STATE, "nowhere: holds neither a run (recipe.yaml) nor");
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "model.init_from: "));
    ck_assert_ok(tdm_folder_create(tdm_text_path("ctr")));
    const char text[] = "# tandem run folder, format 1\nmodel: {type: logistic_regression}\n";
    ck_assert_ok(tdm_file_put(tdm_text_path("ctr/recipe.yaml"), text, sizeof text - 1, NULL));
    ck_assert_fails(tdm_text_recipe(TDM_TASK_CLASSIFY, "fine", WITH(from("ctr")), &recipe),
                    TDM_E_CONFIG, "ctr: is a run of task ctr");
    ck_assert_ok(tdm_folder_create(tdm_text_path("cut")));
    copy_file(golden("bert_masked"), "config.json", tdm_text_path("cut"), 0);
    copy_file(golden("bert_masked"), "vocab.txt", tdm_text_path("cut"), 0);
    copy_file(golden("bert_masked"), "model.safetensors", tdm_text_path("cut"), 100);
    ck_assert_fails(
        tdm_text_train(TDM_TASK_CLASSIFY, "fine", WITH(from("cut"), "text.max_length=12")),
        TDM_E_FORMAT, "cut/model.safetensors");
    /* Nothing was trained into the folder. */
    ck_assert(!tdm_file_exists(tdm_text_path("fine/recipe.yaml")));
    /* Characters of Chinese that are no words of their own: no key says that. */
    const char settings[] = "{\"tokenize_chinese_chars\": false}";
    ck_assert_ok(tdm_file_put(tdm_text_path("cut/tokenizer_config.json"), settings,
                              sizeof settings - 1, NULL));
    ck_assert_fails(tdm_text_recipe(TDM_TASK_CLASSIFY, "fine",
                                    WITH(from("cut"), "text.max_length=12"), &recipe),
                    TDM_E_UNSUPPORTED, "cut/vocab.txt: is to be read with tokenize_chinese_chars");
    tdm_text_runs_end();
}
END_TEST

TDM_CHECK_MAIN(test_sizes_come_from_a_run, test_a_classifier_shares_the_encoder,
               test_further_training_of_the_same_task, test_a_grown_vocabulary,
               test_a_folder_of_hugging_face, test_a_checkpoint_of_tensorflow,
               test_sizes_that_differ, test_folders_that_cannot_be_used)
