/* Embedding tables: forward in tiles of rows, backward in tiles of distinct ids. */
#include "cpu/backend_cpu.h"
#include "cpu/distinct_tiles.h"

#include <string.h>

#define TILE_ROWS                                                                                  \
    128 /* the rows of a field are read one after the other, so that fetching ahead pays */

/* The values of one row of a field, and what each is multiplied by next to its own weight. */
typedef struct bag_values {
    int64_t begin, count;
    float scale;
} bag_values;

/* A mean is Σ w e / Σ w; an empty or weightless bag gives zeros. */
static bag_values bag_get(const tdm_embedding_field *field, const int32_t *offsets,
                          const float *weights, int64_t row)
{
    bag_values bag = {.begin = row, .count = 1, .scale = 1.0f};
    if (field->offsets >= 0) {
        bag.begin = offsets[field->offsets + row];
        bag.count = offsets[field->offsets + row + 1] - bag.begin;
    }
    if (!field->mean)
        return bag;
    float total = (float)bag.count;
    if (weights != NULL) {
        total = 0.0f;
        for (int64_t i = 0; i < bag.count; i++)
            total += weights[field->values + bag.begin + i];
    }
    bag.scale = total == 0.0f ? 0.0f : 1.0f / total;
    return bag;
}

/* One value a row and no weights: pooling is copying. */
static bool is_plain(const tdm_embedding_field *field, const float *weights)
{
    return field->offsets < 0 && weights == NULL;
}

/* ---- forward --------------------------------------------------------------------------------- */

typedef struct forward_job {
    const tdm_kernels *kernels;
    const tdm_embedding_fwd_args *args;
    int64_t rows;
} forward_job;

static void pool_field(const forward_job *job, const tdm_embedding_field *field, int64_t begin,
                       int64_t end)
{
    const tdm_embedding_fwd_args *args = job->args;
    for (int64_t r = begin; r < end; r++) {
        bag_values bag = bag_get(field, args->offsets, args->value_weights, r);
        int64_t first = field->values + bag.begin;
        float *out = tdm_cpu_row(&args->out, r) + field->column;
        if (!args->sum_fields)
            memset(out, 0, (size_t)field->dim * sizeof(float));
        job->kernels->pool(bag.count, field->dim, args->tables + field->table, args->ids + first,
                           args->value_weights == NULL ? NULL : args->value_weights + first,
                           bag.scale, out);
    }
}

static void forward_tile(void *context, int64_t index)
{
    const forward_job *job = context;
    const tdm_embedding_fwd_args *args = job->args;
    int64_t begin = index * TILE_ROWS, end = tdm_cpu_min(job->rows, begin + TILE_ROWS);
    if (args->sum_fields) {
        for (int64_t r = begin; r < end; r++)
            memset(tdm_cpu_row(&args->out, r), 0, (size_t)args->fields[0].dim * sizeof(float));
    }
    for (int f = 0; f < args->field_count; f++) {
        const tdm_embedding_field *field = &args->fields[f];
        if (is_plain(field, args->value_weights))
            job->kernels->gather(end - begin, field->dim, args->tables + field->table, field->dim,
                                 args->ids + field->values + begin, args->sum_fields,
                                 tdm_cpu_row(&args->out, begin) + field->column, args->out.stride);
        else
            pool_field(job, field, begin, end);
    }
}

tdm_status tdm_cpu_embedding_fwd(tdm_backend *backend, const tdm_embedding_fwd_args *args,
                                 tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("embedding_fwd", args->out);
    if (args->field_count == 0)
        return TDM_OK;
    forward_job job = {.kernels = tdm_cpu(backend)->kernels,
                       .args = args,
                       .rows = tdm_cpu_rows(args->rows, args->out.rows)};
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job.rows, TILE_ROWS), forward_tile, &job);
    return TDM_OK;
}

/* ---- backward -------------------------------------------------------------------------------- */

typedef struct backward_job {
    const tdm_kernels *kernels;
    const tdm_embedding_bwd_args *args;
} backward_job;

/* The row, at or behind `low`, whose bag holds the value `position`. */
static int64_t row_of_value(const int32_t *offsets, int64_t low, int64_t rows, int32_t position)
{
    int64_t high = rows;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (offsets[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void sum_weighted(const backward_job *job, const tdm_embedding_field *field,
                         const int32_t *positions, int64_t count, float *out)
{
    const tdm_embedding_bwd_args *args = job->args;
    memset(out, 0, (size_t)field->dim * sizeof(float));
    int64_t row = 0;
    for (int64_t i = 0; i < count; i++) {
        row = field->offsets < 0 ? positions[i]
                                 : row_of_value(args->offsets + field->offsets, row,
                                                args->dout.rows, positions[i]);
        float weight = bag_get(field, args->offsets, args->value_weights, row).scale;
        if (args->value_weights != NULL)
            weight *= args->value_weights[field->values + positions[i]];
        job->kernels->add_scaled(field->dim, weight, tdm_cpu_row(&args->dout, row) + field->column,
                                 out);
    }
}

static void backward_tile(void *context, int64_t index)
{
    const backward_job *job = context;
    const tdm_embedding_bwd_args *args = job->args;
    tdm_distinct_tile tile = tdm_distinct_tile_get(args->fields, &args->distinct, index);
    const tdm_embedding_field *field = tile.field;
    const int32_t *starts = args->distinct.starts + field->values + field->index + tile.begin;
    const int32_t *positions = args->distinct.positions + field->values;
    float *out = args->gradients + field->gradients + tile.begin * field->dim;
    if (is_plain(field, args->value_weights)) {
        job->kernels->sum_positions(tile.count, field->dim, starts, positions,
                                    (const float *)args->dout.data + field->column,
                                    args->dout.stride, out);
        return;
    }
    for (int64_t u = 0; u < tile.count; u++)
        sum_weighted(job, field, positions + starts[u], starts[u + 1] - starts[u],
                     out + u * field->dim);
}

tdm_status tdm_cpu_embedding_bwd(tdm_backend *backend, const tdm_embedding_bwd_args *args,
                                 tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("embedding_bwd", args->dout);
    backward_job job = {.kernels = tdm_cpu(backend)->kernels, .args = args};
    tdm_pool_for(backend->pool,
                 tdm_distinct_tiles(args->fields, args->field_count, &args->distinct),
                 backward_tile, &job);
    return TDM_OK;
}
