/* bench_attention [THREADS]: GFLOP/s of attention, heads of 64, beside the rate of a large product.
 * A product of n × n × 64 a head counts 2 n² 64 operations, with a window of w on both sides n (2 w
 * + 1) in the place of n²; the forward has two, the backward five. Rounds of attention and of the
 * large product alternate, and the best of each counts. */
#include "core/memory.h"
#include "core/ops.h"
#include "cpu/onednn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TOKENS 4096
#define HEADS  4
#define DIM    64
#define LARGE  1024 /* rows, columns and depth of the large product */
#define ROUNDS 12

typedef struct world {
    tdm_backend *backend;
    int threads;
    tdm_matrix qkv, out, dout, dqkv, large[3];
    float *log_sums;
    int32_t *cu_seqlens;
    uint64_t *samples;
    tdm_step_scalars scalars;
} world;

static void need(tdm_status status)
{
    if (status == TDM_OK)
        return;
    fprintf(stderr, "bench_attention: %s\n", tdm_error_message());
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tdm_matrix make_matrix(int64_t rows, int64_t columns)
{
    tdm_matrix matrix = {.rows = rows, .columns = columns, .stride = columns};
    need(tdm_alloc((size_t)(rows * columns), sizeof(float), &matrix.data));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)matrix.data)[i] = (float)(i * 7919 % 1000) / 500.0f - 1.0f;
    return matrix;
}

/* Lowers *best to the time since `start`. */
static void keep_best(double start, double *best)
{
    double time = seconds() - start;
    *best = time < *best ? time : *best;
}

typedef struct times {
    double forward, backward, large;
} times;

typedef struct attention_shape {
    int64_t length, window;
} attention_shape;

static times run(world *w, const attention_shape *shape, tdm_dtype compute, float rate)
{
    int64_t length = shape->length;
    int64_t sequences = TOKENS / length;
    for (int64_t i = 0; i <= sequences; i++)
        w->cu_seqlens[i] = (int32_t)(i * length);
    tdm_attention_fwd_args forward = {
        .qkv = w->qkv,
        .heads = HEADS,
        .window = shape->window,
        .scale = 1.0f / sqrtf(DIM),
        .dropout = {.rate = rate, .samples = w->samples, .scalars = &w->scalars},
        .spans = {.cu_seqlens = w->cu_seqlens, .batch = sequences, .max_length = length},
        .compute = compute,
        .out = w->out,
        .log_sums = w->log_sums};
    tdm_attention_bwd_args backward = {.qkv = w->qkv,
                                       .out = w->out,
                                       .dout = w->dout,
                                       .heads = HEADS,
                                       .window = shape->window,
                                       .scale = forward.scale,
                                       .dropout = forward.dropout,
                                       .spans = forward.spans,
                                       .compute = compute,
                                       .log_sums = w->log_sums,
                                       .dqkv = w->dqkv};
    tdm_gemm_args large = {
        .a = w->large[0], .b = w->large[1], .c = w->large[2], .compute = compute};
    times best = {1e9, 1e9, 1e9};
    for (int round = 0; round < ROUNDS; round++) {
        double start = seconds();
        need(w->backend->ops->attention_fwd(w->backend, &forward, NULL));
        keep_best(start, &best.forward);
        start = seconds();
        need(w->backend->ops->attention_bwd(w->backend, &backward, NULL));
        keep_best(start, &best.backward);
        start = seconds();
        need(compute == TDM_F32 ? tdm_onednn_gemm_own_threading(&large, w->threads)
                                : w->backend->ops->gemm(w->backend, &large, NULL));
        keep_best(start, &best.large);
    }
    return best;
}

static void print_times(world *w, const attention_shape *shape, tdm_dtype compute, float rate)
{
    times best = run(w, shape, compute, rate);
    int64_t keys = shape->window < 0 ? shape->length : 2 * shape->window + 1;
    double product = 2e-9 * TOKENS * (double)keys * HEADS * DIM;
    double large = 2e-9 * LARGE * LARGE * LARGE / best.large;
    double forward = 2.0 * product / best.forward, backward = 5.0 * product / best.backward;
    printf("%6lld %6lld %5s %8.1f %9.1f %6.0f %% %9.1f %6.0f %% %9.1f\n", (long long)shape->length,
           (long long)shape->window, tdm_dtype_name(compute), (double)rate, forward,
           100.0 * forward / large, backward, 100.0 * backward / large, large);
}

static void make_world(world *w)
{
    need(tdm_alloc(TOKENS + 1, sizeof(int32_t), &w->cu_seqlens));
    need(tdm_alloc(TOKENS, sizeof(uint64_t), &w->samples));
    need(tdm_alloc((size_t)TOKENS * HEADS, sizeof(float), &w->log_sums));
    w->qkv = make_matrix(TOKENS, 3 * HEADS * DIM);
    w->dqkv = make_matrix(TOKENS, 3 * HEADS * DIM);
    w->out = make_matrix(TOKENS, HEADS * DIM);
    w->dout = make_matrix(TOKENS, HEADS * DIM);
    for (int i = 0; i < 3; i++)
        w->large[i] = make_matrix(LARGE, LARGE);
}

int main(int argc, char **argv)
{
    static const attention_shape shapes[] = {
        {64, -1}, {128, -1}, {512, -1}, {2048, -1}, {2048, 64}};
    static const tdm_dtype types[] = {TDM_F32, TDM_BF16};
    world w = {.threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1};
    tdm_pool *pool;
    need(tdm_pool_create(w.threads, &pool));
    need(tdm_cpu_create(pool, &w.backend));
    make_world(&w);
    printf("%6s %6s %5s %8s %9s %8s %9s %8s %9s\n", "length", "window", "", "dropout", "forward",
           "", "backward", "", "large");
    for (int t = 0; t < 2; t++) {
        for (int l = 0; l < 5; l++) {
            print_times(&w, &shapes[l], types[t], 0.0f);
            print_times(&w, &shapes[l], types[t], 0.1f);
        }
    }
    tdm_backend_destroy(w.backend);
    tdm_pool_destroy(pool);
    return 0;
}
