/* The inner loops of the CPU ops, over short contiguous runs. One source is compiled for each
 * instruction set, and a table of functions is chosen at run time. Within one table a function
 * gives the same bits for the same input; between tables sums differ in their last bits.
 *
 * Runs may not overlap unless a function says so. Nothing here allocates, fails or uses threads. */
#ifndef TDM_CPU_KERNELS_H
#define TDM_CPU_KERNELS_H

#include "core/ops.h"

/* The constants of an update, worked out once an op. */
typedef struct tdm_update_factors {
    tdm_update_type type;
    float gradient_scale;
    float l2;
    float learning_rate;
    float momentum;
    float beta1, beta2, eps;
    float step_size;     /* adam: learning rate / (1 − β1^t), lamb: 1 / (1 − β1^t) */
    float moment2_scale; /* adam, lamb: 1 / (1 − β2^t) */
} tdm_update_factors;

/* The draws of dropout for one row. */
typedef struct tdm_dropout_row {
    tdm_philox_key key;
    uint64_t sample;
    uint32_t epoch;
    uint32_t first;     /* number of the row's first element */
    uint32_t threshold; /* kept where the upper 24 bits of a word reach it */
    float scale;        /* of kept elements */
} tdm_dropout_row;

/* What only encoders use. */
typedef struct tdm_encoder_kernels {
    /* One row of the op layer_norm_fwd, whose sum is made. beta may be NULL. */
    void (*layer_norm_fwd)(int64_t n, const float *sum, const float *gamma, const float *beta,
                           float eps, float *y, float *mean, float *rstd);
    /* total = dsum + the gradient through y, gamma_sums += dy · normalized sum, beta_sums += dy;
     * dsum and beta_sums may be NULL, and total may be dy or dsum */
    void (*layer_norm_bwd)(int64_t n, const float *sum, const float *gamma, float mean, float rstd,
                           const float *dy, const float *dsum, float *total, float *gamma_sums,
                           float *beta_sums);

    /* One row of the ops of these names; what is added up goes to sums unless NULL. dx may be
     * dy. */
    void (*activation_bwd)(int64_t n, tdm_activation activation, const float *x, const float *dy,
                           float *dx, float *sums);
    /* x, dx and sums have 2 n elements; dx may be x. */
    void (*gated_fwd)(int64_t n, tdm_activation activation, const float *x, float *y);
    void (*gated_bwd)(int64_t n, tdm_activation activation, const float *x, const float *dy,
                      float *dx, float *sums);

    /* The loss of one row. dlogits = gradient · dl/dz unless NULL, and may be logits. */
    double (*softmax_loss)(int64_t n, const float *logits, int64_t label, float gradient,
                           float *dlogits, bool *correct);

    /* Turns `groups` times 2 · half elements by the sum of two angles, or back: coarse and fine are
     * half cosines, then half sines. */
    void (*rotary)(int64_t half, int64_t groups, const double *coarse, const double *fine,
                   bool inverse, float *x);

    /* out += Σ_i from[positions[i] · stride ..] */
    void (*add_rows)(int64_t count, int64_t n, const int32_t *positions, const float *from,
                     int64_t stride, float *out);
} tdm_encoder_kernels;

typedef struct tdm_kernels {
    const char *name; /* "baseline", "avx2", "avx512" */
    const tdm_encoder_kernels *encoder;

    /* ---- dense runs -------------------------------------------------------------------------- */

    /* y += x */
    void (*add)(int64_t n, const float *x, float *y);
    /* y += a · x */
    void (*add_scaled)(int64_t n, float a, const float *x, float *y);
    /* y = a · x */
    void (*scale)(int64_t n, float a, const float *x, float *y);
    /* preactivation = x + bias, y = activation(preactivation); bias and preactivation may be NULL,
     * y may be x */
    void (*epilogue)(int64_t n, const float *x, const float *bias, tdm_activation activation,
                     float *preactivation, float *y);
    float (*dot)(int64_t n, const float *x, const float *y);
    /* to[c · to_stride + r] = from[r · from_stride + c] */
    void (*transpose)(int64_t rows, int64_t columns, const float *from, int64_t from_stride,
                      float *to, int64_t to_stride);
    /* Σ x², in double */
    double (*sum_squares)(int64_t n, const float *x);

    /* dx = scale · dy where y > 0, else 0, and sums += dx unless NULL; dx may be dy */
    void (*relu_bwd)(int64_t n, float scale, const float *y, const float *dy, float *dx,
                     float *sums);
    /* y = x · keep · scale; y may be x */
    void (*dropout)(int64_t n, const tdm_dropout_row *row, const float *x, float *y);

    /* ---- rows of tables ---------------------------------------------------------------------- */

    /* out[i · stride ..] = or += table[ids[i] · table_stride ..], dim elements */
    void (*gather)(int64_t count, int64_t dim, const float *table, int64_t table_stride,
                   const uint32_t *ids, bool accumulate, float *out, int64_t stride);
    /* out += Σ_i scale · weights[i] · table[ids[i] · dim ..]; weights NULL: all 1 */
    void (*pool)(int64_t count, int64_t dim, const float *table, const uint32_t *ids,
                 const float *weights, float scale, float *out);
    /* out[u · dim ..] = Σ over i in [starts[u], starts[u + 1]) of dout[positions[i] · stride ..] */
    void (*sum_positions)(int64_t count, int64_t dim, const int32_t *starts,
                          const int32_t *positions, const float *dout, int64_t stride, float *out);

    /* ---- interactions and updates ------------------------------------------------------------ */

    /* One row of the ops fm_fwd and fm_bwd. */
    float (*fm_fwd)(int64_t fields, int64_t dim, const float *embeddings, float *sums);
    void (*fm_bwd)(int64_t fields, int64_t dim, const float *embeddings, const float *sums,
                   float dout, bool accumulate, float *d_embeddings);
    /* y = x0 ∘ u + x */
    void (*cross_fwd)(int64_t n, const float *x0, const float *x, const float *u, float *y);
    /* du = dy ∘ x0, and dx0 = or += dy ∘ u */
    void (*cross_bwd)(int64_t n, const float *x0, const float *u, const float *dy, float *du,
                      bool accumulate, float *dx0);

    void (*update)(int64_t n, const tdm_update_factors *factors, const float *gradients,
                   float *values, float *moment1, float *moment2);
    /* The same on rows ids[i] of a table, whose gradients lie one after the other. */
    void (*update_rows)(int64_t count, int64_t dim, const tdm_update_factors *factors,
                        const uint32_t *ids, const float *gradients, float *values, float *moment1,
                        float *moment2);
    /* Moves the moments of lamb, and gradients become u; squares are Σ values² and Σ u². */
    void (*lamb_direction)(int64_t n, const tdm_update_factors *factors, const float *values,
                           float *gradients, float *moment1, float *moment2, double squares[2]);

    const struct tdm_attention_kernels *attention; /* kernels_attention.h */
} tdm_kernels;

/* The widest table that this CPU runs. */
const tdm_kernels *tdm_kernels_best(void);

/* The table called `name`, or NULL where there is none or this CPU does not run it. */
const tdm_kernels *tdm_kernels_named(const char *name);

#endif
