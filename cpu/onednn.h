/* oneDNN on its own threads, to compare ours with. For benchmarks only: its threads stay. */
#ifndef TDM_CPU_ONEDNN_H
#define TDM_CPU_ONEDNN_H

#include "core/ops.h"

/* The product that the op gemm computes, F32 and without bias and activation, by one call of oneDNN
 * on `threads` threads of its own OpenMP pool. */
TDM_MUST_CHECK tdm_status tdm_onednn_gemm_own_threading(const tdm_gemm_args *args, int threads);

/* A product in bfloat16, on memory of its own: operands are rounded already, the second one lies in
 * the layout that oneDNN likes best, and c is F32, always overwritten. */
typedef struct tdm_onednn_product tdm_onednn_product;

/* Of the sizes of `args`, whose data is not looked at. TDM_E_UNSUPPORTED where the processor has no
 * products in bfloat16. */
TDM_MUST_CHECK tdm_status tdm_onednn_product_create(const tdm_gemm_args *args, int threads,
                                                    tdm_onednn_product **out);
void tdm_onednn_product_destroy(tdm_onednn_product *product); /* NULL is allowed */

TDM_MUST_CHECK tdm_status tdm_onednn_product_run(const tdm_onednn_product *product);

#endif
