#include "cpu/bf16.h"

#include <dnnl.h>

#define PANEL TDM_BF16_PANEL

static inline int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- anywhere -------------------------------------------------------------------------------- */

static void pack_rows(const tdm_bf16_source *from, int64_t columns, tdm_bf16 *to)
{
    for (int64_t r = 0; r < from->rows; r++, to += columns) {
        const float *row = from->data + r * from->stride;
        for (int64_t c = 0; c < from->columns; c++)
            to[c] = tdm_bf16_from_float(row[c]);
    }
}

static void pack_panel(const tdm_bf16_source *from, tdm_bf16 *to)
{
    for (int64_t r = 0; r < from->rows; r++) {
        const float *row = from->data + r * from->stride;
        tdm_bf16 *pairs = to + r / 2 * 2 * PANEL + r % 2;
        for (int64_t c = 0; c < from->columns; c++)
            pairs[2 * c] = tdm_bf16_from_float(row[c]);
    }
}

static void pack_panel_turned(const tdm_bf16_source *from, tdm_bf16 *to)
{
    for (int64_t c = 0; c < from->rows; c++) {
        const float *column = from->data + c * from->stride;
        for (int64_t r = 0; r < from->columns; r++)
            to[r / 2 * 2 * PANEL + 2 * c + r % 2] = tdm_bf16_from_float(column[r]);
    }
}

/* ---- AVX512_BF16 ----------------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

/* The first `count` of 16 floats, zeros behind; count may be anything. */
TARGET static inline __m512 load_some(const float *from, int64_t count)
{
    if (count >= 16)
        return _mm512_loadu_ps(from);
    return _mm512_maskz_loadu_ps((__mmask16)(count <= 0 ? 0 : (1u << count) - 1u), from);
}

TARGET static inline __m512i round_both(__m512 low, __m512 high)
{
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

TARGET static void pack_rows_avx512(const tdm_bf16_source *from, int64_t columns, tdm_bf16 *to)
{
    for (int64_t r = 0; r < from->rows; r++, to += columns) {
        const float *row = from->data + r * from->stride;
        int64_t c = 0;
        for (; c + 32 <= from->columns; c += 32)
            _mm512_storeu_si512(to + c, round_both(_mm512_loadu_ps(row + c), //
                                                   _mm512_loadu_ps(row + c + 16)));
        int64_t rest = from->columns - c;
        if (rest > 0)
            _mm512_mask_storeu_epi16(
                to + c, (__mmask32)((1u << rest) - 1u),
                round_both(load_some(row + c, rest), load_some(row + c + 16, rest - 16)));
    }
}

TARGET static void pack_panel_avx512(const tdm_bf16_source *from, tdm_bf16 *to)
{
    /* 0, 16, 1, 17, …: a number of the lower half beside one of the upper half */
    const __m512i pairs = _mm512_or_si512(
        _mm512_cvtepu16_epi32(
            _mm256_set_epi16(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)),
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23,
                                                                 22, 21, 20, 19, 18, 17, 16)),
                          16));
    for (int64_t r = 0; r < from->rows; r += 2, to += 2 * PANEL) {
        const float *row = from->data + r * from->stride;
        bool odd = r + 1 == from->rows;
        const float *next = odd ? row : row + from->stride;
        for (int64_t c = 0; c < from->columns; c += 16) {
            int64_t count = from->columns - c;
            __m512i both =
                round_both(load_some(row + c, count), load_some(next + c, odd ? 0 : count));
            _mm512_storeu_si512(to + 2 * c, _mm512_permutexvar_epi16(pairs, both));
        }
    }
}

/* The transpose of 16 rows of 16 words. */
TARGET static inline void transpose16(__m512i rows[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        rows[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        rows[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        rows[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
        rows[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

/* A pair of rows of the panel is one word here: 16 columns of 16 words at a time. */
TARGET static void pack_panel_turned_avx512(const tdm_bf16_source *from, tdm_bf16 *to)
{
    for (int64_t c = 0; c < from->rows; c += 16) {
        int64_t columns = min(from->rows - c, 16);
        const float *column = from->data + c * from->stride;
        for (int64_t r = 0; r < from->columns; r += 32) {
            int64_t count = from->columns - r;
            __m512i words[16];
            for (int64_t i = 0; i < 16; i++) {
                const float *run = column + (i < columns ? i * from->stride : 0) + r;
                int64_t some = i < columns ? count : 0;
                words[i] = round_both(load_some(run, some), load_some(run + 16, some - 16));
            }
            transpose16(words);
            for (int64_t i = 0; i < 16 && 2 * i < count; i++)
                _mm512_storeu_si512(to + ((r / 2 + i) * PANEL + c) * 2, words[i]);
        }
    }
}

static bool avx512_bf16(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bf16");
}

#else

static bool avx512_bf16(void)
{
    return false;
}

#endif

/* ---- the choice ------------------------------------------------------------------------------ */

static bool supported(int level)
{
    return level == 0 || avx512_bf16();
}

tdm_cpu_level tdm_bf16_levels = {.count = 2, .supported = supported, .chosen = -1};

/* What packs the source alone, for each level. */
typedef struct bf16_loops {
    void (*rows)(const tdm_bf16_source *from, int64_t columns, tdm_bf16 *to);
    void (*panel)(const tdm_bf16_source *from, tdm_bf16 *to);
    void (*panel_turned)(const tdm_bf16_source *from, tdm_bf16 *to);
} bf16_loops;

static const bf16_loops loops[] = {
    {pack_rows, pack_panel, pack_panel_turned},
#if defined(__x86_64__)
    {pack_rows_avx512, pack_panel_avx512, pack_panel_turned_avx512},
#endif
};

static const bf16_loops *choose(void)
{
    return &loops[tdm_cpu_level_get(&tdm_bf16_levels)];
}

bool tdm_cpu_has_bf16(void)
{
    return avx512_bf16() && (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
                                dnnl_cpu_isa_avx512_core_bf16;
}

static void clear(int64_t count, tdm_bf16 *to)
{
    memset(to, 0, (size_t)count * sizeof *to);
}

void tdm_bf16_pack(const tdm_bf16_source *from, int64_t rows, int64_t columns, tdm_bf16 *to)
{
    choose()->rows(from, columns, to);
    for (int64_t r = 0; r < from->rows && from->columns < columns; r++)
        clear(columns - from->columns, to + r * columns + from->columns);
    clear((rows - from->rows) * columns, to + from->rows * columns);
}

/* Clears what a panel has and its source, of `depth` rows and `columns` columns, has not. */
static void clear_around(int64_t depth, int64_t columns, int64_t rows, tdm_bf16 *to)
{
    int64_t pairs = (depth + 1) / 2;
    for (int64_t p = 0; p < pairs && columns < PANEL; p++)
        clear(2 * (PANEL - columns), to + 2 * (p * PANEL + columns));
    for (int64_t c = 0; c < columns && depth % 2 == 1; c++)
        to[2 * ((pairs - 1) * PANEL + c) + 1] = 0;
    clear((rows / 2 - pairs) * 2 * PANEL, to + pairs * 2 * PANEL);
}

void tdm_bf16_pack_panel(const tdm_bf16_source *from, int64_t rows, tdm_bf16 *to)
{
    choose()->panel(from, to);
    clear_around(from->rows, from->columns, rows, to);
}

void tdm_bf16_pack_panel_turned(const tdm_bf16_source *from, int64_t rows, tdm_bf16 *to)
{
    choose()->panel_turned(from, to);
    clear_around(from->columns, from->rows, rows, to);
}
