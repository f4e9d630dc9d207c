#include "tests/support/training.h"

#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/support/check_main.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tdm_train_control tdm_from_start = {.resume = false};
const tdm_train_control tdm_go_on = {.resume = true};

void tdm_test_fast_folder(char folder[256])
{
    strcpy(folder, "/dev/shm/tandem-test-XXXXXX");
    if (mkdtemp(folder) == NULL)
        strcpy(folder, tdm_test_folder());
}

void tdm_test_write_clicks(const char *path, int rows, uint64_t seed)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    tdm_philox_key key = tdm_philox_make_key(seed, TDM_PURPOSE_SYNTH, 0);
    fputs("label,a,b,c,x\n", file);
    for (int i = 0; i < rows; i++) {
        tdm_philox_words words = tdm_random4(key, (uint64_t)i, 0, 0);
        int a = (int)(words.words[0] % 20), b = (int)(words.words[0] / 20 % 10);
        int c = (int)(words.words[1] % 50);
        double x = tdm_uniform(words.words[2]);
        double logit = (a % 3 - 1) + (b % 2 == a % 2 ? 1.2 : -1.2) + 2 * x - 1;
        int label = tdm_uniform(words.words[3]) < 1 / (1 + exp(-logit));
        fprintf(file, "%d,a%d,b%d,%s%.0d,%.3f\n", label, a, b, c == 0 ? "" : "c", c, x);
    }
    ck_assert_int_eq(fclose(file), 0);
}

void tdm_test_append(const char *path, const char *text)
{
    FILE *file = fopen(path, "ae");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static const char recipe_text[] =
    "seed: 3\n"
    "data: {format: csv, lanes: 4, window_blocks: 2, block_bytes: 4096, train: %s,\n"
    "       on_bad_record: quarantine, max_bad_records: 10%%}\n"
    "features:\n"
    "  label: label\n"
    "  defaults: {encoding: hash, buckets: 60, embedding_dim: 4}\n"
    "  fields: [{column: a}, {column: b}, {column: c}]\n"
    "  dense: [{column: x}]\n"
    "model: %s\n"
    "optimizer:\n"
    "  dense: {type: adam, learning_rate: 0.01}\n"
    "  sparse: {type: adagrad, learning_rate: 0.05}\n"
    "train: {batch_size: 64, threads: 2, log_every_steps: 5, device: cpu}\n"
    "checkpoint: {every_minutes: 0}\n"
    "cache: {dir: %s/cache}\n"
    "output: {dir: %s/run}\n";

tdm_recipe *tdm_test_recipe(const char *folder, const char *data, const char *model,
                            const char *overrides[], int override_count)
{
    tdm_text text = {0};
    tdm_recipe *recipe;
    const tdm_recipe_arguments arguments = {.overrides = overrides,
                                            .override_count = override_count};
    ck_assert_ok(
        tdm_text_printf(&text, recipe_text, data == NULL ? "[]" : data, model, folder, folder));
    ck_assert_ok(tdm_recipe_parse(text.bytes, text.length, "test.yaml", &arguments, &recipe));
    tdm_text_free(&text);
    return recipe;
}

char *tdm_test_read(const char *path)
{
    char *text;
    size_t bytes;
    ck_assert_ok(tdm_file_get(path, 1 << 26, &text, &bytes));
    return text;
}

char *tdm_test_metrics(const char *run_folder)
{
    char *text = tdm_test_read(tdm_test_path(run_folder, "metrics.jsonl"));
    tdm_text all = {0};
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        ck_assert_ptr_nonnull(json);
        json_object_del(json, "seconds");
        json_object_del(json, "rows_per_second");
        json_object_del(json, "tokens_per_second");
        json_object_del(json, "flops");
        json_object_del(json, "wait_for_batches");
        json_object_del(json, "wait_for_step");
        json_object_del(json, "cut_share");
        char *kept = json_dumps(json, JSON_COMPACT);
        ck_assert_ok(tdm_text_printf(&all, "%s\n", kept));
        free(kept);
        json_decref(json);
    }
    tdm_free(text);
    return all.bytes;
}

static char log_text[16384];

static void keep_message(void *context, tdm_log_level level, const char *message)
{
    size_t length = strlen(log_text);
    (void)context;
    (void)level;
    snprintf(log_text + length, sizeof log_text - length, "%s\n", message);
}

const char *tdm_test_log(void)
{
    log_text[0] = '\0';
    tdm_log_set_sink(keep_message, NULL);
    return log_text;
}

/* ---- devices --------------------------------------------------------------------------------- */

static tdm_backend_type far_type;

static tdm_status far_properties(tdm_backend *backend, tdm_backend_properties *out)
{
    (void)backend;
    *out = (tdm_backend_properties){.name = "far"};
    return TDM_OK;
}

tdm_status tdm_test_create_far(tdm_pool *pool, tdm_backend **out)
{
    TDM_TRY(tdm_cpu_create_deferred(pool, out));
    far_type = *(*out)->type;
    far_type.properties = far_properties;
    (*out)->type = &far_type;
    return TDM_OK;
}
