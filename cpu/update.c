/* The gradient's norm and the updates. Sums are made in double, so that a finite gradient never
 * overflows, in tiles whose sums are added in order. */
#include "cpu/backend_cpu.h"
#include "cpu/distinct_tiles.h"

#include <math.h>

#define RUN_TILE 16384 /* elements of a dense run */

/* ---- norms ----------------------------------------------------------------------------------- */

typedef struct norm_job {
    const tdm_kernels *kernels;
    const float *x;
    int64_t count;
    const tdm_sparse_norm_args *sparse;
    double *partials;
} norm_job;

static void dense_norm_tile(void *context, int64_t index)
{
    const norm_job *job = context;
    int64_t begin = index * RUN_TILE;
    job->partials[index] =
        job->kernels->sum_squares(tdm_cpu_min(job->count - begin, RUN_TILE), job->x + begin);
}

static void sparse_norm_tile(void *context, int64_t index)
{
    const norm_job *job = context;
    tdm_distinct_tile tile =
        tdm_distinct_tile_get(job->sparse->fields, &job->sparse->distinct, index);
    const float *x = job->sparse->gradients + tile.field->gradients + tile.begin * tile.field->dim;
    job->partials[index] = job->kernels->sum_squares(tile.count * tile.field->dim, x);
}

static tdm_status run_norm(tdm_backend *backend, norm_job *job, int64_t tiles,
                           void (*tile)(void *context, int64_t index), tdm_step_scalars *scalars)
{
    job->kernels = tdm_cpu(backend)->kernels;
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)tiles * sizeof(double), &job->partials));
    tdm_pool_for(backend->pool, tiles, tile, job);
    double sum = 0.0;
    for (int64_t i = 0; i < tiles; i++)
        sum += job->partials[i];
    scalars->gradient_sum_squares += sum;
    return TDM_OK;
}

tdm_status tdm_cpu_dense_norm(tdm_backend *backend, const tdm_dense_norm_args *args,
                              tdm_stream *stream)
{
    (void)stream;
    norm_job job = {.x = args->x, .count = args->count};
    return run_norm(backend, &job, tdm_cpu_tiles(args->count, RUN_TILE), dense_norm_tile,
                    args->scalars);
}

tdm_status tdm_cpu_sparse_norm(tdm_backend *backend, const tdm_sparse_norm_args *args,
                               tdm_stream *stream)
{
    (void)stream;
    norm_job job = {.sparse = args};
    int64_t tiles = tdm_distinct_tiles(args->fields, args->field_count, &args->distinct);
    return run_norm(backend, &job, tiles, sparse_norm_tile, args->scalars);
}

tdm_status tdm_cpu_prepare_update(tdm_backend *backend, const tdm_prepare_update_args *args,
                                  tdm_stream *stream)
{
    (void)backend;
    (void)stream;
    tdm_step_scalars *scalars = args->scalars;
    scalars->gradient_norm = sqrt(scalars->gradient_sum_squares) / scalars->loss_scale;
    scalars->found_inf = !isfinite(scalars->gradient_sum_squares);
    scalars->gradient_scale = 1.0 / scalars->loss_scale;
    if (scalars->clip_norm > 0.0 && scalars->gradient_norm > scalars->clip_norm)
        scalars->gradient_scale *= scalars->clip_norm / scalars->gradient_norm;
    return TDM_OK;
}

/* ---- updates --------------------------------------------------------------------------------- */

static tdm_update_factors make_factors(const tdm_update_rule *rule, const tdm_step_scalars *scalars,
                                       double learning_rate)
{
    double step = (double)scalars->step;
    return (tdm_update_factors){
        .type = rule->type,
        .gradient_scale = (float)scalars->gradient_scale,
        .l2 = rule->l2,
        .learning_rate = (float)learning_rate,
        .momentum = rule->momentum,
        .beta1 = rule->beta1,
        .beta2 = rule->beta2,
        .eps = rule->eps,
        .step_size = (float)(learning_rate / (1.0 - pow((double)rule->beta1, step))),
        .moment2_scale = (float)(1.0 / (1.0 - pow((double)rule->beta2, step))),
    };
}

typedef struct update_job {
    const tdm_kernels *kernels;
    tdm_update_factors factors;
    const tdm_dense_update_args *dense;
    const tdm_sparse_update_args *sparse;
} update_job;

static float *at(float *base, int64_t offset)
{
    return base == NULL ? NULL : base + offset;
}

static void dense_update_tile(void *context, int64_t index)
{
    const update_job *job = context;
    const tdm_dense_update_args *args = job->dense;
    int64_t begin = index * RUN_TILE;
    job->kernels->update(tdm_cpu_min(args->count - begin, RUN_TILE), &job->factors,
                         args->gradients + begin, args->values + begin, at(args->moment1, begin),
                         at(args->moment2, begin));
}

static void sparse_update_tile(void *context, int64_t index)
{
    const update_job *job = context;
    const tdm_sparse_update_args *args = job->sparse;
    tdm_distinct_tile tile = tdm_distinct_tile_get(args->fields, &args->distinct, index);
    const tdm_embedding_field *field = tile.field;
    job->kernels->update_rows(
        tile.count, field->dim, &job->factors, args->distinct.ids + field->values + tile.begin,
        args->gradients + field->gradients + tile.begin * field->dim, args->tables + field->table,
        at(args->moment1, field->table), at(args->moment2, field->table));
}

/* ---- lamb ------------------------------------------------------------------------------------ */

typedef struct lamb_job {
    const tdm_kernels *kernels;
    tdm_update_factors factors;
    const tdm_dense_update_args *args;
    double *partials; /* for each tile Σ w² and Σ u² */
    float rate;
} lamb_job;

static void lamb_direction_tile(void *context, int64_t index)
{
    const lamb_job *job = context;
    const tdm_dense_update_args *args = job->args;
    int64_t begin = index * RUN_TILE, count = tdm_cpu_min(args->count - begin, RUN_TILE);
    job->kernels->lamb_direction(count, &job->factors, args->values + begin,
                                 args->gradients + begin, args->moment1 + begin,
                                 args->moment2 + begin, job->partials + 2 * index);
}

static void lamb_apply_tile(void *context, int64_t index)
{
    const lamb_job *job = context;
    const tdm_dense_update_args *args = job->args;
    int64_t begin = index * RUN_TILE;
    job->kernels->add_scaled(tdm_cpu_min(args->count - begin, RUN_TILE), -job->rate,
                             args->gradients + begin, args->values + begin);
}

static tdm_status update_lamb(tdm_backend *backend, const tdm_dense_update_args *args)
{
    int64_t tiles = tdm_cpu_tiles(args->count, RUN_TILE);
    lamb_job job = {.kernels = tdm_cpu(backend)->kernels,
                    .factors = make_factors(&args->rule, args->scalars, 1.0),
                    .args = args};
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), 2 * (size_t)tiles * sizeof(double), &job.partials));
    tdm_pool_for(backend->pool, tiles, lamb_direction_tile, &job);
    double values = 0.0, directions = 0.0;
    for (int64_t i = 0; i < tiles; i++) {
        values += job.partials[2 * i];
        directions += job.partials[2 * i + 1];
    }
    double ratio = values > 0.0 && directions > 0.0 ? sqrt(values) / sqrt(directions) : 1.0;
    job.rate = (float)(args->scalars->dense_learning_rate * ratio);
    tdm_pool_for(backend->pool, tiles, lamb_apply_tile, &job);
    return TDM_OK;
}

/* ---- the ops --------------------------------------------------------------------------------- */

tdm_status tdm_cpu_dense_update(tdm_backend *backend, const tdm_dense_update_args *args,
                                tdm_stream *stream)
{
    (void)stream;
    if (args->scalars->found_inf)
        return TDM_OK;
    if (args->rule.type == TDM_UPDATE_LAMB && args->rule.l2 > 0.0f)
        return update_lamb(backend, args);
    update_job job = {
        .kernels = tdm_cpu(backend)->kernels,
        .dense = args,
        .factors = make_factors(&args->rule, args->scalars, args->scalars->dense_learning_rate)};
    tdm_pool_for(backend->pool, tdm_cpu_tiles(args->count, RUN_TILE), dense_update_tile, &job);
    return TDM_OK;
}

tdm_status tdm_cpu_sparse_update(tdm_backend *backend, const tdm_sparse_update_args *args,
                                 tdm_stream *stream)
{
    (void)stream;
    TDM_FAIL_IF(args->rule.type == TDM_UPDATE_LAMB, TDM_E_UNSUPPORTED,
                "lamb needs the norms of whole tensors: tables, of which a step sees some rows, "
                "have none");
    if (args->scalars->found_inf)
        return TDM_OK;
    update_job job = {
        .kernels = tdm_cpu(backend)->kernels,
        .sparse = args,
        .factors = make_factors(&args->rule, args->scalars, args->scalars->sparse_learning_rate)};
    int64_t tiles = tdm_distinct_tiles(args->fields, args->field_count, &args->distinct);
    tdm_pool_for(backend->pool, tiles, sparse_update_tile, &job);
    return TDM_OK;
}
