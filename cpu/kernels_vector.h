/* What the sources of the kernels share. They are compiled once for each instruction set,
 * TDM_KERNELS being its name. Sums run over a fixed number of lanes in a fixed order; plain loops
 * over lanes are left to the compiler to put into vectors. */
#ifndef TDM_CPU_KERNELS_VECTOR_H
#define TDM_CPU_KERNELS_VECTOR_H

#include "cpu/kernels.h"

#include <math.h>
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

/* The first `count` < WIDTH floats; what is behind them is 0, and stays as it is. */
static ALWAYS_INLINE vector load_part(const float *from, int64_t count)
{
#if defined(__AVX512F__)
    return (vector)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1u), from);
#else
    vector value = {0};
    for (int64_t i = 0; i < count; i++)
        value[i] = from[i];
    return value;
#endif
}

static ALWAYS_INLINE void store_part(float *to, int64_t count, vector value)
{
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1u), (__m512)value);
#else
    for (int64_t i = 0; i < count; i++)
        to[i] = value[i];
#endif
}

/* As many floats as there are, at most WIDTH. */
static ALWAYS_INLINE vector load_most(const float *from, int64_t count)
{
    return count >= WIDTH ? load(from) : load_part(from, count);
}

static ALWAYS_INLINE void store_most(float *to, int64_t count, vector value)
{
    if (count >= WIDTH)
        store(to, value);
    else
        store_part(to, count, value);
}

static ALWAYS_INLINE vector where(mask condition, vector value)
{
    return (vector)((mask)value & condition);
}

/* True in the first `count` lanes. */
static ALWAYS_INLINE mask first_lanes(int64_t count)
{
    mask lanes = {0};
    for (int lane = 0; lane < WIDTH; lane++)
        lanes[lane] = lane;
    return lanes < (int32_t)(count < WIDTH ? count : WIDTH);
}

/* `value` in every lane. Not 0 + value, which would have to be added. */
static ALWAYS_INLINE vector constant(float value)
{
#if defined(__SSE2__)
    return (vector)MM(set1_ps)(value);
#else
    return (vector){0} + value;
#endif
}

static ALWAYS_INLINE vector multiply_add_vector(vector a, vector b, vector c)
{
#if defined(__AVX512F__) || defined(__FMA__)
    return (vector)MM(fmadd_ps)(a, b, c);
#else
    return a * b + c;
#endif
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

static ALWAYS_INLINE float sum_vector(vector value)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)value);
#else
    float lanes[WIDTH];
    store(lanes, value);
    return sum_lanes(lanes, WIDTH);
#endif
}

/* NULL stays NULL. */
static ALWAYS_INLINE float *at(float *base, int64_t offset)
{
    return base == NULL ? NULL : base + offset;
}

/* The transpose of 4 × 4 floats. */
static ALWAYS_INLINE void transpose4(const float *from, int64_t from_stride, float *to,
                                     int64_t to_stride)
{
#if defined(__SSE2__)
    __m128 row0 = _mm_loadu_ps(from), row1 = _mm_loadu_ps(from + from_stride);
    __m128 row2 = _mm_loadu_ps(from + 2 * from_stride);
    __m128 row3 = _mm_loadu_ps(from + 3 * from_stride);
    _MM_TRANSPOSE4_PS(row0, row1, row2, row3);
    _mm_storeu_ps(to, row0);
    _mm_storeu_ps(to + to_stride, row1);
    _mm_storeu_ps(to + 2 * to_stride, row2);
    _mm_storeu_ps(to + 3 * to_stride, row3);
#else
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++)
            to[j * to_stride + i] = from[i * from_stride + j];
    }
#endif
}

static ALWAYS_INLINE void fetch_row(const float *row, int64_t dim)
{
    for (int64_t d = 0; d < dim; d += LINE)
        __builtin_prefetch(row + d);
}

static ALWAYS_INLINE void add_scaled_inline(int64_t n, float a, const float *__restrict x,
                                            float *__restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = multiply_add(a, x[i], y[i]);
}

#define KERNEL(name) JOIN(tdm_##name##_, TDM_KERNELS)

/* kernels_sparse.c, for the table in kernels.c */
void KERNEL(gather)(int64_t count, int64_t dim, const float *table, int64_t table_stride,
                    const uint32_t *ids, bool accumulate, float *out, int64_t stride);
void KERNEL(pool)(int64_t count, int64_t dim, const float *table, const uint32_t *ids,
                  const float *weights, float scale, float *out);
void KERNEL(sum_positions)(int64_t count, int64_t dim, const int32_t *starts,
                           const int32_t *positions, const float *dout, int64_t stride, float *out);
float KERNEL(fm_fwd)(int64_t fields, int64_t dim, const float *embeddings, float *sums);
void KERNEL(fm_bwd)(int64_t fields, int64_t dim, const float *embeddings, const float *sums,
                    float dout, bool accumulate, float *d_embeddings);
void KERNEL(update)(int64_t n, const tdm_update_factors *factors, const float *gradients,
                    float *values, float *moment1, float *moment2);
void KERNEL(update_rows)(int64_t count, int64_t dim, const tdm_update_factors *factors,
                         const uint32_t *ids, const float *gradients, float *values, float *moment1,
                         float *moment2);
void KERNEL(lamb_direction)(int64_t n, const tdm_update_factors *factors, const float *values,
                            float *gradients, float *moment1, float *moment2, double squares[2]);

/* kernels_attention.c */
extern const struct tdm_attention_kernels KERNEL(attention);

#endif
