#include "tests/support/texts.h"

#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/text_rig.h"

#include <stdio.h>
#include <string.h>

tdm_text_paths tdm_texts;

static void set_path(char path[300], const char *name)
{
    snprintf(path, 300, "%.255s/%.40s", tdm_texts.folder, name);
}

static void write_corpus(const char *path, uint64_t seed, int documents)
{
    char *text = tdm_rig_corpus(seed, documents);
    ck_assert_ok(tdm_file_put(path, text, strlen(text), NULL));
    tdm_free(text);
}

/* A sentence each, of rivers or not. */
static void write_labels(const char *path, uint64_t seed, int records)
{
    char *corpus = tdm_rig_corpus(seed, records);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs("label\ttext\n", file);
    char *line = strtok(corpus, "\n");
    for (int i = 0; i < records; i++, line = strtok(NULL, "\n"))
        fprintf(file, "%s\t%s\n", strstr(line, "river") != NULL ? "river" : "land", line);
    ck_assert_int_eq(fclose(file), 0);
    tdm_free(corpus);
}

void tdm_texts_begin(int documents)
{
    tdm_text_paths *paths = &tdm_texts;
    tdm_test_fast_folder(paths->folder);
    char *vocabulary = tdm_rig_vocabulary(paths->folder, 0);
    snprintf(paths->vocabulary, sizeof paths->vocabulary, "%s", vocabulary);
    tdm_free(vocabulary);
    set_path(paths->corpus, "corpus.txt");
    set_path(paths->eval_corpus, "later.txt");
    set_path(paths->labels, "labels.tsv");
    set_path(paths->eval_labels, "later.tsv");
    set_path(paths->run, "run");
    write_corpus(paths->corpus, 1, documents);
    write_corpus(paths->eval_corpus, 2, documents / 5);
    write_labels(paths->labels, 3, documents);
    write_labels(paths->eval_labels, 4, documents / 5);
}

void tdm_texts_end(void)
{
    ck_assert_ok(tdm_folder_remove(tdm_texts.folder));
}

static const char masked_text[] = "task: mlm\n"
                                  "data: {format: text, documents: blank_line, train: %s,\n";

static const char labelled_text[] = "task: classify\n"
                                    "labels: {classes: [land, river]}\n"
                                    "data: {format: tsv, train: %s,\n";

static const char recipe_text[] =
    "       lanes: 4, window_blocks: 2, block_bytes: 4096, on_bad_record: quarantine,\n"
    "       max_bad_records: 20%%, max_record_bytes: 2048}\n"
    "seed: 3\n"
    "text: {tokenizer: %s, max_length: 32}\n"
    "model: {type: bert, layers: 2, hidden: 32, heads: 2, dropout: 0.1}\n"
    "optimizer: {learning_rate: 0.003}\n"
    "train: {batch_tokens: 512, threads: 2, log_every_steps: 5, device: cpu, precision: fp32}\n"
    "checkpoint: {every_minutes: 0}\n"
    "cache: {dir: %s/cache}\n"
    "output: {dir: %s/run}\n";

tdm_status tdm_texts_try_recipe(tdm_task_kind task, const char *folder, const char *overrides[],
                                tdm_recipe **out)
{
    tdm_text text = {0};
    tdm_recipe_arguments arguments = {.overrides = overrides};
    while (overrides != NULL && overrides[arguments.override_count] != NULL)
        arguments.override_count++;
    if (task == TDM_TASK_MLM)
        ck_assert_ok(tdm_text_printf(&text, masked_text, tdm_texts.corpus));
    else
        ck_assert_ok(tdm_text_printf(&text, labelled_text, tdm_texts.labels));
    ck_assert_ok(tdm_text_printf(&text, recipe_text, tdm_texts.vocabulary, folder, folder));
    tdm_status status = tdm_recipe_parse(text.bytes, text.length, "test.yaml", &arguments, out);
    tdm_text_free(&text);
    return status;
}

tdm_recipe *tdm_texts_recipe(tdm_task_kind task, const char *folder, const char *overrides[])
{
    tdm_recipe *recipe;
    ck_assert_ok(tdm_texts_try_recipe(task, folder, overrides, &recipe));
    return recipe;
}

tdm_status tdm_texts_train_in(const char *folder, tdm_task_kind task, const char *overrides[],
                              const tdm_train_control *control, tdm_train_result *result)
{
    tdm_recipe *recipe;
    TDM_TRY(tdm_texts_try_recipe(task, folder, overrides, &recipe));
    tdm_status status = tdm_train(recipe, control, result);
    tdm_recipe_free(recipe);
    return status;
}

tdm_status tdm_texts_train(tdm_task_kind task, const char *overrides[],
                           const tdm_train_control *control, tdm_train_result *result)
{
    return tdm_texts_train_in(tdm_texts.folder, task, overrides, control, result);
}
