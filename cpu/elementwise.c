/* Ops on the elements of matrices of [batch, columns], and their sums over rows. */
#include "cpu/backend_cpu.h"

#include <math.h>
#include <string.h>

/* Rows of a sum over rows: each tile sums its own, then the sums are added in order. */
#define SUM_TILE_ROWS    128
#define SUM_TILE_COLUMNS 1024

typedef struct add_job {
    const tdm_kernels *kernels;
    const tdm_add_args *args;
    int64_t rows, tile_rows;
} add_job;

static void add_tile(void *context, int64_t index)
{
    const add_job *job = context;
    const tdm_matrix *x = &job->args->x, *y = &job->args->y;
    int64_t end = tdm_cpu_min(job->rows, (index + 1) * job->tile_rows);
    for (int64_t r = index * job->tile_rows; r < end; r++) {
        if (job->args->accumulate)
            job->kernels->add(x->columns, tdm_cpu_row(x, r), tdm_cpu_row(y, r));
        else
            memcpy(tdm_cpu_row(y, r), tdm_cpu_row(x, r), (size_t)x->columns * sizeof(float));
    }
}

tdm_status tdm_cpu_add(tdm_backend *backend, const tdm_add_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("add", args->x, args->y);
    add_job job = {.kernels = tdm_cpu(backend)->kernels,
                   .args = args,
                   .rows = tdm_cpu_rows(args->rows, args->x.rows),
                   .tile_rows = tdm_cpu_tile_rows(args->x.columns)};
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job.rows, job.tile_rows), add_tile, &job);
    return TDM_OK;
}

/* ---- dropout --------------------------------------------------------------------------------- */

tdm_dropout_row tdm_cpu_dropout_row(const tdm_dropout_draws *draws)
{
    /* tdm_uniform(word) >= rate, in whole numbers: both sides times 2^24 are exact in double */
    double threshold = ceil((double)draws->rate * 0x1p24);
    return (tdm_dropout_row){.key = draws->key,
                             .epoch = (uint32_t)draws->scalars->epoch,
                             .threshold = (uint32_t)threshold,
                             .scale = 1.0f / (1.0f - draws->rate)};
}

typedef struct dropout_job {
    const tdm_kernels *kernels;
    const tdm_dropout_args *args;
    tdm_dropout_row draws; /* but for the sample */
    int64_t rows, tile_rows;
} dropout_job;

static void dropout_tile(void *context, int64_t index)
{
    const dropout_job *job = context;
    const tdm_dropout_args *args = job->args;
    tdm_dropout_row draws = job->draws;
    int64_t end = tdm_cpu_min(job->rows, (index + 1) * job->tile_rows);
    for (int64_t r = index * job->tile_rows; r < end; r++) {
        draws.sample = args->draws.samples[r];
        job->kernels->dropout(args->x.columns, &draws, tdm_cpu_row(&args->x, r),
                              tdm_cpu_row(&args->y, r));
    }
}

tdm_status tdm_cpu_dropout(tdm_backend *backend, const tdm_dropout_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("dropout", args->x, args->y);
    dropout_job job = {.kernels = tdm_cpu(backend)->kernels,
                       .args = args,
                       .draws = tdm_cpu_dropout_row(&args->draws),
                       .rows = tdm_cpu_rows(args->rows, args->x.rows),
                       .tile_rows = tdm_cpu_tile_rows(args->x.columns)};
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job.rows, job.tile_rows), dropout_tile, &job);
    return TDM_OK;
}

/* ---- sums over rows -------------------------------------------------------------------------- */

typedef struct sum_job {
    const tdm_kernels *kernels;
    const tdm_matrix *x;
    const tdm_relu_bwd_args *relu; /* NULL: a plain sum of x */
    int64_t rows, columns;
    float *sums;     /* NULL: none */
    float *partials; /* [tiles, columns] */
    int64_t tiles;
} sum_job;

static void sum_tile(void *context, int64_t index)
{
    const sum_job *job = context;
    float *sums = NULL;
    if (job->sums != NULL) {
        sums = job->partials + index * job->columns;
        memset(sums, 0, (size_t)job->columns * sizeof(float));
    }
    int64_t end = tdm_cpu_min(job->rows, (index + 1) * SUM_TILE_ROWS);
    for (int64_t r = index * SUM_TILE_ROWS; r < end; r++) {
        if (job->relu != NULL)
            job->kernels->relu_bwd(job->columns, job->relu->scale, tdm_cpu_row(&job->relu->y, r),
                                   tdm_cpu_row(&job->relu->dy, r), tdm_cpu_row(&job->relu->dx, r),
                                   sums);
        else
            job->kernels->add(job->columns, tdm_cpu_row(job->x, r), sums);
    }
}

static void sum_partials(void *context, int64_t index)
{
    const sum_job *job = context;
    int64_t begin = index * SUM_TILE_COLUMNS;
    int64_t columns = tdm_cpu_min(job->columns - begin, SUM_TILE_COLUMNS);
    for (int64_t t = 0; t < job->tiles; t++)
        job->kernels->add(columns, job->partials + t * job->columns + begin, job->sums + begin);
}

static tdm_status run_sum(tdm_backend *backend, sum_job *job)
{
    job->kernels = tdm_cpu(backend)->kernels;
    job->tiles = tdm_cpu_tiles(job->rows, SUM_TILE_ROWS);
    if (job->sums != NULL)
        TDM_TRY(tdm_cpu_scratch(
            tdm_cpu(backend), (size_t)(job->tiles * job->columns) * sizeof(float), &job->partials));
    tdm_pool_for(backend->pool, job->tiles, sum_tile, job);
    if (job->sums != NULL)
        tdm_pool_for(backend->pool, tdm_cpu_tiles(job->columns, SUM_TILE_COLUMNS), sum_partials,
                     job);
    return TDM_OK;
}

tdm_status tdm_cpu_column_sum(tdm_backend *backend, const tdm_column_sum_args *args,
                              tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("column_sum", args->x);
    sum_job job = {.x = &args->x,
                   .rows = tdm_cpu_rows(args->rows, args->x.rows),
                   .columns = args->x.columns,
                   .sums = args->sums};
    return run_sum(backend, &job);
}

tdm_status tdm_cpu_relu_bwd(tdm_backend *backend, const tdm_relu_bwd_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("relu_bwd", args->y, args->dy, args->dx);
    sum_job job = {.relu = args,
                   .rows = tdm_cpu_rows(args->rows, args->y.rows),
                   .columns = args->y.columns,
                   .sums = args->bias_gradient};
    return run_sum(backend, &job);
}
