/* A heap. Most pairs are seldom and so occur equally often; their order is mostly told by how their
 * tokens begin, which lies in the heap itself. */
#include "text/merge_queue.h"

#include "core/memory.h"
#include "text/word_map.h"

void tdm_merge_queue_init(tdm_merge_queue *queue, const tdm_pair_table *pairs,
                          const tdm_vocabulary *vocabulary)
{
    *queue = (tdm_merge_queue){.pairs = pairs, .vocabulary = vocabulary};
}

void tdm_merge_queue_deinit(tdm_merge_queue *queue)
{
    tdm_free(queue->items);
    *queue = (tdm_merge_queue){0};
}

static int compare_tokens(const tdm_vocabulary *vocabulary, uint32_t a, uint32_t b)
{
    if (a == b)
        return 0;
    return tdm_word_compare(vocabulary->text + vocabulary->begins[a], vocabulary->bytes[a],
                            vocabulary->text + vocabulary->begins[b], vocabulary->bytes[b]);
}

static bool goes_first(const tdm_merge_queue *queue, const tdm_merge_candidate *a,
                       const tdm_merge_candidate *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    if (a->left != b->left)
        return a->left < b->left;
    const tdm_pair *a_pair = &queue->pairs->pairs[a->pair];
    const tdm_pair *b_pair = &queue->pairs->pairs[b->pair];
    int order = compare_tokens(queue->vocabulary, a_pair->left, b_pair->left);
    if (order != 0)
        return order < 0;
    if (a->right != b->right)
        return a->right < b->right;
    return compare_tokens(queue->vocabulary, a_pair->right, b_pair->right) < 0;
}

static uint64_t token_prefix(const tdm_vocabulary *vocabulary, uint32_t token, size_t skip)
{
    size_t bytes = vocabulary->bytes[token];
    return bytes < skip
               ? 0
               : tdm_word_prefix(vocabulary->text + vocabulary->begins[token] + skip, bytes - skip);
}

tdm_status tdm_merge_queue_push(tdm_merge_queue *queue, uint32_t pair)
{
    TDM_TRY(tdm_grow(&queue->items, &queue->capacity, queue->count + 1, sizeof *queue->items));
    const tdm_pair *added = &queue->pairs->pairs[pair];
    tdm_merge_candidate item = {
        .count = added->count,
        .left = token_prefix(queue->vocabulary, added->left, 0),
        .right = token_prefix(queue->vocabulary, added->right, TDM_CONTINUATION_BYTES),
        .pair = pair,
    };
    size_t at = queue->count++;
    while (at > 0 && goes_first(queue, &item, &queue->items[(at - 1) / 2])) {
        queue->items[at] = queue->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->items[at] = item;
    return TDM_OK;
}

void tdm_merge_queue_pop(tdm_merge_queue *queue, uint32_t *pair, int64_t *count)
{
    *pair = queue->items[0].pair;
    *count = queue->items[0].count;
    tdm_merge_candidate item = queue->items[--queue->count];
    size_t at = 0;
    for (size_t child = 1; child < queue->count; child = 2 * at + 1) {
        if (child + 1 < queue->count &&
            goes_first(queue, &queue->items[child + 1], &queue->items[child]))
            child++;
        if (!goes_first(queue, &queue->items[child], &item))
            break;
        queue->items[at] = queue->items[child];
        at = child;
    }
    queue->items[at] = item;
}
