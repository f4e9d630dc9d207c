/* Layer normalization, row by row: what an op reads and writes of a row stays in the cache
 * between its steps. */
#include "cpu/row_sums.h"

#include <string.h>

typedef struct norm_job {
    const tdm_layer_norm_fwd_args *forward;
    const tdm_layer_norm_bwd_args *backward;
    tdm_dropout_row draws;
} norm_job;

/* ---- forward --------------------------------------------------------------------------------- */

/* residual + dropout(x); x itself where there is neither. */
static const float *make_sum(const tdm_row_tile *tile, int64_t r)
{
    const norm_job *job = tile->args;
    const tdm_layer_norm_fwd_args *args = job->forward;
    int64_t n = args->x.columns;
    const float *x = tdm_cpu_row(&args->x, r);
    bool drops = args->dropout.rate != 0.0f;
    if (!drops && args->residual.data == NULL)
        return x;
    float *sum = tdm_cpu_row(&args->sum, r);
    if (drops) {
        tdm_dropout_row draws = job->draws;
        tdm_cpu_dropout_at(&args->dropout, r, n, &draws);
        tile->kernels->dropout(n, &draws, x, sum);
    } else if (sum != x) {
        memcpy(sum, x, (size_t)n * sizeof(float));
    }
    if (args->residual.data != NULL)
        tile->kernels->add(n, tdm_cpu_row(&args->residual, r), sum);
    return sum;
}

static void forward_rows(const tdm_row_tile *tile)
{
    const norm_job *job = tile->args;
    const tdm_layer_norm_fwd_args *args = job->forward;
    for (int64_t r = tile->begin; r < tile->end; r++) {
        const float *sum = make_sum(tile, r);
        if (args->y.data == NULL)
            continue;
        float mean, rstd;
        tile->kernels->encoder->layer_norm_fwd(args->x.columns, sum, args->gamma, args->beta,
                                               args->eps, tdm_cpu_row(&args->y, r), &mean, &rstd);
        if (args->means != NULL) {
            args->means[r] = mean;
            args->rstds[r] = rstd;
        }
    }
}

tdm_status tdm_cpu_layer_norm_fwd(tdm_backend *backend, const tdm_layer_norm_fwd_args *args,
                                  tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("layer_norm_fwd", args->x, args->residual, args->sum, args->y);
    norm_job job = {.forward = args, .draws = tdm_cpu_dropout_row(&args->dropout)};
    return tdm_cpu_row_sums(
        backend, &(tdm_row_sums){
                     .run = forward_rows, .args = &job, .rows = args->x.rows, .valid = args->rows});
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Where the gradient of the sum is made: in an output that it overwrites, if there is one. */
static float *place_total(const tdm_layer_norm_bwd_args *args, int64_t r, float *room)
{
    if (args->d_residual.data != NULL && !args->accumulate_residual)
        return tdm_cpu_row(&args->d_residual, r);
    if (args->dx.data != NULL && !args->accumulate_dx)
        return tdm_cpu_row(&args->dx, r);
    return room;
}

static void make_total(const tdm_row_tile *tile, int64_t r, float *total)
{
    const tdm_layer_norm_bwd_args *args = ((const norm_job *)tile->args)->backward;
    int64_t n = args->sum.columns;
    const float *dsum = args->dsum.data == NULL ? NULL : tdm_cpu_row(&args->dsum, r);
    if (args->dy.data != NULL)
        tile->kernels->encoder->layer_norm_bwd(
            n, tdm_cpu_row(&args->sum, r), args->gamma, args->means[r], args->rstds[r],
            tdm_cpu_row(&args->dy, r), dsum, total, tile->sums[0], tile->sums[1]);
    else if (dsum == NULL)
        memset(total, 0, (size_t)n * sizeof(float));
    else
        memmove(total, dsum, (size_t)n * sizeof(float));
}

/* dx (+)= dropout(total), where total may lie in dx. */
static void give_dx(const tdm_row_tile *tile, int64_t r, const float *total)
{
    const norm_job *job = tile->args;
    const tdm_layer_norm_bwd_args *args = job->backward;
    int64_t n = args->sum.columns;
    float *dx = tdm_cpu_row(&args->dx, r);
    if (args->dropout.rate != 0.0f) {
        tdm_dropout_row draws = job->draws;
        tdm_cpu_dropout_at(&args->dropout, r, n, &draws);
        float *dropped = args->accumulate_dx ? tile->room : dx;
        tile->kernels->dropout(n, &draws, total, dropped);
        total = dropped;
    }
    if (args->accumulate_dx)
        tile->kernels->add(n, total, dx);
    else if (total != dx)
        memcpy(dx, total, (size_t)n * sizeof(float));
}

static void backward_rows(const tdm_row_tile *tile)
{
    const tdm_layer_norm_bwd_args *args = ((const norm_job *)tile->args)->backward;
    for (int64_t r = tile->begin; r < tile->end; r++) {
        float *total = place_total(args, r, tile->room);
        make_total(tile, r, total);
        if (args->d_residual.data != NULL && args->accumulate_residual)
            tile->kernels->add(args->sum.columns, total, tdm_cpu_row(&args->d_residual, r));
        if (args->dx.data != NULL)
            give_dx(tile, r, total);
    }
}

tdm_status tdm_cpu_layer_norm_bwd(tdm_backend *backend, const tdm_layer_norm_bwd_args *args,
                                  tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("layer_norm_bwd", args->sum, args->dy, args->dsum, args->dx, args->d_residual);
    norm_job job = {.backward = args, .draws = tdm_cpu_dropout_row(&args->dropout)};
    tdm_row_sums work = {.run = backward_rows,
                         .args = &job,
                         .rows = args->sum.rows,
                         .valid = args->rows,
                         .columns = args->sum.columns,
                         .room = args->sum.columns};
    if (args->dy.data != NULL) {
        work.targets[0] = args->gamma_gradient;
        work.targets[1] = args->beta_gradient;
    }
    return tdm_cpu_row_sums(backend, &work);
}
