/* Normal forms of characters that know where they come from. */
#ifndef TDM_TEXT_NORMAL_FORM_H
#define TDM_TEXT_NORMAL_FORM_H

#include "text/unicode.h"

/* A code point on its way from the original text to the normalised one. */
typedef struct tdm_character {
    uint32_t code_point;
    uint32_t from, to; /* the bytes of the original that it comes of */
    uint8_t combining_class;
    bool added; /* its decomposition's second or later */
} tdm_character;

typedef struct tdm_characters {
    tdm_character *items;
    size_t count, capacity;
} tdm_characters;

TDM_MUST_CHECK tdm_status tdm_characters_push(tdm_characters *characters, uint32_t code_point,
                                              uint32_t from, uint32_t to);

/* Canonical decomposition (NFD) of `in` with the mode's data; *out is filled anew.
 *
 * Places are given as Hugging Face's NormalizedString does: what begins a decomposition takes the
 * places of the characters of `in` one after another, in the order that results, and the rest of a
 * decomposition that of its neighbour before it. So places never go back, even where marks change
 * their order. */
TDM_MUST_CHECK tdm_status tdm_characters_decompose(tdm_unicode_mode mode, const tdm_characters *in,
                                                   tdm_characters *out);

/* NFC or NFKC of `in` with ICU's current data; *out is filled anew. What changes between two
 * boundaries of normalisation comes of all that lies between them. */
TDM_MUST_CHECK tdm_status tdm_characters_compose(tdm_unicode_form form, const tdm_characters *in,
                                                 tdm_characters *out);

void tdm_characters_deinit(tdm_characters *characters);

#endif
