/* Compiled once for each instruction set, TDM_KERNELS being its name. Sums run over a fixed number
 * of lanes in a fixed order; plain loops over lanes are left to the compiler to put into vectors.
 */
#include "cpu/kernels.h"

#include <math.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define JOIN2(a, b)   a##b
#define JOIN(a, b)    JOIN2(a, b)
#define STRING2(a)    #a
#define STRING(a)     STRING2(a)
#define ALWAYS_INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define WIDTH    16
#define MM(name) _mm512_##name
typedef __m512i mm_words;
#elif defined(__AVX2__)
#define WIDTH    8
#define MM(name) _mm256_##name
typedef __m256i mm_words;
#else
#define WIDTH 4
#if defined(__SSE2__)
#define MM(name) _mm_##name
typedef __m128i mm_words;
#endif
#endif

#define LINE        16 /* floats in a cache line; rows of tables are read by lines */
#define AHEAD       16 /* rows fetched ahead of the one in work */
#define SUM_CHUNK   64 /* rows added up before their sum joins the total: errors stay small */
#define NARROW      8  /* rows below this are updated through a buffer */
#define BUFFER_SIZE 256

typedef float vector __attribute__((vector_size(WIDTH * 4)));
typedef float vector_loose __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(WIDTH * 4)));

static ALWAYS_INLINE vector load(const float *from)
{
    return *(const vector_loose *)(const void *)from;
}

static ALWAYS_INLINE void store(float *to, vector value)
{
    *(vector_loose *)(void *)to = (vector_loose)value;
}

static ALWAYS_INLINE vector where(mask condition, vector value)
{
    return (vector)((mask)value & condition);
}

static ALWAYS_INLINE float multiply_add(float a, float b, float c)
{
#if defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* Σ lanes, halving: lanes is a power of two, and the array is used up. */
static ALWAYS_INLINE float sum_lanes(float *values, int lanes)
{
    for (int half = lanes / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++)
            values[i] += values[i + half];
    }
    return values[0];
}

static ALWAYS_INLINE void fetch_row(const float *row, int64_t dim)
{
    for (int64_t d = 0; d < dim; d += LINE)
        __builtin_prefetch(row + d);
}

/* ---- dense runs --------------------------------------------------------------------------------
 */

static void add(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

static ALWAYS_INLINE void add_scaled_inline(int64_t n, float a, const float *restrict x,
                                            float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = multiply_add(a, x[i], y[i]);
}

static void add_scaled(int64_t n, float a, const float *x, float *y)
{
    add_scaled_inline(n, a, x, y);
}

/* Written so that a NaN stays one. */
static ALWAYS_INLINE float activate(float x, tdm_activation activation)
{
    return activation == TDM_ACTIVATION_RELU && x < 0.0f ? 0.0f : x;
}

static void epilogue(int64_t n, const float *restrict bias, tdm_activation activation,
                     float *restrict y)
{
    if (bias == NULL) {
        for (int64_t i = 0; i < n; i++)
            y[i] = activate(y[i], activation);
    } else {
        for (int64_t i = 0; i < n; i++)
            y[i] = activate(y[i] + bias[i], activation);
    }
}

static float dot(int64_t n, const float *restrict x, const float *restrict y)
{
    float lanes[4 * LINE] = {0};
    int64_t i = 0;
    for (; i + 4 * LINE <= n; i += 4 * LINE) {
        for (int d = 0; d < 4 * LINE; d++)
            lanes[d] = multiply_add(x[i + d], y[i + d], lanes[d]);
    }
    float rest = 0.0f;
    for (; i < n; i++)
        rest = multiply_add(x[i], y[i], rest);
    return sum_lanes(lanes, 4 * LINE) + rest;
}

static double sum_squares(int64_t n, const float *restrict x)
{
    double lanes[LINE] = {0};
    int64_t i = 0;
    for (; i + LINE <= n; i += LINE) {
        for (int d = 0; d < LINE; d++)
            lanes[d] += (double)x[i + d] * (double)x[i + d];
    }
    double sum = 0.0;
    for (; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    for (int d = 0; d < LINE; d++)
        sum += lanes[d];
    return sum;
}

static void relu_bwd(int64_t n, const float *y, const float *dy, float *dx, float *sums)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        vector kept = where(load(y + i) > 0.0f, load(dy + i));
        store(dx + i, kept);
        if (sums != NULL)
            store(sums + i, load(sums + i) + kept);
    }
    for (; i < n; i++) {
        dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
        if (sums != NULL)
            sums[i] += dx[i];
    }
}

static void cross_fwd(int64_t n, const float *restrict x0, const float *restrict x,
                      const float *restrict u, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = multiply_add(x0[i], u[i], x[i]);
}

static void cross_bwd(int64_t n, const float *restrict x0, const float *restrict u,
                      const float *restrict dy, float *restrict du, bool accumulate,
                      float *restrict dx0)
{
    if (accumulate) {
        for (int64_t i = 0; i < n; i++) {
            du[i] = dy[i] * x0[i];
            dx0[i] = multiply_add(dy[i], u[i], dx0[i]);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            du[i] = dy[i] * x0[i];
            dx0[i] = dy[i] * u[i];
        }
    }
}

/* ---- dropout -----------------------------------------------------------------------------------
 */

static ALWAYS_INLINE float drop(const tdm_dropout_row *row, uint32_t word, float x)
{
    return word >> 8 >= row->threshold ? x * row->scale : 0.0f;
}

#if defined(__SSE2__)
typedef uint32_t words __attribute__((vector_size(WIDTH * 4)));
typedef uint64_t wide_words __attribute__((vector_size(WIDTH * 4)));

static ALWAYS_INLINE void multiply_wide(words a, uint32_t factor, words *high, words *low)
{
    const words factors = (words){0} + factor;
    wide_words even = (wide_words)MM(mul_epu32)((mm_words)a, (mm_words)factors);
    wide_words odd = (wide_words)MM(mul_epu32)((mm_words)((wide_words)a >> 32), (mm_words)factors);
    const uint64_t low_half = 0xffffffffu;
    *low = (words)((even & low_half) | (odd << 32));
    *high = (words)((even >> 32) | (odd & ~low_half));
}

/* tdm_philox for WIDTH groups that begin with `group`. Lane 4 L + k holds group k · WIDTH / 4 + L,
 * so that turning 4 × 4 blocks puts the words into the order of the elements. */
static ALWAYS_INLINE void philox_words(const tdm_dropout_row *row, uint32_t group, words out[4])
{
    words c0, c1 = (words){0} + (uint32_t)row->sample;
    words c2 = (words){0} + (uint32_t)(row->sample >> 32), c3 = (words){0} + row->epoch;
    for (uint32_t lane = 0; lane < WIDTH; lane++)
        c0[lane] = lane % 4 * (WIDTH / 4) + lane / 4;
    c0 += group;
    uint32_t k0 = row->key.words[0], k1 = row->key.words[1];
    for (int round = 0; round < 10; round++) {
        words high0, low0, high1, low1;
        multiply_wide(c0, 0xD2511F53u, &high0, &low0);
        multiply_wide(c2, 0xCD9E8D57u, &high1, &low1);
        c0 = high1 ^ c1 ^ k0;
        c2 = high0 ^ c3 ^ k1;
        c1 = low1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    mm_words low01 = MM(unpacklo_epi32)((mm_words)c0, (mm_words)c1);
    mm_words low23 = MM(unpacklo_epi32)((mm_words)c2, (mm_words)c3);
    mm_words high01 = MM(unpackhi_epi32)((mm_words)c0, (mm_words)c1);
    mm_words high23 = MM(unpackhi_epi32)((mm_words)c2, (mm_words)c3);
    out[0] = (words)MM(unpacklo_epi64)(low01, low23);
    out[1] = (words)MM(unpackhi_epi64)(low01, low23);
    out[2] = (words)MM(unpacklo_epi64)(high01, high23);
    out[3] = (words)MM(unpackhi_epi64)(high01, high23);
}
#endif

static void dropout(int64_t n, const tdm_dropout_row *row, const float *x, float *y)
{
    int64_t i = 0;
#if defined(__SSE2__)
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH) {
        words drawn[4];
        philox_words(row, (uint32_t)(i / 4), drawn);
        for (int part = 0; part < 4; part++) {
            mask kept = (mask)(drawn[part] >> 8) >= (int32_t)row->threshold;
            store(y + i + part * WIDTH, where(kept, load(x + i + part * WIDTH) * row->scale));
        }
    }
#endif
    for (; i < n; i += 4) {
        tdm_philox_words drawn = tdm_random4(row->key, row->sample, row->epoch, (uint32_t)(i / 4));
        for (int64_t j = i; j < n && j < i + 4; j++)
            y[j] = drop(row, drawn.words[j - i], x[j]);
    }
}

/* ---- embeddings --------------------------------------------------------------------------------
 */

static ALWAYS_INLINE void gather_rows(int64_t count, int64_t dim, const float *restrict table,
                                      const uint32_t *restrict ids, bool accumulate,
                                      float *restrict out, int64_t stride)
{
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            fetch_row(table + (int64_t)ids[i + AHEAD] * dim, dim);
        const float *row = table + (int64_t)ids[i] * dim;
        float *to = out + i * stride;
        for (int64_t d = 0; d < dim; d++)
            to[d] = accumulate ? to[d] + row[d] : row[d];
    }
}

static void gather(int64_t count, int64_t dim, const float *table, const uint32_t *ids,
                   bool accumulate, float *out, int64_t stride)
{
    if (dim == LINE && !accumulate)
        gather_rows(count, LINE, table, ids, false, out, stride);
    else if (dim == 1 && accumulate)
        gather_rows(count, 1, table, ids, true, out, stride);
    else if (accumulate)
        gather_rows(count, dim, table, ids, true, out, stride);
    else
        gather_rows(count, dim, table, ids, false, out, stride);
}

static void pool(int64_t count, int64_t dim, const float *table, const uint32_t *ids,
                 const float *weights, float scale, float *out)
{
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            fetch_row(table + (int64_t)ids[i + AHEAD] * dim, dim);
        float weight = weights == NULL ? scale : scale * weights[i];
        add_scaled_inline(dim, weight, table + (int64_t)ids[i] * dim, out);
    }
}

/* `width` columns of one sum, at most a line of them. */
static ALWAYS_INLINE void sum_columns(int width, int32_t begin, int32_t end,
                                      const int32_t *restrict positions, const float *restrict dout,
                                      int64_t stride, float *restrict out)
{
    float total[LINE] = {0};
    for (int32_t chunk = begin; chunk < end; chunk += SUM_CHUNK) {
        int32_t chunk_end = end - chunk < SUM_CHUNK ? end : chunk + SUM_CHUNK;
        float sum[LINE] = {0};
        for (int32_t i = chunk; i < chunk_end; i++) {
            const float *row = dout + positions[i] * stride;
            for (int d = 0; d < width; d++)
                sum[d] += row[d];
        }
        for (int d = 0; d < width; d++)
            total[d] += sum[d];
    }
    for (int d = 0; d < width; d++)
        out[d] = total[d];
}

static ALWAYS_INLINE void sum_rows(int64_t count, int64_t dim, const int32_t *restrict starts,
                                   const int32_t *restrict positions, const float *restrict dout,
                                   int64_t stride, float *restrict out)
{
    int32_t last = starts[count];
    for (int64_t u = 0; u < count; u++) {
        int32_t begin = starts[u], end = starts[u + 1];
        for (int32_t i = begin + AHEAD; i < end + AHEAD && i < last; i++)
            fetch_row(dout + positions[i] * stride, dim);
        int64_t d = 0;
        for (; d + LINE <= dim; d += LINE)
            sum_columns(LINE, begin, end, positions, dout + d, stride, out + u * dim + d);
        for (; d + LINE / 2 <= dim; d += LINE / 2)
            sum_columns(LINE / 2, begin, end, positions, dout + d, stride, out + u * dim + d);
        for (; d < dim; d++)
            sum_columns(1, begin, end, positions, dout + d, stride, out + u * dim + d);
    }
}

static void sum_positions(int64_t count, int64_t dim, const int32_t *starts,
                          const int32_t *positions, const float *dout, int64_t stride, float *out)
{
    if (dim == LINE)
        sum_rows(count, LINE, starts, positions, dout, stride, out);
    else if (dim == 1)
        sum_rows(count, 1, starts, positions, dout, stride, out);
    else
        sum_rows(count, dim, starts, positions, dout, stride, out);
}

/* ---- factorization machine ---------------------------------------------------------------------
 */

static ALWAYS_INLINE float fm_columns(int width, int64_t fields, int64_t dim,
                                      const float *restrict embeddings, float *restrict sums)
{
    float sum[LINE] = {0}, squares[LINE] = {0};
    for (int64_t f = 0; f < fields; f++) {
        const float *row = embeddings + f * dim;
        for (int d = 0; d < width; d++) {
            sum[d] += row[d];
            squares[d] = multiply_add(row[d], row[d], squares[d]);
        }
    }
    for (int d = 0; d < width; d++) {
        sums[d] = sum[d];
        squares[d] = multiply_add(sum[d], sum[d], -squares[d]);
    }
    return sum_lanes(squares, width);
}

static float fm_fwd(int64_t fields, int64_t dim, const float *embeddings, float *sums)
{
    float total = 0.0f;
    int64_t d = 0;
    for (; d + LINE <= dim; d += LINE)
        total += fm_columns(LINE, fields, dim, embeddings + d, sums + d);
    for (; d + LINE / 2 <= dim; d += LINE / 2)
        total += fm_columns(LINE / 2, fields, dim, embeddings + d, sums + d);
    for (; d < dim; d++)
        total += fm_columns(1, fields, dim, embeddings + d, sums + d);
    return 0.5f * total;
}

static ALWAYS_INLINE void fm_bwd_rows(int64_t fields, int64_t dim, const float *restrict embeddings,
                                      const float *restrict sums, float dout, bool accumulate,
                                      float *restrict d_embeddings)
{
    for (int64_t f = 0; f < fields; f++) {
        const float *row = embeddings + f * dim;
        float *to = d_embeddings + f * dim;
        for (int64_t d = 0; d < dim; d++) {
            float gradient = dout * (sums[d] - row[d]);
            to[d] = accumulate ? to[d] + gradient : gradient;
        }
    }
}

static void fm_bwd(int64_t fields, int64_t dim, const float *embeddings, const float *sums,
                   float dout, bool accumulate, float *d_embeddings)
{
    if (dim == LINE && accumulate)
        fm_bwd_rows(fields, LINE, embeddings, sums, dout, true, d_embeddings);
    else if (dim == LINE)
        fm_bwd_rows(fields, LINE, embeddings, sums, dout, false, d_embeddings);
    else
        fm_bwd_rows(fields, dim, embeddings, sums, dout, accumulate, d_embeddings);
}

/* ---- updates -----------------------------------------------------------------------------------
 */

static ALWAYS_INLINE float scaled_gradient(const tdm_update_factors *factors, float gradient,
                                           float value)
{
    return multiply_add(factors->l2, value, gradient * factors->gradient_scale);
}

static ALWAYS_INLINE void update_sgd(int64_t n, tdm_update_factors f, const float *restrict g,
                                     float *restrict w, float *restrict m)
{
    if (m == NULL) {
        for (int64_t i = 0; i < n; i++)
            w[i] -= f.learning_rate * scaled_gradient(&f, g[i], w[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        m[i] = multiply_add(f.momentum, m[i], scaled_gradient(&f, g[i], w[i]));
        w[i] -= f.learning_rate * m[i];
    }
}

static ALWAYS_INLINE void update_adagrad(int64_t n, tdm_update_factors f, const float *restrict g,
                                         float *restrict w, float *restrict a)
{
    for (int64_t i = 0; i < n; i++) {
        float gradient = scaled_gradient(&f, g[i], w[i]);
        a[i] = multiply_add(gradient, gradient, a[i]);
        w[i] -= f.learning_rate * gradient / (sqrtf(a[i]) + f.eps);
    }
}

static ALWAYS_INLINE void update_adam(int64_t n, tdm_update_factors f, const float *restrict g,
                                      float *restrict w, float *restrict m, float *restrict v)
{
    float decay = 0.0f;
    if (f.type == TDM_UPDATE_ADAMW) {
        decay = f.learning_rate * f.l2;
        f.l2 = 0.0f;
    }
    for (int64_t i = 0; i < n; i++) {
        float gradient = scaled_gradient(&f, g[i], w[i]);
        m[i] = multiply_add(f.beta1, m[i], (1.0f - f.beta1) * gradient);
        v[i] = multiply_add(f.beta2, v[i], (1.0f - f.beta2) * gradient * gradient);
        w[i] -= decay * w[i];
        w[i] -= f.step_size * m[i] / (sqrtf(v[i] * f.moment2_scale) + f.eps);
    }
}

static ALWAYS_INLINE void update_run(int64_t n, const tdm_update_factors *factors, const float *g,
                                     float *w, float *moment1, float *moment2)
{
    switch (factors->type) {
    case TDM_UPDATE_SGD:
        update_sgd(n, *factors, g, w, moment1);
        break;
    case TDM_UPDATE_ADAGRAD:
        update_adagrad(n, *factors, g, w, moment1);
        break;
    case TDM_UPDATE_ADAM:
    case TDM_UPDATE_ADAMW:
        update_adam(n, *factors, g, w, moment1, moment2);
        break;
    }
}

static void update(int64_t n, const tdm_update_factors *factors, const float *gradients,
                   float *values, float *moment1, float *moment2)
{
    update_run(n, factors, gradients, values, moment1, moment2);
}

/* NULL moments stay NULL. */
static ALWAYS_INLINE float *at(float *base, int64_t offset)
{
    return base == NULL ? NULL : base + offset;
}

static ALWAYS_INLINE void update_wide_rows(int64_t count, int64_t dim,
                                           const tdm_update_factors *factors, const uint32_t *ids,
                                           const float *gradients, float *values, float *moment1,
                                           float *moment2)
{
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count) {
            int64_t ahead = (int64_t)ids[i + AHEAD] * dim;
            fetch_row(values + ahead, dim);
            if (moment1 != NULL)
                fetch_row(moment1 + ahead, dim);
            if (moment2 != NULL)
                fetch_row(moment2 + ahead, dim);
        }
        int64_t row = (int64_t)ids[i] * dim;
        update_run(dim, factors, gradients + i * dim, values + row, at(moment1, row),
                   at(moment2, row));
    }
}

static ALWAYS_INLINE void read_rows(int64_t count, int64_t dim, const uint32_t *ids,
                                    const float *table, float *buffer)
{
    for (int64_t i = 0; i < count; i++) {
        for (int64_t d = 0; d < dim; d++)
            buffer[i * dim + d] = table[(int64_t)ids[i] * dim + d];
    }
}

static ALWAYS_INLINE void write_rows(int64_t count, int64_t dim, const uint32_t *ids,
                                     const float *buffer, float *table)
{
    for (int64_t i = 0; i < count; i++) {
        for (int64_t d = 0; d < dim; d++)
            table[(int64_t)ids[i] * dim + d] = buffer[i * dim + d];
    }
}

/* Rows of a few elements are brought together first, so that the arithmetic fills vectors. */
static ALWAYS_INLINE void update_narrow_rows(int64_t count, int64_t dim,
                                             const tdm_update_factors *factors, const uint32_t *ids,
                                             const float *gradients, float *tables[3])
{
    float buffers[3][BUFFER_SIZE];
    int64_t group = BUFFER_SIZE / dim;
    for (int64_t begin = 0; begin < count; begin += group) {
        int64_t rows = count - begin < group ? count - begin : group;
        for (int t = 0; t < 3; t++) {
            if (tables[t] != NULL)
                read_rows(rows, dim, ids + begin, tables[t], buffers[t]);
        }
        update_run(rows * dim, factors, gradients + begin * dim, buffers[0],
                   tables[1] == NULL ? NULL : buffers[1], buffers[2]);
        for (int t = 0; t < 3; t++) {
            if (tables[t] != NULL)
                write_rows(rows, dim, ids + begin, buffers[t], tables[t]);
        }
    }
}

static void update_rows(int64_t count, int64_t dim, const tdm_update_factors *factors,
                        const uint32_t *ids, const float *gradients, float *values, float *moment1,
                        float *moment2)
{
    if (dim == LINE)
        update_wide_rows(count, LINE, factors, ids, gradients, values, moment1, moment2);
    else if (dim == 1)
        update_narrow_rows(count, 1, factors, ids, gradients,
                           (float *[3]){values, moment1, moment2});
    else if (dim < NARROW)
        update_narrow_rows(count, dim, factors, ids, gradients,
                           (float *[3]){values, moment1, moment2});
    else
        update_wide_rows(count, dim, factors, ids, gradients, values, moment1, moment2);
}

extern const tdm_kernels JOIN(tdm_kernels_, TDM_KERNELS);
const tdm_kernels JOIN(tdm_kernels_, TDM_KERNELS) = {
    .name = STRING(TDM_KERNELS),
    .add = add,
    .add_scaled = add_scaled,
    .epilogue = epilogue,
    .dot = dot,
    .sum_squares = sum_squares,
    .relu_bwd = relu_bwd,
    .dropout = dropout,
    .gather = gather,
    .pool = pool,
    .sum_positions = sum_positions,
    .fm_fwd = fm_fwd,
    .fm_bwd = fm_bwd,
    .cross_fwd = cross_fwd,
    .cross_bwd = cross_bwd,
    .update = update,
    .update_rows = update_rows,
};
