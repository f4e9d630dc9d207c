/* Text to ids, the fast way: words by the splitter, their ids by a cache of words, and WordPiece
 * for words that it does not hold. */
#ifndef TDM_TEXT_WORD_IDS_H
#define TDM_TEXT_WORD_IDS_H

#include "text/token_marks.h"
#include "text/tokenizer.h"

/* Tokens of texts. Buffers are kept and reused. */
typedef struct tdm_token_list {
    uint32_t *ids;  /* [count] */
    uint8_t *marks; /* [count]: of token_marks.h; the first token of a line begins a sentence */
    int64_t count;
    size_t ids_capacity, marks_capacity;
} tdm_token_list;

void tdm_token_list_deinit(tdm_token_list *list);

/* A thread's. */
typedef struct tdm_word_ids tdm_word_ids;

/* The tokenizer is borrowed. The cache begins with the vocabulary's own words. */
TDM_MUST_CHECK tdm_status tdm_word_ids_create(const tdm_tokenizer *tokenizer, tdm_word_ids **out);
/* NULL is allowed. */
void tdm_word_ids_destroy(tdm_word_ids *words);

/* Appends the tokens of a text to the list. Special tokens in it are plain text, and none is added.
 */
TDM_MUST_CHECK tdm_status tdm_word_ids_append(tdm_word_ids *words, const char *text, size_t bytes,
                                              tdm_token_list *list);

#endif
