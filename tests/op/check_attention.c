/* What the cases in check_ops.c do not tell of attention: products in bfloat16, that a sequence
 * does not feel its neighbours, and that memory does not grow with the length. */
#include "core/memory.h"
#include "cpu/backend_cpu.h"
#include "tests/op/op_cases.h"
#include "tests/op/reference_ops.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <string.h>

static tdm_pool *pool;
static tdm_backend *backend;

static void open_backend(int threads)
{
    ck_assert_ok(tdm_pool_create(threads, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
}

static void close_backend(void)
{
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}

/* ---- bfloat16 -------------------------------------------------------------------------------- */

typedef struct both_args {
    bool backward;
    tdm_attention_fwd_args fwd;
    tdm_attention_bwd_args bwd;
} both_args;

static bool make_case(op_world *world, int n, both_args *args)
{
    args->fwd = (tdm_attention_fwd_args){0};
    op_world_reset(world, (uint64_t)n);
    if (!(args->backward ? case_attention_bwd(world, n, &args->bwd)
                         : case_attention_fwd(world, n, &args->fwd)))
        return false;
    args->fwd.compute = args->bwd.compute = TDM_BF16;
    op_world_upload(world);
    return true;
}

/* ‖got − want‖₂ ≤ 5e-3 ‖want‖₂; where a sum cancels, of its terms. */
static void compare_rounded(const op_world *world, const char *name, int n, const float *values,
                            int64_t count)
{
    const float *got = op_host(world, values);
    const double *want = op_value(world, values), *magnitudes = op_magnitude(world, values);
    double error = 0.0, size = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double magnitude = magnitudes[i] > 0.0 ? magnitudes[i] : fabs(want[i]);
        if (isnan(want[i]))
            continue;
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        size += magnitude * magnitude;
    }
    if (!(sqrt(error) <= 5e-3 * sqrt(size)))
        ck_abort_msg("case %d: %s is off by %g of %g", n, name, sqrt(error), sqrt(size));
}

static void compare_with_reference(op_world *world, int n, const both_args *args)
{
    const tdm_matrix *out = &args->fwd.out, *dqkv = &args->bwd.dqkv;
    if (args->backward) {
        reference_attention_bwd(world, &args->bwd);
        compare_rounded(world, "dqkv", n, dqkv->data, dqkv->rows * dqkv->stride);
        return;
    }
    reference_attention_fwd(world, &args->fwd);
    compare_rounded(world, "out", n, out->data, out->rows * out->stride);
    if (args->fwd.log_sums != NULL)
        compare_rounded(world, "log_sums", n, args->fwd.log_sums, out->rows * args->fwd.heads);
}

/* On one thread and on five: the same bits, near to the reference. */
static void check_rounded(bool backward)
{
    static const int threads[] = {1, 5};
    tdm_pool *pools[2];
    tdm_backend *backends[2];
    op_world world;
    unsigned char *first;
    for (int i = 0; i < 2; i++) {
        ck_assert_ok(tdm_pool_create(threads[i], &pools[i]));
        ck_assert_ok(tdm_cpu_create(pools[i], &backends[i]));
    }
    op_world_create(backends[0], (size_t)8 << 20, &world);
    ck_assert_ok(tdm_alloc(world.capacity, 1, &first));
    both_args args = {.backward = backward};
    bool supported = tdm_cpu(backends[0])->bf16;
    for (int n = 0; supported && make_case(&world, n, &args); n++) {
        for (int i = 0; i < 2; i++) {
            op_world_restart(&world, backends[i]);
            const tdm_ops *ops = backends[i]->ops;
            ck_assert_ok(backward ? ops->attention_bwd(backends[i], &args.bwd, NULL)
                                  : ops->attention_fwd(backends[i], &args.fwd, NULL));
            op_world_download(&world);
            if (i == 0)
                memcpy(first, world.host, world.used);
        }
        ck_assert_msg(memcmp(first, world.host, world.used) == 0, "case %d: other bits", n);
        compare_with_reference(&world, n, &args);
    }
    tdm_free(first);
    op_world_destroy(&world);
    for (int i = 0; i < 2; i++) {
        tdm_backend_destroy(backends[i]);
        tdm_pool_destroy(pools[i]);
    }
    if (!supported)
        tdm_test_skip("this CPU has no products in bf16");
}

START_TEST(test_bf16_forward)
{
    check_rounded(false);
}
END_TEST

START_TEST(test_bf16_backward)
{
    check_rounded(true);
}
END_TEST

/* ---- batches of our own ---------------------------------------------------------------------- */

#define HEADS   3
#define DIM     24
#define COLUMNS (HEADS * DIM)

typedef struct batch {
    int64_t tokens;
    tdm_matrix qkv, out, dout, dqkv;
    float *log_sums;
    tdm_sequence_spans spans;
    tdm_dropout_draws dropout;
    int64_t window;
    tdm_dtype compute;
} batch;

static const uint64_t samples[] = {77, 1234567890123456789u, 5};
static const tdm_step_scalars scalars = {.epoch = 3};

static tdm_matrix make_matrix(int64_t rows, int64_t columns)
{
    tdm_matrix matrix = {.rows = rows, .columns = columns, .stride = columns};
    ck_assert_ok(tdm_alloc((size_t)(rows * columns), sizeof(float), &matrix.data));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)matrix.data)[i] =
            tdm_uniform(tdm_random((tdm_philox_key){{1, 2}}, (uint64_t)columns, 0, (uint32_t)i)) *
                4.0f -
            2.0f;
    return matrix;
}

static batch make_batch(int64_t tokens, int64_t max_length)
{
    batch made = {.tokens = tokens,
                  .qkv = make_matrix(tokens, 3 * COLUMNS),
                  .out = make_matrix(tokens, COLUMNS),
                  .dout = make_matrix(tokens, COLUMNS),
                  .dqkv = make_matrix(tokens, 3 * COLUMNS),
                  .dropout = {.rate = 0.2f, .samples = samples, .scalars = &scalars},
                  .spans = {.max_length = max_length},
                  .window = -1};
    ck_assert_ok(tdm_alloc((size_t)(tokens * HEADS), sizeof(float), &made.log_sums));
    return made;
}

static void free_batch(batch *made)
{
    tdm_free(made->qkv.data);
    tdm_free(made->out.data);
    tdm_free(made->dout.data);
    tdm_free(made->dqkv.data);
    tdm_free(made->log_sums);
}

static tdm_attention_fwd_args forward_args(const batch *of)
{
    return (tdm_attention_fwd_args){.qkv = of->qkv,
                                    .heads = HEADS,
                                    .window = of->window,
                                    .scale = 0.3f,
                                    .dropout = of->dropout,
                                    .spans = of->spans,
                                    .compute = of->compute,
                                    .out = of->out,
                                    .log_sums = of->log_sums};
}

static tdm_attention_bwd_args backward_args(const batch *of)
{
    return (tdm_attention_bwd_args){.qkv = of->qkv,
                                    .out = of->out,
                                    .dout = of->dout,
                                    .heads = HEADS,
                                    .window = of->window,
                                    .scale = 0.3f,
                                    .dropout = of->dropout,
                                    .spans = of->spans,
                                    .compute = of->compute,
                                    .log_sums = of->log_sums,
                                    .dqkv = of->dqkv};
}

static void run_batch(const batch *of)
{
    tdm_attention_fwd_args forward = forward_args(of);
    tdm_attention_bwd_args backward = backward_args(of);
    ck_assert_ok(backend->ops->attention_fwd(backend, &forward, NULL));
    ck_assert_ok(backend->ops->attention_bwd(backend, &backward, NULL));
}

/* ---- neighbours ------------------------------------------------------------------------------ */

static void copy_tokens(const tdm_matrix *from, int64_t first, int64_t count, tdm_matrix *to,
                        int64_t at)
{
    memcpy((float *)to->data + at * to->stride, (const float *)from->data + first * from->stride,
           (size_t)(count * from->stride) * sizeof(float));
}

static void assert_same_tokens(const char *name, const tdm_matrix *a, int64_t a_first,
                               const tdm_matrix *b, int64_t b_first, int64_t count)
{
    ck_assert_msg(memcmp((const float *)a->data + a_first * a->stride,
                         (const float *)b->data + b_first * b->stride,
                         (size_t)(count * a->stride) * sizeof(float)) == 0,
                  "%s of a sequence of %lld differs among other neighbours", name,
                  (long long)count);
}

/* A sequence alone and second in `many`, where it begins at token `first`. */
static void check_alone(const batch *many, int64_t first, int64_t length)
{
    batch alone = make_batch(length, many->spans.max_length);
    int32_t cu_seqlens[] = {0, (int32_t)length};
    alone.spans.cu_seqlens = cu_seqlens;
    alone.spans.batch = 1;
    alone.dropout.samples = samples + 1;
    alone.window = many->window;
    alone.compute = many->compute;
    copy_tokens(&many->qkv, first, length, &alone.qkv, 0);
    copy_tokens(&many->dout, first, length, &alone.dout, 0);
    run_batch(&alone);
    assert_same_tokens("out", &many->out, first, &alone.out, 0, length);
    assert_same_tokens("dqkv", &many->dqkv, first, &alone.dqkv, 0, length);
    ck_assert_mem_eq(many->log_sums + first * HEADS, alone.log_sums,
                     (size_t)(length * HEADS) * sizeof(float));
    free_batch(&alone);
}

static void check_neighbours(int64_t length, int64_t window, tdm_dtype compute)
{
    const int64_t before = 70, behind = 33, stride = length + 9;
    batch packed = make_batch(before + length + behind, 700);
    int32_t cu_seqlens[] = {0, (int32_t)before, (int32_t)(before + length),
                            (int32_t)(before + length + behind)};
    packed.spans.cu_seqlens = cu_seqlens;
    packed.spans.batch = 3;
    packed.window = window;
    packed.compute = compute;
    run_batch(&packed);
    check_alone(&packed, before, length);
    free_batch(&packed);

    batch padded = make_batch(3 * stride, 700);
    int32_t lengths[] = {1, (int32_t)length, 0};
    padded.spans.lengths = lengths;
    padded.spans.stride = stride;
    padded.spans.batch = 3;
    padded.window = window;
    padded.compute = compute;
    run_batch(&padded);
    check_alone(&padded, stride, length);
    free_batch(&padded);
}

START_TEST(test_neighbours_are_not_felt)
{
    static const char *const names[] = {"baseline", "avx2", "avx512"};
    static const int64_t lengths[] = {1, 2, 17, 128, 300, 513, 700};
    open_backend(2);
    for (int k = 0; k < 3; k++) {
        if (tdm_cpu_use_kernels(backend, names[k]) != TDM_OK)
            continue;
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            check_neighbours(lengths[i], -1, TDM_F32);
            check_neighbours(lengths[i], 64, TDM_F32);
            if (tdm_cpu(backend)->bf16)
                check_neighbours(lengths[i], -1, TDM_BF16);
        }
    }
    close_backend();
}
END_TEST

#define MANY 110

/* So many sequences and heads that a tile takes two heads, and the last one of a sequence one. */
static void check_many(tdm_dtype compute)
{
    static uint64_t many_samples[MANY];
    int32_t cu_seqlens[MANY + 1] = {0};
    for (int i = 0; i < MANY; i++) {
        many_samples[i] = samples[1];
        cu_seqlens[i + 1] = cu_seqlens[i] + 1 + i % 7 * 5;
    }
    batch many = make_batch(cu_seqlens[MANY], 700);
    many.spans.cu_seqlens = cu_seqlens;
    many.spans.batch = MANY;
    many.dropout.samples = many_samples;
    many.compute = compute;
    run_batch(&many);
    for (int i = 0; i < MANY; i++)
        check_alone(&many, cu_seqlens[i], cu_seqlens[i + 1] - cu_seqlens[i]);
    free_batch(&many);
}

START_TEST(test_many_sequences)
{
    open_backend(3);
    check_many(TDM_F32);
    if (tdm_cpu(backend)->bf16)
        check_many(TDM_BF16);
    close_backend();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t scratch_of(int64_t length, int64_t window)
{
    batch one = make_batch(length, length);
    int32_t cu_seqlens[] = {0, (int32_t)length};
    one.spans.cu_seqlens = cu_seqlens;
    one.spans.batch = 1;
    one.window = window;
    open_backend(2);
    run_batch(&one);
    int64_t before = tdm_memory_stats_get().allocations;
    run_batch(&one);
    ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
    size_t bytes = tdm_cpu(backend)->scratch_bytes;
    close_backend();
    free_batch(&one);
    return bytes;
}

START_TEST(test_memory_does_not_grow_with_the_length)
{
    ck_assert_uint_lt(scratch_of(16, -1), scratch_of(512, -1) / 8);
    ck_assert_uint_eq(scratch_of(2048, -1), scratch_of(512, -1));
    ck_assert_uint_eq(scratch_of(2048, 64), scratch_of(512, -1));
}
END_TEST

START_TEST(test_out_of_memory)
{
    batch one = make_batch(20, 20);
    int32_t cu_seqlens[] = {0, 20};
    one.spans.cu_seqlens = cu_seqlens;
    one.spans.batch = 1;
    tdm_attention_fwd_args forward = forward_args(&one);
    tdm_attention_bwd_args backward = backward_args(&one);
    open_backend(1);
    tdm_memory_fail_at(1, true);
    ck_assert_fails(backend->ops->attention_fwd(backend, &forward, NULL), TDM_E_NOMEM, "memory");
    ck_assert_fails(backend->ops->attention_bwd(backend, &backward, NULL), TDM_E_NOMEM, "memory");
    tdm_memory_fail_at(0, false);
    run_batch(&one);
    close_backend();
    free_batch(&one);
}
END_TEST

/* ---- refused --------------------------------------------------------------------------------- */

START_TEST(test_other_types_are_refused)
{
    batch one = make_batch(4, 4);
    open_backend(1);
    tdm_attention_fwd_args forward = forward_args(&one);
    tdm_attention_bwd_args backward = backward_args(&one);
    forward.compute = backward.compute = TDM_F16;
    ck_assert_fails(backend->ops->attention_fwd(backend, &forward, NULL), TDM_E_UNSUPPORTED, "F16");
    ck_assert_fails(backend->ops->attention_bwd(backend, &backward, NULL), TDM_E_UNSUPPORTED,
                    "F16");
    forward.compute = backward.compute = TDM_BF16;
    tdm_cpu(backend)->bf16 = false;
    ck_assert_fails(backend->ops->attention_fwd(backend, &forward, NULL), TDM_E_UNSUPPORTED,
                    "fp32");
    ck_assert_fails(backend->ops->attention_bwd(backend, &backward, NULL), TDM_E_UNSUPPORTED,
                    "fp32");
    forward.compute = backward.compute = TDM_F32;
    forward.out.dtype = backward.dqkv.dtype = TDM_BF16;
    ck_assert_fails(backend->ops->attention_fwd(backend, &forward, NULL), TDM_E_UNSUPPORTED,
                    "attention_fwd");
    ck_assert_fails(backend->ops->attention_bwd(backend, &backward, NULL), TDM_E_UNSUPPORTED,
                    "attention_bwd");
    close_backend();
    free_batch(&one);
}
END_TEST

TDM_CHECK_MAIN(test_bf16_forward, test_bf16_backward, test_neighbours_are_not_felt,
               test_many_sequences, test_memory_does_not_grow_with_the_length, test_out_of_memory,
               test_other_types_are_refused)
