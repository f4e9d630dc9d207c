/* The encoders of text tasks, and their options. */
#ifndef TDM_MODELS_TEXT_MODELS_H
#define TDM_MODELS_TEXT_MODELS_H

#include "models/model.h"

/* The sizes of a BERT (Devlin et al., 2019, arXiv 1810.04805). */
typedef struct tdm_bert_options {
    int64_t layers;
    int64_t hidden; /* a multiple of heads */
    int64_t heads;
    int64_t intermediate; /* units of the feed-forward layers; 0: 4 * hidden */
    double dropout;       /* of embeddings, attention and layers */
} tdm_bert_options;

/* Not built yet: build answers TDM_E_UNSUPPORTED. */
extern const tdm_model_type tdm_bert;

/* All of them, ended by NULL. */
extern const tdm_model_type *const tdm_text_models[];

#endif
