/* The vocabulary of a tokenizer.json, read by itself: nearly all of such a file is one object of
 * tokens and ids, for each of which a JSON library makes objects of its own. */
#ifndef TDM_TEXT_JSON_VOCAB_H
#define TDM_TEXT_JSON_VOCAB_H

#include "text/vocabulary.h"

/* Reads the object model.vocab of text[0, bytes) into an empty vocabulary; [*begin, *end) is where
 * it stands, braces included. *taken is false, and the vocabulary empty, for anything that is out
 * of the ordinary, be it right or wrong: then a JSON library must judge. It must judge the rest in
 * any case. */
TDM_MUST_CHECK tdm_status tdm_json_vocab_take(const char *text, size_t bytes,
                                              tdm_vocabulary *vocabulary, size_t *begin,
                                              size_t *end, bool *taken);

#endif
