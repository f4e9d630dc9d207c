/* Encodings from the inside. */
#ifndef TDM_TEXT_ENCODINGS_H
#define TDM_TEXT_ENCODINGS_H

#include "tandem/text.h"

#include <stdbool.h>

/* One encoding: parts of an input's two lists of tokens, and where it lies in the arrays. */
typedef struct tdm_encoding_plan {
    int64_t input;
    tdm_text_range parts[2];
    size_t begin, count; /* padding and added tokens included */
    size_t used;         /* without padding */
} tdm_encoding_plan;

struct tdm_encodings {
    tdm_encoding_plan *plans;
    int64_t count;
    bool offsets;
    size_t plans_capacity;
    uint32_t *ids;
    uint8_t *type_ids, *attention, *special;
    int8_t *sequences;
    int32_t *words;
    tdm_text_range *bytes, *chars;
    size_t ids_capacity, type_ids_capacity, attention_capacity, special_capacity;
    size_t sequences_capacity, words_capacity, bytes_capacity, chars_capacity;
};

/* Room for `tokens` in all arrays. */
TDM_MUST_CHECK tdm_status tdm_encodings_reserve(tdm_encodings *encodings, size_t tokens);

#endif
