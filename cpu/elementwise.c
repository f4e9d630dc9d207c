/* Ops on the elements of matrices of [batch, columns], and their sums over rows. */
#include "cpu/row_sums.h"

#include <math.h>
#include <string.h>

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
    if (draws->rate == 0.0f)
        return (tdm_dropout_row){.scale = 1.0f};
    /* tdm_uniform(word) >= rate, in whole numbers: both sides times 2^24 are exact in double */
    double threshold = ceil((double)draws->rate * 0x1p24);
    return (tdm_dropout_row){
        .key = draws->key, .threshold = (uint32_t)threshold, .scale = 1.0f / (1.0f - draws->rate)};
}

typedef struct dropout_job {
    const tdm_kernels *kernels;
    const tdm_dropout_args *args;
    tdm_dropout_row draws; /* but for what a row has of its own */
    int64_t rows, tile_rows;
} dropout_job;

static void dropout_tile(void *context, int64_t index)
{
    const dropout_job *job = context;
    const tdm_dropout_args *args = job->args;
    tdm_dropout_row draws = job->draws;
    int64_t end = tdm_cpu_min(job->rows, (index + 1) * job->tile_rows);
    for (int64_t r = index * job->tile_rows; r < end; r++) {
        if (args->draws.rate == 0.0f) {
            memmove(tdm_cpu_row(&args->y, r), tdm_cpu_row(&args->x, r),
                    (size_t)args->x.columns * sizeof(float));
            continue;
        }
        tdm_cpu_dropout_at(&args->draws, r, args->x.columns, &draws);
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

static void sum_rows(const tdm_row_tile *tile)
{
    const tdm_column_sum_args *args = tile->args;
    for (int64_t r = tile->begin; r < tile->end; r++)
        tile->kernels->add(args->x.columns, tdm_cpu_row(&args->x, r), tile->sums[0]);
}

tdm_status tdm_cpu_column_sum(tdm_backend *backend, const tdm_column_sum_args *args,
                              tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("column_sum", args->x);
    return tdm_cpu_row_sums(backend, &(tdm_row_sums){.run = sum_rows,
                                                     .args = args,
                                                     .rows = args->x.rows,
                                                     .valid = args->rows,
                                                     .columns = args->x.columns,
                                                     .targets = {args->sums}});
}

static void relu_bwd_rows(const tdm_row_tile *tile)
{
    const tdm_relu_bwd_args *args = tile->args;
    for (int64_t r = tile->begin; r < tile->end; r++)
        tile->kernels->relu_bwd(args->y.columns, args->scale, tdm_cpu_row(&args->y, r),
                                tdm_cpu_row(&args->dy, r), tdm_cpu_row(&args->dx, r),
                                tile->sums[0]);
}

tdm_status tdm_cpu_relu_bwd(tdm_backend *backend, const tdm_relu_bwd_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("relu_bwd", args->y, args->dy, args->dx);
    return tdm_cpu_row_sums(backend, &(tdm_row_sums){.run = relu_bwd_rows,
                                                     .args = args,
                                                     .rows = args->y.rows,
                                                     .valid = args->rows,
                                                     .columns = args->y.columns,
                                                     .targets = {args->bias_gradient}});
}
