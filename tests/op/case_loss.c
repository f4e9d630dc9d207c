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

static tdm_matrix loss_matrix(op_world *world, const char *name, loss_shape s, int64_t columns,
                              int64_t gap, op_fill fill)
{
    return op_matrix(world, name, s.batch, columns, s.valid, gap, fill);
}

static void set_weightless(op_world *world, int loss)
{
    ((tdm_step_scalars *)op_host(world, world->scalars))->losses[loss].weight_sum = 0.0;
}

/* Case n % 4: all outputs, no probabilities, no gradient, a batch without weight. */
bool case_bce(op_world *world, int n, tdm_bce_args *args)
{
    if (n / 8 >= COUNT(loss_shapes))
        return false;
    loss_shape s = loss_shapes[n / 8];
    int64_t valid = s.valid < 0 ? s.batch : s.valid, columns = n / 4 % 2 == 0 ? 1 : 5;
    args->logits = loss_matrix(world, "logits", s, columns, n % 3, OP_RANDOM);
    float *logits = op_host(world, args->logits.data);
    float *labels = loss_matrix(world, "labels", s, columns, 0, OP_RANDOM).data;
    for (int64_t i = 0; i < valid * columns; i++) {
        logits[i / columns * args->logits.stride + i % columns] *= i % 7 == 0 ? 60.0f : 5.0f;
        ((float *)op_host(world, labels))[i] = op_draw(world, 3) == 0 ? 1.0f : 0.0f;
    }
    args->labels = labels;
    args->weights = loss_matrix(world, "weights", s, 1, 0, OP_POSITIVE).data;
    if (n % 4 != 1)
        args->probabilities = loss_matrix(world, "probabilities", s, columns, n % 2, OP_NAN);
    if (n % 4 != 2)
        args->dlogits =
            n % 5 == 0 ? args->logits : loss_matrix(world, "dlogits", s, columns, n % 3, OP_NAN);
    args->loss = n % 2;
    if (n % 4 == 3)
        set_weightless(world, args->loss);
    args->scalars = world->scalars;
    args->rows = op_rows(world, s.valid);
    return true;
}

static const int64_t class_counts[] = {1, 2, 5, 67, 1000};

/* Labels, of which every fifth is left out; logits up to `size`. In every third row the label's
 * logit is the largest, in one of those together with another. */
static uint32_t *make_labels(op_world *world, const tdm_matrix *logits, int64_t valid, float size)
{
    uint32_t *labels = op_bytes(world, (size_t)logits->rows * sizeof *labels);
    for (int64_t r = 0; r < logits->rows; r++) {
        uint32_t *label = (uint32_t *)op_host(world, labels) + r;
        float *row = (float *)op_host(world, logits->data) + r * logits->stride;
        *label = UINT32_MAX - 1;
        if (valid >= 0 && r >= valid)
            continue;
        *label = (uint32_t)op_draw(world, logits->columns);
        for (int64_t c = 0; c < logits->columns; c++)
            row[c] *= size;
        if (r % 3 == 0)
            row[*label] = size;
        if (r % 6 == 0)
            row[(*label + 1) % logits->columns] = size;
        if (r % 5 == 4)
            *label = TDM_NO_LABEL;
    }
    return labels;
}

/* Case n % 6: a gradient of its own, no gradient, no weights, the gradient over the logits, a batch
 * without weight, large logits. */
bool case_softmax_loss(op_world *world, int n, tdm_softmax_loss_args *args)
{
    int shape = n / 6 / COUNT(class_counts);
    if (shape >= COUNT(loss_shapes))
        return false;
    loss_shape s = loss_shapes[shape];
    int64_t classes = class_counts[n / 6 % COUNT(class_counts)];
    if (s.batch * classes > 60000)
        s = (loss_shape){60, 59};
    args->logits = loss_matrix(world, "logits", s, classes, n % 4, OP_RANDOM);
    args->labels = make_labels(world, &args->logits, s.valid, n % 6 == 5 ? 90.0f : 4.0f);
    if (n % 6 != 2)
        args->weights = loss_matrix(world, "weights", s, 1, 0, OP_POSITIVE).data;
    if (n % 6 == 3)
        args->dlogits = args->logits;
    else if (n % 6 != 1)
        args->dlogits = loss_matrix(world, "dlogits", s, classes, n % 3, OP_NAN);
    args->loss = n / 2 % 2;
    if (n % 6 == 4)
        set_weightless(world, args->loss);
    args->scalars = world->scalars;
    args->rows = op_rows(world, s.valid);
    return true;
}

bool case_squared_loss(op_world *world, int n, tdm_squared_loss_args *args)
{
    if (n / 4 >= COUNT(loss_shapes))
        return false;
    loss_shape s = loss_shapes[n / 4];
    args->logits = loss_matrix(world, "logits", s, 1, n % 3, OP_RANDOM);
    args->labels = loss_matrix(world, "labels", s, 1, 0, OP_RANDOM).data;
    args->weights = loss_matrix(world, "weights", s, 1, 0, OP_POSITIVE).data;
    if (n % 4 == 1)
        args->dlogits = args->logits;
    else if (n % 4 != 2)
        args->dlogits = loss_matrix(world, "dlogits", s, 1, n % 3, OP_NAN);
    args->loss = n % 2;
    if (n % 4 == 3)
        set_weightless(world, args->loss);
    args->scalars = world->scalars;
    args->rows = op_rows(world, s.valid);
    return true;
}
