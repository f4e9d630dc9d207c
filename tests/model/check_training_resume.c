/* What a resumed training accepts and refuses: other recipes and inputs, damaged and newer
 * files. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/clicks.h"
#include "trainer/checkpoint.h"
#include "trainer/run_model.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utime.h>

START_TEST(test_resuming_an_ended_training_changes_nothing)
{
    tdm_train_result first, second;
    tdm_clicks_begin(1000);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, WITH(tdm_clicks_eval()), &tdm_from_start, &first));
    char *before = tdm_test_metrics(tdm_clicks.run);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, WITH(tdm_clicks_eval()), &tdm_go_on, &second));
    char *after = tdm_test_metrics(tdm_clicks.run);
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(second.step, first.step);
    ck_assert_int_eq(second.resumed_step, first.step);
    ck_assert_double_eq(tdm_metrics_result_get(&second.eval, "auc"),
                        tdm_metrics_result_get(&first.eval, "auc"));
    ck_assert_double_eq(tdm_metrics_result_get(&second.train, "logloss"),
                        tdm_metrics_result_get(&first.train, "logloss"));
    tdm_free(before);
    tdm_free(after);
    tdm_clicks_end();
}
END_TEST

START_TEST(test_resuming_with_another_length)
{
    tdm_train_result result;
    tdm_clicks_begin(1000);
    const char *log = tdm_test_log();
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, &result));
    int64_t steps = result.step;
    ck_assert_ok(tdm_clicks_train(
        LOGISTIC, WITH("train.epochs=2", "optimizer.schedule.type=constant"), &tdm_go_on, &result));
    ck_assert_int_gt(result.step, steps);
    ck_assert_int_eq(result.rows, 2000);
    ck_assert_ptr_nonnull(strstr(log, "train.epochs: 1 before, 2 now"));
    char most[64];
    snprintf(most, sizeof most, "train.max_steps=%lld", (long long)result.step + 3);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, WITH("train.epochs=3", most), &tdm_go_on, &result));
    ck_assert_int_eq(result.step, atoll(strchr(most, '=') + 1));
    tdm_clicks_end();
}
END_TEST

START_TEST(test_what_may_change_on_resume)
{
    tdm_clicks_begin(1000);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL));
    ck_assert_ok(tdm_clicks_train(LOGISTIC,
                                  WITH("train.threads=3", "train.device=auto",
                                       "checkpoint.every_steps=3", "checkpoint.keep_last=7",
                                       "train.log_every_steps=2", tdm_clicks_eval()),
                                  &tdm_go_on, NULL));
    tdm_clicks_end();
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
    tdm_clicks_begin(1000);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(changes[i], "="), changes[i]);
        ck_assert_fails(tdm_clicks_train(LOGISTIC, WITH(changes[i]), &tdm_go_on, NULL),
                        TDM_E_CONFIG, key);
        ck_assert_fails(tdm_clicks_train(LOGISTIC, WITH(changes[i]), &tdm_go_on, NULL),
                        TDM_E_CONFIG, "before");
    }
    ck_assert_fails(tdm_clicks_train(DEEPFM, NULL, &tdm_go_on, NULL), TDM_E_CONFIG, "model.type");
    ck_assert_fails(
        tdm_clicks_train(LOGISTIC, WITH("seed=5", "train.clip_norm=1"), &tdm_go_on, NULL),
        TDM_E_CONFIG, "seed: 3 before, 5 now; train.clip_norm: 0 before, 1 now");
    tdm_clicks_end();
}
END_TEST

START_TEST(test_changed_input_on_resume)
{
    tdm_clicks_begin(1000);
    const char *log = tdm_test_log();
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL));
    const struct utimbuf long_ago = {.actime = 1000, .modtime = 1000};
    ck_assert_int_eq(utime(tdm_clicks.data, &long_ago), 0);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_go_on, NULL));
    ck_assert_ptr_nonnull(strstr(log, "clicks.csv: was changed or copied"));
    tdm_test_append(tdm_clicks.data, "1,a1,b1,c1,0.5\n");
    ck_assert_fails(tdm_clicks_train(LOGISTIC, NULL, &tdm_go_on, NULL), TDM_E_CONFIG,
                    "clicks.csv: has ");
    tdm_clicks_end();
}
END_TEST

START_TEST(test_resume_begins_where_there_is_nothing)
{
    tdm_train_result result;
    tdm_clicks_begin(1000);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_go_on, &result));
    ck_assert_int_eq(result.resumed_step, -1);
    /* A run that was killed before its first checkpoint, with another recipe. */
    ck_assert_ok(tdm_folder_remove(tdm_test_path(tdm_clicks.run, "checkpoints")));
    ck_assert_ok(tdm_clicks_train(LOGISTIC, WITH("seed=9"), &tdm_go_on, &result));
    ck_assert_int_eq(result.resumed_step, -1);
    char *metrics = tdm_test_metrics(tdm_clicks.run);
    ck_assert_ptr_eq(strstr(strstr(metrics, "\"end\"") + 1, "\"end\""), NULL);
    tdm_free(metrics);
    tdm_clicks_end();
}
END_TEST

START_TEST(test_damaged_checkpoints)
{
    tdm_train_result result;
    tdm_clicks_begin(2000);
    const char *log = tdm_test_log();
    const char **overrides = WITH("checkpoint.every_steps=10");
    ck_assert_ok(tdm_clicks_train(DEEPFM, overrides, &tdm_from_start, &result));
    int64_t last = result.step;
    uint64_t bits = tdm_clicks_hash(last);
    tdm_clicks_damage(tdm_clicks_file(last, "model.safetensors"));
    ck_assert_ok(tdm_clicks_train(DEEPFM, overrides, &tdm_go_on, &result));
    ck_assert_int_eq(result.resumed_step, 40);
    ck_assert_uint_eq(tdm_clicks_hash(last), bits);
    ck_assert_ptr_nonnull(strstr(log, "model.safetensors"));
    tdm_checkpoint_list list;
    ck_assert_ok(tdm_checkpoint_list_read(tdm_clicks.run, &list));
    for (int64_t i = 0; i < list.count; i++)
        tdm_clicks_damage(tdm_clicks_file(list.steps[i], "state.json"));
    tdm_checkpoint_list_free(&list);
    ck_assert_fails(tdm_clicks_train(DEEPFM, overrides, &tdm_go_on, NULL), TDM_E_FORMAT,
                    "state.json");
    tdm_clicks_end();
}
END_TEST

START_TEST(test_newer_run_folder)
{
    tdm_clicks_begin(500);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, NULL));
    static const char text[] = "# tandem run folder, format 2; made by tandem 9.0\nnew_key: 1\n";
    ck_assert_ok(
        tdm_file_put(tdm_test_path(tdm_clicks.run, "recipe.yaml"), text, sizeof text - 1, NULL));
    ck_assert_fails(tdm_clicks_train(LOGISTIC, NULL, &tdm_go_on, NULL), TDM_E_VERSION, "newer");
    tdm_run *opened;
    const tdm_run_options options = {.use = TDM_USE_EVALUATION};
    ck_assert_fails(tdm_run_open(tdm_clicks.run, &options, &opened), TDM_E_VERSION, "newer");
    tdm_clicks_end();
}
END_TEST

START_TEST(test_newer_state)
{
    tdm_train_result result;
    tdm_clicks_begin(500);
    ck_assert_ok(tdm_clicks_train(LOGISTIC, NULL, &tdm_from_start, &result));
    char *path = strdup(tdm_clicks_file(result.step, "state.json"));
    json_t *state = json_load_file(path, 0, NULL);
    json_object_set_new(state, "version", json_integer(2));
    char *text = json_dumps(state, 0);
    json_decref(state);
    tdm_checkpoint_writer *writer;
    ck_assert_ok(tdm_checkpoint_writer_begin(tdm_clicks.run, result.step + 1, &writer));
    ck_assert_ok(tdm_checkpoint_writer_put(writer, "state.json", text, strlen(text)));
    ck_assert_ok(tdm_checkpoint_writer_commit(writer));
    tdm_checkpoint_writer_close(writer);
    ck_assert_fails(tdm_clicks_train(LOGISTIC, NULL, &tdm_go_on, NULL), TDM_E_VERSION, "newer");
    free(text);
    free(path);
    tdm_clicks_end();
}
END_TEST

TDM_CHECK_MAIN(test_resuming_an_ended_training_changes_nothing, test_resuming_with_another_length,
               test_what_may_change_on_resume, test_what_must_not_change_on_resume,
               test_changed_input_on_resume, test_resume_begins_where_there_is_nothing,
               test_damaged_checkpoints, test_newer_run_folder, test_newer_state)
