/* The arena: what lives at the same time gets places of its own, what does not may share them.
 *
 * Time is counted in calls of layers: every forward in order, then for the layers reversed every
 * backward, before which the forwards of a segment that is recomputed come once more. Blocks are
 * placed by falling size, each as low as those placed before it allow. */
#include "models/plan_state.h"

#include "core/memory.h"

#include <stdlib.h>

#define NEVER (-1)

/* First and last call at which memory is in use. */
typedef struct time_span {
    int begin, end;
} time_span;

typedef struct memory_block {
    size_t bytes;
    size_t *offset;
    time_span spans[2];
    int span_count;
    int number; /* in order of declaration */
} memory_block;

/* When the calls of each layer are; NEVER: there is none. */
typedef struct call_times {
    int *again, *backward;
    int *segment; /* that the layer is in, or NEVER */
    int end;
} call_times;

typedef struct placement {
    tdm_plan *plan;
    bool training;
    call_times times;
    memory_block *blocks;
    int block_count;
    const memory_block **placed; /* by falling size */
} placement;

const tdm_plan_segment *tdm_plan_segment_ending(const tdm_plan *plan, int layer)
{
    for (int i = 0; i < plan->segments.count; i++) {
        if (plan->segments.items[i].end == layer + 1)
            return &plan->segments.items[i];
    }
    return NULL;
}

/* ---- times ----------------------------------------------------------------------------------- */

static void find_segments(const tdm_plan *plan, int *segment)
{
    for (int i = 0; i < plan->layers.count; i++)
        segment[i] = NEVER;
    for (int s = 0; s < plan->segments.count; s++) {
        for (int i = plan->segments.items[s].first; i < plan->segments.items[s].end; i++)
            segment[i] = s;
    }
}

static void count_calls(placement *place)
{
    const tdm_plan *plan = place->plan;
    call_times *times = &place->times;
    int time = plan->layers.count;
    find_segments(plan, times->segment);
    for (int i = 0; i < plan->layers.count; i++)
        times->again[i] = times->backward[i] = NEVER;
    for (int i = plan->layers.count - 1; i >= 0 && place->training; i--) {
        const tdm_plan_segment *segment = tdm_plan_segment_ending(plan, i);
        for (int j = segment == NULL ? 0 : segment->first; segment != NULL && j < segment->end; j++)
            times->again[j] = time++;
        times->backward[i] = time++;
    }
    times->end = time;
}

static void reach(time_span *span, int time)
{
    if (time > span->end)
        span->end = time;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static memory_block *add_block(placement *place, size_t bytes, size_t *offset)
{
    memory_block *block = &place->blocks[place->block_count];
    *block = (memory_block){
        .bytes = tdm_plan_align(bytes), .offset = offset, .number = place->block_count++};
    return block;
}

/* Only layers of its own segment look at the value, so that it need not outlive that in between. */
static bool is_recomputed(const placement *place, tdm_value value)
{
    const tdm_plan *plan = place->plan;
    const tdm_plan_value_state *state = &plan->values.items[value];
    int segment = place->times.segment[state->layer];
    if (!place->training || segment == NEVER || state->output_name != NULL)
        return false;
    for (int i = 0; i < plan->uses.count; i++) {
        const tdm_plan_use *use = &plan->uses.items[i];
        if (use->value == value && place->times.segment[use->layer] != segment)
            return false;
    }
    return true;
}

static void add_value(placement *place, tdm_value value)
{
    const tdm_plan *plan = place->plan;
    const call_times *times = &place->times;
    tdm_plan_value_state *state = &plan->values.items[value];
    int layer = state->layer;
    size_t bytes = (size_t)(state->axis.size * state->stride) * sizeof(float);
    memory_block *block = add_block(place, bytes, &state->offset);
    bool recomputed = is_recomputed(place, value);
    time_span first = {layer, layer}, second = {times->again[layer], times->again[layer]};
    for (int i = 0; i < plan->uses.count; i++) {
        const tdm_plan_use *use = &plan->uses.items[i];
        if (use->value != value)
            continue;
        if (!use->in_backward)
            reach(&first, use->layer);
        reach(&second, use->in_backward ? times->backward[use->layer] : times->again[use->layer]);
    }
    if (state->output_name != NULL)
        reach(&first, times->end);
    if (!recomputed)
        reach(&first, second.end);
    block->spans[block->span_count++] = first;
    if (recomputed)
        block->spans[block->span_count++] = second;
}

/* A gradient lives from the backward of the last layer that reads the value to that of the layer
 * that computes it. */
static void add_gradient(placement *place, tdm_value value)
{
    const tdm_plan *plan = place->plan;
    tdm_plan_value_state *state = &plan->values.items[value];
    int last_reader = NEVER;
    for (int i = 0; i < plan->uses.count; i++) {
        const tdm_plan_use *use = &plan->uses.items[i];
        if (use->value == value && !use->in_backward && use->layer > last_reader)
            last_reader = use->layer;
    }
    if (last_reader == NEVER)
        return;
    size_t bytes = (size_t)(state->axis.size * state->stride) * sizeof(float);
    memory_block *block = add_block(place, bytes, &state->gradient_offset);
    block->spans[block->span_count++] =
        (time_span){place->times.backward[last_reader], place->times.backward[state->layer]};
}

static void add_scratch(placement *place, tdm_plan_scratch_state *scratch)
{
    const call_times *times = &place->times;
    int layer = scratch->layer;
    if (scratch->life == TDM_SCRATCH_GRADIENT && !place->training)
        return;
    memory_block *block = add_block(place, scratch->bytes, &scratch->offset);
    if (scratch->life == TDM_SCRATCH_GRADIENT) {
        block->spans[block->span_count++] = (time_span){times->backward[layer], times->end};
    } else if (times->again[layer] == NEVER) {
        int end = place->training ? times->backward[layer] : layer;
        block->spans[block->span_count++] = (time_span){layer, end};
    } else {
        block->spans[block->span_count++] = (time_span){layer, layer};
        block->spans[block->span_count++] =
            (time_span){times->again[layer], times->backward[layer]};
    }
}

static void list_blocks(placement *place)
{
    tdm_plan *plan = place->plan;
    for (int i = 0; i < plan->values.count; i++) {
        if (plan->values.items[i].layer < 0)
            continue;
        if (place->training || !plan->values.items[i].training_only)
            add_value(place, i);
        if (place->training)
            add_gradient(place, i);
    }
    for (int i = 0; i < plan->scratch.count; i++)
        add_scratch(place, &plan->scratch.items[i]);
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool live_together(const memory_block *a, const memory_block *b)
{
    for (int i = 0; i < a->span_count; i++) {
        for (int j = 0; j < b->span_count; j++) {
            if (a->spans[i].begin <= b->spans[j].end && b->spans[j].begin <= a->spans[i].end)
                return true;
        }
    }
    return false;
}

static int compare_sizes(const void *a, const void *b)
{
    const memory_block *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? 1 : -1;
    return (left->number > right->number) - (left->number < right->number);
}

/* The lowest place that is free for all of the block's time. `placed` is kept by rising offset. */
static size_t find_place(const placement *place, int placed, const memory_block *block)
{
    size_t offset = 0;
    for (int i = 0; i < placed; i++) {
        const memory_block *other = place->placed[i];
        if (!live_together(block, other))
            continue;
        if (*other->offset >= offset + block->bytes)
            break;
        if (*other->offset + other->bytes > offset)
            offset = *other->offset + other->bytes;
    }
    return offset;
}

static void insert(placement *place, int placed, const memory_block *block)
{
    int at = placed;
    while (at > 0 && *place->placed[at - 1]->offset > *block->offset) {
        place->placed[at] = place->placed[at - 1];
        at--;
    }
    place->placed[at] = block;
}

static size_t place_blocks(placement *place)
{
    size_t end = 0;
    qsort(place->blocks, (size_t)place->block_count, sizeof *place->blocks, compare_sizes);
    for (int i = 0; i < place->block_count; i++) {
        memory_block *block = &place->blocks[i];
        *block->offset = find_place(place, i, block);
        insert(place, i, block);
        if (*block->offset + block->bytes > end)
            end = *block->offset + block->bytes;
    }
    return end;
}

static tdm_status allocate(placement *place)
{
    const tdm_plan *plan = place->plan;
    size_t layers = (size_t)plan->layers.count + 1;
    size_t blocks = (size_t)(2 * plan->values.count + plan->scratch.count) + 1;
    TDM_TRY(tdm_alloc(layers, sizeof(int), &place->times.again));
    TDM_TRY(tdm_alloc(layers, sizeof(int), &place->times.backward));
    TDM_TRY(tdm_alloc(layers, sizeof(int), &place->times.segment));
    TDM_TRY(tdm_alloc(blocks, sizeof *place->blocks, &place->blocks));
    return tdm_alloc(blocks, sizeof(const memory_block *), (void *)&place->placed);
}

tdm_status tdm_plan_place(tdm_plan *plan, bool training, size_t *bytes)
{
    placement place = {.plan = plan, .training = training};
    tdm_status status = allocate(&place);
    if (status == TDM_OK) {
        count_calls(&place);
        list_blocks(&place);
        plan->workspace_offset = place_blocks(&place);
        *bytes = plan->workspace_offset + tdm_plan_align(plan->workspace_bytes);
    }
    tdm_free(place.times.again);
    tdm_free(place.times.backward);
    tdm_free(place.times.segment);
    tdm_free(place.blocks);
    tdm_free((void *)place.placed);
    return status;
}
