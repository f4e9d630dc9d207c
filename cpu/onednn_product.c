#include "cpu/onednn.h"

#include "core/memory.h"
#include "cpu/bf16.h"

#include <dnnl.h>
#include <omp.h>

enum { MEMORY_A, MEMORY_B, MEMORY_C, MEMORIES };

struct tdm_onednn_product {
    int threads;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[MEMORIES];
    void *memory[MEMORIES];
};

static tdm_status check(dnnl_status_t status)
{
    TDM_FAIL_IF(status == dnnl_unimplemented, TDM_E_UNSUPPORTED,
                "oneDNN has no products in bfloat16 on this processor");
    TDM_FAIL_IF(status != dnnl_success, TDM_E_DEVICE, "oneDNN refused a product (status %d)",
                (int)status);
    return TDM_OK;
}

static tdm_status add_memory(tdm_onednn_product *product, int index, int name,
                             const dnnl_memory_desc_t *description)
{
    size_t bytes = dnnl_memory_desc_get_size(description);
    TDM_TRY(tdm_alloc(bytes, 1, &product->memory[index]));
    product->arguments[index].arg = name;
    TDM_TRY(check(dnnl_memory_create(&product->arguments[index].memory, description,
                                     product->engine, product->memory[index])));
    if (index == MEMORY_C)
        return TDM_OK;
    tdm_bf16 *numbers = product->memory[index];
    for (size_t i = 0; i < bytes / sizeof *numbers; i++)
        numbers[i] = tdm_bf16_from_float((float)(i * 7919 % 1000) / 1000.0f - 0.5f);
    return TDM_OK;
}

static tdm_status add_memories(tdm_onednn_product *product, const dnnl_memory_desc_t *a,
                               const dnnl_memory_desc_t *c, const_dnnl_primitive_desc_t description)
{
    const dnnl_memory_desc_t *b =
        dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0);
    TDM_TRY(check(dnnl_primitive_create(&product->primitive, description)));
    TDM_TRY(add_memory(product, MEMORY_A, DNNL_ARG_SRC, a));
    TDM_TRY(add_memory(product, MEMORY_B, DNNL_ARG_WEIGHTS, b));
    return add_memory(product, MEMORY_C, DNNL_ARG_DST, c);
}

static tdm_status init(tdm_onednn_product *product, const tdm_gemm_args *args)
{
    int64_t m = args->c.rows, n = args->c.columns;
    int64_t k = args->trans_a ? args->a.rows : args->a.columns;
    dnnl_dims_t a_sizes = {m, k}, b_sizes = {k, n}, c_sizes = {m, n};
    dnnl_memory_desc_t a, b, c;
    dnnl_matmul_desc_t operands;
    dnnl_primitive_desc_t description;
    TDM_TRY(check(dnnl_memory_desc_init_by_tag(&a, 2, a_sizes, dnnl_bf16,
                                               args->trans_a ? dnnl_ba : dnnl_ab)));
    TDM_TRY(check(dnnl_memory_desc_init_by_tag(&b, 2, b_sizes, dnnl_bf16, dnnl_format_tag_any)));
    TDM_TRY(check(dnnl_memory_desc_init_by_tag(&c, 2, c_sizes, dnnl_f32, dnnl_ab)));
    TDM_TRY(check(dnnl_engine_create(&product->engine, dnnl_cpu, 0)));
    TDM_TRY(
        check(dnnl_stream_create(&product->stream, product->engine, dnnl_stream_default_flags)));
    TDM_TRY(check(dnnl_matmul_desc_init(&operands, &a, &b, NULL, &c)));
    TDM_TRY(
        check(dnnl_primitive_desc_create(&description, &operands, NULL, product->engine, NULL)));
    tdm_status status = add_memories(product, &a, &c, description);
    dnnl_primitive_desc_destroy(description);
    return status;
}

tdm_status tdm_onednn_product_create(const tdm_gemm_args *args, int threads,
                                     tdm_onednn_product **out)
{
    tdm_onednn_product *product;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *product, &product));
    product->threads = threads;
    omp_set_num_threads(threads);
    tdm_status status = init(product, args);
    omp_set_num_threads(1);
    if (status != TDM_OK) {
        tdm_onednn_product_destroy(product);
        return status;
    }
    *out = product;
    return TDM_OK;
}

void tdm_onednn_product_destroy(tdm_onednn_product *product)
{
    if (product == NULL)
        return;
    for (int i = 0; i < MEMORIES; i++) {
        if (product->arguments[i].memory != NULL)
            dnnl_memory_destroy(product->arguments[i].memory);
        tdm_free(product->memory[i]);
    }
    if (product->primitive != NULL)
        dnnl_primitive_destroy(product->primitive);
    if (product->stream != NULL)
        dnnl_stream_destroy(product->stream);
    if (product->engine != NULL)
        dnnl_engine_destroy(product->engine);
    tdm_free(product);
}

tdm_status tdm_onednn_product_run(const tdm_onednn_product *product)
{
    omp_set_num_threads(product->threads);
    dnnl_status_t status =
        dnnl_primitive_execute(product->primitive, product->stream, MEMORIES, product->arguments);
    omp_set_num_threads(1);
    return check(status);
}
