#include "tests/op/reference_ops.h"

#include <math.h>

/* ---- embeddings ------------------------------------------------------------------------------ */

typedef struct bag_range {
    int64_t begin, end;
} bag_range;

static bag_range row_values(const op_world *world, const tdm_embedding_field *field,
                            const int32_t *offsets, int64_t row)
{
    if (field->offsets < 0)
        return (bag_range){row, row + 1};
    const int32_t *own = (const int32_t *)op_host(world, offsets) + field->offsets;
    return (bag_range){own[row], own[row + 1]};
}

/* What the value's vector is multiplied by: its weight, over the bag's weight for a mean. */
static double value_factor(const op_world *world, const tdm_embedding_field *field,
                           const float *weights, bag_range range, int64_t value)
{
    double total = 0.0, own = 0.0;
    for (int64_t v = range.begin; v < range.end; v++) {
        double weight = weights == NULL ? 1.0 : *op_value(world, weights + field->values + v);
        total += weight;
        if (v == value)
            own = weight;
    }
    return field->mean ? own / total : own;
}

void reference_embedding_fwd(op_world *world, const tdm_embedding_fwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->out.rows);
    const uint32_t *ids = op_host(world, args->ids);
    for (int f = 0; f < args->field_count; f++) {
        const tdm_embedding_field *field = &args->fields[f];
        for (int64_t r = 0; r < rows; r++) {
            bag_range range = row_values(world, field, args->offsets, r);
            for (int64_t d = 0; d < field->dim; d++) {
                double *out = op_at(world, &args->out, r, field->column + d);
                double *magnitude = &world->magnitudes[out - world->values];
                if (f == 0 || !args->sum_fields)
                    *out = *magnitude = 0.0;
                for (int64_t v = range.begin; v < range.end; v++) {
                    double factor = value_factor(world, field, args->value_weights, range, v);
                    int64_t row = ids[field->values + v];
                    double e = *op_value(world, args->tables + field->table + row * field->dim + d);
                    *out += factor * e;
                    *magnitude += fabs(factor * e);
                }
            }
        }
    }
}

void reference_embedding_bwd(op_world *world, const tdm_embedding_bwd_args *args)
{
    for (int f = 0; f < args->field_count; f++) {
        const tdm_embedding_field *field = &args->fields[f];
        int32_t count = ((const int32_t *)op_host(world, args->distinct.counts))[field->index];
        const int32_t *starts =
            (const int32_t *)op_host(world, args->distinct.starts) + field->values + field->index;
        const int32_t *positions =
            (const int32_t *)op_host(world, args->distinct.positions) + field->values;
        for (int64_t u = 0; u < count; u++) {
            for (int64_t d = 0; d < field->dim; d++) {
                const float *gradient = args->gradients + field->gradients + u * field->dim + d;
                double sum = 0.0, magnitude = 0.0;
                for (int32_t i = starts[u]; i < starts[u + 1]; i++) {
                    int64_t row = 0;
                    while (row_values(world, field, args->offsets, row).end <= positions[i])
                        row++;
                    double term =
                        value_factor(world, field, args->value_weights,
                                     row_values(world, field, args->offsets, row), positions[i]) *
                        *op_at(world, &args->dout, row, field->column + d);
                    sum += term;
                    magnitude += fabs(term);
                }
                *op_value(world, gradient) = sum;
                *op_magnitude(world, gradient) = magnitude;
            }
        }
    }
}

/* ---- interactions ---------------------------------------------------------------------------- */

void reference_fm_fwd(op_world *world, const tdm_fm_fwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->embeddings.rows), dim = args->sums.columns;
    for (int64_t r = 0; r < rows; r++) {
        double total = 0.0, magnitude = 0.0;
        for (int64_t d = 0; d < dim; d++) {
            double sum = 0.0, absolute = 0.0, squares = 0.0;
            for (int64_t f = 0; f < args->fields; f++) {
                double e = *op_at(world, &args->embeddings, r, f * dim + d);
                sum += e;
                absolute += fabs(e);
                squares += e * e;
            }
            double *out = op_at(world, &args->sums, r, d);
            *out = sum;
            world->magnitudes[out - world->values] = absolute;
            total += sum * sum - squares;
            magnitude += sum * sum + squares;
        }
        double *out = op_at(world, &args->out, r, 0);
        *out = 0.5 * total;
        world->magnitudes[out - world->values] = 0.5 * magnitude;
    }
}

void reference_fm_bwd(op_world *world, const tdm_fm_bwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->embeddings.rows), dim = args->sums.columns;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < args->fields * dim; c++) {
            double sum = *op_at(world, &args->sums, r, c % dim);
            double e = *op_at(world, &args->embeddings, r, c);
            double gradient = *op_at(world, &args->dout, r, 0) * (sum - e);
            double *out = op_at(world, &args->d_embeddings, r, c);
            *out = args->accumulate ? *out + gradient : gradient;
        }
    }
}

void reference_cross_fwd(op_world *world, const tdm_cross_fwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x0.rows);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < args->x0.columns; c++)
            *op_at(world, &args->y, r, c) =
                *op_at(world, &args->x0, r, c) * *op_at(world, &args->u, r, c) +
                *op_at(world, &args->x, r, c);
    }
}

void reference_cross_bwd(op_world *world, const tdm_cross_bwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x0.rows);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < args->x0.columns; c++) {
            double dy = *op_at(world, &args->dy, r, c);
            *op_at(world, &args->du, r, c) = dy * *op_at(world, &args->x0, r, c);
            double *dx0 = op_at(world, &args->dx0, r, c);
            *dx0 = (args->accumulate_dx0 ? *dx0 : 0.0) + dy * *op_at(world, &args->u, r, c);
            if (args->dx.data == NULL)
                continue;
            double *dx = op_at(world, &args->dx, r, c);
            *dx = (args->accumulate_dx ? *dx : 0.0) + dy;
        }
    }
}
