/* What a training learns, writes and says, and how it fails. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/training.h"
#include "trainer/checkpoint.h"
#include "trainer/device.h"
#include "trainer/evaluate.h"
#include "trainer/run_folder.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OOM_STRIDE 17
#else
#define OOM_STRIDE 1
#endif

#define LOGISTIC "{type: logistic_regression}"
#define DEEPFM   "{type: deepfm, mlp: {units: [16, 8], dropout: 0.1}}"
#define DCN      "{type: dcn_v2, crosses: 2, mlp: {units: [16]}}"

static char folder[256], data[300], eval_data[300], run[300];

static const tdm_train_control from_start = {.resume = false};
static const tdm_train_control go_on = {.resume = true};

static void begin(int rows)
{
    tdm_test_fast_folder(folder);
    snprintf(data, sizeof data, "%s/clicks.csv", folder);
    snprintf(eval_data, sizeof eval_data, "%s/later.csv", folder);
    snprintf(run, sizeof run, "%s/run", folder);
    tdm_test_write_clicks(data, rows, 1);
    tdm_test_write_clicks(eval_data, 1500, 2);
}

static void end(void)
{
    ck_assert_ok(tdm_folder_remove(folder));
}

/* Overrides end with NULL. */
static tdm_status train(const char *model, const char *overrides[],
                        const tdm_train_control *control, tdm_train_result *result)
{
    int count = 0;
    while (overrides != NULL && overrides[count] != NULL)
        count++;
    tdm_recipe *recipe = tdm_test_recipe(folder, data, model, overrides, count);
    tdm_status status = tdm_train(recipe, control, result);
    tdm_recipe_free(recipe);
    return status;
}

#define WITH(...)                                                                                  \
    (const char *[])                                                                               \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static const char *checkpoint_file(int64_t step, const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/checkpoints/step-%08lld/%s", run, (long long)step, name);
    return path;
}

static uint64_t hash_weights(int64_t step)
{
    uint64_t hash;
    int64_t bytes;
    ck_assert_ok(tdm_file_hash(checkpoint_file(step, "model.safetensors"), &hash, &bytes));
    return hash;
}

static const char *eval_override(void)
{
    static char text[400];
    snprintf(text, sizeof text, "data.eval=[%s]", eval_data);
    return text;
}

/* ---- learning -------------------------------------------------------------------------------- */

static void assert_learns(const char *model, double loss, double auc)
{
    tdm_train_result result;
    begin(6000);
    ck_assert_ok(
        train(model, WITH("train.epochs=6", "optimizer.sparse.learning_rate=0.2", eval_override()),
              &from_start, &result));
    ck_assert_int_eq(result.rows, 6 * 6000);
    ck_assert_int_eq(result.epoch, 6);
    ck_assert(result.has_eval);
    ck_assert_int_eq(result.eval.rows, 1500);
    ck_assert_double_lt(result.eval.logloss, loss);
    ck_assert_double_gt(result.eval.auc, auc);
    ck_assert_double_lt(result.train.logloss, loss + 0.03);
    end();
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

/* A CPU that puts every op off until a sync, and whose memory the host may not look at: what a GPU
 * looks like to the loop. */
static tdm_backend_type far_type;

static tdm_status far_properties(tdm_backend *backend, tdm_backend_properties *out)
{
    snprintf(out->name, sizeof out->name, "far");
    out->instructions[0] = '\0';
    out->host_memory = false;
    (void)backend;
    return TDM_OK;
}

static tdm_status create_far(tdm_pool *pool, tdm_backend **out)
{
    TDM_TRY(tdm_cpu_create_deferred(pool, out));
    far_type = *(*out)->type;
    far_type.properties = far_properties;
    (*out)->type = &far_type;
    return TDM_OK;
}

static uint64_t train_bits(const char *overrides[])
{
    tdm_train_result result;
    ck_assert_ok(train(DEEPFM, overrides, &from_start, &result));
    uint64_t hash = hash_weights(result.step);
    ck_assert_ok(tdm_folder_remove(run));
    return hash;
}

START_TEST(test_bits_depend_on_seed_alone)
{
    begin(3000);
    const char *hold_out = "data.eval={hold_out: 5%}";
    const char *more = "train.eval_every_steps=20";
    uint64_t bits =
        train_bits(WITH("train.epochs=2", hold_out, "train.threads=1", "data.cache=off"));
    ck_assert_uint_eq(bits, train_bits(WITH("train.epochs=2", hold_out, "train.threads=2", more)));
    ck_assert_uint_eq(bits, train_bits(WITH("train.epochs=2", hold_out, "train.threads=5", more,
                                            "checkpoint.every_steps=7")));
    ck_assert_uint_ne(bits, train_bits(WITH("train.epochs=2", hold_out, "seed=4")));
    tdm_device_set_test_create(create_far);
    uint64_t far = train_bits(WITH("train.epochs=2", hold_out, "train.threads=2", more));
    tdm_device_set_test_create(NULL);
    ck_assert_uint_eq(bits, far);
    end();
}
END_TEST

/* ---- the run folder -------------------------------------------------------------------------- */

START_TEST(test_run_folder_is_complete)
{
    tdm_train_result result;
    tdm_recipe *saved;
    begin(2000);
    tdm_test_append(data, "2,a1,b1,c1,0.5\n");
    ck_assert_ok(train(LOGISTIC,
                       WITH("train.max_steps=40", "checkpoint.every_steps=10",
                            "checkpoint.keep_last=2", "data.block_bytes=0"),
                       &from_start, &result));
    ck_assert_int_eq(result.step, 40);
    ck_assert_int_eq(result.bad_records, 1);
    ck_assert_ok(tdm_recipe_load_run(run, &saved));
    ck_assert_int_eq(saved->train.max_steps, 40);
    ck_assert_int_eq(saved->train.epochs, 0);
    ck_assert_int_eq(saved->data.block_bytes, 16384);
    tdm_recipe_free(saved);
    tdm_checkpoint_list list;
    ck_assert_ok(tdm_checkpoint_list_read(run, &list));
    ck_assert_int_eq(list.count, 2);
    ck_assert_int_eq(list.steps[0], 40);
    ck_assert_int_eq(list.steps[1], 30);
    tdm_checkpoint_list_free(&list);
    char *text = tdm_test_read(tdm_test_path(run, "quarantine.txt"));
    ck_assert_ptr_nonnull(strstr(text, "clicks.csv:2002: label: "));
    tdm_free(text);
    text = tdm_test_metrics(run);
    ck_assert_ptr_nonnull(strstr(text, "{\"event\":\"train\",\"step\":5,"));
    ck_assert_ptr_nonnull(strstr(text, "{\"event\":\"end\",\"step\":40,"));
    tdm_free(text);
    ck_assert_ptr_nonnull((text = tdm_test_read(tdm_test_path(run, "features.json"))));
    tdm_free(text);
    end();
}
END_TEST

START_TEST(test_a_run_is_not_overwritten)
{
    begin(500);
    ck_assert_ok(train(LOGISTIC, NULL, &from_start, NULL));
    ck_assert_fails(train(LOGISTIC, NULL, &from_start, NULL), TDM_E_STATE, "--resume");
    ck_assert_fails(train(LOGISTIC, NULL, &from_start, NULL), TDM_E_STATE, "output.dir");
    end();
}
END_TEST

START_TEST(test_two_trainings_never_share_a_folder)
{
    tdm_run_folder *held;
    begin(500);
    ck_assert_ok(tdm_run_folder_open(run, false, &held));
    ck_assert_fails(train(LOGISTIC, NULL, &from_start, NULL), TDM_E_STATE, "another process");
    ck_assert_fails(train(LOGISTIC, NULL, &go_on, NULL), TDM_E_STATE, "another process");
    tdm_run_folder_close(held);
    ck_assert_ok(train(LOGISTIC, NULL, &from_start, NULL));
    end();
}
END_TEST

START_TEST(test_nothing_is_made_where_the_input_is_missing)
{
    begin(500);
    ck_assert_ok(tdm_file_remove(data));
    ck_assert_fails(train(LOGISTIC, NULL, &from_start, NULL), TDM_E_IO, "clicks.csv");
    ck_assert(!tdm_file_exists(run));
    end();
}
END_TEST

START_TEST(test_all_records_bad_or_held_out)
{
    begin(0);
    ck_assert_fails(train(LOGISTIC, NULL, &from_start, NULL), TDM_E_DATA, "clicks.csv");
    end();
    begin(0);
    tdm_test_append(data, "9,a,b,c,1\n");
    ck_assert_fails(train(LOGISTIC, WITH("data.max_bad_records=100%"), &from_start, NULL),
                    TDM_E_DATA, "no row to train on");
    end();
}
END_TEST

START_TEST(test_too_many_bad_records)
{
    begin(100);
    tdm_test_append(data, "9,a,b,c,1\n9,a,b,c,1\n");
    ck_assert_fails(train(LOGISTIC, WITH("data.max_bad_records=1%"), &from_start, NULL), TDM_E_DATA,
                    "clicks.csv:102");
    ck_assert_fails(train(LOGISTIC, WITH("data.on_bad_record=fail"), &go_on, NULL), TDM_E_DATA,
                    "clicks.csv:102");
    end();
}
END_TEST

/* ---- resuming -------------------------------------------------------------------------------- */

START_TEST(test_resuming_an_ended_training_changes_nothing)
{
    tdm_train_result first, second;
    begin(1000);
    ck_assert_ok(train(LOGISTIC, WITH(eval_override()), &from_start, &first));
    char *before = tdm_test_metrics(run);
    ck_assert_ok(train(LOGISTIC, WITH(eval_override()), &go_on, &second));
    char *after = tdm_test_metrics(run);
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(second.step, first.step);
    ck_assert_int_eq(second.resumed_step, first.step);
    ck_assert_double_eq(second.eval.auc, first.eval.auc);
    ck_assert_double_eq(second.train.logloss, first.train.logloss);
    tdm_free(before);
    tdm_free(after);
    end();
}
END_TEST

START_TEST(test_resuming_with_another_length)
{
    tdm_train_result result;
    begin(1000);
    const char *log = tdm_test_log();
    ck_assert_ok(train(LOGISTIC, NULL, &from_start, &result));
    int64_t steps = result.step;
    ck_assert_ok(train(LOGISTIC, WITH("train.epochs=2", "optimizer.schedule.type=constant"), &go_on,
                       &result));
    ck_assert_int_gt(result.step, steps);
    ck_assert_int_eq(result.rows, 2000);
    ck_assert_ptr_nonnull(strstr(log, "train.epochs: 1 before, 2 now"));
    char most[64];
    snprintf(most, sizeof most, "train.max_steps=%lld", (long long)result.step + 3);
    ck_assert_ok(train(LOGISTIC, WITH("train.epochs=3", most), &go_on, &result));
    ck_assert_int_eq(result.step, atoll(strchr(most, '=') + 1));
    end();
}
END_TEST

START_TEST(test_what_may_change_on_resume)
{
    begin(1000);
    ck_assert_ok(train(LOGISTIC, NULL, &from_start, NULL));
    ck_assert_ok(train(LOGISTIC,
                       WITH("train.threads=3", "train.device=auto", "checkpoint.every_steps=3",
                            "checkpoint.keep_last=7", "train.log_every_steps=2", eval_override()),
                       &go_on, NULL));
    end();
}
END_TEST

START_TEST(test_what_must_not_change_on_resume)
{
    static const char *const changes[] = {
        "seed=5",
        "train.batch_size=128",
        "optimizer.dense.learning_rate=0.02",
        "features.defaults.buckets=61",
        "data.lanes=8",
        "data.window_blocks=3",
        "data.block_bytes=8192",
        "data.on_bad_record=skip",
        "data.eval={hold_out: 1%}",
        "train.clip_norm=1",
    };
    begin(1000);
    ck_assert_ok(train(LOGISTIC, NULL, &from_start, NULL));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(changes[i], "="), changes[i]);
        ck_assert_fails(train(LOGISTIC, WITH(changes[i]), &go_on, NULL), TDM_E_CONFIG, key);
        ck_assert_fails(train(LOGISTIC, WITH(changes[i]), &go_on, NULL), TDM_E_CONFIG, "before");
    }
    ck_assert_fails(train(DEEPFM, NULL, &go_on, NULL), TDM_E_CONFIG, "model.type");
    ck_assert_fails(train(LOGISTIC, WITH("seed=5", "train.clip_norm=1"), &go_on, NULL),
                    TDM_E_CONFIG, "seed: 3 before, 5 now; train.clip_norm: 0 before, 1 now");
    end();
}
END_TEST

START_TEST(test_changed_input_on_resume)
{
    begin(1000);
    const char *log = tdm_test_log();
    ck_assert_ok(train(LOGISTIC, NULL, &from_start, NULL));
    const struct utimbuf long_ago = {.actime = 1000, .modtime = 1000};
    ck_assert_int_eq(utime(data, &long_ago), 0);
    ck_assert_ok(train(LOGISTIC, NULL, &go_on, NULL));
    ck_assert_ptr_nonnull(strstr(log, "clicks.csv: was changed or copied"));
    tdm_test_append(data, "1,a1,b1,c1,0.5\n");
    ck_assert_fails(train(LOGISTIC, NULL, &go_on, NULL), TDM_E_CONFIG, "clicks.csv: has ");
    end();
}
END_TEST

START_TEST(test_resume_begins_where_there_is_nothing)
{
    tdm_train_result result;
    begin(1000);
    ck_assert_ok(train(LOGISTIC, NULL, &go_on, &result));
    ck_assert_int_eq(result.resumed_step, -1);
    /* A run that was killed before its first checkpoint, with another recipe. */
    ck_assert_ok(tdm_folder_remove(tdm_test_path(run, "checkpoints")));
    ck_assert_ok(train(LOGISTIC, WITH("seed=9"), &go_on, &result));
    ck_assert_int_eq(result.resumed_step, -1);
    char *metrics = tdm_test_metrics(run);
    ck_assert_ptr_eq(strstr(strstr(metrics, "\"end\"") + 1, "\"end\""), NULL);
    tdm_free(metrics);
    end();
}
END_TEST

static void damage(const char *path)
{
    FILE *file = fopen(path, "r+e");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -3, SEEK_END), 0);
    fputc('!', file);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(test_damaged_checkpoints)
{
    tdm_train_result result;
    begin(2000);
    const char *log = tdm_test_log();
    const char **overrides = WITH("checkpoint.every_steps=10");
    ck_assert_ok(train(DEEPFM, overrides, &from_start, &result));
    int64_t last = result.step;
    uint64_t bits = hash_weights(last);
    damage(checkpoint_file(last, "model.safetensors"));
    ck_assert_ok(train(DEEPFM, overrides, &go_on, &result));
    ck_assert_int_eq(result.resumed_step, 40);
    ck_assert_uint_eq(hash_weights(last), bits);
    ck_assert_ptr_nonnull(strstr(log, "model.safetensors"));
    tdm_checkpoint_list list;
    ck_assert_ok(tdm_checkpoint_list_read(run, &list));
    for (int64_t i = 0; i < list.count; i++)
        damage(checkpoint_file(list.steps[i], "state.json"));
    tdm_checkpoint_list_free(&list);
    ck_assert_fails(train(DEEPFM, overrides, &go_on, NULL), TDM_E_FORMAT, "state.json");
    end();
}
END_TEST

START_TEST(test_newer_run_folder)
{
    begin(500);
    ck_assert_ok(train(LOGISTIC, NULL, &from_start, NULL));
    static const char text[] = "# tandem run folder, format 2; made by tandem 9.0\nnew_key: 1\n";
    ck_assert_ok(tdm_file_put(tdm_test_path(run, "recipe.yaml"), text, sizeof text - 1, NULL));
    ck_assert_fails(train(LOGISTIC, NULL, &go_on, NULL), TDM_E_VERSION, "newer");
    tdm_run *opened;
    const tdm_run_options options = {.use = TDM_CTR_EVALUATION};
    ck_assert_fails(tdm_run_open(run, &options, &opened), TDM_E_VERSION, "newer");
    end();
}
END_TEST

START_TEST(test_newer_state)
{
    tdm_train_result result;
    begin(500);
    ck_assert_ok(train(LOGISTIC, NULL, &from_start, &result));
    char *path = strdup(checkpoint_file(result.step, "state.json"));
    json_t *state = json_load_file(path, 0, NULL);
    json_object_set_new(state, "version", json_integer(2));
    char *text = json_dumps(state, 0);
    json_decref(state);
    tdm_checkpoint_writer *writer;
    ck_assert_ok(tdm_checkpoint_writer_begin(run, result.step + 1, &writer));
    ck_assert_ok(tdm_checkpoint_writer_put(writer, "state.json", text, strlen(text)));
    ck_assert_ok(tdm_checkpoint_writer_commit(writer));
    tdm_checkpoint_writer_close(writer);
    ck_assert_fails(train(LOGISTIC, NULL, &go_on, NULL), TDM_E_VERSION, "newer");
    free(text);
    free(path);
    end();
}
END_TEST

/* ---- numbers --------------------------------------------------------------------------------- */

START_TEST(test_exploding_training_is_reported)
{
    tdm_train_result result;
    begin(3000);
    const char **overrides =
        WITH("optimizer.dense={type: sgd, learning_rate: 1.0e+6}",
             "optimizer.sparse={type: sgd, learning_rate: 1.0e+6}", "checkpoint.every_steps=1");
    ck_assert_fails(train(DEEPFM, overrides, &from_start, &result), TDM_E_NUMERIC, "step ");
    const char *message = tdm_error_message();
    ck_assert_msg(strstr(message, "first bad tensor is ") != NULL ||
                      strstr(message, "was not saved") != NULL,
                  "%s", message);
    /* What is on the disk is finite. */
    int64_t step;
    bool found;
    ck_assert_ok(tdm_checkpoint_newest_good(run, &step, &found));
    ck_assert(!found || step <= result.step);
    end();
}
END_TEST

START_TEST(test_report_names_step_rows_and_tensor)
{
    tdm_train_result result;
    begin(3000);
    const char **overrides = WITH("optimizer.dense={type: sgd, learning_rate: 1.0e+6}",
                                  "optimizer.sparse={type: sgd, learning_rate: 1.0e+6}");
    ck_assert_fails(train(DEEPFM, overrides, &from_start, &result), TDM_E_NUMERIC,
                    "the first bad tensor is ");
    char step[64];
    snprintf(step, sizeof step, "step %lld: ", (long long)result.step + 1);
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), step));
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "its 64 rows are from "));
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "clicks.csv, block "));
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "learning_rate"));
    end();
}
END_TEST

/* ---- evaluating ------------------------------------------------------------------------------ */

static void evaluate(const char *checkpoint, tdm_evaluation *out, int64_t *step)
{
    tdm_run *opened;
    const tdm_run_options options = {
        .checkpoint = checkpoint, .threads = 3, .use = TDM_CTR_EVALUATION};
    ck_assert_ok(tdm_run_open(run, &options, &opened));
    char *paths[] = {eval_data};
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
    begin(3000);
    tdm_test_append(eval_data, "oops\n");
    ck_assert_ok(train(DEEPFM,
                       WITH("train.epochs=2", "train.eval_every_steps=20", eval_override(),
                            "checkpoint.keep_last=20"),
                       &from_start, &result));
    evaluate("last", &evaluation, &step);
    ck_assert_int_eq(step, result.step);
    ck_assert_double_eq(evaluation.metrics.auc, result.eval.auc);
    ck_assert_double_eq(evaluation.metrics.logloss, result.eval.logloss);
    ck_assert_int_eq(evaluation.records, 1501);
    ck_assert_int_eq(evaluation.bad_records, 1);
    evaluate("best", &evaluation, &step);
    ck_assert_int_eq(step, result.best_step);
    ck_assert_double_eq(evaluation.metrics.auc, result.best_score);
    evaluate(NULL, &evaluation, &step);
    ck_assert_int_eq(step, result.best_step);
    tdm_run *opened;
    tdm_run_options options = {.checkpoint = "17", .use = TDM_CTR_EVALUATION};
    ck_assert_fails(tdm_run_open(run, &options, &opened), TDM_E_STATE, "no checkpoint of step 17");
    options.checkpoint = "newest";
    ck_assert_fails(tdm_run_open(run, &options, &opened), TDM_E_ARG, "best, last or a step");
    ck_assert_fails(tdm_run_open(folder, &options, &opened), TDM_E_STATE, "no run folder");
    end();
}
END_TEST

START_TEST(test_a_run_of_a_gpu_is_used_on_a_cpu)
{
    tdm_run *opened;
    begin(500);
    ck_assert_ok(train(LOGISTIC, NULL, &from_start, NULL));
    char *text = tdm_test_read(tdm_test_path(run, "recipe.yaml"));
    char *device = strstr(text, "device: cpu");
    ck_assert_ptr_nonnull(device);
    memcpy(device, "device: gpu", strlen("device: gpu"));
    ck_assert_ok(tdm_file_put(tdm_test_path(run, "recipe.yaml"), text, strlen(text), NULL));
    tdm_free(text);
    const tdm_run_options options = {.use = TDM_CTR_PREDICTION};
    ck_assert_ok(tdm_run_open(run, &options, &opened));
    tdm_run_close(opened);
    end();
}
END_TEST

START_TEST(test_no_best_without_evaluations)
{
    tdm_run *opened;
    begin(500);
    ck_assert_ok(
        train(LOGISTIC, WITH(eval_override(), "checkpoint.keep_best=none"), &from_start, NULL));
    tdm_run_options options = {.checkpoint = "best", .use = TDM_CTR_EVALUATION};
    ck_assert_fails(tdm_run_open(run, &options, &opened), TDM_E_STATE, "keep_best");
    options.checkpoint = NULL;
    ck_assert_ok(tdm_run_open(run, &options, &opened));
    tdm_run_close(opened);
    end();
}
END_TEST

START_TEST(test_best_by_logloss)
{
    tdm_train_result result;
    begin(3000);
    ck_assert_ok(train(DEEPFM,
                       WITH("train.epochs=3", "train.eval_every_steps=10", eval_override(),
                            "checkpoint.keep_best=logloss"),
                       &from_start, &result));
    double best = INFINITY;
    json_int_t best_step = -1;
    char *metrics = tdm_test_metrics(run);
    for (char *line = strtok(metrics, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        double loss = json_number_value(json_object_get(json, "logloss"));
        if (strcmp(json_string_value(json_object_get(json, "event")), "eval") == 0 && loss < best) {
            best = loss;
            best_step = json_integer_value(json_object_get(json, "step"));
        }
        json_decref(json);
    }
    tdm_free(metrics);
    ck_assert_int_eq(result.best_step, best_step);
    ck_assert_double_eq_tol(result.best_score, best, 1e-8);
    int64_t step;
    bool found;
    ck_assert_ok(tdm_checkpoint_best(run, &step, &found));
    ck_assert_int_eq(step, best_step);
    ck_assert_ok(tdm_checkpoint_verify(run, step));
    end();
}
END_TEST

/* Removes a key of a checkpoint's state.json, as if an older tandem had written it. */
static void remove_from_state(int64_t step, const char *key)
{
    static const char *const copied[] = {"model.safetensors", "optimizer.safetensors"};
    char *bytes, *text;
    size_t size;
    json_t *state = json_load_file(checkpoint_file(step, "state.json"), 0, NULL);
    ck_assert_int_eq(json_object_del(state, key), 0);
    text = json_dumps(state, JSON_REAL_PRECISION(17));
    json_decref(state);
    tdm_checkpoint_writer *writer;
    ck_assert_ok(tdm_checkpoint_writer_begin(run, step, &writer));
    ck_assert_ok(tdm_checkpoint_writer_put(writer, "state.json", text, strlen(text)));
    for (int i = 0; i < 2; i++) {
        ck_assert_ok(tdm_file_get(checkpoint_file(step, copied[i]), 1 << 20, &bytes, &size));
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
    ck_assert_ok(tdm_checkpoint_best(run, &step, &found));
    return found ? step : -1;
}

/* Scores of one kind are not compared with those of another. */
START_TEST(test_another_kind_of_best)
{
    tdm_train_result first, second;
    begin(1000);
    const char *log = tdm_test_log();
    ck_assert_ok(
        train(DEEPFM, WITH("train.eval_every_steps=5", eval_override()), &from_start, &first));
    ck_assert_int_eq(linked_best(), first.best_step);
    const char **by_loss =
        WITH("train.eval_every_steps=5", eval_override(), "checkpoint.keep_best=logloss");
    ck_assert_ok(train(DEEPFM, by_loss, &go_on, &second));
    ck_assert_ptr_nonnull(strstr(log, "checkpoint.keep_best: auc before, logloss now"));
    ck_assert_int_eq(second.best_step, -1);
    ck_assert_int_eq(linked_best(), -1);
    /* The ended run's state still says auc, and so does one that says nothing. */
    ck_assert_ok(train(DEEPFM, WITH("train.eval_every_steps=5", eval_override()), &go_on, &second));
    ck_assert_int_eq(second.best_step, first.best_step);
    ck_assert_int_eq(linked_best(), first.best_step);
    remove_from_state(first.step, "keep_best");
    ck_assert_ok(train(DEEPFM, by_loss, &go_on, &second));
    ck_assert_int_eq(second.best_step, first.best_step);
    ck_assert_double_eq(second.best_score, first.best_score);
    end();
}
END_TEST

/* The best of the evaluated steps but `lost`, by what metrics.jsonl says. */
static int64_t second_best(int64_t lost)
{
    double best = -INFINITY;
    int64_t best_step = -1;
    char *metrics = tdm_test_metrics(run);
    for (char *line = strtok(metrics, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        double auc = json_number_value(json_object_get(json, "auc"));
        int64_t step = json_integer_value(json_object_get(json, "step"));
        if (strcmp(json_string_value(json_object_get(json, "event")), "eval") == 0 &&
            step != lost && auc > best) {
            best = auc;
            best_step = step;
        }
        json_decref(json);
    }
    tdm_free(metrics);
    return best_step;
}

START_TEST(test_lost_best)
{
    tdm_train_result first, second;
    begin(1000);
    const char *log = tdm_test_log();
    const char **overrides =
        WITH("train.eval_every_steps=5", "checkpoint.every_steps=5", "checkpoint.keep_last=20",
             "optimizer.sparse.learning_rate=3", eval_override());
    ck_assert_ok(train(DEEPFM, overrides, &from_start, &first));
    ck_assert_int_lt(first.best_step, first.step);
    int64_t next = second_best(first.best_step);
    ck_assert_int_ge(next, 0);
    damage(checkpoint_file(first.best_step, "model.safetensors"));
    ck_assert_ok(train(DEEPFM, overrides, &go_on, &second));
    char warning[64];
    snprintf(warning, sizeof warning, "the best checkpoint, of step %lld, cannot be used",
             (long long)first.best_step);
    ck_assert_ptr_nonnull(strstr(log, warning));
    ck_assert_int_eq(second.best_step, next);
    ck_assert_double_lt(second.best_score, first.best_score);
    ck_assert_int_eq(linked_best(), next);
    end();
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
    begin(1000);
    const char **overrides =
        WITH("train.eval_every_steps=5", "train.log_every_steps=1", eval_override());
    ck_assert_fails(train(DEEPFM, overrides, &control, &result), TDM_E_CANCELLED, "step 8");
    ck_assert_int_eq(result.best_step, 5);
    ck_assert_ok(tdm_folder_remove(checkpoint_file(5, "")));
    /* Stopped before its first step. */
    control.resume = true;
    ck_assert_fails(train(DEEPFM, overrides, &control, &result), TDM_E_CANCELLED, "step 8");
    ck_assert_int_eq(result.best_step, -1);
    ck_assert_int_eq(linked_best(), -1);
    ck_assert_ok(train(DEEPFM, overrides, &go_on, &result));
    ck_assert_int_ge(result.best_step, 10);
    ck_assert_int_eq(linked_best(), result.best_step);
    end();
}
END_TEST

/* ---- starting from another run --------------------------------------------------------------- */

START_TEST(test_init_from)
{
    tdm_train_result first, second;
    char model[400];
    begin(3000);
    const char *log = tdm_test_log();
    ck_assert_ok(train(DEEPFM, WITH("train.epochs=3"), &from_start, &first));
    char other[400];
    snprintf(other, sizeof other, "output.dir=%s/second", folder);
    snprintf(model, sizeof model,
             "{type: deepfm, init_from: %s, mlp: {units: [16, 4], dropout: 0.1}}", run);
    ck_assert_ok(train(model, WITH(other), &from_start, &second));
    ck_assert_ptr_nonnull(strstr(log, "model.init_from: 10 of 13 tensors start from step "));
    ck_assert_double_lt(second.train.logloss, first.train.logloss);
    snprintf(other, sizeof other, "output.dir=%s/third", folder);
    snprintf(model, sizeof model, "{type: logistic_regression, init_from: %s/none}", folder);
    ck_assert_fails(train(model, WITH(other), &from_start, NULL), TDM_E_STATE, "no such run");
    end();
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
    begin(40000);
    char *text = tdm_test_read(data);
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
    ck_assert_fails(
        train(LOGISTIC, WITH("data.train=\"-\"", "train.batch_size=16"), &control, &result),
        TDM_E_CANCELLED, "which is saved");
    ck_assert_int_gt(result.step, 10);
    int64_t step;
    bool found;
    ck_assert_ok(tdm_checkpoint_newest_good(run, &step, &found));
    ck_assert(found);
    ck_assert_int_eq(step, result.step);
    kill(writer, SIGKILL);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    end();
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
    begin(1000);
    ck_assert_fails(
        train(LOGISTIC, WITH("train.eval_every_steps=7", eval_override()), &control, &result),
        TDM_E_CANCELLED, "step 7");
    char *text = tdm_test_read(tdm_test_path(run, "metrics.jsonl"));
    json_t *line = json_loads(strtok(text, "\n"), 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(line, "step")), 5);
    ck_assert_double_eq_tol(result.rows_per_second /
                                json_number_value(json_object_get(line, "rows_per_second")),
                            1, 1e-6);
    json_decref(line);
    tdm_free(text);
    end();
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
    FILE *file = fopen(data, "we");
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
    begin(0);
    write_even_clicks(81920);
    ck_assert_ok(train(DEEPFM,
                       WITH("train.log_every_steps=40", "train.threads=2", "data.header=false",
                            "data.columns=[label,a,b,c,x]"),
                       &control, NULL));
    ck_assert_int_ge(log.count, 30);
    /* A line is one allocation, whatever the number of steps before it. How many windows the
     * pipeline holds at once settles in the first half. */
    for (int i = log.count / 2; i < log.count; i++)
        ck_assert_int_le(log.at[i] - log.at[i - 1], 1);
    end();
}
END_TEST

static tdm_status train_failing_at(int64_t n)
{
    const char *overrides[] = {"train.threads=1", "data.eval={hold_out: 20%}", "train.epochs=2",
                               "checkpoint.every_steps=3"};
    tdm_recipe *recipe = tdm_test_recipe(folder, data, DEEPFM, overrides, 4);
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_memory_fail_at(n, false);
    tdm_status status = tdm_train(recipe, &from_start, NULL);
    tdm_memory_fail_at(0, false);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
    tdm_recipe_free(recipe);
    ck_assert_ok(tdm_folder_remove(run));
    return status;
}

/* Every allocation of a training fails once: it ends with that error, or does without what it was
 * for, and nothing is lost. */
START_TEST(test_out_of_memory_at_every_allocation)
{
    begin(400);
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
    end();
}
END_TEST

START_TEST(test_dry_run)
{
    tdm_train_plan plan;
    tdm_text text = {0};
    begin(20000);
    const char *overrides[] = {"train.epochs=2", eval_override()};
    tdm_recipe *recipe = tdm_test_recipe(folder, data, DEEPFM, overrides, 2);
    ck_assert_ok(tdm_train_plan_make(recipe, &plan));
    ck_assert(!tdm_file_exists(run));
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
    ck_assert_ok(tdm_train(recipe, &from_start, NULL));
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, before);
    ck_assert_int_le(tdm_memory_stats_get().peak_bytes - before, plan.peak_bytes);
    tdm_recipe_free(recipe);
    end();
}
END_TEST

TDM_CHECK_MAIN(test_models_learn, test_bits_depend_on_seed_alone, test_run_folder_is_complete,
               test_a_run_is_not_overwritten, test_two_trainings_never_share_a_folder,
               test_nothing_is_made_where_the_input_is_missing, test_all_records_bad_or_held_out,
               test_too_many_bad_records, test_resuming_an_ended_training_changes_nothing,
               test_resuming_with_another_length, test_what_may_change_on_resume,
               test_what_must_not_change_on_resume, test_changed_input_on_resume,
               test_resume_begins_where_there_is_nothing, test_damaged_checkpoints,
               test_newer_run_folder, test_newer_state, test_exploding_training_is_reported,
               test_report_names_step_rows_and_tensor, test_evaluation_of_a_run,
               test_a_run_of_a_gpu_is_used_on_a_cpu, test_no_best_without_evaluations,
               test_best_by_logloss, test_another_kind_of_best, test_lost_best,
               test_lost_best_without_another, test_init_from,
               test_stopped_while_it_waits_for_standard_input, test_rows_per_second,
               test_steps_allocate_nothing, test_out_of_memory_at_every_allocation, test_dry_run)
