/* Matrix products in bfloat16, put together from blocks (bf16_products.h). A tile is a run of rows
 * of c with all columns, or of columns with all rows, whichever there is more of: then the operand
 * that is cut into tiles is rounded and packed in its tile, in parts that stay in the cache, and only
 * the other, smaller one before all tiles. */
#include "core/memory.h"
#include "cpu/bf16_products.h"
#include "cpu/gemm_internal.h"

#include <stdatomic.h>

#define ROWS    128 /* the largest block */
#define COLUMNS 256
#define DEPTH   512
#define UNIT    32 /* the smallest, of rows and of depth */
#define PANEL   TDM_BF16_PANEL
#define TILES   8 /* that there should at least be */
/* Sums of a tile that are kept where the depth takes several blocks: so many columns of its rows, or
 * rows of its columns. */
#define GROUP_COLUMNS 1024
#define GROUP_ROWS    512

typedef struct bf16_job {
    const tdm_gemm *gemm;
    const tdm_bf16_products *products;
    bool by_rows;                 /* tiles are rows of c, and b is packed before them */
    int64_t tile;                 /* rows or columns */
    int64_t rows, columns, depth; /* of the product, in whole blocks */
    tdm_bf16 *packed;             /* the operand that is packed before */
    char *buffers;                /* of each thread: a part of the other operand, then sums */
    size_t part_bytes, buffer_bytes;
    _Atomic bool failed;
} bf16_job;

/* A run of the depth. */
typedef struct depth_run {
    int64_t begin, length;
    int size; /* index of tdm_bf16_depths */
} depth_run;

/* A part of c, in whole blocks, and a run of its depth with the operands packed. */
typedef struct tile_part {
    int64_t row, row_end, column, column_end;
    depth_run run;
    const tdm_bf16 *a, *b;
    float *sums;
    bool keep_sums; /* of all blocks; else one is done before the next begins */
} tile_part;

static int64_t round_up(int64_t count, int64_t unit)
{
    return tdm_cpu_tiles(count, unit) * unit;
}

static depth_run depth_run_at(int64_t begin, int64_t depth)
{
    int size = tdm_bf16_size(tdm_bf16_depths, depth - begin);
    return (depth_run){begin, tdm_bf16_depths[size], size};
}

static depth_run depth_run_number(int64_t index, int64_t depth)
{
    int64_t whole = tdm_cpu_min(index, depth / DEPTH);
    depth_run run = depth_run_at(whole * DEPTH, depth);
    for (; index > whole; index--)
        run = depth_run_at(run.begin + run.length, depth);
    return run;
}

static int64_t count_depth_runs(int64_t depth)
{
    return depth / DEPTH + __builtin_popcountll((unsigned long long)(depth % DEPTH));
}

/* ---- packing --------------------------------------------------------------------------------- */

/* The part of a matrix that begins at (row, column), no larger than what is left of `all_rows` and
 * `all_columns`. */
static tdm_bf16_source source_at(const tdm_matrix *matrix, int64_t row, int64_t column,
                                 int64_t rows, int64_t columns)
{
    return (tdm_bf16_source){tdm_cpu_row(matrix, row) + column, rows, columns, matrix->stride};
}

/* Rows [row, end) of op(a), block by block. */
static void pack_a(const bf16_job *job, int64_t row, int64_t end, const depth_run *run,
                   tdm_bf16 *to)
{
    const tdm_gemm *gemm = job->gemm;
    const tdm_matrix *a = &gemm->args->a;
    int64_t depth = tdm_cpu_min(run->length, gemm->k - run->begin);
    while (row < end) {
        int64_t block = tdm_bf16_rows[tdm_bf16_size(tdm_bf16_rows, end - row)];
        int64_t rows = tdm_cpu_min(block, gemm->m - row);
        if (gemm->args->trans_a) {
            tdm_bf16_source from = source_at(a, run->begin, row, depth, rows);
            tdm_bf16_pack_rows_turned(&from, block, run->length, to);
        } else {
            tdm_bf16_source from = source_at(a, row, run->begin, rows, depth);
            tdm_bf16_pack_rows(&from, block, run->length, to);
        }
        row += block;
        to += block * run->length;
    }
}

/* Columns [column, end) of op(b). */
static void pack_b(const bf16_job *job, int64_t column, int64_t end, const depth_run *run,
                   tdm_bf16 *to)
{
    const tdm_gemm *gemm = job->gemm;
    const tdm_matrix *b = &gemm->args->b;
    int64_t depth = tdm_cpu_min(run->length, gemm->k - run->begin);
    int64_t columns = tdm_cpu_min(end, gemm->n) - column;
    if (gemm->args->trans_b) {
        tdm_bf16_source from = source_at(b, column, run->begin, columns, depth);
        tdm_bf16_pack_panels_turned(&from, run->length, to);
    } else {
        tdm_bf16_source from = source_at(b, run->begin, column, depth, columns);
        tdm_bf16_pack_panels(&from, run->length, to);
    }
}

static void pack_a_tile(void *context, int64_t index)
{
    const bf16_job *job = context;
    int64_t tiles = tdm_cpu_tiles(job->rows, ROWS), row = index % tiles * ROWS;
    depth_run run = depth_run_number(index / tiles, job->depth);
    pack_a(job, row, tdm_cpu_min(job->rows, row + ROWS), &run,
           job->packed + run.begin * job->rows + row * run.length);
}

static void pack_b_tile(void *context, int64_t index)
{
    const bf16_job *job = context;
    int64_t tiles = tdm_cpu_tiles(job->columns, COLUMNS), column = index % tiles * COLUMNS;
    depth_run run = depth_run_number(index / tiles, job->depth);
    pack_b(job, column, column + COLUMNS, &run,
           job->packed + run.begin * job->columns + column * run.length);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Brings the sums of a block, `stride` columns wide, to c. */
static void finish_block(const tdm_gemm *gemm, int64_t row, int64_t column, int64_t rows,
                         int64_t stride, const float *sums)
{
    const tdm_gemm_args *args = gemm->args;
    int64_t columns = tdm_cpu_min(stride, gemm->n - column);
    rows = tdm_cpu_min(rows, gemm->m - row);
    if (!args->accumulate) {
        tdm_gemm_epilogue(gemm, row, column, rows, columns, sums, stride);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        gemm->kernels->add(columns, sums + r * stride, tdm_cpu_row(&args->c, row + r) + column);
}

static void multiply(bf16_job *job, const tile_part *part)
{
    int64_t width = part->column_end - part->column, rows, columns;
    tdm_bf16_block block = {.depth_size = part->run.size, .accumulate = part->run.begin > 0};
    for (int64_t row = part->row; row < part->row_end; row += rows) {
        block.row_size = tdm_bf16_size(tdm_bf16_rows, part->row_end - row);
        rows = tdm_bf16_rows[block.row_size];
        block.a = part->a + (row - part->row) * part->run.length;
        for (int64_t column = part->column; column < part->column_end; column += columns) {
            block.column_size = tdm_bf16_size(tdm_bf16_columns, part->column_end - column);
            columns = tdm_bf16_columns[block.column_size];
            block.b = part->b + (column - part->column) * part->run.length;
            block.c = part->sums;
            if (part->keep_sums)
                block.c += (row - part->row) * width + (column - part->column) * rows;
            if (!tdm_bf16_multiply(job->products, tdm_pool_thread_index(), &block))
                atomic_store(&job->failed, true);
            if (part->run.begin + part->run.length == job->depth)
                finish_block(job->gemm, row, column, rows, columns, block.c);
        }
    }
}

static void product_tile(void *context, int64_t index)
{
    bf16_job *job = context;
    char *buffer = job->buffers + (size_t)tdm_pool_thread_index() * job->buffer_bytes;
    tdm_bf16 *packed = (void *)buffer;
    tile_part part = {.sums = (void *)(buffer + job->part_bytes)};
    part.keep_sums = job->depth > depth_run_at(0, job->depth).length;
    int64_t begin = index * job->tile, length = job->by_rows ? job->columns : job->rows;
    int64_t end = tdm_cpu_min(job->by_rows ? job->rows : job->columns, begin + job->tile);
    int64_t group = part.keep_sums ? (job->by_rows ? GROUP_COLUMNS : GROUP_ROWS) : length;
    for (int64_t at = 0; at < length; at += group) {
        int64_t group_end = tdm_cpu_min(length, at + group);
        part.row = job->by_rows ? begin : at;
        part.row_end = job->by_rows ? end : group_end;
        part.column = job->by_rows ? at : begin;
        part.column_end = job->by_rows ? group_end : end;
        for (int64_t depth = 0; depth < job->depth; depth += part.run.length) {
            part.run = depth_run_at(depth, job->depth);
            const tdm_bf16 *before = job->packed + depth * length + at * part.run.length;
            part.a = job->by_rows ? packed : before;
            part.b = job->by_rows ? before : packed;
            if (job->by_rows)
                pack_a(job, begin, end, &part.run, packed);
            else
                pack_b(job, begin, end, &part.run, packed);
            multiply(job, &part);
        }
    }
}

/* ---- the op ---------------------------------------------------------------------------------- */

/* The largest tile, falling from `most` by halves, of which there are enough. */
static int64_t choose_tile(int64_t count, int64_t most, int64_t least)
{
    while (most > least && tdm_cpu_tiles(count, most) < TILES)
        most /= 2;
    return most;
}

/* As much memory as valid rows can ever need, so that it need not grow with them. */
static tdm_status get_memory(tdm_backend *backend, bf16_job *job)
{
    const tdm_matrix *a = &job->gemm->args->a;
    bool trans_a = job->gemm->args->trans_a;
    int64_t depth = round_up(trans_a ? a->rows : a->columns, UNIT);
    int64_t length = job->by_rows ? job->columns : round_up(trans_a ? a->columns : a->rows, UNIT);
    int64_t sums = job->by_rows ? ROWS * GROUP_COLUMNS : GROUP_ROWS * COLUMNS;
    size_t packed = (size_t)(length * depth) * sizeof(tdm_bf16);
    packed = (packed + TDM_ALIGNMENT - 1) / TDM_ALIGNMENT * TDM_ALIGNMENT;
    job->part_bytes = (size_t)((job->by_rows ? ROWS : COLUMNS) * DEPTH) * sizeof(tdm_bf16);
    job->buffer_bytes = job->part_bytes + (size_t)sums * sizeof(float);
    char *memory;
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend),
                            packed + (size_t)tdm_pool_threads(backend->pool) * job->buffer_bytes,
                            &memory));
    job->packed = (void *)memory;
    job->buffers = memory + packed;
    return TDM_OK;
}

tdm_status tdm_gemm_bf16(tdm_backend *backend, const tdm_gemm *gemm)
{
    tdm_cpu_backend *cpu = tdm_cpu(backend);
    int64_t all_rows = gemm->args->trans_a ? gemm->m : gemm->args->a.rows;
    bf16_job job = {.gemm = gemm,
                    .by_rows = all_rows >= gemm->n,
                    .rows = round_up(gemm->m, UNIT),
                    .columns = round_up(gemm->n, PANEL),
                    .depth = round_up(gemm->k, UNIT)};
    job.tile =
        job.by_rows ? choose_tile(all_rows, ROWS, UNIT) : choose_tile(gemm->n, COLUMNS, PANEL);
    if (cpu->bf16_products == NULL)
        TDM_TRY(tdm_bf16_products_create(tdm_pool_threads(backend->pool), &cpu->bf16_products));
    job.products = cpu->bf16_products;
    TDM_TRY(get_memory(backend, &job));
    tdm_pool_for(backend->pool,
                 count_depth_runs(job.depth) * (job.by_rows ? tdm_cpu_tiles(job.columns, COLUMNS)
                                                            : tdm_cpu_tiles(job.rows, ROWS)),
                 job.by_rows ? pack_b_tile : pack_a_tile, &job);
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job.by_rows ? job.rows : job.columns, job.tile),
                 product_tile, &job);
    TDM_FAIL_IF(atomic_load(&job.failed), TDM_E_DEVICE, "oneDNN failed in a product of bf16");
    return TDM_OK;
}
