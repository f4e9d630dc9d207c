/* The optimizer: what updates a model's parameters from its gradients, and the state it keeps for
 * that. Dense parameters and embedding tables have a rule each (the rules: core/ops.h); tables are
 * updated lazily, the rows that the batch uses only. */
#ifndef TDM_TRAINER_OPTIMIZER_H
#define TDM_TRAINER_OPTIMIZER_H

#include "models/model.h"
#include "trainer/schedule.h"

/* ---- the recipe's `optimizer` section -------------------------------------------------------- */

/* Keys that a rule does not use are ignored, but for those that would be missed: see
 * tdm_optimizer_resolve. */
typedef struct tdm_update_options {
    int type; /* tdm_update_type */
    double learning_rate;
    double momentum;            /* sgd */
    double beta1, beta2;        /* adam, adamw, lamb */
    double eps;                 /* all but sgd; 0: see tdm_optimizer_resolve */
    double l2;                  /* sgd, adagrad, adam: λ of the penalty ½ λ w² */
    double weight_decay;        /* adamw, lamb: decoupled */
    double initial_accumulator; /* adagrad: what the sums of squares begin with */
} tdm_update_options;

typedef struct tdm_optimizer_options {
    tdm_update_options dense;  /* l2 and weight_decay on parameters with `decay` only */
    tdm_update_options sparse; /* l2 and weight_decay on the rows that a batch uses */
    tdm_schedule_options schedule;
} tdm_optimizer_options;

extern const tdm_config_schema tdm_optimizer_schema;

/* Completes options that were bound from `node`, the section (NULL is allowed): eps 0 becomes the
 * rule's own, 1e-10 for adagrad (as in PyTorch), 1e-6 for lamb (as in its paper), else 1e-8.
 * TDM_E_CONFIG where momentum, l2 or weight_decay is set and the rule has none, where lamb has no
 * weight_decay or is to update tables, and as tdm_schedule_resolve says. */
TDM_MUST_CHECK tdm_status tdm_optimizer_resolve(const tdm_config_node *node,
                                                tdm_optimizer_options *options);

/* The section of tasks of text: the keys of `dense` and `schedule` side by side, bound to `dense`
 * of the same struct; `sparse` stays 0. Defaults are those of BERT (Devlin et al., 2019): adamw,
 * learning rate 1e-4, betas 0.9 and 0.999, eps 1e-6, weight_decay 0.01. */
extern const tdm_config_schema tdm_text_optimizer_schema;

/* The same for options that were bound by tdm_text_optimizer_schema: eps 0 becomes 1e-10 for
 * adagrad, else 1e-6, and weight_decay 0 where it is not said and the rule has none. */
TDM_MUST_CHECK tdm_status tdm_text_optimizer_resolve(const tdm_config_node *node,
                                                     tdm_optimizer_options *options);

/* Sets both learning rates of `scalars` (on the host) for a step; see tdm_schedule_factor. */
void tdm_optimizer_learning_rates(const tdm_optimizer_options *options, int64_t step,
                                  double progress, tdm_step_scalars *scalars);

/* ---- the optimizer --------------------------------------------------------------------------- */

typedef struct tdm_optimizer tdm_optimizer;

/* Device memory that the moments take, known before anything is allocated. */
typedef struct tdm_optimizer_memory {
    int64_t dense_bytes;
    int64_t sparse_bytes;
} tdm_optimizer_memory;

tdm_optimizer_memory tdm_optimizer_memory_get(const tdm_optimizer_options *options,
                                              const tdm_model *model);

/* `options` are resolved, and copied; `model`, of this backend, is borrowed and must outlive the
 * optimizer. Allocates the moments on the backend, laid out as the model's slabs, with their first
 * values. Syncs. */
TDM_MUST_CHECK tdm_status tdm_optimizer_create(const tdm_optimizer_options *options,
                                               tdm_model *model, tdm_backend *backend,
                                               tdm_optimizer **out);
/* NULL is allowed. */
void tdm_optimizer_destroy(tdm_optimizer *optimizer);

/* Updates the parameters from the gradients of the last backward pass, of `batch` on the device:
 * norm over all gradients, unscaling, clipping, update. Where a gradient is not finite, nothing
 * changes but scalars->found_inf. `scalars` is on the device; gradient_sum_squares, to which norms
 * are added, must be 0: the host writes all scalars of a step before it, and this one as 0.
 * Allocates nothing. TDM_E_STATE where the model was not allocated for training. */
TDM_MUST_CHECK tdm_status tdm_optimizer_step(tdm_optimizer *optimizer, const unsigned char *batch,
                                             tdm_step_scalars *scalars, tdm_stream *stream);

/* ---- state, for checkpoints ------------------------------------------------------------------ */

typedef struct tdm_optimizer_tensor {
    char *name; /* "<parameter>.moment1" or "<parameter>.moment2", the optimizer's */
    tdm_dtype dtype;
    tdm_shape shape; /* of the parameter */
    void *data;      /* on the device; may be written to between steps */
} tdm_optimizer_tensor;

/* In the order of the model's parameters; moments that the rules do not use are left out. */
int tdm_optimizer_tensor_count(const tdm_optimizer *optimizer);
const tdm_optimizer_tensor *tdm_optimizer_tensor_get(const tdm_optimizer *optimizer, int index);

#endif
