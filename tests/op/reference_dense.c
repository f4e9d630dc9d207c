#include "tests/op/reference_ops.h"

#include <math.h>

void reference_add(op_world *world, const tdm_add_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x.rows);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < args->x.columns; c++) {
            double x = *op_at(world, &args->x, r, c), *y = op_at(world, &args->y, r, c);
            *y = args->accumulate ? *y + x : x;
        }
    }
}

void reference_column_sum(op_world *world, const tdm_column_sum_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x.rows);
    for (int64_t c = 0; c < args->x.columns; c++) {
        double *sum = op_value(world, args->sums + c);
        double *magnitude = op_magnitude(world, args->sums + c);
        *magnitude = fabs(*sum);
        for (int64_t r = 0; r < rows; r++) {
            *sum += *op_at(world, &args->x, r, c);
            *magnitude += fabs(*op_at(world, &args->x, r, c));
        }
    }
}

void reference_relu_bwd(op_world *world, const tdm_relu_bwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->y.rows);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < args->y.columns; c++) {
            double dy = *op_at(world, &args->dy, r, c) * (double)args->scale;
            double dx = *op_at(world, &args->y, r, c) > 0.0 ? dy : 0.0;
            *op_at(world, &args->dx, r, c) = dx;
            if (args->bias_gradient == NULL)
                continue;
            *op_value(world, args->bias_gradient + c) += dx;
            *op_magnitude(world, args->bias_gradient + c) += fabs(dx);
        }
    }
}

double reference_kept(const op_world *world, const tdm_dropout_draws *draws, int64_t sample,
                      uint32_t element)
{
    const uint64_t *samples = op_host(world, draws->samples);
    uint32_t epoch = (uint32_t)world->expected.epoch;
    if (draws->occurrences != NULL)
        epoch |= ((const uint32_t *)op_host(world, draws->occurrences))[sample] << 16;
    uint32_t word = tdm_random(draws->key, samples[sample], epoch, element);
    return tdm_uniform(word) >= draws->rate ? 1.0 / (1.0 - (double)draws->rate) : 0.0;
}

double reference_keep(const op_world *world, const tdm_dropout_draws *draws, int64_t row,
                      int64_t columns, int64_t column)
{
    if (draws->rate == 0.0f)
        return 1.0;
    int64_t sample = row, position = 0;
    if (draws->sample_rows != NULL)
        sample = ((const uint32_t *)op_host(world, draws->sample_rows))[row];
    if (draws->positions != NULL)
        position = ((const uint32_t *)op_host(world, draws->positions))[row];
    return reference_kept(world, draws, sample, (uint32_t)(position * columns + column));
}

void reference_dropout(op_world *world, const tdm_dropout_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x.rows), columns = args->x.columns;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++)
            *op_at(world, &args->y, r, c) =
                *op_at(world, &args->x, r, c) * reference_keep(world, &args->draws, r, columns, c);
    }
}
