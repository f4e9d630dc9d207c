/* Added tokens: found in the text itself, as Hugging Face's AddedVocabulary finds them. */
#ifndef TDM_TEXT_ADDED_TOKENS_H
#define TDM_TEXT_ADDED_TOKENS_H

#include "text/tokenizer.h"

/* The tokens that are looked for in raw text, or in normalised text, as a trie. */
typedef struct tdm_added_matcher tdm_added_matcher;

/* Of the tokens with this `normalized`, special ones first; those of normalised text are normalised
 * with `settings`. *out is NULL where there is none. The tokens must outlive it. */
TDM_MUST_CHECK tdm_status tdm_added_matcher_create(const tdm_added_token *tokens, int64_t count,
                                                   bool normalized,
                                                   const tdm_tokenizer_settings *settings,
                                                   tdm_added_matcher **out);
/* NULL is allowed. */
void tdm_added_matcher_destroy(tdm_added_matcher *matcher);

typedef struct tdm_added_match {
    size_t begin, end; /* with the white space that lstrip and rstrip take */
    const tdm_added_token *token;
} tdm_added_match;

/* A walk over the matches of a text, which stays there. */
typedef struct tdm_added_search {
    const tdm_added_matcher *matcher;
    const char *text;
    size_t bytes;
    tdm_special_tokens specials;
    size_t at;    /* where the search goes on */
    size_t taken; /* what matches have covered: white space is not taken twice */
} tdm_added_search;

/* The next match, the leftmost and of those the longest; matches do not overlap. *found is false
 * behind the last. TDM_E_DATA for a special token where they are errors. */
TDM_MUST_CHECK tdm_status tdm_added_search_next(tdm_added_search *search, tdm_added_match *match,
                                                bool *found);

#endif
