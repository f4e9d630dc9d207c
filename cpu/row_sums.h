/* Ops that go through the rows of a batch and may sum something over them, for the gradients of
 * biases and the like: each tile of rows sums its own, then the sums are added in order. */
#ifndef TDM_CPU_ROW_SUMS_H
#define TDM_CPU_ROW_SUMS_H

#include "cpu/backend_cpu.h"

typedef struct tdm_row_tile {
    const tdm_kernels *kernels;
    const void *args; /* of the op */
    int64_t begin, end;
    float *sums[2]; /* to be added to; NULL where the target is */
    float *room;
} tdm_row_tile;

typedef struct tdm_row_sums {
    void (*run)(const tdm_row_tile *tile);
    const void *args;
    int64_t rows;         /* of the batch; the memory that the sums take depends on all of them, */
    const int64_t *valid; /* and not on those that are valid, which change with every step */
    int64_t columns;      /* of each target */
    float *targets[2];    /* get += the sums; NULL: none. The second needs the first */
    int64_t room;         /* floats that a tile may use as it likes */
} tdm_row_sums;

TDM_MUST_CHECK tdm_status tdm_cpu_row_sums(tdm_backend *backend, const tdm_row_sums *work);

#endif
