#include "tests/op/reference_ops.h"

#include <math.h>

double reference_bf16(double x)
{
    int exponent;
    if (fabs(x) < 0x1p-126)
        return 0.0;
    frexp(x, &exponent);
    return ldexp(rint(ldexp(x, 8 - exponent)), exponent - 8);
}

static double operand(const op_world *world, const tdm_matrix *matrix, int64_t row, int64_t column,
                      tdm_dtype compute)
{
    double x = *op_at(world, matrix, row, column);
    return compute == TDM_BF16 ? reference_bf16(x) : x;
}

void reference_gemm(op_world *world, const tdm_gemm_args *args)
{
    int64_t m = args->c.rows, n = args->c.columns;
    int64_t k = args->trans_a ? args->a.rows : args->a.columns;
    if (args->trans_a)
        k = op_valid(world, args->rows, k);
    else
        m = op_valid(world, args->rows, m);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double *c = op_at(world, &args->c, i, j);
            double sum = args->accumulate ? *c : 0.0, magnitude = fabs(sum);
            for (int64_t l = 0; l < k; l++) {
                double a = operand(world, &args->a, args->trans_a ? l : i, args->trans_a ? i : l,
                                   args->compute);
                double b = operand(world, &args->b, args->trans_b ? j : l, args->trans_b ? l : j,
                                   args->compute);
                sum += a * b;
                magnitude += fabs(a * b);
            }
            if (args->bias != NULL) {
                sum += *op_value(world, args->bias + j);
                magnitude += fabs(*op_value(world, args->bias + j));
            }
            *c = reference_activation(args->activation, sum);
            world->magnitudes[c - world->values] = magnitude;
            if (args->preactivation.data == NULL)
                continue;
            double *before = op_at(world, &args->preactivation, i, j);
            *before = sum;
            world->magnitudes[before - world->values] = magnitude;
        }
    }
}
