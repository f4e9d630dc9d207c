#include "cpu/bf16.h"

#include <dnnl.h>

#define PANEL TDM_BF16_PANEL

static inline int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- anywhere -------------------------------------------------------------------------------- */

static void pack_rows(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to)
{
    for (int64_t r = 0; r < from->rows; r++, to += depth) {
        const float *row = from->data + r * from->stride;
        for (int64_t c = 0; c < from->columns; c++)
            to[c] = tdm_bf16_from_float(row[c]);
    }
}

static void pack_rows_turned(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to)
{
    for (int64_t d = 0; d < from->rows; d++) {
        const float *across = from->data + d * from->stride;
        for (int64_t r = 0; r < from->columns; r++)
            to[r * depth + d] = tdm_bf16_from_float(across[r]);
    }
}

/* Where the number of a row and a column lies in panels. */
static inline int64_t panel_place(int64_t row, int64_t column, int64_t depth)
{
    return column / PANEL * PANEL * depth + row / 2 * 2 * PANEL + column % PANEL * 2 + row % 2;
}

static void pack_panels(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to)
{
    for (int64_t r = 0; r < from->rows; r++) {
        const float *row = from->data + r * from->stride;
        for (int64_t c = 0; c < from->columns; c++)
            to[panel_place(r, c, depth)] = tdm_bf16_from_float(row[c]);
    }
}

static void pack_panels_turned(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to)
{
    for (int64_t c = 0; c < from->rows; c++) {
        const float *column = from->data + c * from->stride;
        for (int64_t r = 0; r < from->columns; r++)
            to[panel_place(r, c, depth)] = tdm_bf16_from_float(column[r]);
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

TARGET static void pack_rows_avx512(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to)
{
    for (int64_t r = 0; r < from->rows; r++, to += depth) {
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

/* Sixteen columns of rows `row` and `row` + 1, the numbers of a column side by side. What is not in
 * the source is zero. */
TARGET static inline __m512i load_pairs(const tdm_bf16_source *from, int64_t row, int64_t column)
{
    /* 0, 16, 1, 17, …: a number of the lower half, then one of the upper half */
    const __m512i lower = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i order = _mm512_or_si512(
        lower, _mm512_slli_epi32(_mm512_add_epi32(lower, _mm512_set1_epi32(16)), 16));
    int64_t count = from->columns - column;
    const float *first = from->data + row * from->stride + column;
    __m512 low = load_some(first, row < from->rows ? count : 0);
    __m512 high = load_some(first + from->stride, row + 1 < from->rows ? count : 0);
    return _mm512_permutexvar_epi16(order, round_both(low, high));
}

TARGET static void pack_panels_avx512(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to)
{
    for (int64_t r = 0; r < from->rows; r += 2) {
        for (int64_t c = 0; c < from->columns; c += 16)
            _mm512_storeu_si512(to + panel_place(r, c, depth), load_pairs(from, r, c));
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

#define TURNED_ROWS 128

/* Two numbers side by side are one word here, so that 16 by 32 numbers turn as 16 by 16 words. What
 * turns at a time is as wide as rows are read well. */
TARGET static void turn_rows(const tdm_bf16_source *from, int64_t row, int64_t at, int64_t depth,
                             tdm_bf16 *to)
{
    __m512i words[TURNED_ROWS / 16][16];
    int64_t rows = min(from->columns - row, TURNED_ROWS);
    for (int64_t i = 0; i < 16; i++) {
        for (int64_t r = 0; r < rows; r += 16)
            words[r / 16][i] = load_pairs(from, at + 2 * i, row + r);
    }
    for (int64_t r = 0; r < rows; r += 16) {
        transpose16(words[r / 16]);
        for (int64_t i = 0; i < min(rows - r, 16); i++)
            _mm512_storeu_si512(to + (row + r + i) * depth + at, words[r / 16][i]);
    }
}

TARGET static void pack_rows_turned_avx512(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to)
{
    for (int64_t row = 0; row < from->columns; row += TURNED_ROWS) {
        for (int64_t at = 0; at < from->rows; at += 32)
            turn_rows(from, row, at, depth, to);
    }
}

TARGET static void pack_panels_turned_avx512(const tdm_bf16_source *from, int64_t depth,
                                             tdm_bf16 *to)
{
    for (int64_t c = 0; c < from->rows; c += 16) {
        for (int64_t d = 0; d < from->columns; d += 32) {
            int64_t count = from->columns - d;
            __m512i words[16];
            for (int64_t i = 0; i < 16; i++) {
                const float *run = from->data + (c + i) * from->stride + d;
                int64_t some = c + i < from->rows ? count : 0;
                words[i] = round_both(load_some(run, some), load_some(run + 16, some - 16));
            }
            transpose16(words);
            for (int64_t i = 0; i < 16 && 2 * i < count; i++)
                _mm512_storeu_si512(to + panel_place(d + 2 * i, c, depth), words[i]);
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
    void (*rows)(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to);
    void (*rows_turned)(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to);
    void (*panels)(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to);
    void (*panels_turned)(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to);
} bf16_loops;

static const bf16_loops loops[] = {
    {pack_rows, pack_rows_turned, pack_panels, pack_panels_turned},
#if defined(__x86_64__)
    {pack_rows_avx512, pack_rows_turned_avx512, pack_panels_avx512, pack_panels_turned_avx512},
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

/* What [rows, depth] has and a source of used_rows and used_depth lacks. */
static void clear_rows(int64_t used_rows, int64_t used_depth, int64_t rows, int64_t depth,
                       tdm_bf16 *to)
{
    for (int64_t r = 0; r < used_rows && used_depth < depth; r++)
        clear(depth - used_depth, to + r * depth + used_depth);
    clear((rows - used_rows) * depth, to + used_rows * depth);
}

/* The same of panels. */
static void clear_panels(int64_t used_depth, int64_t used_columns, int64_t depth, tdm_bf16 *to)
{
    int64_t pairs = (used_depth + 1) / 2;
    for (int64_t first = 0; first < used_columns; first += PANEL, to += PANEL * depth) {
        int64_t columns = min(used_columns - first, PANEL);
        for (int64_t p = 0; p < pairs && columns < PANEL; p++)
            clear(2 * (PANEL - columns), to + 2 * (p * PANEL + columns));
        for (int64_t c = 0; c < columns && used_depth % 2 == 1; c++)
            to[2 * ((pairs - 1) * PANEL + c) + 1] = 0;
        clear((depth / 2 - pairs) * 2 * PANEL, to + pairs * 2 * PANEL);
    }
}

void tdm_bf16_pack_rows(const tdm_bf16_source *from, int64_t rows, int64_t depth, tdm_bf16 *to)
{
    choose()->rows(from, depth, to);
    clear_rows(from->rows, from->columns, rows, depth, to);
}

void tdm_bf16_pack_rows_turned(const tdm_bf16_source *from, int64_t rows, int64_t depth,
                               tdm_bf16 *to)
{
    choose()->rows_turned(from, depth, to);
    clear_rows(from->columns, from->rows, rows, depth, to);
}

void tdm_bf16_pack_panels(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to)
{
    choose()->panels(from, depth, to);
    clear_panels(from->rows, from->columns, depth, to);
}

void tdm_bf16_pack_panels_turned(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to)
{
    choose()->panels_turned(from, depth, to);
    clear_panels(from->columns, from->rows, depth, to);
}
