/* From bytes to code points: how many code points of a text begin before a byte. */
#ifndef TDM_TEXT_CHAR_INDEX_H
#define TDM_TEXT_CHAR_INDEX_H

#include "core/status.h"

#include <stdbool.h>

typedef struct tdm_char_index {
    bool is_ascii;    /* a byte is a code point, and the rest is not filled */
    uint64_t *starts; /* a bit a byte: a code point begins there */
    uint32_t *ranks;  /* code points before each word of `starts` */
    size_t starts_capacity, ranks_capacity;
} tdm_char_index;

/* Fills the index anew, for a text of less than 2^31 bytes. A byte that is no UTF-8 is a code
 * point. */
TDM_MUST_CHECK tdm_status tdm_char_index_fill(tdm_char_index *index, const char *text,
                                              size_t bytes);

/* Code points that begin before byte `at`, which may be the text's length. */
uint32_t tdm_char_index_before(const tdm_char_index *index, size_t at);

void tdm_char_index_deinit(tdm_char_index *index);

#endif
