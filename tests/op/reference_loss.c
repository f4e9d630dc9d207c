#include "tests/op/reference_ops.h"

#include <math.h>

/* loss_scale / weight_sum, or 0. */
static double loss_gradient(const op_world *world, int loss)
{
    double weight_sum = world->expected.losses[loss].weight_sum;
    return weight_sum == 0.0 ? 0.0 : world->expected.loss_scale / weight_sum;
}

void reference_weight_sum(op_world *world, const tdm_weight_sum_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->batch);
    world->expected.losses[0].weight_sum = 0.0;
    for (int64_t r = 0; r < rows; r++)
        world->expected.losses[0].weight_sum += *op_value(world, args->weights + r);
}

static void give_gradient(op_world *world, const tdm_matrix *dlogits, int64_t r, int64_t c,
                          double gradient, double magnitude)
{
    if (dlogits->data == NULL)
        return;
    double *out = op_at(world, dlogits, r, c);
    *out = gradient;
    world->magnitudes[out - world->values] = magnitude;
}

void reference_bce(op_world *world, const tdm_bce_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->logits.rows), n = args->logits.columns;
    tdm_loss_scalars *loss = &world->expected.losses[args->loss];
    for (int64_t i = 0; i < rows * n; i++) {
        double z = *op_at(world, &args->logits, i / n, i % n);
        double label = *op_value(world, args->labels + i);
        double weight = *op_value(world, args->weights + i / n);
        double factor = weight * loss_gradient(world, args->loss);
        double probability = 1.0 / (1.0 + exp(-z));
        loss->loss_sum += weight * (fmax(z, 0.0) - z * label + log1p(exp(-fabs(z))));
        loss->correct_sum += (z > 0.0) == (label > 0.5) ? weight : 0.0;
        if (args->probabilities.data != NULL)
            *op_at(world, &args->probabilities, i / n, i % n) = probability;
        give_gradient(world, &args->dlogits, i / n, i % n, factor * (probability - label),
                      factor * (probability + label));
    }
}

/* Σ_c e^(z_c - most). */
static double softmax_sum(const op_world *world, const tdm_matrix *logits, int64_t r, double *most)
{
    double sum = 0.0;
    *most = -INFINITY;
    for (int64_t c = 0; c < logits->columns; c++)
        *most = fmax(*most, *op_at(world, logits, r, c));
    for (int64_t c = 0; c < logits->columns; c++)
        sum += exp(*op_at(world, logits, r, c) - *most);
    return sum;
}

void reference_softmax_loss(op_world *world, const tdm_softmax_loss_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->logits.rows);
    const uint32_t *labels = op_host(world, args->labels);
    tdm_loss_scalars *loss = &world->expected.losses[args->loss];
    for (int64_t r = 0; r < rows; r++) {
        double weight = args->weights == NULL ? 1.0 : *op_value(world, args->weights + r);
        double most, sum = softmax_sum(world, &args->logits, r, &most);
        if (labels[r] == TDM_NO_LABEL) {
            weight = 0.0;
        } else {
            double own = *op_at(world, &args->logits, r, labels[r]);
            loss->loss_sum += weight * (log(sum) + most - own);
            loss->correct_sum += own >= most ? weight : 0.0;
        }
        double factor = weight * loss_gradient(world, args->loss);
        for (int64_t c = 0; c < args->logits.columns; c++) {
            double share = exp(*op_at(world, &args->logits, r, c) - most) / sum;
            double hit = c == labels[r] ? 1.0 : 0.0;
            give_gradient(world, &args->dlogits, r, c, factor * (share - hit),
                          factor * (share + hit));
        }
    }
}

void reference_squared_loss(op_world *world, const tdm_squared_loss_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->logits.rows);
    for (int64_t r = 0; r < rows; r++) {
        double z = *op_at(world, &args->logits, r, 0), label = *op_value(world, args->labels + r);
        double weight = *op_value(world, args->weights + r);
        double factor = 2.0 * weight * loss_gradient(world, args->loss);
        world->expected.losses[args->loss].loss_sum += weight * (z - label) * (z - label);
        give_gradient(world, &args->dlogits, r, 0, factor * (z - label),
                      factor * (fabs(z) + fabs(label)));
    }
}
