/* Rows of a table by id. The backward groups the rows of the batch by id, in order, and cuts the
 * groups into segments: a group of one segment goes straight to the table; the segments of a longer
 * one are summed on their own, and then the sums are added in order. So each row of the table has
 * one writer, sums over many rows stay accurate, and a table of two rows keeps all threads busy. */
#include "cpu/backend_cpu.h"

#include <string.h>

#define FORWARD_ROWS  128
#define SEGMENT_ROWS  64
#define TILE_SEGMENTS 16

/* ---- forward --------------------------------------------------------------------------------- */

typedef struct forward_job {
    const tdm_kernels *kernels;
    const tdm_lookup_fwd_args *args;
    int64_t rows;
} forward_job;

static void forward_tile(void *context, int64_t index)
{
    const forward_job *job = context;
    const tdm_lookup_fwd_args *args = job->args;
    int64_t begin = index * FORWARD_ROWS;
    job->kernels->gather(tdm_cpu_min(job->rows - begin, FORWARD_ROWS), args->table.columns,
                         args->table.data, args->table.stride, args->ids + begin, args->accumulate,
                         tdm_cpu_row(&args->out, begin), args->out.stride);
}

tdm_status tdm_cpu_lookup_fwd(tdm_backend *backend, const tdm_lookup_fwd_args *args,
                              tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("lookup_fwd", args->table, args->out);
    forward_job job = {.kernels = tdm_cpu(backend)->kernels,
                       .args = args,
                       .rows = tdm_cpu_rows(args->rows, args->out.rows)};
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job.rows, FORWARD_ROWS), forward_tile, &job);
    return TDM_OK;
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Rows of the batch that have one id. */
typedef struct segment {
    int32_t begin, count; /* of the positions */
    uint32_t id;
    int32_t partial; /* the row of the partial sums that it fills; -1: the table's */
} segment;

/* The partial sums of an id. */
typedef struct long_group {
    uint32_t id;
    int32_t first, count; /* partial sums */
} long_group;

typedef struct backward_job {
    const tdm_kernels *kernels;
    const tdm_lookup_bwd_args *args;
    int64_t rows;
    int32_t *ends;      /* [table rows + 1]: of each id's positions */
    int32_t *positions; /* [rows]: of the batch, grouped by id, rising */
    segment *segments;
    long_group *groups;
    float *partials; /* [partial_count, columns] */
    int64_t segment_count, group_count, partial_count;
} backward_job;

/* A counting sort. `ends` holds the begins first, and moves them as positions are put down. */
static void group_rows(backward_job *job)
{
    const uint32_t *ids = job->args->ids;
    int64_t table_rows = job->args->table_gradient.rows;
    memset(job->ends, 0, (size_t)(table_rows + 1) * sizeof *job->ends);
    for (int64_t r = 0; r < job->rows; r++)
        job->ends[ids[r] + 1]++;
    for (int64_t id = 1; id < table_rows; id++)
        job->ends[id] += job->ends[id - 1];
    for (int64_t r = 0; r < job->rows; r++)
        job->positions[job->ends[ids[r]]++] = (int32_t)r;
}

static void add_group(backward_job *job, uint32_t id, int32_t begin, int32_t end)
{
    bool whole = end - begin <= SEGMENT_ROWS;
    if (!whole)
        job->groups[job->group_count++] =
            (long_group){.id = id,
                         .first = (int32_t)job->partial_count,
                         .count = (int32_t)tdm_cpu_tiles(end - begin, SEGMENT_ROWS)};
    for (int32_t at = begin; at < end; at += SEGMENT_ROWS)
        job->segments[job->segment_count++] =
            (segment){.begin = at,
                      .count = (int32_t)tdm_cpu_min(end - at, SEGMENT_ROWS),
                      .id = id,
                      .partial = whole ? -1 : (int32_t)job->partial_count++};
}

static void cut_groups(backward_job *job)
{
    int32_t begin = 0;
    for (int64_t id = 0; id < job->args->table_gradient.rows; id++) {
        if (job->ends[id] > begin)
            add_group(job, (uint32_t)id, begin, job->ends[id]);
        begin = job->ends[id];
    }
}

static void segment_tile(void *context, int64_t index)
{
    const backward_job *job = context;
    const tdm_matrix *dout = &job->args->dout;
    int64_t end = tdm_cpu_min(job->segment_count, (index + 1) * TILE_SEGMENTS);
    for (int64_t i = index * TILE_SEGMENTS; i < end; i++) {
        const segment *own = &job->segments[i];
        float *sum = tdm_cpu_row(&job->args->table_gradient, own->id);
        if (own->partial >= 0) {
            sum = job->partials + own->partial * dout->columns;
            memset(sum, 0, (size_t)dout->columns * sizeof(float));
        }
        job->kernels->encoder->add_rows(own->count, dout->columns, job->positions + own->begin,
                                        dout->data, dout->stride, sum);
    }
}

static void group_tile(void *context, int64_t index)
{
    const backward_job *job = context;
    const long_group *group = &job->groups[index];
    int64_t columns = job->args->dout.columns;
    for (int64_t i = 0; i < group->count; i++)
        job->kernels->add(columns, job->partials + (group->first + i) * columns,
                          tdm_cpu_row(&job->args->table_gradient, group->id));
}

/* As much as all rows can need. A group of more than SEGMENT_ROWS has at most 2 / SEGMENT_ROWS
 * partial sums a row. */
static tdm_status make_room(tdm_backend *backend, backward_job *job)
{
    int64_t rows = job->args->dout.rows;
    int64_t partials = rows / SEGMENT_ROWS * 2 + 1;
    int64_t groups = rows / SEGMENT_ROWS + 1;
    int64_t ends = job->args->table_gradient.rows + 1;
    size_t bytes = (size_t)rows * sizeof *job->segments + (size_t)groups * sizeof *job->groups +
                   (size_t)(partials * job->args->dout.columns) * sizeof *job->partials +
                   (size_t)(ends + rows) * sizeof *job->ends;
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), bytes, &job->segments));
    job->groups = (long_group *)(void *)(job->segments + rows);
    job->partials = (float *)(void *)(job->groups + groups);
    job->ends = (int32_t *)(void *)(job->partials + partials * job->args->dout.columns);
    job->positions = job->ends + ends;
    return TDM_OK;
}

tdm_status tdm_cpu_lookup_bwd(tdm_backend *backend, const tdm_lookup_bwd_args *args,
                              tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("lookup_bwd", args->dout, args->table_gradient);
    backward_job job = {.kernels = tdm_cpu(backend)->kernels,
                        .args = args,
                        .rows = tdm_cpu_rows(args->rows, args->dout.rows)};
    TDM_TRY(make_room(backend, &job));
    group_rows(&job);
    cut_groups(&job);
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job.segment_count, TILE_SEGMENTS), segment_tile,
                 &job);
    tdm_pool_for(backend->pool, job.group_count, group_tile, &job);
    return TDM_OK;
}
