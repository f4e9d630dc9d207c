/* The cache of a pipeline: damaged, impossible to write, and what is allocated once it is there. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS 600

static char folder[TDM_FOLDER_BYTES];
static char *path;
static char *cache;

static tdm_data_rig_options open_file(const char *name, int bad_every)
{
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, ROWS, bad_every);
    path = tdm_data_rig_put_text(folder, name, text);
    ck_assert_ok(tdm_format(&cache, "%s/cache/a.cache", folder));
    tdm_free(text);
    return (tdm_data_rig_options){.files = {path},
                                  .format = TDM_FORMAT_CSV,
                                  .block_bytes = 150,
                                  .epochs = 2,
                                  .seed = 3,
                                  .threads = 2};
}

static void close_file(void)
{
    tdm_free(path);
    tdm_free(cache);
    ck_assert_ok(tdm_folder_remove(folder));
}

static void flip_byte(const char *file, off_t at)
{
    int fd = open(file, O_RDWR);
    ck_assert_int_ge(fd, 0);
    unsigned char byte;
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

START_TEST(test_damaged_block_is_read_from_the_text)
{
    tdm_data_rig_options options = open_file("a.csv", 13);
    tdm_given_list whole = {0}, list = {0};
    options.cache_path = cache;
    tdm_data_rig_run(&options, &whole);
    flip_byte(cache, 1000);
    tdm_warnings_expect("the block is read from the text");
    tdm_data_rig_run(&options, &list);
    ck_assert_int_eq(tdm_warnings_seen(), 2); /* in both epochs */
    tdm_given_same(&whole, 0, &list, true);
    tdm_given_list_free(&list);
    tdm_given_list_free(&whole);
    close_file();
}
END_TEST

START_TEST(test_damaged_block_of_a_stream_is_refused)
{
    tdm_data_rig_options options = open_file("a.csv.gz", 0);
    tdm_given_list whole = {0}, list = {0};
    options.cache_path = cache;
    tdm_data_rig_run(&options, &whole);
    flip_byte(cache, 1000);
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    ck_assert_fails(tdm_data_rig_try_run(&rig, &list), TDM_E_FORMAT, cache);
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "checksum"));
    tdm_data_rig_close(&rig);
    tdm_given_list_free(&list);
    /* It is gone, so that going on reads the text. */
    tdm_data_rig_run(&options, &list);
    tdm_given_same(&whole, 0, &list, true);
    tdm_given_list_free(&list);
    tdm_given_list_free(&whole);
    close_file();
}
END_TEST

START_TEST(test_damaged_index_is_made_anew)
{
    tdm_data_rig_options options = open_file("a.csv", 0);
    tdm_given_list whole = {0};
    options.cache_path = cache;
    tdm_data_rig_run(&options, &whole);
    struct stat info;
    ck_assert_int_eq(stat(cache, &info), 0);
    const off_t places[] = {
        0, 8, 16, info.st_size - 100, info.st_size - 33, info.st_size - 20, info.st_size - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        tdm_given_list list = {0};
        flip_byte(cache, places[i]);
        tdm_warnings_expect("it is made anew");
        tdm_data_rig_run(&options, &list);
        ck_assert_int_eq(tdm_warnings_seen(), 1);
        tdm_given_same(&whole, 0, &list, true);
        tdm_given_list_free(&list);
    }
    ck_assert_int_eq(truncate(cache, info.st_size / 2), 0);
    tdm_given_list list = {0};
    tdm_warnings_expect("it is made anew");
    tdm_data_rig_run(&options, &list);
    ck_assert_int_eq(tdm_warnings_seen(), 1);
    tdm_given_same(&whole, 0, &list, true);
    tdm_given_list_free(&list);
    tdm_given_list_free(&whole);
    close_file();
}
END_TEST

START_TEST(test_cache_where_none_can_be)
{
    tdm_data_rig_options options = open_file("a.csv", 0);
    tdm_given_list whole = {0}, list = {0};
    tdm_data_rig_run(&options, &whole);
    char *below_a_file;
    ck_assert_ok(tdm_format(&below_a_file, "%s/cache/a.cache", path));
    options.cache_path = below_a_file;
    tdm_warnings_expect("the cache could not be");
    tdm_data_rig_run(&options, &list);
    ck_assert_int_eq(tdm_warnings_seen(), 1);
    tdm_given_same(&whole, 0, &list, true);
    tdm_free(below_a_file);
    tdm_given_list_free(&list);
    tdm_given_list_free(&whole);
    close_file();
}
END_TEST

START_TEST(test_cache_in_a_folder_without_permission)
{
    tdm_data_rig_options options = open_file("a.csv", 0);
    tdm_given_list whole = {0}, list = {0};
    tdm_data_rig_run(&options, &whole);
    ck_assert_int_eq(chmod(folder, 0555), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(65534), 0);
    options.cache_path = cache;
    tdm_warnings_expect("the cache could not be written");
    tdm_data_rig_run(&options, &list);
    ck_assert_int_eq(tdm_warnings_seen(), 1);
    tdm_given_same(&whole, 0, &list, true);
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    tdm_given_list_free(&list);
    tdm_given_list_free(&whole);
    close_file();
}
END_TEST

/* The disk is full after `bytes` bytes. */
static void fill_disk_at(rlim_t bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {bytes, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(test_full_disk_lets_training_go_on)
{
    tdm_data_rig_options options = open_file("a.csv", 0);
    tdm_given_list whole = {0};
    options.cache_path = cache;
    tdm_data_rig_run(&options, &whole);
    struct stat info;
    ck_assert_int_eq(stat(cache, &info), 0);
    const rlim_t limits[] = {0, 100, 5000, (rlim_t)info.st_size - 40};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        ck_assert_ok(tdm_file_remove(cache));
        tdm_given_list list = {0};
        fill_disk_at(limits[i]);
        tdm_warnings_expect("the cache could not be written");
        tdm_data_rig_run(&options, &list);
        fill_disk_at(RLIM_INFINITY);
        ck_assert_int_eq(tdm_warnings_seen(), 1);
        tdm_given_same(&whole, 0, &list, true);
        ck_assert(!tdm_file_exists(cache));
        tdm_given_list_free(&list);
    }
    tdm_given_list_free(&whole);
    close_file();
}
END_TEST

START_TEST(test_a_run_that_stops_leaves_no_cache)
{
    tdm_data_rig_options options = open_file("a.csv", 0);
    options.cache_path = cache;
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    tdm_delivery *delivery;
    ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
    tdm_pipeline_release(rig.pipeline, delivery);
    tdm_data_rig_close(&rig);
    char *temporary;
    ck_assert_ok(tdm_format(&temporary, "%s.tmp", cache));
    ck_assert(!tdm_file_exists(cache));
    ck_assert(!tdm_file_exists(temporary));
    tdm_free(temporary);
    close_file();
}
END_TEST

/* Two runs over the same data at once: one of them writes the cache, both give the same. */
START_TEST(test_two_runs_at_once)
{
    tdm_data_rig_options options = open_file("a.csv", 0);
    tdm_given_list whole = {0}, list = {0}, other = {0};
    tdm_data_rig_run(&options, &whole);
    options.cache_path = cache;
    tdm_data_rig first, second;
    tdm_warnings_expect("another run is writing it");
    tdm_data_rig_open(&options, &first);
    tdm_data_rig_open(&options, &second);
    tdm_data_rig_start(&first);
    tdm_data_rig_start(&second);
    ck_assert_int_eq(tdm_warnings_seen(), 1);
    ck_assert_ok(tdm_data_rig_try_run(&second, &other));
    tdm_data_rig_close(&second);
    ck_assert_ok(tdm_data_rig_try_run(&first, &list));
    tdm_data_rig_close(&first);
    tdm_given_same(&whole, 0, &list, true);
    tdm_given_same(&whole, 0, &other, true);
    ck_assert(tdm_file_exists(cache));
    tdm_given_list_free(&list);
    tdm_given_list_free(&other);
    tdm_given_list_free(&whole);
    close_file();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Allocations behind the third batch of the second epoch, to the end of the run. */
static int64_t late_allocations(const tdm_data_rig_options *options)
{
    tdm_data_rig rig;
    tdm_data_rig_open(options, &rig);
    tdm_data_rig_start(&rig);
    int64_t before = -1;
    int64_t batches = 0;
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        batches += delivery->epoch > 0;
        last = delivery->last;
        tdm_pipeline_release(rig.pipeline, delivery);
        if (batches == 3 && before < 0)
            before = tdm_memory_stats_get().allocations;
    }
    ck_assert_int_ge(before, 0);
    int64_t after = tdm_memory_stats_get().allocations;
    tdm_data_rig_close(&rig);
    return after - before;
}

START_TEST(test_second_epoch_allocates_nothing)
{
    static const int threads[] = {1, 2, 16};
    for (size_t t = 0; t < 3; t++) {
        for (int cached = 0; cached < 2; cached++) {
            tdm_data_rig_options options = open_file("a.csv", 0);
            options.threads = threads[t];
            options.epochs = 6;
            options.depth = 4;
            options.block_bytes = 500;
            options.cache_path = cached ? cache : NULL;
            ck_assert_int_eq(late_allocations(&options), 0);
            /* A second run reads the cache from its first batch on. */
            ck_assert_int_eq(late_allocations(&options), 0);
            close_file();
        }
    }
}
END_TEST

TDM_CHECK_MAIN(test_damaged_block_is_read_from_the_text, test_damaged_block_of_a_stream_is_refused,
               test_damaged_index_is_made_anew, test_cache_where_none_can_be,
               test_cache_in_a_folder_without_permission, test_full_disk_lets_training_go_on,
               test_a_run_that_stops_leaves_no_cache, test_two_runs_at_once,
               test_second_epoch_allocates_nothing)
