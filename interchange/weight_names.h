/* What the parameters of an encoder (models/encoder.h) are called by others.
 *
 * Sources: the classes of Transformers (models/bert, megatron_bert, modernbert) and
 * google-research/bert (modeling.py, run_pretraining.py, run_classifier.py). All of them lay a
 * matrix out [out, in] as we do, but TensorFlow's "kernel", which is [in, out]. ModernBERT's Wqkv
 * and Wi have our order of rows. */
#ifndef TDM_INTERCHANGE_WEIGHT_NAMES_H
#define TDM_INTERCHANGE_WEIGHT_NAMES_H

#include "models/encoder.h"

/* The classes of Transformers that hold an encoder of ours. */
typedef enum tdm_encoder_family {
    TDM_FAMILY_BERT = 0,
    TDM_FAMILY_MEGATRON_BERT = 1, /* pre-LayerNorm */
    TDM_FAMILY_MODERN_BERT = 2,
} tdm_encoder_family;

/* Whose names. */
typedef enum tdm_weight_naming {
    TDM_NAMING_BERT = 0, /* Hugging Face's; the three are numbered as the families */
    TDM_NAMING_MEGATRON_BERT = 1,
    TDM_NAMING_MODERN_BERT = 2,
    TDM_NAMING_TENSORFLOW = 3,
    TDM_NAMING_OURS = 4,
} tdm_weight_naming;

/* What a parameter is a part of. */
typedef enum tdm_weight_group {
    TDM_GROUP_ENCODER = 0,
    TDM_GROUP_POOLER = 1,
    TDM_GROUP_MASKED = 2,
    TDM_GROUP_PAIRS = 3,
    TDM_GROUP_CLASSIFIER = 4,
} tdm_weight_group;

#define TDM_WEIGHT_NAME_BYTES 128
#define TDM_WEIGHT_RANK       2

/* A tensor of theirs: rows [rows / parts · part, rows / parts · (part + 1)) of a parameter of
 * ours. */
typedef struct tdm_weight {
    char ours[TDM_WEIGHT_NAME_BYTES];
    char theirs[TDM_WEIGHT_NAME_BYTES];
    tdm_weight_group group;
    int part, parts;
    bool transposed; /* theirs is [in, out] */
    bool is_bias;    /* one that options.bias leaves out */
    int64_t layer;   /* -1: of none */
    int rank;
    char sizes[TDM_WEIGHT_RANK]; /* of ours: what tdm_weight_size() is asked for */
} tdm_weight;

/* Calls take() for each tensor that an encoder of so many layers may have, of all heads. */
TDM_MUST_CHECK tdm_status tdm_weight_names_each(tdm_weight_naming naming, int64_t layers,
                                                tdm_status (*take)(void *context,
                                                                   const tdm_weight *weight),
                                                void *context);

/* What the names of the encoder may have before them where a head is there too: "bert.",
 * "model.", or "". */
const char *tdm_weight_prefix(tdm_weight_naming naming);

/* A dimension of a parameter of ours, and in *key the key of the recipe that sets it. */
int64_t tdm_weight_size(char dimension, const tdm_bert_options *options,
                        const tdm_model_inputs *inputs, const char **key);

/* True for tensors that say nothing of their own: position_ids, the decoder's weight where it is
 * tied to the word table, an optimizer's moments. */
bool tdm_weight_is_redundant(tdm_weight_naming naming, const char *name);

#endif
