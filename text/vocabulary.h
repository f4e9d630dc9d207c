/* Tokens and their ids. */
#ifndef TDM_TEXT_VOCABULARY_H
#define TDM_TEXT_VOCABULARY_H

#include "core/status.h"

#include <stdbool.h>

/* Marks a piece that continues a word. */
#define TDM_CONTINUATION       "##"
#define TDM_CONTINUATION_BYTES 2

#define TDM_MAX_VOCABULARY ((int64_t)1 << 24)

typedef struct tdm_vocabulary {
    int64_t size; /* one more than the largest id */
    char *text;   /* all tokens one after another */
    size_t text_bytes, text_capacity;
    uint64_t *begins; /* [size]: of token id in text */
    uint32_t *bytes;  /* [size]: 0: the id has no token, and matches nothing */
    size_t begins_capacity, bytes_capacity;
    uint32_t *slots; /* [slot_count], a power of two: id + 1, 0 for none */
    size_t slot_count;
    int64_t used_slots;
} tdm_vocabulary;

/* Makes room for so many tokens: adding them will be faster. */
TDM_MUST_CHECK tdm_status tdm_vocabulary_reserve(tdm_vocabulary *vocabulary, size_t tokens,
                                                 size_t text_bytes);

/* Adds a token under an id; an id in between has none. *taken, where it is not NULL, is the id that
 * the token had before, or -1: that id has none then. */
TDM_MUST_CHECK tdm_status tdm_vocabulary_add(tdm_vocabulary *vocabulary, uint32_t id,
                                             const char *token, size_t bytes, int64_t *taken);

/* The id of a token, or -1. */
int64_t tdm_vocabulary_find(const tdm_vocabulary *vocabulary, const char *token, size_t bytes);

void tdm_vocabulary_deinit(tdm_vocabulary *vocabulary);

#endif
