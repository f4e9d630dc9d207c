/* The order of rows is a pure function of seed, epoch and blocks: the same batches, bit for bit, on
 * any number of threads, any depth of the ring, with and without the cache. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <stdio.h>
#include <string.h>

#define ROWS 1200

/* Runs with every number of threads, depth and state of the cache, and compares with one thread. */
static void check_all_ways(tdm_data_rig_options options)
{
    static const int threads[] = {1, 2, 16};
    static const int depths[] = {2, 5};
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *path;
    ck_assert_ok(tdm_format(&path, "%s/same.cache", folder));
    tdm_given_list reference = {0};
    options.threads = 1;
    tdm_data_rig_run(&options, &reference);
    for (size_t t = 0; t < 3; t++) {
        for (size_t d = 0; d < 2; d++) {
            options.threads = threads[t];
            options.depth = depths[d];
            /* without the cache, writing it, reading it */
            for (int use = 0; use < 3; use++) {
                tdm_given_list list = {0};
                options.cache_path = use == 0 ? NULL : path;
                tdm_data_rig_run(&options, &list);
                tdm_given_same(&reference, 0, &list, true);
                tdm_given_list_free(&list);
                ck_assert_int_eq(tdm_file_exists(path), use > 0);
            }
            ck_assert_ok(tdm_file_remove(path));
        }
    }
    tdm_given_list_free(&reference);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}

static tdm_data_rig_options options_for(const char *path)
{
    return (tdm_data_rig_options){
        .files = {path}, .format = TDM_FORMAT_CSV, .block_bytes = 150, .epochs = 3, .seed = 7};
}

static void check_file(const char *name, int bad_every)
{
    char *text = tdm_data_rig_text(0, ROWS, bad_every);
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *path = tdm_data_rig_put_text(folder, name, text);
    check_all_ways(options_for(path));
    tdm_free(path);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}

START_TEST(test_plain_file_gives_same_batches)
{
    check_file("a.csv", 0);
}
END_TEST

START_TEST(test_gzip_file_gives_same_batches)
{
    check_file("a.csv.gz", 0);
}
END_TEST

START_TEST(test_zstd_file_gives_same_batches)
{
    check_file("a.csv.zst", 0);
}
END_TEST

START_TEST(test_bad_records_give_same_batches_and_reports)
{
    check_file("a.csv", 13);
    check_file("a.csv.gz", 13);
}
END_TEST

/* Three files with rows, one with only a header, one that is empty. */
static void put_files(const char *folder, const char *ending, const char *files[8])
{
    static const int64_t firsts[] = {0, 400, 500};
    static const int64_t counts[] = {400, 100, 600};
    int at = 0;
    char name[32];
    for (int i = 0; i < 3; i++) {
        char *text = tdm_data_rig_text(firsts[i], counts[i], i == 1 ? 9 : 0);
        snprintf(name, sizeof name, "%d.csv%s", i, i == 2 ? ending : "");
        files[at++] = tdm_data_rig_put_text(folder, name, text);
        tdm_free(text);
        snprintf(name, sizeof name, "empty-%d.csv", i);
        if (i < 2)
            files[at++] = tdm_data_rig_put_text(folder, name, i == 0 ? "" : "label,id,a,b,n,m\n");
    }
    files[at] = NULL;
}

static void check_several(const char *ending)
{
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    tdm_data_rig_options options = options_for(NULL);
    put_files(folder, ending, options.files);
    check_all_ways(options);
    for (int i = 0; options.files[i] != NULL; i++)
        tdm_free((char *)(uintptr_t)options.files[i]);
    ck_assert_ok(tdm_folder_remove(folder));
}

START_TEST(test_several_files_give_same_batches)
{
    check_several("");
    check_several(".zst");
}
END_TEST

/* Runs check_all_ways on a plain file and a stream with the options that `change` makes. */
static void check_changed(void (*change)(tdm_data_rig_options *options))
{
    char *text = tdm_data_rig_text(0, ROWS / 2, 0);
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    for (int stream = 0; stream < 2; stream++) {
        char *path = tdm_data_rig_put_text(folder, stream ? "a.csv.gz" : "a.csv", text);
        tdm_data_rig_options options = options_for(path);
        change(&options);
        check_all_ways(options);
        tdm_free(path);
    }
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}

static void one_lane(tdm_data_rig_options *options)
{
    options->lanes = 1;
}

static void sixteen_lanes(tdm_data_rig_options *options)
{
    options->lanes = 16;
    options->window_blocks = 4;
}

static void more_lanes_than_blocks(tdm_data_rig_options *options)
{
    options->lanes = 16;
    options->block_bytes = 4000;
}

static void windows_smaller_than_a_batch(tdm_data_rig_options *options)
{
    options->batch_size = 128;
    options->lanes = 4;
    options->window_blocks = 1;
}

static void blocks_smaller_than_a_line(tdm_data_rig_options *options)
{
    options->block_bytes = 11;
    options->window_blocks = 5;
}

static void very_many_lanes(tdm_data_rig_options *options)
{
    options->lanes = TDM_MAX_LANES;
    options->batch_size = TDM_MAX_LANES;
    options->block_bytes = 50;
    options->window_blocks = 1;
}

static void one_block(tdm_data_rig_options *options)
{
    options->block_bytes = 1 << 20;
}

static void no_seed_and_many_epochs(tdm_data_rig_options *options)
{
    options->seed = 0;
    options->epochs = 7;
    options->block_bytes = 3000;
}

START_TEST(test_lanes_and_windows_give_same_batches)
{
    check_changed(one_lane);
    check_changed(sixteen_lanes);
    check_changed(more_lanes_than_blocks);
    check_changed(windows_smaller_than_a_batch);
    check_changed(blocks_smaller_than_a_line);
    check_changed(very_many_lanes);
    check_changed(one_block);
    check_changed(no_seed_and_many_epochs);
}
END_TEST

static void training_part(tdm_data_rig_options *options)
{
    options->hold_out = 0.2;
    options->selection = TDM_SELECT_TRAINING;
}

static void held_out_part(tdm_data_rig_options *options)
{
    options->hold_out = 0.2;
    options->selection = TDM_SELECT_HELD_OUT;
}

START_TEST(test_hold_out_gives_same_batches)
{
    check_changed(training_part);
    check_changed(held_out_part);
}
END_TEST

/* ---- every row ------------------------------------------------------------------------------- */

static void check_each_row_once(tdm_data_rig_options *options, int bad_every, int64_t rows)
{
    tdm_given_list list = {.seen_ids = rows};
    ck_assert_ok(tdm_alloc((size_t)(rows * options->epochs), 1, &list.seen));
    tdm_data_rig_run(options, &list);
    for (int64_t e = 0; e < options->epochs; e++) {
        for (int64_t i = 0; i < rows; i++) {
            bool bad = bad_every > 0 && i % bad_every == bad_every - 1;
            ck_assert_int_eq(list.seen[e * rows + i], !bad);
        }
    }
    tdm_free(list.seen);
    tdm_given_list_free(&list);
}

START_TEST(test_every_row_once_an_epoch)
{
    static const char *const names[] = {"a.csv", "a.csv.gz", "a.csv.zst"};
    static const int64_t block_bytes[] = {7, 150, 1000, 100000};
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, ROWS, 11);
    for (size_t i = 0; i < 3; i++) {
        char *path = tdm_data_rig_put_text(folder, names[i], text);
        for (size_t b = 0; b < 4; b++) {
            tdm_data_rig_options options = options_for(path);
            options.block_bytes = block_bytes[b];
            options.threads = 3;
            check_each_row_once(&options, 11, ROWS);
        }
        tdm_free(path);
    }
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* The batches of an epoch as one hash. */
static uint64_t epoch_hash(const tdm_given_list *list, int64_t epoch)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].epoch == epoch && !list->items[i].epoch_end)
            hash = hash * 31 + list->items[i].hash;
    }
    return hash;
}

START_TEST(test_order_changes_with_epoch_and_seed)
{
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, ROWS, 0);
    char *path = tdm_data_rig_put_text(folder, "a.csv", text);
    tdm_data_rig_options options = options_for(path);
    tdm_given_list list = {0}, other = {0};
    tdm_data_rig_run(&options, &list);
    options.seed++;
    tdm_data_rig_run(&options, &other);
    for (int64_t e = 0; e < 3; e++) {
        ck_assert_uint_ne(epoch_hash(&list, e), epoch_hash(&other, e));
        ck_assert_uint_ne(epoch_hash(&list, e), epoch_hash(&list, (e + 1) % 3));
    }
    tdm_given_list_free(&list);
    tdm_given_list_free(&other);
    tdm_free(path);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* Deliveries may be held as long as one place of the ring is left, and stay as they are. */
START_TEST(test_held_batches_stay_as_they_are)
{
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, ROWS, 17);
    char *path = tdm_data_rig_put_text(folder, "a.csv", text);
    tdm_data_rig_options options = options_for(path);
    tdm_given_list whole = {0}, held = {0}, late = {0};
    tdm_data_rig_run(&options, &whole);
    options.depth = 5;
    options.threads = 3;
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    tdm_delivery *ring[4] = {NULL};
    for (size_t i = 0; i < whole.count + 4; i++) {
        tdm_delivery **place = &ring[i % 4];
        if (*place != NULL) {
            tdm_given_note(&late, *place);
            tdm_pipeline_release(rig.pipeline, *place);
            *place = NULL;
        }
        if (i >= whole.count)
            continue;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, place));
        tdm_given_note(&held, *place);
    }
    tdm_data_rig_close(&rig);
    tdm_given_same(&whole, 0, &held, true);
    tdm_given_same(&whole, 0, &late, true);
    tdm_given_list_free(&whole);
    tdm_given_list_free(&held);
    tdm_given_list_free(&late);
    tdm_free(path);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* Epochs without end are those of a run of so many, and so on. */
START_TEST(test_epochs_without_end)
{
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, 50, 0);
    for (int stream = 0; stream < 2; stream++) {
        char *path = tdm_data_rig_put_text(folder, stream ? "a.csv.gz" : "a.csv", text);
        tdm_data_rig_options options = options_for(path);
        options.epochs = 9;
        tdm_given_list nine = {0}, list = {0};
        tdm_data_rig_run(&options, &nine);
        options.epochs = -1;
        tdm_data_rig rig;
        tdm_data_rig_open(&options, &rig);
        tdm_data_rig_start(&rig);
        while (list.count < 3 * nine.count) {
            tdm_delivery *delivery;
            ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
            ck_assert(!delivery->last);
            tdm_given_note(&list, delivery);
            tdm_pipeline_release(rig.pipeline, delivery);
        }
        tdm_data_rig_close(&rig);
        for (size_t i = 0; i < nine.count; i++)
            ck_assert_uint_eq(nine.items[i].hash, list.items[i].hash);
        tdm_given_list_free(&nine);
        tdm_given_list_free(&list);
        tdm_free(path);
    }
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_gzip_and_zstd_are_the_same_stream)
{
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, ROWS, 7);
    char *gzip = tdm_data_rig_put_text(folder, "a.csv.gz", text);
    char *zstd = tdm_data_rig_put_text(folder, "a.csv.zst", text);
    tdm_data_rig_options options = options_for(gzip);
    tdm_given_list list = {0}, other = {0};
    tdm_data_rig_run(&options, &list);
    options.files[0] = zstd;
    tdm_data_rig_run(&options, &other);
    tdm_given_same(&list, 0, &other, false);
    tdm_given_list_free(&list);
    tdm_given_list_free(&other);
    tdm_free(gzip);
    tdm_free(zstd);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_shares_rise_to_one)
{
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, ROWS, 0);
    for (int stream = 0; stream < 2; stream++) {
        char *path = tdm_data_rig_put_text(folder, stream ? "a.csv.gz" : "a.csv", text);
        tdm_data_rig_options options = options_for(path);
        options.epochs = 1;
        tdm_given_list list = {0};
        tdm_data_rig_run(&options, &list);
        /* A small stream is read and decompressed at once: its share jumps. */
        for (size_t i = 1; i + 1 < list.count; i++)
            ck_assert(stream ? list.items[i].share >= list.items[i - 1].share
                             : list.items[i].share > list.items[i - 1].share);
        ck_assert(list.items[list.count - 2].share > 0.99);
        ck_assert(list.items[list.count - 2].share <= 1);
        tdm_given_list_free(&list);
        tdm_free(path);
    }
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

TDM_CHECK_MAIN(test_plain_file_gives_same_batches, test_gzip_file_gives_same_batches,
               test_zstd_file_gives_same_batches, test_bad_records_give_same_batches_and_reports,
               test_several_files_give_same_batches, test_lanes_and_windows_give_same_batches,
               test_hold_out_gives_same_batches, test_every_row_once_an_epoch,
               test_order_changes_with_epoch_and_seed, test_held_batches_stay_as_they_are,
               test_epochs_without_end, test_gzip_and_zstd_are_the_same_stream,
               test_shares_rise_to_one)
