/* Rows of extracted blocks, in order, through the model: what evaluations and predictions run. */
#ifndef TDM_TRAINER_SCORER_H
#define TDM_TRAINER_SCORER_H

#include "trainer/task.h"

typedef struct tdm_scorer tdm_scorer;

/* All three are borrowed; the model is the task's and allocated, for training or not. A scorer
 * belongs to one thread at a time and owns one batch. */
TDM_MUST_CHECK tdm_status tdm_scorer_create(tdm_model *model, const tdm_task *task,
                                            tdm_backend *backend, tdm_scorer **out);
/* NULL is allowed. */
void tdm_scorer_destroy(tdm_scorer *scorer);

/* Host and device memory that a scorer takes. */
int64_t tdm_scorer_bytes(const tdm_task *task, bool host_memory);

/* Puts rows [first, …) of the block into the batch, as many as there is room for: *taken, of
 * tdm_scorer_rows(). The block is not needed afterwards. */
TDM_MUST_CHECK tdm_status tdm_scorer_fill(tdm_scorer *scorer, tdm_extract *block, int64_t first,
                                          int64_t *taken);
/* Rows that the block of the last fill makes. */
int64_t tdm_scorer_rows(const tdm_scorer *scorer);

/* Forgets the rows in the batch. */
void tdm_scorer_empty(tdm_scorer *scorer);

/* Runs the model on the rows in the batch and empties it. *out, whose batch is NULL where there was
 * none, is valid until the next call. Syncs. */
TDM_MUST_CHECK tdm_status tdm_scorer_run(tdm_scorer *scorer, tdm_outcome *out);

#endif
