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
    bool beside; /* no piece of words: in the vocabulary for its id only */
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
    bool *beside; /* [size]: ids of tokens that are no pieces of words; NULL: there is none */
    struct tdm_added_matcher *raw_matcher; /* NULL: there is nothing to look for */
    struct tdm_added_matcher *normalized_matcher;
    bool no_template;           /* special tokens are never added: a file without post-processor */
    uint8_t pad_type;           /* type id of padding */
    tdm_encode_options options; /* the defaults, with truncation and padding of a tokenizer.json */
};

/* The special tokens as they are written: "[PAD]" and so on. */
extern const char *const tdm_special_names[TDM_SPECIALS];

/* "huggingface" and so on, and "none", "nfc", "nfkc"; ended by NULL. */
extern const char *const tdm_unicode_mode_names[];
extern const char *const tdm_unicode_form_names[];

/* Adds those of the special tokens `names` that the vocabulary has to the added tokens of
 * `parts`. */
TDM_MUST_CHECK tdm_status tdm_tokenizer_add_specials(tdm_tokenizer *parts, const char *const *names,
                                                     int64_t count);

/* Of all that tokens of a text depend on, Unicode's version included. */
uint64_t tdm_tokenizer_hash(const tdm_tokenizer *tokenizer);

/* Checks settings, and sets strip_accents to 0 or 1. */
TDM_MUST_CHECK tdm_status tdm_tokenizer_resolve_settings(tdm_tokenizer_settings *settings);

/* Makes a tokenizer of its parts, which are taken over, on failure too: settings, vocabulary and
 * added tokens are set, the rest is made. */
TDM_MUST_CHECK tdm_status tdm_tokenizer_create(tdm_tokenizer *parts, tdm_tokenizer **out);

/* The same where the special tokens are written in another way; NULL entries: as usual. */
TDM_MUST_CHECK tdm_status tdm_tokenizer_create_named(tdm_tokenizer *parts,
                                                     const char *const names[TDM_SPECIALS],
                                                     tdm_tokenizer **out);

/* Frees parts that no tokenizer was made of. */
void tdm_tokenizer_parts_free(tdm_tokenizer *parts);

/* Adds a token to the list, with its text copied and all flags off. */
TDM_MUST_CHECK tdm_status tdm_tokenizer_add_token(tdm_tokenizer *parts, uint32_t id,
                                                  const char *content, size_t bytes,
                                                  tdm_added_token **added);

#endif
