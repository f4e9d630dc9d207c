#include "text/pair_table.h"

#include "core/memory.h"

#include <string.h>

#define FIRST_SLOTS ((size_t)1 << 14)

void tdm_pair_table_deinit(tdm_pair_table *table)
{
    tdm_free(table->pairs);
    tdm_free(table->slots);
    tdm_free(table->places);
    *table = (tdm_pair_table){0};
}

/* The slot of a pair, or the empty one where it belongs. */
static size_t find_slot(const tdm_pair_table *table, uint32_t left, uint32_t right)
{
    size_t mask = table->slot_count - 1;
    uint64_t hash = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash ^ hash >> 32) & mask;
    while (table->slots[at] != 0) {
        const tdm_pair *pair = &table->pairs[table->slots[at] - 1];
        if (pair->left == left && pair->right == right)
            break;
        at = (at + 1) & mask;
    }
    return at;
}

static tdm_status grow_slots(tdm_pair_table *table)
{
    size_t count = table->slot_count == 0 ? FIRST_SLOTS : 2 * table->slot_count;
    uint32_t *slots;
    TDM_TRY(tdm_alloc(count, sizeof *slots, &slots));
    tdm_free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    for (size_t i = 0; i < table->pair_count; i++)
        slots[find_slot(table, table->pairs[i].left, table->pairs[i].right)] = (uint32_t)i + 1;
    return TDM_OK;
}

uint32_t tdm_pair_table_find(const tdm_pair_table *table, uint32_t left, uint32_t right)
{
    return table->slots[find_slot(table, left, right)] - 1;
}

tdm_status tdm_pair_table_intern(tdm_pair_table *table, uint32_t left, uint32_t right,
                                 uint32_t *pair)
{
    if (2 * table->pair_count >= table->slot_count)
        TDM_TRY(grow_slots(table));
    uint32_t *slot = &table->slots[find_slot(table, left, right)];
    if (*slot == 0) {
        TDM_FAIL_IF(table->pair_count >= UINT32_MAX - 1, TDM_E_NOMEM,
                    "more than %lu pairs of pieces", (unsigned long)(UINT32_MAX - 1));
        TDM_TRY(tdm_grow(&table->pairs, &table->pair_capacity, table->pair_count + 1,
                         sizeof *table->pairs));
        table->pairs[table->pair_count] = (tdm_pair){.left = left, .right = right};
        *slot = (uint32_t)++table->pair_count;
    }
    *pair = *slot - 1;
    return TDM_OK;
}

tdm_status tdm_pair_table_extend(tdm_pair_table *table, uint32_t number, uint32_t count,
                                 uint64_t *first)
{
    tdm_pair *pair = &table->pairs[number];
    size_t held = pair->place_count;
    TDM_TRY(tdm_grow(&table->places, &table->place_capacity, table->place_count + held + count,
                     sizeof *table->places));
    /* What the pair has stays together with what comes. */
    if (held > 0)
        memcpy(table->places + table->place_count, table->places + pair->first_place,
               held * sizeof *table->places);
    pair->first_place = table->place_count;
    pair->place_count += count;
    *first = table->place_count + held;
    table->place_count += held + count;
    return TDM_OK;
}
