/* The loss and the sums that it needs. Sums over rows are made in double, in tiles of
 * LOSS_TILE_ROWS whose sums are added in order. */
#include "cpu/backend_cpu.h"

#include <math.h>

#define LOSS_TILE_ROWS 256

static double sum_in_order(const double *partials, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++)
        sum += partials[i];
    return sum;
}

typedef struct weight_job {
    const float *weights;
    int64_t rows;
    double *partials;
} weight_job;

static void weight_tile(void *context, int64_t index)
{
    const weight_job *job = context;
    int64_t end = tdm_cpu_min(job->rows, (index + 1) * LOSS_TILE_ROWS);
    double sum = 0.0;
    for (int64_t r = index * LOSS_TILE_ROWS; r < end; r++)
        sum += (double)job->weights[r];
    job->partials[index] = sum;
}

tdm_status tdm_cpu_weight_sum(tdm_backend *backend, const tdm_weight_sum_args *args,
                              tdm_stream *stream)
{
    (void)stream;
    weight_job job = {.weights = args->weights, .rows = tdm_cpu_rows(args->rows, args->batch)};
    int64_t tiles = tdm_cpu_tiles(job.rows, LOSS_TILE_ROWS);
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)tiles * sizeof(double), &job.partials));
    tdm_pool_for(backend->pool, tiles, weight_tile, &job);
    args->scalars->losses[0].weight_sum = sum_in_order(job.partials, tiles);
    return TDM_OK;
}

typedef struct bce_job {
    const tdm_bce_args *args;
    float gradient_scale; /* loss_scale / weight_sum, or 0 */
    int64_t rows;
    double *partials;
} bce_job;

static void bce_tile(void *context, int64_t index)
{
    const bce_job *job = context;
    const tdm_bce_args *args = job->args;
    int64_t end = tdm_cpu_min(job->rows, (index + 1) * LOSS_TILE_ROWS);
    double sum = 0.0;
    for (int64_t r = index * LOSS_TILE_ROWS; r < end; r++) {
        float z = *tdm_cpu_row(&args->logits, r),
              label = args->labels == NULL ? 0.0f : args->labels[r];
        float small = expf(-fabsf(z)); /* e^−|z| never overflows */
        float loss = fmaxf(z, 0.0f) - z * label + log1pf(small);
        float probability = (z < 0.0f ? small : 1.0f) / (1.0f + small);
        sum += (double)args->weights[r] * (double)loss;
        if (args->probabilities != NULL)
            args->probabilities[r] = probability;
        if (args->dlogits.data != NULL)
            *tdm_cpu_row(&args->dlogits, r) =
                job->gradient_scale * args->weights[r] * (probability - label);
    }
    job->partials[index] = sum;
}

tdm_status tdm_cpu_bce(tdm_backend *backend, const tdm_bce_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("bce", args->logits, args->dlogits);
    tdm_step_scalars *scalars = args->scalars;
    bce_job job = {.args = args, .rows = tdm_cpu_rows(args->rows, args->logits.rows)};
    tdm_loss_scalars *loss = &scalars->losses[args->loss];
    if (loss->weight_sum != 0.0)
        job.gradient_scale = (float)(scalars->loss_scale / loss->weight_sum);
    int64_t tiles = tdm_cpu_tiles(job.rows, LOSS_TILE_ROWS);
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)tiles * sizeof(double), &job.partials));
    tdm_pool_for(backend->pool, tiles, bce_tile, &job);
    loss->loss_sum += sum_in_order(job.partials, tiles);
    return TDM_OK;
}
