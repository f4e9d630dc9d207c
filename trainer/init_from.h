/* model.init_from: a training begins with weights that are there already. Private to this folder.
 * */
#ifndef TDM_TRAINER_INIT_FROM_H
#define TDM_TRAINER_INIT_FROM_H

#include "trainer/session.h"

/* Completes a recipe of text with what it leaves unsaid: options of the model, text.tokenizer and
 * how that is read. TDM_E_CONFIG naming both values where the recipe makes another model of the
 * same weights. */
TDM_MUST_CHECK tdm_status tdm_init_from_complete(tdm_recipe *recipe);

/* Fills the parameters of the session's model, which has its initial values. Of ctr: tensors of the
 * same name and shape. Of text: the encoder whole, by token where vocabularies differ, and those
 * heads that are there (tdm_pretrained_load). What began as what is told by tdm_info(). */
TDM_MUST_CHECK tdm_status tdm_init_from_load(const tdm_session *session);

#endif
