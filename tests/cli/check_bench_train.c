/* What the benchmark of training tells of text. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/run_program.h"
#include "tests/support/text_rig.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define LAYERS 2

static char folder[TDM_FOLDER_BYTES];

static void open_folder(void)
{
    static const char recipe[] = "task: mlm\n"
                                 "model: {type: bert, layers: 2, hidden: 32, heads: 2}\n"
                                 "optimizer: {type: adamw, learning_rate: 1.0e-3}\n"
                                 "train: {batch_tokens: 1024, threads: 2, precision: fp32}\n"
                                 "data: {lanes: 1}\n"
                                 "text: {tokenizer: vocab.txt, max_length: 64}\n";
    tdm_new_folder(folder);
    tdm_free(tdm_rig_vocabulary(folder, 0));
    char *corpus = tdm_rig_corpus(3, 80);
    tdm_free(tdm_data_rig_put_text(folder, "corpus.txt", corpus));
    tdm_free(corpus);
    tdm_free(tdm_data_rig_put_text(folder, "r.yaml", recipe));
}

static void close_folder(void)
{
    ck_assert_ok(tdm_folder_remove(folder));
}

static json_t *json_of(const char *command)
{
    tdm_ran ran = tdm_run_shell("cd %s && tandem %s", folder, command);
    ck_assert_ran(ran, 0, NULL, NULL);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    tdm_ran_free(&ran);
    return json;
}

static double number_of(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    ck_assert_msg(json_is_number(value), "%s is no number", key);
    return json_number_value(value);
}

/* How often a step has products of m rows, forward and the gradients of inputs. */
static int count_products(const json_t *json, int64_t m)
{
    const json_t *products = json_object_get(json, "products");
    int count = 0;
    for (size_t i = 0; i < json_array_size(products); i++) {
        const json_t *product = json_array_get(products, i);
        ck_assert_double_gt(number_of(product, "gflops"), 0);
        ck_assert_double_gt(number_of(product, "onednn_gflops"), 0);
        if ((int64_t)number_of(product, "m") == m)
            count += (int)number_of(product, "times");
    }
    return count;
}

START_TEST(text_is_trained_and_measured)
{
    open_folder();
    json_t *json = json_of("bench train r.yaml corpus.txt --json");
    json_t *trained = json_of("train r.yaml corpus.txt --json data.eval=~ data.cache=off");
    static const char *const keys[] = {"rows_per_second", "tokens_per_second",
                                       "flops",           "matmul_limit_tokens_per_second",
                                       "share_of_limit",  "reading_share"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_double_gt(number_of(json, keys[i]), 0);
    ck_assert_double_ge(number_of(json, "wait_for_batches"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(json, "precision")), "fp32");
    ck_assert_int_eq((int)number_of(json, "threads"), 2);
    ck_assert_int_eq((int)number_of(json, "steps"), (int)number_of(trained, "step"));
    const json_t *metrics = json_object_get(trained, "train");
    int64_t tokens = (int64_t)number_of(metrics, "tokens"),
            steps = (int64_t)number_of(json, "steps");
    ck_assert_int_eq((int64_t)number_of(json, "tokens"), tokens);
    ck_assert_int_eq((int64_t)number_of(json, "parts"), steps);
    /* Products are as large as batches are in the mean: qkv, output, two of the MLP, the first
     * layer's gradient of its input too. */
    int64_t mean = (2 * tokens + steps) / (2 * steps);
    ck_assert_int_eq(count_products(json, mean), 2 * LAYERS * 4);
    json_decref(json);
    json_decref(trained);
    close_folder();
}
END_TEST

START_TEST(parts_of_a_step_are_counted)
{
    open_folder();
    json_t *json = json_of("bench train r.yaml corpus.txt --json --profile train.max_steps=3 "
                           "train.micro_batch_tokens=256");
    int64_t parts = (int64_t)number_of(json, "parts");
    ck_assert_int_eq((int)number_of(json, "steps"), 3);
    ck_assert_int_ge(parts, 3 * 4);
    const json_t *ops = json_object_get(json, "ops");
    double last = 1e9;
    int64_t attentions = 0;
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, i);
        ck_assert_double_le(number_of(op, "seconds"), last);
        last = number_of(op, "seconds");
        if (strcmp(json_string_value(json_object_get(op, "op")), "attention_fwd") == 0)
            attentions = (int64_t)number_of(op, "calls");
    }
    ck_assert_int_eq(attentions, LAYERS * parts);
    json_decref(json);
    close_folder();
}
END_TEST

START_TEST(people_see_a_table)
{
    open_folder();
    tdm_ran ran = tdm_run_shell("cd %s && mkdir tmp && TMPDIR=%s/tmp tandem bench train r.yaml "
                                "corpus.txt --profile train.max_steps=2 && ls tmp 1>&2",
                                folder, folder);
    ck_assert_ran(ran, 0, " tokens/s  ", NULL);
    ck_assert_ran(ran, 0, "matrix products alone    ", NULL);
    ck_assert_ran(ran, 0, "gemm, weight gradient", NULL);
    ck_assert_ran(ran, 0, "(waiting for batches)", NULL);
    ck_assert_ptr_null(strstr(ran.err, "tandem-bench"));
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem bench train r.yaml - < corpus.txt", folder);
    ck_assert_ran(ran, 2, NULL, "standard input cannot be read more than once");
    tdm_ran_free(&ran);
    close_folder();
}
END_TEST

/* A training tells it too. */
START_TEST(lines_of_metrics_tell_the_pace)
{
    open_folder();
    json_t *json = json_of("train r.yaml corpus.txt --json data.eval=~ output.dir=run "
                           "text.sequences=segment_pairs");
    ck_assert_double_gt(number_of(json, "flops"), 0);
    ck_assert_double_gt(number_of(json, "cut_share"), 0);
    ck_assert_double_lt(number_of(json, "cut_share"), 0.5);
    json_decref(json);
    char *path;
    ck_assert_ok(tdm_path_join(folder, "run/metrics.jsonl", &path));
    FILE *file = fopen(path, "r");
    char line[4096];
    int lines = 0;
    ck_assert_ptr_nonnull(file);
    for (; fgets(line, sizeof line, file) != NULL; lines++) {
        json = json_loads(line, 0, NULL);
        const char *event = json_string_value(json_object_get(json, "event"));
        if (strcmp(event, "train") == 0 || strcmp(event, "end") == 0) {
            ck_assert_double_gt(number_of(json, "flops"), 0);
            ck_assert_double_ge(number_of(json, "wait_for_batches"), 0);
            ck_assert_double_le(number_of(json, "wait_for_step"), 1);
        }
        ck_assert_int_eq(json_object_get(json, "cut_share") != NULL, strcmp(event, "end") == 0);
        json_decref(json);
    }
    ck_assert_int_ge(lines, 3);
    fclose(file);
    tdm_free(path);
    close_folder();
}
END_TEST

TDM_CHECK_MAIN(text_is_trained_and_measured, parts_of_a_step_are_counted, people_see_a_table,
               lines_of_metrics_tell_the_pace)
