/* Encoders that begin as a checkpoint of another program. Whatever fails, fails the test. */
#ifndef TDM_TESTS_PRETRAINED_RIG_H
#define TDM_TESTS_PRETRAINED_RIG_H

#include "interchange/export_huggingface.h"
#include "interchange/pretrained.h"
#include "tests/support/encoder_rig.h"

/* The parameters of a model as tdm_pretrained_load() takes them, in new memory freed with tdm_free(). */
tdm_saved_tensor *tdm_pretrained_parameters(const tdm_encoder_rig *rig, int *count);

#define TDM_PRETRAINED_SEQUENCES 16

/* A model of the options, for a batch of so many sequences and 256 tokens, with its initial values. */
void tdm_pretrained_rig_init(tdm_encoder_rig *rig, const tdm_bert_options *options,
                             const tdm_model_inputs *inputs, bool pairs, bool inference);

/* tdm_pretrained_load() into the model. */
tdm_status tdm_pretrained_rig_load(tdm_encoder_rig *rig, const tdm_pretrained *from,
                                   const tdm_tokenizer *tokenizer, tdm_pretrained_report *report);

/* Writes the model's parameters as a checkpoint has them, and opens the file. */
tdm_safetensors *tdm_pretrained_rig_save(tdm_encoder_rig *rig);

/* Copies a parameter off the device, into new memory freed with free(). */
float *tdm_pretrained_rig_values(tdm_encoder_rig *rig, const char *name, int64_t *elements);

#endif
