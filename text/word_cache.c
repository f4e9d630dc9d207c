#include "text/word_cache.h"

#include "core/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Words beside the vocabulary's own that slots are made for. */
#define OTHER_WORDS ((size_t)65536)

/* Bytes of long words and ids of theirs that are kept. */
#define LONG_TEXT_BYTES ((size_t)4 << 20)
#define LONG_IDS        ((size_t)1 << 20)

tdm_status tdm_word_cache_init(tdm_word_cache *cache, int64_t words)
{
    size_t slots = 1;
    while (slots < (size_t)words + OTHER_WORDS)
        slots *= 2;
    cache->mask = slots - 1;
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc(slots + TDM_WORD_SET, sizeof *cache->slots, &cache->slots), fail);
    TDM_TRY_GOTO(tdm_alloc(TDM_LONG_WORDS, sizeof *cache->long_words, &cache->long_words), fail);
    return TDM_OK;
fail:
    tdm_word_cache_deinit(cache);
    return status;
}

void tdm_word_cache_deinit(tdm_word_cache *cache)
{
    tdm_free(cache->slots);
    tdm_free(cache->long_words);
    tdm_free(cache->texts);
    tdm_free(cache->ids);
    *cache = (tdm_word_cache){0};
}

void tdm_word_cache_put(tdm_word_cache *cache, tdm_word_key key, const uint32_t *ids,
                        uint32_t count)
{
    tdm_word_slot *set = tdm_word_cache_set(cache, key);
    tdm_word_slot *slot = set + (key.low + key.high) % TDM_WORD_SET;
    for (int i = 0; i < TDM_WORD_SET; i++) {
        if (set[i].count == 0) {
            slot = &set[i];
            break;
        }
    }
    *slot = (tdm_word_slot){.key = key, .count = count};
    memcpy(slot->ids, ids, count * sizeof *ids);
}

/* The slot that holds a long word, or the empty one where it belongs. */
static tdm_long_word *find_long(const tdm_word_cache *cache, uint64_t hash, const char *word,
                                size_t bytes)
{
    for (size_t at = hash;; at++) {
        tdm_long_word *slot = &cache->long_words[at % TDM_LONG_WORDS];
        if (slot->bytes == 0 || (slot->hash == hash && slot->bytes == bytes &&
                                 memcmp(cache->texts + slot->text, word, bytes) == 0))
            return slot;
    }
}

const uint32_t *tdm_word_cache_find_long(const tdm_word_cache *cache, const char *word,
                                         size_t bytes, uint32_t *count)
{
    const tdm_long_word *slot = find_long(cache, XXH3_64bits(word, bytes), word, bytes);
    *count = slot->count;
    return slot->bytes == 0 ? NULL : cache->ids + slot->ids;
}

tdm_status tdm_word_cache_put_long(tdm_word_cache *cache, const char *word, size_t bytes,
                                   const uint32_t *ids, uint32_t count)
{
    if (bytes > LONG_TEXT_BYTES || count > LONG_IDS)
        return TDM_OK;
    if (2 * cache->long_count >= TDM_LONG_WORDS || cache->texts_bytes + bytes > LONG_TEXT_BYTES ||
        cache->ids_count + count > LONG_IDS) {
        memset(cache->long_words, 0, TDM_LONG_WORDS * sizeof *cache->long_words);
        cache->long_count = cache->texts_bytes = cache->ids_count = 0;
    }
    TDM_TRY(tdm_grow(&cache->texts, &cache->texts_capacity, cache->texts_bytes + bytes, 1));
    TDM_TRY(tdm_grow(&cache->ids, &cache->ids_capacity, cache->ids_count + count, sizeof *ids));
    uint64_t hash = XXH3_64bits(word, bytes);
    *find_long(cache, hash, word, bytes) = (tdm_long_word){.hash = hash,
                                                           .text = (uint32_t)cache->texts_bytes,
                                                           .bytes = (uint32_t)bytes,
                                                           .ids = (uint32_t)cache->ids_count,
                                                           .count = count};
    memcpy(cache->texts + cache->texts_bytes, word, bytes);
    memcpy(cache->ids + cache->ids_count, ids, count * sizeof *ids);
    cache->texts_bytes += bytes;
    cache->ids_count += count;
    cache->long_count++;
    return TDM_OK;
}
