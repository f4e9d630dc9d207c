#include "data/separator_scan.h"

#include "core/cpu_level.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* What 64 bytes hold, a bit a byte. */
typedef struct byte_masks {
    uint64_t separators, newlines;
    uint64_t odd; /* not zero: some byte is NUL or not ASCII */
} byte_masks;

/* The loop is the same for every instruction set; `masks_of` differs. Eight positions are written
 * at a time whether they are there or not: the room behind the end takes the rest. */
#define SCAN_LOOP(masks_of)                                                                        \
    uint32_t count = 0, newline_count = 0;                                                         \
    uint64_t odd = 0;                                                                              \
    uint32_t at = begin;                                                                           \
    while (at < size && count < room && newline_count < newline_room) {                            \
        byte_masks masks = masks_of(text + at, separator);                                         \
        if (size - at < 64) {                                                                      \
            uint64_t valid = ((uint64_t)1 << (size - at)) - 1;                                     \
            masks.separators &= valid;                                                             \
            masks.newlines &= valid;                                                               \
            masks.odd &= valid;                                                                    \
        }                                                                                          \
        odd |= masks.odd;                                                                          \
        uint64_t all = masks.separators | masks.newlines;                                          \
        for (uint64_t left = masks.newlines; left != 0; left &= left - 1) {                        \
            uint64_t below = (left & -left) - 1;                                                   \
            scan->newlines[newline_count++] = count + (uint32_t)__builtin_popcountll(all & below); \
        }                                                                                          \
        uint32_t found = (uint32_t)__builtin_popcountll(all);                                      \
        for (uint32_t done = 0; done < found; done += 8) {                                         \
            uint32_t *out = scan->positions + count + done;                                        \
            for (int i = 0; i < 8; i++) {                                                          \
                out[i] = at + (uint32_t)__builtin_ctzll(all | (uint64_t)1 << 63);                  \
                all &= all - 1;                                                                    \
            }                                                                                      \
        }                                                                                          \
        count += found;                                                                            \
        at += 64;                                                                                  \
    }                                                                                              \
    scan->count = count;                                                                           \
    scan->newline_count = newline_count;                                                           \
    scan->plain = odd == 0;                                                                        \
    scan->end = at < size ? at : size

typedef void (*scan_function)(const char *text, uint32_t begin, uint32_t size, char separator,
                              uint32_t room, uint32_t newline_room, tdm_separator_scan *scan);

#if defined(__x86_64__)

static inline byte_masks masks_sse2(const char *text, char separator)
{
    byte_masks masks = {0, 0, 0};
    for (int i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text + 16 * i));
        __m128i is_separator = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(separator));
        __m128i is_newline = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
        __m128i is_nul = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());
        int shift = 16 * i;
        masks.separators |= (uint64_t)(uint32_t)_mm_movemask_epi8(is_separator) << shift;
        masks.newlines |= (uint64_t)(uint32_t)_mm_movemask_epi8(is_newline) << shift;
        masks.odd |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_or_si128(is_nul, bytes)) << shift;
    }
    return masks;
}

static void scan_baseline(const char *text, uint32_t begin, uint32_t size, char separator,
                          uint32_t room, uint32_t newline_room, tdm_separator_scan *scan)
{
    SCAN_LOOP(masks_sse2);
}

#define AVX2   __attribute__((target("avx2,bmi,popcnt")))
#define AVX512 __attribute__((target("avx512bw,avx512vl,bmi,popcnt")))

AVX2 static inline byte_masks masks_avx2(const char *text, char separator)
{
    byte_masks masks = {0, 0, 0};
    for (int i = 0; i < 2; i++) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(text + 32 * i));
        __m256i is_separator = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(separator));
        __m256i is_newline = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\n'));
        __m256i is_nul = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
        int shift = 32 * i;
        masks.separators |= (uint64_t)(uint32_t)_mm256_movemask_epi8(is_separator) << shift;
        masks.newlines |= (uint64_t)(uint32_t)_mm256_movemask_epi8(is_newline) << shift;
        masks.odd |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_or_si256(is_nul, bytes))
                     << shift;
    }
    return masks;
}

AVX2 static void scan_avx2(const char *text, uint32_t begin, uint32_t size, char separator,
                           uint32_t room, uint32_t newline_room, tdm_separator_scan *scan)
{
    SCAN_LOOP(masks_avx2);
}

AVX512 static inline byte_masks masks_avx512(const char *text, char separator)
{
    __m512i bytes = _mm512_loadu_si512(text);
    return (byte_masks){
        .separators = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(separator)),
        .newlines = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\n')),
        .odd = _mm512_cmple_epi8_mask(bytes, _mm512_setzero_si512()),
    };
}

AVX512 static void scan_avx512(const char *text, uint32_t begin, uint32_t size, char separator,
                               uint32_t room, uint32_t newline_room, tdm_separator_scan *scan)
{
    SCAN_LOOP(masks_avx512);
}

static bool level_supported(int level)
{
    return level == 0 || (level == 1 && __builtin_cpu_supports("avx2")) ||
           (level == 2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
}

static const scan_function functions[] = {scan_baseline, scan_avx2, scan_avx512};

#else

static inline byte_masks masks_portable(const char *text, char separator)
{
    byte_masks masks = {0, 0, 0};
    for (int i = 0; i < 64; i++) {
        unsigned char byte = (unsigned char)text[i];
        masks.separators |= (uint64_t)(text[i] == separator) << i;
        masks.newlines |= (uint64_t)(byte == '\n') << i;
        masks.odd |= (uint64_t)(byte == 0 || byte >= 0x80) << i;
    }
    return masks;
}

static void scan_baseline(const char *text, uint32_t begin, uint32_t size, char separator,
                          uint32_t room, uint32_t newline_room, tdm_separator_scan *scan)
{
    SCAN_LOOP(masks_portable);
}

static bool level_supported(int level)
{
    return level == 0;
}

static const scan_function functions[] = {scan_baseline};

#endif

static tdm_cpu_level levels = {.count = (int)(sizeof functions / sizeof functions[0]),
                               .supported = level_supported,
                               .chosen = -1};

void tdm_scan_separators(const char *text, uint32_t begin, uint32_t size, char separator,
                         uint32_t room, uint32_t newline_room, tdm_separator_scan *scan)
{
    functions[tdm_cpu_level_get(&levels)](text, begin, size, separator, room, newline_room, scan);
}

bool tdm_scan_separators_force(int level)
{
    return tdm_cpu_level_force(&levels, level);
}
