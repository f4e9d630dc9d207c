/* Short numbers in text, and the transforms of numeric features. */
#ifndef TDM_FEATURES_NUMBER_H
#define TDM_FEATURES_NUMBER_H

#include "core/number.h"

#include <stdint.h>
#include <string.h>

/* Parses an integer of one to eight characters, '-' included, without a branch on its length. The
 * eight bytes before the end of the text must be readable. False for anything else. */
static inline bool tdm_parse_short_integer(const char *text, uint32_t bytes, int32_t *out)
{
    if (bytes - 1 > 7)
        return false;
    uint32_t negative = text[0] == '-';
    uint32_t digits = bytes - negative;
    uint64_t word;
    memcpy(&word, text + bytes - 8, sizeof word);
    /* The digits are the last bytes in memory, the high bytes of the word: zeros go before them. */
    uint64_t keep = digits == 0 ? 0 : ~(uint64_t)0 << (64 - 8 * digits);
    word = (word & keep) | (0x3030303030303030u & ~keep);
    bool all_digits =
        ((word & 0xf0f0f0f0f0f0f0f0u) |
         (((word + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) >> 4)) == 0x3333333333333333u;
    word = (word & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
    word = (word & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    int32_t value = (int32_t)((word & 0x0000ffff0000ffffu) * 42949672960001u >> 32);
    *out = negative ? -value : value;
    return all_digits && digits != 0;
}

/* Every transform is total: a finite number gives a finite number. */
typedef enum tdm_transform {
    TDM_TRANSFORM_NONE = 0,       /* the value as it stands */
    TDM_TRANSFORM_IDENTITY = 1,   /* x */
    TDM_TRANSFORM_LOG1P = 2,      /* ln(1 + x), 0 for x < 0 */
    TDM_TRANSFORM_SIGNED_LOG = 3, /* sign(x) · ln(1 + |x|) */
    TDM_TRANSFORM_LN_SQUARED = 4, /* ln(x)² for x > 2, else x (Criteo's bins, with floor) */
    TDM_TRANSFORM_CLIP = 5,       /* x held between min and max */
} tdm_transform;

double tdm_transform_apply(tdm_transform transform, double x, double min, double max);

/* The bin of a number: the transform, rounded down to an integer (towards zero for what ln_squared
 * leaves as it is), held within the range of int64_t. */
int64_t tdm_transform_bin(tdm_transform transform, double x, double min, double max);

/* The ln_squared bin of an integer of at most eight digits, by tables. */
typedef struct tdm_ln_squared_bins {
    uint16_t
        first[27 * 32]; /* by exponent and five bits of mantissa: the bin where that range begins */
    int32_t limits[400]; /* the first integer of each bin */
} tdm_ln_squared_bins;

void tdm_ln_squared_bins_init(tdm_ln_squared_bins *bins);

static inline int32_t tdm_ln_squared_bin(const tdm_ln_squared_bins *bins, int32_t x)
{
    if (x <= 2)
        return x;
    double wide = x;
    uint64_t bits;
    memcpy(&bits, &wide, sizeof bits);
    /* 3 has the exponent 1: ranges are counted from 2. */
    int32_t bin = bins->first[(bits >> 47) - ((uint64_t)1024 << 5)];
    bin += x >= bins->limits[bin + 1];
    bin += x >= bins->limits[bin + 1];
    return bin;
}

#endif
