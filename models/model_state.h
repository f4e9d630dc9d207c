/* The inside of a model, for the files that implement model.h. */
#ifndef TDM_MODELS_MODEL_STATE_H
#define TDM_MODELS_MODEL_STATE_H

#include "models/model.h"
#include "models/plan_state.h"

struct tdm_model {
    tdm_backend *backend;
    tdm_plan *plan;
    tdm_model_setup setup;

    bool allocated;
    bool can_train;
    float *dense_values, *dense_gradients;
    float *sparse_values;
    unsigned char *arena;

    bool has_forward;           /* a forward pass has run, */
    bool has_gradient;          /* with training, so that backward may follow, */
    bool was_training;          /* of the last forward */
    const unsigned char *batch; /* on this, */
    tdm_step_scalars *scalars;  /* with these */
};

/* What layers see of a step on `batch`. */
tdm_step tdm_model_step(const tdm_model *model, const unsigned char *batch,
                        tdm_step_scalars *scalars, bool training, tdm_stream *stream);

/* Where a parameter's values lie. */
float *tdm_model_values(const tdm_model *model, const tdm_parameter *parameter);

/* Runs one layer's forward or backward; an error tells its name. */
TDM_MUST_CHECK tdm_status tdm_model_layer_forward(const tdm_model *model, int index,
                                                  const tdm_step *step);
/* Recomputes before, where the layer is the last of a segment. */
TDM_MUST_CHECK tdm_status tdm_model_layer_backward(const tdm_model *model, int index,
                                                   const tdm_step *step);
TDM_MUST_CHECK tdm_status tdm_model_zero_gradients(const tdm_model *model, tdm_stream *stream);

#endif
