/* The machine that tandem runs on: what it has, and how fast that is. */
#ifndef TDM_CLI_MACHINE_H
#define TDM_CLI_MACHINE_H

#include "core/backend.h"

typedef struct tdm_machine {
    char cpu[128];          /* "" where the system does not say */
    char instructions[128]; /* vector extensions that matter, separated by blanks */
    int cores;              /* that this process may use */
    int64_t memory_bytes;   /* the container's limit where that is less */
    int64_t memory_free_bytes;
} tdm_machine;

void tdm_machine_get(tdm_machine *out);

/* Bytes a second at which the pool's threads read memory, beyond the caches; the best of some
 * passes over `seconds`. */
TDM_MUST_CHECK tdm_status tdm_measure_memory(tdm_pool *pool, double seconds,
                                             double *bytes_per_second);

/* Floating-point operations a second of the backend's matrix product of squares of 1024, the best
 * of as many as fit into `seconds`. */
TDM_MUST_CHECK tdm_status tdm_measure_matmul(tdm_backend *backend, double seconds,
                                             double *flops_per_second);

/* "12.3 GB", powers of 1000; in storage that the next four calls leave alone. */
const char *tdm_bytes_text(double bytes);

#endif
