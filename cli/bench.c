#include "cli/bench.h"

#include "cli/console.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/memory.h"
#include "core/ops.h"
#include "cpu/onednn.h"

#include <errno.h>
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
    tdm_backend *backend;
    tdm_gemm_args args;
    int threads; /* of oneDNN's own; 0: the backend's op */
} product_call;

static tdm_status call_product(const product_call *call)
{
    if (call->threads > 0)
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

static tdm_status time_product(tdm_backend *backend, int threads, tdm_product_speed *speed)
{
    const tdm_product *product = &speed->product;
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
                                  .accumulate = product->accumulate}};
    tdm_status status = time_call(&call, &speed->ours);
    call.threads = threads;
    if (status == TDM_OK)
        status = time_call(&call, &speed->onednn);
    backend->type->free(backend, memory);
    return status;
}

tdm_status tdm_time_products(const tdm_model *model, tdm_backend *backend, int threads,
                             tdm_product_speed **speeds, int *count)
{
    tdm_model_products(model, NULL, 0, count);
    tdm_product *products;
    TDM_TRY(tdm_alloc((size_t)*count, sizeof *products, &products));
    tdm_model_products(model, products, *count, count);
    tdm_status status = TDM_OK;
    if (*speeds == NULL)
        status = tdm_alloc((size_t)*count, sizeof **speeds, speeds);
    for (int i = 0; i < *count && status == TDM_OK; i++) {
        (*speeds)[i].product = products[i];
        status = time_product(backend, threads, &(*speeds)[i]);
    }
    tdm_free(products);
    return status;
}

double tdm_products_seconds(const tdm_product_speed *speeds, int count)
{
    double seconds = 0;
    for (int i = 0; i < count; i++)
        seconds += speeds[i].ours < speeds[i].onednn ? speeds[i].ours : speeds[i].onednn;
    return seconds;
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
