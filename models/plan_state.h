/* The inside of a plan, for plan.c and the files of the model; layers see plan.h only. */
#ifndef TDM_MODELS_PLAN_STATE_H
#define TDM_MODELS_PLAN_STATE_H

#include "models/plan.h"

typedef struct tdm_plan_value_state {
    const char *name; /* of the layer that computes it, or of the batch's tensor */
    int64_t columns;
    int64_t stride;
    int tensor;             /* of the batch; -1: lies in the arena */
    size_t offset;          /* in the arena, or in the batch */
    size_t gradient_offset; /* in the arena */
    bool *last_input;       /* the reader added last, whose backward comes first */
} tdm_plan_value_state;

typedef struct tdm_plan_scratch_state {
    size_t bytes;
    size_t offset;
    bool training_only;
} tdm_plan_scratch_state;

/* A growing array of T called `items`. */
#define TDM_PLAN_LIST(T)                                                                           \
    struct {                                                                                       \
        T *items;                                                                                  \
        size_t capacity;                                                                           \
        int count;                                                                                 \
    }

struct tdm_plan {
    tdm_batch_layout batch;
    TDM_PLAN_LIST(tdm_layer *) layers;
    TDM_PLAN_LIST(tdm_parameter) parameters;
    TDM_PLAN_LIST(tdm_plan_value_state) values;
    TDM_PLAN_LIST(tdm_plan_scratch_state) scratch;
    TDM_PLAN_LIST(tdm_plan_sparse) sparse;
    size_t workspace_bytes;
    const char *missing_tensor; /* why the plan cannot train; NULL: it can */

    /* set by tdm_plan_finish, sparse_elements as tables are declared */
    int64_t dense_elements, sparse_elements;
    size_t workspace_offset;
    size_t inference_bytes; /* the arena begins with all that predicting needs */
    size_t arena_bytes;
};

/* An empty plan; *layout is copied. */
TDM_MUST_CHECK tdm_status tdm_plan_create(const tdm_batch_layout *layout, tdm_plan **out);
/* NULL is allowed. */
void tdm_plan_destroy(tdm_plan *plan);

/* Gives everything its place; nothing is declared afterwards. */
void tdm_plan_finish(tdm_plan *plan);

#endif
