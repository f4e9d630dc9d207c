/* The plan of a model: its layers in the order of the forward pass, and what they need: parameters,
 * values (activations with their gradients) and scratch memory. It is made once, before the first
 * step, and sizes every allocation.
 *
 * A model file builds its plan by calling tdm_<layer>_add() for one layer after the other. The
 * forward pass runs the list, the backward pass the list reversed; there is no tape. Layers that
 * compute a loss add to it in forward where the step only scores, and in backward where it
 * trains. */
#ifndef TDM_MODELS_PLAN_H
#define TDM_MODELS_PLAN_H

#include "core/batch.h"
#include "core/ops.h"

typedef struct tdm_plan tdm_plan;
typedef struct tdm_step tdm_step;

/* A matrix product of a training step, as ops->gemm is asked for it: c [m, n]. */
typedef struct tdm_product {
    int64_t m, n, k;
    bool trans_a, trans_b, accumulate;
    int count; /* tensor of the batch that tells how many of its m rows, with trans_a of its k, are
                  valid; -1: all */
} tdm_product;

/* `count` goes on counting where `capacity` ends. */
typedef struct tdm_product_list {
    tdm_product *items;
    int capacity;
    int count;
} tdm_product_list;

/* ---- layers ---------------------------------------------------------------------------------- */

typedef struct tdm_layer tdm_layer;

typedef struct tdm_layer_type {
    tdm_status (*forward)(tdm_layer *layer, const tdm_step *step);
    tdm_status (*backward)(tdm_layer *layer, const tdm_step *step);
    /* Appends the products of a training step; NULL where there are none. */
    void (*products)(const tdm_layer *layer, const tdm_plan *plan, tdm_product_list *list);
    void (*destroy)(tdm_layer *layer); /* frees what the layer owns, not the struct; may be NULL */
} tdm_layer_type;

/* The first member of every layer's own struct. */
struct tdm_layer {
    const tdm_layer_type *type;
    char *name; /* "mlp.0": the prefix of its parameters */
};

/* Allocates a layer's struct of `size` bytes, which begins with a tdm_layer, set to zero, and
 * appends it. The plan owns it. `name` is copied. */
TDM_MUST_CHECK tdm_status tdm_plan_layer(tdm_plan *plan, const tdm_layer_type *type,
                                         const char *name, size_t size, void *out);

/* The layer word of the random numbers drawn for `name`: 16 bits of its XXH3. */
uint32_t tdm_layer_word(const char *name);

/* ---- parameters ------------------------------------------------------------------------------ */

typedef enum tdm_init_type {
    TDM_INIT_ZERO = 0,
    TDM_INIT_UNIFORM = 1, /* U(-bound, bound) */
    TDM_INIT_NORMAL = 2,  /* N(0, (bound / 2)²), drawn again outside (-bound, bound) */
    TDM_INIT_ONE = 3,
} tdm_init_type;

typedef struct tdm_init {
    tdm_init_type type;
    float bound;
} tdm_init;

typedef struct tdm_parameter {
    char *name; /* "embedding.C1.weight" */
    tdm_shape shape;
    tdm_init init;
    bool decay;     /* weight decay applies */
    bool sparse;    /* a table [rows, dim]: lives in the sparse slab, has no gradient slab; row 0 is
                       zero */
    int64_t offset; /* elements from the start of its slab */
} tdm_parameter;

/* Declares a parameter called "<prefix>.<name>" and returns its index. Dense parameters get their
 * places in reverse order of declaration, when the plan is complete; sparse ones get theirs at
 * once, in order. Each is aligned to TDM_ALIGNMENT. TDM_E_CONFIG where the name is taken. */
TDM_MUST_CHECK tdm_status tdm_plan_parameter(tdm_plan *plan, const char *prefix, const char *name,
                                             tdm_shape shape, tdm_init init, bool decay,
                                             bool sparse, int *out);

const tdm_parameter *tdm_plan_parameter_get(const tdm_plan *plan, int index);

/* The rows of an embedding layer that a step trains: where the batch has its distinct ids, and the
 * scratch that holds a gradient for each. */
typedef struct tdm_plan_sparse {
    /* the layer's; `table` counts from the sparse slab's start */
    const tdm_embedding_field *fields;
    int field_count;
    int counts, ids, starts, positions; /* tensors of the batch */
    int gradients;                      /* a tdm_scratch */
} tdm_plan_sparse;

/* Declares the sparse gradients of a layer. *sparse is copied. */
TDM_MUST_CHECK tdm_status tdm_plan_sparse_gradient(tdm_plan *plan, const tdm_plan_sparse *sparse);

tdm_distinct_ids tdm_plan_distinct(const tdm_plan *plan, const tdm_plan_sparse *sparse,
                                   const unsigned char *batch);

/* Declares that the batch lacks what training needs; `tensor` (kept, not copied) is its name. */
void tdm_plan_cannot_train(tdm_plan *plan, const char *tensor);

/* ---- values ---------------------------------------------------------------------------------- */

/* What rows of a matrix are: rows of the batch, tokens of its sequences, predictions. */
typedef struct tdm_axis {
    int64_t size; /* most rows */
    int count;    /* tensor of the batch, i64 [1]: how many of them are valid; -1: all */
} tdm_axis;

/* The batch's rows. */
tdm_axis tdm_plan_rows(const tdm_plan *plan);

/* A value of the step, [axis, columns], with a gradient of the same shape. Memory of values and
 * gradients is shared by those that are not needed at the same time. */
typedef int tdm_value;
#define TDM_NO_VALUE (-1)

/* Declares a value that the layer added last computes. Rows of 16 columns and more are padded to
 * TDM_ALIGNMENT. */
TDM_MUST_CHECK tdm_status tdm_plan_value(tdm_plan *plan, tdm_axis axis, int64_t columns,
                                         tdm_value *out);

/* The same for what only the layer's own backward reads, and only training computes. */
TDM_MUST_CHECK tdm_status tdm_plan_saved_value(tdm_plan *plan, tdm_axis axis, int64_t columns,
                                               tdm_value *out);

/* Declares tensor `tensor` of the batch, F32 [batch, columns], as a value. It has no gradient. */
TDM_MUST_CHECK tdm_status tdm_plan_batch_value(tdm_plan *plan, int tensor, tdm_value *out);

/* Declares that the layer added last reads `value` in forward and will write its gradient in
 * backward, all columns of it. *accumulate (which must live as long as the layer) becomes true
 * where another layer's backward writes that gradient before this one's does. */
TDM_MUST_CHECK tdm_status tdm_plan_input(tdm_plan *plan, tdm_value value, bool *accumulate);

/* Declares that the backward of the layer added last reads `value`, its input or its own. */
TDM_MUST_CHECK tdm_status tdm_plan_keep(tdm_plan *plan, tdm_value value);

/* Whether a layer has declared it as its input. */
bool tdm_plan_is_read(const tdm_plan *plan, tdm_value value);

/* Declares that `value` can be read by its name behind a forward pass. `name` is kept, not
 * copied. */
void tdm_plan_output(tdm_plan *plan, const char *name, tdm_value value);

int64_t tdm_plan_columns(const tdm_plan *plan, tdm_value value);
tdm_axis tdm_plan_axis(const tdm_plan *plan, tdm_value value);
/* False for a value of the batch. */
bool tdm_plan_has_gradient(const tdm_plan *plan, tdm_value value);

/* Layers added between the two calls are run forward a second time before their backward, so that
 * what only they compute and keep needs no memory in between. Does nothing where the model is not
 * to recompute. */
TDM_MUST_CHECK tdm_status tdm_plan_begin_recompute(tdm_plan *plan);
void tdm_plan_end_recompute(tdm_plan *plan);

/* Memory of the layer added last. */
typedef int tdm_scratch;

typedef enum tdm_scratch_life {
    TDM_SCRATCH_KEPT = 0,     /* from the layer's forward to its backward */
    TDM_SCRATCH_GRADIENT = 1, /* from its backward to the end of the step; only where it trains */
} tdm_scratch_life;

TDM_MUST_CHECK tdm_status tdm_plan_scratch(tdm_plan *plan, size_t bytes, tdm_scratch_life life,
                                           tdm_scratch *out);

/* At least `bytes` of memory that all layers share: it keeps its contents for one call of forward
 * or backward. */
void tdm_plan_workspace(tdm_plan *plan, size_t bytes);

/* ---- the batch ------------------------------------------------------------------------------- */

const tdm_batch_layout *tdm_plan_batch(const tdm_plan *plan);

/* An axis of `size` rows of which tensor `count`, i64 [1], tells the valid ones. */
TDM_MUST_CHECK tdm_status tdm_plan_batch_axis(const tdm_plan *plan, const char *count, int64_t size,
                                              tdm_axis *out);

/* The index of the batch's tensor `name`; TDM_E_ARG where there is none of this type and shape. */
TDM_MUST_CHECK tdm_status tdm_plan_batch_tensor(const tdm_plan *plan, const char *name,
                                                tdm_dtype dtype, tdm_shape shape, int *out);

/* ---- running --------------------------------------------------------------------------------- */

/* What layers see of a running step. */
struct tdm_step {
    tdm_backend *backend;
    tdm_stream *stream;
    const tdm_plan *plan;
    const unsigned char *batch; /* on the device, laid out as tdm_plan_batch() */
    tdm_step_scalars *scalars;  /* on the device */
    unsigned char *arena;
    float *dense_values, *dense_gradients;
    float *sparse_values;
    uint64_t seed;
    tdm_dtype compute; /* of matrix products */
    bool training;     /* dropout is on */
};

/* Dense parameter `index` and its gradient. */
float *tdm_step_parameter(const tdm_step *step, int index);
float *tdm_step_parameter_gradient(const tdm_step *step, int index);

/* The pointer that ops take as `rows` of a matrix over this axis. */
const int64_t *tdm_step_axis_rows(const tdm_step *step, tdm_axis axis);
const int64_t *tdm_step_value_rows(const tdm_step *step, tdm_value value);

/* Draws for the dropout `name` of rows of the batch; none where it does not train. */
tdm_dropout_draws tdm_step_dropout(const tdm_step *step, const char *name, float rate);

tdm_matrix tdm_step_value(const tdm_step *step, tdm_value value);
/* data is NULL for a value of the batch. */
tdm_matrix tdm_step_gradient(const tdm_step *step, tdm_value value);
void *tdm_step_scratch(const tdm_step *step, tdm_scratch scratch);
void *tdm_step_workspace(const tdm_step *step);

/* Tensor `index` of the batch, and the pointer that ops take as `rows`. */
static inline const void *tdm_step_batch(const tdm_step *step, int index)
{
    return step->batch + tdm_plan_batch(step->plan)->tensors[index].offset;
}

static inline const int64_t *tdm_step_rows(const tdm_step *step)
{
    return (const int64_t *)tdm_step_batch(step, TDM_BATCH_ROWS);
}

#endif
