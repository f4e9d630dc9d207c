/* The literal way from text to words: each step of the mode's normaliser and pre-tokenizer on code
 * points, with the place in the original text kept for every byte. It gives offsets, and what the
 * fast path (text/word_splitter.h) leaves to it. Words of plain ASCII take a short cut. */
#ifndef TDM_TEXT_NORMALIZE_H
#define TDM_TEXT_NORMALIZE_H

#include "tandem/plugin.h"
#include "text/normal_form.h"

/* A text, normalised and split. Buffers are kept and reused. */
typedef struct tdm_normalized {
    char *text; /* [bytes]: UTF-8, white space between words included */
    size_t bytes, capacity;
    uint32_t *from, *to; /* [bytes]: the bytes of the original that byte i comes of */
    size_t from_capacity, to_capacity;
    tdm_span *words; /* [word_count]: in text */
    int64_t word_count;
    size_t words_capacity;
    tdm_characters work[2]; /* private */
} tdm_normalized;

/* Normalises and splits text[0, bytes), bytes < 2^31; offsets count from its first byte. *out is
 * filled anew. Texts may be cut before and behind white space of ASCII: the words are the same.
 *
 * All modes clean the text and set ideographs apart first. Then `huggingface` and `unicode` strip
 * accents and lowercase; `google` lowercases each word as Python's str.lower() does, final sigma
 * included, and strips accents. Neither from nor to ever goes back. What is deleted belongs to
 * nothing, what one character becomes belongs to it alone; for marks that change their order and
 * for NFC and NFKC see text/normal_form.h. strip_accents -1 follows lowercase. TDM_E_ARG for a
 * text that is too long. */
TDM_MUST_CHECK tdm_status tdm_normalize(const tdm_tokenizer_settings *settings, const char *text,
                                        size_t bytes, tdm_normalized *out);

void tdm_normalized_deinit(tdm_normalized *normalized);

#endif
