/* Layer normalization, gates, softmax, rotary positions and sums of listed rows. */
#include "cpu/kernels_activation.h"

/* ---- layer normalization --------------------------------------------------------------------- */

static ALWAYS_INLINE float mean_of(int64_t n, const float *x)
{
    vector sums[2] = {{0}};
    int64_t i = 0;
    for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
        sums[0] += load(x + i);
        sums[1] += load(x + i + WIDTH);
    }
    for (; i < n; i += WIDTH)
        sums[0] += load_most(x + i, n - i);
    return sum_vector(sums[0] + sums[1]) / (float)n;
}

/* Σ (x - mean)² / n */
static ALWAYS_INLINE float variance_of(int64_t n, const float *x, float mean)
{
    vector sums[2] = {{0}};
    int64_t i = 0;
    for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
        vector first = load(x + i) - mean, second = load(x + i + WIDTH) - mean;
        sums[0] = multiply_add_vector(first, first, sums[0]);
        sums[1] = multiply_add_vector(second, second, sums[1]);
    }
    for (; i < n; i += WIDTH) {
        vector rest = where(first_lanes(n - i), load_most(x + i, n - i) - mean);
        sums[1] = multiply_add_vector(rest, rest, sums[1]);
    }
    return sum_vector(sums[0] + sums[1]) / (float)n;
}

static void layer_norm_fwd(int64_t n, const float *sum, const float *gamma, const float *beta,
                           float eps, float *y, float *mean, float *rstd)
{
    *mean = mean_of(n, sum);
    *rstd = 1.0f / sqrtf(variance_of(n, sum, *mean) + eps);
    for (int64_t i = 0; i < n; i += WIDTH) {
        vector scaled = (load_most(sum + i, n - i) - *mean) * *rstd;
        vector shift = beta == NULL ? constant(0.0f) : load_most(beta + i, n - i);
        store_most(y + i, n - i, multiply_add_vector(scaled, load_most(gamma + i, n - i), shift));
    }
}

typedef struct norm_sums {
    vector gradients, products;
} norm_sums;

/* Adds dy · gamma and that times the normalized sum, and the same without gamma for the gradients
 * of gamma and beta. */
static ALWAYS_INLINE void add_norm_sums(int64_t count, const float *sum, const float *gamma,
                                        float mean, float rstd, const float *dy, float *gamma_sums,
                                        float *beta_sums, norm_sums *sums)
{
    vector own = load_most(dy, count), normalized = (load_most(sum, count) - mean) * rstd;
    vector gradient = own * load_most(gamma, count);
    sums->gradients += gradient;
    sums->products = multiply_add_vector(gradient, normalized, sums->products);
    store_most(gamma_sums, count,
               multiply_add_vector(own, normalized, load_most(gamma_sums, count)));
    if (beta_sums != NULL)
        store_most(beta_sums, count, own + load_most(beta_sums, count));
}

static void layer_norm_bwd(int64_t n, const float *sum, const float *gamma, float mean, float rstd,
                           const float *dy, const float *dsum, float *total, float *gamma_sums,
                           float *beta_sums)
{
    norm_sums sums = {{0}, {0}};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        add_norm_sums(WIDTH, sum + i, gamma + i, mean, rstd, dy + i, gamma_sums + i,
                      at(beta_sums, i), &sums);
    if (i < n)
        add_norm_sums(n - i, sum + i, gamma + i, mean, rstd, dy + i, gamma_sums + i,
                      at(beta_sums, i), &sums);
    float shift = rstd * sum_vector(sums.gradients) / (float)n;
    float slope = rstd * sum_vector(sums.products) / (float)n;
    for (i = 0; i < n; i += WIDTH) {
        int64_t count = n - i;
        vector normalized = (load_most(sum + i, count) - mean) * rstd;
        vector gradient = load_most(dy + i, count) * load_most(gamma + i, count);
        vector own = multiply_add_vector(gradient, constant(rstd), constant(-shift));
        own = multiply_add_vector(normalized, constant(-slope), own);
        store_most(total + i, count, dsum == NULL ? own : own + load_most(dsum + i, count));
    }
}

/* ---- activations ----------------------------------------------------------------------------- */

static ALWAYS_INLINE void activation_bwd_of(int64_t n, tdm_activation activation, const float *x,
                                            const float *dy, float *dx, float *sums)
{
    for (int64_t i = 0; i < n; i += WIDTH) {
        int64_t count = n - i;
        vector own =
            load_most(dy + i, count) * activation_slope_vector(activation, load_most(x + i, count));
        store_most(dx + i, count, own);
        if (sums != NULL)
            store_most(sums + i, count, load_most(sums + i, count) + own);
    }
}

static void activation_bwd(int64_t n, tdm_activation activation, const float *x, const float *dy,
                           float *dx, float *sums)
{
    if (activation == TDM_ACTIVATION_GELU)
        activation_bwd_of(n, TDM_ACTIVATION_GELU, x, dy, dx, sums);
    else if (activation == TDM_ACTIVATION_GELU_TANH)
        activation_bwd_of(n, TDM_ACTIVATION_GELU_TANH, x, dy, dx, sums);
    else
        activation_bwd_of(n, TDM_ACTIVATION_TANH, x, dy, dx, sums);
}

static ALWAYS_INLINE void gated_fwd_of(int64_t n, tdm_activation activation, const float *x,
                                       float *y)
{
    for (int64_t i = 0; i < n; i += WIDTH)
        store_most(y + i, n - i,
                   activation_vector(activation, load_most(x + i, n - i)) *
                       load_most(x + n + i, n - i));
}

static void gated_fwd(int64_t n, tdm_activation activation, const float *x, float *y)
{
    if (activation == TDM_ACTIVATION_GELU)
        gated_fwd_of(n, TDM_ACTIVATION_GELU, x, y);
    else
        gated_fwd_of(n, TDM_ACTIVATION_GELU_TANH, x, y);
}

static ALWAYS_INLINE void give_gradient(int64_t count, vector gradient, float *dx, float *sums)
{
    store_most(dx, count, gradient);
    if (sums != NULL)
        store_most(sums, count, load_most(sums, count) + gradient);
}

static ALWAYS_INLINE void gated_bwd_of(int64_t n, tdm_activation activation, const float *x,
                                       const float *dy, float *dx, float *sums)
{
    for (int64_t i = 0; i < n; i += WIDTH) {
        int64_t count = n - i;
        vector inner = load_most(x + i, count), gate = load_most(x + n + i, count);
        vector own = load_most(dy + i, count);
        give_gradient(count, own * gate * activation_slope_vector(activation, inner), dx + i,
                      at(sums, i));
        give_gradient(count, own * activation_vector(activation, inner), dx + n + i,
                      at(sums, n + i));
    }
}

static void gated_bwd(int64_t n, tdm_activation activation, const float *x, const float *dy,
                      float *dx, float *sums)
{
    if (activation == TDM_ACTIVATION_GELU)
        gated_bwd_of(n, TDM_ACTIVATION_GELU, x, dy, dx, sums);
    else
        gated_bwd_of(n, TDM_ACTIVATION_GELU_TANH, x, dy, dx, sums);
}

/* ---- softmax --------------------------------------------------------------------------------- */

static ALWAYS_INLINE float largest(int64_t n, const float *x)
{
    vector found[4];
    for (int part = 0; part < 4; part++)
        found[part] = constant(-INFINITY);
    int64_t i = 0;
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH) {
        for (int part = 0; part < 4; part++)
            found[part] = max_vector(found[part], load(x + i + part * WIDTH));
    }
    for (; i + WIDTH <= n; i += WIDTH)
        found[0] = max_vector(found[0], load(x + i));
    float lanes[WIDTH], most = -INFINITY;
    store(lanes, max_vector(max_vector(found[0], found[1]), max_vector(found[2], found[3])));
    for (int lane = 0; lane < WIDTH; lane++)
        most = lanes[lane] > most ? lanes[lane] : most;
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* Σ e^(x - most), whose terms go to `terms` unless NULL, which may be x. */
static ALWAYS_INLINE float sum_exponentials(int64_t n, const float *x, float most, float *terms)
{
    vector total = {0};
    for (int64_t begin = 0; begin < n; begin += SUM_CHUNK * WIDTH) {
        int64_t end = n - begin < SUM_CHUNK * WIDTH ? n : begin + SUM_CHUNK * WIDTH;
        vector sum = {0};
        int64_t i = begin;
        for (; i + WIDTH <= end; i += WIDTH) {
            vector term = exp_vector(load(x + i) - most);
            sum += term;
            if (terms != NULL)
                store(terms + i, term);
        }
        if (i < end) {
            vector term = exp_vector(load_part(x + i, end - i) - most);
            sum += where(first_lanes(end - i), term);
            if (terms != NULL)
                store_part(terms + i, end - i, term);
        }
        total += sum;
    }
    return sum_vector(total);
}

static double softmax_loss(int64_t n, const float *logits, int64_t label, float gradient,
                           float *dlogits, bool *correct)
{
    float own = logits[label], most = largest(n, logits);
    float sum = sum_exponentials(n, logits, most, dlogits);
    *correct = own >= most;
    if (dlogits != NULL) {
        float share = dlogits[label] / sum, factor = gradient / sum;
        for (int64_t i = 0; i < n; i++)
            dlogits[i] *= factor;
        dlogits[label] = gradient * (share - 1.0f);
    }
    return log((double)sum) + ((double)most - (double)own);
}

/* ---- rotary positions ------------------------------------------------------------------------ */

#define ANGLES 64 /* that are made at a time */

/* cos and sin of a sum of two angles. */
static ALWAYS_INLINE void add_angles(int64_t count, int64_t half, const double *a, const double *b,
                                     bool inverse, float *cosines, float *sines)
{
    const double sign = inverse ? -1.0 : 1.0;
    for (int64_t d = 0; d < count; d++) {
        cosines[d] = (float)(a[d] * b[d] - a[half + d] * b[half + d]);
        sines[d] = (float)(sign * (a[half + d] * b[d] + a[d] * b[half + d]));
    }
}

static ALWAYS_INLINE void turn(int64_t count, int64_t half, const float *cosines,
                               const float *sines, float *x)
{
    vector cosine = load(cosines), sine = load(sines);
    vector first = load_most(x, count), second = load_most(x + half, count);
    store_most(x, count, multiply_add_vector(first, cosine, -second * sine));
    store_most(x + half, count, multiply_add_vector(second, cosine, first * sine));
}

static void rotary(int64_t half, int64_t groups, const double *coarse, const double *fine,
                   bool inverse, float *x)
{
    float cosines[ANGLES + WIDTH] = {0}, sines[ANGLES + WIDTH] = {0};
    for (int64_t begin = 0; begin < half; begin += ANGLES) {
        int64_t count = half - begin < ANGLES ? half - begin : ANGLES;
        add_angles(count, half, coarse + begin, fine + begin, inverse, cosines, sines);
        for (int64_t g = 0; g < groups; g++) {
            float *group = x + g * 2 * half + begin;
            int64_t d = 0;
            for (; d + WIDTH <= count; d += WIDTH)
                turn(WIDTH, half, cosines + d, sines + d, group + d);
            if (d < count)
                turn(count - d, half, cosines + d, sines + d, group + d);
        }
    }
}

/* ---- sums of listed rows --------------------------------------------------------------------- */

/* Four rows at a time, so that `out` is read and written less often. */
static void add_rows(int64_t count, int64_t n, const int32_t *positions, const float *from,
                     int64_t stride, float *out)
{
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const float *restrict a = from + positions[i] * stride;
        const float *restrict b = from + positions[i + 1] * stride;
        const float *restrict c = from + positions[i + 2] * stride;
        const float *restrict d = from + positions[i + 3] * stride;
        for (int64_t j = 0; j < n; j++)
            out[j] += (a[j] + b[j]) + (c[j] + d[j]);
    }
    for (; i < count; i++) {
        const float *restrict a = from + positions[i] * stride;
        for (int64_t j = 0; j < n; j++)
            out[j] += a[j];
    }
}

extern const tdm_encoder_kernels JOIN(tdm_encoder_kernels_, TDM_KERNELS);
const tdm_encoder_kernels JOIN(tdm_encoder_kernels_, TDM_KERNELS) = {
    .layer_norm_fwd = layer_norm_fwd,
    .layer_norm_bwd = layer_norm_bwd,
    .activation_bwd = activation_bwd,
    .gated_fwd = gated_fwd,
    .gated_bwd = gated_bwd,
    .softmax_loss = softmax_loss,
    .rotary = rotary,
    .add_rows = add_rows,
};
