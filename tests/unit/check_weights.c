/* Corpora with weights: how often an epoch has their blocks, on any number of threads, behind any
 * restart, from text and from the cache. */
#include "core/file.h"
#include "core/memory.h"
#include "data/pipeline_internal.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILE_ROWS 150
#define FILES     4
#define IDS       (FILES * FILE_ROWS)

static char folder[TDM_FOLDER_BYTES];
static char *paths[FILES];
static const double weights[FILES] = {1, 2, 0.3, 1.5};

/* File f holds rows f * FILE_ROWS and so on, in some twenty blocks. */
static tdm_data_rig_options open_files(const char *ending)
{
    tdm_data_rig_options options = {
        .format = TDM_FORMAT_CSV, .block_bytes = 200, .epochs = 1, .seed = 5, .threads = 2};
    tdm_new_folder(folder);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.csv%s", i, ending);
        char *text = tdm_data_rig_text((int64_t)i * FILE_ROWS, FILE_ROWS, 0);
        paths[i] = tdm_data_rig_put_text(folder, name, text);
        tdm_free(text);
        options.files[i] = paths[i];
        options.weights[i] = weights[i];
    }
    return options;
}

static void close_files(void)
{
    for (int i = 0; i < FILES; i++)
        tdm_free(paths[i]);
    ck_assert_ok(tdm_folder_remove(folder));
}

/* Runs and counts each row of each epoch. */
static void run_counted(const tdm_data_rig_options *options, tdm_given_list *list)
{
    list->seen_ids = IDS;
    ck_assert_ok(tdm_alloc((size_t)(options->epochs * IDS), 1, &list->seen));
    tdm_data_rig_run(options, list);
}

static void free_counted(tdm_given_list *list)
{
    tdm_free(list->seen);
    tdm_given_list_free(list);
}

START_TEST(test_blocks_come_as_often_as_weights_say)
{
    enum { EPOCHS = 60 };
    tdm_data_rig_options options = open_files("");
    options.epochs = EPOCHS;
    tdm_given_list list = {0};
    run_counted(&options, &list);
    double mean[FILES] = {0};
    bool extra_differs = false;
    for (int e = 0; e < EPOCHS; e++) {
        for (int id = 0; id < IDS; id++) {
            int file = id / FILE_ROWS, count = list.seen[e * IDS + id];
            ck_assert_int_ge(count, (int)floor(weights[file]));
            ck_assert_int_le(count, (int)ceil(weights[file]));
            mean[file] += (double)count / FILE_ROWS / EPOCHS;
            extra_differs = extra_differs || (e > 0 && count != list.seen[(e - 1) * IDS + id]);
        }
    }
    ck_assert(extra_differs);
    /* 60 epochs of some 20 blocks: four standard deviations are 0.06. */
    for (int f = 0; f < FILES; f++)
        ck_assert_double_eq_tol(mean[f], weights[f], 0.06);
    free_counted(&list);
    close_files();
}
END_TEST

/* An epoch's share of stored bytes rises to 1, whatever its list is, and begins again with the
 * next. */
START_TEST(test_shares_count_the_list_of_the_epoch)
{
    tdm_data_rig_options options = open_files("");
    options.epochs = 5;
    tdm_given_list list = {0};
    tdm_data_rig_run(&options, &list);
    double before = 0;
    for (size_t i = 0; i < list.count; i++) {
        const tdm_given *given = &list.items[i];
        if (given->epoch_end) {
            ck_assert(before == 1);
            ck_assert(given->share == 0);
        } else {
            ck_assert_double_gt(given->share, before);
        }
        before = given->share;
    }
    tdm_given_list_free(&list);
    close_files();
}
END_TEST

/* The same on any number of threads, and from every n-th place on. */
static void check_repeats(tdm_data_rig_options options, size_t step)
{
    tdm_given_list whole = {0};
    options.threads = 1;
    tdm_data_rig_run(&options, &whole);
    for (size_t n = 0; n + 1 < whole.count; n += step) {
        tdm_given_list first = {0}, rest = {0};
        options.start = NULL;
        options.threads = 1 + (int)(n % 5);
        options.depth = 2 + (int)(n % 3);
        tdm_data_rig_take(&options, n + 1, &first);
        ck_assert_uint_eq(first.items[n].hash, whole.items[n].hash);
        options.start = &first.items[n].after;
        tdm_data_rig_run(&options, &rest);
        tdm_given_same(&whole, n + 1, &rest, true);
        tdm_given_list_free(&first);
        tdm_given_list_free(&rest);
    }
    tdm_given_list_free(&whole);
}

START_TEST(test_weights_on_any_threads_and_after_a_restart)
{
    tdm_data_rig_options options = open_files("");
    options.epochs = 3;
    check_repeats(options, 7);
    options.lanes = 16;
    options.window_blocks = 1;
    check_repeats(options, 11);
    close_files();
}
END_TEST

START_TEST(test_the_cache_changes_nothing)
{
    tdm_data_rig_options options = open_files("");
    options.epochs = 3;
    tdm_given_list text = {0}, filled = {0}, cached = {0};
    tdm_data_rig_run(&options, &text);
    char *cache;
    ck_assert_ok(tdm_format(&cache, "%s/a.cache", folder));
    options.cache_path = cache;
    tdm_data_rig_run(&options, &filled);
    ck_assert(tdm_file_exists(cache));
    tdm_data_rig_run(&options, &cached);
    tdm_given_same(&text, 0, &filled, true);
    tdm_given_same(&text, 0, &cached, true);
    tdm_given_list_free(&text);
    tdm_given_list_free(&filled);
    tdm_given_list_free(&cached);
    tdm_free(cache);
    close_files();
}
END_TEST

START_TEST(test_streams_need_the_cache)
{
    tdm_data_rig_options options = open_files(".gz");
    options.epochs = 2;
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    ck_assert_fails(tdm_data_rig_try_start(&rig), TDM_E_CONFIG,
                    "0.csv.gz is read from its beginning: set data.cache=on");
    tdm_data_rig_close(&rig);
    char *cache;
    ck_assert_ok(tdm_format(&cache, "%s/a.cache", folder));
    options.cache_path = cache;
    tdm_given_list list = {0};
    run_counted(&options, &list);
    for (int id = 0; id < 2 * FILE_ROWS; id++) {
        ck_assert_int_eq(list.seen[id], id < FILE_ROWS ? 1 : 2);
        ck_assert_int_eq(list.seen[IDS + id], id < FILE_ROWS ? 1 : 2);
    }
    free_counted(&list);
    check_repeats(options, 9);
    /* Weights of 1 are none. */
    tdm_given_list plain = {0};
    for (int i = 0; i < FILES; i++)
        options.weights[i] = 1;
    options.cache_path = NULL;
    tdm_data_rig_run(&options, &plain);
    tdm_given_list_free(&plain);
    tdm_free(cache);
    close_files();
}
END_TEST

START_TEST(test_a_cache_that_cannot_be_filled)
{
    tdm_data_rig_options options = open_files("");
    options.epochs = 2;
    tdm_given_list text = {0}, list = {0};
    tdm_data_rig_run(&options, &text);
    char *cache;
    ck_assert_ok(tdm_format(&cache, "%s/0.csv/a.cache", folder)); /* below a file */
    options.cache_path = cache;
    tdm_warnings_expect("the cache could not be written, so that every epoch reads the text");
    tdm_data_rig_run(&options, &list);
    ck_assert_int_eq(tdm_warnings_seen(), 1);
    tdm_given_same(&text, 0, &list, true);
    tdm_given_list_free(&text);
    tdm_given_list_free(&list);
    close_files();
    tdm_free(cache);
    /* Streams cannot do without, and a fill can be stopped. */
    atomic_bool cancel = false;
    options = open_files(".gz");
    options.cancel = &cancel;
    ck_assert_ok(tdm_format(&cache, "%s/0.csv.gz/a.cache", folder));
    options.cache_path = cache;
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    ck_assert_fails(tdm_data_rig_try_start(&rig), TDM_E_CONFIG, "data.train: weights need files");
    tdm_data_rig_close(&rig);
    tdm_free(cache);
    ck_assert_ok(tdm_format(&cache, "%s/a.cache", folder));
    options.cache_path = cache;
    tdm_data_rig_open(&options, &rig);
    cancel = true;
    ck_assert_fails(tdm_data_rig_try_start(&rig), TDM_E_CANCELLED, "stopped while the cache");
    ck_assert(!tdm_file_exists(cache));
    tdm_data_rig_close(&rig);
    tdm_free(cache);
    close_files();
}
END_TEST

/* ---- what a window is told ------------------------------------------------------------------- */

/* The list of an epoch: the place of a block in it is its occurrence. */
START_TEST(test_occurrences_are_numbered)
{
    tdm_data_rig_options options = open_files("");
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    int64_t blocks = tdm_input_block_count(rig.input);
    pthread_mutex_lock(&rig.pipeline->lock);
    int32_t seen[1000] = {0};
    int64_t repeated = 0, bytes = 0;
    ck_assert_int_lt(blocks, 1000);
    for (int64_t i = 0; i < tdm_epoch_blocks(rig.pipeline, 0); i++) {
        int64_t block;
        int32_t occurrence;
        tdm_epoch_block(rig.pipeline, 0, i, &block, &occurrence);
        ck_assert_int_eq(occurrence, seen[block]++);
        repeated += occurrence > 0;
        bytes += tdm_input_block_stored_bytes(rig.input, block);
    }
    ck_assert_int_gt(repeated, 10);
    ck_assert_int_eq(bytes, tdm_epoch_stored_bytes(rig.pipeline, 0));
    pthread_mutex_unlock(&rig.pipeline->lock);
    tdm_data_rig_close(&rig);
    close_files();
    tdm_extract extract = {.occurrence = 3};
    ck_assert_uint_eq(tdm_extract_counter(&extract, 7), 7 | 3u << 16);
}
END_TEST

/* A row that an epoch has more than once is told by its occurrence, wherever it lies. */
START_TEST(test_rows_tell_their_occurrence)
{
    static unsigned char seen[1000][64];
    tdm_data_rig_options options = open_files("");
    tdm_data_rig rig;
    int64_t again = 0;
    memset(seen, 0, sizeof seen);
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        last = delivery->last;
        const uint64_t *samples = tdm_batch_data(&delivery->batch, TDM_BATCH_SAMPLE);
        const uint32_t *occurrences = tdm_batch_data(&delivery->batch, TDM_BATCH_OCCURRENCE);
        for (int64_t r = 0; r < delivery->batch.rows; r++) {
            ck_assert(samples[r] >> 32 < 1000 && (uint32_t)samples[r] < 64 && occurrences[r] < 8);
            unsigned char *bits = &seen[samples[r] >> 32][(uint32_t)samples[r]];
            ck_assert_uint_eq(*bits & 1u << occurrences[r], 0);
            *bits |= (unsigned char)(1u << occurrences[r]);
            again += occurrences[r] > 0;
        }
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    ck_assert_int_gt(again, FILE_ROWS / 2);
    tdm_data_rig_close(&rig);
    close_files();
}
END_TEST

/* ---- bad records ----------------------------------------------------------------------------- */

START_TEST(test_bad_records_are_reported_once)
{
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, 90, 5);
    char *path = tdm_data_rig_put_text(folder, "a.csv", text);
    const tdm_data_rig_options options = {
        .files = {path}, .weights = {3}, .format = TDM_FORMAT_CSV, .block_bytes = 100, .epochs = 3};
    tdm_given_list list = {0};
    tdm_data_rig_run(&options, &list);
    int64_t rows = 0, bad = 0;
    for (size_t i = 0; i < list.count; i++) {
        rows += list.items[i].rows;
        bad += list.items[i].bad;
    }
    ck_assert_int_eq(rows, 3 * 3 * 72);
    ck_assert_int_eq(bad, 18);
    tdm_given_list_free(&list);
    tdm_free(text);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- recipes --------------------------------------------------------------------------------- */

static tdm_status bind_train(const char *recipe, tdm_train_source *source)
{
    tdm_config *config;
    ck_assert_ok(tdm_config_parse(recipe, strlen(recipe), "r.yaml", NULL, 0, &config));
    const tdm_config_node *data = tdm_config_get(tdm_config_root(config), "data");
    tdm_status status = tdm_train_source_bind(tdm_config_get(data, "train"), source);
    tdm_config_free(config);
    return status;
}

START_TEST(test_corpora_of_recipes)
{
    tdm_train_source source;
    ck_assert_ok(bind_train("data: {train: [a.txt, {files: [b.txt, c*.txt], weight: 2.5}, "
                            "{files: d.txt}, {files: e.txt, weight: 0.3}]}",
                            &source));
    static const char *const names[] = {"a.txt", "b.txt", "c*.txt", "d.txt", "e.txt"};
    static const double expected[] = {1, 2.5, 2.5, 1, 0.3};
    ck_assert_int_eq(source.files.count, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(source.files.items[i], names[i]);
        ck_assert_double_eq(source.weights[i], expected[i]);
    }
    tdm_train_source_deinit(&source);
    ck_assert_ok(bind_train("data: {train: a.txt}", &source));
    ck_assert_int_eq(source.files.count, 1);
    ck_assert_double_eq(source.weights[0], 1);
    tdm_train_source_deinit(&source);
    ck_assert_ok(bind_train("data: {train: []}", &source));
    ck_assert_int_eq(source.files.count, 0);
    ck_assert_fails(bind_train("data: {train: [a, {files: b, weight: 0}]}", &source), TDM_E_CONFIG,
                    "r.yaml:1: data.train[1].weight: expected a number from 0.001 to 1000, not 0");
    ck_assert_fails(bind_train("data: {train: [{file: b}]}", &source), TDM_E_CONFIG,
                    "r.yaml:1: data.train[0].file: unknown key; did you mean files?");
    ck_assert_fails(bind_train("data: {train: [{weight: 2}]}", &source), TDM_E_CONFIG,
                    "r.yaml:1: data.train[0].files: missing");
    ck_assert_fails(bind_train("data: {train: [[a, b]]}", &source), TDM_E_CONFIG,
                    "r.yaml:1: data.train[0]: expected a text or a mapping, not a list");
}
END_TEST

TDM_CHECK_MAIN(test_blocks_come_as_often_as_weights_say, test_shares_count_the_list_of_the_epoch,
               test_weights_on_any_threads_and_after_a_restart, test_the_cache_changes_nothing,
               test_streams_need_the_cache, test_a_cache_that_cannot_be_filled,
               test_occurrences_are_numbered, test_rows_tell_their_occurrence,
               test_bad_records_are_reported_once, test_corpora_of_recipes)
