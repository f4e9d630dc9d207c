/* What a training learns, writes and says, and how it fails. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/clicks.h"
#include "trainer/checkpoint.h"
#include "trainer/device.h"
#include "trainer/run_folder.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OOM_STRIDE 17
#else
#define OOM_STRIDE 1
#endif

#define DCN "{type: dcn_v2, crosses: 2, mlp: {units: [16]}}"

/* ---- learning -------------------------------------------------------------------------------- */

static void assert_learns(const char *model, double loss, double auc)
{
    tdm_train_result result;
    tdm_clicks_begin(6000);
    ck_assert_ok(tdm_clicks_train(
        model, WITH("train.epochs=6", "optimizer.sparse.learning_rate=0.2", tdm_clicks_eval()),
        &tdm_from_start, &result));
    ck_assert_int_eq(result.rows, 6 * 6000);
    ck_assert_int_eq(result.epoch, 6);
    ck_assert(result.has_eval);
    ck_assert_int_eq(result.eval.rows, 1500);
    ck_assert_double_lt(tdm_metrics_result_get(&result.eval, "logloss"), loss);
    ck_assert_double_gt(tdm_metrics_result_get(&result.eval, "auc"), auc);
    ck_assert_double_lt(tdm_metrics_result_get(&result.train, "logloss"), loss + 0.03);
    tdm_clicks_end();
}

/* Half of what decides a label is whether two columns fit together, which a linear model cannot
 * see. */
START_TEST(test_models_learn)
{
    assert_learns(LOGISTIC, 0.66, 0.66);
    assert_learns(DEEPFM, 0.57, 0.78);
    assert_learns(DCN, 0.57, 0.78);
}
END_TEST

/* ---- bits ------------------------------------------------------------------------------------ */

static uint64_t train_bits(const char *overrides[])
{
    tdm_train_result result;
    ck_assert_ok(tdm_clicks_train(DEEPFM, overrides, &tdm_from_start, &result));
    uint64_t hash = tdm_clicks_hash(result.step);
    ck_assert_ok(tdm_folder_remove(tdm_clicks.run));
    return hash;
}

START_TEST(test_bits_depend_on_seed_alone)
{
    tdm_clicks_begin(3000);
    const char *hold_out = "data.eval={hold_out: 5%}";
    const char *more = "train.eval_every_steps=20";
    uint64_t bits =
        train_bits(WITH("train.epochs=2", hold_out, "train.threads=1", "data.cache=off"));
    ck_assert_uint_eq(bits, train_bits(WITH("train.epochs=2", hold_out, "train.threads=2", more)));
    ck_assert_uint_eq(bits, train_bits(WITH("train.epochs=2", hold_out, "train.threads=5", more,
                                            "checkpoint.every_steps=7")));
    ck_assert_uint_ne(bits, train_bits(WITH("train.epochs=2", hold_out, "seed=4")));
    tdm_device_set_test_create(tdm_test_create_far);
    uint64_t far = train_bits(WITH("train.epochs=2", hold_out, "train.threads=2", more));
    tdm_device_set_test_create(NULL);
    ck_assert_uint_eq(bits, far);
    tdm_clicks_end();
}
END_TEST

/* ---- the run folder -------------------------------------------------------------------------- */

START_TEST(test_run_folder_is_complete)
{
    tdm_train_result result;
    tdm_recipe *saved;
    tdm_clicks_begin(2000);
    tdm_test_append(tdm_clicks.data, "2,a1,b1,c1,0.5\n");
    ck_assert_ok(tdm_clicks_train(LOGISTIC,
                                  WITH("train.max_steps=40", "checkpoint.every_steps=10",
                                       "checkpoint.keep_last=2", "data.block_bytes=0"),
                                  &tdm_from_start, &result));
    ck_assert_int_eq(result.step, 40);
    ck_assert_int_eq(result.bad_records, 1);
    ck_assert_ok(tdm_recipe_load_run(tdm_clicks.run, &saved));
    ck_assert_int_eq(saved->train.max_steps, 40);
    ck_assert_int_eq(saved->train.epochs, 0);
    ck_assert_int_eq(saved->data.block_bytes, 16384);
    tdm_recipe_free(saved);
    tdm_checkpoint_list list;
    ck_assert_ok(tdm_checkpoint_list_read(tdm_clicks.run, &list));
    ck_assert_int_eq(list.count, 2);
    ck_assert_int_eq(list.steps[0], 40);
    ck_assert_int_eq(list.steps[1], 30);
    tdm_checkpoint_list_free(&list);
    char *text = tdm_test_read(tdm_test_path(tdm_clicks.run, "quarantine.txt"));
    ck_assert_ptr_nonnull(strstr(text, "clicks.csv:2002: label: "));
    tdm_free(text);
    text = tdm_test_metrics(tdm_clicks.run);
    ck_assert_ptr_nonnull(strstr(text, "{\"event\":\"train\",\"step\":5,"));
    ck_assert_ptr_nonnull(strstr(text, "{\"event\":\"end\",\"step\":40,"));
    tdm_free(text);
    ck_assert_ptr_nonnull((text = tdm_test_read(tdm_test_path(tdm_clicks.run, "features.json"))));
    tdm_free(text);
    tdm_clicks_end();
}
END_TEST

START_TEST(test_a_run_is_not_overwritten)
{
    tdm_clicks_begin(500);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL));
    ck_assert_fails(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL), TDM_E_STATE,
                    "--resume");
    ck_assert_fails(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL), TDM_E_STATE,
                    "output.dir");
    tdm_clicks_end();
}
END_TEST

START_TEST(test_two_trainings_never_share_a_folder)
{
    tdm_run_folder *held;
    tdm_clicks_begin(500);
    ck_assert_ok(tdm_run_folder_open(tdm_clicks.run, false, &held));
    ck_assert_fails(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL), TDM_E_STATE,
                    "another process");
    ck_assert_fails(tdm_clicks_train(LOGISTIC, NULL, &tdm_go_on, NULL), TDM_E_STATE,
                    "another process");
    tdm_run_folder_close(held);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL));
    tdm_clicks_end();
}
END_TEST

START_TEST(test_nothing_is_made_where_the_input_is_missing)
{
    tdm_clicks_begin(500);
    ck_assert_ok(tdm_file_remove(tdm_clicks.data));
    ck_assert_fails(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL), TDM_E_IO,
                    "clicks.csv");
    ck_assert(!tdm_file_exists(tdm_clicks.run));
    tdm_clicks_end();
}
END_TEST

START_TEST(test_all_records_bad_or_held_out)
{
    tdm_clicks_begin(0);
    ck_assert_fails(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL), TDM_E_DATA,
                    "clicks.csv");
    tdm_clicks_end();
    tdm_clicks_begin(0);
    tdm_test_append(tdm_clicks.data, "9,a,b,c,1\n");
    ck_assert_fails(
        tdm_clicks_train(LOGISTIC, WITH("data.max_bad_records=100%"), &tdm_from_start, NULL),
        TDM_E_DATA, "no row to train on");
    tdm_clicks_end();
}
END_TEST

START_TEST(test_too_many_bad_records)
{
    tdm_clicks_begin(100);
    tdm_test_append(tdm_clicks.data, "9,a,b,c,1\n9,a,b,c,1\n");
    ck_assert_fails(
        tdm_clicks_train(LOGISTIC, WITH("data.max_bad_records=1%"), &tdm_from_start, NULL),
        TDM_E_DATA, "clicks.csv:102");
    ck_assert_fails(tdm_clicks_train(LOGISTIC, WITH("data.on_bad_record=fail"), &tdm_go_on, NULL),
                    TDM_E_DATA, "clicks.csv:102");
    tdm_clicks_end();
}
END_TEST

/* Bad records and good ones are those of the same windows: what a window has is not held against
 * the first rows of it alone. */
START_TEST(test_bad_records_are_judged_by_windows)
{
    tdm_train_result result;
    tdm_clicks_begin(0);
    for (int i = 0; i < 60; i++)
        tdm_test_append(tdm_clicks.data, "9,a,b,c,1\n");
    char *text = tdm_test_read(tdm_clicks.data);
    tdm_test_write_clicks(tdm_clicks.data, 12000, 1);
    tdm_test_append(tdm_clicks.data, strchr(text, '\n') + 1);
    tdm_free(text);
    ck_assert_ok(tdm_clicks_train(LOGISTIC,
                                  WITH("data.max_bad_records=0.5%", "data.block_bytes=1048576"),
                                  &tdm_from_start, &result));
    ck_assert_int_eq(result.records, 12060);
    ck_assert_int_eq(result.bad_records, 60);
    tdm_clicks_end();
}
END_TEST

/* ---- numbers --------------------------------------------------------------------------------- */

START_TEST(test_exploding_training_is_reported)
{
    tdm_train_result result;
    tdm_clicks_begin(3000);
    const char **overrides =
        WITH("optimizer.dense={type: sgd, learning_rate: 1.0e+6}",
             "optimizer.sparse={type: sgd, learning_rate: 1.0e+6}", "checkpoint.every_steps=1");
    ck_assert_fails(tdm_clicks_train(DEEPFM, overrides, &tdm_from_start, &result), TDM_E_NUMERIC,
                    "step ");
    const char *message = tdm_error_message();
    ck_assert_msg(strstr(message, "first bad tensor is ") != NULL ||
                      strstr(message, "was not saved") != NULL,
                  "%s", message);
    /* What is on the disk is finite. */
    int64_t step;
    bool found;
    ck_assert_ok(tdm_checkpoint_newest_good(tdm_clicks.run, &step, &found));
    ck_assert(!found || step <= result.step);
    tdm_clicks_end();
}
END_TEST

START_TEST(test_report_names_step_rows_and_tensor)
{
    tdm_train_result result;
    tdm_clicks_begin(3000);
    const char **overrides = WITH("optimizer.dense={type: sgd, learning_rate: 1.0e+6}",
                                  "optimizer.sparse={type: sgd, learning_rate: 1.0e+6}");
    ck_assert_fails(tdm_clicks_train(DEEPFM, overrides, &tdm_from_start, &result), TDM_E_NUMERIC,
                    "the first bad tensor is ");
    char step[64];
    snprintf(step, sizeof step, "step %lld: ", (long long)result.step + 1);
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), step));
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "its 64 rows are from "));
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "clicks.csv, block "));
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "learning_rate"));
    tdm_clicks_end();
}
END_TEST

/* ---- starting from another run --------------------------------------------------------------- */

START_TEST(test_init_from)
{
    tdm_train_result first, second;
    char model[400];
    tdm_clicks_begin(3000);
    const char *log = tdm_test_log();
    ck_assert_ok(tdm_clicks_train(DEEPFM, WITH("train.epochs=3"), &tdm_from_start, &first));
    char other[400];
    snprintf(other, sizeof other, "output.dir=%s/second", tdm_clicks.folder);
    snprintf(model, sizeof model,
             "{type: deepfm, init_from: %s, mlp: {units: [16, 4], dropout: 0.1}}", tdm_clicks.run);
    ck_assert_ok(tdm_clicks_train(model, WITH(other), &tdm_from_start, &second));
    ck_assert_ptr_nonnull(strstr(log, "model.init_from: 10 of 13 tensors start from step "));
    ck_assert_double_lt(tdm_metrics_result_get(&second.train, "logloss"),
                        tdm_metrics_result_get(&first.train, "logloss"));
    snprintf(other, sizeof other, "output.dir=%s/third", tdm_clicks.folder);
    snprintf(model, sizeof model, "{type: logistic_regression, init_from: %s/none}",
             tdm_clicks.folder);
    ck_assert_fails(tdm_clicks_train(model, WITH(other), &tdm_from_start, NULL), TDM_E_STATE,
                    "no such run");
    tdm_clicks_end();
}
END_TEST

/* ---- standard input -------------------------------------------------------------------------- */

static atomic_bool stopped;

static void stop_training(int signal_number)
{
    (void)signal_number;
    atomic_store(&stopped, true);
}

static void arm_alarm(void *context, const tdm_train_status *status)
{
    const struct itimerval soon = {.it_value.tv_usec = 200000};
    (void)context;
    if (status->event == TDM_EVENT_LOG && status->step == 15)
        ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
}

/* The writer has stopped and keeps the pipe open: the training waits, is told to stop, and saves.
 */
START_TEST(test_stopped_while_it_waits_for_standard_input)
{
    tdm_train_result result;
    int ends[2];
    tdm_clicks_begin(40000);
    char *text = tdm_test_read(tdm_clicks.data);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t writer = fork();
    ck_assert_int_ge(writer, 0);
    if (writer == 0) {
        (void)!write(ends[1], text, strlen(text));
        pause();
        _exit(0);
    }
    tdm_free(text);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    const struct sigaction action = {.sa_handler = stop_training};
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    const tdm_train_control control = {.stop = &stopped, .monitor = arm_alarm};
    ck_assert_fails(tdm_clicks_train(LOGISTIC, WITH("data.train=\"-\"", "train.batch_size=16"),
                                     &control, &result),
                    TDM_E_CANCELLED, "which is saved");
    ck_assert_int_gt(result.step, 10);
    int64_t step;
    bool found;
    ck_assert_ok(tdm_checkpoint_newest_good(tdm_clicks.run, &step, &found));
    ck_assert(found);
    ck_assert_int_eq(step, result.step);
    kill(writer, SIGKILL);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    tdm_clicks_end();
}
END_TEST

/* ---- speed ----------------------------------------------------------------------------------- */

static void stop_at_eval(void *context, const tdm_train_status *status)
{
    if (status->event == TDM_EVENT_EVAL)
        atomic_store((atomic_bool *)context, true);
}

/* Of the steps whose time is known: those up to the only line, not the two that follow it. */
START_TEST(test_rows_per_second)
{
    tdm_train_result result;
    atomic_bool stop = false;
    const tdm_train_control control = {
        .stop = &stop, .monitor = stop_at_eval, .monitor_context = &stop};
    tdm_clicks_begin(1000);
    ck_assert_fails(tdm_clicks_train(LOGISTIC, WITH("train.eval_every_steps=7", tdm_clicks_eval()),
                                     &control, &result),
                    TDM_E_CANCELLED, "step 7");
    char *text = tdm_test_read(tdm_test_path(tdm_clicks.run, "metrics.jsonl"));
    json_t *line = json_loads(strtok(text, "\n"), 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(line, "step")), 5);
    ck_assert_double_eq_tol(result.rows_per_second /
                                json_number_value(json_object_get(line, "rows_per_second")),
                            1, 1e-6);
    json_decref(line);
    tdm_free(text);
    tdm_clicks_end();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct allocation_log {
    int64_t at[64];
    int count;
} allocation_log;

static void note_allocations(void *context, const tdm_train_status *status)
{
    allocation_log *log = context;
    if (status->event == TDM_EVENT_LOG && log->count < 64)
        log->at[log->count++] = tdm_memory_stats_get().allocations;
}

/* Records of 32 bytes, so that every block has the same number of rows and the pipeline's buffers
 * are as large as they get from the first block on. */
static void write_even_clicks(int rows)
{
    FILE *file = fopen(tdm_clicks.data, "we");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < rows; i++)
        fprintf(file, "%d,a%02d,b%d,c%02d,0.%016d\n", i % 3 == 0, i % 20, i % 7, i % 50, i % 101);
    ck_assert_int_eq(ftell(file), 32L * rows);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(test_steps_allocate_nothing)
{
    allocation_log log = {0};
    const tdm_train_control control = {.monitor = note_allocations, .monitor_context = &log};
    tdm_clicks_begin(0);
    write_even_clicks(81920);
    ck_assert_ok(tdm_clicks_train(DEEPFM,
                                  WITH("train.log_every_steps=40", "train.threads=2",
                                       "data.header=false", "data.columns=[label,a,b,c,x]"),
                                  &control, NULL));
    ck_assert_int_ge(log.count, 30);
    /* A line is one allocation, whatever the number of steps before it. How many windows the
     * pipeline holds at once settles in the first half. */
    for (int i = log.count / 2; i < log.count; i++)
        ck_assert_int_le(log.at[i] - log.at[i - 1], 1);
    tdm_clicks_end();
}
END_TEST

static tdm_status train_failing_at(int64_t n)
{
    const char *overrides[] = {"train.threads=1", "data.eval={hold_out: 20%}", "train.epochs=2",
                               "checkpoint.every_steps=3"};
    tdm_recipe *recipe = tdm_test_recipe(tdm_clicks.folder, tdm_clicks.data, DEEPFM, overrides, 4);
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_memory_fail_at(n, false);
    tdm_status status = tdm_train(recipe, &tdm_from_start, NULL);
    tdm_memory_fail_at(0, false);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
    tdm_recipe_free(recipe);
    ck_assert_ok(tdm_folder_remove(tdm_clicks.run));
    return status;
}

/* Every allocation of a training fails once: it ends with that error, or does without what it was
 * for, and nothing is lost. */
START_TEST(test_out_of_memory_at_every_allocation)
{
    tdm_clicks_begin(400);
    int64_t before = tdm_memory_stats_get().allocations;
    ck_assert_ok(train_failing_at(0));
    int64_t count = tdm_memory_stats_get().allocations - before;
    int64_t failures = 0;
    for (int64_t n = 1; n <= count; n += OOM_STRIDE) {
        tdm_status status = train_failing_at(n);
        ck_assert_msg(status == TDM_OK || status == TDM_E_NOMEM, "allocation %lld: status %d (%s)",
                      (long long)n, (int)status, tdm_error_message());
        failures += status == TDM_E_NOMEM;
    }
    ck_assert_int_gt(failures, count / OOM_STRIDE / 2);
    tdm_clicks_end();
}
END_TEST

START_TEST(test_dry_run)
{
    tdm_train_plan plan;
    tdm_text text = {0};
    tdm_clicks_begin(20000);
    const char *overrides[] = {"train.epochs=2", tdm_clicks_eval()};
    tdm_recipe *recipe = tdm_test_recipe(tdm_clicks.folder, tdm_clicks.data, DEEPFM, overrides, 2);
    ck_assert_ok(tdm_train_plan_make(recipe, NULL, &plan));
    ck_assert(!tdm_file_exists(tdm_clicks.run));
    ck_assert_double_eq_tol((double)plan.rows, 20000, 200);
    ck_assert_double_eq_tol((double)plan.steps, 2 * 20000.0 / 64, 20);
    ck_assert_double_eq_tol((double)plan.eval_rows, 1500, 50);
    /* 3 tables of 64 rows with 4 + 1 columns */
    ck_assert_int_ge(plan.sparse_bytes, 3 * 64 * 5 * 4);
    ck_assert_int_ge(plan.peak_bytes, plan.pipeline_bytes + plan.arena_bytes + plan.moment_bytes);
    ck_assert_ok(tdm_train_plan_text(&plan, &text));
    ck_assert_ptr_nonnull(strstr(text.bytes, "peak"));
    tdm_text_free(&text);
    int64_t before = tdm_memory_stats_get().live_bytes;
    ck_assert_ok(tdm_train(recipe, &tdm_from_start, NULL));
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, before);
    ck_assert_int_le(tdm_memory_stats_get().peak_bytes - before, plan.peak_bytes);
    tdm_recipe_free(recipe);
    tdm_clicks_end();
}
END_TEST

TDM_CHECK_MAIN(test_models_learn, test_bits_depend_on_seed_alone, test_run_folder_is_complete,
               test_a_run_is_not_overwritten, test_two_trainings_never_share_a_folder,
               test_nothing_is_made_where_the_input_is_missing, test_all_records_bad_or_held_out,
               test_too_many_bad_records, test_bad_records_are_judged_by_windows,
               test_exploding_training_is_reported, test_report_names_step_rows_and_tensor,
               test_init_from, test_stopped_while_it_waits_for_standard_input, test_rows_per_second,
               test_steps_allocate_nothing, test_out_of_memory_at_every_allocation, test_dry_run)
