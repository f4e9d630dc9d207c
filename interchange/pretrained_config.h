/* What a checkpoint of another program says of its model: config.json of Transformers' BERT,
 * MegatronBERT and ModernBERT, and bert_config.json of google-research/bert, as options of ours.
 *
 * Google's "gelu" is taken for the exact one, as Transformers does it for the same checkpoints. */
#ifndef TDM_INTERCHANGE_PRETRAINED_CONFIG_H
#define TDM_INTERCHANGE_PRETRAINED_CONFIG_H

#include "interchange/weight_names.h"

typedef struct tdm_pretrained_config {
    char *path; /* of the file */
    tdm_encoder_family family;
    tdm_bert_options
        options;        /* `pooler` is not said by these files, and left at the recipe's default */
    int64_t vocabulary; /* rows of the word table */
    bool tied;          /* the decoder's weight is the word table */
} tdm_pretrained_config;

/* Reads FOLDER/config.json, or where that is not there FOLDER/bert_config.json. TDM_E_DATA where
 * there is neither, TDM_E_FORMAT for what is damaged, TDM_E_UNSUPPORTED for another model and for
 * settings that no option of ours holds, named with their values. */
TDM_MUST_CHECK tdm_status tdm_pretrained_config_read(const char *folder,
                                                     tdm_pretrained_config *out);
void tdm_pretrained_config_free(tdm_pretrained_config *config);

/* Sets those options of a recipe's section `model` that it does not give (NULL: all of them). */
void tdm_pretrained_config_fill(const tdm_pretrained_config *config, const tdm_config_node *model,
                                tdm_bert_options *options);

/* TDM_E_CONFIG, with the place of the section, naming each option that makes another function of
 * the same weights, with both values. Dropout, the initializer and how classifiers pool are the
 * recipe's affair. `max_length`: text.max_length. */
TDM_MUST_CHECK tdm_status tdm_pretrained_config_check(const tdm_pretrained_config *config,
                                                      const tdm_config_node *model,
                                                      const tdm_bert_options *options,
                                                      int64_t max_length);

/* Transformers' model.type of a family: "bert". */
const char *tdm_encoder_family_name(tdm_encoder_family family);

/* hidden_act, as it is written. */
const char *tdm_hidden_act_name(int activation);

#endif
