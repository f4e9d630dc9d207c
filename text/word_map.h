/* Words and how often each of them came: one thread's counter. */
#ifndef TDM_TEXT_WORD_MAP_H
#define TDM_TEXT_WORD_MAP_H

#include "text/word_splitter.h"

/* Longer words cannot be counted. */
#define TDM_WORD_BYTES_MAX 65535

/* A word of up to TDM_WORD_PADDING bytes is its own key, with zeros behind it; a longer one has its
 * hash there and its bytes in the map's text. */
typedef struct tdm_word_slot {
    uint64_t key[2];
    int64_t count;   /* 0: empty */
    uint64_t length; /* the low 16 bits; above them its begin in the map's text */
} tdm_word_slot;

typedef struct tdm_word_map {
    tdm_word_slot *slots; /* [slot_count], a power of two */
    size_t slot_count, used;
    char *text;
    size_t text_bytes, text_capacity;
    size_t limit;          /* bytes that slots and text may take; 64 KiB at least */
    size_t max_word_chars; /* at most TDM_WORD_BYTES_MAX / 4 */
    int64_t too_long;      /* words longer than that, which are not in the map */
} tdm_word_map;

void tdm_word_map_init(tdm_word_map *map, size_t limit, int max_word_chars);
void tdm_word_map_deinit(tdm_word_map *map);

/* Counts words[*next, count) and moves *next behind what was counted: that is the end, unless the
 * map is full. */
TDM_MUST_CHECK tdm_status tdm_word_map_count(tdm_word_map *map, const tdm_words *words,
                                             int64_t *next);

/* Forgets all words and keeps the memory. */
void tdm_word_map_clear(tdm_word_map *map);

/* The numbers of the used slots, ordered by the bytes of their words: [map->used], freed with
 * tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_word_map_sort(const tdm_word_map *map, uint32_t **order);

static inline const char *tdm_word_map_word(const tdm_word_map *map, uint32_t slot, size_t *bytes)
{
    const tdm_word_slot *entry = &map->slots[slot];
    *bytes = entry->length & 0xffff;
    return *bytes <= TDM_WORD_PADDING ? (const char *)entry->key
                                      : map->text + (entry->length >> 16);
}

/* The first eight bytes of a word, zeros behind it, as a number that is ordered as they are. */
static inline uint64_t tdm_word_prefix(const char *word, size_t bytes)
{
    uint64_t prefix = 0;
    __builtin_memcpy(&prefix, word, bytes < 8 ? bytes : 8);
    return __builtin_bswap64(prefix);
}

/* < 0, 0, > 0: the order of bytes; a beginning comes before the whole. */
int tdm_word_compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes);

#endif
