/* The encoder of text tasks: BERT (Devlin et al., 2019, arXiv 1810.04805) and, as settings of the
 * same model, its pre-LayerNorm form and ModernBERT's shape (Warner et al., 2024, arXiv
 * 2412.13663).
 *
 * Its batch, behind the common tensors; a row is a sequence, and S, T, P are the most sequences,
 * tokens and predictions. It is cut from the text featurizer's (text/text_featurizer.h).
 *   ids             u32 [T]
 *   types           u32 [T]      below 2
 *   positions       u32 [T]      within the sequence
 *   token_rows      u32 [T]      the row that a token is of
 *   cu_seqlens      i32 [S + 1]  where sequence i begins
 *   token_count     i64 [1]      tokens
 *   mask_positions  u32 [P]      where a head predicts tokens: where in the T tokens
 *   mask_labels     u32 [P]      the ids that stood there; not for TDM_HEAD_FILL
 *   mask_count      i64 [1]      predictions, and
 *   mask_parts      i64 [P / TDM_MASKED_PART, rounded up]  how many are in each part of them
 *   pair_labels     u32 [S]      where pairs are told apart
 *   labels          where a head has classes: u32 [S] of TDM_HEAD_CLASSES, f32 [S, classes] of
 *                   TDM_HEAD_LABELS, f32 [S] of TDM_HEAD_REGRESSION, u32 [T] of
 *                   TDM_HEAD_TOKEN_CLASSES; TDM_NO_LABEL leaves one out
 * A padded batch has S sequences of L = T / S tokens each, and in place of cu_seqlens
 *   lengths         i32 [S]      valid tokens of a sequence; token_count is L · rows
 *   first_tokens    u32 [S]      0, L, 2 L, ...
 *
 * Dense parameters, by name. H hidden, I intermediate, V vocabulary, L layers, from 0; "norm.bias"
 * and other biases only where options.bias: embeddings.word.weight [V, H],
 * embeddings.position.weight [max_positions, H] (learned), embeddings.type.weight [2, H] (types),
 * embeddings.norm.weight, .bias [H] (post, or pre with embedding_norm)
 *   layer.<i>.attention.norm.weight, .bias [H] (pre: before it, not in layer 0 with embedding_norm;
 *   post: behind it), layer.<i>.attention.qkv.weight [3 H, H], .bias [3 H] (queries, keys, values),
 *   layer.<i>.attention.output.weight [H, H], .bias
 *   layer.<i>.mlp.norm.weight, .bias (as attention.norm; in every layer),
 * layer.<i>.mlp.input.weight [I, H], .bias, or gated [2 I, H] (what goes through the activation
 * first), layer.<i>.mlp.output.weight [H, I], .bias norm.weight, .bias [H] (pre: behind the last
 * layer) pooler.weight [H, H], .bias (always; pairs and heads of sequences, where options.pooler),
 *   pair.weight [2, H], .bias (always)
 *   masked.dense.weight [H, H], .bias, masked.norm.weight, .bias, masked.bias [V] (always); the
 *   decoder's weight is embeddings.word.weight
 *   classifier.weight [classes, H], .bias (always) */
#ifndef TDM_MODELS_ENCODER_H
#define TDM_MODELS_ENCODER_H

#include "models/model.h"

/* Predictions whose logits are made at a time. */
#define TDM_MASKED_PART 1024

typedef enum tdm_norm_place {
    TDM_NORM_POST = 0, /* behind the residual connection */
    TDM_NORM_PRE = 1,  /* before attention and MLP, and behind the last layer */
} tdm_norm_place;

typedef enum tdm_position_type {
    TDM_POSITION_LEARNED = 0,
    TDM_POSITION_ROTARY = 1,
} tdm_position_type;

/* What model.activation says, in order. */
typedef enum tdm_encoder_activation {
    TDM_ENCODER_GELU = 0,
    TDM_ENCODER_GELU_TANH = 1,
} tdm_encoder_activation;

typedef struct tdm_bert_options {
    int64_t layers;
    int64_t hidden; /* a multiple of heads */
    int64_t heads;
    int64_t intermediate;     /* units of the MLP; 0: 4 * hidden */
    double dropout;           /* of embeddings and layers */
    double attention_dropout; /* of attention's weights; -1: dropout */
    int norm;                 /* tdm_norm_place */
    bool embedding_norm; /* pre: also behind the embeddings, in the place of layer 0's first norm */
    double norm_eps;
    int positions;         /* tdm_position_type */
    int64_t max_positions; /* rows of the learned positions; 0: text.max_length */
    double rotary_theta;
    bool types;     /* embeddings of segments */
    int activation; /* tdm_encoder_activation */
    bool gated;     /* the MLP is GeGLU */
    bool bias;
    int64_t local_window; /* tokens to either side that local layers see; 0: every layer sees all */
    int64_t global_every; /* with local_window: layers 0, n, 2 n, ... see all */
    double local_rotary_theta;
    bool pooler; /* heads of sequences read tanh(W x + b) of [CLS] */
    /* standard deviation of initial weights, which are truncated at twice that */
    double initializer;
} tdm_bert_options;

/* The keys of model.type bert. */
extern const tdm_config_schema tdm_bert_schema;

extern const tdm_model_type tdm_bert;

/* All encoders, ended by NULL. */
extern const tdm_model_type *const tdm_text_models[];

/* ---- sizes, for reports ---------------------------------------------------------------------- */

/* Floating-point operations of a training step: 6 a weight of a matrix product and token, the two
 * products of attention, and the head where it predicts. */
typedef struct tdm_encoder_work {
    double per_token;             /* of the encoder's matrices */
    double per_token_and_context; /* of attention, times the tokens that a token sees */
    double per_prediction;        /* of the head */
    double per_sequence;
} tdm_encoder_work;

tdm_encoder_work tdm_bert_work(const tdm_bert_options *options, const tdm_model_inputs *inputs);

/* Σ over the tokens of a sequence of how many tokens each sees, in the mean of the layers. */
double tdm_bert_contexts(const tdm_bert_options *options, int64_t length);

/* Of the attention's weights: that of the layers where the options have none of its own. */
double tdm_bert_attention_dropout(const tdm_bert_options *options);

#endif
