/* The references of the backward ops against central differences of the references of the forward
 * ops. With the op tests, which compare ops and references, this checks the ops' gradients. */
#include "tests/op/op_cases.h"
#include "tests/op/reference_ops.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tdm_pool *pool;
static tdm_backend *backend;
static op_world world;

static void open_world(void)
{
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
    op_world_create(backend, (size_t)4 << 20, &world);
}

static void close_world(void)
{
    op_world_destroy(&world);
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}

/* Σ over the elements of dy · y: the loss whose gradient with respect to y is dy. */
static double weighted_sum(const tdm_matrix *dy, const tdm_matrix *y)
{
    double sum = 0.0;
    for (int64_t r = 0; r < y->rows; r++) {
        for (int64_t c = 0; c < y->columns; c++)
            sum += *op_at(&world, dy, r, c) * *op_at(&world, y, r, c);
    }
    return sum;
}

/* Checks gradient[i] = d loss / d x[i] for `count` elements that lie one after the other. */
static void check_gradient(const char *name, double *x, const double *gradient, int64_t count,
                           double (*loss)(const void *args), const void *args)
{
    const double step = 1e-4;
    double error = 0.0, size = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double kept = x[i];
        x[i] = kept + step;
        double above = loss(args);
        x[i] = kept - step;
        double below = loss(args);
        x[i] = kept;
        double difference = (above - below) / (2.0 * step) - gradient[i];
        error += difference * difference;
        size += gradient[i] * gradient[i];
    }
    ck_assert_msg(size > 0.0, "%s: no gradient", name);
    ck_assert_msg(sqrt(error) <= 1e-6 * sqrt(size), "%s: off by %g of %g", name, sqrt(error),
                  sqrt(size));
}

static tdm_matrix random_matrix(const char *name, int64_t rows, int64_t columns)
{
    return op_matrix(&world, name, rows, columns, -1, 0, OP_RANDOM);
}

static void check_matrix(const char *name, const tdm_matrix *x, const tdm_matrix *gradient,
                         double (*loss)(const void *args), const void *args)
{
    check_gradient(name, op_at(&world, x, 0, 0), op_at(&world, gradient, 0, 0),
                   x->rows * x->columns, loss, args);
}

/* ---- gemm: dX = dY · W, dW = dY^T · X -------------------------------------------------------- */

static tdm_matrix output_gradient;

static double gemm_loss(const void *args)
{
    const tdm_gemm_args *gemm = args;
    reference_gemm(&world, gemm);
    return weighted_sum(&output_gradient, &gemm->c);
}

START_TEST(test_gemm_gradients)
{
    open_world();
    tdm_gemm_args forward = {.a = random_matrix("x", 7, 5), .b = random_matrix("w", 4, 5)};
    forward.trans_b = true;
    forward.c = random_matrix("y", 7, 4);
    output_gradient = random_matrix("dy", 7, 4);
    tdm_gemm_args input = {.a = output_gradient, .b = forward.b, .c = random_matrix("dx", 7, 5)};
    tdm_gemm_args weight = {.a = output_gradient, .b = forward.a, .c = random_matrix("dw", 4, 5)};
    weight.trans_a = true;
    op_world_upload(&world);
    reference_gemm(&world, &input);
    reference_gemm(&world, &weight);
    check_matrix("dx", &forward.a, &input.c, gemm_loss, &forward);
    check_matrix("dw", &forward.b, &weight.c, gemm_loss, &forward);
    close_world();
}
END_TEST

/* ---- relu and bias --------------------------------------------------------------------------- */

START_TEST(test_relu_gradients)
{
    open_world();
    tdm_gemm_args forward = {.a = random_matrix("x", 9, 3),
                             .b = random_matrix("w", 3, 6),
                             .c = random_matrix("y", 9, 6),
                             .bias = op_floats(&world, "bias", 6, OP_RANDOM),
                             .activation = TDM_ACTIVATION_RELU};
    output_gradient = random_matrix("dy", 9, 6);
    float *bias_gradient = op_floats(&world, "bias_gradient", 6, OP_RANDOM);
    tdm_relu_bwd_args backward = {.y = forward.c,
                                  .dy = output_gradient,
                                  .dx = random_matrix("dx", 9, 6),
                                  .scale = 1,
                                  .bias_gradient = bias_gradient};
    op_world_upload(&world);
    memset(op_value(&world, bias_gradient), 0, 6 * sizeof(double));
    reference_gemm(&world, &forward);
    reference_relu_bwd(&world, &backward);
    check_gradient("bias", op_value(&world, forward.bias), op_value(&world, bias_gradient), 6,
                   gemm_loss, &forward);
    close_world();
}
END_TEST

/* ---- dropout: the backward is the same call on the gradient ---------------------------------- */

static double dropout_loss(const void *args)
{
    const tdm_dropout_args *dropout = args;
    reference_dropout(&world, dropout);
    return weighted_sum(&output_gradient, &dropout->y);
}

START_TEST(test_dropout_gradients)
{
    open_world();
    tdm_dropout_args forward = {.x = random_matrix("x", 6, 9), .y = random_matrix("y", 6, 9)};
    forward.draws = op_draws(&world, 1, 6, -1);
    forward.draws.rate = 0.3f;
    output_gradient = random_matrix("dy", 6, 9);
    tdm_dropout_args backward = forward;
    backward.x = output_gradient;
    backward.y = random_matrix("dx", 6, 9);
    op_world_upload(&world);
    reference_dropout(&world, &backward);
    check_matrix("dx", &forward.x, &backward.y, dropout_loss, &forward);
    close_world();
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
    return weighted_sum(&pair->backward.dout, &valid);
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
            check_gradient(name, op_value(&world, row), op_value(&world, gradient), field->dim,
                           embedding_loss, pair);
        }
    }
    return checked;
}

START_TEST(test_embedding_gradients)
{
    open_world();
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
    close_world();
}
END_TEST

/* ---- interactions ---------------------------------------------------------------------------- */

static double fm_loss(const void *args)
{
    const tdm_fm_fwd_args *forward = args;
    reference_fm_fwd(&world, forward);
    return weighted_sum(&output_gradient, &forward->out);
}

START_TEST(test_fm_gradients)
{
    open_world();
    tdm_fm_fwd_args forward = {.fields = 4,
                               .embeddings = random_matrix("embeddings", 3, 20),
                               .out = random_matrix("out", 3, 1),
                               .sums = random_matrix("sums", 3, 5)};
    output_gradient = random_matrix("dout", 3, 1);
    tdm_fm_bwd_args backward = {.fields = 4,
                                .embeddings = forward.embeddings,
                                .sums = forward.sums,
                                .dout = output_gradient,
                                .d_embeddings = random_matrix("d_embeddings", 3, 20)};
    op_world_upload(&world);
    reference_fm_fwd(&world, &forward);
    reference_fm_bwd(&world, &backward);
    check_matrix("embeddings", &forward.embeddings, &backward.d_embeddings, fm_loss, &forward);
    close_world();
}
END_TEST

static double cross_loss(const void *args)
{
    const tdm_cross_fwd_args *forward = args;
    reference_cross_fwd(&world, forward);
    return weighted_sum(&output_gradient, &forward->y);
}

START_TEST(test_cross_gradients)
{
    open_world();
    tdm_cross_fwd_args forward = {.x0 = random_matrix("x0", 3, 7),
                                  .x = random_matrix("x", 3, 7),
                                  .u = random_matrix("u", 3, 7),
                                  .y = random_matrix("y", 3, 7)};
    output_gradient = random_matrix("dy", 3, 7);
    tdm_cross_bwd_args backward = {.x0 = forward.x0,
                                   .u = forward.u,
                                   .dy = output_gradient,
                                   .du = random_matrix("du", 3, 7),
                                   .dx0 = random_matrix("dx0", 3, 7),
                                   .dx = random_matrix("dx", 3, 7)};
    op_world_upload(&world);
    reference_cross_bwd(&world, &backward);
    check_matrix("x0", &forward.x0, &backward.dx0, cross_loss, &forward);
    check_matrix("x", &forward.x, &backward.dx, cross_loss, &forward);
    check_matrix("u", &forward.u, &backward.du, cross_loss, &forward);
    close_world();
}
END_TEST

/* ---- lookups and layer normalization --------------------------------------------------------- */

static double lookup_loss(const void *args)
{
    const tdm_lookup_fwd_args *forward = args;
    reference_lookup_fwd(&world, forward);
    return weighted_sum(&output_gradient, &forward->out);
}

START_TEST(test_lookup_gradients)
{
    static const uint32_t drawn[] = {3, 0, 3, 1, 3, 1, 0, 4};
    open_world();
    uint32_t *ids = op_bytes(&world, sizeof drawn);
    memcpy(op_host(&world, ids), drawn, sizeof drawn);
    tdm_lookup_fwd_args forward = {
        .table = random_matrix("table", 6, 3), .ids = ids, .out = random_matrix("out", 8, 3)};
    output_gradient = random_matrix("dout", 8, 3);
    tdm_lookup_bwd_args backward = {.dout = output_gradient,
                                    .ids = ids,
                                    .table_gradient = random_matrix("table_gradient", 6, 3)};
    op_world_upload(&world);
    memset(op_value(&world, backward.table_gradient.data), 0, 6 * 3 * sizeof(double));
    reference_lookup_bwd(&world, &backward);
    check_matrix("table", &forward.table, &backward.table_gradient, lookup_loss, &forward);
    close_world();
}
END_TEST

static tdm_matrix sum_gradient;

/* Both outputs of the op lead to the loss. */
static double norm_loss(const void *args)
{
    const tdm_layer_norm_fwd_args *forward = args;
    reference_layer_norm_fwd(&world, forward);
    return weighted_sum(&output_gradient, &forward->y) + weighted_sum(&sum_gradient, &forward->sum);
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
                                     .dx = random_matrix("dx", 6, 9),
                                     .d_residual = random_matrix("d_residual", 6, 9),
                                     .gamma_gradient = op_floats(&world, "dgamma", 9, OP_RANDOM),
                                     .beta_gradient = op_floats(&world, "dbeta", 9, OP_RANDOM)};
}

START_TEST(test_layer_norm_gradients)
{
    open_world();
    tdm_layer_norm_fwd_args forward = {.x = random_matrix("x", 6, 9),
                                       .residual = random_matrix("residual", 6, 9),
                                       .dropout = op_draws(&world, 1, 6, -1),
                                       .sum = random_matrix("sum", 6, 9),
                                       .gamma = op_floats(&world, "gamma", 9, OP_POSITIVE),
                                       .beta = op_floats(&world, "beta", 9, OP_RANDOM),
                                       .eps = 1e-5f,
                                       .y = random_matrix("y", 6, 9),
                                       .means = op_floats(&world, "means", 6, OP_RANDOM),
                                       .rstds = op_floats(&world, "rstds", 6, OP_RANDOM)};
    forward.dropout.rate = 0.3f;
    output_gradient = random_matrix("dy", 6, 9);
    sum_gradient = random_matrix("dsum", 6, 9);
    tdm_layer_norm_bwd_args backward;
    set_norm_backward(&forward, &backward);
    op_world_upload(&world);
    memset(op_value(&world, backward.gamma_gradient), 0, 9 * sizeof(double));
    memset(op_value(&world, backward.beta_gradient), 0, 9 * sizeof(double));
    reference_layer_norm_fwd(&world, &forward);
    reference_layer_norm_bwd(&world, &backward);
    check_matrix("x", &forward.x, &backward.dx, norm_loss, &forward);
    check_matrix("residual", &forward.residual, &backward.d_residual, norm_loss, &forward);
    check_gradient("gamma", op_value(&world, forward.gamma),
                   op_value(&world, backward.gamma_gradient), 9, norm_loss, &forward);
    check_gradient("beta", op_value(&world, forward.beta), op_value(&world, backward.beta_gradient),
                   9, norm_loss, &forward);
    close_world();
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
    open_world();
    for (int i = 0; i < 3; i++) {
        op_world_reset(&world, 0);
        tdm_activation_bwd_args forward = {.activation = activations[i],
                                           .x = random_matrix("x", 5, 7),
                                           .dy = random_matrix("dy", 5, 7),
                                           .dx = random_matrix("dx", 5, 7)};
        tdm_activation_bwd_args backward = forward;
        backward.x = random_matrix("x or y", 5, 7);
        op_world_upload(&world);
        for (int64_t c = 0; c < 35; c++) {
            double x = *op_at(&world, &forward.x, 0, c);
            *op_at(&world, &backward.x, 0, c) = activations[i] == TDM_ACTIVATION_TANH ? tanh(x) : x;
        }
        reference_activation_bwd(&world, &backward);
        check_matrix("x", &forward.x, &forward.dx, activation_loss, &forward);
    }
    close_world();
}
END_TEST

static double gated_loss(const void *args)
{
    const tdm_gated_fwd_args *forward = args;
    reference_gated_fwd(&world, forward);
    return weighted_sum(&output_gradient, &forward->y);
}

START_TEST(test_gated_gradients)
{
    open_world();
    tdm_gated_fwd_args forward = {.activation = TDM_ACTIVATION_GELU,
                                  .x = random_matrix("x", 5, 14),
                                  .y = random_matrix("y", 5, 7)};
    output_gradient = random_matrix("dy", 5, 7);
    tdm_gated_bwd_args backward = {.activation = TDM_ACTIVATION_GELU,
                                   .x = forward.x,
                                   .dy = output_gradient,
                                   .dx = random_matrix("dx", 5, 14)};
    op_world_upload(&world);
    reference_gated_bwd(&world, &backward);
    check_matrix("x", &forward.x, &backward.dx, gated_loss, &forward);
    close_world();
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
    return weighted_sum(&output_gradient, &pair->forward.x);
}

START_TEST(test_rotary_gradients)
{
    static const uint32_t drawn[] = {0, 1, 77, 5};
    open_world();
    uint32_t *positions = op_bytes(&world, sizeof drawn);
    memcpy(op_host(&world, positions), drawn, sizeof drawn);
    rotary_pair pair = {.x = random_matrix("x", 4, 12),
                        .forward = {.x = random_matrix("turned", 4, 12),
                                    .dim = 6,
                                    .theta = 1000.0,
                                    .positions = positions,
                                    .max_positions = 100}};
    output_gradient = random_matrix("dy", 4, 12);
    tdm_rotary_args backward = pair.forward;
    backward.x = random_matrix("dx", 4, 12);
    backward.inverse = true;
    op_world_upload(&world);
    memcpy(op_at(&world, &backward.x, 0, 0), op_at(&world, &output_gradient, 0, 0),
           48 * sizeof(double));
    reference_rotary(&world, &backward);
    check_matrix("x", &pair.x, &backward.x, rotary_loss, &pair);
    close_world();
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
    open_world();
    tdm_bce_args forward = {.logits = random_matrix("logits", 11, 3),
                            .labels = op_floats(&world, "labels", 33, OP_POSITIVE),
                            .weights = op_floats(&world, "weights", 11, OP_POSITIVE),
                            .scalars = world.scalars};
    tdm_bce_args backward = forward;
    backward.dlogits = random_matrix("dlogits", 11, 3);
    op_world_upload(&world);
    tdm_weight_sum_args sum = {.weights = forward.weights, .batch = 11, .scalars = world.scalars};
    reference_weight_sum(&world, &sum);
    reference_bce(&world, &backward);
    check_matrix("logits", &forward.logits, &backward.dlogits, bce_loss, &forward);
    close_world();
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
    open_world();
    uint32_t *labels = op_bytes(&world, sizeof drawn);
    memcpy(op_host(&world, labels), drawn, sizeof drawn);
    tdm_softmax_loss_args forward = {.logits = random_matrix("logits", 4, 5),
                                     .labels = labels,
                                     .weights = op_floats(&world, "weights", 4, OP_POSITIVE),
                                     .loss = 1,
                                     .scalars = world.scalars};
    tdm_softmax_loss_args backward = forward;
    backward.dlogits = random_matrix("dlogits", 4, 5);
    op_world_upload(&world);
    reference_softmax_loss(&world, &backward);
    check_matrix("logits", &forward.logits, &backward.dlogits, softmax_loss, &forward);
    close_world();
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
    open_world();
    tdm_squared_loss_args forward = {.logits = random_matrix("logits", 11, 1),
                                     .labels = op_floats(&world, "labels", 11, OP_RANDOM),
                                     .weights = op_floats(&world, "weights", 11, OP_POSITIVE),
                                     .scalars = world.scalars};
    tdm_squared_loss_args backward = forward;
    backward.dlogits = random_matrix("dlogits", 11, 1);
    op_world_upload(&world);
    reference_squared_loss(&world, &backward);
    check_matrix("logits", &forward.logits, &backward.dlogits, squared_loss, &forward);
    close_world();
}
END_TEST

TDM_CHECK_MAIN(test_gemm_gradients, test_relu_gradients, test_dropout_gradients,
               test_embedding_gradients, test_fm_gradients, test_cross_gradients,
               test_lookup_gradients, test_layer_norm_gradients, test_activation_gradients,
               test_gated_gradients, test_rotary_gradients, test_bce_gradients,
               test_softmax_loss_gradients, test_squared_loss_gradients)
