/* The layers that CTR models are made of. Each function adds one layer (tdm_mlp_add: several) to
 * the plan, wires it to its inputs and answers the value that it computes. Weights are [out, in];
 * f32. */
#ifndef TDM_MODELS_LAYERS_H
#define TDM_MODELS_LAYERS_H

#include "models/model.h"

/* Batch tensor "dense" as a value; TDM_NO_VALUE where the inputs have no dense columns. */
TDM_MUST_CHECK tdm_status tdm_dense_input(tdm_plan *plan, const tdm_model_inputs *inputs,
                                          tdm_value *out);

/* [batch, Σ dim + columns of `dense`]: the vectors of all fields side by side, and behind them the
 * columns of `dense`, a value of the batch or TDM_NO_VALUE. Tables "<name>.<field>.weight" start
 * uniform with standard deviation `deviation`. */
TDM_MUST_CHECK tdm_status tdm_embedding_add(tdm_plan *plan, const char *name,
                                            const tdm_model_inputs *inputs, double deviation,
                                            tdm_value dense, tdm_value *output);

/* [batch, 1]: the sum over the fields of one weight an id; tables start at zero. */
TDM_MUST_CHECK tdm_status tdm_first_order_add(tdm_plan *plan, const char *name,
                                              const tdm_model_inputs *inputs, tdm_value *output);

typedef struct tdm_linear_options {
    int64_t units;
    bool bias;
    tdm_activation activation;
    double dropout; /* the share of the outputs that training drops, [0, 1) */
    /* 0: Xavier uniform (Glorot and Bengio, 2010); else the standard deviation of a normal,
     * truncated at twice that. */
    double initializer;
} tdm_linear_options;

/* [rows of x, units] = dropout(activation(x Wᵀ + b)); dropout of rows of the batch only. */
TDM_MUST_CHECK tdm_status tdm_linear_add(tdm_plan *plan, const char *name, tdm_value input,
                                         const tdm_linear_options *options, tdm_value *output);

/* A recipe's section `mlp`. */
typedef struct tdm_mlp_options {
    tdm_ints units; /* of each hidden layer; none: the MLP is its logit */
    double dropout;
} tdm_mlp_options;

extern const tdm_config_schema tdm_mlp_schema;

/* [batch, 1]: hidden layers "<name>.0", "<name>.1", … with ReLU and dropout, and "<name>.logit",
 * linear with bias. */
TDM_MUST_CHECK tdm_status tdm_mlp_add(tdm_plan *plan, const char *name, tdm_value input,
                                      const tdm_mlp_options *options, tdm_value *output);

/* [batch, 1]: the pairwise part of a factorization machine over the first fields · dim columns of
 * `embeddings`. A layer that reads all columns of it must be added later. */
TDM_MUST_CHECK tdm_status tdm_fm_add(tdm_plan *plan, const char *name, tdm_value embeddings,
                                     int fields, int64_t dim, tdm_value *output);

/* x0 ∘ (W x + b) + x, a full-rank cross of DCN-v2 (Wang et al., 2021); x may be x0. */
TDM_MUST_CHECK tdm_status tdm_cross_add(tdm_plan *plan, const char *name, tdm_value x0, tdm_value x,
                                        tdm_value *output);

/* Loss 0, output "probabilities" [batch, n] of logits [batch, n]. `labels`: the name of the batch's
 * tensor f32 [batch, n] (of one column [batch]); where it is not there the plan cannot train.
 * `sums_weights`: losses[0].weight_sum is made of the batch's weights here, else it is given. */
TDM_MUST_CHECK tdm_status tdm_bce_loss_add(tdm_plan *plan, const char *name, tdm_value logits,
                                           const char *labels, bool sums_weights);

#define TDM_SUM_INPUTS 4

/* [batch, 1]: the sum of `count` values of one column, at most TDM_SUM_INPUTS, those that are
 * TDM_NO_VALUE left out, and of parameter "<name>.bias" [1] where `bias`. */
TDM_MUST_CHECK tdm_status tdm_sum_add(tdm_plan *plan, const char *name, const tdm_value *inputs,
                                      int count, bool bias, tdm_value *output);

#endif
