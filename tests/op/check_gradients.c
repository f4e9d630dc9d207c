/* The gradients of dense layers, of CTR models and of losses. */
#include "tests/op/op_gradients.h"
#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>

static op_world world;
static tdm_matrix output_gradient;

/* ---- gemm: dX = dY · W, dW = dY^T · X -------------------------------------------------------- */

static double gemm_loss(const void *args)
{
    const tdm_gemm_args *gemm = args;
    reference_gemm(&world, gemm);
    return op_weighted_sum(&world, &output_gradient, &gemm->c);
}

START_TEST(test_gemm_gradients)
{
    op_small_world_create(&world);
    tdm_gemm_args forward = {.a = op_random_matrix(&world, "x", 7, 5),
                             .b = op_random_matrix(&world, "w", 4, 5)};
    forward.trans_b = true;
    forward.c = op_random_matrix(&world, "y", 7, 4);
    output_gradient = op_random_matrix(&world, "dy", 7, 4);
    tdm_gemm_args input = {
        .a = output_gradient, .b = forward.b, .c = op_random_matrix(&world, "dx", 7, 5)};
    tdm_gemm_args weight = {
        .a = output_gradient, .b = forward.a, .c = op_random_matrix(&world, "dw", 4, 5)};
    weight.trans_a = true;
    op_world_upload(&world);
    reference_gemm(&world, &input);
    reference_gemm(&world, &weight);
    op_check_matrix(&world, "dx", &forward.a, &input.c, gemm_loss, &forward);
    op_check_matrix(&world, "dw", &forward.b, &weight.c, gemm_loss, &forward);
    op_small_world_destroy(&world);
}
END_TEST

/* ---- relu and bias --------------------------------------------------------------------------- */

START_TEST(test_relu_gradients)
{
    op_small_world_create(&world);
    tdm_gemm_args forward = {.a = op_random_matrix(&world, "x", 9, 3),
                             .b = op_random_matrix(&world, "w", 3, 6),
                             .c = op_random_matrix(&world, "y", 9, 6),
                             .bias = op_floats(&world, "bias", 6, OP_RANDOM),
                             .activation = TDM_ACTIVATION_RELU};
    output_gradient = op_random_matrix(&world, "dy", 9, 6);
    float *bias_gradient = op_floats(&world, "bias_gradient", 6, OP_RANDOM);
    tdm_relu_bwd_args backward = {.y = forward.c,
                                  .dy = output_gradient,
                                  .dx = op_random_matrix(&world, "dx", 9, 6),
                                  .scale = 1,
                                  .bias_gradient = bias_gradient};
    op_world_upload(&world);
    memset(op_value(&world, bias_gradient), 0, 6 * sizeof(double));
    reference_gemm(&world, &forward);
    reference_relu_bwd(&world, &backward);
    op_check_gradient("bias", op_value(&world, forward.bias), op_value(&world, bias_gradient), 6,
                      gemm_loss, &forward);
    op_small_world_destroy(&world);
}
END_TEST

/* ---- dropout: the backward is the same call on the gradient ---------------------------------- */

static double dropout_loss(const void *args)
{
    const tdm_dropout_args *dropout = args;
    reference_dropout(&world, dropout);
    return op_weighted_sum(&world, &output_gradient, &dropout->y);
}

START_TEST(test_dropout_gradients)
{
    op_small_world_create(&world);
    tdm_dropout_args forward = {.x = op_random_matrix(&world, "x", 6, 9),
                                .y = op_random_matrix(&world, "y", 6, 9)};
    forward.draws = op_draws(&world, 1, 6, -1);
    forward.draws.rate = 0.3f;
    output_gradient = op_random_matrix(&world, "dy", 6, 9);
    tdm_dropout_args backward = forward;
    backward.x = output_gradient;
    backward.y = op_random_matrix(&world, "dx", 6, 9);
    op_world_upload(&world);
    reference_dropout(&world, &backward);
    op_check_matrix(&world, "dx", &forward.x, &backward.y, dropout_loss, &forward);
    op_small_world_destroy(&world);
}
END_TEST

/* ---- embeddings ------------------------------------------------------------------------------ */

typedef struct embedding_pair {
    tdm_embedding_fwd_args forward;
    tdm_embedding_bwd_args backward;
} embedding_pair;

static double embedding_loss(const void *args)
{
    const embedding_pair *pair = args;
    reference_embedding_fwd(&world, &pair->forward);
    tdm_matrix valid = pair->forward.out;
    valid.rows = op_valid(&world, pair->forward.rows, valid.rows);
    return op_weighted_sum(&world, &pair->backward.dout, &valid);
}

/* The first distinct rows of each field. */
static int check_fields(const embedding_pair *pair, const char *name)
{
    const tdm_distinct_ids *distinct = &pair->backward.distinct;
    const int32_t *counts = op_host(&world, distinct->counts);
    int checked = 0;
    for (int f = 0; f < pair->forward.field_count; f++) {
        const tdm_embedding_field *field = &world.fields[f];
        const uint32_t *ids = (const uint32_t *)op_host(&world, distinct->ids) + field->values;
        for (int32_t u = 0; u < counts[f] && u < 3; u++, checked++) {
            const float *row = pair->forward.tables + field->table + (int64_t)ids[u] * field->dim;
            const float *gradient = pair->backward.gradients + field->gradients + u * field->dim;
            op_check_gradient(name, op_value(&world, row), op_value(&world, gradient), field->dim,
                              embedding_loss, pair);
        }
    }
    return checked;
}

START_TEST(test_embedding_gradients)
{
    op_small_world_create(&world);
    int checked = 0;
    for (int n = 0;; n++) {
        embedding_pair pair;
        char name[32];
        snprintf(name, sizeof name, "embedding %d", n);
        op_world_reset(&world, 0);
        if (!op_embedding_pair(&world, n, &pair.forward, &pair.backward))
            break;
        if (pair.forward.out.rows > 200)
            continue;
        op_world_upload(&world);
        reference_embedding_bwd(&world, &pair.backward);
        checked += check_fields(&pair, name);
    }
    ck_assert_int_gt(checked, 30);
    op_small_world_destroy(&world);
}
END_TEST

/* ---- interactions ---------------------------------------------------------------------------- */

static double fm_loss(const void *args)
{
    const tdm_fm_fwd_args *forward = args;
    reference_fm_fwd(&world, forward);
    return op_weighted_sum(&world, &output_gradient, &forward->out);
}

START_TEST(test_fm_gradients)
{
    op_small_world_create(&world);
    tdm_fm_fwd_args forward = {.fields = 4,
                               .embeddings = op_random_matrix(&world, "embeddings", 3, 20),
                               .out = op_random_matrix(&world, "out", 3, 1),
                               .sums = op_random_matrix(&world, "sums", 3, 5)};
    output_gradient = op_random_matrix(&world, "dout", 3, 1);
    tdm_fm_bwd_args backward = {.fields = 4,
                                .embeddings = forward.embeddings,
                                .sums = forward.sums,
                                .dout = output_gradient,
                                .d_embeddings = op_random_matrix(&world, "d_embeddings", 3, 20)};
    op_world_upload(&world);
    reference_fm_fwd(&world, &forward);
    reference_fm_bwd(&world, &backward);
    op_check_matrix(&world, "embeddings", &forward.embeddings, &backward.d_embeddings, fm_loss,
                    &forward);
    op_small_world_destroy(&world);
}
END_TEST

static double cross_loss(const void *args)
{
    const tdm_cross_fwd_args *forward = args;
    reference_cross_fwd(&world, forward);
    return op_weighted_sum(&world, &output_gradient, &forward->y);
}

START_TEST(test_cross_gradients)
{
    op_small_world_create(&world);
    tdm_cross_fwd_args forward = {.x0 = op_random_matrix(&world, "x0", 3, 7),
                                  .x = op_random_matrix(&world, "x", 3, 7),
                                  .u = op_random_matrix(&world, "u", 3, 7),
                                  .y = op_random_matrix(&world, "y", 3, 7)};
    output_gradient = op_random_matrix(&world, "dy", 3, 7);
    tdm_cross_bwd_args backward = {.x0 = forward.x0,
                                   .u = forward.u,
                                   .dy = output_gradient,
                                   .du = op_random_matrix(&world, "du", 3, 7),
                                   .dx0 = op_random_matrix(&world, "dx0", 3, 7),
                                   .dx = op_random_matrix(&world, "dx", 3, 7)};
    op_world_upload(&world);
    reference_cross_bwd(&world, &backward);
    op_check_matrix(&world, "x0", &forward.x0, &backward.dx0, cross_loss, &forward);
    op_check_matrix(&world, "x", &forward.x, &backward.dx, cross_loss, &forward);
    op_check_matrix(&world, "u", &forward.u, &backward.du, cross_loss, &forward);
    op_small_world_destroy(&world);
}
END_TEST

/* ---- loss: Σ w l · loss_scale / Σ w ---------------------------------------------------------- */

static double bce_loss(const void *args)
{
    tdm_loss_scalars *loss = &world.expected.losses[0];
    loss->loss_sum = 0.0;
    reference_bce(&world, args);
    return loss->loss_sum * world.expected.loss_scale / loss->weight_sum;
}

START_TEST(test_bce_gradients)
{
    op_small_world_create(&world);
    tdm_bce_args forward = {.logits = op_random_matrix(&world, "logits", 11, 3),
                            .labels = op_floats(&world, "labels", 33, OP_POSITIVE),
                            .weights = op_floats(&world, "weights", 11, OP_POSITIVE),
                            .scalars = world.scalars};
    tdm_bce_args backward = forward;
    backward.dlogits = op_random_matrix(&world, "dlogits", 11, 3);
    op_world_upload(&world);
    tdm_weight_sum_args sum = {.weights = forward.weights, .batch = 11, .scalars = world.scalars};
    reference_weight_sum(&world, &sum);
    reference_bce(&world, &backward);
    op_check_matrix(&world, "logits", &forward.logits, &backward.dlogits, bce_loss, &forward);
    op_small_world_destroy(&world);
}
END_TEST

static double softmax_loss(const void *args)
{
    tdm_loss_scalars *loss = &world.expected.losses[1];
    loss->loss_sum = 0.0;
    reference_softmax_loss(&world, args);
    return loss->loss_sum * world.expected.loss_scale / loss->weight_sum;
}

START_TEST(test_softmax_loss_gradients)
{
    static const uint32_t drawn[] = {3, 0, TDM_NO_LABEL, 4};
    op_small_world_create(&world);
    uint32_t *labels = op_bytes(&world, sizeof drawn);
    memcpy(op_host(&world, labels), drawn, sizeof drawn);
    tdm_softmax_loss_args forward = {.logits = op_random_matrix(&world, "logits", 4, 5),
                                     .labels = labels,
                                     .weights = op_floats(&world, "weights", 4, OP_POSITIVE),
                                     .loss = 1,
                                     .scalars = world.scalars};
    tdm_softmax_loss_args backward = forward;
    backward.dlogits = op_random_matrix(&world, "dlogits", 4, 5);
    op_world_upload(&world);
    reference_softmax_loss(&world, &backward);
    op_check_matrix(&world, "logits", &forward.logits, &backward.dlogits, softmax_loss, &forward);
    op_small_world_destroy(&world);
}
END_TEST

static double squared_loss(const void *args)
{
    tdm_loss_scalars *loss = &world.expected.losses[0];
    loss->loss_sum = 0.0;
    reference_squared_loss(&world, args);
    return loss->loss_sum * world.expected.loss_scale / loss->weight_sum;
}

START_TEST(test_squared_loss_gradients)
{
    op_small_world_create(&world);
    tdm_squared_loss_args forward = {.logits = op_random_matrix(&world, "logits", 11, 1),
                                     .labels = op_floats(&world, "labels", 11, OP_RANDOM),
                                     .weights = op_floats(&world, "weights", 11, OP_POSITIVE),
                                     .scalars = world.scalars};
    tdm_squared_loss_args backward = forward;
    backward.dlogits = op_random_matrix(&world, "dlogits", 11, 1);
    op_world_upload(&world);
    reference_squared_loss(&world, &backward);
    op_check_matrix(&world, "logits", &forward.logits, &backward.dlogits, squared_loss, &forward);
    op_small_world_destroy(&world);
}
END_TEST

TDM_CHECK_MAIN(test_gemm_gradients, test_relu_gradients, test_dropout_gradients,
               test_embedding_gradients, test_fm_gradients, test_cross_gradients,
               test_bce_gradients, test_softmax_loss_gradients, test_squared_loss_gradients)
