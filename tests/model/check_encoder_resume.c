/* Trainings of text that are stopped or killed and resumed end with the bits of one that never
 * was. */
#include "tests/support/check_main.h"
#include "tests/support/resume_rig.h"

#if TDM_TEST_FEWER
#define STOP_STRIDE 23
#define CALL_STRIDE 83
#define KILLS       2
#else
#define STOP_STRIDE 3
#define CALL_STRIDE 17
#define KILLS       10
#endif

#define EVERY_STEP "train.log_every_steps=1"

/* Two passes, with an evaluation now and then, and windows that last longer than a batch. */
static const tdm_resume_case masked_case = {
    .task = TDM_TASK_MLM,
    .overrides = {EVERY_STEP, "train.epochs=2", "data.cache=on", "data.eval={hold_out: 10%}",
                  "train.eval_every_steps=7", "checkpoint.every_steps=10", "checkpoint.keep_last=2",
                  "optimizer.schedule={type: linear, warmup_steps: 5}"},
};

static const tdm_resume_case pairs_case = {
    .task = TDM_TASK_MLM,
    .overrides = {EVERY_STEP, "train.epochs=2", "data.cache=off", "text.sequences=segment_pairs",
                  "text.masking.unit=whole_word", "train.micro_batch_tokens=200",
                  "train.recompute=true", "checkpoint.every_steps=9"},
};

static const tdm_resume_case stream_case = {
    .task = TDM_TASK_MLM,
    .kind = TDM_RESUME_GZIP,
    .overrides = {EVERY_STEP, "train.epochs=2", "data.cache=off", "text.batch=padded",
                  "checkpoint.every_steps=10"},
};

static const tdm_resume_case labelled_case = {
    .task = TDM_TASK_CLASSIFY,
    .documents = 1000,
    .overrides = {EVERY_STEP, "train.epochs=2", "labels.classes=auto", "data.eval={hold_out: 10%}",
                  "train.eval_every_steps=6", "checkpoint.every_steps=10"},
};

/* Another length begins a new epoch, another size of steps does not; evaluations and checkpoints
 * meet the first step of a phase. */
static const tdm_resume_case phases_case = {
    .task = TDM_TASK_MLM,
    .overrides = {EVERY_STEP,
                  "train.phases=[{steps: 12, max_length: 16}, {steps: 9, micro_batch_tokens: 64},"
                  " {steps: 8, batch_tokens: 1024}, {steps: 11, max_length: 64}]",
                  "data.eval={hold_out: 10%}", "train.eval_every_steps=7",
                  "checkpoint.every_steps=12", "checkpoint.keep_last=9",
                  "optimizer.schedule={type: linear, warmup_steps: 5}"},
};

START_TEST(masked_text_stopped_and_resumed)
{
    tdm_resume_test_stops(&masked_case, 0, STOP_STRIDE, NULL);
    tdm_resume_test_stops(&pairs_case, 0, STOP_STRIDE, "train.threads=1");
    tdm_resume_test_stops(&stream_case, 0, 2 * STOP_STRIDE, "train.threads=3");
}
END_TEST

START_TEST(labelled_text_stopped_and_resumed)
{
    tdm_resume_test_stops(&labelled_case, 0, STOP_STRIDE, NULL);
}
END_TEST

/* At every step. */
START_TEST(phases_stopped_and_resumed)
{
    tdm_resume_test_stops(&phases_case, -0.1, TDM_TEST_FEWER ? 11 : 1, NULL);
}
END_TEST

START_TEST(stopped_many_times)
{
    tdm_resume_test_many_stops(&masked_case, STOP_STRIDE);
    tdm_resume_test_many_stops(&phases_case, STOP_STRIDE);
}
END_TEST

/* At this rate an early step is the best. */
START_TEST(stopped_in_an_evaluation)
{
    tdm_resume_case kind = masked_case;
    kind.overrides[7] = "optimizer={learning_rate: 2, schedule: {type: constant}}";
    tdm_resume_test_stop_in_evaluation(&kind);
}
END_TEST

START_TEST(killed_at_calls)
{
    tdm_resume_test_kills_at_calls(&masked_case, 1000, CALL_STRIDE);
    tdm_resume_test_kills_at_calls(&phases_case, 1000, CALL_STRIDE);
}
END_TEST

START_TEST(killed_at_random_instants)
{
    tdm_resume_test_kills(&phases_case, KILLS);
    tdm_resume_test_kills(&labelled_case, KILLS);
}
END_TEST

START_TEST(full_disk)
{
    tdm_resume_test_full_disk(&phases_case, 2 * CALL_STRIDE);
}
END_TEST

TDM_CHECK_MAIN(masked_text_stopped_and_resumed, labelled_text_stopped_and_resumed,
               phases_stopped_and_resumed, stopped_many_times, stopped_in_an_evaluation,
               killed_at_calls, killed_at_random_instants, full_disk)
