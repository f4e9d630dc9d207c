/* The plan of a model: its layers in the order of the forward pass, and what they need: parameters,
 * values (activations with their gradients) and scratch memory. It is made once, before the first
 * step, and sizes every allocation.
 *
 * A model file builds its plan by calling tdm_<layer>_add() for one layer after the other. The
 * forward pass runs the list, the backward pass the list reversed; there is no tape. */
#ifndef TDM_MODELS_PLAN_H
#define TDM_MODELS_PLAN_H

#include "core/batch.h"
#include "core/ops.h"

typedef struct tdm_plan tdm_plan;
typedef struct tdm_step tdm_step;

/* ---- layers ------------------------------------------------------------------------------------
 */

typedef struct tdm_layer tdm_layer;

typedef struct tdm_layer_type {
    const char *name;
    tdm_status (*forward)(tdm_layer *layer, const tdm_step *step);
    tdm_status (*backward)(tdm_layer *layer, const tdm_step *step);
    void (*destroy)(tdm_layer *layer); /* frees what the layer owns, not the struct; may be NULL */
} tdm_layer_type;

/* The first member of every layer's own struct. */
struct tdm_layer {
    const tdm_layer_type *type;
    char *name; /* "mlp.0": the prefix of its parameters */
};

/* Allocates a layer's struct of `size` bytes, which begins with a tdm_layer, and appends it. The
 * plan owns it. */
TDM_MUST_CHECK tdm_status tdm_plan_layer(tdm_plan *plan, const tdm_layer_type *type,
                                         const char *name, size_t size, void *out);

/* ---- parameters --------------------------------------------------------------------------------
 */

typedef enum tdm_init_type {
    TDM_INIT_ZERO = 0,
    TDM_INIT_UNIFORM = 1, /* U(-bound, bound) */
} tdm_init_type;

typedef struct tdm_init {
    tdm_init_type type;
    float bound;
} tdm_init;

typedef struct tdm_parameter {
    char *name; /* unique: "embedding.C1.weight" */
    tdm_shape shape;
    tdm_init init;
    bool decay;     /* weight decay applies */
    bool sparse;    /* a table [rows, dim]: lives in the sparse slab, has no gradient slab; row 0 is
                       zero */
    int64_t offset; /* elements from the start of its slab */
} tdm_parameter;

/* Declares a parameter called "<prefix>.<name>" and returns its index. Dense parameters get their
 * places in reverse order of declaration, sparse ones in order, each aligned to TDM_ALIGNMENT. */
TDM_MUST_CHECK tdm_status tdm_plan_parameter(tdm_plan *plan, const char *prefix, const char *name,
                                             tdm_shape shape, tdm_init init, bool decay,
                                             bool sparse, int *out);

/* ---- values ------------------------------------------------------------------------------------
 */

/* A value of the step, [batch, columns], with a gradient of the same shape. */
typedef int tdm_value;

/* Declares a value that a layer computes. */
TDM_MUST_CHECK tdm_status tdm_plan_value(tdm_plan *plan, int64_t columns, tdm_value *out);

/* Declares that a layer reads `value` and will write its gradient in backward. Layers declare
 * inputs when they are added. *accumulate (which must live as long as the layer) becomes true where
 * another layer's backward writes that gradient before this one's does. */
TDM_MUST_CHECK tdm_status tdm_plan_input(tdm_plan *plan, tdm_value value, bool *accumulate);

int64_t tdm_plan_columns(const tdm_plan *plan, tdm_value value);

/* Scratch or saved memory of `bytes`, its own for the whole step; *offset is for tdm_step_scratch.
 */
TDM_MUST_CHECK tdm_status tdm_plan_scratch(tdm_plan *plan, size_t bytes, size_t *offset);

/* ---- the batch ---------------------------------------------------------------------------------
 */

const tdm_batch_layout *tdm_plan_batch(const tdm_plan *plan);

/* ---- running -----------------------------------------------------------------------------------
 */

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
    bool training; /* dropout is on */
};

/* Parameter `index` and its dense gradient. */
float *tdm_step_parameter(const tdm_step *step, int index);
float *tdm_step_parameter_gradient(const tdm_step *step, int index);

tdm_matrix tdm_step_value(const tdm_step *step, tdm_value value);
tdm_matrix tdm_step_gradient(const tdm_step *step, tdm_value value);
void *tdm_step_scratch(const tdm_step *step, size_t offset);

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
