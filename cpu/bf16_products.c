#include "cpu/bf16_products.h"

#include "core/memory.h"

#include <dnnl.h>
#include <omp.h>

const int64_t tdm_bf16_rows[] = {TDM_BF16_ROWS};
const int64_t tdm_bf16_columns[] = {TDM_BF16_COLUMNS};
const int64_t tdm_bf16_depths[] = {TDM_BF16_DEPTHS};

enum { MEMORY_A, MEMORY_B, MEMORY_C, MEMORY_SCRATCH, MEMORIES };

typedef struct compiled_product {
    dnnl_primitive_t primitive;
    dnnl_memory_t *memories; /* [threads][MEMORIES] */
} compiled_product;

#define PRODUCTS (2 * TDM_BF16_ROW_SIZES * TDM_BF16_COLUMN_SIZES * TDM_BF16_DEPTH_SIZES)

struct tdm_bf16_products {
    dnnl_engine_t engine;
    dnnl_stream_t *streams; /* of each thread */
    int threads;
    char *scratch; /* of each thread */
    size_t scratch_bytes;
    compiled_product products[PRODUCTS];
};

/* What a primitive is made from. */
typedef struct product_shape {
    int64_t rows, columns, depth;
    bool accumulate;
} product_shape;

static int product_number(bool accumulate, int row_size, int column_size, int depth_size)
{
    int sizes = row_size * TDM_BF16_COLUMN_SIZES + column_size;
    return (sizes * TDM_BF16_DEPTH_SIZES + depth_size) * 2 + accumulate;
}

static product_shape product_shape_of(int number)
{
    int sizes = number / 2 / TDM_BF16_DEPTH_SIZES;
    return (product_shape){.rows = tdm_bf16_rows[sizes / TDM_BF16_COLUMN_SIZES],
                           .columns = tdm_bf16_columns[sizes % TDM_BF16_COLUMN_SIZES],
                           .depth = tdm_bf16_depths[number / 2 % TDM_BF16_DEPTH_SIZES],
                           .accumulate = number % 2 == 1};
}

static tdm_status check(dnnl_status_t status, const char *what)
{
    TDM_FAIL_IF(status == dnnl_out_of_memory, TDM_E_NOMEM, "oneDNN ran out of memory");
    TDM_FAIL_IF(status != dnnl_success, TDM_E_DEVICE,
                "oneDNN cannot make the %s of a product in bf16 (status %d): use precision fp32",
                what, (int)status);
    return TDM_OK;
}

static tdm_status describe_operands(const product_shape *shape, dnnl_matmul_desc_t *out)
{
    dnnl_dims_t a_sizes = {shape->rows, shape->depth}, b_sizes = {shape->depth, shape->columns};
    dnnl_dims_t c_sizes = {shape->rows, shape->columns};
    dnnl_memory_desc_t a, b, c;
    TDM_TRY(check(dnnl_memory_desc_init_by_tag(&a, 2, a_sizes, dnnl_bf16, dnnl_ab), "a"));
    TDM_TRY(check(dnnl_memory_desc_init_by_tag(&b, 2, b_sizes, dnnl_bf16, dnnl_BA16a64b2a), "b"));
    TDM_TRY(check(dnnl_memory_desc_init_by_tag(&c, 2, c_sizes, dnnl_f32, dnnl_ab), "c"));
    return check(dnnl_matmul_desc_init(out, &a, &b, NULL, &c), "description");
}

static tdm_status make_attributes(bool accumulate, dnnl_primitive_attr_t attributes)
{
    dnnl_post_ops_t post = NULL;
    tdm_status status = check(
        dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user), "scratch");
    if (status != TDM_OK || !accumulate)
        return status;
    TDM_TRY(check(dnnl_post_ops_create(&post), "sum"));
    status = check(dnnl_post_ops_append_sum(post, 1.0f), "sum");
    if (status == TDM_OK)
        status = check(dnnl_primitive_attr_set_post_ops(attributes, post), "sum");
    dnnl_post_ops_destroy(post);
    return status;
}

static tdm_status create_memories(tdm_bf16_products *products,
                                  const_dnnl_primitive_desc_t description,
                                  compiled_product *product)
{
    static const dnnl_query_t queries[MEMORIES] = {dnnl_query_src_md, dnnl_query_weights_md,
                                                   dnnl_query_dst_md, dnnl_query_scratchpad_md};
    int threads = products->threads;
    TDM_TRY(tdm_alloc((size_t)threads * MEMORIES, sizeof(dnnl_memory_t), &product->memories));
    for (int i = 0; i < threads * MEMORIES; i++) {
        const dnnl_memory_desc_t *memory =
            dnnl_primitive_desc_query_md(description, queries[i % MEMORIES], 0);
        TDM_TRY(check(
            dnnl_memory_create(&product->memories[i], memory, products->engine, DNNL_MEMORY_NONE),
            "memory"));
        size_t bytes = dnnl_memory_desc_get_size(memory);
        if (i == MEMORY_SCRATCH && bytes > products->scratch_bytes)
            products->scratch_bytes = bytes;
    }
    return TDM_OK;
}

static tdm_status create_product(tdm_bf16_products *products, const product_shape *shape,
                                 compiled_product *product)
{
    dnnl_matmul_desc_t operands;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;
    tdm_status status;
    TDM_TRY(describe_operands(shape, &operands));
    TDM_TRY(check(dnnl_primitive_attr_create(&attributes), "attributes"));
    TDM_TRY_GOTO(make_attributes(shape->accumulate, attributes), done);
    TDM_TRY_GOTO(check(dnnl_primitive_desc_create(&description, &operands, attributes,
                                                  products->engine, NULL),
                       "description"),
                 done);
    TDM_TRY_GOTO(check(dnnl_primitive_create(&product->primitive, description), "primitive"), done);
    TDM_TRY_GOTO(create_memories(products, description, product), done);
done:
    dnnl_primitive_desc_destroy(description);
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

static void destroy_product(const compiled_product *product, int threads)
{
    for (int i = 0; product->memories != NULL && i < threads * MEMORIES; i++)
        dnnl_memory_destroy(product->memories[i]);
    tdm_free(product->memories);
    dnnl_primitive_destroy(product->primitive);
}

static tdm_status create_products(tdm_bf16_products *products)
{
    omp_set_num_threads(1); /* primitives are made for as many threads as there are */
    for (int i = 0; i < PRODUCTS; i++) {
        product_shape shape = product_shape_of(i);
        TDM_TRY(create_product(products, &shape, &products->products[i]));
    }
    products->scratch_bytes = (products->scratch_bytes + 63) / 64 * 64;
    return tdm_alloc((size_t)products->threads, products->scratch_bytes, &products->scratch);
}

tdm_status tdm_bf16_products_create(int threads, tdm_bf16_products **out)
{
    tdm_bf16_products *products;
    tdm_status status;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *products, &products));
    products->threads = threads;
    TDM_TRY_GOTO(tdm_alloc((size_t)threads, sizeof *products->streams, &products->streams), fail);
    TDM_TRY_GOTO(check(dnnl_engine_create(&products->engine, dnnl_cpu, 0), "engine"), fail);
    for (int i = 0; i < threads; i++)
        TDM_TRY_GOTO(check(dnnl_stream_create(&products->streams[i], products->engine,
                                              dnnl_stream_default_flags),
                           "stream"),
                     fail);
    TDM_TRY_GOTO(create_products(products), fail);
    *out = products;
    return TDM_OK;
fail:
    tdm_bf16_products_destroy(products);
    return status;
}

void tdm_bf16_products_destroy(tdm_bf16_products *products)
{
    if (products == NULL)
        return;
    for (int i = 0; i < PRODUCTS; i++)
        destroy_product(&products->products[i], products->threads);
    for (int i = 0; products->streams != NULL && i < products->threads; i++)
        dnnl_stream_destroy(products->streams[i]);
    tdm_free(products->streams);
    tdm_free(products->scratch);
    dnnl_engine_destroy(products->engine);
    tdm_free(products);
}

/* A memory object has no pointer to const; a and b are only read. */
static void *writable(const void *memory)
{
    void *pointer;
    memcpy(&pointer, &memory, sizeof pointer);
    return pointer;
}

bool tdm_bf16_multiply(const tdm_bf16_products *products, int thread, const tdm_bf16_block *block)
{
    static const int names[MEMORIES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST,
                                        DNNL_ARG_SCRATCHPAD};
    const compiled_product *product = &products->products[product_number(
        block->accumulate, block->row_size, block->column_size, block->depth_size)];
    void *handles[MEMORIES] = {writable(block->a), writable(block->b), block->c,
                               products->scratch + (size_t)thread * products->scratch_bytes};
    dnnl_exec_arg_t arguments[MEMORIES];
    for (int i = 0; i < MEMORIES; i++) {
        arguments[i] = (dnnl_exec_arg_t){names[i], product->memories[thread * MEMORIES + i]};
        if (dnnl_memory_set_data_handle(arguments[i].memory, handles[i]) != dnnl_success)
            return false;
    }
    omp_set_num_threads(1);
    return dnnl_primitive_execute(product->primitive, products->streams[thread], MEMORIES,
                                  arguments) == dnnl_success;
}
