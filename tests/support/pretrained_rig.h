/* Encoders that begin as a checkpoint of another program. Whatever fails, fails the test. */
#ifndef TDM_TESTS_PRETRAINED_RIG_H
#define TDM_TESTS_PRETRAINED_RIG_H

#include "interchange/export_huggingface.h"
#include "interchange/pretrained.h"
#include "tests/support/encoder_rig.h"

/* The parameters of a model as tdm_pretrained_load() takes them, in new memory freed with
 * tdm_free(). */
tdm_saved_tensor *tdm_pretrained_parameters(const tdm_encoder_rig *rig, int *count);

#define TDM_PRETRAINED_SEQUENCES 16

/* A model of the options, for a batch of so many sequences and 256 tokens, with its initial
 * values. */
void tdm_pretrained_rig_init(tdm_encoder_rig *rig, const tdm_bert_options *options,
                             const tdm_model_inputs *inputs, bool pairs, bool inference);

/* tdm_pretrained_load() into the model. */
tdm_status tdm_pretrained_rig_load(tdm_encoder_rig *rig, const tdm_pretrained *from,
                                   const tdm_tokenizer *tokenizer, tdm_pretrained_report *report);

/* Writes the model's parameters as a checkpoint has them, and opens the file. */
tdm_safetensors *tdm_pretrained_rig_save(tdm_encoder_rig *rig);

/* Copies a parameter off the device, into new memory freed with free(). */
float *tdm_pretrained_rig_values(tdm_encoder_rig *rig, const char *name, int64_t *elements);

/* A model as the checkpoint has it, for this head. */
void tdm_pretrained_rig_open(tdm_encoder_rig *rig, const tdm_pretrained *from, int64_t vocabulary,
                             tdm_text_head head, int64_t classes);

/* The status of loading into a new model; the word table must be as it was where that fails. */
tdm_status tdm_pretrained_try(const tdm_pretrained *from, const tdm_tokenizer *tokenizer,
                              tdm_text_head head);

/* ---- folders --------------------------------------------------------------------------------- */

/* A folder of tests/golden/interchange, in a static buffer. */
const char *tdm_golden_folder(const char *name);

/* A tensor on its way into another folder, named `name`; false leaves it out. */
typedef bool (*tdm_tensor_change)(char name[128], tdm_safetensors_source *source);
#define TDM_CHANGED_TENSORS 64

/* A new folder with the config and vocabulary of bert_masked, and its tensors changed, where
 * `how` is not NULL, and one more, where `further` is not. In a static buffer. */
const char *tdm_changed_folder(tdm_tensor_change how, const tdm_safetensors_source *further);

/* ---- notices --------------------------------------------------------------------------------- */

/* Forgets what was told and listens to further notices. */
void tdm_notices_listen(void);
/* What was told, a line each, warnings behind "warning: ". */
const char *tdm_notices(void);
/* Fails unless this is a part of it. */
void tdm_notices_check(const char *text);

#endif
