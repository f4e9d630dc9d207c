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

typedef struct tdm_model_inputs {
    int field_count;
    const tdm_model_field *fields;
    int dense_count; /* columns of the batch's "dense" */
} tdm_model_inputs;

/* One kind of model, one file. */
typedef struct tdm_model_type {
    const char *name;                /* what model.type says */
    const char *help;                /* one line */
    const tdm_config_schema *schema; /* of the recipe's `model` section, `type` aside */
    /* Adds the layers for the bound `options`; *logits is [batch, 1]. TDM_E_CONFIG where the model
     * cannot be built on such inputs. */
    tdm_status (*build)(const void *options, const tdm_model_inputs *inputs, tdm_plan *plan,
                        tdm_value *logits);
} tdm_model_type;

extern const tdm_model_type tdm_logistic_regression;
extern const tdm_model_type tdm_deepfm;
extern const tdm_model_type tdm_dcn_v2;

/* All models, ended by NULL. */
extern const tdm_model_type *const tdm_models[];

typedef struct tdm_model tdm_model;

/* Plans the model on the backend without allocating slabs or arena. `batch` is copied, the names in
 * it are not. It holds, by name: "ids" u32 [fields, batch] where there are fields, "dense" f32
 * [batch, dense_count] where there are dense columns, and for training also "label" f32 [batch] and
 * "distinct_counts" i32 [fields], "distinct_ids" u32 [fields, batch], "distinct_starts" i32
 * [fields, batch + 1], "distinct_positions" i32 [fields, batch] (see tdm_distinct_ids).
 * TDM_E_CONFIG where the model cannot be built on the inputs, TDM_E_ARG where the batch lacks a
 * tensor, TDM_E_UNSUPPORTED where the backend lacks an op. */
TDM_MUST_CHECK tdm_status tdm_model_create(const tdm_model_type *type, const void *options,
                                           const tdm_model_inputs *inputs,
                                           const tdm_batch_layout *batch, tdm_backend *backend,
                                           uint64_t seed, tdm_model **out);
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

/* Forward pass and loss of a batch on the device. Writes scalars->weight_sum and loss_sum; without
 * labels in the batch the loss says nothing. `training` needs a model allocated for it. */
TDM_MUST_CHECK tdm_status tdm_model_forward(tdm_model *model, const unsigned char *batch,
                                            tdm_step_scalars *scalars, bool training,
                                            tdm_stream *stream);
/* Zeroes the dense gradients and runs the backward pass of the last forward, which had `training`.
 */
TDM_MUST_CHECK tdm_status tdm_model_backward(tdm_model *model, const unsigned char *batch,
                                             tdm_step_scalars *scalars, tdm_stream *stream);

/* [batch] on the device, of the last forward. */
const float *tdm_model_probabilities(const tdm_model *model);

/* The shapes of the matrix products of a training step on a full batch, for the benchmark that
 * times them alone; Σ 2 m n k are its floating-point operations. Fills at most `capacity` entries;
 * *count is how many there are. */
void tdm_model_products(const tdm_model *model, tdm_product *products, int capacity, int *count);

/* The name of the first tensor that holds a number which is not finite, for the report of a failed
 * step; *name is "" where all are finite. Parameters are looked at first, then values in forward
 * order, then gradients in backward order: "mlp.0.weight", "mlp.0 output", "mlp.0 output gradient",
 * "mlp.0.weight gradient". The batch of the last forward must still lie on the device. Syncs. */
TDM_MUST_CHECK tdm_status tdm_model_find_non_finite(tdm_model *model, char name[128]);

#endif
