#include "cpu/row_sums.h"

#include <string.h>

#define TILE_ROWS    128
#define TILE_COLUMNS 1024

typedef struct sums_job {
    const tdm_kernels *kernels;
    const tdm_row_sums *work;
    int64_t rows, tiles; /* valid ones, and those of them */
    int targets;
    int64_t tile_floats;
    float *partials; /* [tiles, tile_floats]: the sums of each target, then room */
} sums_job;

static void run_tile(void *context, int64_t index)
{
    const sums_job *job = context;
    const tdm_row_sums *work = job->work;
    tdm_row_tile tile = {.kernels = job->kernels,
                         .args = work->args,
                         .begin = index * TILE_ROWS,
                         .end = tdm_cpu_min(job->rows, (index + 1) * TILE_ROWS)};
    float *next = job->tile_floats == 0 ? NULL : job->partials + index * job->tile_floats;
    for (int t = 0; t < job->targets; t++, next += work->columns) {
        tile.sums[t] = next;
        memset(next, 0, (size_t)work->columns * sizeof(float));
    }
    tile.room = next;
    work->run(&tile);
}

static void add_partials(void *context, int64_t index)
{
    const sums_job *job = context;
    int64_t begin = index / job->targets * TILE_COLUMNS, target = index % job->targets;
    int64_t columns = tdm_cpu_min(job->work->columns - begin, TILE_COLUMNS);
    const float *partials = job->partials + target * job->work->columns + begin;
    for (int64_t t = 0; t < job->tiles; t++)
        job->kernels->add(columns, partials + t * job->tile_floats,
                          job->work->targets[target] + begin);
}

tdm_status tdm_cpu_row_sums(tdm_backend *backend, const tdm_row_sums *work)
{
    sums_job job = {.kernels = tdm_cpu(backend)->kernels,
                    .work = work,
                    .rows = tdm_cpu_rows(work->valid, work->rows)};
    job.tiles = tdm_cpu_tiles(job.rows, TILE_ROWS);
    while (job.targets < 2 && work->targets[job.targets] != NULL)
        job.targets++;
    job.tile_floats = job.targets * work->columns + work->room;
    int64_t floats = tdm_cpu_tiles(work->rows, TILE_ROWS) * job.tile_floats;
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)floats * sizeof(float), &job.partials));
    tdm_pool_for(backend->pool, job.tiles, run_tile, &job);
    tdm_pool_for(backend->pool, tdm_cpu_tiles(work->columns, TILE_COLUMNS) * job.targets,
                 add_partials, &job);
    return TDM_OK;
}
