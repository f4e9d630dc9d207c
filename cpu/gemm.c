/* Matrix products. Large ones are cut into tiles that oneDNN computes on the thread that runs them;
 * products with a vector are bound by memory and have loops of their own.
 *
 * dnnl_sgemm reads plain operands in place and is then as fast as its primitives on packed weights;
 * only a transposed b costs it a tenth, so that one is turned first. */
#include "cpu/backend_cpu.h"
#include "cpu/onednn.h"

#include <dnnl.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

/* Sizes near which tiles are cut, and what they are whole multiples of: oneDNN computes 8 rows by
 * 48 columns at a time. */
#define BATCH_TILE_ROWS  128
#define OUTPUT_TILE_ROWS 56 /* of a weight gradient, which reads the whole batch for each tile */
#define TILE_COLUMNS     768
#define ROW_UNIT         8
#define COLUMN_UNIT      48
#define SHARES           4 /* parts are a multiple of it, so that few threads get equal shares */

#define SUM_ROWS  128 /* rows of a partial sum of a product with a vector */
#define TURN_ROWS 48  /* rows of b that a tile turns */
#define TURN_FROM 256 /* rows of the batch that make turning b pay */

/* One dimension cut into nearly even parts at multiples of `unit`. */
typedef struct even_cut {
    int64_t total, unit, parts;
} even_cut;

typedef struct gemm_job {
    const tdm_kernels *kernels;
    const tdm_gemm_args *args;
    int64_t m, n, k; /* valid rows only */
    tdm_matrix b;    /* as args->b and args->trans_b, or turned */
    bool trans_b;
    even_cut rows, columns;
    int64_t tile_rows;
    const float *vector; /* the operand that is a vector, contiguous */
    float *partials;
    _Atomic int failed; /* a dnnl_status_t */
} gemm_job;

static even_cut make_cut(int64_t total, int64_t unit, int64_t near)
{
    int64_t parts = (total + near / 2) / near;
    if (parts > SHARES / 2)
        parts = (parts + SHARES / 2) / SHARES * SHARES;
    int64_t most = tdm_cpu_tiles(total, unit);
    return (even_cut){total, unit, parts < 1 ? 1 : tdm_cpu_min(parts, most)};
}

/* Where a part begins. The larger parts come first: the last ones even out what threads have done.
 */
static int64_t cut_at(const even_cut *cut, int64_t part)
{
    int64_t units = tdm_cpu_tiles(cut->total, cut->unit);
    int64_t larger = units % cut->parts;
    int64_t begin = units / cut->parts * part + tdm_cpu_min(part, larger);
    return tdm_cpu_min(cut->total, begin * cut->unit);
}

/* A stride that oneDNN accepts: that of a single row says nothing and may be anything. */
static dnnl_dim_t leading(const tdm_matrix *matrix)
{
    return matrix->stride > matrix->columns ? matrix->stride : matrix->columns;
}

/* The part of c that begins at (row, column) and has m rows and n columns. */
static dnnl_status_t call_onednn(const gemm_job *job, int64_t row, int64_t column, int64_t m,
                                 int64_t n)
{
    const tdm_gemm_args *args = job->args;
    const float *a = args->trans_a ? tdm_cpu_row(&args->a, 0) + row : tdm_cpu_row(&args->a, row);
    const float *b = job->trans_b ? tdm_cpu_row(&job->b, column) : tdm_cpu_row(&job->b, 0) + column;
    return dnnl_sgemm(args->trans_a ? 'T' : 'N', job->trans_b ? 'T' : 'N', m, n, job->k, 1.0f, a,
                      leading(&args->a), b, leading(&job->b), args->accumulate ? 1.0f : 0.0f,
                      tdm_cpu_row(&args->c, row) + column, leading(&args->c));
}

static bool has_epilogue(const tdm_gemm_args *args)
{
    return args->bias != NULL || args->activation != TDM_ACTIVATION_NONE;
}

static void apply_epilogue(const gemm_job *job, int64_t row, int64_t column, int64_t m, int64_t n)
{
    const tdm_gemm_args *args = job->args;
    if (!has_epilogue(args))
        return;
    const float *bias = args->bias == NULL ? NULL : args->bias + column;
    for (int64_t r = row; r < row + m; r++)
        job->kernels->epilogue(n, bias, args->activation, tdm_cpu_row(&args->c, r) + column);
}

static void product_tile(void *context, int64_t index)
{
    gemm_job *job = context;
    int64_t part = index / job->columns.parts, other = index % job->columns.parts;
    int64_t row = cut_at(&job->rows, part), column = cut_at(&job->columns, other);
    int64_t m = cut_at(&job->rows, part + 1) - row;
    int64_t n = cut_at(&job->columns, other + 1) - column;
    omp_set_num_threads(1);
    dnnl_status_t status = call_onednn(job, row, column, m, n);
    if (status != dnnl_success)
        atomic_store(&job->failed, (int)status);
    apply_epilogue(job, row, column, m, n);
}

static void turn_tile(void *context, int64_t index)
{
    const gemm_job *job = context;
    const tdm_matrix *from = &job->args->b;
    int64_t row = index * TURN_ROWS;
    job->kernels->transpose(tdm_cpu_min(from->rows - row, TURN_ROWS), from->columns,
                            tdm_cpu_row(from, row), from->stride, (float *)job->b.data + row,
                            job->b.stride);
}

static tdm_status turn_b(tdm_backend *backend, gemm_job *job)
{
    const tdm_matrix *from = &job->args->b;
    job->b = (tdm_matrix){.rows = from->columns, .columns = from->rows, .stride = from->rows};
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)(job->b.rows * job->b.stride) * sizeof(float),
                            &job->b.data));
    tdm_pool_for(backend->pool, tdm_cpu_tiles(from->rows, TURN_ROWS), turn_tile, job);
    job->trans_b = false;
    return TDM_OK;
}

static tdm_status run_product(tdm_backend *backend, gemm_job *job)
{
    bool weights = job->args->trans_a;
    job->rows = make_cut(job->m, ROW_UNIT, weights ? OUTPUT_TILE_ROWS : BATCH_TILE_ROWS);
    job->columns = make_cut(job->n, COLUMN_UNIT, TILE_COLUMNS);
    if (job->trans_b && !weights && job->m >= TURN_FROM)
        TDM_TRY(turn_b(backend, job));
    tdm_pool_for(backend->pool, job->rows.parts * job->columns.parts, product_tile, job);
    int failed = atomic_load(&job->failed);
    TDM_FAIL_IF(failed == dnnl_out_of_memory, TDM_E_NOMEM, "oneDNN ran out of memory");
    TDM_FAIL_IF(failed != dnnl_success, TDM_E_DEVICE,
                "oneDNN refused a product of %lld x %lld x %lld (status %d)", (long long)job->m,
                (long long)job->n, (long long)job->k, failed);
    return TDM_OK;
}

/* ---- products with a vector ------------------------------------------------------------------ */

/* Makes a column or row of a matrix contiguous. */
static tdm_status get_vector(tdm_backend *backend, const tdm_matrix *matrix, bool column,
                             int64_t count, const float **out)
{
    *out = matrix->data;
    if (!column || matrix->stride == 1 || count == 1)
        return TDM_OK;
    float *copy;
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)count * sizeof(float), &copy));
    for (int64_t i = 0; i < count; i++)
        copy[i] = *tdm_cpu_row(matrix, i);
    *out = copy;
    return TDM_OK;
}

/* c [m, 1] = a · vector */
static void dot_tile(void *context, int64_t index)
{
    const gemm_job *job = context;
    const tdm_gemm_args *args = job->args;
    int64_t end = tdm_cpu_min(job->m, (index + 1) * job->tile_rows);
    for (int64_t r = index * job->tile_rows; r < end; r++) {
        float product = job->kernels->dot(job->k, tdm_cpu_row(&args->a, r), job->vector);
        float *c = tdm_cpu_row(&args->c, r);
        *c = args->accumulate ? *c + product : product;
    }
    apply_epilogue(job, index * job->tile_rows, 0, end - index * job->tile_rows, 1);
}

/* c [m, n] = a [m, 1] · vector */
static void outer_tile(void *context, int64_t index)
{
    const gemm_job *job = context;
    const tdm_gemm_args *args = job->args;
    int64_t end = tdm_cpu_min(job->m, (index + 1) * job->tile_rows);
    for (int64_t r = index * job->tile_rows; r < end; r++) {
        float factor = *tdm_cpu_row(&args->a, r), *c = tdm_cpu_row(&args->c, r);
        if (args->accumulate)
            job->kernels->add_scaled(job->n, factor, job->vector, c);
        else
            job->kernels->scale(job->n, factor, job->vector, c);
    }
    apply_epilogue(job, index * job->tile_rows, 0, end - index * job->tile_rows, job->n);
}

static tdm_status run_vector(tdm_backend *backend, gemm_job *job)
{
    const tdm_gemm_args *args = job->args;
    bool dot = job->n == 1;
    TDM_TRY(get_vector(backend, &args->b, dot ? !args->trans_b : args->trans_b,
                       dot ? job->k : job->n, &job->vector));
    job->tile_rows = tdm_cpu_tile_rows(dot ? job->k : job->n);
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job->m, job->tile_rows), dot ? dot_tile : outer_tile,
                 job);
    return TDM_OK;
}

/* Σ_r factors[r] · x[r, :], one of a and b being the factors and the other x: each tile sums its
 * rows, then the sums are added in order. */
static void row_sum_tile(void *context, int64_t index)
{
    const gemm_job *job = context;
    bool a_is_vector = job->m == 1;
    const tdm_matrix *factors = a_is_vector ? &job->args->a : &job->args->b;
    const tdm_matrix *x = a_is_vector ? &job->args->b : &job->args->a;
    int64_t columns = a_is_vector ? job->n : job->m;
    float *sums = job->partials + index * columns;
    memset(sums, 0, (size_t)columns * sizeof(float));
    int64_t end = tdm_cpu_min(job->k, (index + 1) * SUM_ROWS);
    for (int64_t r = index * SUM_ROWS; r < end; r++)
        job->kernels->add_scaled(columns, *tdm_cpu_row(factors, r), tdm_cpu_row(x, r), sums);
}

static tdm_status run_row_sum(tdm_backend *backend, gemm_job *job)
{
    const tdm_gemm_args *args = job->args;
    int64_t columns = job->m == 1 ? job->n : job->m, tiles = tdm_cpu_tiles(job->k, SUM_ROWS);
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)(tiles * columns) * sizeof(float),
                            &job->partials));
    tdm_pool_for(backend->pool, tiles, row_sum_tile, job);
    for (int64_t t = 1; t < tiles; t++)
        job->kernels->add(columns, job->partials + t * columns, job->partials);
    for (int64_t i = 0; i < columns; i++) {
        float *c = job->m == 1 ? tdm_cpu_row(&args->c, 0) + i : tdm_cpu_row(&args->c, i);
        *c = args->accumulate ? *c + job->partials[i] : job->partials[i];
    }
    apply_epilogue(job, 0, 0, job->m, job->n);
    return TDM_OK;
}

/* k is 0: the product is zero. */
static void run_empty(gemm_job *job)
{
    for (int64_t r = 0; r < job->m && !job->args->accumulate; r++)
        memset(tdm_cpu_row(&job->args->c, r), 0, (size_t)job->n * sizeof(float));
    apply_epilogue(job, 0, 0, job->m, job->n);
}

static gemm_job make_job(const tdm_kernels *kernels, const tdm_gemm_args *args)
{
    gemm_job job = {.kernels = kernels,
                    .args = args,
                    .m = args->trans_a ? args->a.columns : args->a.rows,
                    .n = args->trans_b ? args->b.rows : args->b.columns,
                    .k = args->trans_a ? args->a.rows : args->a.columns,
                    .b = args->b,
                    .trans_b = args->trans_b};
    if (args->trans_a)
        job.k = tdm_cpu_rows(args->rows, job.k);
    else
        job.m = tdm_cpu_rows(args->rows, job.m);
    return job;
}

tdm_status tdm_cpu_gemm(tdm_backend *backend, const tdm_gemm_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("gemm", args->a, args->b, args->c);
    TDM_FAIL_IF(args->accumulate && has_epilogue(args), TDM_E_ARG,
                "the op gemm has no bias and no activation where it accumulates");
    gemm_job job = make_job(tdm_cpu(backend)->kernels, args);
    if (job.m == 0 || job.n == 0)
        return TDM_OK;
    if (job.k == 0) {
        run_empty(&job);
        return TDM_OK;
    }
    if (!args->trans_a && (job.n == 1 || job.k == 1))
        return run_vector(backend, &job);
    if (args->trans_a && !args->trans_b && (job.m == 1 || job.n == 1))
        return run_row_sum(backend, &job);
    return run_product(backend, &job);
}

tdm_status tdm_onednn_gemm_own_threading(const tdm_gemm_args *args, int threads)
{
    TDM_CPU_NEED_F32("gemm", args->a, args->b, args->c);
    gemm_job job = make_job(NULL, args);
    omp_set_num_threads(threads);
    dnnl_status_t status = call_onednn(&job, 0, 0, job.m, job.n);
    omp_set_num_threads(1);
    TDM_FAIL_IF(status != dnnl_success, TDM_E_DEVICE, "oneDNN refused a product (status %d)",
                (int)status);
    return TDM_OK;
}
