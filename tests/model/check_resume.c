/* Trainings that are stopped or killed and resumed end with the bits of one that never was. */
#include "core/file.h"
#include "tests/support/check_main.h"
#include "tests/support/resume_rig.h"
#include "tests/support/same_run.h"
#include "tests/support/training.h"

#include <limits.h>
#include <stdio.h>

#if TDM_TEST_FEWER
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

static const tdm_resume_case plain_case = {
    .model = LOGISTIC,
    .overrides = {"train.epochs=2", "train.threads=1", "data.cache=off",
                  "checkpoint.every_steps=16"},
};

static const tdm_resume_case full_case = {
    .model = DEEPFM,
    .overrides = {"train.epochs=3", "train.threads=4", "data.cache=on", "data.eval={hold_out: 10%}",
                  "train.eval_every_steps=15", "checkpoint.every_steps=20",
                  "checkpoint.keep_last=2", "optimizer.schedule={type: cosine, warmup_steps: 10}"},
};

/* Ends with a save of the last step before what is logged at the end. */
static const tdm_resume_case dense_case = {
    .model = DEEPFM,
    .overrides = {"train.threads=1", "checkpoint.every_steps=1", "data.eval={hold_out: 10%}",
                  "checkpoint.keep_last=1"},
};

/* Its last step is the best and is saved twice: as such, and with what is logged at the end. */
static const tdm_resume_case best_case = {
    .model = DEEPFM,
    .overrides = {"train.threads=1", "train.batch_size=512", "train.eval_every_steps=1",
                  "data.eval={hold_out: 10%}"},
};

/* Two passes over a stream, the first of which is not cached. */
static const tdm_resume_case stream_case = {
    .model = DEEPFM,
    .kind = TDM_RESUME_GZIP,
    .overrides = {"train.epochs=2", "train.threads=2", "data.cache=off",
                  "checkpoint.every_steps=12", "data.eval={hold_out: 10%}"},
};

static const tdm_resume_case stdin_case = {
    .model = DEEPFM,
    .kind = TDM_RESUME_STDIN,
    .overrides = {"train.threads=2", "checkpoint.every_steps=12"},
};

/* The second pass reads the cache that the first has written. */
static const tdm_resume_case cached_stdin_case = {
    .model = LOGISTIC,
    .kind = TDM_RESUME_STDIN,
    .overrides = {"train.epochs=2", "train.threads=2", "checkpoint.every_steps=12"},
};

/* ---- stopping -------------------------------------------------------------------------------- */

START_TEST(test_stopped_and_resumed)
{
    tdm_resume_test_stops(&plain_case, 0, STOP_STRIDE, NULL);
    tdm_resume_test_stops(&full_case, 0, STOP_STRIDE, NULL);
    tdm_resume_test_stops(&stream_case, 0, STOP_STRIDE, NULL);
    tdm_resume_test_stops(&stdin_case, 0, STOP_STRIDE, NULL);
    tdm_resume_test_stops(&cached_stdin_case, 0.5, STOP_STRIDE, NULL);
}
END_TEST

START_TEST(test_resumed_on_other_threads)
{
    tdm_resume_test_stops(&plain_case, 0, STOP_STRIDE, "train.threads=3");
    tdm_resume_test_stops(&full_case, 0, STOP_STRIDE, "train.threads=1");
}
END_TEST

/* Half a pass over standard input makes no cache, so that there would be no second one. */
START_TEST(test_first_pass_of_standard_input_needs_its_cache)
{
    tdm_resume_case test = tdm_resume_begin(&cached_stdin_case);
    char folder[512];
    snprintf(folder, sizeof folder, "%s/stopped", test.folder);
    tdm_test_stop stop = {.event = TDM_EVENT_LOG, .step = 10};
    const tdm_train_control control = tdm_test_stopping(&stop, false);
    ck_assert_fails(tdm_resume_train(&test, folder, NULL, &control, NULL), TDM_E_CANCELLED,
                    "resume");
    ck_assert_ok(tdm_folder_remove(tdm_test_path(folder, "cache")));
    ck_assert_fails(tdm_resume_train(&test, folder, NULL, &tdm_go_on, NULL), TDM_E_CONFIG,
                    "only once");
    tdm_resume_end(&test);
}
END_TEST

START_TEST(test_stopped_many_times)
{
    tdm_resume_test_many_stops(&full_case, STOP_STRIDE / 4);
}
END_TEST

/* At this rate an early step is the best. */
START_TEST(test_stopped_in_an_evaluation)
{
    tdm_resume_case kind = full_case;
    kind.overrides[8] = "optimizer.sparse.learning_rate=3";
    tdm_resume_test_stop_in_evaluation(&kind);
}
END_TEST

/* ---- killing --------------------------------------------------------------------------------- */

START_TEST(test_killed_at_every_call)
{
    tdm_resume_test_kills_at_calls(&plain_case, INT_MAX, CALL_STRIDE);
}
END_TEST

START_TEST(test_killed_at_every_call_with_evaluations)
{
    tdm_resume_test_kills_at_calls(&full_case, INT_MAX, 3 * CALL_STRIDE);
    tdm_resume_test_kills_at_calls(&dense_case, 100, CALL_STRIDE);
    tdm_resume_test_kills_at_calls(&best_case, 100, CALL_STRIDE);
}
END_TEST

START_TEST(test_killed_at_random_instants)
{
    tdm_resume_test_kills(&full_case, KILLS);
    tdm_resume_test_kills(&stream_case, KILLS / 4);
    tdm_resume_test_kills(&stdin_case, KILLS / 4);
}
END_TEST

/* ---- a full disk ----------------------------------------------------------------------------- */

START_TEST(test_full_disk_at_every_call)
{
    tdm_resume_test_full_disk(&plain_case, CALL_STRIDE);
}
END_TEST

TDM_CHECK_MAIN(test_stopped_and_resumed, test_resumed_on_other_threads,
               test_first_pass_of_standard_input_needs_its_cache, test_stopped_many_times,
               test_stopped_in_an_evaluation, test_killed_at_every_call,
               test_killed_at_every_call_with_evaluations, test_killed_at_random_instants,
               test_full_disk_at_every_call)
