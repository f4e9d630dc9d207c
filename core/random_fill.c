#include "core/random_fill.h"

#include <stdatomic.h>

static atomic_bool vectors_allowed = true;

bool tdm_random_fill_vectors(bool allowed)
{
    return atomic_exchange(&vectors_allowed, allowed);
}

static void fill_plain(tdm_philox_key key, uint64_t sample, uint32_t epoch, uint32_t first,
                       int64_t groups, uint32_t *words)
{
    for (int64_t i = 0; i < groups; i++) {
        tdm_philox_words four = tdm_random4(key, sample, epoch, first + (uint32_t)i);
        for (int w = 0; w < 4; w++)
            words[4 * i + w] = four.words[w];
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* Both halves of the products of eight numbers with a constant. */
AVX2 static inline void multiply(__m256i x, __m256i factor, __m256i *high, __m256i *low)
{
    __m256i even = _mm256_mul_epu32(x, factor);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), factor);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

/* Word w of group g from c[w], lane g, to words[4 * g + w]. */
AVX2 static inline void store_groups(const __m256i c[4], uint32_t *words)
{
    __m256i low01 = _mm256_unpacklo_epi32(c[0], c[1]), high01 = _mm256_unpackhi_epi32(c[0], c[1]);
    __m256i low23 = _mm256_unpacklo_epi32(c[2], c[3]), high23 = _mm256_unpackhi_epi32(c[2], c[3]);
    __m256i rows[4] = {_mm256_unpacklo_epi64(low01, low23), _mm256_unpackhi_epi64(low01, low23),
                       _mm256_unpacklo_epi64(high01, high23),
                       _mm256_unpackhi_epi64(high01, high23)};
    __m256i *to = (__m256i *)words;
    _mm256_storeu_si256(to + 0, _mm256_permute2x128_si256(rows[0], rows[1], 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(rows[2], rows[3], 0x20));
    _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(rows[0], rows[1], 0x31));
    _mm256_storeu_si256(to + 3, _mm256_permute2x128_si256(rows[2], rows[3], 0x31));
}

/* tdm_philox() for eight groups. */
AVX2 static void fill_eight(tdm_philox_key key, uint64_t sample, uint32_t epoch, uint32_t first,
                            uint32_t *words)
{
    const __m256i factor0 = _mm256_set1_epi64x(0xD2511F53u);
    const __m256i factor1 = _mm256_set1_epi64x(0xCD9E8D57u);
    uint32_t k0 = key.words[0], k1 = key.words[1];
    __m256i c[4] = {
        _mm256_add_epi32(_mm256_set1_epi32((int)first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
        _mm256_set1_epi32((int)(uint32_t)sample), _mm256_set1_epi32((int)(uint32_t)(sample >> 32)),
        _mm256_set1_epi32((int)epoch)};
    for (int round = 0; round < 10; round++) {
        __m256i high0, low0, high1, low1;
        multiply(c[0], factor0, &high0, &low0);
        multiply(c[2], factor1, &high1, &low1);
        c[0] = _mm256_xor_si256(_mm256_xor_si256(high1, c[1]), _mm256_set1_epi32((int)k0));
        c[2] = _mm256_xor_si256(_mm256_xor_si256(high0, c[3]), _mm256_set1_epi32((int)k1));
        c[1] = low1;
        c[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    store_groups(c, words);
}

AVX2 static void fill_vectors(tdm_philox_key key, uint64_t sample, uint32_t epoch, uint32_t first,
                              int64_t groups, uint32_t *words)
{
    for (int64_t i = 0; i < groups; i += TDM_RANDOM_GROUPS)
        fill_eight(key, sample, epoch, first + (uint32_t)i, words + 4 * i);
}

static bool has_vectors(void)
{
    return __builtin_cpu_supports("avx2") &&
           atomic_load_explicit(&vectors_allowed, memory_order_relaxed);
}
#else
#define fill_vectors fill_plain

static bool has_vectors(void)
{
    return false;
}
#endif

void tdm_random_fill(tdm_philox_key key, uint64_t sample, uint32_t epoch, uint32_t first,
                     int64_t groups, uint32_t *words)
{
    groups = (groups + TDM_RANDOM_GROUPS - 1) / TDM_RANDOM_GROUPS * TDM_RANDOM_GROUPS;
    if (has_vectors())
        fill_vectors(key, sample, epoch, first, groups, words);
    else
        fill_plain(key, sample, epoch, first, groups, words);
}
