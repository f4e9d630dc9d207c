/* Which checkpoint is the best, how it is found again, and what evaluating a run uses. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/clicks.h"
#include "trainer/checkpoint.h"
#include "trainer/evaluate.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- evaluating ------------------------------------------------------------------------------ */

static void evaluate(const char *checkpoint, tdm_evaluation *out, int64_t *step)
{
    tdm_run *opened;
    const tdm_run_options options = {
        .checkpoint = checkpoint, .threads = 3, .use = TDM_USE_EVALUATION};
    ck_assert_ok(tdm_run_open(tdm_clicks.run, &options, &opened));
    char *paths[] = {tdm_clicks.eval_data};
    const tdm_strings files = {.items = paths, .count = 1};
    const tdm_evaluate_options none = {0};
    ck_assert_ok(tdm_evaluate_run(opened, &files, &none, out));
    *step = opened->step;
    tdm_run_close(opened);
}

START_TEST(test_evaluation_of_a_run)
{
    tdm_train_result result;
    tdm_evaluation evaluation;
    int64_t step;
    tdm_clicks_begin(3000);
    tdm_test_append(tdm_clicks.eval_data, "oops\n");
    ck_assert_ok(tdm_clicks_train(DEEPFM,
                                  WITH("train.epochs=2", "train.eval_every_steps=20",
                                       tdm_clicks_eval(), "checkpoint.keep_last=20"),
                                  &tdm_from_start, &result));
    evaluate("last", &evaluation, &step);
    ck_assert_int_eq(step, result.step);
    ck_assert_double_eq(tdm_metrics_result_get(&evaluation.metrics, "auc"),
                        tdm_metrics_result_get(&result.eval, "auc"));
    ck_assert_double_eq(tdm_metrics_result_get(&evaluation.metrics, "logloss"),
                        tdm_metrics_result_get(&result.eval, "logloss"));
    ck_assert_int_eq(evaluation.records, 1501);
    ck_assert_int_eq(evaluation.bad_records, 1);
    evaluate("best", &evaluation, &step);
    ck_assert_int_eq(step, result.best_step);
    ck_assert_double_eq(tdm_metrics_result_get(&evaluation.metrics, "auc"), result.best_score);
    evaluate(NULL, &evaluation, &step);
    ck_assert_int_eq(step, result.best_step);
    tdm_run *opened;
    tdm_run_options options = {.checkpoint = "17", .use = TDM_USE_EVALUATION};
    ck_assert_fails(tdm_run_open(tdm_clicks.run, &options, &opened), TDM_E_STATE,
                    "no checkpoint of step 17");
    options.checkpoint = "newest";
    ck_assert_fails(tdm_run_open(tdm_clicks.run, &options, &opened), TDM_E_ARG,
                    "best, last or a step");
    ck_assert_fails(tdm_run_open(tdm_clicks.folder, &options, &opened), TDM_E_STATE,
                    "no run folder");
    tdm_clicks_end();
}
END_TEST

START_TEST(test_a_run_of_a_gpu_is_used_on_a_cpu)
{
    tdm_run *opened;
    tdm_clicks_begin(500);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL));
    char *text = tdm_test_read(tdm_test_path(tdm_clicks.run, "recipe.yaml"));
    char *device = strstr(text, "device: cpu");
    ck_assert_ptr_nonnull(device);
    memcpy(device, "device: gpu", strlen("device: gpu"));
    ck_assert_ok(
        tdm_file_put(tdm_test_path(tdm_clicks.run, "recipe.yaml"), text, strlen(text), NULL));
    tdm_free(text);
    const tdm_run_options options = {.use = TDM_USE_PREDICTION};
    ck_assert_ok(tdm_run_open(tdm_clicks.run, &options, &opened));
    tdm_run_close(opened);
    tdm_clicks_end();
}
END_TEST

START_TEST(test_no_best_without_evaluations)
{
    tdm_run *opened;
    tdm_clicks_begin(500);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, WITH(tdm_clicks_eval(), "checkpoint.keep_best=none"),
                                  &tdm_from_start, NULL));
    tdm_run_options options = {.checkpoint = "best", .use = TDM_USE_EVALUATION};
    ck_assert_fails(tdm_run_open(tdm_clicks.run, &options, &opened), TDM_E_STATE, "keep_best");
    options.checkpoint = NULL;
    ck_assert_ok(tdm_run_open(tdm_clicks.run, &options, &opened));
    tdm_run_close(opened);
    tdm_clicks_end();
}
END_TEST

/* The step of the best evaluation but that of step `lost`, by what metrics.jsonl says. */
static int64_t best_logged(bool by_loss, int64_t lost, double *best)
{
    int64_t best_step = -1;
    char *metrics = tdm_test_metrics(tdm_clicks.run);
    *best = by_loss ? INFINITY : -INFINITY;
    for (char *line = strtok(metrics, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        double score = json_number_value(json_object_get(json, by_loss ? "logloss" : "auc"));
        int64_t step = json_integer_value(json_object_get(json, "step"));
        bool is_eval = strcmp(json_string_value(json_object_get(json, "event")), "eval") == 0;
        if (is_eval && step != lost && (by_loss ? score < *best : score > *best)) {
            *best = score;
            best_step = step;
        }
        json_decref(json);
    }
    tdm_free(metrics);
    return best_step;
}

START_TEST(test_best_by_logloss)
{
    tdm_train_result result;
    tdm_clicks_begin(3000);
    ck_assert_ok(tdm_clicks_train(DEEPFM,
                                  WITH("train.epochs=3", "train.eval_every_steps=10",
                                       tdm_clicks_eval(), "checkpoint.keep_best=logloss"),
                                  &tdm_from_start, &result));
    double best;
    int64_t best_step = best_logged(true, -1, &best);
    ck_assert_int_eq(result.best_step, best_step);
    ck_assert_double_eq_tol(result.best_score, best, 1e-8);
    int64_t step;
    bool found;
    ck_assert_ok(tdm_checkpoint_best(tdm_clicks.run, &step, &found));
    ck_assert_int_eq(step, best_step);
    ck_assert_ok(tdm_checkpoint_verify(tdm_clicks.run, step));
    tdm_clicks_end();
}
END_TEST

/* Removes a key of a checkpoint's state.json, as if an older tandem had written it. */
static void remove_from_state(int64_t step, const char *key)
{
    static const char *const copied[] = {"model.safetensors", "optimizer.safetensors"};
    char *bytes, *text;
    size_t size;
    json_t *state = json_load_file(tdm_clicks_file(step, "state.json"), 0, NULL);
    ck_assert_int_eq(json_object_del(state, key), 0);
    text = json_dumps(state, JSON_REAL_PRECISION(17));
    json_decref(state);
    tdm_checkpoint_writer *writer;
    ck_assert_ok(tdm_checkpoint_writer_begin(tdm_clicks.run, step, &writer));
    ck_assert_ok(tdm_checkpoint_writer_put(writer, "state.json", text, strlen(text)));
    for (int i = 0; i < 2; i++) {
        ck_assert_ok(tdm_file_get(tdm_clicks_file(step, copied[i]), 1 << 20, &bytes, &size));
        ck_assert_ok(tdm_checkpoint_writer_put(writer, copied[i], bytes, size));
        tdm_free(bytes);
    }
    ck_assert_ok(tdm_checkpoint_writer_commit(writer));
    tdm_checkpoint_writer_close(writer);
    free(text);
}

static int64_t linked_best(void)
{
    int64_t step;
    bool found;
    ck_assert_ok(tdm_checkpoint_best(tdm_clicks.run, &step, &found));
    return found ? step : -1;
}

/* Scores of one kind are not compared with those of another. */
START_TEST(test_another_kind_of_best)
{
    tdm_train_result first, second;
    tdm_clicks_begin(1000);
    const char *log = tdm_test_log();
    ck_assert_ok(tdm_clicks_train(DEEPFM, WITH("train.eval_every_steps=5", tdm_clicks_eval()),
                                  &tdm_from_start, &first));
    ck_assert_int_eq(linked_best(), first.best_step);
    const char **by_loss =
        WITH("train.eval_every_steps=5", tdm_clicks_eval(), "checkpoint.keep_best=logloss");
    ck_assert_ok(tdm_clicks_train(DEEPFM, by_loss, &tdm_go_on, &second));
    ck_assert_ptr_nonnull(strstr(log, "checkpoint.keep_best: auc before, logloss now"));
    ck_assert_int_eq(second.best_step, -1);
    ck_assert_int_eq(linked_best(), -1);
    /* The ended run's state still says auc, and so does one that says nothing. */
    ck_assert_ok(tdm_clicks_train(DEEPFM, WITH("train.eval_every_steps=5", tdm_clicks_eval()),
                                  &tdm_go_on, &second));
    ck_assert_int_eq(second.best_step, first.best_step);
    ck_assert_int_eq(linked_best(), first.best_step);
    remove_from_state(first.step, "keep_best");
    ck_assert_ok(tdm_clicks_train(DEEPFM, by_loss, &tdm_go_on, &second));
    ck_assert_int_eq(second.best_step, first.best_step);
    ck_assert_double_eq(second.best_score, first.best_score);
    tdm_clicks_end();
}
END_TEST

START_TEST(test_lost_best)
{
    tdm_train_result first, second;
    tdm_clicks_begin(1000);
    const char *log = tdm_test_log();
    const char **overrides =
        WITH("train.eval_every_steps=5", "checkpoint.every_steps=5", "checkpoint.keep_last=20",
             "optimizer.sparse.learning_rate=3", tdm_clicks_eval());
    ck_assert_ok(tdm_clicks_train(DEEPFM, overrides, &tdm_from_start, &first));
    ck_assert_int_lt(first.best_step, first.step);
    double score;
    int64_t next = best_logged(false, first.best_step, &score);
    ck_assert_int_ge(next, 0);
    tdm_clicks_damage(tdm_clicks_file(first.best_step, "model.safetensors"));
    ck_assert_ok(tdm_clicks_train(DEEPFM, overrides, &tdm_go_on, &second));
    char warning[64];
    snprintf(warning, sizeof warning, "the best checkpoint, of step %lld, cannot be used",
             (long long)first.best_step);
    ck_assert_ptr_nonnull(strstr(log, warning));
    ck_assert_int_eq(second.best_step, next);
    ck_assert_double_eq_tol(second.best_score, score, 1e-8);
    ck_assert_int_eq(linked_best(), next);
    tdm_clicks_end();
}
END_TEST

static void stop_at_step_8(void *context, const tdm_train_status *status)
{
    if (status->event == TDM_EVENT_LOG && status->step == 8)
        atomic_store((atomic_bool *)context, true);
}

START_TEST(test_lost_best_without_another)
{
    tdm_train_result result;
    atomic_bool stop = false;
    tdm_train_control control = {
        .stop = &stop, .monitor = stop_at_step_8, .monitor_context = &stop};
    tdm_clicks_begin(1000);
    const char **overrides =
        WITH("train.eval_every_steps=5", "train.log_every_steps=1", tdm_clicks_eval());
    ck_assert_fails(tdm_clicks_train(DEEPFM, overrides, &control, &result), TDM_E_CANCELLED,
                    "step 8");
    ck_assert_int_eq(result.best_step, 5);
    ck_assert_ok(tdm_folder_remove(tdm_clicks_file(5, "")));
    /* Stopped before its first step. */
    control.resume = true;
    ck_assert_fails(tdm_clicks_train(DEEPFM, overrides, &control, &result), TDM_E_CANCELLED,
                    "step 8");
    ck_assert_int_eq(result.best_step, -1);
    ck_assert_int_eq(linked_best(), -1);
    ck_assert_ok(tdm_clicks_train(DEEPFM, overrides, &tdm_go_on, &result));
    ck_assert_int_ge(result.best_step, 10);
    ck_assert_int_eq(linked_best(), result.best_step);
    tdm_clicks_end();
}
END_TEST

TDM_CHECK_MAIN(test_evaluation_of_a_run, test_a_run_of_a_gpu_is_used_on_a_cpu,
               test_no_best_without_evaluations, test_best_by_logloss, test_another_kind_of_best,
               test_lost_best, test_lost_best_without_another)
