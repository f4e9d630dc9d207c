/* What the program and the library share of training a vocabulary. */
#ifndef TDM_TEXT_TRAIN_VOCABULARY_H
#define TDM_TEXT_TRAIN_VOCABULARY_H

#include "core/config.h"
#include "text/tokenizer.h"

/* The special tokens of BERT, then `more`; freed with tdm_strings_free(). */
TDM_MUST_CHECK tdm_status tdm_vocab_specials(const char *const *more, int64_t count,
                                             tdm_strings *out);

/* The tokenizer of a trained vocabulary, which begins with `specials`. Takes the vocabulary, on
 * failure too. */
TDM_MUST_CHECK tdm_status tdm_vocab_tokenizer(const tdm_tokenizer_settings *settings,
                                              const tdm_strings *specials,
                                              tdm_vocabulary *vocabulary, tdm_tokenizer **out);

#endif
