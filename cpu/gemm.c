/* Matrix products. Large ones are cut into tiles that oneDNN computes on the thread that runs them;
 * products with a vector are bound by memory and have loops of their own.
 *
 * dnnl_sgemm reads plain operands in place and is then as fast as its primitives on packed weights.
 * Two things cost it a tenth and more: a transposed b, and rows of b that lie a power of two apart,
 * for the cache then holds few of them. Where many rows are multiplied, such a b is laid out anew
 * first. */
#include "cpu/gemm_internal.h"
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
/* The same of a weight gradient with many rows, and of one whose b should have been laid out anew,
 * but is too large for that. */
#define OUTPUT_MANY_ROWS     512
#define OUTPUT_LARGE_TILE    128
#define OUTPUT_APART_ROWS    256
#define OUTPUT_APART_COLUMNS 512

#define APART        1024 /* floats: multiples of it between rows of b are bad */
#define APART_TURNED 256  /* the same where the distance is ours to choose */
#define APART_ADDED  16

#define LAY_ROWS    48   /* rows of b that a tile lays out */
#define TURN_FROM   256  /* rows of the batch that make turning b pay */
#define SPREAD_FROM 1024 /* and those that make copying it pay */

#define SUM_ROWS 128 /* rows of a partial sum of a product with a vector */

/* One dimension cut into nearly even parts at multiples of `unit`. */
typedef struct even_cut {
    int64_t total, unit, parts;
} even_cut;

typedef struct gemm_job {
    tdm_gemm gemm;
    tdm_matrix b; /* as the op's b and trans_b, or turned */
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

/* The part of c that begins at (row, column) and has m rows and n columns. */
static dnnl_status_t call_onednn(const gemm_job *job, int64_t row, int64_t column, int64_t m,
                                 int64_t n)
{
    const tdm_gemm_args *args = job->gemm.args;
    const float *a = args->trans_a ? tdm_cpu_row(&args->a, 0) + row : tdm_cpu_row(&args->a, row);
    const float *b = job->trans_b ? tdm_cpu_row(&job->b, column) : tdm_cpu_row(&job->b, 0) + column;
    return dnnl_sgemm(args->trans_a ? 'T' : 'N', job->trans_b ? 'T' : 'N', m, n, job->gemm.k, 1.0f,
                      a, tdm_gemm_stride(&args->a), b, tdm_gemm_stride(&job->b),
                      args->accumulate ? 1.0f : 0.0f, tdm_cpu_row(&args->c, row) + column,
                      tdm_gemm_stride(&args->c));
}

static bool has_epilogue(const tdm_gemm_args *args)
{
    return args->bias != NULL || args->activation != TDM_ACTIVATION_NONE ||
           args->preactivation.data != NULL;
}

void tdm_gemm_epilogue(const tdm_gemm *gemm, int64_t row, int64_t column, int64_t m, int64_t n,
                       const float *product, int64_t stride)
{
    const tdm_gemm_args *args = gemm->args;
    const float *bias = args->bias == NULL ? NULL : args->bias + column;
    bool kept = args->preactivation.data != NULL;
    for (int64_t r = row; r < row + m; r++, product += stride)
        gemm->kernels->epilogue(n, product, bias, args->activation,
                                kept ? tdm_cpu_row(&args->preactivation, r) + column : NULL,
                                tdm_cpu_row(&args->c, r) + column);
}

/* The same where the product lies in c. */
static void finish(const tdm_gemm *gemm, int64_t row, int64_t column, int64_t m, int64_t n)
{
    const tdm_matrix *c = &gemm->args->c;
    if (has_epilogue(gemm->args))
        tdm_gemm_epilogue(gemm, row, column, m, n, tdm_cpu_row(c, row) + column, c->stride);
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
    finish(&job->gemm, row, column, m, n);
}

static void lay_out_tile(void *context, int64_t index)
{
    const gemm_job *job = context;
    const tdm_matrix *from = &job->gemm.args->b, *to = &job->b;
    int64_t row = index * LAY_ROWS, rows = tdm_cpu_min(from->rows - row, LAY_ROWS);
    if (job->gemm.args->trans_b) {
        job->gemm.kernels->transpose(rows, from->columns, tdm_cpu_row(from, row), from->stride,
                                     tdm_cpu_row(to, 0) + row, to->stride);
        return;
    }
    for (int64_t r = row; r < row + rows; r++)
        memcpy(tdm_cpu_row(to, r), tdm_cpu_row(from, r), (size_t)to->columns * sizeof(float));
}

/* Makes job->b of op(b), not transposed and with rows at a good distance. */
static tdm_status lay_out_b(tdm_backend *backend, gemm_job *job)
{
    const tdm_gemm *gemm = &job->gemm;
    int64_t rows = gemm->args->trans_b ? gemm->args->b.columns : gemm->args->b.rows;
    job->b = (tdm_matrix){.rows = rows, .columns = gemm->n, .stride = gemm->n};
    if (gemm->n % APART_TURNED == 0)
        job->b.stride += APART_ADDED;
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)(rows * job->b.stride) * sizeof(float),
                            &job->b.data));
    tdm_pool_for(backend->pool, tdm_cpu_tiles(gemm->args->b.rows, LAY_ROWS), lay_out_tile, job);
    job->trans_b = false;
    return TDM_OK;
}

/* How c is cut, and b laid out. Rows that are valid change with every step: what needs memory
 * depends on all rows instead. */
static tdm_status prepare_product(tdm_backend *backend, gemm_job *job)
{
    const tdm_gemm *gemm = &job->gemm;
    const tdm_gemm_args *args = gemm->args;
    bool apart = !args->trans_b && args->b.stride % APART == 0;
    int64_t near_rows = BATCH_TILE_ROWS, near_columns = TILE_COLUMNS;
    if (args->trans_a && apart) {
        near_rows = OUTPUT_APART_ROWS;
        near_columns = OUTPUT_APART_COLUMNS;
        if (gemm->m * gemm->n < SHARES * near_rows * near_columns)
            near_columns /= 2;
    } else if (args->trans_a) {
        near_rows = gemm->m >= OUTPUT_MANY_ROWS ? OUTPUT_LARGE_TILE : OUTPUT_TILE_ROWS;
    }
    job->rows = make_cut(gemm->m, ROW_UNIT, near_rows);
    job->columns = make_cut(gemm->n, COLUMN_UNIT, near_columns);
    if (!args->trans_a &&
        ((args->trans_b && args->a.rows >= TURN_FROM) || (apart && args->a.rows >= SPREAD_FROM)))
        return lay_out_b(backend, job);
    return TDM_OK;
}

static tdm_status run_product(tdm_backend *backend, gemm_job *job)
{
    TDM_TRY(prepare_product(backend, job));
    tdm_pool_for(backend->pool, job->rows.parts * job->columns.parts, product_tile, job);
    int failed = atomic_load(&job->failed);
    TDM_FAIL_IF(failed == dnnl_out_of_memory, TDM_E_NOMEM, "oneDNN ran out of memory");
    TDM_FAIL_IF(failed != dnnl_success, TDM_E_DEVICE,
                "oneDNN refused a product of %lld x %lld x %lld (status %d)",
                (long long)job->gemm.m, (long long)job->gemm.n, (long long)job->gemm.k, failed);
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
    const tdm_gemm_args *args = job->gemm.args;
    int64_t end = tdm_cpu_min(job->gemm.m, (index + 1) * job->tile_rows);
    for (int64_t r = index * job->tile_rows; r < end; r++) {
        float product = job->gemm.kernels->dot(job->gemm.k, tdm_cpu_row(&args->a, r), job->vector);
        float *c = tdm_cpu_row(&args->c, r);
        *c = args->accumulate ? *c + product : product;
    }
    finish(&job->gemm, index * job->tile_rows, 0, end - index * job->tile_rows, 1);
}

/* c [m, n] = a [m, 1] · vector */
static void outer_tile(void *context, int64_t index)
{
    const gemm_job *job = context;
    const tdm_gemm_args *args = job->gemm.args;
    int64_t end = tdm_cpu_min(job->gemm.m, (index + 1) * job->tile_rows);
    for (int64_t r = index * job->tile_rows; r < end; r++) {
        float factor = *tdm_cpu_row(&args->a, r), *c = tdm_cpu_row(&args->c, r);
        if (args->accumulate)
            job->gemm.kernels->add_scaled(job->gemm.n, factor, job->vector, c);
        else
            job->gemm.kernels->scale(job->gemm.n, factor, job->vector, c);
    }
    finish(&job->gemm, index * job->tile_rows, 0, end - index * job->tile_rows, job->gemm.n);
}

static tdm_status run_vector(tdm_backend *backend, gemm_job *job)
{
    const tdm_gemm_args *args = job->gemm.args;
    bool dot = job->gemm.n == 1;
    TDM_TRY(get_vector(backend, &args->b, dot ? !args->trans_b : args->trans_b,
                       dot ? job->gemm.k : job->gemm.n, &job->vector));
    job->tile_rows = tdm_cpu_tile_rows(dot ? job->gemm.k : job->gemm.n);
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job->gemm.m, job->tile_rows),
                 dot ? dot_tile : outer_tile, job);
    return TDM_OK;
}

/* Σ_r factors[r] · x[r, :], one of a and b being the factors and the other x: each tile sums its
 * rows, then the sums are added in order. */
static void row_sum_tile(void *context, int64_t index)
{
    const gemm_job *job = context;
    bool a_is_vector = job->gemm.m == 1;
    const tdm_matrix *factors = a_is_vector ? &job->gemm.args->a : &job->gemm.args->b;
    const tdm_matrix *x = a_is_vector ? &job->gemm.args->b : &job->gemm.args->a;
    int64_t columns = a_is_vector ? job->gemm.n : job->gemm.m;
    float *sums = job->partials + index * columns;
    memset(sums, 0, (size_t)columns * sizeof(float));
    int64_t end = tdm_cpu_min(job->gemm.k, (index + 1) * SUM_ROWS);
    for (int64_t r = index * SUM_ROWS; r < end; r++)
        job->gemm.kernels->add_scaled(columns, *tdm_cpu_row(factors, r), tdm_cpu_row(x, r), sums);
}

static tdm_status run_row_sum(tdm_backend *backend, gemm_job *job)
{
    const tdm_gemm_args *args = job->gemm.args;
    int64_t columns = job->gemm.m == 1 ? job->gemm.n : job->gemm.m,
            tiles = tdm_cpu_tiles(job->gemm.k, SUM_ROWS);
    int64_t most = tdm_cpu_tiles(args->a.rows, SUM_ROWS);
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend), (size_t)(most * columns) * sizeof(float),
                            &job->partials));
    tdm_pool_for(backend->pool, tiles, row_sum_tile, job);
    for (int64_t t = 1; t < tiles; t++)
        job->gemm.kernels->add(columns, job->partials + t * columns, job->partials);
    for (int64_t i = 0; i < columns; i++) {
        float *c = job->gemm.m == 1 ? tdm_cpu_row(&args->c, 0) + i : tdm_cpu_row(&args->c, i);
        *c = args->accumulate ? *c + job->partials[i] : job->partials[i];
    }
    finish(&job->gemm, 0, 0, job->gemm.m, job->gemm.n);
    return TDM_OK;
}

/* k is 0: the product is zero. */
static void run_empty(gemm_job *job)
{
    for (int64_t r = 0; r < job->gemm.m && !job->gemm.args->accumulate; r++)
        memset(tdm_cpu_row(&job->gemm.args->c, r), 0, (size_t)job->gemm.n * sizeof(float));
    finish(&job->gemm, 0, 0, job->gemm.m, job->gemm.n);
}

static tdm_gemm make_gemm(const tdm_kernels *kernels, const tdm_gemm_args *args)
{
    tdm_gemm gemm = {.kernels = kernels,
                     .args = args,
                     .m = args->trans_a ? args->a.columns : args->a.rows,
                     .n = args->trans_b ? args->b.rows : args->b.columns,
                     .k = args->trans_a ? args->a.rows : args->a.columns};
    if (args->trans_a)
        gemm.k = tdm_cpu_rows(args->rows, gemm.k);
    else
        gemm.m = tdm_cpu_rows(args->rows, gemm.m);
    return gemm;
}

static tdm_status check_args(const tdm_gemm_args *args)
{
    TDM_CPU_NEED_F32("gemm", args->a, args->b, args->c, args->preactivation);
    TDM_FAIL_IF(args->compute != TDM_F32 && args->compute != TDM_BF16, TDM_E_UNSUPPORTED,
                "the op gemm of the CPU does not compute in %s: use precision fp32",
                tdm_dtype_name(args->compute));
    TDM_FAIL_IF(args->accumulate && has_epilogue(args), TDM_E_ARG,
                "the op gemm has no bias, no activation and no preactivation where it accumulates");
    return TDM_OK;
}

tdm_status tdm_cpu_gemm(tdm_backend *backend, const tdm_gemm_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_TRY(check_args(args));
    gemm_job job = {
        .gemm = make_gemm(tdm_cpu(backend)->kernels, args), .b = args->b, .trans_b = args->trans_b};
    const tdm_gemm *gemm = &job.gemm;
    if (args->compute == TDM_BF16)
        TDM_TRY(tdm_cpu_need_bf16(backend));
    if (gemm->m == 0 || gemm->n == 0)
        return TDM_OK;
    if (gemm->k == 0) {
        run_empty(&job);
        return TDM_OK;
    }
    if (args->compute == TDM_BF16)
        return tdm_gemm_bf16(backend, gemm);
    if (!args->trans_a && (gemm->n == 1 || gemm->k == 1))
        return run_vector(backend, &job);
    if (args->trans_a && !args->trans_b && (gemm->m == 1 || gemm->n == 1))
        return run_row_sum(backend, &job);
    return run_product(backend, &job);
}

tdm_status tdm_onednn_gemm_own_threading(const tdm_gemm_args *args, int threads)
{
    TDM_CPU_NEED_F32("gemm", args->a, args->b, args->c);
    gemm_job job = {.gemm = make_gemm(NULL, args), .b = args->b, .trans_b = args->trans_b};
    omp_set_num_threads(threads);
    dnnl_status_t status = call_onednn(&job, 0, 0, job.gemm.m, job.gemm.n);
    omp_set_num_threads(1);
    TDM_FAIL_IF(status != dnnl_success, TDM_E_DEVICE, "oneDNN refused a product (status %d)",
                (int)status);
    return TDM_OK;
}
