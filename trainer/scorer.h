/* Rows of extracted blocks, in order, to probabilities: what evaluations and predictions run. */
#ifndef TDM_TRAINER_SCORER_H
#define TDM_TRAINER_SCORER_H

#include "core/featurizer.h"
#include "models/model.h"

typedef struct tdm_scorer tdm_scorer;

/* What a run of the model gave, in host memory; valid until the scorer's next call. */
typedef struct tdm_scores {
    int64_t rows;
    const float *probabilities; /* [rows] */
    const float *labels;        /* [rows]; 0 where the featurizer looks at none */
    const float *weights;       /* [rows] */
} tdm_scores;

/* All three are borrowed; the model was created with the featurizer's batch layout and allocated,
 * for training or not. A scorer belongs to one thread at a time and owns one batch. */
TDM_MUST_CHECK tdm_status tdm_scorer_create(tdm_model *model, const tdm_featurizer *featurizer,
                                            tdm_backend *backend, tdm_scorer **out);
/* NULL is allowed. */
void tdm_scorer_destroy(tdm_scorer *scorer);

/* Host and device memory that a scorer takes. */
int64_t tdm_scorer_bytes(const tdm_featurizer *featurizer);

/* Puts rows [first, …) of the block into the batch, as many as there is room for: *taken. The block
 * is not needed afterwards. */
TDM_MUST_CHECK tdm_status tdm_scorer_fill(tdm_scorer *scorer, tdm_extract *block, int64_t first,
                                          int64_t *taken);
bool tdm_scorer_is_full(const tdm_scorer *scorer);

/* Forgets the rows in the batch. */
void tdm_scorer_empty(tdm_scorer *scorer);

/* Runs the model on the rows in the batch and empties it. Syncs. */
TDM_MUST_CHECK tdm_status tdm_scorer_run(tdm_scorer *scorer, tdm_scores *out);

#endif
