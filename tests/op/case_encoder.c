#include "tests/op/op_cases.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* u32 numbers below `below`; those at and behind `valid` may not be used. */
static uint32_t *draw_numbers(op_world *world, int64_t rows, int64_t valid, int64_t below)
{
    uint32_t *numbers = op_bytes(world, (size_t)rows * sizeof *numbers);
    uint32_t *host = op_host(world, numbers);
    for (int64_t r = 0; r < rows; r++)
        host[r] = valid < 0 || r < valid ? (uint32_t)op_draw(world, below) : UINT32_MAX;
    return numbers;
}

/* ---- lookups --------------------------------------------------------------------------------- */

typedef struct lookup_shape {
    int64_t rows, columns, valid, table_rows, gap;
} lookup_shape;

/* A table of few rows, so that many are added up, and one of more rows than the batch. */
static const lookup_shape lookup_shapes[] = {
    {1, 1, -1, 1, 0},     {5, 17, 3, 40, 3},     {4, 8, 0, 3, 0},       {67, 16, 60, 9, 0},
    {129, 33, -1, 2, 5},  {300, 64, 300, 11, 1}, {1500, 40, -1, 2, 0},  {193, 5, 191, 1, 0},
    {700, 12, 650, 5, 4}, {40, 96, -1, 5000, 0}, {2000, 1, 1999, 7, 0},
};

bool case_lookup_fwd(op_world *world, int n, tdm_lookup_fwd_args *args)
{
    if (n / 2 >= COUNT(lookup_shapes))
        return false;
    lookup_shape s = lookup_shapes[n / 2];
    args->accumulate = n % 2 == 1;
    args->table = op_matrix(world, "table", s.table_rows, s.columns, -1, 2 * s.gap, OP_RANDOM);
    args->ids = draw_numbers(world, s.rows, s.valid, s.table_rows);
    args->out = op_matrix(world, "out", s.rows, s.columns, s.valid, s.gap,
                          args->accumulate ? OP_TOTAL : OP_NAN);
    args->rows = op_rows(world, s.valid);
    return true;
}

bool case_lookup_bwd(op_world *world, int n, tdm_lookup_bwd_args *args)
{
    if (n >= COUNT(lookup_shapes))
        return false;
    lookup_shape s = lookup_shapes[n];
    args->dout = op_matrix(world, "dout", s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    args->ids = draw_numbers(world, s.rows, s.valid, s.table_rows);
    args->table_gradient =
        op_matrix(world, "table_gradient", s.table_rows, s.columns, -1, 2 * s.gap, OP_RANDOM);
    args->rows = op_rows(world, s.valid);
    return true;
}

/* ---- layer normalization --------------------------------------------------------------------- */

typedef struct row_shape {
    int64_t rows, columns, valid, gap;
} row_shape;

static const row_shape row_shapes[] = {
    {1, 1, -1, 0}, {3, 17, 2, 3},      {5, 64, -1, 0},    {67, 101, 50, 7},
    {4, 8, 0, 0},  {300, 130, 299, 0}, {129, 4, 128, 12}, {2, 3000, 1, 0},
};

/* Rows that are far from 0 compared to what they vary by. */
static tdm_matrix shifted_matrix(op_world *world, const char *name, row_shape s)
{
    tdm_matrix matrix = op_matrix(world, name, s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    float *host = op_host(world, matrix.data);
    for (int64_t r = 0; r < s.rows; r++) {
        for (int64_t c = 0; c < s.columns; c++)
            host[r * matrix.stride + c] += (float)(r % 5);
    }
    return matrix;
}

/* By the bits of n: a residual, dropout, the sum in x; n / 8 % 4: all outputs, no beta, nothing
 * kept for the backward, the sum alone. */
bool case_layer_norm_fwd(op_world *world, int n, tdm_layer_norm_fwd_args *args)
{
    if (n / 32 >= COUNT(row_shapes))
        return false;
    row_shape s = row_shapes[n / 32];
    args->x = shifted_matrix(world, "x", s);
    if ((n & 1) != 0)
        args->residual = op_matrix(world, "residual", s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    if ((n & 2) != 0) {
        args->dropout = op_draws(world, n / 4, s.rows, s.valid);
        args->dropout.rate = 0.25f;
    }
    args->sum = (n & 4) != 0
                    ? args->x
                    : op_matrix(world, "sum", s.rows, s.columns, s.valid, 2 * s.gap, OP_NAN);
    args->gamma = op_floats(world, "gamma", s.columns, OP_POSITIVE);
    args->eps = 1e-5f;
    if (n / 8 % 4 != 1)
        args->beta = op_floats(world, "beta", s.columns, OP_RANDOM);
    if (n / 8 % 4 != 3)
        args->y = op_matrix(world, "y", s.rows, s.columns, s.valid, s.gap, OP_NAN);
    if (n / 8 % 4 != 2) {
        args->means = op_floats(world, "means", s.rows, OP_NAN);
        args->rstds = op_floats(world, "rstds", s.rows, OP_NAN);
    }
    args->rows = op_rows(world, s.valid);
    return true;
}

enum { WITHOUT_DX, DX_NEW, DX_ADDED, DX_IS_DY, DX_IS_DSUM, DX_MODES };

static void set_norm_dx(op_world *world, int mode, row_shape s, tdm_layer_norm_bwd_args *args)
{
    args->accumulate_dx = mode == DX_ADDED;
    if (mode == DX_IS_DY && args->dy.data != NULL)
        args->dx = args->dy;
    else if (mode == DX_IS_DSUM && args->dsum.data != NULL)
        args->dx = args->dsum;
    else if (mode != WITHOUT_DX)
        args->dx = op_matrix(world, "dx", s.rows, s.columns, s.valid, s.gap,
                             mode == DX_ADDED ? OP_TOTAL : OP_NAN);
}

/* Case n % 5: what becomes of dx; n / 5 % 3: no gradient of the residual, one, one that is added
 * to; by the bits of n / 15: dropout, no beta; n / 60 % 4: dy and dsum, dy, dsum, neither. All of
 * that twice, on other shapes. */
bool case_layer_norm_bwd(op_world *world, int n, tdm_layer_norm_bwd_args *args)
{
    if (n / 240 >= 2)
        return false;
    row_shape s = row_shapes[(n / 7 + n / 240) % COUNT(row_shapes)];
    int residual = n / DX_MODES % 3, given = n / 60 % 4;
    args->sum = shifted_matrix(world, "sum", s);
    args->gamma = op_floats(world, "gamma", s.columns, OP_POSITIVE);
    args->means = op_matrix(world, "means", s.rows, 1, s.valid, 0, OP_RANDOM).data;
    args->rstds = op_matrix(world, "rstds", s.rows, 1, s.valid, 0, OP_POSITIVE).data;
    if (given < 2)
        args->dy = op_matrix(world, "dy", s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    if (given % 2 == 0)
        args->dsum = op_matrix(world, "dsum", s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    if ((n / 15 & 1) != 0) {
        args->dropout = op_draws(world, n / 30, s.rows, s.valid);
        args->dropout.rate = 0.25f;
    }
    set_norm_dx(world, n % DX_MODES, s, args);
    args->accumulate_residual = residual == 2;
    if (residual != 0)
        args->d_residual = op_matrix(world, "d_residual", s.rows, s.columns, s.valid, 2 * s.gap,
                                     residual == 2 ? OP_TOTAL : OP_NAN);
    args->gamma_gradient = op_floats(world, "gamma_gradient", s.columns, OP_RANDOM);
    if ((n / 15 & 2) == 0)
        args->beta_gradient = op_floats(world, "beta_gradient", s.columns, OP_RANDOM);
    args->rows = op_rows(world, s.valid);
    return true;
}

/* ---- activations ----------------------------------------------------------------------------- */

/* The first `spread` columns go from the middle to where an activation is flat, and have 0 and
 * large numbers in the last row. */
static tdm_matrix spread_matrix(op_world *world, const char *name, row_shape s, int64_t spread)
{
    static const float corners[] = {0.0f, -0.0f, 1e-30f, -12.0f, 12.0f, -80.0f, 80.0f, -1e30f};
    tdm_matrix matrix = op_matrix(world, name, s.rows, s.columns, s.valid, s.gap, OP_RANDOM);
    int64_t valid = s.valid < 0 ? s.rows : s.valid;
    for (int64_t r = 0; r < valid; r++) {
        float *row = (float *)op_host(world, matrix.data) + r * matrix.stride;
        for (int64_t c = 0; c < spread; c++)
            row[c] = r + 1 < valid ? row[c] * (float)(1 << c % 4) : corners[c % COUNT(corners)];
    }
    return matrix;
}

static const tdm_activation activations[] = {TDM_ACTIVATION_GELU, TDM_ACTIVATION_GELU_TANH,
                                             TDM_ACTIVATION_TANH};

bool case_activation_bwd(op_world *world, int n, tdm_activation_bwd_args *args)
{
    if (n / 12 >= COUNT(row_shapes))
        return false;
    row_shape s = row_shapes[n / 12];
    args->activation = activations[n % 3];
    args->x = spread_matrix(world, "x", s, args->activation == TDM_ACTIVATION_TANH ? 0 : s.columns);
    args->dy = op_matrix(world, "dy", s.rows, s.columns, s.valid, 2 * s.gap, OP_RANDOM);
    args->dx = n / 3 % 2 == 0 ? args->dy
                              : op_matrix(world, "dx", s.rows, s.columns, s.valid, s.gap, OP_NAN);
    if (n / 6 % 2 == 0)
        args->bias_gradient = op_floats(world, "bias_gradient", s.columns, OP_RANDOM);
    args->rows = op_rows(world, s.valid);
    return true;
}

static row_shape twice_as_wide(row_shape s)
{
    s.columns *= 2;
    return s;
}

bool case_gated_fwd(op_world *world, int n, tdm_gated_fwd_args *args)
{
    if (n / 2 >= COUNT(row_shapes))
        return false;
    row_shape s = row_shapes[n / 2];
    args->activation = activations[n % 2];
    args->x = spread_matrix(world, "x", twice_as_wide(s), s.columns);
    args->y = op_matrix(world, "y", s.rows, s.columns, s.valid, 2 * s.gap, OP_NAN);
    args->rows = op_rows(world, s.valid);
    return true;
}

bool case_gated_bwd(op_world *world, int n, tdm_gated_bwd_args *args)
{
    if (n / 8 >= COUNT(row_shapes))
        return false;
    row_shape s = row_shapes[n / 8], wide = twice_as_wide(s);
    args->activation = activations[n % 2];
    args->x = spread_matrix(world, "x", wide, s.columns);
    args->dy = op_matrix(world, "dy", s.rows, s.columns, s.valid, 2 * s.gap, OP_RANDOM);
    args->dx = n / 2 % 2 == 0
                   ? args->x
                   : op_matrix(world, "dx", wide.rows, wide.columns, s.valid, s.gap, OP_NAN);
    if (n / 4 % 2 == 0)
        args->bias_gradient = op_floats(world, "bias_gradient", wide.columns, OP_RANDOM);
    args->rows = op_rows(world, s.valid);
    return true;
}

/* ---- rotary positions ------------------------------------------------------------------------ */

typedef struct rotary_shape {
    int64_t rows, groups, dim, valid, gap, max_positions;
} rotary_shape;

static const rotary_shape rotary_shapes[] = {
    {1, 1, 2, -1, 0, 1},      {7, 3, 6, 5, 3, 512},       {40, 4, 64, -1, 0, 8192},
    {300, 2, 10, 299, 1, 70}, {33, 1, 200, 33, 0, 65536}, {3, 2, 32, 0, 0, 9},
};

bool case_rotary(op_world *world, int n, tdm_rotary_args *args)
{
    if (n / 2 >= COUNT(rotary_shapes))
        return false;
    rotary_shape s = rotary_shapes[n / 2];
    uint32_t *positions = draw_numbers(world, s.rows, s.valid, s.max_positions);
    if (s.valid != 0)
        ((uint32_t *)op_host(world, positions))[0] = (uint32_t)s.max_positions - 1;
    *args = (tdm_rotary_args){.dim = s.dim,
                              .theta = n % 3 == 0 ? 10000.0 : 160000.0,
                              .positions = positions,
                              .max_positions = s.max_positions,
                              .inverse = n % 2 == 1,
                              .rows = op_rows(world, s.valid)};
    args->x = op_matrix(world, "x", s.rows, s.groups * s.dim, s.valid, s.gap, OP_RANDOM);
    return true;
}
