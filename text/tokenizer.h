/* A tokenizer from the inside. */
#ifndef TDM_TEXT_TOKENIZER_H
#define TDM_TEXT_TOKENIZER_H

#include "tandem/text.h"
#include "text/normalizer.h"
#include "text/vocabulary.h"
#include "text/word_piece.h"

/* The special tokens of BERT. */
typedef enum tdm_special {
    TDM_SPECIAL_PAD = 0,
    TDM_SPECIAL_UNK = 1,
    TDM_SPECIAL_CLS = 2,
    TDM_SPECIAL_SEP = 3,
    TDM_SPECIAL_MASK = 4,
} tdm_special;
#define TDM_SPECIALS 5

/* A token that is looked for in the text itself, before or after it is normalised. */
typedef struct tdm_added_token {
    uint32_t id;
    char *content;
    size_t bytes;
    bool single_word, lstrip, rstrip, normalized, special;
} tdm_added_token;

struct tdm_tokenizer {
    tdm_tokenizer_settings settings; /* strip_accents resolved to 0 or 1 */
    tdm_vocabulary vocabulary;
    tdm_normalizer *normalizer;
    tdm_word_piece *word_piece;
    int64_t specials[TDM_SPECIALS]; /* ids, -1 where the vocabulary lacks one */
    tdm_added_token *added;
    int64_t added_count;
    size_t added_capacity;
};

/* The special tokens as they are written: "[PAD]" and so on. */
extern const char *const tdm_special_names[TDM_SPECIALS];

/* Makes a tokenizer of its parts, which are taken over, on failure too: settings, vocabulary and
 * added tokens are set, the rest is made. */
TDM_MUST_CHECK tdm_status tdm_tokenizer_create(tdm_tokenizer *parts, tdm_tokenizer **out);

#endif
