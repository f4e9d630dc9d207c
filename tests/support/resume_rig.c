#include "tests/support/resume_rig.h"

#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/same_run.h"
#include "tests/support/texts.h"
#include "trainer/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

/* ---- cases ----------------------------------------------------------------------------------- */

static void compress_data(tdm_resume_case *test)
{
    char *text = tdm_test_read(test->data);
    strcat(test->data, ".gz");
    gzFile file = gzopen(test->data, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
    ck_assert_int_eq(gzclose(file), Z_OK);
    tdm_free(text);
}

/* Returns how many records are bad. */
static int make_clicks(tdm_resume_case *test)
{
    tdm_test_fast_folder(test->folder);
    strcpy(test->data, tdm_test_path(test->folder, "clicks.csv"));
    tdm_test_write_clicks(test->data, 3000, 1);
    tdm_test_append(test->data, "7,a1,b1,c1,0.5\nshort\n1,a1,b1,c1,nan\n");
    return 3;
}

static int make_texts(tdm_resume_case *test)
{
    char line[3000];
    tdm_texts_begin(test->documents > 0 ? test->documents : 300);
    strcpy(test->folder, tdm_texts.folder);
    strcpy(test->data, test->task == TDM_TASK_MLM ? tdm_texts.corpus : tdm_texts.labels);
    memset(line, 'x', sizeof line);
    snprintf(line, 8, "river\t");
    line[6] = 'x';
    line[sizeof line - 2] = '\n';
    line[sizeof line - 1] = '\0';
    tdm_test_append(test->data, line);
    return 1;
}

/* In a buffer that the call after the next reuses. */
const char *tdm_resume_run_of(const char *folder)
{
    static char paths[2][600];
    static int turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof paths[0], "%s/run", folder);
    return path;
}

tdm_resume_case tdm_resume_begin(const tdm_resume_case *kind)
{
    tdm_resume_case test = *kind;
    tdm_train_result result;
    int bad_records = test.task == TDM_TASK_CTR ? make_clicks(&test) : make_texts(&test);
    if (test.kind == TDM_RESUME_GZIP)
        compress_data(&test);
    snprintf(test.whole, sizeof test.whole, "%s/whole", test.folder);
    ck_assert_ok(tdm_resume_train(&test, test.whole, NULL, &tdm_from_start, &result));
    test.steps = result.step;
    ck_assert_int_eq(result.bad_records, bad_records);
    return test;
}

void tdm_resume_end(const tdm_resume_case *test)
{
    ck_assert_ok(tdm_folder_remove(test->folder));
}

static void open_stdin(const tdm_resume_case *test)
{
    int file = open(test->data, O_RDONLY);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(dup2(file, STDIN_FILENO), STDIN_FILENO);
    close(file);
}

static tdm_recipe *make_recipe(const tdm_resume_case *test, const char *folder, const char *extra)
{
    const char *overrides[15] = {NULL};
    char train[600];
    int count = 0;
    for (; test->overrides[count] != NULL; count++)
        overrides[count] = test->overrides[count];
    if (extra != NULL)
        overrides[count++] = extra;
    if (test->kind == TDM_RESUME_STDIN)
        open_stdin(test);
    const char *data = test->kind == TDM_RESUME_STDIN ? "\"-\"" : test->data;
    if (test->task == TDM_TASK_CTR)
        return tdm_test_recipe(folder, data, test->model, overrides, count);
    snprintf(train, sizeof train, "data.train=[%s]", data);
    overrides[count++] = train;
    return tdm_texts_recipe(test->task, folder, overrides);
}

tdm_status tdm_resume_train(const tdm_resume_case *test, const char *folder, const char *extra,
                            const tdm_train_control *control, tdm_train_result *result)
{
    tdm_recipe *recipe = make_recipe(test, folder, extra);
    tdm_status status = tdm_train(recipe, control, result);
    tdm_recipe_free(recipe);
    return status;
}

void tdm_resume_and_compare(const tdm_resume_case *test, const char *folder, const char *extra)
{
    ck_assert_ok(tdm_resume_train(test, folder, extra, &tdm_go_on, NULL));
    tdm_assert_same_runs(tdm_resume_run_of(test->whole), tdm_resume_run_of(folder), test->steps);
    ck_assert_ok(tdm_folder_remove(folder));
}

/* A folder for a training that is disturbed. */
static const char *folder_of(const tdm_resume_case *test)
{
    static char folder[512];
    snprintf(folder, sizeof folder, "%s/disturbed", test->folder);
    return folder;
}

/* ---- stopping -------------------------------------------------------------------------------- */

/* Answers the step that it was stopped at. */
static int64_t stop_at(const tdm_resume_case *test, int64_t step, bool resume)
{
    tdm_test_stop stop = {.event = TDM_EVENT_LOG, .step = step};
    const tdm_train_control control = tdm_test_stopping(&stop, resume);
    tdm_train_result result;
    ck_assert_fails(tdm_resume_train(test, folder_of(test), NULL, &control, &result),
                    TDM_E_CANCELLED, "resume");
    ck_assert_int_ge(result.step, step);
    ck_assert_int_lt(result.step, test->steps);
    return result.step;
}

void tdm_resume_test_stops(const tdm_resume_case *kind, double share, int stride, const char *extra)
{
    tdm_resume_case test = tdm_resume_begin(kind);
    int64_t first = 5 + (int64_t)(share * (double)test.steps);
    for (int64_t step = first; step < test.steps; step += stride) {
        stop_at(&test, step, false);
        tdm_resume_and_compare(&test, folder_of(&test), extra);
    }
    tdm_resume_end(&test);
}

void tdm_resume_test_many_stops(const tdm_resume_case *kind, int stride)
{
    tdm_resume_case test = tdm_resume_begin(kind);
    for (int64_t step = 5; step < test.steps; step += stride)
        stop_at(&test, step, true);
    tdm_resume_and_compare(&test, folder_of(&test), NULL);
    tdm_resume_end(&test);
}

void tdm_resume_test_stop_in_evaluation(const tdm_resume_case *kind)
{
    tdm_resume_case test = tdm_resume_begin(kind);
    int64_t best;
    bool found;
    ck_assert_ok(tdm_checkpoint_best(tdm_resume_run_of(test.whole), &best, &found));
    ck_assert_msg(found && best < test.steps, "the last step is the best");
    ck_assert_int_eq(stop_at(&test, best, false), best);
    tdm_resume_and_compare(&test, folder_of(&test), NULL);
    tdm_resume_end(&test);
}

/* ---- killing --------------------------------------------------------------------------------- */

/* Workers write too: the cache's file. */
static atomic_int calls_left;

static int die_at_call(const char *call, const char *path)
{
    (void)call;
    (void)path;
    if (atomic_fetch_sub(&calls_left, 1) == 1)
        _exit(42);
    return 0;
}

static int count_call(const char *call, const char *path)
{
    (void)call;
    (void)path;
    atomic_fetch_add(&calls_left, 1);
    return 0;
}

/* Calls of a training that change the disk. */
static int count_calls(const tdm_resume_case *test)
{
    calls_left = 0;
    tdm_file_set_test_hook(count_call);
    ck_assert_ok(tdm_resume_train(test, folder_of(test), NULL, &tdm_from_start, NULL));
    tdm_file_set_test_hook(NULL);
    ck_assert_ok(tdm_folder_remove(folder_of(test)));
    ck_assert_int_gt(calls_left, 60);
    return calls_left;
}

/* Trains in a process that dies at its n-th call that changes the disk. */
static void train_until_call(const tdm_resume_case *test, int n)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        calls_left = n;
        tdm_file_set_test_hook(die_at_call);
        (void)!tdm_resume_train(test, folder_of(test), NULL, &tdm_go_on, NULL);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 42, "call %d was not reached", n);
}

void tdm_resume_test_kills_at_calls(const tdm_resume_case *kind, int most, int stride)
{
    tdm_resume_case test = tdm_resume_begin(kind);
    int calls = count_calls(&test);
    for (int n = calls > most ? calls - most + 1 : 1; n <= calls; n += stride) {
        train_until_call(&test, n);
        tdm_resume_and_compare(&test, folder_of(&test), NULL);
    }
    tdm_resume_end(&test);
}

/* Returns false where the training had ended already. */
static bool train_for(const tdm_resume_case *test, useconds_t microseconds)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)!tdm_resume_train(test, folder_of(test), NULL, &tdm_go_on, NULL);
        _exit(0);
    }
    usleep(microseconds);
    kill(child, SIGKILL);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

void tdm_resume_test_kills(const tdm_resume_case *kind, int kills)
{
    tdm_resume_case test = tdm_resume_begin(kind);
    uint64_t random = 88172645463325252u;
    useconds_t longest = 20000;
    int killed = 0;
    for (int i = 0; killed < kills && i < 20 * kills; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        bool was_killed = train_for(&test, (useconds_t)(random % longest));
        longest = was_killed ? longest + longest / 8 : longest - longest / 8;
        killed += was_killed;
        /* Every third one is killed once more on the way. */
        if (i % 3 == 0)
            train_for(&test, (useconds_t)(random / 7 % longest));
        tdm_resume_and_compare(&test, folder_of(&test), NULL);
    }
    ck_assert_int_eq(killed, kills);
    tdm_resume_end(&test);
}

/* ---- a full disk ----------------------------------------------------------------------------- */

static int fail_from_call(const char *call, const char *path)
{
    (void)call;
    (void)path;
    return atomic_fetch_sub(&calls_left, 1) <= 1 ? ENOSPC : 0;
}

void tdm_resume_test_full_disk(const tdm_resume_case *kind, int stride)
{
    tdm_resume_case test = tdm_resume_begin(kind);
    int calls = count_calls(&test);
    for (int n = 1; n <= calls; n += stride) {
        calls_left = n;
        tdm_file_set_test_hook(fail_from_call);
        tdm_status status = tdm_resume_train(&test, folder_of(&test), NULL, &tdm_go_on, NULL);
        tdm_file_set_test_hook(NULL);
        ck_assert_msg(status == TDM_E_IO, "call %d: status %d (%s)", n, (int)status,
                      tdm_error_message());
        ck_assert_ptr_nonnull(strstr(tdm_error_message(), "disk full"));
        tdm_resume_and_compare(&test, folder_of(&test), NULL);
    }
    tdm_resume_end(&test);
}
