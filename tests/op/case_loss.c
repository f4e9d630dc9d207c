#include "tests/op/op_cases.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

typedef struct loss_shape {
    int64_t batch, valid;
} loss_shape;

static const loss_shape loss_shapes[] = {{1, -1},   {2, 1},      {37, 37},   {256, 255},
                                         {257, -1}, {1500, 999}, {4096, -1}, {5, 0}};

bool case_weight_sum(op_world *world, int n, tdm_weight_sum_args *args)
{
    if (n >= COUNT(loss_shapes))
        return false;
    loss_shape s = loss_shapes[n];
    tdm_matrix weights = op_matrix(world, "weights", s.batch, 1, s.valid, 0, OP_POSITIVE);
    *args = (tdm_weight_sum_args){.weights = weights.data,
                                  .batch = s.batch,
                                  .rows = op_rows(world, s.valid),
                                  .scalars = world->scalars};
    return true;
}

/* Case n % 4: all outputs, no probabilities, no gradient, a batch without weight. */
bool case_bce(op_world *world, int n, tdm_bce_args *args)
{
    if (n / 4 >= COUNT(loss_shapes))
        return false;
    loss_shape s = loss_shapes[n / 4];
    int64_t valid = s.valid < 0 ? s.batch : s.valid;
    args->logits = op_matrix(world, "logits", s.batch, 1, s.valid, n % 3, OP_RANDOM);
    float *logits = op_host(world, args->logits.data);
    float *labels = op_matrix(world, "labels", s.batch, 1, s.valid, 0, OP_RANDOM).data;
    for (int64_t r = 0; r < valid; r++) {
        logits[r * args->logits.stride] *= r % 7 == 0 ? 60.0f : 5.0f;
        ((float *)op_host(world, labels))[r] = op_draw(world, 3) == 0 ? 1.0f : 0.0f;
    }
    args->labels = labels;
    args->weights = op_matrix(world, "weights", s.batch, 1, s.valid, 0, OP_POSITIVE).data;
    if (n % 4 != 1)
        args->probabilities = op_floats(world, "probabilities", s.batch, OP_NAN);
    if (n % 4 != 2)
        args->dlogits = op_matrix(world, "dlogits", s.batch, 1, s.valid, n % 3, OP_NAN);
    args->loss = n % 2;
    if (n % 4 == 3)
        ((tdm_step_scalars *)op_host(world, world->scalars))->losses[args->loss].weight_sum = 0.0;
    args->scalars = world->scalars;
    args->rows = op_rows(world, s.valid);
    return true;
}
