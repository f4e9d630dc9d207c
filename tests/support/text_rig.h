/* Small tokenizers and windows of tokens, for tests of text/. Whatever fails, fails the test. */
#ifndef TDM_TESTS_TEXT_RIG_H
#define TDM_TESTS_TEXT_RIG_H

#include "text/masking.h"
#include "text/sequences.h"

/* Of tdm_rig_tokenizer(): [PAD] [UNK] [CLS] [SEP] [MASK], [unused0] to [unused9], an id without a
 * token, then the words t16, t17 and so on. */
#define TDM_RIG_PAD        0
#define TDM_RIG_UNK        1
#define TDM_RIG_CLS        2
#define TDM_RIG_SEP        3
#define TDM_RIG_MASK       4
#define TDM_RIG_FIRST_WORD 16

/* A tokenizer with vocabulary and special tokens only; freed with tdm_rig_tokenizer_free(). */
void tdm_rig_tokenizer(int64_t size, tdm_tokenizer *tokenizer);
void tdm_rig_tokenizer_free(tdm_tokenizer *tokenizer);

/* Windows whose blocks have the columns "ids" u16 and "marks" u8. */
#define TDM_RIG_MARKS 1

/* A window of blocks made from a text each: a line is a document, '/' ends a sentence, words are
 * separated by blanks, and "w3" is a word of 3 tokens. Ids count on from 16 through all blocks.
 * Block i has the number `first` + i. */
void tdm_rig_window(const char *const *texts, int blocks, int64_t first, tdm_window *window);
void tdm_rig_window_free(tdm_window *window);

/* A window of `blocks` blocks of random documents: 1 to 12 sentences of 1 to 30 words of 1 to 3
 * tokens. */
void tdm_rig_random_window(uint64_t seed, int blocks, int documents, int64_t first,
                           tdm_window *window);

/* Token `i` of the row, special ones excluded, counting through its segments. */
uint16_t tdm_rig_token(const tdm_window *window, const tdm_sequence *sequence, uint32_t i);

/* ---- files ----------------------------------------------------------------------------------- */

/* Writes a vocabulary of special tokens, letters with and without ##, some words of
 * tdm_rig_corpus(), and `more` words besides; returns its path, freed with tdm_free(). */
char *tdm_rig_vocabulary(const char *folder, int64_t more);

/* Documents separated by blank lines, a sentence a line: words, some of several pieces, some with a
 * character that is unknown. Freed with tdm_free(). */
char *tdm_rig_corpus(uint64_t seed, int documents);

#endif
