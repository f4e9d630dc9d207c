/* bench_update: how fast dense parameters are updated, of bert_mini (11 M) and bert_base (110 M),
 * beside what memory gives in the same run: a copy, and the streams of an update without its
 * arithmetic. The best of many rounds; one tensor, as large as all. */
#include "core/memory.h"
#include "core/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TILE 16384

typedef struct world {
    tdm_pool *pool;
    tdm_backend *backend;
    int64_t count;
    int rounds;
    float *values, *gradients, *moment1, *moment2;
    tdm_step_scalars scalars;
} world;

static void need(tdm_status status)
{
    if (status == TDM_OK)
        return;
    fprintf(stderr, "bench_update: %s\n", tdm_error_message());
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int64_t tile_count(const world *w, int64_t index)
{
    int64_t left = w->count - index * TILE;
    return left < TILE ? left : TILE;
}

static void copy_tile(void *context, int64_t index)
{
    const world *w = context;
    memcpy(w->moment1 + index * TILE, w->gradients + index * TILE,
           (size_t)tile_count(w, index) * sizeof(float));
}

/* Reads four streams and writes three of them, as adam does. */
static void stream_tile(void *context, int64_t index)
{
    const world *w = context;
    const float *restrict from = w->gradients + index * TILE;
    float *restrict a = w->values + index * TILE;
    float *restrict b = w->moment1 + index * TILE;
    float *restrict c = w->moment2 + index * TILE;
    int64_t count = tile_count(w, index);
    for (int64_t i = 0; i < count; i++) {
        a[i] += from[i];
        b[i] += from[i];
        c[i] += from[i];
    }
}

static void run_tiles(world *w, void (*tile)(void *context, int64_t index))
{
    tdm_pool_for(w->pool, (w->count + TILE - 1) / TILE, tile, w);
}

static void run_copy(world *w)
{
    run_tiles(w, copy_tile);
}

static void run_streams(world *w)
{
    run_tiles(w, stream_tile);
}

static void run_norm(world *w)
{
    const tdm_dense_norm_args args = {.x = w->gradients, .count = w->count, .scalars = &w->scalars};
    need(w->backend->ops->dense_norm(w->backend, &args, NULL));
}

static void run_update(world *w, tdm_update_type type)
{
    const tdm_dense_update_args args = {
        .rule = {.type = type, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-6f, .l2 = 0.01f},
        .scalars = &w->scalars,
        .values = w->values,
        .gradients = w->gradients,
        .moment1 = w->moment1,
        .moment2 = w->moment2,
        .count = w->count,
    };
    need(w->backend->ops->dense_update(w->backend, &args, NULL));
}

static void run_adamw(world *w)
{
    run_update(w, TDM_UPDATE_ADAMW);
}

static void run_lamb(world *w)
{
    run_update(w, TDM_UPDATE_LAMB);
}

/* Values again as at first: of ordinary size, whatever ran before. */
static void fill(world *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        float value = (float)(i * 7919 % 1000 + 1) / 1000.0f;
        w->values[i] = w->gradients[i] = w->moment1[i] = w->moment2[i] = value;
    }
}

static void measure(world *w, const char *name, int bytes, void (*run)(world *w))
{
    double best = 1e9;
    fill(w);
    for (int round = 0; round < w->rounds; round++) {
        double start = seconds();
        run(w);
        double time = seconds() - start;
        best = time < best ? time : best;
    }
    printf("  %-28s %8.2f ms  %6.2f GB/s of %d bytes a parameter\n", name, 1e3 * best,
           1e-9 * (double)bytes * (double)w->count / best, bytes);
}

static void measure_all(world *w, int threads)
{
    need(tdm_pool_create(threads, &w->pool));
    need(tdm_cpu_create(w->pool, &w->backend));
    printf(" %lld million parameters, %d thread%s\n", (long long)(w->count / 1000000), threads,
           threads == 1 ? "" : "s");
    measure(w, "copy", 8, run_copy);
    measure(w, "streams of adamw", 28, run_streams);
    measure(w, "dense_update adamw", 28, run_adamw);
    measure(w, "dense_update lamb", 40, run_lamb);
    measure(w, "dense_norm", 4, run_norm);
    tdm_backend_destroy(w->backend);
    tdm_pool_destroy(w->pool);
}

int main(void)
{
    static const struct {
        int64_t count;
        int rounds;
    } sizes[] = {{11171642, 30}, {109514298, 7}};
    for (int s = 0; s < 2; s++) {
        world w = {.count = sizes[s].count, .rounds = sizes[s].rounds};
        w.scalars = (tdm_step_scalars){
            .step = 10, .dense_learning_rate = 1e-6, .loss_scale = 1.0, .gradient_scale = 1.0};
        float **slabs[] = {&w.values, &w.gradients, &w.moment1, &w.moment2};
        for (int i = 0; i < 4; i++)
            need(tdm_alloc((size_t)w.count, sizeof(float), slabs[i]));
        for (int threads = 1; threads <= 2; threads++)
            measure_all(&w, threads);
        for (int i = 0; i < 4; i++)
            tdm_free(*slabs[i]);
    }
    return 0;
}
