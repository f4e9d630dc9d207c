/* Words and their ids, in two tables: words of at most 15 bytes and 3 pieces, which nearly all are,
 * in sets of slots that are replaced when they are full; longer ones in a table that is emptied
 * then.
 */
#ifndef TDM_TEXT_WORD_CACHE_H
#define TDM_TEXT_WORD_CACHE_H

#include "core/status.h"

#include <stdbool.h>
#include <string.h>

#define TDM_SHORT_WORD_BYTES 15
#define TDM_SHORT_WORD_IDS   3

/* A word of at most 15 bytes, behind them zeros, and its length in the last byte. */
typedef struct tdm_word_key {
    uint64_t low, high;
} tdm_word_key;

typedef struct tdm_word_slot {
    tdm_word_key key; /* all zero: empty */
    uint32_t ids[TDM_SHORT_WORD_IDS];
    uint32_t count;
} tdm_word_slot;

/* Slots that a word may lie in, one behind the other. */
#define TDM_WORD_SET 4

typedef struct tdm_long_word {
    uint64_t hash;
    uint32_t text, bytes; /* in texts; bytes 0: empty */
    uint32_t ids, count;  /* in ids */
} tdm_long_word;

#define TDM_LONG_WORDS 32768

typedef struct tdm_word_cache {
    tdm_word_slot *slots; /* [mask + TDM_WORD_SET] */
    uint64_t mask;
    tdm_long_word *long_words; /* [TDM_LONG_WORDS] */
    size_t long_count;
    char *texts;
    size_t texts_bytes, texts_capacity;
    uint32_t *ids;
    size_t ids_count, ids_capacity;
} tdm_word_cache;

/* With slots enough for `words` short words that come with the vocabulary, and for others. */
TDM_MUST_CHECK tdm_status tdm_word_cache_init(tdm_word_cache *cache, int64_t words);
void tdm_word_cache_deinit(tdm_word_cache *cache);

/* Of a word of 1 .. 15 bytes; word[0, 16) is readable. */
static inline tdm_word_key tdm_word_key_of(const char *word, size_t bytes)
{
    static const unsigned char ones_then_zeros[2 * TDM_SHORT_WORD_BYTES + 2] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    tdm_word_key key, mask;
    memcpy(&key, word, sizeof key);
    memcpy(&mask, ones_then_zeros + TDM_SHORT_WORD_BYTES - bytes, sizeof mask);
    key.low &= mask.low;
    key.high = (key.high & mask.high) | (uint64_t)bytes << 56;
    return key;
}

/* The first slot of a key's set. */
static inline tdm_word_slot *tdm_word_cache_set(const tdm_word_cache *cache, tdm_word_key key)
{
    unsigned __int128 product =
        (unsigned __int128)(key.low ^ 0x9E3779B97F4A7C15u) * (key.high ^ 0xD6E8FEB86659FD93u);
    uint64_t mixed = (uint64_t)product ^ (uint64_t)(product >> 64);
    return cache->slots + (mixed & cache->mask);
}

/* Puts a short word in, or in the place of another. */
void tdm_word_cache_put(tdm_word_cache *cache, tdm_word_key key, const uint32_t *ids,
                        uint32_t count);

/* The ids of a long word, or NULL. */
const uint32_t *tdm_word_cache_find_long(const tdm_word_cache *cache, const char *word,
                                         size_t bytes, uint32_t *count);
TDM_MUST_CHECK tdm_status tdm_word_cache_put_long(tdm_word_cache *cache, const char *word,
                                                  size_t bytes, const uint32_t *ids,
                                                  uint32_t count);

#endif
