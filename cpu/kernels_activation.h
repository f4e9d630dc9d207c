/* Exponential, GELU and tanh of vectors, for the sources of the kernels. A NaN stays one. The
 * bounds were found by trying numbers from all of float. */
#ifndef TDM_CPU_KERNELS_ACTIVATION_H
#define TDM_CPU_KERNELS_ACTIVATION_H

#include "cpu/kernels_vector.h"

/* The smaller and the larger of a and b; b where one is a NaN. */
static ALWAYS_INLINE vector min_vector(vector a, vector b)
{
#if defined(__SSE2__)
    return (vector)MM(min_ps)(a, b);
#else
    return where(a < b, a) + where(~(a < b), b);
#endif
}

static ALWAYS_INLINE vector max_vector(vector a, vector b)
{
#if defined(__SSE2__)
    return (vector)MM(max_ps)(a, b);
#else
    return where(a > b, a) + where(~(a > b), b);
#endif
}

static ALWAYS_INLINE vector absolute(vector x)
{
    return (vector)((mask)x & INT32_MAX);
}

/* Σ_i coefficients[i] · x^(count - 1 - i). */
static ALWAYS_INLINE vector polynomial(vector x, int count, const float *coefficients)
{
    vector sum = constant(coefficients[0]);
    for (int i = 1; i < count; i++)
        sum = multiply_add_vector(sum, x, constant(coefficients[i]));
    return sum;
}

#define POLYNOMIAL(x, ...)                                                                         \
    polynomial(x, (int)(sizeof((const float[]){__VA_ARGS__}) / sizeof(float)),                     \
               (const float[]){__VA_ARGS__})

/* e^x to 1.2 ulp; 0 below -87.7, infinite above 88.4. x = n ln 2 + r, |r| <= ½ ln 2, n in the last
 * bits of a sum whose unit is 1; ln 2 in two parts (Cody and Waite, 1980), e^r a minimax
 * polynomial. */
static ALWAYS_INLINE vector exp_vector(vector x)
{
    const float shift = 0x1.8p23f + 127.0f;
    x = min_vector(constant(89.0f), max_vector(constant(-88.0f), x));
    vector biased = multiply_add_vector(x, constant(1.44269504f), constant(shift));
    vector n = biased - shift;
    vector r = multiply_add_vector(n, constant(-0.693359375f), x);
    r = multiply_add_vector(n, constant(2.12194440e-4f), r);
    vector power = (vector)((mask)biased << 23); /* 2^n; 0 for -127, infinite for 128 */
    return power * POLYNOMIAL(r, 1.38144742e-3f, 8.36878252e-3f, 4.16683943e-2f, 0.166665201f,
                              0.499999934f, 1.0f, 1.0f);
}

/* Φ(-a) = e^(-a²/2) · tail(a) for a >= 0, to 2e-7 of itself up to 6.6: a minimax fraction. Beyond
 * 14 both are 0 in float, so a is taken from there on to be 14. */
typedef struct normal_tail {
    vector a, exponential, tail;
} normal_tail;

static ALWAYS_INLINE normal_tail normal_tail_vector(vector x)
{
    vector a = min_vector(constant(14.0f), absolute(x));
    vector above = POLYNOMIAL(a, 1.38752639e-2f, 0.10560933f, 0.336766653f, 0.499999965f);
    vector below = POLYNOMIAL(a, 3.47986657e-2f, 0.264209805f, 0.885275497f, 1.47141378f, 1.0f);
    return (normal_tail){a, exp_vector(a * a * -0.5f), above / below};
}

/* x Φ(x) = max(x, 0) - |x| Φ(-|x|), to 2e-7 of |x|, and for x > -8 to 3e-6 of itself. */
static ALWAYS_INLINE vector gelu_vector(vector x)
{
    normal_tail t = normal_tail_vector(x);
    return max_vector(x, constant(0.0f)) - t.a * t.exponential * t.tail;
}

/* Φ(x) + x φ(x), to 2e-7. For x < 0 it is Φ(-a) - a φ(a) = e^(-a²/2) · (tail(a) - a / √2π), and its
 * value at a is 1 less that. */
static ALWAYS_INLINE vector gelu_slope_vector(vector x)
{
    normal_tail t = normal_tail_vector(x);
    vector slope = t.exponential * multiply_add_vector(t.a, constant(-0.398942280f), t.tail);
    return slope + where(x > 0.0f, 1.0f - slope - slope);
}

/* x between -10 and 10, where e^(-2u) is all but 0 and infinite. */
static ALWAYS_INLINE vector gelu_tanh_limit(vector x)
{
    return min_vector(constant(10.0f), max_vector(constant(-10.0f), x));
}

/* e^(-2u), u = √(2/π) (x + 0.044715 x³): ½ x (1 + tanh u) = x / (1 + e^(-2u)). */
static ALWAYS_INLINE vector gelu_tanh_exponential(vector x)
{
    x = gelu_tanh_limit(x);
    return exp_vector(x *
                      multiply_add_vector(x * x, constant(-0.0713548163f), constant(-1.59576912f)));
}

/* 0 below -10. */
static ALWAYS_INLINE vector gelu_tanh_vector(vector x)
{
    return where(~(x < -10.0f), x / (1.0f + gelu_tanh_exponential(x)));
}

/* With s = 1 / (1 + e^(-2u)): s + x s (1 - s) 2u'. Outside of ±10 it is 0 and 1. */
static ALWAYS_INLINE vector gelu_tanh_slope_vector(vector x)
{
    x = gelu_tanh_limit(x);
    vector e = gelu_tanh_exponential(x), s = 1.0f / (1.0f + e);
    vector inner = multiply_add_vector(x * x, constant(0.214064449f), constant(1.59576912f));
    return multiply_add_vector(x * inner, e * s * s, s);
}

/* tanh x to 1.3 ulp: 1 - 2 / (e^(2a) + 1), and near 0, where that cancels, a polynomial (Cephes,
 * tanhf). */
static ALWAYS_INLINE vector tanh_vector(vector x)
{
    vector a = absolute(x), square = x * x;
    vector large = 1.0f - 2.0f / (exp_vector(a + a) + 1.0f);
    vector small = POLYNOMIAL(square, -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                              1.33314422036e-1f, -3.33332819422e-1f);
    small = multiply_add_vector(small * square, x, x);
    mask near = a < 0.625f;
    large = (vector)((mask)large | ((mask)x & INT32_MIN));
    return where(near, small) + where(~near, large);
}

/* f(x). */
static ALWAYS_INLINE vector activation_vector(tdm_activation activation, vector x)
{
    switch (activation) {
    case TDM_ACTIVATION_RELU:
        return max_vector(constant(0.0f), x);
    case TDM_ACTIVATION_GELU:
        return gelu_vector(x);
    case TDM_ACTIVATION_GELU_TANH:
        return gelu_tanh_vector(x);
    case TDM_ACTIVATION_TANH:
        return tanh_vector(x);
    case TDM_ACTIVATION_NONE:
    default:
        return x;
    }
}

/* f'(x) of a GELU; of tanh, x being what that gave. */
static ALWAYS_INLINE vector activation_slope_vector(tdm_activation activation, vector x)
{
    switch (activation) {
    case TDM_ACTIVATION_GELU:
        return gelu_slope_vector(x);
    case TDM_ACTIVATION_GELU_TANH:
        return gelu_tanh_slope_vector(x);
    case TDM_ACTIVATION_TANH:
        return 1.0f - x * x;
    case TDM_ACTIVATION_NONE:
    case TDM_ACTIVATION_RELU:
    default:
        return constant(1.0f);
    }
}

#endif
