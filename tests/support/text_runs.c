#include "tests/support/text_runs.h"

#include "core/file.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/text_rig.h"
#include "tests/support/training.h"
#include "trainer/checkpoint.h"
#include "trainer/run_folder.h"
#include "trainer/tensor_file.h"

#include <stdio.h>
#include <string.h>

char tdm_text_folder[256];

const char *tdm_text_path(const char *name)
{
    static char paths[8][512];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", tdm_text_folder, name);
    return path;
}

const char *tdm_text_override(const char *key_and_equals, const char *name)
{
    static char overrides[8][600];
    static int turn;
    char *override = overrides[turn++ % 8];
    snprintf(override, sizeof overrides[0], "%s%s", key_and_equals, tdm_text_path(name));
    return override;
}

/* ---- data ------------------------------------------------------------------------------------ */

#define LINES 60

static void write_labelled(void)
{
    static const char *const words[] = {"the", "river", "house", "light", "stone", "night"};
    tdm_text lines = {0}, tagged = {0};
    ck_assert_ok(tdm_text_printf(&lines, "label\ttext\tpair\n"));
    for (int i = 0; i < LINES; i++) {
        const char *a = words[i % 6], *b = words[i * 5 / 6 % 6], *c = words[i / 7 % 6];
        bool is_light = strcmp(a, "light") == 0 || strcmp(b, "light") == 0;
        ck_assert_ok(tdm_text_printf(&lines, "%s\t%s %s\t%s\n", is_light ? "pos" : "neg", a, b, c));
        ck_assert_ok(tdm_text_printf(&tagged, "%s %s\n%s O\n\n", a, is_light ? "L" : "O", c));
    }
    tdm_free(tdm_data_rig_put_text(tdm_text_folder, "lines.tsv", lines.bytes));
    tdm_free(tdm_data_rig_put_text(tdm_text_folder, "words.txt", tagged.bytes));
    tdm_text_free(&lines);
    tdm_text_free(&tagged);
}

void tdm_text_runs_begin(void)
{
    tdm_test_fast_folder(tdm_text_folder);
    tdm_free(tdm_rig_vocabulary(tdm_text_folder, 0));
    char *corpus = tdm_rig_corpus(5, 40);
    tdm_free(tdm_data_rig_put_text(tdm_text_folder, "corpus.txt", corpus));
    tdm_free(corpus);
    write_labelled();
}

void tdm_text_runs_end(void)
{
    ck_assert_ok(tdm_folder_remove(tdm_text_folder));
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Files are named by whole paths: tests run anywhere. */
static const char mlm_text[] =
    "task: mlm\n"
    "data: {train: [%1$s/corpus.txt], documents: blank_line, lanes: 2, block_bytes: 4096}\n"
    "text: {tokenizer: %1$s/vocab.txt, max_length: 32}\n"
    "model: {type: bert, layers: 2, hidden: 16, heads: 2}\n";

static const char classify_text[] = "task: classify\n"
                                    "data: {train: [%1$s/lines.tsv], lanes: 2, block_bytes: 4096}\n"
                                    "text: {max_length: 32}\n"
                                    "labels: {column: label, text: text}\n"
                                    "model: {type: bert}\n";

static const char common_text[] =
    "seed: 3\n"
    "optimizer: {learning_rate: 0.001}\n"
    "train: {batch_tokens: 256, max_steps: 4, threads: 2, device: cpu, log_every_steps: 2}\n"
    "checkpoint: {every_minutes: 0}\n"
    "cache: {dir: %1$s/cache}\n"
    "output: {dir: %1$s/%2$s}\n";

#define MOST_OVERRIDES 16

/* "text.tokenizer=vocab.txt" names a file of the folder. */
static int place_overrides(const char *const overrides[], const char *out[MOST_OVERRIDES])
{
    static const char tokenizer[] = "text.tokenizer=vocab.txt";
    static char placed[400];
    int count = 0;
    for (; overrides != NULL && overrides[count] != NULL; count++) {
        ck_assert_int_lt(count, MOST_OVERRIDES);
        out[count] = overrides[count];
        if (strcmp(overrides[count], tokenizer) != 0)
            continue;
        snprintf(placed, sizeof placed, "text.tokenizer=%s/vocab.txt", tdm_text_folder);
        out[count] = placed;
    }
    return count;
}

tdm_status tdm_text_recipe(tdm_task_kind task, const char *name, const char *const overrides[],
                           tdm_recipe **out)
{
    char format[2048], text[4096];
    const char *placed[MOST_OVERRIDES];
    const tdm_recipe_arguments arguments = {.overrides = placed,
                                            .override_count = place_overrides(overrides, placed)};
    snprintf(format, sizeof format, "%s%s", task == TDM_TASK_MLM ? mlm_text : classify_text,
             common_text);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, format, tdm_text_folder, name);
#pragma GCC diagnostic pop
    return tdm_recipe_parse(text, strlen(text), "test.yaml", &arguments, out);
}

tdm_status tdm_text_train(tdm_task_kind task, const char *name, const char *const overrides[])
{
    tdm_recipe *recipe;
    const tdm_train_control control = {.resume = false};
    TDM_TRY(tdm_text_recipe(task, name, overrides, &recipe));
    tdm_status status = tdm_train(recipe, &control, NULL);
    tdm_recipe_free(recipe);
    return status;
}

float *tdm_text_run_tensor(const char *name, const char *tensor, int64_t *elements)
{
    char *path;
    int64_t step;
    tdm_safetensors *file;
    float *values = NULL;
    ck_assert_ok(tdm_run_folder_choose(tdm_text_path(name), "last", &step));
    ck_assert_ok(tdm_checkpoint_path(tdm_text_path(name), step, TDM_MODEL_FILE, &path));
    ck_assert_ok(tdm_safetensors_open(path, &file));
    int index = tdm_safetensors_find(file, tensor);
    *elements = 0;
    if (index >= 0) {
        size_t bytes = (size_t)tdm_safetensors_get(file, index)->bytes;
        *elements = (int64_t)(bytes / sizeof *values);
        ck_assert_ok(tdm_alloc(bytes, 1, &values));
        ck_assert_ok(tdm_safetensors_read(file, index, 0, values, bytes));
    }
    tdm_safetensors_close(file);
    tdm_free(path);
    return values;
}
