#include "text/vocabulary.h"

#include "core/memory.h"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

static bool is_token(const tdm_vocabulary *vocabulary, uint32_t id, const char *token, size_t bytes)
{
    return vocabulary->bytes[id] == bytes &&
           memcmp(vocabulary->text + vocabulary->begins[id], token, bytes) == 0;
}

/* The slot that holds the token, or the empty one where it belongs. */
static size_t find_slot(const tdm_vocabulary *vocabulary, const char *token, size_t bytes)
{
    size_t mask = vocabulary->slot_count - 1;
    size_t slot = (size_t)XXH3_64bits(token, bytes) & mask;
    while (vocabulary->slots[slot] != 0 &&
           !is_token(vocabulary, vocabulary->slots[slot] - 1, token, bytes))
        slot = (slot + 1) & mask;
    return slot;
}

/* Makes the table one of `count` slots. */
static tdm_status grow_slots(tdm_vocabulary *vocabulary, size_t count)
{
    size_t before = vocabulary->slot_count;
    uint32_t *old = vocabulary->slots;
    uint32_t *slots;
    TDM_TRY(tdm_alloc(count, sizeof *slots, &slots));
    vocabulary->slots = slots;
    vocabulary->slot_count = count;
    for (size_t i = 0; i < before; i++) {
        if (old[i] == 0)
            continue;
        uint32_t id = old[i] - 1;
        slots[find_slot(vocabulary, vocabulary->text + vocabulary->begins[id],
                        vocabulary->bytes[id])] = old[i];
    }
    tdm_free(old);
    return TDM_OK;
}

tdm_status tdm_vocabulary_reserve(tdm_vocabulary *vocabulary, size_t tokens, size_t text_bytes)
{
    size_t slots = 1024;
    while (slots < 2 * (tokens + 1))
        slots *= 2;
    TDM_TRY(tdm_grow(&vocabulary->begins, &vocabulary->begins_capacity, tokens,
                     sizeof *vocabulary->begins));
    TDM_TRY(tdm_grow(&vocabulary->bytes, &vocabulary->bytes_capacity, tokens,
                     sizeof *vocabulary->bytes));
    TDM_TRY(tdm_grow(&vocabulary->text, &vocabulary->text_capacity, text_bytes, 1));
    return slots > vocabulary->slot_count ? grow_slots(vocabulary, slots) : TDM_OK;
}

tdm_status tdm_vocabulary_add(tdm_vocabulary *vocabulary, uint32_t id, const char *token,
                              size_t bytes, int64_t *taken)
{
    if (taken != NULL)
        *taken = -1;
    TDM_FAIL_IF(id >= TDM_MAX_VOCABULARY, TDM_E_DATA,
                "id %lu: a vocabulary holds at most %lld tokens", (unsigned long)id,
                (long long)TDM_MAX_VOCABULARY);
    TDM_FAIL_IF(bytes > UINT32_MAX, TDM_E_DATA, "a token of %zu bytes is too long", bytes);
    size_t size = (size_t)id + 1;
    TDM_TRY(tdm_grow(&vocabulary->begins, &vocabulary->begins_capacity, size,
                     sizeof *vocabulary->begins));
    TDM_TRY(
        tdm_grow(&vocabulary->bytes, &vocabulary->bytes_capacity, size, sizeof *vocabulary->bytes));
    TDM_TRY(
        tdm_grow(&vocabulary->text, &vocabulary->text_capacity, vocabulary->text_bytes + bytes, 1));
    if (2 * (vocabulary->used_slots + 1) > (int64_t)vocabulary->slot_count)
        TDM_TRY(grow_slots(vocabulary,
                           vocabulary->slot_count == 0 ? 1024 : 4 * vocabulary->slot_count));
    while (vocabulary->size < (int64_t)size) {
        vocabulary->begins[vocabulary->size] = 0;
        vocabulary->bytes[vocabulary->size++] = 0;
    }
    if (bytes == 0)
        return TDM_OK;
    memcpy(vocabulary->text + vocabulary->text_bytes, token, bytes);
    size_t slot = find_slot(vocabulary, token, bytes);
    if (vocabulary->slots[slot] == 0) {
        vocabulary->used_slots++;
    } else {
        uint32_t before = vocabulary->slots[slot] - 1;
        vocabulary->bytes[before] = 0;
        if (taken != NULL)
            *taken = before;
    }
    vocabulary->slots[slot] = id + 1;
    vocabulary->begins[id] = vocabulary->text_bytes;
    vocabulary->bytes[id] = (uint32_t)bytes;
    vocabulary->text_bytes += bytes;
    return TDM_OK;
}

int64_t tdm_vocabulary_find(const tdm_vocabulary *vocabulary, const char *token, size_t bytes)
{
    if (bytes == 0 || vocabulary->slot_count == 0)
        return -1;
    return (int64_t)vocabulary->slots[find_slot(vocabulary, token, bytes)] - 1;
}

void tdm_vocabulary_deinit(tdm_vocabulary *vocabulary)
{
    tdm_free(vocabulary->text);
    tdm_free(vocabulary->begins);
    tdm_free(vocabulary->bytes);
    tdm_free(vocabulary->slots);
    *vocabulary = (tdm_vocabulary){0};
}
