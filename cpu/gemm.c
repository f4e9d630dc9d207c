/* Matrix products. Large ones are cut into tiles that oneDNN computes on the thread that runs them;
 * products with a vector are bound by memory and have loops of their own. */
#include "cpu/backend_cpu.h"
#include "cpu/onednn.h"

#include <dnnl.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#define TILE_ROWS    256 /* of the batch */
#define TILE_COLUMNS 512
#define OUTPUT_TILE  128 /* rows and columns of a weight gradient */
#define SUM_ROWS     128 /* rows of a partial sum of a product with a vector */

typedef struct gemm_job {
    const tdm_kernels *kernels;
    const tdm_gemm_args *args;
    int64_t m, n, k; /* valid rows only */
    int64_t tile_m, tile_n, tiles_n;
    const float *vector; /* the operand that is a vector, contiguous */
    float *partials;
    _Atomic int failed; /* a dnnl_status_t */
} gemm_job;

static const float *element(const tdm_matrix *matrix, int64_t row, int64_t column)
{
    return tdm_cpu_row(matrix, row) + column;
}

/* Sizes near `most` that divide `total` evenly, in whole vectors. */
static int64_t even_tile(int64_t total, int64_t most)
{
    int64_t parts = tdm_cpu_tiles(total, most);
    int64_t size = tdm_cpu_tiles(total, parts);
    return (size + 15) / 16 * 16;
}

/* A stride that oneDNN accepts: that of a single row says nothing and may be anything. */
static dnnl_dim_t leading(const tdm_matrix *matrix)
{
    return matrix->stride > matrix->columns ? matrix->stride : matrix->columns;
}

static dnnl_status_t call_onednn(const tdm_gemm_args *args, int64_t row, int64_t column, int64_t m,
                                 int64_t n, int64_t k)
{
    const float *a = args->trans_a ? element(&args->a, 0, row) : element(&args->a, row, 0);
    const float *b = args->trans_b ? element(&args->b, column, 0) : element(&args->b, 0, column);
    return dnnl_sgemm(args->trans_a ? 'T' : 'N', args->trans_b ? 'T' : 'N', m, n, k, 1.0f, a,
                      leading(&args->a), b, leading(&args->b), args->accumulate ? 1.0f : 0.0f,
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
    int64_t row = index / job->tiles_n * job->tile_m, column = index % job->tiles_n * job->tile_n;
    int64_t m = tdm_cpu_min(job->tile_m, job->m - row);
    int64_t n = tdm_cpu_min(job->tile_n, job->n - column);
    omp_set_num_threads(1);
    dnnl_status_t status = call_onednn(job->args, row, column, m, n, job->k);
    if (status != dnnl_success)
        atomic_store(&job->failed, (int)status);
    apply_epilogue(job, row, column, m, n);
}

static tdm_status run_product(tdm_backend *backend, gemm_job *job)
{
    job->tile_m = even_tile(job->m, job->args->trans_a ? OUTPUT_TILE : TILE_ROWS);
    job->tile_n = even_tile(job->n, job->args->trans_a ? OUTPUT_TILE : TILE_COLUMNS);
    job->tiles_n = tdm_cpu_tiles(job->n, job->tile_n);
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job->m, job->tile_m) * job->tiles_n, product_tile,
                 job);
    int failed = atomic_load(&job->failed);
    TDM_FAIL_IF(failed == dnnl_out_of_memory, TDM_E_NOMEM, "oneDNN ran out of memory");
    TDM_FAIL_IF(failed != dnnl_success, TDM_E_DEVICE,
                "oneDNN refused a product of %lld x %lld x %lld (status %d)", (long long)job->m,
                (long long)job->n, (long long)job->k, failed);
    return TDM_OK;
}

/* ---- products with a vector --------------------------------------------------------------------
 */

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
    int64_t end = tdm_cpu_min(job->m, (index + 1) * job->tile_m);
    for (int64_t r = index * job->tile_m; r < end; r++) {
        float product = job->kernels->dot(job->k, tdm_cpu_row(&args->a, r), job->vector);
        float *c = tdm_cpu_row(&args->c, r);
        *c = args->accumulate ? *c + product : product;
    }
    apply_epilogue(job, index * job->tile_m, 0, end - index * job->tile_m, 1);
}

/* c [m, n] = a [m, 1] · vector */
static void outer_tile(void *context, int64_t index)
{
    const gemm_job *job = context;
    const tdm_gemm_args *args = job->args;
    int64_t end = tdm_cpu_min(job->m, (index + 1) * job->tile_m);
    for (int64_t r = index * job->tile_m; r < end; r++) {
        float *c = tdm_cpu_row(&args->c, r);
        if (!args->accumulate)
            memset(c, 0, (size_t)job->n * sizeof(float));
        job->kernels->add_scaled(job->n, *tdm_cpu_row(&args->a, r), job->vector, c);
    }
    apply_epilogue(job, index * job->tile_m, 0, end - index * job->tile_m, job->n);
}

static tdm_status run_vector(tdm_backend *backend, gemm_job *job)
{
    const tdm_gemm_args *args = job->args;
    bool dot = job->n == 1;
    TDM_TRY(get_vector(backend, &args->b, dot ? !args->trans_b : args->trans_b,
                       dot ? job->k : job->n, &job->vector));
    job->tile_m = tdm_cpu_tile_rows(dot ? job->k : job->n);
    tdm_pool_for(backend->pool, tdm_cpu_tiles(job->m, job->tile_m), dot ? dot_tile : outer_tile,
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

tdm_status tdm_cpu_gemm(tdm_backend *backend, const tdm_gemm_args *args, tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("gemm", args->a, args->b, args->c);
    TDM_FAIL_IF(args->accumulate && has_epilogue(args), TDM_E_ARG,
                "the op gemm has no bias and no activation where it accumulates");
    gemm_job job = {.kernels = tdm_cpu(backend)->kernels,
                    .args = args,
                    .m = args->trans_a ? args->a.columns : args->a.rows,
                    .n = args->trans_b ? args->b.rows : args->b.columns,
                    .k = args->trans_a ? args->a.rows : args->a.columns};
    if (args->trans_a)
        job.k = tdm_cpu_rows(args->rows, job.k);
    else
        job.m = tdm_cpu_rows(args->rows, job.m);
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
    int64_t m = args->trans_a ? args->a.columns : args->a.rows;
    int64_t n = args->trans_b ? args->b.rows : args->b.columns;
    int64_t k = args->trans_a ? args->a.rows : args->a.columns;
    omp_set_num_threads(threads);
    dnnl_status_t status = call_onednn(args, 0, 0, m, n, k);
    omp_set_num_threads(1);
    TDM_FAIL_IF(status != dnnl_success, TDM_E_DEVICE, "oneDNN refused a product (status %d)",
                (int)status);
    return TDM_OK;
}
