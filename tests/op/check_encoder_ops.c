/* What the comparison of whole tensors in check_ops.c does not tell of the encoder's ops: single
 * elements, far positions, and sums as long as those of a vocabulary or a batch. On every table of
 * kernels that this machine runs. */
#include "core/memory.h"
#include "cpu/backend_cpu.h"
#include "tests/support/check_main.h"

#include <math.h>

static const char *const kernel_names[] = {"baseline", "avx2", "avx512"};
#define KERNEL_NAMES 3

static tdm_pool *pool;
static tdm_backend *backend;

static void open_backend(void)
{
    ck_assert_ok(tdm_pool_create(3, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
}

static void close_backend(void)
{
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}

/* False where this machine does not run table `k` of kernels. */
static bool use_kernels(int k)
{
    return tdm_cpu_use_kernels(backend, kernel_names[k]) == TDM_OK;
}

/* ck_assert talks to the parent process even where all is well: too slow for every element. */
#define NEAR(got, want, bound, ...)                                                                \
    do {                                                                                           \
        if (!(fabs((got) - (want)) <= (bound)))                                                    \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

static tdm_matrix matrix_of(float *data, int64_t rows, int64_t columns)
{
    return (tdm_matrix){.data = data, .rows = rows, .columns = columns, .stride = columns};
}

/* ---- activations ----------------------------------------------------------------------------- */

/* From -12 to 12, and where the small ones are all that is left. */
#define NUMBERS 24001

static float number(int64_t i)
{
    return i % 10 == 9 ? ldexpf(i % 20 == 9 ? 1.3f : -1.3f, -(int)(i % 100))
                       : (float)(i - NUMBERS / 2) / 1000.0f;
}

static double gelu(double x)
{
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double gelu_slope(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) / sqrt(2.0 * M_PI);
}

static double gelu_tanh(double x)
{
    return x / (1.0 + exp(-2.0 * sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_tanh_slope(double x)
{
    double s = gelu_tanh(x) / x;
    return s + x * s * (1.0 - s) * 2.0 * sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
}

static void check_activation(tdm_activation activation, double (*value)(double),
                             double (*slope)(double), const char *kernels)
{
    static float x[2 * NUMBERS], y[NUMBERS], dx[NUMBERS], ones[NUMBERS];
    for (int64_t i = 0; i < NUMBERS; i++) {
        x[i] = number(i);
        x[NUMBERS + i] = ones[i] = 1.0f;
    }
    tdm_gated_fwd_args forward = {
        .activation = activation, .x = matrix_of(x, 1, 2 * NUMBERS), .y = matrix_of(y, 1, NUMBERS)};
    tdm_activation_bwd_args backward = {.activation = activation,
                                        .x = matrix_of(x, 1, NUMBERS),
                                        .dy = matrix_of(ones, 1, NUMBERS),
                                        .dx = matrix_of(dx, 1, NUMBERS)};
    ck_assert_ok(backend->ops->gated_fwd(backend, &forward, NULL));
    ck_assert_ok(backend->ops->activation_bwd(backend, &backward, NULL));
    for (int64_t i = 0; i < NUMBERS; i++) {
        double own = (double)x[i], want = value(own);
        NEAR((double)y[i], want, 3e-7 * fabs(own), "%s: f(%g) is %g instead of %g", kernels, own,
             (double)y[i], want);
        if (own < 0.0 && own > -6.0)
            NEAR((double)y[i], want, 1e-5 * fabs(want), "%s: f(%g) is %g instead of %g", kernels,
                 own, (double)y[i], want);
        NEAR((double)dx[i], own == 0.0 ? 0.5 : slope(own), 4e-7, "%s: f'(%g) is %g instead of %g",
             kernels, own, (double)dx[i], slope(own));
    }
}

START_TEST(test_gelu_of_single_numbers)
{
    open_backend();
    for (int k = 0; k < KERNEL_NAMES; k++) {
        const char *name = kernel_names[k];
        if (!use_kernels(k))
            continue;
        check_activation(TDM_ACTIVATION_GELU, gelu, gelu_slope, name);
        check_activation(TDM_ACTIVATION_GELU_TANH, gelu_tanh, gelu_tanh_slope, name);
    }
    close_backend();
}
END_TEST

/* ---- rotary positions ------------------------------------------------------------------------ */

#define DIM 64

/* (1, 0) turned is the cosine and the sine. */
START_TEST(test_rotary_far_positions)
{
    static const uint32_t positions[] = {0, 1, 63, 64, 511, 512, 4095, 8191, 65535};
    enum { ROWS = sizeof positions / sizeof positions[0] };
    static float x[ROWS * DIM];
    open_backend();
    for (int k = 0; k < KERNEL_NAMES; k++) {
        const char *name = kernel_names[k];
        if (!use_kernels(k))
            continue;
        for (int i = 0; i < ROWS * DIM; i++)
            x[i] = i % DIM < DIM / 2 ? 1.0f : 0.0f;
        tdm_rotary_args args = {.x = matrix_of(x, ROWS, DIM),
                                .dim = DIM,
                                .theta = 160000.0,
                                .positions = positions,
                                .max_positions = 65536};
        ck_assert_ok(backend->ops->rotary(backend, &args, NULL));
        for (int i = 0; i < ROWS * DIM / 2; i++) {
            int row = i / (DIM / 2), d = i % (DIM / 2);
            double angle = positions[row] * pow(args.theta, -2.0 * d / DIM);
            NEAR((double)x[row * DIM + d], cos(angle), 1e-7, "%s: cosine %d of position %u", name,
                 d, positions[row]);
            NEAR((double)x[row * DIM + DIM / 2 + d], sin(angle), 1e-7, "%s: sine %d of position %u",
                 name, d, positions[row]);
        }
    }
    close_backend();
}
END_TEST

/* ---- sums ------------------------------------------------------------------------------------ */

#define TOKENS 16384

/* Nearly all tokens have one of two types: sums that lose what is small would be off by much
 * more. */
START_TEST(test_sums_of_many_rows)
{
    static float dout[TOKENS * 3], gradient[2 * 3];
    static uint32_t ids[TOKENS];
    open_backend();
    for (int k = 0; k < KERNEL_NAMES; k++) {
        const char *name = kernel_names[k];
        if (!use_kernels(k))
            continue;
        double want[2 * 3] = {0};
        for (int64_t i = 0; i < TOKENS * 3; i++) {
            ids[i / 3] = i / 3 % 8 == 7;
            dout[i] = 1.0f + (float)(i * 7919 % 1000) / 3000.0f;
            want[ids[i / 3] * 3 + i % 3] += (double)dout[i];
        }
        for (int i = 0; i < 6; i++)
            gradient[i] = 0.0f;
        tdm_lookup_bwd_args args = {.dout = matrix_of(dout, TOKENS, 3),
                                    .ids = ids,
                                    .table_gradient = matrix_of(gradient, 2, 3)};
        ck_assert_ok(backend->ops->lookup_bwd(backend, &args, NULL));
        for (int i = 0; i < 6; i++)
            NEAR((double)gradient[i], want[i], 5e-7 * want[i], "%s: %.9g instead of %.9g", name,
                 (double)gradient[i], want[i]);
    }
    close_backend();
}
END_TEST

#define CLASSES 30522

/* Logits that are nearly equal: the sum has as many terms of one size as there are. */
START_TEST(test_softmax_of_a_vocabulary)
{
    static float logits[CLASSES], gradients[CLASSES];
    static const uint32_t label = CLASSES - 1;
    double sum = 0.0;
    for (int64_t c = 0; c < CLASSES; c++) {
        logits[c] = 20.0f + (float)(c * 7919 % 1000) / 2000.0f;
        sum += exp((double)logits[c]);
    }
    open_backend();
    for (int k = 0; k < KERNEL_NAMES; k++) {
        const char *name = kernel_names[k];
        if (!use_kernels(k))
            continue;
        tdm_step_scalars scalars = {.loss_scale = 1.0, .losses[1].weight_sum = 1.0};
        tdm_softmax_loss_args args = {.logits = matrix_of(logits, 1, CLASSES),
                                      .labels = &label,
                                      .dlogits = matrix_of(gradients, 1, CLASSES),
                                      .loss = 1,
                                      .scalars = &scalars};
        ck_assert_ok(backend->ops->softmax_loss(backend, &args, NULL));
        NEAR(scalars.losses[1].loss_sum, log(sum) - (double)logits[label], 1e-6, "%s: loss %.9g",
             name, scalars.losses[1].loss_sum);
        for (int64_t c = 0; c < CLASSES; c++) {
            double want = exp((double)logits[c]) / sum - (c == label ? 1.0 : 0.0);
            NEAR((double)gradients[c], want, 1e-6 * fabs(want), "%s: gradient %lld is %g", name,
                 (long long)c, (double)gradients[c]);
        }
    }
    close_backend();
}
END_TEST

TDM_CHECK_MAIN(test_gelu_of_single_numbers, test_rotary_far_positions, test_sums_of_many_rows,
               test_softmax_of_a_vocabulary)
