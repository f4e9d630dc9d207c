#include "text/word_map.h"

#include "core/memory.h"
#include "data/utf8.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_SLOTS ((size_t)1024)
#define SLOTS_MAX   ((size_t)1 << 32)
#define LIMIT_MIN   (2 * FIRST_SLOTS * sizeof(tdm_word_slot))

/* Words that are looked up together: their slots are fetched before the first is looked at. */
#define BATCH 32

typedef struct word_key {
    uint64_t key[2];
    uint64_t hash;
} word_key;

void tdm_word_map_init(tdm_word_map *map, size_t limit, int max_word_chars)
{
    *map = (tdm_word_map){.limit = limit < LIMIT_MIN ? LIMIT_MIN : limit,
                          .max_word_chars = (size_t)max_word_chars};
}

void tdm_word_map_deinit(tdm_word_map *map)
{
    tdm_free(map->slots);
    tdm_free(map->text);
    *map = (tdm_word_map){0};
}

void tdm_word_map_clear(tdm_word_map *map)
{
    memset(map->slots, 0, map->slot_count * sizeof *map->slots);
    map->used = 0;
    map->text_bytes = 0;
}

int tdm_word_compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* ---- counting -------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t low, uint64_t high)
{
    uint64_t hash = low * 0x9e3779b97f4a7c15u ^ high * 0xc2b2ae3d27d4eb4fu;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

/* Reads TDM_WORD_PADDING bytes from `word` on, which need not all be its own. */
static word_key make_key(const char *word, size_t bytes)
{
    static const unsigned char mask[2 * TDM_WORD_PADDING] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    };
    word_key key;
    if (bytes > TDM_WORD_PADDING) {
        key.key[0] = XXH3_64bits(word, bytes);
        key.key[1] = 0;
    } else {
        uint64_t keep[2];
        memcpy(keep, mask + TDM_WORD_PADDING - bytes, sizeof keep);
        memcpy(key.key, word, sizeof key.key);
        key.key[0] &= keep[0];
        key.key[1] &= keep[1];
    }
    key.hash = mix(key.key[0], key.key[1]);
    return key;
}

static bool is_word(const tdm_word_map *map, const tdm_word_slot *slot, const word_key *key,
                    const char *word, size_t bytes)
{
    return slot->key[0] == key->key[0] && slot->key[1] == key->key[1] &&
           (slot->length & 0xffff) == bytes &&
           (bytes <= TDM_WORD_PADDING ||
            memcmp(map->text + (slot->length >> 16), word, bytes) == 0);
}

/* There is room for it. */
static tdm_status count_word(tdm_word_map *map, const word_key *key, const char *word, size_t bytes)
{
    size_t mask = map->slot_count - 1;
    size_t at = (size_t)key->hash & mask;
    while (map->slots[at].count != 0 && !is_word(map, &map->slots[at], key, word, bytes))
        at = (at + 1) & mask;
    tdm_word_slot *slot = &map->slots[at];
    if (slot->count++ > 0)
        return TDM_OK;
    map->used++;
    slot->key[0] = key->key[0];
    slot->key[1] = key->key[1];
    slot->length = (uint64_t)map->text_bytes << 16 | bytes;
    if (bytes > TDM_WORD_PADDING) {
        TDM_TRY(tdm_grow(&map->text, &map->text_capacity, map->text_bytes + bytes, 1));
        memcpy(map->text + map->text_bytes, word, bytes);
        map->text_bytes += bytes;
    }
    return TDM_OK;
}

static tdm_status grow_slots(tdm_word_map *map)
{
    size_t before = map->slot_count;
    tdm_word_slot *old = map->slots;
    size_t count = before == 0 ? FIRST_SLOTS : 2 * before;
    tdm_word_slot *slots;
    TDM_TRY(tdm_alloc(count, sizeof *slots, &slots));
    for (size_t i = 0; i < before; i++) {
        if (old[i].count == 0)
            continue;
        size_t at = (size_t)mix(old[i].key[0], old[i].key[1]) & (count - 1);
        while (slots[at].count != 0)
            at = (at + 1) & (count - 1);
        slots[at] = old[i];
    }
    tdm_free(old);
    map->slots = slots;
    map->slot_count = count;
    return TDM_OK;
}

/* Makes room for a batch; *full where it would take more than the map may have. */
static tdm_status reserve_batch(tdm_word_map *map, bool *full)
{
    size_t text = map->text_bytes;
    *full = map->used > 0 && text >= map->limit / 2;
    if (*full || 2 * (map->used + BATCH) <= map->slot_count)
        return TDM_OK;
    *full = map->slot_count > 0 && (map->slot_count >= SLOTS_MAX ||
                                    3 * map->slot_count * sizeof *map->slots + text > map->limit);
    return *full ? TDM_OK : grow_slots(map);
}

static tdm_status count_batch(tdm_word_map *map, const tdm_words *words, int64_t begin, int count)
{
    word_key keys[BATCH];
    for (int i = 0; i < count; i++) {
        uint32_t at = words->begins[begin + i];
        keys[i] = make_key(words->text + at, words->ends[begin + i] - at);
        __builtin_prefetch(&map->slots[(size_t)keys[i].hash & (map->slot_count - 1)]);
    }
    for (int i = 0; i < count; i++) {
        const char *word = words->text + words->begins[begin + i];
        size_t bytes = words->ends[begin + i] - words->begins[begin + i];
        if (tdm_utf8_is_longer(word, bytes, map->max_word_chars))
            map->too_long++;
        else
            TDM_TRY(count_word(map, &keys[i], word, bytes));
    }
    return TDM_OK;
}

tdm_status tdm_word_map_count(tdm_word_map *map, const tdm_words *words, int64_t *next)
{
    while (*next < words->count) {
        bool full;
        TDM_TRY(reserve_batch(map, &full));
        if (full)
            return TDM_OK;
        int64_t left = words->count - *next;
        int count = left < BATCH ? (int)left : BATCH;
        TDM_TRY(count_batch(map, words, *next, count));
        *next += count;
    }
    return TDM_OK;
}

/* ---- sorting --------------------------------------------------------------------------------- */

typedef struct sort_item {
    uint64_t prefix;
    uint32_t slot;
} sort_item;

/* Orders by the prefix, one byte after the other from the last on; leaves the result in `items`. */
static void sort_by_prefix(sort_item *items, sort_item *other, size_t count)
{
    sort_item *from = items, *to = other;
    for (int shift = 0; shift < 64; shift += 8) {
        size_t ends[256] = {0};
        for (size_t i = 0; i < count; i++)
            ends[from[i].prefix >> shift & 0xff]++;
        size_t end = 0;
        for (int digit = 0; digit < 256; digit++) {
            size_t begin = end;
            end += ends[digit];
            ends[digit] = begin;
        }
        for (size_t i = 0; i < count; i++)
            to[ends[from[i].prefix >> shift & 0xff]++] = from[i];
        sort_item *swap = from;
        from = to;
        to = swap;
    }
}

static int compare_items(const void *a, const void *b, void *context)
{
    const tdm_word_map *map = context;
    size_t a_bytes, b_bytes;
    const char *a_word = tdm_word_map_word(map, ((const sort_item *)a)->slot, &a_bytes);
    const char *b_word = tdm_word_map_word(map, ((const sort_item *)b)->slot, &b_bytes);
    return tdm_word_compare(a_word, a_bytes, b_word, b_bytes);
}

static void sort_equal_prefixes(const tdm_word_map *map, sort_item *items, size_t count)
{
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = begin + 1;
        while (end < count && items[end].prefix == items[begin].prefix)
            end++;
        if (end - begin > 1)
            qsort_r(items + begin, end - begin, sizeof *items, compare_items,
                    (void *)(uintptr_t)map);
    }
}

tdm_status tdm_word_map_sort(const tdm_word_map *map, uint32_t **order)
{
    sort_item *items = NULL;
    size_t count = 0;
    *order = NULL;
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc(2 * map->used, sizeof *items, &items), out);
    TDM_TRY_GOTO(tdm_alloc(map->used, sizeof **order, order), out);
    for (size_t i = 0; i < map->slot_count; i++) {
        if (map->slots[i].count == 0)
            continue;
        size_t bytes;
        const char *word = tdm_word_map_word(map, (uint32_t)i, &bytes);
        items[count++] = (sort_item){tdm_word_prefix(word, bytes), (uint32_t)i};
    }
    sort_by_prefix(items, items + count, count);
    sort_equal_prefixes(map, items, count);
    for (size_t i = 0; i < count; i++)
        (*order)[i] = items[i].slot;
out:
    tdm_free(items);
    return status;
}
