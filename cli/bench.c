#include "cli/bench.h"

#include "cli/console.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/memory.h"
#include "core/ops.h"
#include "cpu/onednn.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- passes ---------------------------------------------------------------------------------- */

#define PASSES_MIN     3
#define PASSES_SECONDS 2.0

tdm_status tdm_passes_run(tdm_status (*pass)(void *context), void *context, tdm_passes *out)
{
    *out = (tdm_passes){0};
    TDM_TRY(pass(context));
    double end = tdm_clock_seconds() + PASSES_SECONDS;
    while (out->count < PASSES_MIN || (out->count < TDM_PASSES_MAX && tdm_clock_seconds() < end)) {
        double start = tdm_clock_seconds();
        TDM_TRY(pass(context));
        out->seconds[out->count++] = tdm_clock_seconds() - start;
    }
    return TDM_OK;
}

static int by_seconds(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double tdm_passes_best(const tdm_passes *passes)
{
    double best = passes->seconds[0];
    for (int i = 1; i < passes->count; i++)
        best = passes->seconds[i] < best ? passes->seconds[i] : best;
    return best;
}

double tdm_passes_median(const tdm_passes *passes)
{
    double sorted[TDM_PASSES_MAX];
    memcpy(sorted, passes->seconds, sizeof sorted);
    qsort(sorted, (size_t)passes->count, sizeof sorted[0], by_seconds);
    return sorted[passes->count / 2];
}

/* ---- products -------------------------------------------------------------------------------- */

#define PRODUCT_SECONDS 0.1

static tdm_matrix matrix_of(float *data, int64_t rows, int64_t columns)
{
    return (tdm_matrix){
        .data = data, .rows = rows, .columns = columns, .stride = columns, .dtype = TDM_F32};
}

typedef struct product_call {
    tdm_backend *backend; /* NULL: oneDNN on its own threads */
    tdm_gemm_args args;
    int threads;
    const tdm_onednn_product *onednn; /* where it computes in bfloat16 */
} product_call;

static tdm_status call_product(const product_call *call)
{
    if (call->backend == NULL && call->onednn != NULL)
        return tdm_onednn_product_run(call->onednn);
    if (call->backend == NULL)
        return tdm_onednn_gemm_own_threading(&call->args, call->threads);
    TDM_TRY(call->backend->ops->gemm(call->backend, &call->args, NULL));
    return call->backend->type->stream_sync(call->backend, NULL);
}

static tdm_status time_call(const product_call *call, double *best)
{
    TDM_TRY(call_product(call));
    double end = tdm_clock_seconds() + PRODUCT_SECONDS;
    do {
        double start = tdm_clock_seconds();
        TDM_TRY(call_product(call));
        double seconds = tdm_clock_seconds() - start;
        *best = *best == 0 || seconds < *best ? seconds : *best;
    } while (tdm_clock_seconds() < end);
    return TDM_OK;
}

static tdm_status time_onednn(product_call *call, double *best)
{
    tdm_onednn_product *onednn = NULL;
    if (call->args.compute == TDM_BF16)
        TDM_TRY(tdm_onednn_product_create(&call->args, call->threads, &onednn));
    call->backend = NULL;
    call->onednn = onednn;
    tdm_status status = time_call(call, best);
    tdm_onednn_product_destroy(onednn);
    return status;
}

static tdm_status time_product(const tdm_product_options *options, tdm_product_speed *speed)
{
    const tdm_product *product = &speed->product;
    tdm_backend *backend = options->backend;
    int64_t m = product->m, n = product->n, k = product->k;
    float *memory;
    size_t elements = (size_t)(m * k + k * n + m * n);
    TDM_TRY(backend->type->alloc(backend, elements * sizeof *memory, &memory));
    float *a = memory, *b = a + m * k, *c = b + k * n;
    for (size_t i = 0; i < (size_t)(m * k + k * n); i++)
        memory[i] = (float)(i % 13) * 0.01f;
    product_call call = {.backend = backend,
                         .args = {.a = product->trans_a ? matrix_of(a, k, m) : matrix_of(a, m, k),
                                  .b = product->trans_b ? matrix_of(b, n, k) : matrix_of(b, k, n),
                                  .c = matrix_of(c, m, n),
                                  .trans_a = product->trans_a,
                                  .trans_b = product->trans_b,
                                  .accumulate = product->accumulate,
                                  .compute = options->compute},
                         .threads = options->threads};
    tdm_status status = time_call(&call, &speed->ours);
    if (status == TDM_OK)
        status = time_onednn(&call, &speed->onednn);
    backend->type->free(backend, memory);
    return status;
}

static bool is_same(const tdm_product *a, const tdm_product *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->trans_a == b->trans_a &&
           a->trans_b == b->trans_b && a->accumulate == b->accumulate;
}

/* The products of a step at the sizes that they have, equal ones together. */
static tdm_status list_products(const tdm_model *model, const tdm_product_options *options,
                                tdm_product_speed **speeds, int *count)
{
    int all;
    tdm_model_products(model, NULL, 0, &all);
    tdm_product *products;
    *speeds = NULL;
    *count = 0;
    TDM_TRY(tdm_alloc((size_t)all + 1, sizeof *products, &products));
    tdm_model_products(model, products, all, &all);
    tdm_status status = tdm_alloc((size_t)all + 1, sizeof **speeds, speeds);
    for (int i = 0; i < all && status == TDM_OK; i++) {
        tdm_product *product = &products[i];
        if (options->rows_of != NULL && product->count >= 0)
            *(product->trans_a ? &product->k : &product->m) =
                options->rows_of(options->context, product->count);
        int same = 0;
        while (same < *count && !is_same(&(*speeds)[same].product, product))
            same++;
        (*speeds)[same].product = *product;
        (*speeds)[same].times++;
        *count += same == *count;
    }
    tdm_free(products);
    return status;
}

tdm_status tdm_time_products(const tdm_model *model, const tdm_product_options *options,
                             tdm_product_speed **speeds, int *count)
{
    if (*speeds == NULL)
        TDM_TRY(list_products(model, options, speeds, count));
    for (int i = 0; i < *count; i++)
        TDM_TRY(time_product(options, &(*speeds)[i]));
    return TDM_OK;
}

double tdm_product_flops(const tdm_product *product)
{
    return 2 * (double)product->m * (double)product->n * (double)product->k;
}

double tdm_products_seconds_onednn(const tdm_product_speed *speeds, int count)
{
    double seconds = 0;
    for (int i = 0; i < count; i++)
        seconds += speeds[i].times * speeds[i].onednn;
    return seconds;
}

double tdm_products_seconds(const tdm_product_speed *speeds, int count)
{
    double seconds = 0;
    for (int i = 0; i < count; i++)
        seconds += speeds[i].times * fmin(speeds[i].ours, speeds[i].onednn);
    return seconds;
}

double tdm_products_best_onednn(const tdm_product_speed *speeds, int count)
{
    double best = 0;
    for (int i = 0; i < count; i++)
        best = fmax(best, tdm_product_flops(&speeds[i].product) / speeds[i].onednn);
    return best;
}

/* ---- files ----------------------------------------------------------------------------------- */

tdm_status tdm_temporary_folder(char **out)
{
    const char *base = getenv("TMPDIR");
    TDM_TRY(
        tdm_format(out, "%s/tandem-bench-XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp"));
    if (mkdtemp(*out) != NULL)
        return TDM_OK;
    tdm_status status =
        tdm_fail(TDM_E_IO, "%s: cannot make the folder: %s", *out, tdm_io_error_text(errno));
    tdm_free(*out);
    *out = NULL;
    return status;
}

void tdm_temporary_folder_remove(char *folder)
{
    tdm_error before = {0};
    tdm_error_keep(&before, TDM_E_IO);
    if (tdm_folder_remove(folder) != TDM_OK)
        tdm_console_print("warning: %s is left: %s", folder, tdm_error_message());
    tdm_free(folder);
    tdm_error_raise(&before);
}
