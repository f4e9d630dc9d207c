/* The inside of a model, for the files that implement model.h. */
#ifndef TDM_MODELS_MODEL_STATE_H
#define TDM_MODELS_MODEL_STATE_H

#include "models/model.h"
#include "models/plan_state.h"

struct tdm_model {
    tdm_backend *backend;
    tdm_plan *plan;
    uint64_t seed;
    tdm_value logits;
    int labels;            /* a tensor of the batch; -1: `no_labels` stands for it */
    tdm_scratch no_labels; /* zeros */
    tdm_scratch probabilities;

    bool allocated;
    bool can_train;
    float *dense_values, *dense_gradients;
    float *sparse_values;
    unsigned char *arena;

    bool has_forward;           /* a forward pass has run, */
    bool has_gradient;          /* with training, so that backward may follow, */
    const unsigned char *batch; /* on this */
};

/* What layers see of a step on `batch`. */
tdm_step tdm_model_step(const tdm_model *model, const unsigned char *batch,
                        tdm_step_scalars *scalars, bool training, tdm_stream *stream);

/* Where a parameter's values lie. */
float *tdm_model_values(const tdm_model *model, const tdm_parameter *parameter);

#endif
