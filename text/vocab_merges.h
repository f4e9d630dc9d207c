/* Merging the pairs of neighbours that occur most often: the heart of the vocabulary trainer. */
#ifndef TDM_TEXT_VOCAB_MERGES_H
#define TDM_TEXT_VOCAB_MERGES_H

#include "text/vocab_alphabet.h"

/* Adds tokens to the vocabulary, which holds the alphabet, until it is as large as options->size or
 * no pair is left; fills in what the report says of words and merges. */
TDM_MUST_CHECK tdm_status tdm_vocab_merge(const tdm_word_list *words, const tdm_alphabet *alphabet,
                                          const tdm_vocab_options *options,
                                          tdm_vocabulary *vocabulary, tdm_vocab_report *report);

#endif
