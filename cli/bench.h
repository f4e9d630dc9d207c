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
    double ours;   /* seconds of one, by the backend's op */
    double onednn; /* by one call of oneDNN with threads of its own */
} tdm_product_speed;

/* Times the products of a model's step, each alone; the best of several calls counts. *speeds is
 * NULL, or holds what an earlier call has made: then the better of both counts. It is freed with
 * tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_time_products(const tdm_model *model, tdm_backend *backend,
                                            int threads, tdm_product_speed **speeds, int *count);

/* Seconds of all products, the faster way counting for each. */
double tdm_products_seconds(const tdm_product_speed *speeds, int count);

/* A new folder for files that live as long as the benchmark. Removing it frees the path, keeps the
 * thread's error message, and only warns where it fails. */
TDM_MUST_CHECK tdm_status tdm_temporary_folder(char **out);
void tdm_temporary_folder_remove(char *folder);

#endif
