/* Trainings that are stopped or killed and resumed end with the bits of one that never was. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/training.h"
#include "trainer/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

/* Sanitizers look at the same paths with fewer repetitions. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CALL_STRIDE 41
#define STOP_STRIDE 70
#define KILLS       4
#else
#define CALL_STRIDE 1
#define STOP_STRIDE 20
#define KILLS       50
#endif

#define LOGISTIC "{type: logistic_regression}"
#define DEEPFM   "{type: deepfm, mlp: {units: [16, 8], dropout: 0.1}}"

/* What the data is given as. */
typedef enum data_kind { DATA_PLAIN, DATA_GZIP, DATA_STDIN } data_kind;

/* A kind of training, and its folder with the data and the run that was never stopped. */
typedef struct training_case {
    const char *model;
    data_kind kind;
    const char *overrides[12]; /* ended by NULL */
    char folder[256];
    char data[512];
    char whole[512]; /* the folder of the undisturbed training */
    int64_t steps;
} training_case;

static const training_case plain_case = {
    .model = LOGISTIC,
    .overrides = {"train.epochs=2", "train.threads=1", "data.cache=off",
                  "checkpoint.every_steps=16"},
};

static const training_case full_case = {
    .model = DEEPFM,
    .overrides = {"train.epochs=3", "train.threads=4", "data.cache=on", "data.eval={hold_out: 10%}",
                  "train.eval_every_steps=15", "checkpoint.every_steps=20",
                  "checkpoint.keep_last=2", "optimizer.schedule={type: cosine, warmup_steps: 10}"},
};

/* Ends with a save of the last step before what is logged at the end. */
static const training_case dense_case = {
    .model = DEEPFM,
    .overrides = {"train.threads=1", "checkpoint.every_steps=1", "data.eval={hold_out: 10%}",
                  "checkpoint.keep_last=1"},
};

/* Its last step is the best and is saved twice: as such, and with what is logged at the end. */
static const training_case best_case = {
    .model = DEEPFM,
    .overrides = {"train.threads=1", "train.batch_size=512", "train.eval_every_steps=1",
                  "data.eval={hold_out: 10%}"},
};

/* Two passes over a stream, the first of which is not cached. */
static const training_case stream_case = {
    .model = DEEPFM,
    .kind = DATA_GZIP,
    .overrides = {"train.epochs=2", "train.threads=2", "data.cache=off",
                  "checkpoint.every_steps=12", "data.eval={hold_out: 10%}"},
};

static const training_case stdin_case = {
    .model = DEEPFM,
    .kind = DATA_STDIN,
    .overrides = {"train.threads=2", "checkpoint.every_steps=12"},
};

/* The second pass reads the cache that the first has written. */
static const training_case cached_stdin_case = {
    .model = LOGISTIC,
    .kind = DATA_STDIN,
    .overrides = {"train.epochs=2", "train.threads=2", "checkpoint.every_steps=12"},
};

static tdm_recipe *make_recipe(const training_case *test, const char *folder, const char *extra)
{
    const char *overrides[13];
    int count = 0;
    for (; test->overrides[count] != NULL; count++)
        overrides[count] = test->overrides[count];
    if (extra != NULL)
        overrides[count++] = extra;
    if (test->kind == DATA_STDIN) {
        int file = open(test->data, O_RDONLY);
        ck_assert_int_ge(file, 0);
        ck_assert_int_eq(dup2(file, STDIN_FILENO), STDIN_FILENO);
        close(file);
    }
    const char *data = test->kind == DATA_STDIN ? "\"-\"" : test->data;
    return tdm_test_recipe(folder, data, test->model, overrides, count);
}

static tdm_status train(const training_case *test, const char *folder, const char *extra,
                        const tdm_train_control *control, tdm_train_result *result)
{
    tdm_recipe *recipe = make_recipe(test, folder, extra);
    tdm_status status = tdm_train(recipe, control, result);
    tdm_recipe_free(recipe);
    return status;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static char *run_path(const char *folder, const char *format, int64_t step)
{
    static char paths[4][600];
    static int turn;
    char *path = paths[turn++ % 4];
    int length = snprintf(path, sizeof paths[0], "%s/run/", folder);
    /* `format` is a literal of this file */
    snprintf(path + length, sizeof paths[0] - (size_t)length, "checkpoints/step-%08lld/%s",
             (long long)step, format);
    return path;
}

static void assert_same_file(const char *a, const char *b)
{
    uint64_t hash_a, hash_b;
    int64_t bytes_a, bytes_b;
    ck_assert_ok(tdm_file_hash(a, &hash_a, &bytes_a));
    ck_assert_ok(tdm_file_hash(b, &hash_b, &bytes_b));
    ck_assert_msg(hash_a == hash_b && bytes_a == bytes_b, "%s and %s differ", a, b);
}

/* Names the first line that differs: the texts are too long for a message. */
static void assert_same_text(const char *what, const char *a, const char *b)
{
    size_t line = 0;
    for (size_t i = 0; a[i] == b[i]; i++) {
        if (a[i] == '\0')
            return;
        line = a[i] == '\n' ? i + 1 : line;
    }
    ck_abort_msg("%s: %.300s\nis now %.300s", what, a + line, b + line);
}

/* state.json without what times decide. */
static char *read_state(const char *path)
{
    json_t *state = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(state);
    json_object_del(state, "seconds");
    json_object_del(state, "metrics_bytes");
    json_object_del(state, "machine");
    char *text = json_dumps(state, JSON_SORT_KEYS | JSON_INDENT(1));
    json_decref(state);
    return text;
}

static void assert_same_run(const training_case *test, const char *folder)
{
    const int64_t step = test->steps;
    assert_same_file(run_path(test->whole, "model.safetensors", step),
                     run_path(folder, "model.safetensors", step));
    assert_same_file(run_path(test->whole, "optimizer.safetensors", step),
                     run_path(folder, "optimizer.safetensors", step));
    char *a = read_state(run_path(test->whole, "state.json", step));
    char *b = read_state(run_path(folder, "state.json", step));
    assert_same_text("state.json", a, b);
    free(a);
    free(b);
    char run[2][600];
    snprintf(run[0], sizeof run[0], "%s/run", test->whole);
    snprintf(run[1], sizeof run[1], "%s/run", folder);
    a = tdm_test_metrics(run[0]);
    b = tdm_test_metrics(run[1]);
    assert_same_text("metrics.jsonl", a, b);
    tdm_free(a);
    tdm_free(b);
    a = tdm_test_read(tdm_test_path(run[0], "quarantine.txt"));
    b = tdm_test_read(tdm_test_path(run[1], "quarantine.txt"));
    assert_same_text("quarantine.txt", a, b);
    tdm_free(a);
    tdm_free(b);
    int64_t best[2];
    bool found[2];
    for (int i = 0; i < 2; i++)
        ck_assert_ok(tdm_checkpoint_best(run[i], &best[i], &found[i]));
    ck_assert_int_eq(found[0], found[1]);
    if (found[0])
        ck_assert_int_eq(best[0], best[1]);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const tdm_train_control from_start = {.resume = false};
static const tdm_train_control go_on = {.resume = true};

static void compress_data(training_case *test)
{
    char *text = tdm_test_read(test->data);
    strcat(test->data, ".gz");
    gzFile file = gzopen(test->data, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
    ck_assert_int_eq(gzclose(file), Z_OK);
    tdm_free(text);
}

static training_case begin_case(const training_case *kind)
{
    training_case test = *kind;
    tdm_train_result result;
    tdm_test_fast_folder(test.folder);
    strcpy(test.data, tdm_test_path(test.folder, "clicks.csv"));
    tdm_test_write_clicks(test.data, 3000, 1);
    tdm_test_append(test.data, "7,a1,b1,c1,0.5\nshort\n1,a1,b1,c1,nan\n");
    if (test.kind == DATA_GZIP)
        compress_data(&test);
    snprintf(test.whole, sizeof test.whole, "%s/whole", test.folder);
    ck_assert_ok(train(&test, test.whole, NULL, &from_start, &result));
    test.steps = result.step;
    ck_assert_int_eq(result.bad_records, 3);
    return test;
}

static void end_case(const training_case *test)
{
    ck_assert_ok(tdm_folder_remove(test->folder));
}

static void resume_and_compare(const training_case *test, const char *folder, const char *extra)
{
    ck_assert_ok(train(test, folder, extra, &go_on, NULL));
    assert_same_run(test, folder);
    ck_assert_ok(tdm_folder_remove(folder));
}

/* ---- stopping -------------------------------------------------------------------------------- */

typedef struct stopper {
    atomic_bool stop;
    int64_t step;
} stopper;

static void stop_at_checkpoint(void *context, const tdm_train_status *status)
{
    stopper *stop = context;
    if (status->event == TDM_EVENT_LOG && status->step >= stop->step)
        atomic_store(&stop->stop, true);
}

/* At every STOP_STRIDE-th step from about `share` of the training on. */
static void test_stops(const training_case *kind, double share, const char *extra)
{
    training_case test = begin_case(kind);
    char folder[512];
    snprintf(folder, sizeof folder, "%s/stopped", test.folder);
    for (int64_t step = 5 + (int64_t)(share * (double)test.steps); step < test.steps;
         step += STOP_STRIDE) {
        stopper stop = {.step = step};
        const tdm_train_control control = {
            .stop = &stop.stop, .monitor = stop_at_checkpoint, .monitor_context = &stop};
        tdm_train_result result;
        ck_assert_fails(train(&test, folder, NULL, &control, &result), TDM_E_CANCELLED, "resume");
        ck_assert_int_ge(result.step, step);
        ck_assert_int_lt(result.step, test.steps);
        resume_and_compare(&test, folder, extra);
    }
    end_case(&test);
}

START_TEST(test_stopped_and_resumed)
{
    test_stops(&plain_case, 0, NULL);
    test_stops(&full_case, 0, NULL);
    test_stops(&stream_case, 0, NULL);
    test_stops(&stdin_case, 0, NULL);
    test_stops(&cached_stdin_case, 0.5, NULL);
}
END_TEST

START_TEST(test_resumed_on_other_threads)
{
    test_stops(&plain_case, 0, "train.threads=3");
    test_stops(&full_case, 0, "train.threads=1");
}
END_TEST

/* Half a pass over standard input makes no cache, so that there would be no second one. */
START_TEST(test_first_pass_of_standard_input_needs_its_cache)
{
    training_case test = begin_case(&cached_stdin_case);
    char folder[512];
    snprintf(folder, sizeof folder, "%s/stopped", test.folder);
    stopper stop = {.step = 10};
    const tdm_train_control control = {
        .stop = &stop.stop, .monitor = stop_at_checkpoint, .monitor_context = &stop};
    ck_assert_fails(train(&test, folder, NULL, &control, NULL), TDM_E_CANCELLED, "resume");
    ck_assert_ok(tdm_folder_remove(tdm_test_path(folder, "cache")));
    ck_assert_fails(train(&test, folder, NULL, &go_on, NULL), TDM_E_CONFIG, "only once");
    end_case(&test);
}
END_TEST

/* Stopped again and again, at every line that is logged. */
START_TEST(test_stopped_many_times)
{
    training_case test = begin_case(&full_case);
    char folder[512];
    snprintf(folder, sizeof folder, "%s/stopped", test.folder);
    for (int64_t step = 5; step < test.steps; step += STOP_STRIDE / 4) {
        stopper stop = {.step = step};
        const tdm_train_control control = {.resume = true,
                                           .stop = &stop.stop,
                                           .monitor = stop_at_checkpoint,
                                           .monitor_context = &stop};
        ck_assert_fails(train(&test, folder, NULL, &control, NULL), TDM_E_CANCELLED, "resume");
    }
    resume_and_compare(&test, folder, NULL);
    end_case(&test);
}
END_TEST

/* In the evaluation that follows this line. */
static void stop_in_evaluation(void *context, const tdm_train_status *status)
{
    stopper *stop = context;
    if (status->event == TDM_EVENT_LOG && status->step == stop->step)
        atomic_store(&stop->stop, true);
}

/* The evaluation is made where the training goes on, and the step that it finds to be the best is
 * kept as such. At this rate an early one is. */
START_TEST(test_stopped_in_an_evaluation)
{
    training_case kind = full_case;
    kind.overrides[8] = "optimizer.sparse.learning_rate=3";
    training_case test = begin_case(&kind);
    char folder[512], run[600];
    int64_t best;
    bool found;
    snprintf(run, sizeof run, "%s/run", test.whole);
    ck_assert_ok(tdm_checkpoint_best(run, &best, &found));
    ck_assert_msg(found && best < test.steps, "the last step is the best");
    snprintf(folder, sizeof folder, "%s/stopped", test.folder);
    stopper stop = {.step = best};
    const tdm_train_control control = {
        .stop = &stop.stop, .monitor = stop_in_evaluation, .monitor_context = &stop};
    tdm_train_result result;
    ck_assert_fails(train(&test, folder, NULL, &control, &result), TDM_E_CANCELLED, "resume");
    ck_assert_int_eq(result.step, best);
    resume_and_compare(&test, folder, NULL);
    end_case(&test);
}
END_TEST

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

static int count_calls(const char *call, const char *path)
{
    (void)call;
    (void)path;
    atomic_fetch_add(&calls_left, 1);
    return 0;
}

/* Trains in a process that dies at its n-th call that changes the disk. */
static void train_until_call(const training_case *test, const char *folder, int n)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        calls_left = n;
        tdm_file_set_test_hook(die_at_call);
        (void)!train(test, folder, NULL, &go_on, NULL);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 42, "call %d was not reached", n);
}

/* The last `most` calls. */
static void test_kill_at_calls(const training_case *kind, int most, int stride)
{
    training_case test = begin_case(kind);
    char folder[512];
    snprintf(folder, sizeof folder, "%s/killed", test.folder);
    calls_left = 0;
    tdm_file_set_test_hook(count_calls);
    ck_assert_ok(train(&test, folder, NULL, &from_start, NULL));
    tdm_file_set_test_hook(NULL);
    ck_assert_ok(tdm_folder_remove(folder));
    int calls = calls_left;
    ck_assert_int_gt(calls, 60);
    for (int n = calls > most ? calls - most + 1 : 1; n <= calls; n += stride) {
        train_until_call(&test, folder, n);
        resume_and_compare(&test, folder, NULL);
    }
    end_case(&test);
}

START_TEST(test_killed_at_every_call)
{
    test_kill_at_calls(&plain_case, INT_MAX, CALL_STRIDE);
}
END_TEST

START_TEST(test_killed_at_every_call_with_evaluations)
{
    test_kill_at_calls(&full_case, INT_MAX, 3 * CALL_STRIDE);
    test_kill_at_calls(&dense_case, 100, CALL_STRIDE);
    test_kill_at_calls(&best_case, 100, CALL_STRIDE);
}
END_TEST

/* Returns false where the training had ended already. */
static bool train_for(const training_case *test, const char *folder, useconds_t microseconds)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)!train(test, folder, NULL, &go_on, NULL);
        _exit(0);
    }
    usleep(microseconds);
    kill(child, SIGKILL);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

static void test_random_kills(const training_case *kind, int kills)
{
    training_case test = begin_case(kind);
    char folder[512];
    snprintf(folder, sizeof folder, "%s/killed", test.folder);
    uint64_t random = 88172645463325252u;
    useconds_t longest = 20000;
    int killed = 0;
    for (int i = 0; killed < kills && i < 20 * kills; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        bool was_killed = train_for(&test, folder, (useconds_t)(random % longest));
        longest = was_killed ? longest + longest / 8 : longest - longest / 8;
        killed += was_killed;
        /* Every third one is killed once more on the way. */
        if (i % 3 == 0)
            train_for(&test, folder, (useconds_t)(random / 7 % longest));
        resume_and_compare(&test, folder, NULL);
    }
    ck_assert_int_eq(killed, kills);
    end_case(&test);
}

START_TEST(test_killed_at_random_instants)
{
    test_random_kills(&full_case, KILLS);
    test_random_kills(&stream_case, KILLS / 4);
    test_random_kills(&stdin_case, KILLS / 4);
}
END_TEST

/* ---- a full disk ----------------------------------------------------------------------------- */

static int fail_from_call(const char *call, const char *path)
{
    (void)call;
    (void)path;
    return atomic_fetch_sub(&calls_left, 1) <= 1 ? ENOSPC : 0;
}

/* From the n-th call on nothing can be written; then the disk has room again. */
START_TEST(test_full_disk_at_every_call)
{
    training_case test = begin_case(&plain_case);
    char folder[512];
    snprintf(folder, sizeof folder, "%s/full", test.folder);
    calls_left = 0;
    tdm_file_set_test_hook(count_calls);
    ck_assert_ok(train(&test, folder, NULL, &from_start, NULL));
    int calls = calls_left;
    tdm_file_set_test_hook(NULL);
    ck_assert_ok(tdm_folder_remove(folder));
    for (int n = 1; n <= calls; n += CALL_STRIDE) {
        calls_left = n;
        tdm_file_set_test_hook(fail_from_call);
        tdm_status status = train(&test, folder, NULL, &go_on, NULL);
        tdm_file_set_test_hook(NULL);
        ck_assert_msg(status == TDM_E_IO, "call %d: status %d (%s)", n, (int)status,
                      tdm_error_message());
        ck_assert_ptr_nonnull(strstr(tdm_error_message(), "disk full"));
        resume_and_compare(&test, folder, NULL);
    }
    end_case(&test);
}
END_TEST

TDM_CHECK_MAIN(test_stopped_and_resumed, test_resumed_on_other_threads,
               test_first_pass_of_standard_input_needs_its_cache, test_stopped_many_times,
               test_stopped_in_an_evaluation, test_killed_at_every_call,
               test_killed_at_every_call_with_evaluations, test_killed_at_random_instants,
               test_full_disk_at_every_call)
