/* Matrix products in bfloat16. Each operand is rounded and packed once: the one that is cut into
 * tiles in each tile, the other before them. A tile is a run of rows of c with all its columns, or
 * of columns with all its rows, whichever there is more of. */
#include "cpu/bf16_products.h"
#include "cpu/gemm_internal.h"

#include <stdatomic.h>

#define TILES        8    /* that there should at least be */
#define MOST_COLUMNS 1024 /* of one product */
#define TILE_COLUMNS 512
#define LEAST_ROWS   32
#define MOST_DEPTH   TDM_BF16_MOST_DEPTH
#define PANEL        TDM_BF16_PANEL

typedef struct bf16_job {
    const tdm_gemm *gemm;
    int64_t m, k; /* whether valid or not */
    const tdm_bf16_plan *plan;
    bool by_rows;          /* tiles are rows of c: b is packed before them */
    int64_t tile;          /* rows or columns of a tile */
    int64_t block_columns; /* of one product, but for the last one, which has last_columns */
    int64_t last_columns;
    int64_t depth, columns; /* k and n, padded */
    tdm_bf16 *packed;       /* the operand packed before */
    char *buffers;          /* of each thread: its part of the other operand, then working memory */
    size_t buffer_bytes, part_bytes;
    _Atomic bool failed;
} bf16_job;

/* A run of the depth that is summed over; `size` is an index of tdm_bf16_depth_sizes. */
typedef struct depth_run {
    int64_t begin, length;
    int size;
} depth_run;

static int64_t round_up(int64_t count, int64_t unit)
{
    return tdm_cpu_tiles(count, unit) * unit;
}

static depth_run depth_run_at(int64_t begin, int64_t depth)
{
    int size = tdm_bf16_size(tdm_bf16_depth_sizes, depth - begin);
    return (depth_run){begin, tdm_bf16_depth_sizes[size], size};
}

static int64_t count_depth_runs(int64_t depth)
{
    int64_t rest = depth % MOST_DEPTH / TDM_BF16_DEPTH_UNIT;
    return depth / MOST_DEPTH + __builtin_popcountll((unsigned long long)rest);
}

static depth_run depth_run_number(int64_t index, int64_t depth)
{
    int64_t whole = depth / MOST_DEPTH;
    if (index < whole)
        return (depth_run){index * MOST_DEPTH, MOST_DEPTH, 0};
    depth_run run = depth_run_at(whole * MOST_DEPTH, depth);
    for (; index > whole; index--)
        run = depth_run_at(run.begin + run.length, depth);
    return run;
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Row `row` and column `column` of a matrix, and what follows there. */
static tdm_bf16_source source_at(const tdm_matrix *matrix, int64_t row, int64_t column,
                                 int64_t rows, int64_t columns)
{
    return (tdm_bf16_source){tdm_cpu_row(matrix, row) + column, rows, columns, matrix->stride};
}

/* The blocks of a that the rows [row, end) need for a run of the depth. */
static void pack_a(const bf16_job *job, int64_t row, int64_t end, const depth_run *run,
                   tdm_bf16 *to)
{
    const tdm_gemm_args *args = job->gemm->args;
    int64_t depth = tdm_cpu_min(run->length, job->gemm->k - run->begin);
    while (row < end) {
        int64_t rows = tdm_bf16_row_sizes[tdm_bf16_size(tdm_bf16_row_sizes, end - row)];
        tdm_bf16_source from;
        if (args->trans_a) {
            from = source_at(&args->a, run->begin, row, depth, rows);
            tdm_bf16_pack(&from, run->length, rows, to);
        } else {
            from = source_at(&args->a, row, run->begin, rows, depth);
            tdm_bf16_pack(&from, rows, run->length, to);
        }
        row += rows;
        to += rows * run->length;
    }
}

/* The panels of b that the columns [column, end) need for a run of the depth. */
static void pack_b(const bf16_job *job, int64_t column, int64_t end, const depth_run *run,
                   tdm_bf16 *to)
{
    const tdm_gemm_args *args = job->gemm->args;
    int64_t depth = tdm_cpu_min(run->length, job->gemm->k - run->begin);
    for (; column < end; column += PANEL, to += PANEL * run->length) {
        int64_t columns = tdm_cpu_min(PANEL, end - column);
        tdm_bf16_source from;
        if (args->trans_b) {
            from = source_at(&args->b, column, run->begin, columns, depth);
            tdm_bf16_pack_panel_turned(&from, run->length, to);
        } else {
            from = source_at(&args->b, run->begin, column, depth, columns);
            tdm_bf16_pack_panel(&from, run->length, to);
        }
    }
}

static void pack_a_tile(void *context, int64_t index)
{
    const bf16_job *job = context;
    int64_t parts = tdm_cpu_tiles(job->gemm->m, TDM_BF16_MOST_ROWS);
    int64_t row = index % parts * TDM_BF16_MOST_ROWS;
    depth_run run = depth_run_number(index / parts, job->depth);
    pack_a(job, row, tdm_cpu_min(job->gemm->m, row + TDM_BF16_MOST_ROWS), &run,
           job->packed + run.begin * job->gemm->m + row * run.length);
}

static void pack_b_tile(void *context, int64_t index)
{
    const bf16_job *job = context;
    int64_t parts = job->columns / PANEL;
    int64_t column = index % parts * PANEL;
    depth_run run = depth_run_number(index / parts, job->depth);
    pack_b(job, column, tdm_cpu_min(job->gemm->n, column + PANEL), &run,
           job->packed + run.begin * job->columns + column * run.length);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* A part of c for one run of the depth, and where its operands lie packed. */
typedef struct tile_part {
    int64_t row, row_end, column, column_end;
    const tdm_bf16 *a, *b;
    depth_run run;
} tile_part;

static void multiply(bf16_job *job, int thread, const tile_part *part)
{
    const tdm_gemm *gemm = job->gemm;
    bool last = part->run.begin + part->run.length == job->depth;
    tdm_bf16_run run = {.depth_size = part->run.size,
                        .accumulate = gemm->args->accumulate || part->run.begin > 0,
                        .scratch =
                            job->buffers + (size_t)thread * job->buffer_bytes + job->part_bytes};
    for (int64_t column = part->column; column < part->column_end; column += job->block_columns) {
        int64_t columns = tdm_cpu_min(job->block_columns, part->column_end - column);
        run.column_width = columns == job->last_columns ? 0 : 1;
        run.b = part->b + (column - part->column) * part->run.length;
        run.a = part->a;
        int64_t rows;
        for (int64_t row = part->row; row < part->row_end; row += rows) {
            run.row_size = tdm_bf16_size(tdm_bf16_row_sizes, part->row_end - row);
            rows = tdm_bf16_row_sizes[run.row_size];
            run.c = tdm_cpu_row(&gemm->args->c, row) + column;
            if (!tdm_bf16_plan_run(job->plan, thread, &run))
                atomic_store(&job->failed, true);
            if (last)
                tdm_gemm_epilogue(gemm, row, column, rows, columns);
            run.a += rows * part->run.length;
        }
    }
}

static void product_tile(void *context, int64_t index)
{
    bf16_job *job = context;
    const tdm_gemm *gemm = job->gemm;
    int thread = tdm_pool_thread_index();
    tdm_bf16 *buffer = (void *)(job->buffers + (size_t)thread * job->buffer_bytes);
    tile_part part = {.row_end = gemm->m, .column_end = gemm->n};
    int64_t begin = index * job->tile;
    if (job->by_rows) {
        part.row = begin;
        part.row_end = tdm_cpu_min(gemm->m, begin + job->tile);
    } else {
        part.column = begin;
        part.column_end = tdm_cpu_min(gemm->n, begin + job->tile);
    }
    for (int64_t at = 0; at < job->depth; at += part.run.length) {
        part.run = depth_run_at(at, job->depth);
        if (job->by_rows) {
            pack_a(job, part.row, part.row_end, &part.run, buffer);
            part.a = buffer;
            part.b = job->packed + at * job->columns;
        } else {
            pack_b(job, part.column, part.column_end, &part.run, buffer);
            part.a = job->packed + at * gemm->m;
            part.b = buffer;
        }
        multiply(job, thread, &part);
    }
}

/* ---- the op ---------------------------------------------------------------------------------- */

/* The largest of sizes falling from `most` by halves that makes enough tiles of `count`. */
static int64_t choose_tile(int64_t count, int64_t most, int64_t least)
{
    int64_t size = most;
    while (size > least && tdm_cpu_tiles(count, size) < TILES)
        size /= 2;
    return size;
}

/* Bits of the sizes into which `count` is cut. */
static int64_t sizes_of(const int64_t *sizes, int64_t count)
{
    int64_t bits = 0;
    while (count > 0) {
        int size = tdm_bf16_size(sizes, count);
        bits |= (int64_t)1 << size;
        count -= sizes[size];
    }
    return bits;
}

/* Bits of all sizes up to `most`. */
static int64_t sizes_up_to(const int64_t *sizes, int count, int64_t most)
{
    return ((int64_t)1 << count) - ((int64_t)1 << tdm_bf16_size(sizes, most));
}

/* How c is cut, from the shapes of the matrices and not the valid rows, which change. */
static void cut(bf16_job *job)
{
    int64_t n = job->gemm->n;
    job->by_rows = job->m >= n;
    if (job->by_rows) {
        job->tile = choose_tile(job->m, TDM_BF16_MOST_ROWS, LEAST_ROWS);
        job->block_columns = round_up(tdm_cpu_tiles(n, tdm_cpu_tiles(n, MOST_COLUMNS)), PANEL);
    } else {
        job->tile = choose_tile(n, TILE_COLUMNS, PANEL);
        job->block_columns = job->tile;
    }
    job->last_columns = (n - 1) % job->block_columns + 1;
}

static tdm_bf16_shape shape_of(const bf16_job *job)
{
    const tdm_gemm_args *args = job->gemm->args;
    int64_t tile_rows = job->by_rows ? tdm_cpu_min(job->tile, job->m) : job->m;
    int64_t depth = round_up(job->k, TDM_BF16_DEPTH_UNIT);
    tdm_bf16_shape shape = {.columns = {job->last_columns, 0},
                            .c_stride = tdm_gemm_stride(&args->c),
                            .trans_a = args->trans_a};
    if (job->gemm->n > job->last_columns && job->block_columns != job->last_columns)
        shape.columns[1] = job->block_columns;
    if (args->trans_a) {
        shape.row_sizes = sizes_of(tdm_bf16_row_sizes, tile_rows) |
                          sizes_of(tdm_bf16_row_sizes, job->m % tile_rows);
        shape.depth_sizes = sizes_up_to(tdm_bf16_depth_sizes, TDM_BF16_DEPTH_SIZES, depth);
        shape.first_sizes = args->accumulate ? 0 : shape.depth_sizes;
    } else {
        depth_run first = depth_run_at(0, depth);
        shape.row_sizes = sizes_up_to(tdm_bf16_row_sizes, TDM_BF16_ROW_SIZES, tile_rows);
        shape.first_sizes = args->accumulate ? 0 : (int64_t)1 << first.size;
        shape.depth_sizes =
            sizes_of(tdm_bf16_depth_sizes, args->accumulate ? depth : depth - first.length);
    }
    return shape;
}

static tdm_status get_memory(tdm_backend *backend, bf16_job *job)
{
    int64_t depth = round_up(job->k, TDM_BF16_DEPTH_UNIT);
    size_t whole = (size_t)((job->by_rows ? job->columns : job->m) * depth) * sizeof(tdm_bf16);
    whole = (whole + 63) / 64 * 64;
    job->part_bytes = (size_t)(round_up(job->tile, PANEL) * MOST_DEPTH) * sizeof(tdm_bf16);
    job->buffer_bytes = job->part_bytes + (tdm_bf16_plan_scratch(job->plan) + 63) / 64 * 64;
    char *memory;
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend),
                            whole + (size_t)tdm_pool_threads(backend->pool) * job->buffer_bytes,
                            &memory));
    job->packed = (void *)memory;
    job->buffers = memory + whole;
    return TDM_OK;
}

tdm_status tdm_gemm_need_bf16(tdm_backend *backend)
{
    TDM_FAIL_IF(!tdm_cpu(backend)->bf16, TDM_E_UNSUPPORTED,
                "this CPU has no products in bf16 (AVX512_BF16 or AMX_BF16): set "
                "train.precision: fp32");
    return TDM_OK;
}

tdm_status tdm_gemm_bf16(tdm_backend *backend, const tdm_gemm *gemm)
{
    tdm_cpu_backend *cpu = tdm_cpu(backend);
    const tdm_matrix *a = &gemm->args->a;
    bf16_job job = {.gemm = gemm,
                    .m = gemm->args->trans_a ? a->columns : a->rows,
                    .k = gemm->args->trans_a ? a->rows : a->columns,
                    .depth = round_up(gemm->k, TDM_BF16_DEPTH_UNIT),
                    .columns = round_up(gemm->n, PANEL)};
    cut(&job);
    tdm_bf16_shape shape = shape_of(&job);
    if (cpu->bf16_products == NULL)
        TDM_TRY(tdm_bf16_products_create(tdm_pool_threads(backend->pool), &cpu->bf16_products));
    TDM_TRY(tdm_bf16_products_get(cpu->bf16_products, &shape, &job.plan));
    TDM_TRY(get_memory(backend, &job));
    int64_t runs = count_depth_runs(job.depth);
    if (job.by_rows)
        tdm_pool_for(backend->pool, runs * (job.columns / PANEL), pack_b_tile, &job);
    else
        tdm_pool_for(backend->pool, runs * tdm_cpu_tiles(gemm->m, TDM_BF16_MOST_ROWS), pack_a_tile,
                     &job);
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job.by_rows ? gemm->m : gemm->n, job.tile),
                 product_tile, &job);
    TDM_FAIL_IF(atomic_load(&job.failed), TDM_E_DEVICE, "oneDNN failed in a product of bf16");
    return TDM_OK;
}
