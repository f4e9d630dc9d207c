/* What a model puts out for a batch, collected in host memory part by part. Private to this
 * folder. */
#ifndef TDM_TRAINER_OUTPUTS_H
#define TDM_TRAINER_OUTPUTS_H

#include "trainer/batch_parts.h"
#include "trainer/task.h"

typedef struct tdm_outputs {
    tdm_model *model; /* borrowed, like the two below */
    const tdm_task *task;
    tdm_backend *backend;
    float *host; /* [rows of the batch, columns], or tokens in their place; NULL: none is wanted */
} tdm_outputs;

/* Memory of the host that they take. */
int64_t tdm_outputs_bytes(const tdm_task *task);

/* Of the task's output, if it has one. The model is allocated. */
TDM_MUST_CHECK tdm_status tdm_outputs_init(tdm_outputs *outputs, tdm_model *model,
                                           const tdm_task *task, tdm_backend *backend);
/* One of 0 bytes is allowed. */
void tdm_outputs_deinit(tdm_outputs *outputs);

/* Copies what the last forward and backward left for these rows of the batch; it is there when the
 * default stream has passed. */
TDM_MUST_CHECK tdm_status tdm_outputs_take(tdm_outputs *outputs, const tdm_batch *batch,
                                           tdm_row_range rows);

/* The first row of the batch, whose outputs were taken, that has a number that is not finite,
 * padding left out; -1: there is none. */
int64_t tdm_outputs_find_non_finite(const tdm_outputs *outputs, const tdm_batch *batch);

#endif
