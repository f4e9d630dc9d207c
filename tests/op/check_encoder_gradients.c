/* The gradients of what encoders are made of. */
#include "tests/op/op_gradients.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <string.h>

static op_world world;
static tdm_matrix output_gradient;

/* ---- lookups and layer normalization --------------------------------------------------------- */

static double lookup_loss(const void *args)
{
    const tdm_lookup_fwd_args *forward = args;
    reference_lookup_fwd(&world, forward);
    return op_weighted_sum(&world, &output_gradient, &forward->out);
}

START_TEST(test_lookup_gradients)
{
    static const uint32_t drawn[] = {3, 0, 3, 1, 3, 1, 0, 4};
    op_small_world_create(&world);
    uint32_t *ids = op_bytes(&world, sizeof drawn);
    memcpy(op_host(&world, ids), drawn, sizeof drawn);
    tdm_lookup_fwd_args forward = {.table = op_random_matrix(&world, "table", 6, 3),
                                   .ids = ids,
                                   .out = op_random_matrix(&world, "out", 8, 3)};
    output_gradient = op_random_matrix(&world, "dout", 8, 3);
    tdm_lookup_bwd_args backward = {.dout = output_gradient,
                                    .ids = ids,
                                    .table_gradient =
                                        op_random_matrix(&world, "table_gradient", 6, 3)};
    op_world_upload(&world);
    memset(op_value(&world, backward.table_gradient.data), 0, 6 * 3 * sizeof(double));
    reference_lookup_bwd(&world, &backward);
    op_check_matrix(&world, "table", &forward.table, &backward.table_gradient, lookup_loss,
                    &forward);
    op_small_world_destroy(&world);
}
END_TEST

static tdm_matrix sum_gradient;

/* Both outputs of the op lead to the loss. */
static double norm_loss(const void *args)
{
    const tdm_layer_norm_fwd_args *forward = args;
    reference_layer_norm_fwd(&world, forward);
    return op_weighted_sum(&world, &output_gradient, &forward->y) +
           op_weighted_sum(&world, &sum_gradient, &forward->sum);
}

static void set_norm_backward(const tdm_layer_norm_fwd_args *forward, tdm_layer_norm_bwd_args *out)
{
    *out = (tdm_layer_norm_bwd_args){.sum = forward->sum,
                                     .gamma = forward->gamma,
                                     .means = forward->means,
                                     .rstds = forward->rstds,
                                     .dy = output_gradient,
                                     .dsum = sum_gradient,
                                     .dropout = forward->dropout,
                                     .dx = op_random_matrix(&world, "dx", 6, 9),
                                     .d_residual = op_random_matrix(&world, "d_residual", 6, 9),
                                     .gamma_gradient = op_floats(&world, "dgamma", 9, OP_RANDOM),
                                     .beta_gradient = op_floats(&world, "dbeta", 9, OP_RANDOM)};
}

START_TEST(test_layer_norm_gradients)
{
    op_small_world_create(&world);
    tdm_layer_norm_fwd_args forward = {.x = op_random_matrix(&world, "x", 6, 9),
                                       .residual = op_random_matrix(&world, "residual", 6, 9),
                                       .dropout = op_draws(&world, 1, 6, -1),
                                       .sum = op_random_matrix(&world, "sum", 6, 9),
                                       .gamma = op_floats(&world, "gamma", 9, OP_POSITIVE),
                                       .beta = op_floats(&world, "beta", 9, OP_RANDOM),
                                       .eps = 1e-5f,
                                       .y = op_random_matrix(&world, "y", 6, 9),
                                       .means = op_floats(&world, "means", 6, OP_RANDOM),
                                       .rstds = op_floats(&world, "rstds", 6, OP_RANDOM)};
    forward.dropout.rate = 0.3f;
    output_gradient = op_random_matrix(&world, "dy", 6, 9);
    sum_gradient = op_random_matrix(&world, "dsum", 6, 9);
    tdm_layer_norm_bwd_args backward;
    set_norm_backward(&forward, &backward);
    op_world_upload(&world);
    memset(op_value(&world, backward.gamma_gradient), 0, 9 * sizeof(double));
    memset(op_value(&world, backward.beta_gradient), 0, 9 * sizeof(double));
    reference_layer_norm_fwd(&world, &forward);
    reference_layer_norm_bwd(&world, &backward);
    op_check_matrix(&world, "x", &forward.x, &backward.dx, norm_loss, &forward);
    op_check_matrix(&world, "residual", &forward.residual, &backward.d_residual, norm_loss,
                    &forward);
    op_check_gradient("gamma", op_value(&world, forward.gamma),
                      op_value(&world, backward.gamma_gradient), 9, norm_loss, &forward);
    op_check_gradient("beta", op_value(&world, forward.beta),
                      op_value(&world, backward.beta_gradient), 9, norm_loss, &forward);
    op_small_world_destroy(&world);
}
END_TEST

/* ---- activations ----------------------------------------------------------------------------- */

static double activation_loss(const void *args)
{
    const tdm_activation_bwd_args *backward = args;
    double sum = 0.0;
    for (int64_t r = 0; r < backward->x.rows; r++) {
        for (int64_t c = 0; c < backward->x.columns; c++)
            sum += *op_at(&world, &backward->dy, r, c) *
                   reference_activation(backward->activation, *op_at(&world, &backward->x, r, c));
    }
    return sum;
}

/* Of tanh, the backward reads what it gave. */
START_TEST(test_activation_gradients)
{
    static const tdm_activation activations[] = {TDM_ACTIVATION_GELU, TDM_ACTIVATION_GELU_TANH,
                                                 TDM_ACTIVATION_TANH};
    op_small_world_create(&world);
    for (int i = 0; i < 3; i++) {
        op_world_reset(&world, 0);
        tdm_activation_bwd_args forward = {.activation = activations[i],
                                           .x = op_random_matrix(&world, "x", 5, 7),
                                           .dy = op_random_matrix(&world, "dy", 5, 7),
                                           .dx = op_random_matrix(&world, "dx", 5, 7)};
        tdm_activation_bwd_args backward = forward;
        backward.x = op_random_matrix(&world, "x or y", 5, 7);
        op_world_upload(&world);
        for (int64_t c = 0; c < 35; c++) {
            double x = *op_at(&world, &forward.x, 0, c);
            *op_at(&world, &backward.x, 0, c) = activations[i] == TDM_ACTIVATION_TANH ? tanh(x) : x;
        }
        reference_activation_bwd(&world, &backward);
        op_check_matrix(&world, "x", &forward.x, &forward.dx, activation_loss, &forward);
    }
    op_small_world_destroy(&world);
}
END_TEST

static double gated_loss(const void *args)
{
    const tdm_gated_fwd_args *forward = args;
    reference_gated_fwd(&world, forward);
    return op_weighted_sum(&world, &output_gradient, &forward->y);
}

START_TEST(test_gated_gradients)
{
    op_small_world_create(&world);
    tdm_gated_fwd_args forward = {.activation = TDM_ACTIVATION_GELU,
                                  .x = op_random_matrix(&world, "x", 5, 14),
                                  .y = op_random_matrix(&world, "y", 5, 7)};
    output_gradient = op_random_matrix(&world, "dy", 5, 7);
    tdm_gated_bwd_args backward = {.activation = TDM_ACTIVATION_GELU,
                                   .x = forward.x,
                                   .dy = output_gradient,
                                   .dx = op_random_matrix(&world, "dx", 5, 14)};
    op_world_upload(&world);
    reference_gated_bwd(&world, &backward);
    op_check_matrix(&world, "x", &forward.x, &backward.dx, gated_loss, &forward);
    op_small_world_destroy(&world);
}
END_TEST

/* ---- rotary positions: the backward of a turn is to turn back -------------------------------- */

typedef struct rotary_pair {
    tdm_matrix x; /* before the turn, which is made on a copy */
    tdm_rotary_args forward;
} rotary_pair;

static double rotary_loss(const void *args)
{
    const rotary_pair *pair = args;
    memcpy(op_at(&world, &pair->forward.x, 0, 0), op_at(&world, &pair->x, 0, 0),
           sizeof(double) * (size_t)(pair->x.rows * pair->x.columns));
    reference_rotary(&world, &pair->forward);
    return op_weighted_sum(&world, &output_gradient, &pair->forward.x);
}

START_TEST(test_rotary_gradients)
{
    static const uint32_t drawn[] = {0, 1, 77, 5};
    op_small_world_create(&world);
    uint32_t *positions = op_bytes(&world, sizeof drawn);
    memcpy(op_host(&world, positions), drawn, sizeof drawn);
    rotary_pair pair = {.x = op_random_matrix(&world, "x", 4, 12),
                        .forward = {.x = op_random_matrix(&world, "turned", 4, 12),
                                    .dim = 6,
                                    .theta = 1000.0,
                                    .positions = positions,
                                    .max_positions = 100}};
    output_gradient = op_random_matrix(&world, "dy", 4, 12);
    tdm_rotary_args backward = pair.forward;
    backward.x = op_random_matrix(&world, "dx", 4, 12);
    backward.inverse = true;
    op_world_upload(&world);
    memcpy(op_at(&world, &backward.x, 0, 0), op_at(&world, &output_gradient, 0, 0),
           48 * sizeof(double));
    reference_rotary(&world, &backward);
    op_check_matrix(&world, "x", &pair.x, &backward.x, rotary_loss, &pair);
    op_small_world_destroy(&world);
}
END_TEST

/* ---- attention ------------------------------------------------------------------------------- */

#define HEADS  2
#define DIM    3
#define TOKENS 9

static double attention_loss(const void *args)
{
    const tdm_attention_fwd_args *forward = args;
    reference_attention_fwd(&world, forward);
    return op_weighted_sum(&world, &output_gradient, &forward->out);
}

/* Two sequences and a token of none. */
static tdm_attention_fwd_args make_attention(int64_t window)
{
    static const int32_t begins[] = {0, 5, 8};
    int32_t *cu_seqlens = op_bytes(&world, sizeof begins);
    memcpy(op_host(&world, cu_seqlens), begins, sizeof begins);
    tdm_attention_fwd_args forward = {
        .qkv = op_random_matrix(&world, "qkv", TOKENS, 3 * HEADS * DIM),
        .heads = HEADS,
        .window = window,
        .scale = 0.6f,
        .dropout = op_draws(&world, 0, 2, -1),
        .spans = {.cu_seqlens = cu_seqlens, .batch = 2, .max_length = 5},
        .out = op_random_matrix(&world, "out", TOKENS, HEADS * DIM),
        .log_sums = op_floats(&world, "log_sums", TOKENS * HEADS, OP_RANDOM)};
    forward.dropout.rate = 0.3f;
    return forward;
}

START_TEST(test_attention_gradients)
{
    op_small_world_create(&world);
    for (int64_t window = -1; window < 2; window += 2) {
        op_world_reset(&world, 0);
        tdm_attention_fwd_args forward = make_attention(window);
        output_gradient = op_random_matrix(&world, "dout", TOKENS, HEADS * DIM);
        tdm_attention_bwd_args backward = {
            .qkv = forward.qkv,
            .out = forward.out,
            .dout = output_gradient,
            .heads = HEADS,
            .window = window,
            .scale = forward.scale,
            .dropout = forward.dropout,
            .spans = forward.spans,
            .log_sums = forward.log_sums,
            .dqkv = op_random_matrix(&world, "dqkv", TOKENS, 3 * HEADS * DIM)};
        op_world_upload(&world);
        reference_attention_fwd(&world, &forward);
        reference_attention_bwd(&world, &backward);
        op_check_matrix(&world, "qkv", &forward.qkv, &backward.dqkv, attention_loss, &forward);
    }
    op_small_world_destroy(&world);
}
END_TEST

TDM_CHECK_MAIN(test_lookup_gradients, test_layer_norm_gradients, test_activation_gradients,
               test_gated_gradients, test_rotary_gradients, test_attention_gradients)
