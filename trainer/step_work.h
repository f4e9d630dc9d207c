/* What the steps of a training are made of, and how much work that is. Private to this folder, but
 * for the benchmark of trainings. */
#ifndef TDM_TRAINER_STEP_WORK_H
#define TDM_TRAINER_STEP_WORK_H

#include "trainer/session.h"

typedef struct tdm_step_work {
    int64_t steps;
    int64_t parts; /* that the model took at a time, see batch_parts.h; of ctr the same */
    int64_t rows;  /* of text: sequences */
    int64_t tokens, predictions; /* of text; padding is none */
    /* Floating-point operations, of text, counted as models/encoder.h does: of matrix products
     * only, on what is there, whatever else is computed. */
    double flops;
    double attention_flops; /* of these: attention's own products */
} tdm_step_work;

/* Adds a step on this batch; not its parts. */
void tdm_step_work_add(tdm_step_work *work, const tdm_task *task, const tdm_batch *batch);

/* What the steps of a session will be made of, from its first one to the end of its epochs or to
 * train.max_steps. Reads the whole input. */
TDM_MUST_CHECK tdm_status tdm_step_work_count(const tdm_session *session, const atomic_bool *stop,
                                              tdm_step_work *out);

#endif
