/* The characters that a vocabulary is made of. */
#ifndef TDM_TEXT_VOCAB_ALPHABET_H
#define TDM_TEXT_VOCAB_ALPHABET_H

#include "text/vocab_trainer.h"

#define TDM_NO_TOKEN UINT32_MAX

typedef struct tdm_letter {
    int64_t weight;           /* how often it occurs; of those that must be in, INT64_MAX */
    uint32_t bare, continued; /* ids of the character alone and with "##"; TDM_NO_TOKEN: not in */
} tdm_letter;

#define TDM_LETTER_PAGES 0x1100 /* of 256 code points each */

typedef struct tdm_alphabet {
    tdm_letter *pages[TDM_LETTER_PAGES]; /* NULL: no character of it occurs */
    int64_t used;                        /* distinct characters */
} tdm_alphabet;

void tdm_alphabet_deinit(tdm_alphabet *alphabet);

/* Takes note of a character that must be in the alphabet. */
TDM_MUST_CHECK tdm_status tdm_alphabet_require(tdm_alphabet *alphabet, uint32_t code_point);

/* Takes note of the characters of all words. */
TDM_MUST_CHECK tdm_status tdm_alphabet_count(tdm_alphabet *alphabet, const tdm_word_list *words);

/* Chooses at most `limit` characters, beside those that must be in, and adds both forms of each to
 * the vocabulary; *chosen is how many. */
TDM_MUST_CHECK tdm_status tdm_alphabet_choose(tdm_alphabet *alphabet, int64_t limit,
                                              tdm_vocabulary *vocabulary, int64_t *chosen);

/* The character at *at, which moves on; the text is valid UTF-8. */
uint32_t tdm_alphabet_read(const char *text, size_t bytes, size_t *at);

/* A character that was noted. */
static inline tdm_letter *tdm_alphabet_find(const tdm_alphabet *alphabet, uint32_t code_point)
{
    return &alphabet->pages[code_point >> 8][code_point & 0xff];
}

/* Adds a token, unless it is there; *id is its id. TDM_E_ARG where the vocabulary is full. */
TDM_MUST_CHECK tdm_status tdm_vocabulary_intern(tdm_vocabulary *vocabulary, const char *token,
                                                size_t bytes, uint32_t *id);

#endif
