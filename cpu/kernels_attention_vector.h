/* What the sources of attention's kernels share: vectors of units, of a float or of two
 * bfloat16. */
#ifndef TDM_CPU_KERNELS_ATTENTION_VECTOR_H
#define TDM_CPU_KERNELS_ATTENTION_VECTOR_H

#include "cpu/kernels_attention.h"
#include "cpu/kernels_vector.h"

static ALWAYS_INLINE int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#if defined(__AVX512BF16__)

#define UNIT 2
typedef uint32_t __attribute__((may_alias)) unit; /* the lower half has the smaller k */

static ALWAYS_INLINE vector load_units(const unit *from)
{
    return (vector)_mm512_loadu_si512(from);
}

static ALWAYS_INLINE vector broadcast_unit(const unit *from)
{
    return (vector)_mm512_set1_epi32((int)*from);
}

static ALWAYS_INLINE vector multiply_add_units(vector a, vector b, vector c)
{
    return (vector)_mm512_dpbf16_ps((__m512)c, (__m512bh)a, (__m512bh)b);
}

/* Units (first[i], second[i]). */
static ALWAYS_INLINE void store_units(unit *to, vector first, vector second)
{
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i halves = (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(order, halves));
}

/* Units of neighbours: (first[0], first[1]) .. (second[14], second[15]). */
static ALWAYS_INLINE void store_row_units(unit *to, vector first, vector second)
{
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first));
}

/* Half as many units of one vector. */
static ALWAYS_INLINE void store_half_row_units(unit *to, vector values)
{
    _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh((__m512)values));
}

#else

#define UNIT 1
typedef float unit;

static ALWAYS_INLINE vector load_units(const unit *from)
{
    return load(from);
}

static ALWAYS_INLINE vector broadcast_unit(const unit *from)
{
    return constant(*from);
}

static ALWAYS_INLINE vector multiply_add_units(vector a, vector b, vector c)
{
    return multiply_add_vector(a, b, c);
}

static ALWAYS_INLINE void store_units(unit *to, vector first, vector second)
{
    (void)second;
    store(to, first);
}

static ALWAYS_INLINE void store_row_units(unit *to, vector first, vector second)
{
    store_units(to, first, second);
}

#endif

/* kernels_attention_softmax.c, for the table in kernels_attention.c */
void KERNEL(softmax)(const tdm_score_block *block, float *scores, void *weights, float *maxima,
                     float *sums, float *factors);
void KERNEL(softmax_bwd)(const tdm_score_block *block, float *scores, float *d_weights,
                         const float *log_sums, const float *dots, void *weights, void *gradients,
                         void *gradients_turned);

#endif
