/* A model: a plan of layers that ends in logits and a loss, its parameters, and the calls that the
 * trainer makes of it. */
#ifndef TDM_MODELS_MODEL_H
#define TDM_MODELS_MODEL_H

#include "core/config.h"
#include "models/plan.h"

/* What a model is told of the features, by the task's featurizer. */
typedef struct tdm_model_field {
    const char *name;
    int64_t table_rows; /* buckets + 4 */
    int32_t embedding_dim;
} tdm_model_field;

/* What an encoder is asked for. */
typedef enum tdm_text_head {
    TDM_HEAD_NONE = 0,       /* output "hidden" */
    TDM_HEAD_MASKED = 1,     /* loss 0: tokens at mask_positions; loss 1: pairs, where the batch has
                                 pair_labels */
    TDM_HEAD_FILL = 2,       /* output "logits" [predictions, vocabulary] at mask_positions */
    TDM_HEAD_CLASSES = 3,    /* one of `classes` a sequence; output "logits" */
    TDM_HEAD_LABELS = 4,     /* any of `classes` a sequence; output "probabilities" */
    TDM_HEAD_REGRESSION = 5, /* a number a sequence; output "logits" */
    TDM_HEAD_TOKEN_CLASSES = 6 /* one of `classes` a token; output "logits" */
} tdm_text_head;

typedef struct tdm_model_inputs {
    /* ctr */
    int field_count;
    const tdm_model_field *fields;
    int dense_count; /* columns of the batch's "dense" */
    /* text */
    int64_t vocabulary;
    int64_t max_length; /* of a sequence */
    tdm_text_head head;
    int64_t classes;
} tdm_model_inputs;

/* How a model is run, whatever it is. */
typedef struct tdm_model_setup {
    uint64_t seed;     /* of initial values and dropout */
    tdm_dtype compute; /* of matrix products: TDM_F32 or TDM_BF16 */
    bool recompute;    /* layers that allow it are run twice, to save memory */
} tdm_model_setup;

/* One kind of model, one file. */
typedef struct tdm_model_type {
    const char *name;                /* what model.type says */
    const char *help;                /* one line */
    const tdm_config_schema *schema; /* of the recipe's `model` section, `type` aside */
    /* Adds the layers for the bound `options`, losses and outputs included. TDM_E_CONFIG where the
     * model cannot be built on such inputs. */
    tdm_status (*build)(const void *options, const tdm_model_inputs *inputs, tdm_plan *plan);
} tdm_model_type;

extern const tdm_model_type tdm_logistic_regression;
extern const tdm_model_type tdm_deepfm;
extern const tdm_model_type tdm_dcn_v2;

/* All models, ended by NULL. */
extern const tdm_model_type *const tdm_models[];

typedef struct tdm_model tdm_model;

/* Plans the model on the backend without allocating slabs or arena. `batch` is copied, the names in
 * it are not.
 *
 * A ctr batch holds, by name: "ids" u32 [fields, batch] where there are fields, "dense" f32
 * [batch, dense_count] where there are dense columns, and for training also "label" f32 [batch] and
 * "distinct_counts" i32 [fields], "distinct_ids" u32 [fields, batch], "distinct_starts" i32
 * [fields, batch + 1], "distinct_positions" i32 [fields, batch] (see tdm_distinct_ids). A text
 * batch is described in models/encoder.h.
 *
 * TDM_E_CONFIG where the model cannot be built on the inputs, TDM_E_ARG where the batch lacks a
 * tensor, TDM_E_UNSUPPORTED where the backend lacks an op. */
TDM_MUST_CHECK tdm_status tdm_model_create(const tdm_model_type *type, const void *options,
                                           const tdm_model_inputs *inputs,
                                           const tdm_batch_layout *batch, tdm_backend *backend,
                                           const tdm_model_setup *setup, tdm_model **out);
void tdm_model_destroy(tdm_model *model);

typedef struct tdm_model_memory {
    int64_t dense_elements;        /* of the dense slab, padding included */
    int64_t sparse_elements;       /* of the sparse slab */
    int64_t arena_bytes;           /* values, gradients, saved tensors, sparse gradients */
    int64_t inference_arena_bytes; /* the same where `training` is false */
} tdm_model_memory;

tdm_model_memory tdm_model_memory_get(const tdm_model *model);

/* Allocates slabs and arena on the backend. With `training` false there are no gradients.
 * TDM_E_STATE where it was called before, or for training where the batch lacks what that needs. */
TDM_MUST_CHECK tdm_status tdm_model_allocate(tdm_model *model, bool training);

/* Draws the initial values, a pure function of the seed and the parameters' names: element
 * [row, column] of a parameter is number (sample row, element column) of TDM_PURPOSE_INIT with the
 * layer word of its name. Syncs. */
TDM_MUST_CHECK tdm_status tdm_model_init(tdm_model *model);

int tdm_model_parameter_count(const tdm_model *model);
const tdm_parameter *tdm_model_parameter(const tdm_model *model, int index);

/* Slabs on the device; gradients NULL when not training. */
float *tdm_model_dense_values(const tdm_model *model);
float *tdm_model_dense_gradients(const tdm_model *model);
float *tdm_model_sparse_values(const tdm_model *model);

/* The sparse gradients of a step: one entry an embedding layer. `fields[i].table` counts from the
 * start of the sparse slab. */
typedef struct tdm_sparse_gradient {
    const tdm_embedding_field *fields;
    int field_count;
    tdm_distinct_ids distinct;
    const float *gradients;
} tdm_sparse_gradient;

int tdm_model_sparse_gradient_count(const tdm_model *model);
tdm_sparse_gradient tdm_model_sparse_gradient(const tdm_model *model, int index,
                                              const unsigned char *batch);

/* Forward pass and losses of a batch on the device. Losses add to scalars->losses; without labels
 * in the batch they say nothing. `training` needs a model allocated for it. */
TDM_MUST_CHECK tdm_status tdm_model_forward(tdm_model *model, const unsigned char *batch,
                                            tdm_step_scalars *scalars, bool training,
                                            tdm_stream *stream);
/* Runs the backward pass of the last forward, which had `training`. Dense gradients are zeroed
 * before, or with `accumulate` added to. */
TDM_MUST_CHECK tdm_status tdm_model_backward(tdm_model *model, const unsigned char *batch,
                                             tdm_step_scalars *scalars, bool accumulate,
                                             tdm_stream *stream);

/* What the last forward pass left in the plan's output `name`, on the device: TDM_E_ARG where it
 * has none of this name. */
TDM_MUST_CHECK tdm_status tdm_model_output(const tdm_model *model, const char *name,
                                           tdm_matrix *out);

/* The shapes of the matrix products of a training step on a full batch, for the benchmark that
 * times them alone; Σ 2 m n k are its floating-point operations. Fills at most `capacity` entries;
 * *count is how many there are. */
void tdm_model_products(const tdm_model *model, tdm_product *products, int capacity, int *count);

/* The name of the first tensor that holds a number which is not finite, for the report of a failed
 * step; *name is "" where all are finite. Parameters are looked at first, then values in forward
 * order, then gradients in backward order: "mlp.0.weight", "mlp.0 output", "mlp.0 output gradient",
 * "mlp.0.weight gradient". Runs the last forward pass, and where it trained the backward pass, once
 * more: batch and scalars of it must still lie on the device, and gradients are made anew.
 * Syncs. */
TDM_MUST_CHECK tdm_status tdm_model_find_non_finite(tdm_model *model, char name[128]);

#endif
