/* The inside of a plan, for plan*.c and the files of the model; layers see plan.h only. */
#ifndef TDM_MODELS_PLAN_STATE_H
#define TDM_MODELS_PLAN_STATE_H

#include "core/memory.h"
#include "models/plan.h"

typedef struct tdm_plan_value_state {
    const char *name;        /* of the layer that computes it, or of the batch's tensor */
    const char *output_name; /* NULL: it is no output */
    tdm_axis axis;
    int64_t columns;
    int64_t stride;
    int layer;              /* that computes it; -1: lies in the batch */
    size_t offset;          /* in the arena, or in the batch */
    size_t gradient_offset; /* in the arena */
    bool training_only;
    bool *last_input; /* the reader added last, whose backward comes first */
} tdm_plan_value_state;

/* A layer looks at a value: in its forward, and then writes its gradient; or in its backward. */
typedef struct tdm_plan_use {
    tdm_value value;
    int layer;
    bool in_backward;
} tdm_plan_use;

typedef struct tdm_plan_scratch_state {
    size_t bytes;
    size_t offset;
    int layer;
    tdm_scratch_life life;
} tdm_plan_scratch_state;

/* Layers [first, end) that are run forward again before their backward. */
typedef struct tdm_plan_segment {
    int first, end;
} tdm_plan_segment;

/* A growing array of T called `items`. */
#define TDM_PLAN_LIST(T)                                                                           \
    struct {                                                                                       \
        T *items;                                                                                  \
        size_t capacity;                                                                           \
        int count;                                                                                 \
    }

/* Makes room for one more item. */
#define TDM_PLAN_GROW(list)                                                                        \
    tdm_grow(&(list).items, &(list).capacity, (size_t)(list).count + 1, sizeof *(list).items)

struct tdm_plan {
    tdm_batch_layout batch;
    bool recompute;
    TDM_PLAN_LIST(tdm_layer *) layers;
    TDM_PLAN_LIST(tdm_parameter) parameters;
    TDM_PLAN_LIST(tdm_plan_value_state) values;
    TDM_PLAN_LIST(tdm_plan_use) uses;
    TDM_PLAN_LIST(tdm_plan_scratch_state) scratch;
    TDM_PLAN_LIST(tdm_plan_segment) segments;
    TDM_PLAN_LIST(tdm_plan_sparse) sparse;
    size_t workspace_bytes;
    const char *missing_tensor; /* why the plan cannot train; NULL: it can */

    /* set by tdm_plan_finish, sparse_elements as tables are declared */
    int64_t dense_elements, sparse_elements;
    size_t inference_bytes, training_bytes; /* of the arena */

    size_t workspace_offset; /* set by tdm_plan_place */
};

/* An empty plan; *layout is copied. */
TDM_MUST_CHECK tdm_status tdm_plan_create(const tdm_batch_layout *layout, bool recompute,
                                          tdm_plan **out);
/* NULL is allowed. */
void tdm_plan_destroy(tdm_plan *plan);

/* Gives parameters their places and finds the arena's sizes; nothing is declared afterwards. */
TDM_MUST_CHECK tdm_status tdm_plan_finish(tdm_plan *plan);

/* Gives everything its place in an arena for training or for inference alone; *bytes is its
 * size. */
TDM_MUST_CHECK tdm_status tdm_plan_place(tdm_plan *plan, bool training, size_t *bytes);

/* The segment whose last layer this is; NULL: none. */
const tdm_plan_segment *tdm_plan_segment_ending(const tdm_plan *plan, int layer);

static inline size_t tdm_plan_align(size_t bytes)
{
    return (bytes + TDM_ALIGNMENT - 1) / TDM_ALIGNMENT * TDM_ALIGNMENT;
}

#endif
