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

void reference_bce(op_world *world, const tdm_bce_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->logits.rows);
    tdm_loss_scalars *loss = &world->expected.losses[args->loss];
    double scale = loss_gradient(world, args->loss);
    for (int64_t r = 0; r < rows; r++) {
        double z = *op_at(world, &args->logits, r, 0), label = *op_value(world, args->labels + r);
        double weight = *op_value(world, args->weights + r);
        loss->loss_sum += weight * (fmax(z, 0.0) - z * label + log1p(exp(-fabs(z))));
        double probability = 1.0 / (1.0 + exp(-z));
        if (args->probabilities != NULL)
            *op_value(world, args->probabilities + r) = probability;
        if (args->dlogits.data == NULL)
            continue;
        double *dlogit = op_at(world, &args->dlogits, r, 0);
        *dlogit = scale * weight * (probability - label);
        world->magnitudes[dlogit - world->values] = scale * weight * (probability + label);
    }
}
