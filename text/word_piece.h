/* WordPiece by LinMaxMatch (Song et al., "Fast WordPiece tokenization", 2020, arXiv 2012.15524):
 * the longest piece first, in time linear in the word. Words do not begin with "##": every
 * pre-tokenizer of ours sets punctuation apart. */
#ifndef TDM_TEXT_WORD_PIECE_H
#define TDM_TEXT_WORD_PIECE_H

#include "text/vocabulary.h"

typedef struct tdm_word_piece tdm_word_piece;

/* Words of more than `max_word_chars` code points are unknown. The vocabulary may go afterwards.
 * TDM_E_UNSUPPORTED for a token of more than 4096 bytes that such a word could hold. */
TDM_MUST_CHECK tdm_status tdm_word_piece_create(const tdm_vocabulary *vocabulary,
                                                int max_word_chars, tdm_word_piece **out);
/* NULL is allowed. */
void tdm_word_piece_destroy(tdm_word_piece *word_piece);

/* Writes the ids of the pieces of a word, which is valid UTF-8, to `ids`, which has room for
 * `bytes` of them, and returns how many; 0: the word is unknown. From any thread. */
int64_t tdm_word_piece_split(const tdm_word_piece *word_piece, const char *word, size_t bytes,
                             uint32_t *ids);

#endif
