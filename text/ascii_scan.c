#include "text/ascii_scan.h"

#include "core/cpu_level.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* What 64 bytes are, a bit a byte. */
typedef struct byte_kinds {
    uint64_t words;   /* letters and digits */
    uint64_t spaces;  /* blank, tab, LF, CR */
    uint64_t lines;   /* LF */
    uint64_t regular; /* these and punctuation */
} byte_kinds;

/* The loop is the same for every instruction set; `kinds_of` (which also copies the block), and
 * `write_bits`, which writes base + the number of every bit that is set, differ. The last block is
 * padded with zeros, which are not regular. */
#define SCAN_LOOP(kinds_of, write_bits)                                                            \
    uint64_t word_before = scan->open == TDM_OPEN_WORD;                                            \
    uint64_t mark_before = scan->open == TDM_OPEN_PUNCTUATION;                                     \
    size_t at = 0;                                                                                 \
    while (at < bytes) {                                                                           \
        char last[64];                                                                             \
        const char *block = text + at;                                                             \
        if (bytes - at < 64) {                                                                     \
            memset(last, 0, sizeof last);                                                          \
            memcpy(last, block, bytes - at);                                                       \
            block = last;                                                                          \
        }                                                                                          \
        byte_kinds kinds = kinds_of(block, lowercase, scan->out + scan->out_at);                   \
        unsigned count =                                                                           \
            kinds.regular == UINT64_MAX ? 64 : (unsigned)__builtin_ctzll(~kinds.regular);          \
        if (count == 0)                                                                            \
            break;                                                                                 \
        uint64_t valid = UINT64_MAX >> (64 - count);                                               \
        uint64_t words = kinds.words & valid, spaces = kinds.spaces & valid;                       \
        uint64_t marks = valid & ~(words | spaces);                                                \
        uint64_t follows_word = words << 1 | word_before;                                          \
        uint64_t starts = (words & ~follows_word) | marks;                                         \
        uint64_t ends = ((follows_word & ~words) | marks << 1 | mark_before) & valid;              \
        for (uint64_t lines = kinds.lines & valid; lines != 0; lines &= lines - 1) {               \
            uint64_t before = starts & ((lines & -lines) - 1);                                     \
            scan->lines[scan->line_count++] =                                                      \
                scan->begin_count + (uint32_t)__builtin_popcountll(before);                        \
        }                                                                                          \
        if (spaces != 0) {                                                                         \
            unsigned top = 63u - (unsigned)__builtin_clzll(spaces);                                \
            scan->hard_at = at + top + 1;                                                          \
            scan->hard_words = scan->begin_count + (uint32_t)__builtin_popcountll(                 \
                                                       starts & (UINT64_MAX >> (63 - top)));       \
        }                                                                                          \
        scan->begin_count += write_bits(starts, scan->out_at, scan->begins + scan->begin_count);   \
        scan->end_count += write_bits(ends, scan->out_at, scan->ends + scan->end_count);           \
        scan->out_at += count;                                                                     \
        at += count;                                                                               \
        word_before = words >> (count - 1) & 1;                                                    \
        mark_before = marks >> (count - 1) & 1;                                                    \
        if (count < 64)                                                                            \
            break;                                                                                 \
    }                                                                                              \
    scan->open = word_before ? TDM_OPEN_WORD : mark_before ? TDM_OPEN_PUNCTUATION : TDM_OPEN_NONE; \
    return at

typedef size_t (*scan_function)(const char *text, size_t bytes, bool lowercase,
                                tdm_ascii_scan *scan);

/* Eight numbers are written at a time whether they are there or not: the room behind takes the
 * rest. */
#define WRITE_BITS(bits, base, to)                                                                 \
    uint32_t count = (uint32_t)__builtin_popcountll(bits);                                         \
    for (uint32_t done = 0; done < count; done += 8) {                                             \
        for (int i = 0; i < 8; i++) {                                                              \
            (to)[done + (uint32_t)i] =                                                             \
                (base) + (uint32_t)__builtin_ctzll((bits) | (uint64_t)1 << 63);                    \
            (bits) &= (bits)-1;                                                                    \
        }                                                                                          \
    }                                                                                              \
    return count

#if defined(__x86_64__)

static inline uint32_t write_bits_baseline(uint64_t bits, uint32_t base, uint32_t *to)
{
    WRITE_BITS(bits, base, to);
}

/* In [low, low + count), for bytes as they wrap around. */
static inline __m128i in_range_sse2(__m128i bytes, char low, char count)
{
    __m128i shifted = _mm_sub_epi8(bytes, _mm_set1_epi8((char)(low + -128)));
    return _mm_cmplt_epi8(shifted, _mm_set1_epi8((char)(count + -128)));
}

static inline byte_kinds kinds_sse2(const char *block, bool lowercase, char *out)
{
    byte_kinds kinds = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i));
        __m128i upper = in_range_sse2(bytes, 'A', 26);
        __m128i lower = _mm_or_si128(bytes, _mm_and_si128(upper, _mm_set1_epi8(0x20)));
        __m128i words = _mm_or_si128(in_range_sse2(lower, 'a', 26), in_range_sse2(bytes, '0', 10));
        __m128i spaces = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')),
                                      _mm_or_si128(in_range_sse2(bytes, '\t', 2),
                                                   _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r'))));
        __m128i lines = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
        __m128i regular = _mm_or_si128(in_range_sse2(bytes, 0x20, 0x5f), spaces);
        _mm_storeu_si128((__m128i *)(void *)(out + 16 * i), lowercase ? lower : bytes);
        int shift = 16 * i;
        kinds.words |= (uint64_t)(uint32_t)_mm_movemask_epi8(words) << shift;
        kinds.spaces |= (uint64_t)(uint32_t)_mm_movemask_epi8(spaces) << shift;
        kinds.lines |= (uint64_t)(uint32_t)_mm_movemask_epi8(lines) << shift;
        kinds.regular |= (uint64_t)(uint32_t)_mm_movemask_epi8(regular) << shift;
    }
    return kinds;
}

static size_t scan_baseline(const char *text, size_t bytes, bool lowercase, tdm_ascii_scan *scan)
{
    SCAN_LOOP(kinds_sse2, write_bits_baseline);
}

#define AVX2   __attribute__((target("avx2,bmi,popcnt")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,bmi,popcnt")))

AVX2 static inline uint32_t write_bits_avx2(uint64_t bits, uint32_t base, uint32_t *to)
{
    WRITE_BITS(bits, base, to);
}

AVX2 static inline __m256i in_range_avx2(__m256i bytes, char low, char count)
{
    __m256i shifted = _mm256_sub_epi8(bytes, _mm256_set1_epi8((char)(low + -128)));
    return _mm256_cmpgt_epi8(_mm256_set1_epi8((char)(count + -128)), shifted);
}

AVX2 static inline byte_kinds kinds_avx2(const char *block, bool lowercase, char *out)
{
    byte_kinds kinds = {0, 0, 0, 0};
    for (int i = 0; i < 2; i++) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(block + 32 * i));
        __m256i upper = in_range_avx2(bytes, 'A', 26);
        __m256i lower = _mm256_or_si256(bytes, _mm256_and_si256(upper, _mm256_set1_epi8(0x20)));
        __m256i words =
            _mm256_or_si256(in_range_avx2(lower, 'a', 26), in_range_avx2(bytes, '0', 10));
        __m256i spaces =
            _mm256_or_si256(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(' ')),
                            _mm256_or_si256(in_range_avx2(bytes, '\t', 2),
                                            _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\r'))));
        __m256i lines = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\n'));
        __m256i regular = _mm256_or_si256(in_range_avx2(bytes, 0x20, 0x5f), spaces);
        _mm256_storeu_si256((__m256i *)(void *)(out + 32 * i), lowercase ? lower : bytes);
        int shift = 32 * i;
        kinds.words |= (uint64_t)(uint32_t)_mm256_movemask_epi8(words) << shift;
        kinds.spaces |= (uint64_t)(uint32_t)_mm256_movemask_epi8(spaces) << shift;
        kinds.lines |= (uint64_t)(uint32_t)_mm256_movemask_epi8(lines) << shift;
        kinds.regular |= (uint64_t)(uint32_t)_mm256_movemask_epi8(regular) << shift;
    }
    return kinds;
}

AVX2 static size_t scan_avx2(const char *text, size_t bytes, bool lowercase, tdm_ascii_scan *scan)
{
    SCAN_LOOP(kinds_avx2, write_bits_avx2);
}

AVX512 static inline __mmask64 in_range_avx512(__m512i bytes, char low, char count)
{
    __m512i shifted = _mm512_sub_epi8(bytes, _mm512_set1_epi8(low));
    return _mm512_cmplt_epu8_mask(shifted, _mm512_set1_epi8(count));
}

AVX512 static inline byte_kinds kinds_avx512(const char *block, bool lowercase, char *out)
{
    __m512i bytes = _mm512_loadu_si512(block);
    __mmask64 upper = in_range_avx512(bytes, 'A', 26);
    __m512i lower = _mm512_mask_add_epi8(bytes, upper, bytes, _mm512_set1_epi8(0x20));
    _mm512_storeu_si512(out, lowercase ? lower : bytes);
    byte_kinds kinds;
    kinds.words = in_range_avx512(lower, 'a', 26) | in_range_avx512(bytes, '0', 10);
    kinds.spaces = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(' ')) |
                   in_range_avx512(bytes, '\t', 2) |
                   _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\r'));
    kinds.lines = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\n'));
    kinds.regular = in_range_avx512(bytes, 0x20, 0x5f) | kinds.spaces;
    return kinds;
}

/* The numbers of the bits are packed as bytes, then widened sixteen at a time. */
AVX512 static inline uint32_t write_bits_avx512(uint64_t bits, uint32_t base, uint32_t *to)
{
    static const unsigned char numbers[64] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    uint32_t count = (uint32_t)__builtin_popcountll(bits);
    __m512i packed = _mm512_maskz_compress_epi8(bits, _mm512_loadu_si512(numbers));
    __m512i first = _mm512_set1_epi32((int)base);
    for (uint32_t done = 0; done < count; done += 16) {
        __m512i wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(packed));
        _mm512_storeu_si512(to + done, _mm512_add_epi32(wide, first));
        packed = _mm512_alignr_epi32(packed, packed, 4);
    }
    return count;
}

AVX512 static size_t scan_avx512(const char *text, size_t bytes, bool lowercase,
                                 tdm_ascii_scan *scan)
{
    SCAN_LOOP(kinds_avx512, write_bits_avx512);
}

static bool level_supported(int level)
{
    bool bits = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
    return level == 0 || (level == 1 && bits && __builtin_cpu_supports("avx2")) ||
           (level == 2 && bits && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2"));
}

static const scan_function functions[] = {scan_baseline, scan_avx2, scan_avx512};

#else

static inline uint32_t write_bits_portable(uint64_t bits, uint32_t base, uint32_t *to)
{
    WRITE_BITS(bits, base, to);
}

static inline byte_kinds kinds_portable(const char *block, bool lowercase, char *out)
{
    byte_kinds kinds = {0, 0, 0, 0};
    for (int i = 0; i < 64; i++) {
        unsigned byte = (unsigned char)block[i];
        bool upper = byte - 'A' < 26u;
        uint64_t bit = (uint64_t)1 << i;
        bool space = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
        kinds.words |= upper || byte - 'a' < 26u || byte - '0' < 10u ? bit : 0;
        kinds.spaces |= space ? bit : 0;
        kinds.lines |= byte == '\n' ? bit : 0;
        kinds.regular |= space || byte - 0x20 < 0x5fu ? bit : 0;
        out[i] = (char)(upper && lowercase ? byte + 0x20 : byte);
    }
    return kinds;
}

static size_t scan_baseline(const char *text, size_t bytes, bool lowercase, tdm_ascii_scan *scan)
{
    SCAN_LOOP(kinds_portable, write_bits_portable);
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

size_t tdm_ascii_scan_text(const char *text, size_t bytes, bool lowercase, tdm_ascii_scan *scan)
{
    return functions[tdm_cpu_level_get(&levels)](text, bytes, lowercase, scan);
}

bool tdm_ascii_scan_force(int level)
{
    return tdm_cpu_level_force(&levels, level);
}
