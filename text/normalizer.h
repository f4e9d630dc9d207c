/* The fast normaliser's table: what each code point becomes, for given settings. Pages are made when
 * they are first needed. */
#ifndef TDM_TEXT_NORMALIZER_H
#define TDM_TEXT_NORMALIZER_H

#include "text/unicode.h"

typedef struct tdm_normalizer tdm_normalizer;

/* settings->strip_accents is 0 or 1. */
TDM_MUST_CHECK tdm_status tdm_normalizer_create(const tdm_tokenizer_settings *settings,
                                                tdm_normalizer **out);
/* NULL is allowed. */
void tdm_normalizer_destroy(tdm_normalizer *normalizer);

const tdm_tokenizer_settings *tdm_normalizer_settings(const tdm_normalizer *normalizer);

#endif
