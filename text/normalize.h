/* The literal way from text to words: each step of the mode's normaliser and pre-tokenizer on code
 * points, with the place in the original text kept for every byte. It gives offsets, and what the
 * fast path (text/word_splitter.h) leaves to it. */
#ifndef TDM_TEXT_NORMALIZE_H
#define TDM_TEXT_NORMALIZE_H

#include "tandem/plugin.h"
#include "text/unicode.h"

/* A text, normalised and split. Buffers are kept and reused. */
typedef struct tdm_normalized {
    char *text; /* [bytes]: UTF-8, white space between words included */
    size_t bytes, capacity;
    uint32_t *from, *to; /* [bytes]: the bytes of the original that byte i comes of */
    size_t from_capacity, to_capacity;
    tdm_span *words; /* [word_count]: in text */
    int64_t word_count;
    size_t words_capacity;
    void *scratch; /* private */
    size_t scratch_capacity;
} tdm_normalized;

/* Normalises and splits text[0, bytes), bytes < 2^31; offsets count from its first byte. *out is
 * filled anew. Texts may be cut before and behind white space of ASCII: the words are the same. */
TDM_MUST_CHECK tdm_status tdm_normalize(const tdm_tokenizer_settings *settings, const char *text,
                                        size_t bytes, tdm_normalized *out);

void tdm_normalized_deinit(tdm_normalized *normalized);

#endif
