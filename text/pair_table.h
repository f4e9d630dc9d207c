/* Pairs of neighbouring symbols: how often each occurs, and in which words. */
#ifndef TDM_TEXT_PAIR_TABLE_H
#define TDM_TEXT_PAIR_TABLE_H

#include "core/status.h"

#include <stdbool.h>

typedef struct tdm_pair {
    int64_t count;
    uint32_t left, right; /* symbols */
    uint32_t place_count;
    uint64_t first_place;
} tdm_pair;

typedef struct tdm_pair_table {
    tdm_pair *pairs; /* [pair_count] */
    size_t pair_count, pair_capacity;
    uint32_t *slots; /* [slot_count], a power of two: pair + 1, 0 for none */
    size_t slot_count;
    /* The words of pair p are places[first_place, first_place + place_count). A word may have lost
     * the pair, or stand there more than once. */
    uint32_t *places;
    size_t place_count, place_capacity;
} tdm_pair_table;

void tdm_pair_table_deinit(tdm_pair_table *table);

/* The number of a pair that is in the table. */
uint32_t tdm_pair_table_find(const tdm_pair_table *table, uint32_t left, uint32_t right);

/* The number of a pair, which is added where it is new. */
TDM_MUST_CHECK tdm_status tdm_pair_table_intern(tdm_pair_table *table, uint32_t left,
                                                uint32_t right, uint32_t *pair);

/* Gives a pair room for `count` further places, which begin at *first and are to be filled. */
TDM_MUST_CHECK tdm_status tdm_pair_table_extend(tdm_pair_table *table, uint32_t pair,
                                                uint32_t count, uint64_t *first);

#endif
