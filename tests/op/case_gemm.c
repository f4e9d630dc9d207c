#include "tests/op/op_cases.h"

#include "tests/support/check_main.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

typedef struct product_shape {
    int64_t m, n, k;
    int64_t invalid; /* rows of the batch behind the valid ones; -1: no count of rows */
} product_shape;

static const product_shape product_shapes[] = {
    {1, 1, 1, -1},    {1, 1, 37, -1},   {1, 40, 1, 0},    {7, 1, 1, 2},      {300, 1, 40, 3},
    {1, 67, 300, -1}, {67, 1, 300, -1}, {5, 3, 2, -1},    {17, 31, 13, 4},   {64, 48, 32, -1},
    {33, 129, 65, 0}, {2, 530, 3, -1},  {530, 2, 35, 29}, {260, 97, 61, 7},  {97, 61, 530, 11},
    {6, 5, 4, 6},     {6, 1, 4, 6},     {1, 4, 6, 6},     {300, 40, 1, 9},   {11, 1100, 40, 2},
    {9, 70, 1100, 3}, {1100, 9, 70, 1}, {200, 64, 96, 1}, {40, 200, 640, 8},
};

typedef struct product_mode {
    tdm_dtype compute;
    bool accumulate, bias, preactivation;
    tdm_activation activation;
} product_mode;

/* Those in bfloat16 come last: not every device has them. */
static const product_mode modes[] = {
    {TDM_F32, .accumulate = false},
    {TDM_F32, .accumulate = true},
    {TDM_F32, .bias = true},
    {TDM_F32, .activation = TDM_ACTIVATION_RELU},
    {TDM_F32, .bias = true, .activation = TDM_ACTIVATION_RELU},
    {TDM_F32, .bias = true, .activation = TDM_ACTIVATION_GELU, .preactivation = true},
    {TDM_F32, .activation = TDM_ACTIVATION_GELU_TANH, .preactivation = true},
    {TDM_F32, .bias = true, .activation = TDM_ACTIVATION_TANH},
    {TDM_F32, .bias = true, .preactivation = true},
    {TDM_BF16, .accumulate = false},
    {TDM_BF16, .accumulate = true},
    {TDM_BF16, .bias = true, .activation = TDM_ACTIVATION_GELU, .preactivation = true},
};

static bool has_compute(const op_world *world, tdm_dtype compute)
{
    tdm_backend_properties properties;
    ck_assert_ok(world->backend->type->properties(world->backend, &properties));
    return compute == TDM_F32 || properties.bf16;
}

bool case_gemm(op_world *world, int n, tdm_gemm_args *args)
{
    int shape = n / 4 % COUNT(product_shapes), kind = n / 4 / COUNT(product_shapes);
    if (kind >= COUNT(modes) || !has_compute(world, modes[kind].compute))
        return false;
    const product_mode *mode = &modes[kind];
    product_shape size = product_shapes[shape];
    bool trans_a = n & 1, trans_b = n & 2;
    int64_t batch = trans_a ? size.k : size.m;
    if (size.invalid > batch)
        size.invalid = batch;
    int64_t valid = size.invalid < 0 ? -1 : batch - size.invalid, c_valid = trans_a ? -1 : valid;
    int64_t gap = shape % 3 * 5;
    *args = (tdm_gemm_args){.trans_a = trans_a,
                            .trans_b = trans_b,
                            .accumulate = mode->accumulate,
                            .activation = mode->activation,
                            .compute = mode->compute};
    args->a = op_matrix(world, "a", batch, trans_a ? size.m : size.k, valid, gap, OP_RANDOM);
    args->b = op_matrix(world, "b", trans_b ? size.n : size.k, trans_b ? size.k : size.n,
                        trans_a && !trans_b ? valid : -1, gap, OP_RANDOM);
    args->c =
        op_matrix(world, "c", size.m, size.n, c_valid, gap, args->accumulate ? OP_TOTAL : OP_NAN);
    if (mode->bias)
        args->bias = op_floats(world, "bias", size.n, OP_RANDOM);
    if (mode->preactivation)
        args->preactivation =
            op_matrix(world, "preactivation", size.m, size.n, c_valid, 2 * gap, OP_NAN);
    args->rows = op_rows(world, valid);
    return true;
}
