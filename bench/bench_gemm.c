/* bench_gemm: GFLOP/s of the op gemm beside oneDNN on its own threads, on the products of a CTR
 * model's training step. Rounds of both alternate, and the best of each counts, so that what else
 * the machine does disturbs both alike. */
#include "core/memory.h"
#include "core/ops.h"
#include "cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH  4096
#define BLOCKS 5
#define CALLS  8 /* in a block */

typedef struct product_shape {
    const char *name;
    int64_t m, n, k;
    bool trans_a, trans_b;
} product_shape;

static const product_shape products[] = {
    {"forward 624 to 400", BATCH, 400, 624, false, true},
    {"forward 400 to 400", BATCH, 400, 400, false, true},
    {"forward 624 to 624", BATCH, 624, 624, false, true},
    {"forward 400 to 1", BATCH, 1, 400, false, true},
    {"input gradient 400 to 624", BATCH, 624, 400, false, false},
    {"input gradient 400 to 400", BATCH, 400, 400, false, false},
    {"input gradient 624 to 624", BATCH, 624, 624, false, false},
    {"input gradient 1 to 400", BATCH, 400, 1, false, false},
    {"weight gradient 400 x 624", 400, 624, BATCH, true, false},
    {"weight gradient 400 x 400", 400, 400, BATCH, true, false},
    {"weight gradient 624 x 624", 624, 624, BATCH, true, false},
    {"weight gradient 1 x 400", 1, 400, BATCH, true, false},
};
#define PRODUCTS (sizeof products / sizeof products[0])

static void need(tdm_status status)
{
    if (status == TDM_OK)
        return;
    fprintf(stderr, "bench_gemm: %s\n", tdm_error_message());
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tdm_matrix make_matrix(int64_t rows, int64_t columns)
{
    tdm_matrix matrix = {.rows = rows, .columns = columns, .stride = columns};
    need(tdm_alloc((size_t)(rows * columns), sizeof(float), &matrix.data));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)matrix.data)[i] = (float)(i * 7919 % 1000) / 1000.0f - 0.5f;
    return matrix;
}

/* Lowers *best to the shortest call; `backend` NULL is oneDNN on its own threads. */
static void time_block(tdm_backend *backend, const tdm_gemm_args *args, int threads, double *best)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    for (int call = 0; call < CALLS; call++) {
        double start = seconds();
        need(backend != NULL ? backend->ops->gemm(backend, args, NULL)
                             : tdm_onednn_gemm_own_threading(args, threads));
        double time = seconds() - start;
        *best = time < *best ? time : *best;
    }
}

static void run_product(tdm_backend *backend, const product_shape *product, int threads)
{
    tdm_gemm_args args = {
        .trans_a = product->trans_a, .trans_b = product->trans_b, .accumulate = product->trans_a};
    args.a = product->trans_a ? make_matrix(product->k, product->m)
                              : make_matrix(product->m, product->k);
    args.b = product->trans_b ? make_matrix(product->n, product->k)
                              : make_matrix(product->k, product->n);
    args.c = make_matrix(product->m, product->n);
    double ours = 1e9, theirs = 1e9;
    for (int block = 0; block < BLOCKS; block++) {
        time_block(backend, &args, 0, &ours);
        time_block(NULL, &args, threads, &theirs);
    }
    double operations = 2e-9 * (double)(product->m * product->n * product->k);
    printf("%-28s %7d %9.1f %9.1f %6.0f %%\n", product->name, threads, operations / ours,
           operations / theirs, 100.0 * theirs / ours);
    tdm_free(args.a.data);
    tdm_free(args.b.data);
    tdm_free(args.c.data);
}

static void run_products(int threads)
{
    tdm_pool *pool;
    tdm_backend *backend;
    need(tdm_pool_create(threads, &pool));
    need(tdm_cpu_create(pool, &backend));
    for (size_t i = 0; i < PRODUCTS; i++)
        run_product(backend, &products[i], threads);
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}

/* bench_gemm [THREADS]: on that many, else on one and on two. */
int main(int argc, char **argv)
{
    printf("%-28s %7s %9s %9s %8s\n", "GFLOP/s", "threads", "tandem", "oneDNN", "ratio");
    if (argc > 1) {
        run_products((int)strtol(argv[1], NULL, 10));
        return 0;
    }
    run_products(1);
    run_products(2);
    return 0;
}
