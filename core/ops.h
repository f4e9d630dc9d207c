/* What a backend computes. One struct of arguments an op; layers are written on these once, and
 * each backend supplies the functions.
 *
 * Contracts that hold for every op:
 * - All pointers are device memory of the backend. The struct of arguments itself is read before
 *   the op returns.
 * - An op puts its work on the stream and returns; the status tells of launch errors only.
 * - `rows` points to the count of valid rows in device memory (NULL: all rows are valid). Rows at
 *   or behind it are neither read nor written, so their contents never matter.
 * - Matrices are row-major with a stride; they may not overlap unless the op says so.
 * - Gradients of parameters accumulate (+=). Gradients of activations overwrite, unless
 *   `accumulate`.
 * - Reductions are deterministic: the same input gives the same bits on any number of threads.
 * - Element types are F32 unless the comment says otherwise; an op that lacks the type of a matrix
 *   answers TDM_E_UNSUPPORTED. */
#ifndef TDM_CORE_OPS_H
#define TDM_CORE_OPS_H

#include "core/backend.h"
#include "core/rng.h"
#include "core/tensor.h"

typedef struct tdm_matrix {
    void *data;
    int64_t rows;
    int64_t columns;
    int64_t stride; /* elements from one row to the next */
    tdm_dtype dtype;
} tdm_matrix;

/* A model has a loss for each thing that it is asked; the step's loss is Σ_i loss_sum / weight_sum,
 * summed over the losses. */
#define TDM_LOSSES 2
typedef struct tdm_loss_scalars {
    double weight_sum;  /* of the global batch; known before a gradient is made */
    double loss_sum;    /* weighted, not divided; losses add to it */
    double correct_sum; /* weights of the rows whose label has the largest logit; added to */
} tdm_loss_scalars;

/* Every scalar of a step, in device memory, so that a step can be recorded once and replayed. */
typedef struct tdm_step_scalars {
    /* written by the host before the step */
    int64_t step; /* 1 for the first update */
    int64_t epoch;
    double dense_learning_rate;
    double sparse_learning_rate;
    double clip_norm;  /* 0: no clipping */
    double loss_scale; /* gradients come out multiplied by it */
    /* written by the step */
    tdm_loss_scalars losses[TDM_LOSSES];
    double gradient_sum_squares; /* of all gradients, loss_scale included */
    double gradient_norm;        /* unscaled, before clipping */
    double gradient_scale;       /* what updates multiply gradients by: unscaling and clipping */
    int64_t found_inf; /* 1: a gradient is not finite, updates leave everything as it is */
} tdm_step_scalars;

typedef enum tdm_activation {
    TDM_ACTIVATION_NONE = 0,
    TDM_ACTIVATION_RELU = 1,
    TDM_ACTIVATION_GELU = 2,      /* x Φ(x), Φ by erf (Hendrycks and Gimpel, 2016) */
    TDM_ACTIVATION_GELU_TANH = 3, /* its approximation by tanh */
    TDM_ACTIVATION_TANH = 4,
} tdm_activation;

/* c = activation(op(a) · op(b) + bias), or c += op(a) · op(b).
 * op(a) is [m, k], op(b) [k, n], c [m, n]; a is stored as [k, m] where trans_a, b as [n, k] where
 * trans_b. `rows` counts rows of the batch: rows of a and c where a is not transposed (m), rows of
 * a and b where it is (k). bias [n] may be NULL and, like the activation, needs accumulate false.
 * `compute` TDM_BF16 rounds a and b to bfloat16 (to nearest even) before they are multiplied; sums,
 * bias, activation and c stay F32. TDM_E_UNSUPPORTED where the device has no such products. */
typedef struct tdm_gemm_args {
    tdm_matrix a, b, c;
    bool trans_a, trans_b;
    bool accumulate;
    const float *bias;
    tdm_activation activation;
    tdm_matrix preactivation; /* gets op(a) · op(b) + bias; data NULL: it is not kept */
    tdm_dtype compute;        /* TDM_F32 or TDM_BF16 */
    const int64_t *rows;
} tdm_gemm_args;

/* y = x, or y += x. */
typedef struct tdm_add_args {
    tdm_matrix x, y;
    bool accumulate;
    const int64_t *rows;
} tdm_add_args;

/* sums[j] += Σ_r x[r, j]. */
typedef struct tdm_column_sum_args {
    tdm_matrix x;
    float *sums;
    const int64_t *rows;
} tdm_column_sum_args;

/* dx = scale · dy where y > 0, else 0; and bias_gradient[j] += Σ_r dx[r, j] unless NULL. dx may be
 * dy. Behind a dropout, y is what that left and scale its 1 / (1 - rate), else 1. */
typedef struct tdm_relu_bwd_args {
    tdm_matrix y, dy, dx;
    float scale;
    float *bias_gradient;
    const int64_t *rows;
} tdm_relu_bwd_args;

/* What dropout draws from: element [row, column] of a matrix of n columns is number
 * positions[row] · n + column of the row's sample, in this epoch and at this occurrence of the
 * sample in it (core/rng.h). */
typedef struct tdm_dropout_draws {
    float rate; /* [0, 1); 0: nothing is dropped, and the rest is not looked at */
    tdm_philox_key key;
    const uint64_t *samples;         /* of the batch's rows */
    const uint32_t *occurrences;     /* of them; NULL: 0 */
    const uint32_t *sample_rows;     /* which of them a row belongs to; NULL: its own */
    const uint32_t *positions;       /* of a row in its sample; NULL: 0 */
    const tdm_step_scalars *scalars; /* epoch */
} tdm_dropout_draws;

/* y = x · keep / (1 - rate). The same call on the gradient is the backward, where relu_bwd does not
 * do it. y may be x. */
typedef struct tdm_dropout_args {
    tdm_matrix x, y;
    tdm_dropout_draws draws;
    const int64_t *rows;
} tdm_dropout_args;

/* out[r] = or += table[ids[r]]. The ids are below table.rows. */
typedef struct tdm_lookup_fwd_args {
    tdm_matrix table;
    const uint32_t *ids; /* [rows] */
    tdm_matrix out;      /* [rows, columns of the table] */
    bool accumulate;
    const int64_t *rows;
} tdm_lookup_fwd_args;

/* table_gradient[ids[r]] += dout[r]. */
typedef struct tdm_lookup_bwd_args {
    tdm_matrix dout;
    const uint32_t *ids;
    tdm_matrix table_gradient;
    const int64_t *rows;
} tdm_lookup_bwd_args;

/* Layer normalization (Ba et al., 2016, arXiv 1607.06450) behind a residual connection:
 *   sum = residual + x · keep / (1 - rate)
 *   y   = (sum - mean) · rstd · gamma + beta, over the columns of a row,
 *         rstd = 1 / sqrt(variance + eps), the variance divided by the count of columns
 * sum may be x; where there is neither residual nor dropout, x is the sum and `sum` is not looked
 * at.
 */
typedef struct tdm_layer_norm_fwd_args {
    tdm_matrix x;
    tdm_matrix residual; /* data NULL: 0 */
    tdm_dropout_draws dropout;
    tdm_matrix sum;
    const float *gamma;
    const float *beta; /* NULL: 0 */
    float eps;
    tdm_matrix y;         /* data NULL: the sum only */
    float *means, *rstds; /* [rows], for the backward; NULL: not kept */
    const int64_t *rows;
} tdm_layer_norm_fwd_args;

/* total = dsum + the gradient through y; dx (+)= total · keep / (1 - rate), d_residual (+)= total.
 * dx may be dsum or dy. */
typedef struct tdm_layer_norm_bwd_args {
    tdm_matrix sum; /* as the forward left it */
    const float *gamma;
    const float *means, *rstds;
    tdm_matrix dy;   /* data NULL: 0, and gamma and beta get nothing */
    tdm_matrix dsum; /* data NULL: 0 */
    tdm_dropout_draws dropout;
    tdm_matrix dx;         /* data NULL: not wanted */
    tdm_matrix d_residual; /* data NULL: not wanted */
    bool accumulate_dx, accumulate_residual;
    float *gamma_gradient, *beta_gradient; /* +=; beta's may be NULL */
    const int64_t *rows;
} tdm_layer_norm_bwd_args;

/* dx = dy · f'(x) for a GELU or, x being what f gave, tanh; and bias_gradient[j] += Σ_r dx[r, j]
 * unless NULL. dx may be dy. */
typedef struct tdm_activation_bwd_args {
    tdm_activation activation;
    tdm_matrix x; /* before the activation; of TDM_ACTIVATION_TANH, behind it */
    tdm_matrix dy, dx;
    float *bias_gradient;
    const int64_t *rows;
} tdm_activation_bwd_args;

/* y = f(x[:, :n]) ∘ x[:, n:], f a GELU: GeGLU (Shazeer, 2020, arXiv 2002.05202). */
typedef struct tdm_gated_fwd_args {
    tdm_activation activation;
    tdm_matrix x; /* [rows, 2 n] */
    tdm_matrix y; /* [rows, n] */
    const int64_t *rows;
} tdm_gated_fwd_args;

/* dx [rows, 2 n] may be x; bias_gradient as in activation_bwd, [2 n]. */
typedef struct tdm_gated_bwd_args {
    tdm_activation activation;
    tdm_matrix x, dy, dx;
    float *bias_gradient;
    const int64_t *rows;
} tdm_gated_bwd_args;

/* Rotary positions (Su et al., 2021, arXiv 2104.09864), in place: in each group of `dim` columns,
 * x1 being its first half and x2 its second, x1' = x1 cos φ - x2 sin φ, x2' = x2 cos φ + x1 sin φ,
 * φ_d = positions[r] · theta^(-2 d / dim). `inverse` turns back, which is also the backward. */
typedef struct tdm_rotary_args {
    tdm_matrix x; /* [rows, groups · dim]: the queries and keys of all heads */
    int64_t dim;
    double theta;
    const uint32_t *positions; /* [rows], below max_positions */
    int64_t max_positions;
    bool inverse;
    const int64_t *rows;
} tdm_rotary_args;

/* Where the sequences of a batch lie in its tokens. */
typedef struct tdm_sequence_spans {
    /* [rows + 1]: sequence i is tokens [cu[i], cu[i + 1]); NULL: padded */
    const int32_t *cu_seqlens;
    const int32_t *lengths; /* padded: sequence i is tokens [i · stride, i · stride + lengths[i]) */
    int64_t stride;
    int64_t batch;       /* most sequences */
    int64_t max_length;  /* of a sequence */
    const int64_t *rows; /* valid sequences */
} tdm_sequence_spans;

/* Softmax attention within each sequence, for each head: p = softmax_j(scale · q_i · k_j) over the
 * j with |i - j| <= window, o_i = Σ_j p_ij · keep_ij / (1 - rate) · v_j. keep_ij is element (head ·
 * max_length + i) · max_length + j of the sequence's sample (draws: no sample_rows, no positions),
 * below 2^32. Memory is linear in the length (Dao et al., 2022, arXiv 2205.14135): what is kept for the
 * backward is log Σ_j exp(scale · q_i · k_j). Tokens of no sequence get zeros. */
typedef struct tdm_attention_fwd_args {
    tdm_matrix qkv; /* [tokens, 3 · heads · dim]: queries of all heads, keys, values */
    int64_t heads;
    int64_t window; /* -1: all */
    float scale;
    tdm_dropout_draws dropout;
    tdm_sequence_spans spans;
    tdm_dtype compute; /* as of gemm */
    tdm_matrix out;    /* [tokens, heads · dim] */
    float *log_sums;   /* [tokens, heads]; NULL: not kept */
} tdm_attention_fwd_args;

typedef struct tdm_attention_bwd_args {
    tdm_matrix qkv, out, dout;
    int64_t heads;
    int64_t window;
    float scale;
    tdm_dropout_draws dropout;
    tdm_sequence_spans spans;
    tdm_dtype compute;
    const float *log_sums;
    tdm_matrix dqkv;
} tdm_attention_bwd_args;

/* One field of an embedding. Its values of a batch lie at `values` in every list of values. */
typedef struct tdm_embedding_field {
    int64_t table;      /* elements from `tables` to this field's table [table_rows, dim] */
    int64_t table_rows; /* ids are below it; row 0 is zero and never trained */
    int64_t values;
    int64_t gradients; /* elements from `gradients` to this field's rows, room for [values, dim] */
    int64_t offsets; /* elements from `offsets` to this field's [batch + 1], never falling to their
                      * end; -1: one value a row */
    int32_t dim;
    int32_t column; /* of the output where its vector begins */
    int32_t index;  /* of the field in the lists that have one entry a field */
    bool mean;      /* a bag is averaged, Σ w e / Σ w, else summed, Σ w e */
} tdm_embedding_field;

/* out[r, column ..] = pooled vector of each field; with sum_fields all fields have one dim and
 * column 0, and out[r] is the sum over fields. An empty bag gives zeros. */
typedef struct tdm_embedding_fwd_args {
    const tdm_embedding_field *fields; /* host memory that outlives the step */
    int field_count;
    bool sum_fields;
    const float *tables;
    const uint32_t *ids;
    const int32_t *offsets;     /* NULL where no field is a bag */
    const float *value_weights; /* NULL: all 1 */
    tdm_matrix out;
    const int64_t *rows;
} tdm_embedding_fwd_args;

/* The distinct ids of a batch, field by field, made by the CPU with the batch. Id 0 is left out. */
typedef struct tdm_distinct_ids {
    const int32_t *counts; /* [fields] */
    const uint32_t *ids;   /* at `values`: the distinct ids in order of first use */
    const int32_t *starts; /* at `values` + index: counts + 1 entries into the field's positions */
    /* at `values`: value numbers within the field, grouped by id, rising */
    const int32_t *positions;
} tdm_distinct_ids;

/* gradients[u] = Σ over the values with distinct id u of the (weighted) output gradient. */
typedef struct tdm_embedding_bwd_args {
    const tdm_embedding_field *fields;
    int field_count;
    tdm_distinct_ids distinct;
    const int32_t *offsets;
    const float *value_weights;
    tdm_matrix dout;
    float *gradients;
} tdm_embedding_bwd_args;

/* out[r] = ½ Σ_d ((Σ_f e[r,f,d])² − Σ_f e[r,f,d]²): the pairwise part of a factorization machine
 * (Rendle, 2010) over e [rows, fields · dim]. sums [rows, dim] is saved for the backward. */
typedef struct tdm_fm_fwd_args {
    tdm_matrix embeddings;
    int64_t fields;
    tdm_matrix out;  /* [rows, 1] */
    tdm_matrix sums; /* [rows, dim] */
    const int64_t *rows;
} tdm_fm_fwd_args;

/* d_embeddings[r,f,d] (+)= dout[r] · (sums[r,d] − e[r,f,d]). */
typedef struct tdm_fm_bwd_args {
    tdm_matrix embeddings, sums, dout, d_embeddings;
    int64_t fields;
    bool accumulate;
    const int64_t *rows;
} tdm_fm_bwd_args;

/* y = x0 ∘ u + x: a cross of DCN-v2 (Wang et al., 2021), u = W x + b made by gemm. */
typedef struct tdm_cross_fwd_args {
    tdm_matrix x0, x, u, y;
    const int64_t *rows;
} tdm_cross_fwd_args;

/* du = dy ∘ x0; dx0 (+)= dy ∘ u; then dx (+)= dy unless dx.data is NULL. dx may be dx0, with
 * accumulate_dx. */
typedef struct tdm_cross_bwd_args {
    tdm_matrix x0, u, dy, du, dx0, dx;
    bool accumulate_dx0, accumulate_dx;
    const int64_t *rows;
} tdm_cross_bwd_args;

/* losses[0].weight_sum = Σ_r weights[r]. */
typedef struct tdm_weight_sum_args {
    const float *weights;
    int64_t batch;
    const int64_t *rows;
    tdm_step_scalars *scalars;
} tdm_weight_sum_args;

/* The losses below add Σ w l and Σ w [correct] to losses[loss] of the scalars; unless dlogits.data
 * is NULL, dlogits = loss_scale · w · dl/dz / weight_sum, 0 where weight_sum is 0. dlogits may be
 * logits. */

/* Binary cross-entropy from logits, in nats, of each element: l = max(z, 0) - z y + log(1 +
 * e^-|z|), w the row's weight; probabilities = σ(z). weight_sum counts elements. Correct: z > 0 as
 * y > 0.5. */
typedef struct tdm_bce_args {
    tdm_matrix logits;        /* [rows, n] */
    const float *labels;      /* [rows, n]; NULL: 0, and the loss says nothing */
    const float *weights;     /* [rows] */
    tdm_matrix probabilities; /* [rows, n]; data NULL: not wanted */
    tdm_matrix dlogits;
    int loss;
    tdm_step_scalars *scalars;
    const int64_t *rows;
} tdm_bce_args;

/* A row with this label is left out: no loss, no gradient. */
#define TDM_NO_LABEL UINT32_MAX

/* Cross-entropy of a softmax, in nats: l = log Σ_c e^z_c - z_label. Correct: no logit is larger
 * than the label's. */
typedef struct tdm_softmax_loss_args {
    tdm_matrix logits;      /* [rows, classes] */
    const uint32_t *labels; /* [rows], below classes or TDM_NO_LABEL */
    const float *weights;   /* [rows]; NULL: 1 */
    tdm_matrix dlogits;
    int loss;
    tdm_step_scalars *scalars;
    const int64_t *rows;
} tdm_softmax_loss_args;

/* l = (z - y)². Nothing is correct. */
typedef struct tdm_squared_loss_args {
    tdm_matrix logits;    /* [rows, 1] */
    const float *labels;  /* [rows] */
    const float *weights; /* [rows] */
    tdm_matrix dlogits;
    int loss;
    tdm_step_scalars *scalars;
    const int64_t *rows;
} tdm_squared_loss_args;

/* scalars->gradient_sum_squares += Σ x². */
typedef struct tdm_dense_norm_args {
    const float *x;
    int64_t count;
    tdm_step_scalars *scalars;
} tdm_dense_norm_args;

/* The same over the distinct rows of an embedding's gradients. */
typedef struct tdm_sparse_norm_args {
    const tdm_embedding_field *fields;
    int field_count;
    tdm_distinct_ids distinct;
    const float *gradients;
    tdm_step_scalars *scalars;
} tdm_sparse_norm_args;

/* From gradient_sum_squares: gradient_norm, found_inf and gradient_scale = 1 / loss_scale times
 * min(1, clip_norm / gradient_norm). */
typedef struct tdm_prepare_update_args {
    tdm_step_scalars *scalars;
} tdm_prepare_update_args;

typedef enum tdm_update_type {
    TDM_UPDATE_SGD = 0,
    TDM_UPDATE_ADAGRAD = 1,
    TDM_UPDATE_ADAM = 2,
    TDM_UPDATE_ADAMW = 3,
    TDM_UPDATE_LAMB = 4,
} tdm_update_type;

/* With g the gradient times gradient_scale, plus l2 · w except for adamw and lamb, lr the learning
 * rate and t the step:
 *
 *   sgd      w −= lr · g, or with momentum: m = momentum · m + g, w −= lr · m
 *   adagrad  a += g², w −= lr · g / (√a + eps)          (Duchi et al., 2011)
 *   adam     m = β1 m + (1 − β1) g, v = β2 v + (1 − β2) g²,
 *            w −= lr · (m / (1 − β1^t)) / (√(v / (1 − β2^t)) + eps)
 *                                                       (Kingma and Ba, 2015)
 *   adamw    w −= lr · l2 · w, then adam                (Loshchilov and Hutter, 2019)
 *   lamb     u = (m / (1 − β1^t)) / (√(v / (1 − β2^t)) + eps) + l2 · w, w −= lr · r · u,
 *            r = ‖w‖ / ‖u‖ over the whole call where l2 > 0 and both are > 0, else 1; of dense
 *            updates only; the gradients are used up    (You et al., 2020)
 *
 * moment1 is m or a, moment2 is v; those that a rule does not use are NULL. found_inf: no change.
 */
typedef struct tdm_update_rule {
    tdm_update_type type;
    float momentum; /* sgd */
    float beta1, beta2, eps;
    float l2;
} tdm_update_rule;

typedef struct tdm_dense_update_args {
    tdm_update_rule rule;
    const tdm_step_scalars *scalars; /* dense_learning_rate */
    float *values;
    float *gradients;
    float *moment1, *moment2;
    int64_t count;
} tdm_dense_update_args;

/* Touches the distinct rows only: rows that a batch does not use keep values and moments (lazy),
 * and t is the global step. */
typedef struct tdm_sparse_update_args {
    tdm_update_rule rule;
    const tdm_step_scalars *scalars; /* sparse_learning_rate */
    const tdm_embedding_field *fields;
    int field_count;
    tdm_distinct_ids distinct;
    float *tables; /* moments have the same layout */
    float *moment1, *moment2;
    const float *gradients;
} tdm_sparse_update_args;

/* name, kind. REQUIRED: NULL is an error found while planning. FUSED: where NULL, the layer uses
 * the parts. */
#define TDM_OPS_LIST(X)                                                                            \
    X(gemm, REQUIRED)                                                                              \
    X(add, REQUIRED)                                                                               \
    X(column_sum, REQUIRED)                                                                        \
    X(relu_bwd, REQUIRED)                                                                          \
    X(dropout, REQUIRED)                                                                           \
    X(lookup_fwd, REQUIRED)                                                                        \
    X(lookup_bwd, REQUIRED)                                                                        \
    X(layer_norm_fwd, REQUIRED)                                                                    \
    X(layer_norm_bwd, REQUIRED)                                                                    \
    X(activation_bwd, REQUIRED)                                                                    \
    X(gated_fwd, REQUIRED)                                                                         \
    X(gated_bwd, REQUIRED)                                                                         \
    X(rotary, REQUIRED)                                                                            \
    X(attention_fwd, REQUIRED)                                                                     \
    X(attention_bwd, REQUIRED)                                                                     \
    X(embedding_fwd, REQUIRED)                                                                     \
    X(embedding_bwd, REQUIRED)                                                                     \
    X(fm_fwd, REQUIRED)                                                                            \
    X(fm_bwd, REQUIRED)                                                                            \
    X(cross_fwd, REQUIRED)                                                                         \
    X(cross_bwd, REQUIRED)                                                                         \
    X(weight_sum, REQUIRED)                                                                        \
    X(bce, REQUIRED)                                                                               \
    X(softmax_loss, REQUIRED)                                                                      \
    X(squared_loss, REQUIRED)                                                                      \
    X(dense_norm, REQUIRED)                                                                        \
    X(sparse_norm, REQUIRED)                                                                       \
    X(prepare_update, REQUIRED)                                                                    \
    X(dense_update, REQUIRED)                                                                      \
    X(sparse_update, REQUIRED)

struct tdm_ops {
#define TDM_OPS_SLOT(name, kind)                                                                   \
    tdm_status (*name)(tdm_backend * backend, const tdm_##name##_args *args, tdm_stream *stream);
    TDM_OPS_LIST(TDM_OPS_SLOT)
#undef TDM_OPS_SLOT
};

/* TDM_E_UNSUPPORTED naming the first required op that the backend lacks. */
TDM_MUST_CHECK tdm_status tdm_ops_check(const tdm_backend *backend);

#endif
