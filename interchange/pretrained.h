/* A model of another program as the beginning of a training: a folder of Hugging Face, or a
 * checkpoint of google-research/bert.
 *
 *   config.json or bert_config.json                (pretrained_config.h)
 *   the weights                                    (pretrained_tensors.h)
 *   vocab.txt or tokenizer.json, where it has one  what the rows of the word table are of
 *   tokenizer_config.json, where it has one        how vocab.txt is to be read */
#ifndef TDM_INTERCHANGE_PRETRAINED_H
#define TDM_INTERCHANGE_PRETRAINED_H

#include "core/backend.h"
#include "interchange/pretrained_config.h"
#include "interchange/pretrained_tensors.h"
#include "tandem/text.h"

typedef struct tdm_pretrained {
    tdm_pretrained_config config;
    tdm_pretrained_tensors *tensors; /* NULL: only what stands beside the weights was opened */
    tdm_tokenizer *tokenizer;        /* NULL: the folder has none */
    char *tokenizer_path;            /* of its file */
    bool is_ours; /* the tensors are called as our parameters are: a run's checkpoint */
} tdm_pretrained;

/* *found: a folder that holds config.json or bert_config.json, or a path in one. */
TDM_MUST_CHECK tdm_status tdm_pretrained_find(const char *path, bool *found);

/* Opens a folder, or a checkpoint in it: "uncased_L-4_H-256_A-4/bert_model.ckpt". Nothing is read
 * of the weights yet. `settings` are those of vocab.txt where nothing beside it says them; NULL:
 * the defaults. On failure nothing is left to close. */
TDM_MUST_CHECK tdm_status tdm_pretrained_open(const char *path,
                                              const tdm_tokenizer_settings *settings,
                                              tdm_pretrained *out);

/* The same without the weights, which need not be there. */
TDM_MUST_CHECK tdm_status tdm_pretrained_open_settings(const char *path,
                                                       const tdm_tokenizer_settings *settings,
                                                       tdm_pretrained *out);

/* One of zeros is allowed. */
void tdm_pretrained_close(tdm_pretrained *pretrained);

/* What became of the weights. */
typedef struct tdm_pretrained_report {
    int loaded; /* parameters */
    int kept;   /* parameters of heads that the checkpoint lacks: they keep what they held */
    int unused; /* tensors that no parameter is of */
    int64_t new_tokens; /* rows that are means of others */
    int64_t left_out;   /* tokens that ours lacks */
} tdm_pretrained_report;

/* Fills an encoder's parameters (models/encoder.h) on the device. The options must be those of
 * the checkpoint, see tdm_pretrained_config_check(). Rows of the word table and of the masked
 * head's bias go by token where the folder has a tokenizer (vocabulary_rows.h); a word table with
 * more rows than tokens has lost nothing. A classifier of another number of classes is not taken.
 *
 * TDM_E_FORMAT for a checkpoint that lacks a part of the encoder, TDM_E_CONFIG naming tensor,
 * both shapes and the key of the recipe where a shape does not fit, TDM_E_DATA where the folder
 * has no vocabulary and the word table another number of rows. All of that is found before the
 * first parameter is written. What was kept, unused or new is told by tdm_info(). Syncs. */
TDM_MUST_CHECK tdm_status tdm_pretrained_load(const tdm_pretrained *pretrained,
                                              const tdm_bert_options *options,
                                              const tdm_model_inputs *inputs,
                                              const tdm_tokenizer *tokenizer, tdm_backend *backend,
                                              const tdm_saved_tensor *parameters, int count,
                                              tdm_pretrained_report *report);

/* The same for a model that is to answer, not to train: all of its parameters must be there,
 * TDM_E_FORMAT naming one that is not, and nothing is told. */
TDM_MUST_CHECK tdm_status tdm_pretrained_load_all(const tdm_pretrained *pretrained,
                                                  const tdm_bert_options *options,
                                                  const tdm_model_inputs *inputs,
                                                  const tdm_tokenizer *tokenizer,
                                                  tdm_backend *backend,
                                                  const tdm_saved_tensor *parameters, int count);

#endif
