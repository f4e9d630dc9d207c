/* bench_gemm: GFLOP/s of the op gemm beside oneDNN on its own threads, on the products of a
 * training step of a CTR model and of encoders. Rounds of both alternate, and the best of each
 * counts, so that what else the machine does disturbs both alike. In bf16 oneDNN gets operands that
 * are rounded already, the second in the layout it likes best. */
#include "core/memory.h"
#include "core/ops.h"
#include "cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLICKS      4096
#define BLOCKS      5
#define BLOCK_CALLS 8
#define BLOCK_FLOPS 20e9 /* no more calls in a block than this takes */

typedef struct product_shape {
    char name[64];
    int64_t m, n, k;
    bool trans_a, trans_b;
} product_shape;

typedef struct layer_shape {
    int64_t outputs, inputs;
} layer_shape;

typedef struct bench_options {
    const char *what; /* "ctr", "encoder" or "decoder" */
    tdm_dtype compute;
    int threads;
    int64_t tokens; /* 0: several */
} bench_options;

static const layer_shape ctr_layers[] = {{400, 624}, {400, 400}, {624, 624}, {1, 400}};
/* of bert_mini, bert_small and bert_base: queries, keys and values; output of attention; MLP */
static const layer_shape encoder_layers[] = {
    {768, 256},  {256, 256},  {1024, 256}, {256, 1024}, {1536, 512},
    {2048, 512}, {512, 2048}, {2304, 768}, {3072, 768},
};
static const int64_t token_counts[] = {512, 1024, 4096, 16384};
static const layer_shape decoder_layers[] = {{30522, 256}, {30522, 512}};
static const int64_t masked_counts[] = {614, 2458};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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

/* ---- measuring ------------------------------------------------------------------------------- */

/* Lowers *best to the shortest call; `backend` NULL is oneDNN on its own threads. */
static void time_block(tdm_backend *backend, const tdm_onednn_product *peer,
                       const tdm_gemm_args *args, int threads, int calls, double *best)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    for (int call = 0; call < calls; call++) {
        double start = seconds();
        if (backend != NULL)
            need(backend->ops->gemm(backend, args, NULL));
        else if (args->compute == TDM_BF16)
            need(tdm_onednn_product_run(peer));
        else
            need(tdm_onednn_gemm_own_threading(args, threads));
        double time = seconds() - start;
        *best = time < *best ? time : *best;
    }
}

static void run_product(tdm_backend *backend, const product_shape *product,
                        const bench_options *options)
{
    tdm_gemm_args args = {.trans_a = product->trans_a,
                          .trans_b = product->trans_b,
                          .accumulate = product->trans_a,
                          .compute = options->compute};
    args.a = product->trans_a ? make_matrix(product->k, product->m)
                              : make_matrix(product->m, product->k);
    args.b = product->trans_b ? make_matrix(product->n, product->k)
                              : make_matrix(product->k, product->n);
    args.c = make_matrix(product->m, product->n);
    tdm_onednn_product *peer = NULL;
    if (options->compute == TDM_BF16)
        need(tdm_onednn_product_create(&args, options->threads, &peer));
    double flops = 2.0 * (double)(product->m * product->n * product->k);
    double most = BLOCK_FLOPS / flops, ours = 1e9, theirs = 1e9;
    int calls = most < 1.0 ? 1 : most > BLOCK_CALLS ? BLOCK_CALLS : (int)most;
    for (int block = 0; block < BLOCKS; block++) {
        time_block(backend, peer, &args, 0, calls, &ours);
        time_block(NULL, peer, &args, options->threads, calls, &theirs);
    }
    printf("%-40s %7d %9.1f %9.1f %6.0f %%\n", product->name, options->threads, 1e-9 * flops / ours,
           1e-9 * flops / theirs, 100.0 * theirs / ours);
    fflush(stdout);
    tdm_onednn_product_destroy(peer);
    tdm_free(args.a.data);
    tdm_free(args.b.data);
    tdm_free(args.c.data);
}

/* The three products of a layer in a step. */
static void run_layer(tdm_backend *backend, const layer_shape *layer, int64_t rows,
                      const bench_options *options)
{
    product_shape products[] = {
        {"forward", rows, layer->outputs, layer->inputs, false, true},
        {"input gradient", rows, layer->inputs, layer->outputs, false, false},
        {"weight gradient", layer->outputs, layer->inputs, rows, true, false},
    };
    for (size_t i = 0; i < COUNT(products); i++) {
        product_shape *product = &products[i];
        size_t used = strlen(product->name);
        snprintf(product->name + used, sizeof product->name - used, " %lld x %lld, k %lld",
                 (long long)product->m, (long long)product->n, (long long)product->k);
        run_product(backend, product, options);
    }
}

static void run_layers(tdm_backend *backend, const layer_shape *layers, size_t count,
                       const int64_t *rows, size_t row_counts, const bench_options *options)
{
    for (size_t r = 0; r < row_counts; r++) {
        for (size_t i = 0; i < count; i++)
            run_layer(backend, &layers[i], rows[r], options);
    }
}

static void run_all(const bench_options *options)
{
    static const int64_t clicks = CLICKS;
    tdm_pool *pool;
    tdm_backend *backend;
    need(tdm_pool_create(options->threads, &pool));
    need(tdm_cpu_create(pool, &backend));
    const int64_t *rows = &options->tokens;
    size_t row_counts = 1;
    if (strcmp(options->what, "ctr") == 0) {
        if (options->tokens == 0)
            rows = &clicks;
        run_layers(backend, ctr_layers, COUNT(ctr_layers), rows, 1, options);
    } else if (strcmp(options->what, "encoder") == 0) {
        if (options->tokens == 0)
            rows = token_counts, row_counts = COUNT(token_counts);
        run_layers(backend, encoder_layers, COUNT(encoder_layers), rows, row_counts, options);
    } else {
        if (options->tokens == 0)
            rows = masked_counts, row_counts = COUNT(masked_counts);
        run_layers(backend, decoder_layers, COUNT(decoder_layers), rows, row_counts, options);
    }
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_gemm [ctr|encoder|decoder [fp32|bf16 [THREADS [TOKENS]]]]\n");
    return 2;
}

int main(int argc, char **argv)
{
    bench_options options = {.what = argc > 1 ? argv[1] : "ctr", .threads = 2};
    if (strcmp(options.what, "ctr") != 0 && strcmp(options.what, "encoder") != 0 &&
        strcmp(options.what, "decoder") != 0)
        return usage();
    if (argc > 2 && strcmp(argv[2], "bf16") == 0)
        options.compute = TDM_BF16;
    else if (argc > 2 && strcmp(argv[2], "fp32") != 0)
        return usage();
    if (argc > 3)
        options.threads = (int)strtol(argv[3], NULL, 10);
    if (argc > 4)
        options.tokens = strtol(argv[4], NULL, 10);
    printf("%-40s %7s %9s %9s %8s\n", "GFLOP/s", "threads", "tandem", "oneDNN", "ratio");
    run_all(&options);
    return 0;
}
