/* Losses and the sums that they need. Sums over rows are made in double, in tiles of
 * LOSS_TILE_ROWS whose sums are added in order; there is room for those of all rows. */
#include "cpu/backend_cpu.h"

#include <math.h>
#include <string.h>

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
    int64_t most = tdm_cpu_tiles(args->batch, LOSS_TILE_ROWS);
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)most * sizeof(double), &job.partials));
    tdm_pool_for(backend->pool, tiles, weight_tile, &job);
    args->scalars->losses[0].weight_sum = sum_in_order(job.partials, tiles);
    return TDM_OK;
}

/* ---- losses: rows in tiles, whose sums are added in order -------------------------------------- */

typedef struct loss_sums {
    double loss, correct;
} loss_sums;

typedef struct loss_job {
    const tdm_kernels *kernels;
    const void *args;     /* of the op */
    float gradient_scale; /* loss_scale / weight_sum, or 0 */
    int64_t rows, tile_rows;
    loss_sums (*row)(const struct loss_job *job, int64_t row);
    loss_sums *partials;
} loss_job;

static void loss_tile(void *context, int64_t index)
{
    const loss_job *job = context;
    int64_t end = tdm_cpu_min(job->rows, (index + 1) * job->tile_rows);
    loss_sums sums = {0};
    for (int64_t r = index * job->tile_rows; r < end; r++) {
        loss_sums row = job->row(job, r);
        sums.loss += row.loss;
        sums.correct += row.correct;
    }
    job->partials[index] = sums;
}

/* Tiles of about 16 Ki elements, but of no more than LOSS_TILE_ROWS. */
static tdm_status run_loss(tdm_backend *backend, loss_job *job, const tdm_matrix *logits,
                           const int64_t *rows, tdm_step_scalars *scalars, int index)
{
    tdm_loss_scalars *loss = &scalars->losses[index];
    job->kernels = tdm_cpu(backend)->kernels;
    job->rows = tdm_cpu_rows(rows, logits->rows);
    job->tile_rows = tdm_cpu_min(LOSS_TILE_ROWS, tdm_cpu_tile_rows(logits->columns));
    if (loss->weight_sum != 0.0)
        job->gradient_scale = (float)(scalars->loss_scale / loss->weight_sum);
    int64_t tiles = tdm_cpu_tiles(job->rows, job->tile_rows);
    int64_t most = tdm_cpu_tiles(logits->rows, job->tile_rows);
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)most * sizeof(loss_sums), &job->partials));
    tdm_pool_for(backend->pool, tiles, loss_tile, job);
    for (int64_t i = 0; i < tiles; i++) {
        loss->loss_sum += job->partials[i].loss;
        loss->correct_sum += job->partials[i].correct;
    }
    return TDM_OK;
}

static loss_sums bce_row(const loss_job *job, int64_t r)
{
    const tdm_bce_args *args = job->args;
    int64_t n = args->logits.columns;
    const float *logits = tdm_cpu_row(&args->logits, r);
    const float *labels = args->labels == NULL ? NULL : args->labels + r * n;
    float weight = args->weights[r], gradient_scale = job->gradient_scale * weight;
    loss_sums sums = {0};
    for (int64_t c = 0; c < n; c++) {
        float z = logits[c], label = labels == NULL ? 0.0f : labels[c];
        float small = expf(-fabsf(z)); /* e^−|z| never overflows */
        float probability = (z < 0.0f ? small : 1.0f) / (1.0f + small);
        sums.loss += (double)(fmaxf(z, 0.0f) - z * label + log1pf(small));
        sums.correct += (z > 0.0f) == (label > 0.5f) ? 1.0 : 0.0;
        if (args->probabilities.data != NULL)
            tdm_cpu_row(&args->probabilities, r)[c] = probability;
        if (args->dlogits.data != NULL)
            tdm_cpu_row(&args->dlogits, r)[c] = gradient_scale * (probability - label);
    }
    return (loss_sums){(double)weight * sums.loss, (double)weight * sums.correct};
}

tdm_status tdm_cpu_bce(tdm_backend *backend, const tdm_bce_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("bce", args->logits, args->probabilities, args->dlogits);
    return run_loss(backend, &(loss_job){.args = args, .row = bce_row}, &args->logits, args->rows,
                    args->scalars, args->loss);
}

static loss_sums softmax_row(const loss_job *job, int64_t r)
{
    const tdm_softmax_loss_args *args = job->args;
    int64_t classes = args->logits.columns;
    float *gradients = args->dlogits.data == NULL ? NULL : tdm_cpu_row(&args->dlogits, r);
    if (args->labels[r] == TDM_NO_LABEL) {
        if (gradients != NULL)
            memset(gradients, 0, (size_t)classes * sizeof(float));
        return (loss_sums){0};
    }
    float weight = args->weights == NULL ? 1.0f : args->weights[r];
    bool correct;
    double loss =
        job->kernels->encoder->softmax_loss(classes, tdm_cpu_row(&args->logits, r), args->labels[r],
                                            job->gradient_scale * weight, gradients, &correct);
    return (loss_sums){(double)weight * loss, correct ? (double)weight : 0.0};
}

tdm_status tdm_cpu_softmax_loss(tdm_backend *backend, const tdm_softmax_loss_args *args,
                                tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("softmax_loss", args->logits, args->dlogits);
    return run_loss(backend, &(loss_job){.args = args, .row = softmax_row}, &args->logits,
                    args->rows, args->scalars, args->loss);
}

static loss_sums squared_row(const loss_job *job, int64_t r)
{
    const tdm_squared_loss_args *args = job->args;
    float error = *tdm_cpu_row(&args->logits, r) - args->labels[r];
    if (args->dlogits.data != NULL)
        *tdm_cpu_row(&args->dlogits, r) = 2.0f * job->gradient_scale * args->weights[r] * error;
    return (loss_sums){.loss = (double)args->weights[r] * (double)error * (double)error};
}

tdm_status tdm_cpu_squared_loss(tdm_backend *backend, const tdm_squared_loss_args *args,
                                tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("squared_loss", args->logits, args->dlogits);
    return run_loss(backend, &(loss_job){.args = args, .row = squared_row}, &args->logits,
                    args->rows, args->scalars, args->loss);
}
