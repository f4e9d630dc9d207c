/* oneDNN on its own threads, to compare ours with. */
#ifndef TDM_CPU_ONEDNN_H
#define TDM_CPU_ONEDNN_H

#include "core/ops.h"

/* The product that the op gemm computes, F32 and without bias and activation, by one call of oneDNN
 * on `threads` threads of its own OpenMP pool. For benchmarks only: its threads stay. */
TDM_MUST_CHECK tdm_status tdm_onednn_gemm_own_threading(const tdm_gemm_args *args, int threads);

#endif
