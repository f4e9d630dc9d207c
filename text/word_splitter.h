/* The fast way from text to normalised words: ASCII in vectors, other characters by table, and what
 * needs context by tdm_normalize(). */
#ifndef TDM_TEXT_WORD_SPLITTER_H
#define TDM_TEXT_WORD_SPLITTER_H

#include "text/normalizer.h"

/* Some words of a text, in order. Behind each word lie at least TDM_WORD_PADDING readable bytes. */
typedef struct tdm_words {
    const char *text;
    const uint32_t *begins; /* [count]: word i is text[begins[i], ends[i]), not empty */
    const uint32_t *ends;
    int64_t count;
    const uint32_t *lines; /* [line_count]: words in front of each line feed, of these */
    int64_t line_count;
} tdm_words;

#define TDM_WORD_PADDING 16

/* A thread's. */
typedef struct tdm_word_splitter tdm_word_splitter;

/* The normalizer is borrowed. */
TDM_MUST_CHECK tdm_status tdm_word_splitter_create(tdm_normalizer *normalizer,
                                                   tdm_word_splitter **out);
/* NULL is allowed. */
void tdm_word_splitter_destroy(tdm_word_splitter *splitter);

/* Begins with a text, which stays there until its last word has been taken. */
void tdm_word_splitter_start(tdm_word_splitter *splitter, const char *text, size_t bytes);

/* The next words, valid until the next call; count 0 behind the last one. */
TDM_MUST_CHECK tdm_status tdm_word_splitter_next(tdm_word_splitter *splitter, tdm_words *words);

#endif
