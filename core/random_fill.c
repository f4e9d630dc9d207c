#include "core/random_fill.h"

#include "core/cpu_level.h"

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

#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))

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

AVX512 static inline void multiply_wide(__m512i x, __m512i factor, __m512i *high, __m512i *low)
{
    __m512i even = _mm512_mul_epu32(x, factor);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), factor);
    *low = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    *high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}

/* As store_groups(); quarter q of a row holds group 4 * q and the row's number. */
AVX512 static inline void store_groups_wide(const __m512i c[4], uint32_t *words)
{
    __m512i low01 = _mm512_unpacklo_epi32(c[0], c[1]), high01 = _mm512_unpackhi_epi32(c[0], c[1]);
    __m512i low23 = _mm512_unpacklo_epi32(c[2], c[3]), high23 = _mm512_unpackhi_epi32(c[2], c[3]);
    __m512i rows[4] = {_mm512_unpacklo_epi64(low01, low23), _mm512_unpackhi_epi64(low01, low23),
                       _mm512_unpacklo_epi64(high01, high23),
                       _mm512_unpackhi_epi64(high01, high23)};
    __m512i low = _mm512_shuffle_i32x4(rows[0], rows[1], 0x44);
    __m512i low2 = _mm512_shuffle_i32x4(rows[2], rows[3], 0x44);
    __m512i high = _mm512_shuffle_i32x4(rows[0], rows[1], 0xee);
    __m512i high2 = _mm512_shuffle_i32x4(rows[2], rows[3], 0xee);
    _mm512_storeu_si512(words, _mm512_shuffle_i32x4(low, low2, 0x88));
    _mm512_storeu_si512(words + 16, _mm512_shuffle_i32x4(low, low2, 0xdd));
    _mm512_storeu_si512(words + 32, _mm512_shuffle_i32x4(high, high2, 0x88));
    _mm512_storeu_si512(words + 48, _mm512_shuffle_i32x4(high, high2, 0xdd));
}

/* tdm_philox() for sixteen groups. */
AVX512 static void fill_sixteen(tdm_philox_key key, uint64_t sample, uint32_t epoch, uint32_t first,
                                uint32_t *words)
{
    const __m512i factor0 = _mm512_set1_epi64(0xD2511F53u);
    const __m512i factor1 = _mm512_set1_epi64(0xCD9E8D57u);
    uint32_t k0 = key.words[0], k1 = key.words[1];
    __m512i c[4] = {
        _mm512_add_epi32(_mm512_set1_epi32((int)first),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)),
        _mm512_set1_epi32((int)(uint32_t)sample), _mm512_set1_epi32((int)(uint32_t)(sample >> 32)),
        _mm512_set1_epi32((int)epoch)};
    for (int round = 0; round < 10; round++) {
        __m512i high0, low0, high1, low1;
        multiply_wide(c[0], factor0, &high0, &low0);
        multiply_wide(c[2], factor1, &high1, &low1);
        c[0] = _mm512_xor_si512(_mm512_xor_si512(high1, c[1]), _mm512_set1_epi32((int)k0));
        c[2] = _mm512_xor_si512(_mm512_xor_si512(high0, c[3]), _mm512_set1_epi32((int)k1));
        c[1] = low1;
        c[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    store_groups_wide(c, words);
}

/* Returns how many groups it made: multiples of 16. */
static int64_t fill_wide(tdm_philox_key key, uint64_t sample, uint32_t epoch, uint32_t first,
                         int64_t groups, uint32_t *words)
{
    int64_t i = 0;
    for (; groups - i >= 16; i += 16)
        fill_sixteen(key, sample, epoch, first + (uint32_t)i, words + 4 * i);
    return i;
}

static void fill_vectors(int level, tdm_philox_key key, uint64_t sample, uint32_t epoch,
                         uint32_t first, int64_t groups, uint32_t *words)
{
    int64_t i = level == 2 ? fill_wide(key, sample, epoch, first, groups, words) : 0;
    for (; i < groups; i += TDM_RANDOM_GROUPS)
        fill_eight(key, sample, epoch, first + (uint32_t)i, words + 4 * i);
}

static bool level_supported(int level)
{
    return level == 0 || (level == 1 && __builtin_cpu_supports("avx2")) ||
           (level == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx2"));
}
#else
static void fill_vectors(int level, tdm_philox_key key, uint64_t sample, uint32_t epoch,
                         uint32_t first, int64_t groups, uint32_t *words)
{
    (void)level;
    fill_plain(key, sample, epoch, first, groups, words);
}

static bool level_supported(int level)
{
    return level == 0;
}
#endif

static tdm_cpu_level levels = {.count = 3, .supported = level_supported, .chosen = -1};

bool tdm_random_fill_force(int level)
{
    return tdm_cpu_level_force(&levels, level);
}

void tdm_random_fill(tdm_philox_key key, uint64_t sample, uint32_t epoch, uint32_t first,
                     int64_t groups, uint32_t *words)
{
    int level = tdm_cpu_level_get(&levels);
    groups = (groups + TDM_RANDOM_GROUPS - 1) / TDM_RANDOM_GROUPS * TDM_RANDOM_GROUPS;
    if (level == 0)
        fill_plain(key, sample, epoch, first, groups, words);
    else
        fill_vectors(level, key, sample, epoch, first, groups, words);
}
