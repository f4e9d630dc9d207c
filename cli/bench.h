/* What the benchmarks share. */
#ifndef TDM_CLI_BENCH_H
#define TDM_CLI_BENCH_H

#include "models/model.h"

/* Seconds of some passes over the same work. */
#define TDM_PASSES_MAX 25

typedef struct tdm_passes {
    double seconds[TDM_PASSES_MAX];
    int count;
} tdm_passes;

/* Runs `pass` at least three times, and on until two seconds have gone by. A first one that is not
 * counted warms caches. */
TDM_MUST_CHECK tdm_status tdm_passes_run(tdm_status (*pass)(void *context), void *context,
                                         tdm_passes *out);
double tdm_passes_best(const tdm_passes *passes);
double tdm_passes_median(const tdm_passes *passes);

/* A matrix product of a training step, and how fast it is alone. */
typedef struct tdm_product_speed {
    tdm_product product;
    int times;     /* that a step has it */
    double ours;   /* seconds of one, by the backend's op */
    double onednn; /* by one call of oneDNN with threads of its own */
} tdm_product_speed;

typedef struct tdm_product_options {
    tdm_backend *backend;
    int threads;       /* of oneDNN's own */
    tdm_dtype compute; /* TDM_F32 or TDM_BF16 */
    /* Valid rows of an axis of the model's batch whose count is tensor `count`; NULL: all. */
    int64_t (*rows_of)(void *context, int count);
    void *context;
} tdm_product_options;

/* Times the products of a model's step, each alone; the best of several calls counts. *speeds is
 * NULL, or holds what an earlier call has made: then the better of both counts. It is freed with
 * tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_time_products(const tdm_model *model,
                                            const tdm_product_options *options,
                                            tdm_product_speed **speeds, int *count);

double tdm_product_flops(const tdm_product *product);

/* Seconds of all products: by oneDNN, and with the faster way counting for each. */
double tdm_products_seconds_onednn(const tdm_product_speed *speeds, int count);
double tdm_products_seconds(const tdm_product_speed *speeds, int count);

/* Floating-point operations a second of oneDNN's fastest product. */
double tdm_products_best_onednn(const tdm_product_speed *speeds, int count);

/* A new folder for files that live as long as the benchmark. Removing it frees the path, keeps the
 * thread's error message, and only warns where it fails. */
TDM_MUST_CHECK tdm_status tdm_temporary_folder(char **out);
void tdm_temporary_folder_remove(char *folder);

#endif
