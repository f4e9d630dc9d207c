/* Labelled text through the pipeline of a training: the same batches, bit for bit, on any number of
 * threads, with and without the cache and after a resume anywhere. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/same_batches.h"
#include "tests/support/text_rig.h"
#include "text/masked_batch.h"

#include <stdio.h>
#include <string.h>

static char folder[TDM_FOLDER_BYTES];
static char *vocabulary, *path;
static tdm_text recipe;
static uint32_t bad_every = 20; /* about one of so many labels is missing; 0: none */

/* A way to label text. */
typedef struct labelling {
    bool words; /* a word a line, in place of a record a line */
    const char *text, *data, *labels;
} labelling;

static const labelling ways[] = {
    {false, "max_length: 16", "format: tsv, header: false, columns: [label, text]", ""},
    {false, "max_length: 16", "format: tsv, header: false, columns: [a, text, label]",
     "text_pair: a, type: multiple, separator: space"},
    {false, "max_length: 32, batch: padded", "format: tsv, header: false, columns: [label, text]",
     "type: regression"},
    {true, "max_length: 24", "format: text", "type: tokens"},
};
#define WAYS (sizeof ways / sizeof ways[0])

static uint32_t draw(uint64_t *state, uint32_t count)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % count;
}

/* Sentences of tdm_rig_corpus() with labels. */
static char *labelled_text(const labelling *way, int documents)
{
    char *corpus = tdm_rig_corpus(5, documents);
    uint64_t state = 3;
    tdm_text text = {0};
    for (char *line = strtok(corpus, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        static const char *const labels[] = {"1", "2", "30", ""};
        bool bad = bad_every > 0 && draw(&state, bad_every) == 0;
        const char *label = labels[bad ? 3 : draw(&state, 3)];
        for (char *at = line; way->words && *at != '\0'; at += strspn(at, " ")) {
            size_t bytes = strcspn(at, " ");
            ck_assert_ok(tdm_text_printf(&text, "%.*s %s\n", (int)bytes, at, label));
            at += bytes;
        }
        if (way->words)
            ck_assert_ok(tdm_text_printf(&text, "\n"));
        else if (strstr(way->data, "[a, text") != NULL)
            ck_assert_ok(tdm_text_printf(&text, "%s\t%s\t%s 2\n",
                                         strchr(line + strlen(line) / 2, ' '), line, label));
        else
            ck_assert_ok(tdm_text_printf(&text, "%s\t%s\n", label, line));
    }
    tdm_free(corpus);
    return text.bytes;
}

static tdm_data_rig_options open_files(const char *name, const labelling *way, int documents)
{
    tdm_new_folder(folder);
    vocabulary = tdm_rig_vocabulary(folder, 0);
    char *text = labelled_text(way, documents);
    path = tdm_data_rig_put_text(folder, name, text);
    tdm_free(text);
    ck_assert_ok(tdm_text_printf(&recipe, "text: {tokenizer: %s, %s}\ndata: {%s}\nlabels: {%s}\n",
                                 vocabulary, way->text, way->data, way->labels));
    return (tdm_data_rig_options){.files = {path},
                                  .text = recipe.bytes,
                                  .block_bytes = 1500,
                                  .batch_tokens = 256,
                                  .epochs = 2,
                                  .seed = 7};
}

static void close_files(void)
{
    tdm_text_free(&recipe);
    tdm_free(vocabulary);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}

/* ---- the same batches ------------------------------------------------------------------------ */

static void check_file(const char *name)
{
    for (size_t w = 0; w < WAYS; w++) {
        tdm_check_same_batches(open_files(name, &ways[w], 120), folder);
        close_files();
    }
}

START_TEST(test_plain_file_gives_same_batches)
{
    check_file("a.tsv");
}
END_TEST

START_TEST(test_stream_gives_same_batches)
{
    check_file("a.tsv.gz");
}
END_TEST

START_TEST(test_resumes_everywhere)
{
    for (size_t w = 0; w < WAYS; w++) {
        tdm_check_resumes(open_files(w % 2 == 0 ? "a.tsv" : "a.tsv.zst", &ways[w], 40));
        close_files();
    }
}
END_TEST

/* ---- what an epoch holds --------------------------------------------------------------------- */

typedef struct epoch {
    int64_t rows, batches, bad;
    double row_sum; /* of the hashes of rows and their labels, whatever the order */
    uint64_t order; /* of the same, in their order */
} epoch;

static uint64_t hash_row(const tdm_masked_batch *view, int64_t index)
{
    tdm_token_range row = tdm_masked_batch_row(view, index);
    uint64_t hash = ((const uint32_t *)view->labels)[index];
    for (int64_t i = row.begin; i < row.end; i++)
        hash = (hash ^ view->ids[i]) * 1099511628211u;
    return hash;
}

static void run_epochs(const tdm_data_rig_options *options, epoch *epochs)
{
    tdm_data_rig rig;
    tdm_data_rig_open(options, &rig);
    tdm_data_rig_start(&rig);
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        last = delivery->last;
        epoch *sum = &epochs[delivery->epoch];
        for (size_t i = 0; i < delivery->report_count; i++)
            sum->bad += (int64_t)delivery->reports[i].count;
        tdm_masked_batch view = {0};
        if (!delivery->epoch_end)
            view = tdm_masked_batch_of(&delivery->batch);
        sum->batches += !delivery->epoch_end;
        for (int64_t r = 0; r < view.rows; r++) {
            uint64_t hash = hash_row(&view, r);
            sum->rows++;
            sum->row_sum += (double)(hash >> 32);
            sum->order = sum->order * 31 + hash;
        }
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    tdm_data_rig_close(&rig);
}

/* Every record once in every epoch, in another order, with its own label; bad ones are told
 * once. */
START_TEST(test_epochs_mix_records)
{
    epoch epochs[2] = {0};
    tdm_data_rig_options options = open_files("a.tsv", &ways[0], 120);
    options.threads = 2;
    run_epochs(&options, epochs);
    ck_assert_int_gt(epochs[0].rows, 200);
    ck_assert_int_gt(epochs[0].bad, 5);
    ck_assert_int_eq(epochs[1].bad, 0);
    ck_assert_int_eq(epochs[0].rows, epochs[1].rows);
    ck_assert(epochs[0].row_sum == epochs[1].row_sum);
    ck_assert_uint_ne(epochs[0].order, epochs[1].order);
    close_files();
}
END_TEST

/* Both parts together are all records. */
START_TEST(test_held_out_records)
{
    static epoch all[2], kept[2], held[2];
    tdm_data_rig_options options = open_files("a.tsv", &ways[0], 120);
    options.epochs = 1;
    run_epochs(&options, all);
    options.hold_out = 0.2;
    options.selection = TDM_SELECT_TRAINING;
    run_epochs(&options, kept);
    options.selection = TDM_SELECT_HELD_OUT;
    run_epochs(&options, held);
    ck_assert_int_gt(held[0].rows, 10);
    ck_assert_int_eq(kept[0].rows + held[0].rows, all[0].rows);
    ck_assert(kept[0].row_sum + held[0].row_sum == all[0].row_sum);
    close_files();
}
END_TEST

START_TEST(test_weights)
{
    static epoch once[2], twice[2];
    tdm_data_rig_options options = open_files("a.tsv", &ways[0], 120);
    options.epochs = 1;
    run_epochs(&options, once);
    options.weights[0] = 2;
    run_epochs(&options, twice);
    ck_assert_int_eq(twice[0].rows, 2 * once[0].rows);
    ck_assert(twice[0].row_sum == 2 * once[0].row_sum);
    close_files();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Buffers are reused: epochs later on ask for no memory, but to tell of bad records. */
START_TEST(test_later_epochs_allocate_nothing)
{
    bad_every = 0;
    for (size_t w = 0; w < WAYS; w++) {
        tdm_data_rig_options options = open_files("a.tsv", &ways[w], 120);
        options.epochs = 24;
        /* A window is more than a lane's part of a batch. */
        options.lanes = 2;
        options.block_bytes = 2500;
        options.batch_tokens = 128;
        tdm_check_reuse(&options);
        close_files();
    }
}
END_TEST

/* Every allocation fails once: it says so, and nothing leaks. */
START_TEST(test_memory_that_runs_out)
{
    for (size_t w = 0; w < WAYS; w += 3) {
        tdm_data_rig_options options = open_files("a.tsv", &ways[w], 8);
        options.epochs = 1;
        tdm_check_out_of_memory(&options);
        close_files();
    }
}
END_TEST

/* ---- very long texts ------------------------------------------------------------------------- */

START_TEST(test_very_long_texts)
{
    static const labelling long_way = {false, "max_length: 16",
                                       "format: tsv, header: false, columns: [label, text]", ""};
    tdm_data_rig_options options = open_files("a.tsv", &long_way, 1);
    tdm_text text = {0};
    for (int row = 0; row < 3; row++) {
        ck_assert_ok(tdm_text_printf(&text, "%d\t", row));
        for (int i = 0; i < 50000; i++)
            ck_assert_ok(tdm_text_printf(&text, "the river "));
        ck_assert_ok(tdm_text_printf(&text, "\n"));
    }
    tdm_free(path);
    path = tdm_data_rig_put_text(folder, "a.tsv", text.bytes);
    tdm_text_free(&text);
    options.files[0] = path;
    options.epochs = 1;
    tdm_data_rig rig;
    tdm_given_list list = {0};
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    ck_assert_ok(tdm_data_rig_try_run(&rig, &list));
    tdm_text_counts counts = tdm_text_featurizer_counts(rig.featurizer);
    ck_assert_int_eq(counts.sequences, 3);
    ck_assert_int_eq(counts.tokens, 300000);
    ck_assert_int_eq(counts.cut_tokens, 300000 - 3 * 14);
    tdm_given_list_free(&list);
    tdm_data_rig_close(&rig);
    close_files();
}
END_TEST

/* ---- real text ------------------------------------------------------------------------------- */

START_TEST(test_sentence_polarity)
{
    const char *data = tdm_test_data();
    if (data == NULL) {
        tdm_test_skip("film reviews");
        return;
    }
    char *file, *text;
    ck_assert_ok(tdm_format(&file, "%s/text/sentence_polarity.tsv.gz", data));
    ck_assert_ok(tdm_format(&text,
                            "text: {tokenizer: %s/vocab/bert-base-uncased-vocab.txt}\n"
                            "data: {format: tsv, header: false, columns: [label, text]}\n"
                            "labels: {}\n",
                            data));
    tdm_data_rig_options options = {.files = {file},
                                    .text = text,
                                    .threads = 2,
                                    .batch_tokens = 2048,
                                    .block_bytes = 65536,
                                    .lanes = 4};
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    ck_assert_int_eq(rig.labels->classes.size, 2);
    ck_assert_int_eq(tdm_vocabulary_find(&rig.labels->classes, "1", 1), 1);
    tdm_data_rig_start(&rig);
    int64_t classes[2] = {0}, tokens = 0;
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        last = delivery->last;
        ck_assert_uint_eq(delivery->report_count, 0);
        tdm_masked_batch view = {0};
        if (!delivery->epoch_end)
            view = tdm_masked_batch_of(&delivery->batch);
        ck_assert_int_le(view.max_seqlen, 128);
        for (int64_t r = 0; r < view.rows; r++)
            classes[((const uint32_t *)view.labels)[r]]++;
        tokens += view.tokens - 2 * view.rows;
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    ck_assert_int_eq(classes[0], 5331);
    ck_assert_int_eq(classes[1], 5331);
    tdm_text_counts counts = tdm_text_featurizer_counts(rig.featurizer);
    ck_assert_int_eq(counts.sequences, 10662);
    ck_assert_int_eq(counts.cut_tokens, 0);
    ck_assert_int_eq(counts.tokens, tokens);
    tdm_data_rig_close(&rig);
    tdm_free(text);
    tdm_free(file);
}
END_TEST

TDM_CHECK_MAIN(test_plain_file_gives_same_batches, test_stream_gives_same_batches,
               test_resumes_everywhere, test_epochs_mix_records, test_held_out_records,
               test_weights, test_later_epochs_allocate_nothing, test_memory_that_runs_out,
               test_very_long_texts, test_sentence_polarity)
