/* Which pair is next: the most frequent one; of those the one with the smaller left token, then the
 * smaller right token, by their bytes. */
#ifndef TDM_TEXT_MERGE_QUEUE_H
#define TDM_TEXT_MERGE_QUEUE_H

#include "text/pair_table.h"
#include "text/vocabulary.h"

typedef struct tdm_merge_candidate {
    int64_t count;
    uint64_t left, right; /* how the tokens begin; the right one behind its "##" */
    uint32_t pair;
} tdm_merge_candidate;

typedef struct tdm_merge_queue {
    const tdm_pair_table *pairs;
    const tdm_vocabulary *vocabulary;
    tdm_merge_candidate *items;
    size_t count, capacity;
} tdm_merge_queue;

void tdm_merge_queue_init(tdm_merge_queue *queue, const tdm_pair_table *pairs,
                          const tdm_vocabulary *vocabulary);
void tdm_merge_queue_deinit(tdm_merge_queue *queue);

/* Adds a pair with the count that it has now. */
TDM_MUST_CHECK tdm_status tdm_merge_queue_push(tdm_merge_queue *queue, uint32_t pair);

/* Takes the first pair out; the queue is not empty. `count` is that of the time when it was
 * added. */
void tdm_merge_queue_pop(tdm_merge_queue *queue, uint32_t *pair, int64_t *count);

#endif
