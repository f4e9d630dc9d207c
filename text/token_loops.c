#include "text/token_loops.h"

#include <stddef.h>
#include <string.h>

/* Each loop is written once and compiled for each instruction set, whose vectors the compiler then
 * uses. */
#define INLINE static inline __attribute__((always_inline))

INLINE void narrow(const uint32_t *restrict from, int64_t count, uint16_t *restrict to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (uint16_t)from[i];
}

INLINE void widen(const uint16_t *restrict from, int64_t count, uint32_t *restrict to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i];
}

INLINE void fill(uint32_t *to, int64_t count, uint32_t value)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = value;
}

INLINE void count_on(uint32_t *to, int64_t count, uint32_t first)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = first + (uint32_t)i;
}

INLINE void find(const uint32_t *restrict ids, int64_t count, const uint32_t five[5],
                 uint8_t *restrict found)
{
    uint32_t a = five[0], b = five[1], c = five[2], d = five[3], e = five[4];
    for (int64_t i = 0; i < count; i++) {
        uint32_t id = ids[i];
        found[i] = (id == a) | (id == b) | (id == c) | (id == d) | (id == e);
    }
}

INLINE int64_t count_ones(const uint8_t *units, int64_t count)
{
    int64_t ones = 0;
    for (int64_t i = 0; i < count;) {
        /* In bytes, which cannot overflow so soon. */
        uint8_t some = 0;
        int64_t end = count - i < 128 ? count : i + 128;
        for (; i < end; i++)
            some = (uint8_t)(some + (units[i] & 1));
        ones += some;
    }
    return ones;
}

INLINE int64_t find_units(const uint8_t *restrict never, const uint8_t *restrict marks,
                          int64_t count, uint8_t *restrict units)
{
    if (marks == NULL) {
        for (int64_t i = 0; i < count; i++)
            units[i] = never[i] ^ 1;
    } else {
        for (int64_t i = 0; i < count; i++) {
            uint8_t begins = (uint8_t)((marks[i] & 1) | never[i - 1]);
            units[i] = (uint8_t)((2 - begins) & (never[i] - 1));
        }
    }
    return count_ones(units, count);
}

/* Appends the numbers of the bits that are set. */
INLINE int64_t list_bits(uint64_t bits, int64_t base, uint32_t *found, int64_t count)
{
    for (; bits != 0; bits &= bits - 1)
        found[count++] = (uint32_t)(base + __builtin_ctzll(bits));
    return count;
}

INLINE int64_t list_one_by_one(const uint8_t *marks, int64_t first, int64_t end, uint8_t wanted,
                               uint32_t *found, int64_t count)
{
    for (int64_t i = first; i < end; i++) {
        if ((marks[i] & wanted) != 0)
            found[count++] = (uint32_t)i;
    }
    return count;
}

static int64_t list_baseline(const uint8_t *marks, int64_t first, int64_t end, uint8_t wanted,
                             uint32_t *found)
{
    uint64_t pattern = UINT64_C(0x0101010101010101) * wanted;
    int64_t count = 0;
    for (; end - first >= 8; first += 8) {
        uint64_t eight;
        memcpy(&eight, marks + first, sizeof eight);
        if ((eight & pattern) != 0)
            count = list_one_by_one(marks, first, first + 8, wanted, found, count);
    }
    return list_one_by_one(marks, first, end, wanted, found, count);
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2,bmi"))) static int64_t
list_avx2(const uint8_t *marks, int64_t first, int64_t end, uint8_t wanted, uint32_t *found)
{
    const __m256i pattern = _mm256_set1_epi8((char)wanted);
    const __m256i zero = _mm256_setzero_si256();
    int64_t count = 0;
    for (; end - first >= 32; first += 32) {
        __m256i block = _mm256_loadu_si256((const __m256i *)(marks + first));
        __m256i none = _mm256_cmpeq_epi8(_mm256_and_si256(block, pattern), zero);
        uint32_t bits = ~(uint32_t)_mm256_movemask_epi8(none);
        count = list_bits(bits, first, found, count);
    }
    return list_one_by_one(marks, first, end, wanted, found, count);
}
#endif

#define DEFINE_LOOPS(name, target)                                                                 \
    target static void narrow_##name(const uint32_t *from, int64_t count, uint16_t *to)            \
    {                                                                                              \
        narrow(from, count, to);                                                                   \
    }                                                                                              \
    target static void widen_##name(const uint16_t *from, int64_t count, uint32_t *to)             \
    {                                                                                              \
        widen(from, count, to);                                                                    \
    }                                                                                              \
    target static void fill_##name(uint32_t *to, int64_t count, uint32_t value)                    \
    {                                                                                              \
        fill(to, count, value);                                                                    \
    }                                                                                              \
    target static void count_on_##name(uint32_t *to, int64_t count, uint32_t first)                \
    {                                                                                              \
        count_on(to, count, first);                                                                \
    }                                                                                              \
    target static void find_##name(const uint32_t *ids, int64_t count, const uint32_t five[5],     \
                                   uint8_t *found)                                                 \
    {                                                                                              \
        find(ids, count, five, found);                                                             \
    }                                                                                              \
    target static int64_t units_##name(const uint8_t *never, const uint8_t *marks, int64_t count,  \
                                       uint8_t *units)                                             \
    {                                                                                              \
        return find_units(never, marks, count, units);                                             \
    }                                                                                              \
    static const tdm_token_loops loops_##name = {                                                  \
        .narrow = narrow_##name,                                                                   \
        .widen = widen_##name,                                                                     \
        .fill = fill_##name,                                                                       \
        .count_on = count_on_##name,                                                               \
        .find = find_##name,                                                                       \
        .units = units_##name,                                                                     \
        .list = list_##name,                                                                       \
    };

DEFINE_LOOPS(baseline, )
#if defined(__x86_64__)
DEFINE_LOOPS(avx2, __attribute__((target("avx2"))))
#endif

const tdm_token_loops *tdm_token_loops_choose(bool vectors)
{
#if defined(__x86_64__)
    if (vectors && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi"))
        return &loops_avx2;
#else
    (void)vectors;
#endif
    return &loops_baseline;
}
