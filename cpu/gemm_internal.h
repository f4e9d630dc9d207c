/* What the files of the op gemm share. */
#ifndef TDM_CPU_GEMM_INTERNAL_H
#define TDM_CPU_GEMM_INTERNAL_H

#include "cpu/backend_cpu.h"

typedef struct tdm_gemm {
    const tdm_kernels *kernels;
    const tdm_gemm_args *args;
    int64_t m, n, k; /* valid rows only */
} tdm_gemm;

/* A stride that oneDNN accepts: that of a single row says nothing and may be anything. */
static inline int64_t tdm_gemm_stride(const tdm_matrix *matrix)
{
    return matrix->stride > matrix->columns ? matrix->stride : matrix->columns;
}

/* c and preactivation, in the part that begins at (row, column) and has m rows and n columns, from
 * the product there: its first row lies at `product`, `stride` floats from one to the next. */
void tdm_gemm_epilogue(const tdm_gemm *gemm, int64_t row, int64_t column, int64_t m, int64_t n,
                       const float *product, int64_t stride);

/* With `compute` TDM_BF16; no size is 0. */
TDM_MUST_CHECK tdm_status tdm_gemm_bf16(tdm_backend *backend, const tdm_gemm *gemm);

#endif
