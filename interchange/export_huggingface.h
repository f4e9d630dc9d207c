/* A trained encoder as a folder that Transformers loads:
 *
 *   config.json          the class with the same mathematics: Bert (model.norm: post), MegatronBert
 *                        (pre, learned positions) or ModernBert (pre, rotary positions, gated), for
 *                        the head that the model has
 *   model.safetensors    the weights, as floats
 *   tokenizer.json, vocab.txt, tokenizer_config.json, special_tokens_map.json
 *
 * Where model.types is false Bert and MegatronBert get embeddings of segments that are zero. */
#ifndef TDM_INTERCHANGE_EXPORT_HUGGINGFACE_H
#define TDM_INTERCHANGE_EXPORT_HUGGINGFACE_H

#include "core/safetensors.h"
#include "models/encoder.h"
#include "tandem/text.h"

typedef struct tdm_export {
    const tdm_bert_options *options;
    const tdm_model_inputs *inputs;    /* vocabulary, max_length, head, classes */
    const tdm_safetensors *parameters; /* model.safetensors of a checkpoint */
    const tdm_tokenizer *tokenizer;
    const char *const *class_names; /* [inputs->classes]; NULL: LABEL_0, LABEL_1, ... */
} tdm_export;

/* Writes the folder whole or not at all. One that is there is replaced where it is empty, or with
 * `force` where it holds nothing but files of these names; else TDM_E_ARG. So are FOLDER.tmp, which
 * is written first, and FOLDER.replaced, which holds the old one meanwhile. TDM_E_UNSUPPORTED,
 * naming the settings, where no class computes the same; TDM_E_FORMAT where the parameters lack
 * one or it has another shape. */
TDM_MUST_CHECK tdm_status tdm_export_huggingface(const tdm_export *from, const char *folder,
                                                 bool force);

#endif
