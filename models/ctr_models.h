/* The options of the CTR models: what a recipe's section `model` binds to. */
#ifndef TDM_MODELS_CTR_MODELS_H
#define TDM_MODELS_CTR_MODELS_H

#include "models/layers.h"

typedef struct tdm_deepfm_options {
    tdm_mlp_options mlp;
    double embedding_init; /* standard deviation of the embeddings' initial values */
} tdm_deepfm_options;

typedef struct tdm_dcn_v2_options {
    int64_t crosses;
    tdm_mlp_options mlp;
    double embedding_init;
} tdm_dcn_v2_options;

/* TDM_E_CONFIG where there is nothing to learn from. */
TDM_MUST_CHECK tdm_status tdm_inputs_check(const tdm_model_inputs *inputs);

#endif
