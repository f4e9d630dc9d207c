/* The literal specification of tokenization: plain loops over whole arrays of code points, one
 * after another, without a thought for speed. What is fast is compared with it on random strings.
 *
 * It shares with the library the questions of text/unicode.h alone; UTF-8, normal forms, the final
 * sigma and the longest match are done another way. Memory is malloc's; it aborts where there is
 * none. */
#ifndef TDM_TESTS_TEXT_SPEC_H
#define TDM_TESTS_TEXT_SPEC_H

#include "text/normalize.h"
#include "text/vocabulary.h"

typedef struct tdm_spec_char {
    uint32_t code_point;
    uint32_t from, to; /* the bytes of the original that it comes of */
    int added;         /* to a decomposition's first */
} tdm_spec_char;

typedef struct tdm_spec_text {
    tdm_spec_char *chars; /* [count] */
    size_t count;
    tdm_span *words; /* [word_count]: in chars */
    size_t word_count;
} tdm_spec_text;

/* The normalised text and its words. */
tdm_spec_text tdm_spec_normalize(const tdm_tokenizer_settings *settings, const char *text,
                                 size_t bytes);
void tdm_spec_text_free(tdm_spec_text *text);

/* Settings of some bytes, any of them: each setting from bits of its own. */
#define TDM_SPEC_SETTINGS_BYTES 2
tdm_tokenizer_settings tdm_spec_settings(const uint8_t bytes[TDM_SPEC_SETTINGS_BYTES]);

/* NULL where tdm_normalize() has made the same of it, else what differs. */
const char *tdm_spec_difference(const tdm_spec_text *text, const tdm_normalized *normalized);

typedef struct tdm_spec_token {
    uint32_t id;
    uint32_t word;
    uint32_t from, to; /* bytes of the original */
} tdm_spec_token;

/* The tokens of all words, longest match first; returns how many were written to *tokens, which the
 * caller frees. */
size_t tdm_spec_tokenize(const tdm_spec_text *text, const tdm_vocabulary *vocabulary,
                         uint32_t unknown, int max_word_chars, tdm_spec_token **tokens);

#endif
