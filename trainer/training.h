/* A running training, and what its files do. Private to this folder.
 *
 *   train.c           begin or resume, the loop, the end
 *   train_step.c      a step, and the report of one whose numbers went wrong
 *   train_events.c    lines of metrics.jsonl, evaluations, progress
 *   train_save.c      checkpoints: writing one, going on from one
 *   train_resume.c    what may differ between a run and the recipe that resumes it */
#ifndef TDM_TRAINER_TRAINING_H
#define TDM_TRAINER_TRAINING_H

#include "trainer/batch_feed.h"
#include "trainer/evaluate.h"
#include "trainer/outputs.h"
#include "trainer/run_folder.h"
#include "trainer/session.h"
#include "trainer/step_work.h"
#include "trainer/train_state.h"
#include "trainer/trainer.h"

/* What progress is told by, beside the state. */
typedef struct tdm_progress {
    double start;                    /* of this process, by the clock */
    double seconds_before;           /* of the training, before this process */
    double start_progress;           /* of the training, where this process took over */
    double pause;                    /* seconds of evaluations and checkpoints since then */
    int64_t full_steps;              /* that found the ring full, since then */
    int64_t read_tokens, cut_tokens; /* of text, in the phases of this process that have ended */
    tdm_step_work work;              /* since then */
    tdm_train_pace told;   /* when the monitor was told of a step last, since the phase began */
    tdm_train_pace logged; /* likewise when a line was logged last */
    tdm_train_pace total;  /* of this process, up to that line */
    bool has_window;
    tdm_metrics_result window; /* of the last line */
    tdm_train_status status;   /* what the monitor sees */
} tdm_progress;

typedef struct tdm_training {
    tdm_recipe *recipe;
    const tdm_train_control *control;
    tdm_session session;
    tdm_run_folder *folder;
    tdm_optimizer *optimizer;
    tdm_scorer *scorer; /* NULL: no evaluation */
    tdm_metrics eval_metrics;
    bool eval_told;         /* its bad records were told */
    const tdm_metric *best; /* that checkpoints are kept by; NULL: none */
    tdm_pipeline *pipeline;
    tdm_batch_feed feed;
    tdm_bad_record_log *bad;
    tdm_step_scalars *device_scalars;
    tdm_step_scalars scalars;
    tdm_outputs outputs;
    tdm_batch_parts *parts;
    tdm_train_state state;
    int64_t phase;        /* of the recipe, in force */
    int64_t resumed_step; /* where the phase went on; -1: began anew */
    int64_t resumed_from; /* where this process did */
    int64_t saved_step;   /* -1: none */
    double saved_at;
    tdm_progress progress;
} tdm_training;

static inline bool tdm_training_is_stopped(const tdm_training *training)
{
    const atomic_bool *stop = training->control->stop;
    return stop != NULL && atomic_load(stop);
}

/* Time that is not the steps'. */
static inline void tdm_training_add_pause(tdm_training *training, double seconds)
{
    training->progress.pause += seconds;
}

/* The share of the whole training that is done; NaN where it is not known. */
double tdm_training_progress(const tdm_training *training);

/* Seconds of the whole training. */
double tdm_training_seconds(const tdm_training *training);

/* ---- train_step.c ---------------------------------------------------------------------------- */

/* Trains on a batch. The state moves on only where all numbers are finite. */
TDM_MUST_CHECK tdm_status tdm_training_step(tdm_training *training, const tdm_fed_batch *batch);

/* ---- train_events.c -------------------------------------------------------------------------- */

/* Logs the window of progressive metrics and begins the next. */
TDM_MUST_CHECK tdm_status tdm_training_log_window(tdm_training *training);
TDM_MUST_CHECK tdm_status tdm_training_log_epoch(tdm_training *training);
TDM_MUST_CHECK tdm_status tdm_training_log_end(tdm_training *training);

/* Evaluates at this step and notes whether it is the best. */
TDM_MUST_CHECK tdm_status tdm_training_evaluate(tdm_training *training);

/* What was done up to now, to be compared with later. */
tdm_train_pace tdm_training_pace(const tdm_training *training);

/* The share of the tokens read by this process that were left out; NaN where there are none. */
double tdm_training_cut_share(const tdm_training *training);
/* Keeps what was read: the phase is over, and its featurizer goes. */
void tdm_training_keep_counts(tdm_training *training);

/* Progressive metrics over the whole training. */
TDM_MUST_CHECK tdm_status tdm_training_total(tdm_training *training, tdm_metrics_result *out);

void tdm_training_tell(tdm_training *training, tdm_train_event event);
/* Where it is time. */
void tdm_training_tell_step(tdm_training *training);

/* ---- train_save.c ---------------------------------------------------------------------------- */

/* Saves a checkpoint of this step, moves the link to the best and deletes old ones. */
TDM_MUST_CHECK tdm_status tdm_training_save(tdm_training *training);

/* Restores the checkpoint of `step`: tensors, state, files. */
TDM_MUST_CHECK tdm_status tdm_training_restore(tdm_training *training, int64_t step);

/* ---- train_resume.c -------------------------------------------------------------------------- */

/* Compares the recipe with the run's: TDM_E_CONFIG naming every difference that would not go on
 * with the same training; notices of the others. */
TDM_MUST_CHECK tdm_status tdm_recipe_check_resume(const tdm_recipe *saved,
                                                  const tdm_recipe *recipe);

#endif
