/* Matrix products in bfloat16, put together from blocks (bf16_products.h). A tile is a run of rows
 * of c with all columns, or of columns with all rows, whichever there is more of: then the operand
 * that is cut into tiles is rounded and packed in its tile, in parts that stay in the cache, and
 * only the other, smaller one before all tiles. */
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
/* Tiles of the depth pay where it is so much and so many times the rows and columns, and the sums
 * are no more. */
#define DEEP_FROM  (TILES * DEPTH)
#define DEEP_TIMES 4
#define DEEP_SUMS  (1 << 19)
/* Sums of a tile that are kept where the depth takes several blocks: so many columns of its rows,
 * or rows of its columns. */
#define GROUP_COLUMNS 1024
#define GROUP_ROWS    512

typedef enum tile_kind {
    TILE_ROWS,    /* of c with all columns; b is packed before */
    TILE_COLUMNS, /* of c with all rows; a is packed before */
    TILE_DEPTH, /* of all of c: parts of the sums, to be added in order; nothing is packed before */
} tile_kind;

typedef struct bf16_job {
    const tdm_gemm *gemm;
    const tdm_bf16_products *products;
    tile_kind kind;
    int64_t tile;                 /* rows, columns or depth */
    int64_t rows, columns, depth; /* of the product, in whole blocks */
    tdm_bf16 *packed;             /* before the tiles */
    float *parts;                 /* TILE_DEPTH: the sums of each tile */
    char *buffers;                /* of each thread: packed parts, then sums */
    size_t a_bytes, b_bytes, buffer_bytes;
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
    bool first, last; /* run of the depth */
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

/* The part of a matrix that begins at (row, column). */
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

/* The next block of a part, at (row, column). */
typedef struct block_place {
    int row_size, column_size; /* indices */
    int64_t rows, columns;
    int64_t sums; /* from the part's sums */
} block_place;

static block_place place_block(const tile_part *part, int64_t row, int64_t column)
{
    block_place place = {.row_size = tdm_bf16_size(tdm_bf16_rows, part->row_end - row),
                         .column_size = tdm_bf16_size(tdm_bf16_columns, part->column_end - column)};
    place.rows = tdm_bf16_rows[place.row_size];
    place.columns = tdm_bf16_columns[place.column_size];
    if (part->keep_sums)
        place.sums = (row - part->row) * (part->column_end - part->column) +
                     (column - part->column) * place.rows;
    return place;
}

static void multiply(bf16_job *job, const tile_part *part)
{
    block_place place = {0};
    for (int64_t row = part->row; row < part->row_end; row += place.rows) {
        for (int64_t column = part->column; column < part->column_end; column += place.columns) {
            place = place_block(part, row, column);
            tdm_bf16_block block = {.row_size = place.row_size,
                                    .column_size = place.column_size,
                                    .depth_size = part->run.size,
                                    .accumulate = !part->first,
                                    .a = part->a + (row - part->row) * part->run.length,
                                    .b = part->b + (column - part->column) * part->run.length,
                                    .c = part->sums + place.sums};
            if (!tdm_bf16_multiply(job->products, tdm_pool_thread_index(), &block))
                atomic_store(&job->failed, true);
            if (part->last)
                finish_block(job->gemm, row, column, place.rows, place.columns, block.c);
        }
    }
}

static tdm_bf16 *thread_buffer(const bf16_job *job)
{
    return (void *)(job->buffers + (size_t)tdm_pool_thread_index() * job->buffer_bytes);
}

static void product_tile(void *context, int64_t index)
{
    bf16_job *job = context;
    bool by_rows = job->kind == TILE_ROWS;
    tdm_bf16 *packed = thread_buffer(job);
    tile_part part = {.sums = (void *)((char *)packed + job->a_bytes + job->b_bytes)};
    part.keep_sums = job->depth > depth_run_at(0, job->depth).length;
    int64_t begin = index * job->tile, length = by_rows ? job->columns : job->rows;
    int64_t end = tdm_cpu_min(by_rows ? job->rows : job->columns, begin + job->tile);
    int64_t group = !part.keep_sums ? length : by_rows ? GROUP_COLUMNS : GROUP_ROWS;
    for (int64_t at = 0; at < length; at += group) {
        int64_t group_end = tdm_cpu_min(length, at + group);
        part.row = by_rows ? begin : at;
        part.row_end = by_rows ? end : group_end;
        part.column = by_rows ? at : begin;
        part.column_end = by_rows ? group_end : end;
        for (int64_t depth = 0; depth < job->depth; depth += part.run.length) {
            part.run = depth_run_at(depth, job->depth);
            part.first = depth == 0;
            part.last = depth + part.run.length == job->depth;
            const tdm_bf16 *before = job->packed + depth * length + at * part.run.length;
            part.a = by_rows ? packed : before;
            part.b = by_rows ? before : packed;
            if (by_rows)
                pack_a(job, begin, end, &part.run, packed);
            else
                pack_b(job, begin, end, &part.run, packed);
            multiply(job, &part);
        }
    }
}

/* ---- tiles of the depth ---------------------------------------------------------------------- */

static void depth_tile(void *context, int64_t index)
{
    bf16_job *job = context;
    tdm_bf16 *a = thread_buffer(job), *b = a + job->a_bytes / sizeof *a;
    int64_t begin = index * job->tile, end = tdm_cpu_min(job->depth, begin + job->tile);
    tile_part part = {.column_end = job->columns, .a = a, .b = b, .keep_sums = true};
    for (int64_t depth = begin; depth < end; depth += part.run.length) {
        part.run = depth_run_at(depth, job->depth);
        part.first = depth == begin;
        pack_b(job, 0, job->columns, &part.run, b);
        for (part.row = 0; part.row < job->rows; part.row = part.row_end) {
            part.row_end = tdm_cpu_min(job->rows, part.row + ROWS);
            part.sums = job->parts + (index * job->rows + part.row) * job->columns;
            pack_a(job, part.row, part.row_end, &part.run, a);
            multiply(job, &part);
        }
    }
}

/* Adds the parts of some rows. */
static void sum_tile(void *context, int64_t index)
{
    const bf16_job *job = context;
    int64_t tiles = tdm_cpu_tiles(job->depth, job->tile), size = job->rows * job->columns;
    tile_part part = {.row = index * ROWS, .column_end = job->columns, .keep_sums = true};
    part.row_end = tdm_cpu_min(job->rows, part.row + ROWS);
    part.sums = job->parts + part.row * job->columns;
    for (int64_t i = 1; i < tiles; i++)
        job->gemm->kernels->add((part.row_end - part.row) * job->columns, part.sums + i * size,
                                part.sums);
    block_place place = {0};
    for (int64_t row = part.row; row < part.row_end; row += place.rows) {
        for (int64_t column = 0; column < job->columns; column += place.columns) {
            place = place_block(&part, row, column);
            finish_block(job->gemm, row, column, place.rows, place.columns, part.sums + place.sums);
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

/* How the op is cut, from the shapes of its matrices and not the valid rows, which change with
 * every step. */
static void choose_tiles(bf16_job *job, int64_t all_rows, int64_t all_depth)
{
    int64_t n = job->gemm->n, wider = all_rows > n ? all_rows : n;
    if (all_depth >= DEEP_FROM && all_depth >= DEEP_TIMES * wider && all_rows * n <= DEEP_SUMS) {
        job->kind = TILE_DEPTH;
        job->tile = round_up(tdm_cpu_tiles(all_depth, TILES), DEPTH);
    } else if (all_rows >= n) {
        job->kind = TILE_ROWS;
        job->tile = choose_tile(all_rows, ROWS, UNIT);
    } else {
        job->kind = TILE_COLUMNS;
        job->tile = choose_tile(n, COLUMNS, PANEL);
    }
}

static size_t align(int64_t bytes)
{
    return (size_t)round_up(bytes, TDM_ALIGNMENT);
}

/* As much memory as valid rows can ever need, so that it need not grow with them. */
static tdm_status get_memory(tdm_backend *backend, bf16_job *job, int64_t all_rows,
                             int64_t all_depth)
{
    size_t threads = (size_t)tdm_pool_threads(backend->pool), sums = 0, parts = 0, packed = 0;
    int64_t rows = round_up(all_rows, UNIT), depth = round_up(all_depth, UNIT);
    char *memory;
    if (job->kind != TILE_COLUMNS)
        job->a_bytes = sizeof(tdm_bf16) * ROWS * DEPTH;
    if (job->kind != TILE_ROWS)
        job->b_bytes =
            sizeof(tdm_bf16) * DEPTH * (size_t)(job->kind == TILE_DEPTH ? job->columns : COLUMNS);
    if (job->kind == TILE_DEPTH)
        parts =
            align(tdm_cpu_tiles(depth, job->tile) * rows * job->columns * (int64_t)sizeof(float));
    else if (job->kind == TILE_ROWS) {
        packed = align(job->columns * depth * (int64_t)sizeof(tdm_bf16));
        sums = sizeof(float) * ROWS * GROUP_COLUMNS;
    } else {
        packed = align(rows * depth * (int64_t)sizeof(tdm_bf16));
        sums = sizeof(float) * GROUP_ROWS * COLUMNS;
    }
    job->buffer_bytes = job->a_bytes + job->b_bytes + sums;
    TDM_TRY(
        tdm_cpu_scratch(tdm_cpu(backend), packed + parts + threads * job->buffer_bytes, &memory));
    job->packed = (void *)memory;
    job->parts = (void *)memory;
    job->buffers = memory + packed + parts;
    return TDM_OK;
}

tdm_status tdm_gemm_bf16(tdm_backend *backend, const tdm_gemm *gemm)
{
    tdm_cpu_backend *cpu = tdm_cpu(backend);
    const tdm_matrix *a = &gemm->args->a;
    int64_t all_rows = gemm->args->trans_a ? a->columns : a->rows;
    int64_t all_depth = gemm->args->trans_a ? a->rows : a->columns;
    bf16_job job = {.gemm = gemm,
                    .rows = round_up(gemm->m, UNIT),
                    .columns = round_up(gemm->n, PANEL),
                    .depth = round_up(gemm->k, UNIT)};
    if (cpu->bf16_products == NULL)
        TDM_TRY(tdm_bf16_products_create(tdm_pool_threads(backend->pool), &cpu->bf16_products));
    job.products = cpu->bf16_products;
    choose_tiles(&job, all_rows, all_depth);
    TDM_TRY(get_memory(backend, &job, all_rows, all_depth));
    int64_t runs = count_depth_runs(job.depth);
    switch (job.kind) {
    case TILE_ROWS:
        tdm_pool_for(backend->pool, runs * tdm_cpu_tiles(job.columns, COLUMNS), pack_b_tile, &job);
        tdm_pool_for(backend->pool, tdm_cpu_tiles(job.rows, job.tile), product_tile, &job);
        break;
    case TILE_COLUMNS:
        tdm_pool_for(backend->pool, runs * tdm_cpu_tiles(job.rows, ROWS), pack_a_tile, &job);
        tdm_pool_for(backend->pool, tdm_cpu_tiles(job.columns, job.tile), product_tile, &job);
        break;
    case TILE_DEPTH:
        tdm_pool_for(backend->pool, tdm_cpu_tiles(job.depth, job.tile), depth_tile, &job);
        tdm_pool_for(backend->pool, tdm_cpu_tiles(job.rows, ROWS), sum_tile, &job);
        break;
    }
    TDM_FAIL_IF(atomic_load(&job.failed), TDM_E_DEVICE, "oneDNN failed in a product of bf16");
    return TDM_OK;
}
