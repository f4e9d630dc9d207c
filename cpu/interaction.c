/* Feature interactions: the factorization machine and the cross of DCN-v2. Tiles are rows. */
#include "cpu/backend_cpu.h"

#include <string.h>

typedef struct interaction_job {
    const tdm_kernels *kernels;
    const void *args;
    int64_t rows, tile_rows;
} interaction_job;

/* `matrix` has the rows and most columns of the op. */
static interaction_job make_job(tdm_backend *backend, const void *args, const int64_t *rows,
                                const tdm_matrix *matrix)
{
    return (interaction_job){.kernels = tdm_cpu(backend)->kernels,
                             .args = args,
                             .rows = tdm_cpu_rows(rows, matrix->rows),
                             .tile_rows = tdm_cpu_tile_rows(matrix->columns)};
}

static void run_job(tdm_backend *backend, interaction_job *job,
                    void (*tile)(void *context, int64_t index))
{
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job->rows, job->tile_rows), tile, job);
}

static int64_t tile_begin(const interaction_job *job, int64_t index)
{
    return index * job->tile_rows;
}

static int64_t tile_end(const interaction_job *job, int64_t index)
{
    return tdm_cpu_min(job->rows, (index + 1) * job->tile_rows);
}

static void fm_fwd_tile(void *context, int64_t index)
{
    const interaction_job *job = context;
    const tdm_fm_fwd_args *args = job->args;
    for (int64_t r = tile_begin(job, index); r < tile_end(job, index); r++)
        *tdm_cpu_row(&args->out, r) =
            job->kernels->fm_fwd(args->fields, args->sums.columns,
                                 tdm_cpu_row(&args->embeddings, r), tdm_cpu_row(&args->sums, r));
}

tdm_status tdm_cpu_fm_fwd(tdm_backend *backend, const tdm_fm_fwd_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("fm_fwd", args->embeddings, args->out, args->sums);
    interaction_job job = make_job(backend, args, args->rows, &args->embeddings);
    run_job(backend, &job, fm_fwd_tile);
    return TDM_OK;
}

static void fm_bwd_tile(void *context, int64_t index)
{
    const interaction_job *job = context;
    const tdm_fm_bwd_args *args = job->args;
    for (int64_t r = tile_begin(job, index); r < tile_end(job, index); r++)
        job->kernels->fm_bwd(args->fields, args->sums.columns, tdm_cpu_row(&args->embeddings, r),
                             tdm_cpu_row(&args->sums, r), *tdm_cpu_row(&args->dout, r),
                             args->accumulate, tdm_cpu_row(&args->d_embeddings, r));
}

tdm_status tdm_cpu_fm_bwd(tdm_backend *backend, const tdm_fm_bwd_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("fm_bwd", args->embeddings, args->sums, args->dout, args->d_embeddings);
    interaction_job job = make_job(backend, args, args->rows, &args->embeddings);
    run_job(backend, &job, fm_bwd_tile);
    return TDM_OK;
}

static void cross_fwd_tile(void *context, int64_t index)
{
    const interaction_job *job = context;
    const tdm_cross_fwd_args *args = job->args;
    for (int64_t r = tile_begin(job, index); r < tile_end(job, index); r++)
        job->kernels->cross_fwd(args->x0.columns, tdm_cpu_row(&args->x0, r),
                                tdm_cpu_row(&args->x, r), tdm_cpu_row(&args->u, r),
                                tdm_cpu_row(&args->y, r));
}

tdm_status tdm_cpu_cross_fwd(tdm_backend *backend, const tdm_cross_fwd_args *args,
                             tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("cross_fwd", args->x0, args->x, args->u, args->y);
    interaction_job job = make_job(backend, args, args->rows, &args->x0);
    run_job(backend, &job, cross_fwd_tile);
    return TDM_OK;
}

static void cross_bwd_tile(void *context, int64_t index)
{
    const interaction_job *job = context;
    const tdm_cross_bwd_args *args = job->args;
    size_t bytes = (size_t)args->x0.columns * sizeof(float);
    for (int64_t r = tile_begin(job, index); r < tile_end(job, index); r++) {
        const float *dy = tdm_cpu_row(&args->dy, r);
        job->kernels->cross_bwd(args->x0.columns, tdm_cpu_row(&args->x0, r),
                                tdm_cpu_row(&args->u, r), dy, tdm_cpu_row(&args->du, r),
                                args->accumulate_dx0, tdm_cpu_row(&args->dx0, r));
        if (args->dx.data == NULL)
            continue;
        if (args->accumulate_dx)
            job->kernels->add(args->x0.columns, dy, tdm_cpu_row(&args->dx, r));
        else
            memcpy(tdm_cpu_row(&args->dx, r), dy, bytes);
    }
}

tdm_status tdm_cpu_cross_bwd(tdm_backend *backend, const tdm_cross_bwd_args *args,
                             tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("cross_bwd", args->x0, args->u, args->dy, args->du, args->dx0, args->dx);
    interaction_job job = make_job(backend, args, args->rows, &args->x0);
    run_job(backend, &job, cross_bwd_tile);
    return TDM_OK;
}
