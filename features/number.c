#include "features/number.h"

#include <math.h>

double tdm_transform_apply(tdm_transform transform, double x, double min, double max)
{
    switch (transform) {
    case TDM_TRANSFORM_NONE:
    case TDM_TRANSFORM_IDENTITY:
        return x;
    case TDM_TRANSFORM_LOG1P:
        return x < 0 ? 0 : log1p(x);
    case TDM_TRANSFORM_SIGNED_LOG:
        return copysign(log1p(fabs(x)), x);
    case TDM_TRANSFORM_LN_SQUARED:
        return x > 2 ? log(x) * log(x) : x;
    case TDM_TRANSFORM_CLIP:
        return x < min ? min : x > max ? max : x;
    }
    return x;
}

int64_t tdm_transform_bin(tdm_transform transform, double x, double min, double max)
{
    double value = tdm_transform_apply(transform, x, min, max);
    value = transform == TDM_TRANSFORM_LN_SQUARED ? trunc(value) : floor(value);
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value < -0x1p63)
        return INT64_MIN;
    return (int64_t)value;
}

void tdm_ln_squared_bins_init(tdm_ln_squared_bins *bins)
{
    int32_t count = (int32_t)(sizeof bins->limits / sizeof bins->limits[0]);
    for (int32_t bin = 0; bin < count; bin++) {
        /* The definition decides; the inverse only says where to look. */
        double guess = exp(sqrt((double)bin));
        int32_t x = guess >= 0x1p30 ? 1 << 30 : (int32_t)guess - 2;
        x = x < 2 ? 2 : x;
        while (x < 1 << 30 && tdm_transform_bin(TDM_TRANSFORM_LN_SQUARED, x + 1, 0, 0) < bin)
            x++;
        bins->limits[bin] = x + 1;
    }
    for (int32_t range = 0; range < 27 * 32; range++) {
        double start = ldexp(1 + (range & 31) / 32.0, 1 + (range >> 5));
        int32_t x = (int32_t)ceil(start) < 3 ? 3 : (int32_t)ceil(start);
        bins->first[range] = (uint16_t)tdm_transform_bin(TDM_TRANSFORM_LN_SQUARED, x, 0, 0);
    }
}
