/* What a training is, beside its tensors: all that a checkpoint's state.json keeps. Private to this
 * folder. */
#ifndef TDM_TRAINER_TRAIN_STATE_H
#define TDM_TRAINER_TRAIN_STATE_H

#include "core/batch.h"
#include "data/bad_records.h"
#include "trainer/metrics.h"
#include "trainer/recipe.h"

#define TDM_STATE_VERSION 1
#define TDM_STATE_FILE    "state.json"

/* The score of a step's evaluation. */
typedef struct tdm_score {
    int64_t step;
    double score;
} tdm_score;

typedef struct tdm_train_state {
    int64_t step; /* updates that were done */
    tdm_position position;
    double share; /* of the epoch, at the position */
    int64_t rows; /* trained on */
    double seconds;
    double learning_rate,
        gradient_norm;       /* of the last step; of dense parameters, before clipping */
    tdm_metrics window;      /* progressive, since the last line of metrics.jsonl */
    tdm_metrics total;       /* progressive, before the window */
    int64_t eval_step;       /* of the last evaluation; -1: none */
    tdm_metrics_result eval; /* before the first one all of it is 0 */
    const tdm_metric *best;  /* what scores are; NULL: there are none */
    int64_t best_step;       /* -1: none */
    double best_score;
    int64_t end_step;  /* where the training ended and was logged as such; -1: not yet */
    tdm_score *scores; /* of all evaluations */
    size_t score_count, score_capacity;
    tdm_bad_record_counts bad;
    int64_t metrics_bytes; /* of metrics.jsonl */
} tdm_train_state;

TDM_MUST_CHECK tdm_status tdm_train_state_init(tdm_train_state *state,
                                               const tdm_metrics_spec *metrics,
                                               const tdm_metric *best);
void tdm_train_state_deinit(tdm_train_state *state);

/* True where a step of this score would be the best; a NaN never is. */
bool tdm_train_state_is_better(const tdm_train_state *state, double score);

/* Notes the score of `eval`, which is of this step; nothing where no best is kept. */
TDM_MUST_CHECK tdm_status tdm_train_state_note_score(tdm_train_state *state);

/* Both ways between the state and a JSON object. Reading: TDM_E_FORMAT naming the key that is
 * missing or wrong, TDM_E_VERSION where a newer tandem wrote it. `best` stays as it is: where
 * the saved scores are of another kind there is no best and there are no scores. */
TDM_MUST_CHECK tdm_status tdm_train_state_save(const tdm_train_state *state, int lanes,
                                               json_t **out);
TDM_MUST_CHECK tdm_status tdm_train_state_restore(tdm_train_state *state, int lanes,
                                                  const json_t *saved);

#endif
