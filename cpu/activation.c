/* Activations that gemm does not do: their backward, and gates. */
#include "cpu/row_sums.h"

static bool is_gelu(tdm_activation activation)
{
    return activation == TDM_ACTIVATION_GELU || activation == TDM_ACTIVATION_GELU_TANH;
}

static void activation_bwd_rows(const tdm_row_tile *tile)
{
    const tdm_activation_bwd_args *args = tile->args;
    for (int64_t r = tile->begin; r < tile->end; r++)
        tile->kernels->encoder->activation_bwd(args->x.columns, args->activation,
                                               tdm_cpu_row(&args->x, r), tdm_cpu_row(&args->dy, r),
                                               tdm_cpu_row(&args->dx, r), tile->sums[0]);
}

tdm_status tdm_cpu_activation_bwd(tdm_backend *backend, const tdm_activation_bwd_args *args,
                                  tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("activation_bwd", args->x, args->dy, args->dx);
    TDM_FAIL_IF(!is_gelu(args->activation) && args->activation != TDM_ACTIVATION_TANH, TDM_E_ARG,
                "the op activation_bwd is of a GELU or tanh");
    return tdm_cpu_row_sums(backend, &(tdm_row_sums){.run = activation_bwd_rows,
                                                     .args = args,
                                                     .rows = args->x.rows,
                                                     .valid = args->rows,
                                                     .columns = args->x.columns,
                                                     .targets = {args->bias_gradient}});
}

static void gated_fwd_rows(const tdm_row_tile *tile)
{
    const tdm_gated_fwd_args *args = tile->args;
    for (int64_t r = tile->begin; r < tile->end; r++)
        tile->kernels->encoder->gated_fwd(args->y.columns, args->activation,
                                          tdm_cpu_row(&args->x, r), tdm_cpu_row(&args->y, r));
}

tdm_status tdm_cpu_gated_fwd(tdm_backend *backend, const tdm_gated_fwd_args *args,
                             tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("gated_fwd", args->x, args->y);
    TDM_FAIL_IF(!is_gelu(args->activation), TDM_E_ARG, "the op gated_fwd is of a GELU");
    return tdm_cpu_row_sums(backend, &(tdm_row_sums){.run = gated_fwd_rows,
                                                     .args = args,
                                                     .rows = args->x.rows,
                                                     .valid = args->rows});
}

static void gated_bwd_rows(const tdm_row_tile *tile)
{
    const tdm_gated_bwd_args *args = tile->args;
    for (int64_t r = tile->begin; r < tile->end; r++)
        tile->kernels->encoder->gated_bwd(args->dy.columns, args->activation,
                                          tdm_cpu_row(&args->x, r), tdm_cpu_row(&args->dy, r),
                                          tdm_cpu_row(&args->dx, r), tile->sums[0]);
}

tdm_status tdm_cpu_gated_bwd(tdm_backend *backend, const tdm_gated_bwd_args *args,
                             tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("gated_bwd", args->x, args->dy, args->dx);
    TDM_FAIL_IF(!is_gelu(args->activation), TDM_E_ARG, "the op gated_bwd is of a GELU");
    return tdm_cpu_row_sums(backend, &(tdm_row_sums){.run = gated_bwd_rows,
                                                     .args = args,
                                                     .rows = args->x.rows,
                                                     .valid = args->rows,
                                                     .columns = args->x.columns,
                                                     .targets = {args->bias_gradient}});
}
