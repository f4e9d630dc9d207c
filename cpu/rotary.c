/* Rotary positions. cos and sin of a position are those of a multiple of STEP and of what is left,
 * put together in double; both tables are made anew in every call, by turning. */
#include "cpu/backend_cpu.h"

#include <math.h>
#include <string.h>

#define STEP 64

typedef struct rotary_job {
    const tdm_kernels *kernels;
    const tdm_rotary_args *args;
    int64_t rows, tile_rows, half;
    double *fine;   /* [STEP, 2, half]: cosines, sines of positions below STEP */
    double *coarse; /* [steps, 2, half]: of multiples of STEP */
} rotary_job;

/* table[i] is i times as far as `turn`. */
static void fill_table(int64_t half, const double *turn, int64_t count, double *table)
{
    for (int64_t d = 0; d < half; d++) {
        table[d] = 1.0;
        table[half + d] = 0.0;
    }
    for (int64_t i = 1; i < count; i++) {
        const double *before = table + (i - 1) * 2 * half;
        double *to = table + i * 2 * half;
        for (int64_t d = 0; d < half; d++) {
            to[d] = before[d] * turn[d] - before[half + d] * turn[half + d];
            to[half + d] = before[half + d] * turn[d] + before[d] * turn[half + d];
        }
    }
}

static void rotary_tile(void *context, int64_t index)
{
    const rotary_job *job = context;
    const tdm_rotary_args *args = job->args;
    int64_t end = tdm_cpu_min(job->rows, (index + 1) * job->tile_rows), entry = 2 * job->half;
    for (int64_t r = index * job->tile_rows; r < end; r++) {
        int64_t position = args->positions[r];
        job->kernels->encoder->rotary(
            job->half, args->x.columns / args->dim, job->coarse + position / STEP * entry,
            job->fine + position % STEP * entry, args->inverse, tdm_cpu_row(&args->x, r));
    }
}

tdm_status tdm_cpu_rotary(tdm_backend *backend, const tdm_rotary_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("rotary", args->x);
    TDM_FAIL_IF(args->dim < 2 || args->dim % 2 != 0 || args->x.columns % args->dim != 0, TDM_E_ARG,
                "the op rotary turns groups of an even number of columns, not %lld of %lld",
                (long long)args->dim, (long long)args->x.columns);
    rotary_job job = {.kernels = tdm_cpu(backend)->kernels,
                      .args = args,
                      .rows = tdm_cpu_rows(args->rows, args->x.rows),
                      .tile_rows = tdm_cpu_tile_rows(args->x.columns),
                      .half = args->dim / 2};
    int64_t steps = tdm_cpu_tiles(args->max_positions, STEP), entry = 2 * job.half;
    double *turns;
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)((2 + STEP + steps) * entry) * sizeof(double),
                            &turns));
    job.fine = turns + 2 * entry;
    job.coarse = job.fine + STEP * entry;
    for (int64_t d = 0; d < job.half; d++) {
        double angle = pow(args->theta, -2.0 * (double)d / (double)args->dim);
        turns[d] = cos(angle);
        turns[job.half + d] = sin(angle);
        turns[entry + d] = cos(STEP * angle);
        turns[entry + job.half + d] = sin(STEP * angle);
    }
    fill_table(job.half, turns, STEP, job.fine);
    fill_table(job.half, turns + entry, steps, job.coarse);
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job.rows, job.tile_rows), rotary_tile, &job);
    return TDM_OK;
}
