/* A pipeline that starts behind any batch gives the rest of the run, bit for bit, and reports each
 * bad record once. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <stdio.h>
#include <string.h>

#define ROWS      260
#define BAD_EVERY 13

static char folder[TDM_FOLDER_BYTES];
static char *path;

static tdm_data_rig_options open_file(const char *name)
{
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, ROWS, BAD_EVERY);
    path = tdm_data_rig_put_text(folder, name, text);
    tdm_free(text);
    return (tdm_data_rig_options){.files = {path},
                                  .format = TDM_FORMAT_CSV,
                                  .block_bytes = 150,
                                  .epochs = 3,
                                  .seed = 3,
                                  .threads = 2};
}

static void close_file(void)
{
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}

static void check_resume_everywhere(tdm_data_rig_options options)
{
    tdm_given_list whole = {0};
    tdm_data_rig_run(&options, &whole);
    for (size_t n = 0; n + 1 < whole.count; n++) {
        tdm_given_list first = {0}, rest = {0};
        options.start = NULL;
        options.threads = n % 7 == 0 ? 16 : 1 + (int)(n % 3);
        options.depth = 2 + (int)(n % 4);
        tdm_data_rig_take(&options, n + 1, &first);
        for (size_t i = 0; i <= n; i++)
            ck_assert_uint_eq(first.items[i].hash, whole.items[i].hash);
        options.start = &first.items[n].after;
        tdm_data_rig_run(&options, &rest);
        tdm_given_same(&whole, n + 1, &rest, true);
        tdm_given_list_free(&first);
        tdm_given_list_free(&rest);
    }
    tdm_given_list_free(&whole);
}

START_TEST(test_plain_file_resumes_everywhere)
{
    check_resume_everywhere(open_file("a.csv"));
    close_file();
}
END_TEST

START_TEST(test_stream_resumes_everywhere)
{
    check_resume_everywhere(open_file("a.csv.gz"));
    close_file();
}
END_TEST

START_TEST(test_small_windows_resume_everywhere)
{
    tdm_data_rig_options options = open_file("a.csv");
    options.window_blocks = 1;
    options.block_bytes = 40;
    options.batch_size = 48;
    check_resume_everywhere(options);
    close_file();
    options = open_file("a.csv.zst");
    options.window_blocks = 1;
    options.block_bytes = 40;
    options.batch_size = 48;
    options.files[0] = path;
    check_resume_everywhere(options);
    close_file();
}
END_TEST

/* The cache is there from the first run on, or is still being written when the run stops. */
static void check_cached(const char *name, bool keep)
{
    tdm_data_rig_options options = open_file(name);
    char *cache;
    ck_assert_ok(tdm_format(&cache, "%s/a.cache", folder));
    tdm_given_list whole = {0};
    tdm_data_rig_run(&options, &whole);
    options.cache_path = cache;
    for (size_t n = 0; n + 1 < whole.count; n += 3) {
        tdm_given_list first = {0}, rest = {0};
        options.start = NULL;
        tdm_data_rig_take(&options, n + 1, &first);
        options.start = &first.items[n].after;
        tdm_data_rig_run(&options, &rest);
        tdm_given_same(&whole, n + 1, &rest, true);
        tdm_given_list_free(&first);
        tdm_given_list_free(&rest);
        if (!keep)
            ck_assert_ok(tdm_file_remove(cache));
    }
    tdm_given_list_free(&whole);
    tdm_free(cache);
    close_file();
}

START_TEST(test_cached_run_resumes)
{
    check_cached("a.csv", true);
    check_cached("a.csv", false);
    check_cached("a.csv.gz", true);
    check_cached("a.csv.gz", false);
}
END_TEST

START_TEST(test_nothing_follows_the_end)
{
    tdm_data_rig_options options = open_file("a.csv");
    tdm_given_list whole = {0};
    tdm_data_rig_run(&options, &whole);
    ck_assert(whole.items[whole.count - 1].last);
    options.start = &whole.items[whole.count - 1].after;
    ck_assert_int_eq(options.start->epoch, 3);
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    tdm_delivery *delivery;
    ck_assert_fails(tdm_pipeline_next(rig.pipeline, &delivery), TDM_E_STATE, "read to its end");
    tdm_data_rig_close(&rig);
    /* More epochs than before go on where it ended. */
    options.epochs = 4;
    tdm_given_list more = {0};
    tdm_data_rig_run(&options, &more);
    ck_assert_uint_gt(more.count, 10);
    ck_assert_int_eq(more.items[0].epoch, 3);
    tdm_given_list_free(&more);
    tdm_given_list_free(&whole);
    close_file();
}
END_TEST

/* Records come in the first epoch, each once, all of them. */
static void check_reports(const char *name)
{
    tdm_data_rig_options options = open_file(name);
    tdm_given_list whole = {0};
    tdm_data_rig_run(&options, &whole);
    int64_t bad = 0, good = 0, windows[3] = {0};
    for (size_t i = 0; i < whole.count; i++) {
        const tdm_given *given = &whole.items[i];
        if (given->epoch > 0)
            ck_assert_int_eq(given->bad + given->good, 0);
        bad += given->bad;
        good += given->good;
        windows[given->epoch] += given->windows;
    }
    ck_assert_int_eq(bad, ROWS / BAD_EVERY);
    ck_assert_int_eq(good, ROWS - ROWS / BAD_EVERY);
    ck_assert_int_gt(windows[0], 4);
    ck_assert_int_eq(windows[1], windows[0]);
    tdm_given_list_free(&whole);
    close_file();
}

START_TEST(test_records_are_reported_once)
{
    check_reports("a.csv");
    check_reports("a.csv.gz");
}
END_TEST

TDM_CHECK_MAIN(test_plain_file_resumes_everywhere, test_stream_resumes_everywhere,
               test_small_windows_resume_everywhere, test_cached_run_resumes,
               test_nothing_follows_the_end, test_records_are_reported_once)
