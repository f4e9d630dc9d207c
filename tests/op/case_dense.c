#include "tests/op/op_cases.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- elements -------------------------------------------------------------------------------- */

typedef struct element_shape {
    int64_t rows, columns, valid, gap;
} element_shape;

static const element_shape element_shapes[] = {
    {1, 1, -1, 0},    {1, 17, -1, 3},    {3, 31, 2, 0},     {5, 64, -1, 0}, {67, 101, 50, 7},
    {400, 1, 397, 2}, {300, 130, -1, 0}, {129, 67, 129, 1}, {4, 8, 0, 0},   {2, 20000, 1, 0},
};

bool case_add(op_world *world, int n, tdm_add_args *args)
{
    if (n / 2 >= COUNT(element_shapes))
        return false;
    element_shape s = element_shapes[n / 2];
    args->accumulate = n % 2 == 1;
    args->x = op_matrix(world, "x", s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    args->y = op_matrix(world, "y", s.rows, s.columns, s.valid, 2 * s.gap,
                        args->accumulate ? OP_TOTAL : OP_NAN);
    args->rows = op_rows(world, s.valid);
    return true;
}

bool case_column_sum(op_world *world, int n, tdm_column_sum_args *args)
{
    if (n >= COUNT(element_shapes))
        return false;
    element_shape s = element_shapes[n];
    args->x = op_matrix(world, "x", s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    args->sums = op_floats(world, "sums", s.columns, OP_RANDOM);
    args->rows = op_rows(world, s.valid);
    return true;
}

/* Every other case writes dx over dy, every third has no bias gradient, every fourth comes from a
 * dropout. */
bool case_relu_bwd(op_world *world, int n, tdm_relu_bwd_args *args)
{
    if (n >= 12 * COUNT(element_shapes))
        return false;
    element_shape s = element_shapes[n / 12];
    args->scale = n % 4 == 3 ? 1.25f : 1.0f;
    args->y = op_matrix(world, "y", s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    args->dy = op_matrix(world, "dy", s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    args->dx =
        n % 2 == 0 ? args->dy : op_matrix(world, "dx", s.rows, s.columns, s.valid, s.gap, OP_NAN);
    args->bias_gradient =
        n % 3 == 0 ? NULL : op_floats(world, "bias_gradient", s.columns, OP_RANDOM);
    args->rows = op_rows(world, s.valid);
    return true;
}

/* What a case of dropout draws from, but for its rate. Case n % 3: each row is a sample; rows share
 * samples, and are at positions of them; they share samples at their beginning. */
tdm_dropout_draws op_draws(op_world *world, int n, int64_t rows, int64_t valid)
{
    tdm_dropout_draws draws = {.key =
                                   tdm_philox_make_key(0x123456789abcdefu, TDM_PURPOSE_DROPOUT, 5),
                               .scalars = world->scalars};
    uint64_t *samples = op_bytes(world, (size_t)rows * sizeof *samples);
    uint32_t *sample_rows = op_bytes(world, (size_t)rows * sizeof *sample_rows);
    uint32_t *positions = op_bytes(world, (size_t)rows * sizeof *positions);
    for (int64_t r = 0; r < rows; r++) {
        bool used = valid < 0 || r < valid;
        ((uint64_t *)op_host(world, samples))[r] = 0xabcdef0123456789u * (uint64_t)(r + 1);
        ((uint32_t *)op_host(world, sample_rows))[r] = used ? (uint32_t)(r / 5) : UINT32_MAX;
        ((uint32_t *)op_host(world, positions))[r] = (uint32_t)(r % 5 * (r % 7 == 0 ? 900000 : 3));
    }
    uint32_t *occurrences = op_bytes(world, (size_t)rows * sizeof *occurrences);
    for (int64_t r = 0; r < rows; r++)
        ((uint32_t *)op_host(world, occurrences))[r] = (uint32_t)(r % 3);
    draws.samples = samples;
    draws.occurrences = n % 2 == 0 ? NULL : occurrences;
    draws.sample_rows = n % 3 == 0 ? NULL : sample_rows;
    draws.positions = n % 3 == 1 ? positions : NULL;
    return draws;
}

/* Without a rate there is nothing to draw from. */
bool case_dropout(op_world *world, int n, tdm_dropout_args *args)
{
    static const float rates[] = {0.0f, 0.2f, 0.5f, 0.999f};
    if (n >= 6 * COUNT(element_shapes))
        return false;
    element_shape s = element_shapes[n / 6];
    args->x = op_matrix(world, "x", s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    args->y =
        n % 2 == 0 ? args->x : op_matrix(world, "y", s.rows, s.columns, s.valid, s.gap, OP_NAN);
    if (rates[n % 4] > 0.0f)
        args->draws = op_draws(world, n / 2, s.rows, s.valid);
    args->draws.rate = rates[n % 4];
    args->rows = op_rows(world, s.valid);
    return true;
}
