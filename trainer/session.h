/* The parts of a training that are there before its first step: what the recipe says, opened and
 * planned. Private to this folder, but for the benchmark of trainings. */
#ifndef TDM_TRAINER_SESSION_H
#define TDM_TRAINER_SESSION_H

#include "data/extract.h"
#include "data/pipeline.h"
#include "trainer/task.h"

#define TDM_RING_DEPTH 4 /* batches */

typedef struct tdm_session {
    tdm_recipe *recipe; /* borrowed */
    tdm_pool *pool;
    tdm_backend *backend;
    tdm_backend_properties properties;
    tdm_input *input;
    tdm_task task; /* of training; evaluations use it too */
    tdm_extractor *extractor;
    tdm_input *eval_input;         /* NULL: none, or hold_out */
    tdm_extractor *eval_extractor; /* NULL: no evaluation */
    tdm_model *model;              /* planned, not allocated */
    char *cache_path;              /* NULL: no cache */
} tdm_session;

/* Opens the inputs and plans the model. Checks the recipe for training first. On failure nothing is
 * left to free. */
TDM_MUST_CHECK tdm_status tdm_session_init(tdm_session *session, tdm_recipe *recipe,
                                           const atomic_bool *stop);
void tdm_session_deinit(tdm_session *session);

/* The pipeline's options, from the beginning on. */
tdm_pipeline_options tdm_session_pipeline(const tdm_session *session);

#endif
