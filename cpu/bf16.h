/* bfloat16, the upper half of a float: rounding, and the blocks in which products read it. */
#ifndef TDM_CPU_BF16_H
#define TDM_CPU_BF16_H

#include "core/cpu_level.h"

#include <stdint.h>
#include <string.h>

typedef uint16_t tdm_bf16;

/* To nearest, ties to even, as VCVTNEPS2BF16 rounds: subnormal numbers become zero, a NaN stays
 * one, all keep their sign. */
static inline tdm_bf16 tdm_bf16_from_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude < 0x00800000u)
        return (tdm_bf16)(bits >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u)
        return (tdm_bf16)(bits >> 16 | 0x40u);
    return (tdm_bf16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float tdm_bf16_to_float(tdm_bf16 x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* This CPU, and the oneDNN in use, multiply bfloat16 (AVX512_BF16 or AMX_BF16). */
bool tdm_cpu_has_bf16(void);

/* Floats to be packed: `rows` of `columns`, `stride` from one row to the next. */
typedef struct tdm_bf16_source {
    const float *data;
    int64_t rows, columns, stride;
} tdm_bf16_source;

/* The first operand of a product: rows without gaps, each as long as the depth that is summed over,
 * a multiple of 32. `to` is [rows, depth], at least as large as the source; what that lacks is
 * zeros. */
void tdm_bf16_pack_rows(const tdm_bf16_source *from, int64_t rows, int64_t depth, tdm_bf16 *to);
/* The same of the source transposed: its columns are the rows. */
void tdm_bf16_pack_rows_turned(const tdm_bf16_source *from, int64_t rows, int64_t depth,
                               tdm_bf16 *to);

/* The second operand, [depth, columns], is cut into panels [depth / 2][TDM_BF16_PANEL][2] of so
 * many columns, in which two numbers that follow one another in a column lie side by side. `to` has
 * as many panels as the source needs; what that lacks is zeros. */
#define TDM_BF16_PANEL 64
void tdm_bf16_pack_panels(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to);
/* The same of the source transposed: its rows are the columns. */
void tdm_bf16_pack_panels_turned(const tdm_bf16_source *from, int64_t depth, tdm_bf16 *to);

/* Level 1 is AVX512_BF16. All give the same bits. */
extern tdm_cpu_level tdm_bf16_levels;

#endif
