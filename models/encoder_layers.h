/* The layers that encoders are made of. As in layers.h, each function adds one to the plan. */
#ifndef TDM_MODELS_ENCODER_LAYERS_H
#define TDM_MODELS_ENCODER_LAYERS_H

#include "models/encoder.h"
#include "models/layers.h"

/* Tensors of the batch that the layers of an encoder read. */
typedef struct tdm_encoder_batch {
    tdm_axis tokens, sequences, predictions;
    int ids, types, positions, token_rows;
    int cu_seqlens, lengths;                     /* -1: the other */
    int first_tokens;                            /* u32 [S]; unpadded cu_seqlens */
    int mask_positions, mask_labels, mask_parts; /* -1: none */
    int pair_labels, labels;
    int64_t max_length;
} tdm_encoder_batch;

/* Finds them; TDM_E_ARG for what the head needs and the batch lacks. Labels may lack: the plan
 * cannot train then. */
TDM_MUST_CHECK tdm_status tdm_encoder_batch_find(tdm_plan *plan, const tdm_model_inputs *inputs,
                                                 tdm_encoder_batch *out);

/* Draws for a dropout of tokens. */
tdm_dropout_draws tdm_step_token_dropout(const tdm_step *step, const tdm_encoder_batch *batch,
                                         const char *name, float rate);

/* [tokens, hidden] = dropout(norm(word + position + type)); *word is the index of the parameter
 * "embeddings.word.weight", which the masked head shares. */
TDM_MUST_CHECK tdm_status tdm_token_embedding_add(tdm_plan *plan, const tdm_bert_options *options,
                                                  const tdm_model_inputs *inputs,
                                                  const tdm_encoder_batch *batch, int *word,
                                                  tdm_value *output);

/* [tokens, hidden] = attention of `qkv` [tokens, 3 hidden], which is turned by its rotary positions
 * in place. `layer` tells whether it is local. */
TDM_MUST_CHECK tdm_status tdm_attention_add(tdm_plan *plan, const char *name,
                                            const tdm_bert_options *options, int64_t layer,
                                            const tdm_encoder_batch *batch, tdm_value qkv,
                                            tdm_value *output);

typedef struct tdm_norm_options {
    bool bias;
    float eps;
    double dropout; /* of x */
} tdm_norm_options;

/* sum = residual + dropout(x), y = norm(sum). Without a residual, TDM_NO_VALUE, nothing is dropped
 * and *sum is x. */
TDM_MUST_CHECK tdm_status tdm_norm_add(tdm_plan *plan, const char *name,
                                       const tdm_norm_options *options,
                                       const tdm_encoder_batch *batch, tdm_value x,
                                       tdm_value residual, tdm_value *sum, tdm_value *y);

/* Dropout of x by tokens, or where its rows are the batch's by those; x itself where `rate` is
 * 0. */
TDM_MUST_CHECK tdm_status tdm_drop_add(tdm_plan *plan, const char *name,
                                       const tdm_encoder_batch *batch, double rate, tdm_value x,
                                       tdm_value *output);

/* [tokens, intermediate] = f(x[:, :n]) ∘ x[:, n:]. */
TDM_MUST_CHECK tdm_status tdm_gate_add(tdm_plan *plan, const char *name, tdm_activation activation,
                                       tdm_value x, tdm_value *output);

/* [axis, columns]: rows of x, those that tensor `positions` of the batch, u32, tells; none
 * twice. */
TDM_MUST_CHECK tdm_status tdm_gather_add(tdm_plan *plan, const char *name, tdm_axis axis,
                                         int positions, tdm_value x, tdm_value *output);

/* Loss 0 of masked tokens: x [predictions, hidden] times the word table, "masked.bias", softmax.
 * The logits of TDM_MASKED_PART predictions are made at a time, and in training their gradients
 * with them. */
TDM_MUST_CHECK tdm_status tdm_masked_loss_add(tdm_plan *plan, const tdm_encoder_batch *batch,
                                              int word, int64_t vocabulary, tdm_value x);

/* Output "logits" [predictions, vocabulary] of the same. */
TDM_MUST_CHECK tdm_status tdm_masked_logits_add(tdm_plan *plan, const tdm_encoder_batch *batch,
                                                int word, int64_t vocabulary, tdm_value x);

/* ---- losses ---------------------------------------------------------------------------------- */

/* Loss `loss` of logits [axis, classes] and tensor `labels` of the batch; -1: the plan cannot
 * train. With `weighted`, rows count with the batch's weights. */
TDM_MUST_CHECK tdm_status tdm_softmax_loss_add(tdm_plan *plan, const char *name, tdm_value logits,
                                               int labels, bool weighted, int loss);
TDM_MUST_CHECK tdm_status tdm_squared_loss_add(tdm_plan *plan, const char *name, tdm_value logits,
                                               int labels, int loss);

#endif
