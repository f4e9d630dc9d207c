/* Saving while the process is killed, or a call fails, at every point. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/checkpoint_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_BYTES 400

typedef struct scenario {
    const char *name;
    int64_t step; /* that is saved, with content 2, over checkpoints 1 and 5 with content 1 */
} scenario;

static const scenario scenarios[] = {{"new step", 7}, {"same step again", 5}};
#define SCENARIOS (sizeof scenarios / sizeof scenarios[0])

static int hook_calls, hook_stop;
static int hook_error; /* 0: the process ends */
static bool hook_persistent;

static int stop_hook(const char *call, const char *path)
{
    (void)call;
    (void)path;
    hook_calls++;
    if (hook_calls < hook_stop || (hook_calls > hook_stop && !hook_persistent))
        return 0;
    if (hook_error == 0)
        _exit(42);
    return hook_error;
}

static void stop_at(int n, int error, bool persistent)
{
    hook_calls = 0;
    hook_stop = n;
    hook_error = error;
    hook_persistent = persistent;
    tdm_file_set_test_hook(stop_hook);
}

/* A save as the trainer does it: the checkpoint, then the link, then the old ones go. */
static tdm_status save_and_keep(int64_t step)
{
    TDM_TRY(tdm_test_run_save(step, 2));
    TDM_TRY(tdm_checkpoint_set_best(tdm_test_run, step));
    return tdm_checkpoint_prune(tdm_test_run, step, 1, step);
}

static void prepare(void)
{
    tdm_file_set_test_hook(NULL);
    ck_assert_ok(tdm_folder_remove(tdm_test_run));
    ck_assert_ok(tdm_test_run_save(1, 1));
    ck_assert_ok(tdm_test_run_save(5, 1));
    ck_assert_ok(tdm_checkpoint_set_best(tdm_test_run, 5));
}

/* How many calls an undisturbed save makes. */
static int count_calls(const scenario *s)
{
    prepare();
    stop_at(1000000, EIO, false);
    ck_assert_ok(save_and_keep(s->step));
    tdm_file_set_test_hook(NULL);
    return hook_calls;
}

/* The newest good checkpoint is the old or the new one, whole, and so is the best; saving goes on.
 */
static bool check_survivor(const scenario *s, int n)
{
    tdm_file_set_test_hook(NULL);
    int64_t step = tdm_test_run_newest();
    int content = step < 0 ? -1 : tdm_test_run_load(step);
    bool is_new = step == s->step && content == 2;
    ck_assert_msg(is_new || (step == 5 && content == 1), "%s, call %d: newest is %lld, content %d",
                  s->name, n, (long long)step, content);
    int64_t best_step = tdm_test_run_best();
    ck_assert_msg(best_step == 5 || best_step == s->step, "%s, call %d: best is %lld", s->name, n,
                  (long long)best_step);
    ck_assert_ok(tdm_checkpoint_verify(tdm_test_run, best_step));

    ck_assert_ok(tdm_test_run_save(9, 9));
    ck_assert_int_eq(tdm_test_run_newest(), 9);
    ck_assert_int_eq(tdm_test_run_load(9), 9);
    ck_assert_int_eq(tdm_test_run_leftovers(), 0);
    ck_assert_ok(tdm_checkpoint_verify(tdm_test_run, step));
    ck_assert_int_eq(tdm_test_run_load(step), content);
    ck_assert_ok(tdm_checkpoint_prune(tdm_test_run, 9, 1, -1));
    ck_assert_str_eq(tdm_test_run_listed(), "9");
    return is_new;
}

START_TEST(test_killed_at_every_call)
{
    tdm_test_run_make();
    for (size_t i = 0; i < SCENARIOS; i++) {
        int calls = count_calls(&scenarios[i]), old_ones = 0, new_ones = 0;
        ck_assert_int_gt(calls, 20);
        for (int n = 1; n <= calls; n++) {
            prepare();
            pid_t child = fork();
            ck_assert_int_ge(child, 0);
            if (child == 0) {
                stop_at(n, 0, false);
                _exit(save_and_keep(scenarios[i].step) == TDM_OK ? 0 : 1);
            }
            int state;
            ck_assert_int_eq(waitpid(child, &state, 0), child);
            ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 42);
            if (check_survivor(&scenarios[i], n))
                new_ones++;
            else
                old_ones++;
        }
        ck_assert_int_gt(old_ones, 5);
        ck_assert_int_gt(new_ones, 5);
    }
}
END_TEST

static void fail_at_every_call(int error, bool persistent)
{
    tdm_test_run_make();
    for (size_t i = 0; i < SCENARIOS; i++) {
        int calls = count_calls(&scenarios[i]), failures = 0;
        for (int n = 1; n <= calls; n++) {
            prepare();
            tdm_test_run_watch_warnings();
            stop_at(n, error, persistent);
            tdm_status status = save_and_keep(scenarios[i].step);
            if (status != TDM_OK) {
                ck_assert_int_eq(status, TDM_E_IO);
                ck_assert_ptr_nonnull(strstr(tdm_error_message(), tdm_io_error_text(error)));
                failures++;
            } else {
                /* Only clearing away the replaced one may fail without failing the save. */
                ck_assert_ptr_nonnull(strstr(tdm_test_run_warnings, "step-00000005.replaced"));
            }
            tdm_test_run_watch_warnings();
            bool is_new = check_survivor(&scenarios[i], n);
            ck_assert(status != TDM_OK || is_new);
        }
        ck_assert_int_gt(failures, 20);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    }
}

START_TEST(test_disk_full_at_every_call)
{
    fail_at_every_call(ENOSPC, false);
}
END_TEST

START_TEST(test_disk_stays_broken)
{
    fail_at_every_call(EIO, true);
}
END_TEST

/* What a killed replacement leaves: step 5 only as ".replaced". */
START_TEST(test_replaced_counts)
{
    char final[PATH_BYTES], replaced[PATH_BYTES];
    tdm_test_run_make();
    snprintf(final, sizeof final, "%s/checkpoints/step-00000005", tdm_test_run);
    snprintf(replaced, sizeof replaced, "%s/checkpoints/step-00000005.replaced", tdm_test_run);
    ck_assert_ok(tdm_test_run_save(5, 1));
    ck_assert_ok(tdm_checkpoint_set_best(tdm_test_run, 5));
    ck_assert_int_eq(rename(final, replaced), 0);
    ck_assert_str_eq(tdm_test_run_listed(), "5");
    ck_assert_int_eq(tdm_test_run_newest(), 5);
    ck_assert_int_eq(tdm_test_run_best(), 5);
    ck_assert_int_eq(tdm_test_run_load(5), 1);

    tdm_checkpoint_writer *writer;
    ck_assert_ok(tdm_checkpoint_writer_begin(tdm_test_run, 6, &writer));
    ck_assert(tdm_file_exists(final) && !tdm_file_exists(replaced));
    tdm_checkpoint_writer_close(writer);
    ck_assert_int_eq(tdm_test_run_load(5), 1);

    ck_assert_int_eq(rename(final, replaced), 0);
    ck_assert_ok(tdm_checkpoint_set_best(tdm_test_run, 5));
    ck_assert(tdm_file_exists(final) && !tdm_file_exists(replaced));
}
END_TEST

START_TEST(test_out_of_memory)
{
    tdm_test_run_make();
    tdm_test_run_watch_warnings();
    ck_assert_ok(tdm_test_run_save(5, 1));
    int failures = 0;
    for (int64_t n = 1;; n++) {
        tdm_memory_fail_at(n, false);
        tdm_status status = save_and_keep(5);
        int64_t step;
        bool found;
        if (status == TDM_OK)
            status = tdm_checkpoint_newest_good(tdm_test_run, &step, &found);
        if (status == TDM_OK)
            status = tdm_checkpoint_best(tdm_test_run, &step, &found);
        tdm_memory_fail_at(0, false);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
        ck_assert_int_eq(tdm_test_run_newest(), 5);
        if (status == TDM_OK && tdm_test_run_warnings[0] == '\0')
            break;
        ck_assert(status == TDM_OK || status == TDM_E_NOMEM);
        tdm_test_run_watch_warnings();
        failures++;
    }
    ck_assert_int_gt(failures, 50);
}
END_TEST

TDM_CHECK_MAIN(test_killed_at_every_call, test_disk_full_at_every_call, test_disk_stays_broken,
               test_replaced_counts, test_out_of_memory)
