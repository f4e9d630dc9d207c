/* Standard input, cancelling, and errors in the middle of an input. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS 2000

static char folder[TDM_FOLDER_BYTES];
static char *text;
static char *path;

static tdm_data_rig_options open_file(const char *name)
{
    tdm_new_folder(folder);
    text = tdm_data_rig_text(0, ROWS, 0);
    path = tdm_data_rig_put_text(folder, name, text);
    return (tdm_data_rig_options){
        .files = {path}, .format = TDM_FORMAT_CSV, .block_bytes = 700, .seed = 3, .threads = 2};
}

static void close_file(void)
{
    tdm_free(path);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}

/* ---- standard input -------------------------------------------------------------------------- */

static int stdin_writer = -1;
static pthread_t stdin_thread;

static void *write_stdin(void *argument)
{
    (void)argument;
    signal(SIGPIPE, SIG_IGN);
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    char bytes[4001];
    for (;;) {
        ssize_t count = read(fd, bytes, sizeof bytes);
        if (count <= 0 || write(stdin_writer, bytes, (size_t)count) != count)
            break;
    }
    close(fd);
    close(stdin_writer);
    return NULL;
}

/* Another thread writes the file's bytes to a pipe that is standard input now. */
static void start_stdin(void)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    if (ends[0] != STDIN_FILENO)
        close(ends[0]);
    stdin_writer = ends[1];
    ck_assert_int_eq(pthread_create(&stdin_thread, NULL, write_stdin, NULL), 0);
}

static void end_stdin(void)
{
    close(STDIN_FILENO); /* ends the writer where not all was read */
    pthread_join(stdin_thread, NULL);
}

START_TEST(test_standard_input_is_a_stream)
{
    static const char *const names[] = {"a.csv.gz", "a.csv.zst", "a.csv"};
    tdm_given_list whole = {0};
    for (int i = 0; i < 3; i++) {
        tdm_data_rig_options options = open_file(names[i]);
        if (i == 0)
            tdm_data_rig_run(&options, &whole);
        start_stdin();
        options.files[0] = "-";
        tdm_given_list list = {0};
        tdm_data_rig_run(&options, &list);
        end_stdin();
        tdm_given_same(&whole, 0, &list, false);
        tdm_given_list_free(&list);
        close_file();
    }
    tdm_given_list_free(&whole);
}
END_TEST

START_TEST(test_standard_input_needs_a_cache_for_a_second_epoch)
{
    tdm_data_rig_options options = open_file("a.csv.gz");
    options.epochs = 3;
    tdm_given_list whole = {0}, list = {0}, again = {0};
    tdm_data_rig_run(&options, &whole);
    options.files[0] = "-";
    start_stdin();
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    ck_assert_fails(tdm_data_rig_try_start(&rig), TDM_E_CONFIG, "data.cache=on");
    tdm_data_rig_close(&rig);
    end_stdin();

    char *cache;
    ck_assert_ok(tdm_format(&cache, "%s/a.cache", folder));
    options.cache_path = cache;
    start_stdin();
    tdm_data_rig_run(&options, &list);
    end_stdin();
    tdm_given_same(&whole, 0, &list, false);

    /* A run that goes on uses what the first one read; a new one does not. */
    options.start = &list.items[list.count / 2].after;
    start_stdin();
    tdm_data_rig_run(&options, &again);
    end_stdin();
    tdm_given_same(&list, list.count / 2 + 1, &again, true);
    tdm_given_list_free(&again);
    options.start = NULL;
    start_stdin();
    tdm_data_rig_run(&options, &again);
    end_stdin();
    tdm_given_same(&list, 0, &again, true);
    tdm_free(cache);
    tdm_given_list_free(&again);
    tdm_given_list_free(&list);
    tdm_given_list_free(&whole);
    close_file();
}
END_TEST

START_TEST(test_standard_input_is_lost_with_its_cache)
{
    tdm_data_rig_options options = open_file("a.csv");
    options.files[0] = "-";
    options.epochs = 2;
    char *cache;
    ck_assert_ok(tdm_format(&cache, "%s/a.csv/a.cache", folder));
    options.cache_path = cache;
    start_stdin();
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    ck_assert_fails(tdm_data_rig_try_start(&rig), TDM_E_IO, "cannot be read again");
    tdm_data_rig_close(&rig);
    end_stdin();
    tdm_free(cache);
    close_file();
}
END_TEST

/* ---- cancelling ------------------------------------------------------------------------------ */

static void *set_flag(void *flag)
{
    usleep(50000);
    atomic_store((atomic_bool *)flag, true);
    return NULL;
}

START_TEST(test_waiting_for_standard_input_can_be_cancelled)
{
    tdm_data_rig_options options = open_file("a.csv");
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    ck_assert_int_eq(write(ends[1], text, 5000), 5000); /* and then nothing */
    static atomic_bool cancel;
    options.files[0] = "-";
    options.cancel = &cancel;
    for (int threads = 1; threads <= 3; threads += 2) {
        atomic_store(&cancel, false);
        options.threads = threads;
        tdm_data_rig rig;
        tdm_data_rig_open(&options, &rig);
        tdm_data_rig_start(&rig);
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, set_flag, &cancel), 0);
        tdm_given_list list = {0};
        ck_assert_fails(tdm_data_rig_try_run(&rig, &list), TDM_E_CANCELLED, "standard input");
        pthread_join(thread, NULL);
        tdm_given_list_free(&list);
        tdm_data_rig_close(&rig);
        ck_assert_int_eq(write(ends[1], text, 5000), 5000);
    }
    close_file();
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------- */

/* The stream `name`, cut or with a bit flipped at `at` of its bytes, fails with the file's name, on
 * any number of threads. */
static void check_broken(const char *name, double at, bool cut, const char *why)
{
    tdm_data_rig_options options = open_file(name);
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    off_t place = (off_t)(at * (double)info.st_size);
    if (cut) {
        ck_assert_int_eq(truncate(path, place), 0);
    } else {
        int fd = open(path, O_RDWR);
        unsigned char byte;
        ck_assert_int_eq(pread(fd, &byte, 1, place), 1);
        byte ^= 0x40;
        ck_assert_int_eq(pwrite(fd, &byte, 1, place), 1);
        close(fd);
    }
    for (options.threads = 1; options.threads <= 16; options.threads *= 4) {
        tdm_data_rig rig;
        tdm_given_list list = {0};
        tdm_status status = tdm_data_rig_try_open(&options, &rig);
        if (status == TDM_OK)
            status = tdm_data_rig_try_start(&rig);
        if (status == TDM_OK)
            status = tdm_data_rig_try_run(&rig, &list);
        ck_assert_fails(status, TDM_E_DATA, why);
        ck_assert_ptr_nonnull(strstr(tdm_error_message(), path));
        tdm_given_list_free(&list);
        tdm_data_rig_close(&rig);
    }
    close_file();
}

START_TEST(test_broken_streams_name_the_file)
{
    static const double places[] = {0.1, 0.5, 0.97};
    for (int i = 0; i < 3; i++) {
        check_broken("a.csv.gz", places[i], true, "truncated");
        check_broken("a.csv.zst", places[i], true, "truncated");
        check_broken("a.csv.gz", places[i], false, "corrupt gzip");
    }
}
END_TEST

START_TEST(test_a_second_file_that_is_broken)
{
    tdm_data_rig_options options = open_file("a.csv.gz");
    char *broken = tdm_data_rig_put_text(folder, "b.csv.gz", text);
    ck_assert_int_eq(truncate(broken, 9000), 0);
    options.files[1] = broken;
    tdm_data_rig rig;
    tdm_given_list list = {0};
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    ck_assert_fails(tdm_data_rig_try_run(&rig, &list), TDM_E_DATA, "b.csv.gz");
    ck_assert_uint_gt(list.count, 50);
    /* The error stays. */
    tdm_delivery *delivery;
    ck_assert_fails(tdm_pipeline_next(rig.pipeline, &delivery), TDM_E_DATA, "b.csv.gz");
    tdm_data_rig_close(&rig);
    tdm_given_list_free(&list);
    tdm_free(broken);
    close_file();
}
END_TEST

START_TEST(test_a_file_that_shrinks)
{
    tdm_data_rig_options options = open_file("a.csv");
    options.epochs = 1000;
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    tdm_delivery *delivery;
    ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
    tdm_pipeline_release(rig.pipeline, delivery);
    ck_assert_int_eq(truncate(path, 3000), 0);
    tdm_given_list list = {0};
    ck_assert_fails(tdm_data_rig_try_run(&rig, &list), TDM_E_DATA, "its length changed");
    tdm_given_list_free(&list);
    tdm_data_rig_close(&rig);
    close_file();
}
END_TEST

START_TEST(test_options_that_cannot_be)
{
    tdm_data_rig_options options = open_file("a.csv");
    options.batch_size = 18;
    options.lanes = 4;
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    ck_assert_fails(tdm_data_rig_try_start(&rig), TDM_E_CONFIG,
                    "train.batch_size 18 is not a multiple of data.lanes 4");
    tdm_data_rig_close(&rig);
    close_file();
}
END_TEST

/* Nothing but bad records, or nothing selected: an epoch without a batch ends. */
START_TEST(test_an_input_without_rows)
{
    tdm_new_folder(folder);
    text = tdm_data_rig_text(0, 100, 1);
    static const char *const names[] = {"a.csv", "a.csv.gz"};
    for (int i = 0; i < 2; i++) {
        path = tdm_data_rig_put_text(folder, names[i], text);
        tdm_data_rig_options options = {.files = {path},
                                        .format = TDM_FORMAT_CSV,
                                        .block_bytes = 100,
                                        .epochs = 2,
                                        .threads = 2};
        tdm_given_list list = {0};
        tdm_data_rig_run(&options, &list);
        ck_assert_uint_eq(list.count, 2);
        ck_assert_int_eq(list.items[0].bad, 100);
        ck_assert_int_eq(list.items[1].bad, 0);
        tdm_given_list_free(&list);
        tdm_free(path);
    }
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* Each allocation of a run fails once: an error or the same batches, and nothing is left behind. */
static void check_memory_failures(const char *name)
{
    tdm_data_rig_options options = open_file(name);
    options.threads = 1;
    options.epochs = 2;
    tdm_given_list whole = {0};
    tdm_data_rig_run(&options, &whole);
    int64_t live = tdm_memory_stats_get().live_bytes;
    bool failed = true;
    for (int64_t n = 1; failed; n += n < 300 ? 1 : 17) {
        tdm_data_rig rig;
        tdm_given_list list = {0};
        ck_assert_ok(tdm_grow(&list.items, &list.capacity, whole.count + 1, sizeof *list.items));
        tdm_memory_fail_at(n, false);
        tdm_status status = tdm_data_rig_try_open(&options, &rig);
        if (status == TDM_OK)
            status = tdm_data_rig_try_start(&rig);
        if (status == TDM_OK)
            status = tdm_data_rig_try_run(&rig, &list);
        /* 0 where the failure was used up. */
        tdm_memory_fail_at(0, false);
        tdm_data_rig_close(&rig);
        failed = status != TDM_OK;
        if (failed)
            ck_assert_int_eq(status, TDM_E_NOMEM);
        else
            tdm_given_same(&whole, 0, &list, true);
        tdm_given_list_free(&list);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
    }
    tdm_given_list_free(&whole);
    close_file();
}

START_TEST(test_memory_that_runs_out)
{
    check_memory_failures("a.csv");
    check_memory_failures("a.csv.gz");
}
END_TEST

/* Heap in use while a run goes on, at most. */
static int64_t heap_of(const char *name, int64_t rows, int64_t epochs)
{
    tdm_new_folder(folder);
    text = tdm_data_rig_text(0, rows, 0);
    path = tdm_data_rig_put_text(folder, name, text);
    tdm_free(text);
    text = NULL;
    tdm_data_rig_options options = {.files = {path},
                                    .format = TDM_FORMAT_CSV,
                                    .block_bytes = 4000,
                                    .threads = 2,
                                    .epochs = epochs};
    tdm_data_rig rig;
    int64_t before = tdm_memory_stats_get().live_bytes, most = 0;
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        int64_t now = tdm_memory_stats_get().live_bytes - before;
        most = now > most ? now : most;
        last = delivery->last;
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    tdm_data_rig_close(&rig);
    close_file();
    return most;
}

START_TEST(test_memory_does_not_grow_with_the_input)
{
    static const char *const names[] = {"a.csv", "a.csv.gz"};
    for (int i = 0; i < 2; i++) {
        /* The same rows in all, so that what happens but now and then happens to both. */
        int64_t small = heap_of(names[i], 6000, 20);
        int64_t large = heap_of(names[i], 60000, 2);
        ck_assert_int_le(large, small + small / 20);
    }
}
END_TEST

TDM_CHECK_MAIN(test_standard_input_is_a_stream,
               test_standard_input_needs_a_cache_for_a_second_epoch,
               test_standard_input_is_lost_with_its_cache,
               test_waiting_for_standard_input_can_be_cancelled, test_broken_streams_name_the_file,
               test_a_second_file_that_is_broken, test_a_file_that_shrinks,
               test_options_that_cannot_be, test_an_input_without_rows, test_memory_that_runs_out,
               test_memory_does_not_grow_with_the_input)
