#include "cpu/bf16_products.h"

#include "core/memory.h"

#include <dnnl.h>
#include <omp.h>

const int64_t tdm_bf16_row_sizes[] = {TDM_BF16_MOST_ROWS, 32, 8, 2, 1};
const int64_t tdm_bf16_depth_sizes[] = {TDM_BF16_MOST_DEPTH, 256, 128, 64, TDM_BF16_DEPTH_UNIT};

enum { MEMORY_A, MEMORY_B, MEMORY_C, MEMORY_SCRATCH, MEMORIES };

typedef struct compiled_product {
    dnnl_primitive_t primitive; /* NULL: not needed */
    dnnl_memory_t *memories;    /* [threads][MEMORIES] */
} compiled_product;

struct tdm_bf16_plan {
    tdm_bf16_shape shape;
    tdm_bf16_products *owner;
    size_t scratch_bytes;
    compiled_product products[2][TDM_BF16_ROW_SIZES][2]
                             [TDM_BF16_DEPTH_SIZES]; /* accumulate, rows, columns,
                                                                         depth */
};

struct tdm_bf16_products {
    dnnl_engine_t engine;
    dnnl_stream_t *streams; /* of each thread */
    int threads;
    tdm_bf16_plan **plans;
    size_t count, capacity;
};

/* What a primitive is made from. */
typedef struct product_shape {
    int64_t rows, columns, depth, c_stride;
    bool trans_a, accumulate;
} product_shape;

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
    dnnl_dims_t c_sizes = {shape->rows, shape->columns}, c_strides = {shape->c_stride, 1};
    dnnl_dims_t a_strides = {shape->trans_a ? 1 : shape->depth, shape->trans_a ? shape->rows : 1};
    dnnl_memory_desc_t a, b, c;
    TDM_TRY(check(dnnl_memory_desc_init_by_strides(&a, 2, a_sizes, dnnl_bf16, a_strides), "a"));
    TDM_TRY(check(dnnl_memory_desc_init_by_tag(&b, 2, b_sizes, dnnl_bf16, dnnl_BA16a64b2a), "b"));
    TDM_TRY(check(dnnl_memory_desc_init_by_strides(&c, 2, c_sizes, dnnl_f32, c_strides), "c"));
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

static tdm_status create_memories(tdm_bf16_plan *plan, const_dnnl_primitive_desc_t description,
                                  compiled_product *product)
{
    static const dnnl_query_t queries[MEMORIES] = {dnnl_query_src_md, dnnl_query_weights_md,
                                                   dnnl_query_dst_md, dnnl_query_scratchpad_md};
    int threads = plan->owner->threads;
    TDM_TRY(tdm_alloc((size_t)threads * MEMORIES, sizeof(dnnl_memory_t), &product->memories));
    for (int i = 0; i < threads * MEMORIES; i++) {
        const dnnl_memory_desc_t *memory =
            dnnl_primitive_desc_query_md(description, queries[i % MEMORIES], 0);
        TDM_TRY(check(dnnl_memory_create(&product->memories[i], memory, plan->owner->engine,
                                         DNNL_MEMORY_NONE),
                      "memory"));
        size_t bytes = dnnl_memory_desc_get_size(memory);
        if (i == MEMORY_SCRATCH && bytes > plan->scratch_bytes)
            plan->scratch_bytes = bytes;
    }
    return TDM_OK;
}

static tdm_status create_product(tdm_bf16_plan *plan, const product_shape *shape,
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
                                                  plan->owner->engine, NULL),
                       "description"),
                 done);
    TDM_TRY_GOTO(check(dnnl_primitive_create(&product->primitive, description), "primitive"), done);
    TDM_TRY_GOTO(create_memories(plan, description, product), done);
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

static void destroy_plan(tdm_bf16_plan *plan)
{
    const compiled_product *products = &plan->products[0][0][0][0];
    for (size_t i = 0; i < sizeof plan->products / sizeof *products; i++)
        destroy_product(&products[i], plan->owner->threads);
    tdm_free(plan);
}

/* All products of one way to write c. */
static tdm_status create_way(tdm_bf16_plan *plan, bool accumulate)
{
    const tdm_bf16_shape *shape = &plan->shape;
    int64_t depths = accumulate ? shape->depth_sizes : shape->first_sizes;
    for (int r = 0; r < TDM_BF16_ROW_SIZES; r++) {
        for (int d = 0; d < TDM_BF16_DEPTH_SIZES; d++) {
            if ((shape->row_sizes >> r & 1) == 0 || (depths >> d & 1) == 0)
                continue;
            product_shape one = {.rows = tdm_bf16_row_sizes[r],
                                 .depth = tdm_bf16_depth_sizes[d],
                                 .c_stride = shape->c_stride,
                                 .trans_a = shape->trans_a != 0,
                                 .accumulate = accumulate};
            for (int w = 0; w < 2 && shape->columns[w] > 0; w++) {
                one.columns = shape->columns[w];
                TDM_TRY(create_product(plan, &one, &plan->products[accumulate][r][w][d]));
            }
        }
    }
    return TDM_OK;
}

static tdm_status create_plan(tdm_bf16_products *products, const tdm_bf16_shape *shape,
                              tdm_bf16_plan **out)
{
    tdm_bf16_plan *plan;
    tdm_status status;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *plan, &plan));
    plan->shape = *shape;
    plan->owner = products;
    omp_set_num_threads(1); /* primitives are made for as many threads as there are */
    TDM_TRY_GOTO(create_way(plan, false), fail);
    TDM_TRY_GOTO(create_way(plan, true), fail);
    *out = plan;
    return TDM_OK;
fail:
    destroy_plan(plan);
    return status;
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
    for (size_t i = 0; i < products->count; i++)
        destroy_plan(products->plans[i]);
    tdm_free(products->plans);
    for (int i = 0; products->streams != NULL && i < products->threads; i++)
        dnnl_stream_destroy(products->streams[i]);
    tdm_free(products->streams);
    dnnl_engine_destroy(products->engine);
    tdm_free(products);
}

tdm_status tdm_bf16_products_get(tdm_bf16_products *products, const tdm_bf16_shape *shape,
                                 const tdm_bf16_plan **out)
{
    for (size_t i = 0; i < products->count; i++) {
        *out = products->plans[i];
        if (memcmp(&(*out)->shape, shape, sizeof *shape) == 0)
            return TDM_OK;
    }
    TDM_TRY(tdm_grow(&products->plans, &products->capacity, products->count + 1,
                     sizeof *products->plans));
    TDM_TRY(create_plan(products, shape, &products->plans[products->count]));
    *out = products->plans[products->count++];
    return TDM_OK;
}

size_t tdm_bf16_plan_scratch(const tdm_bf16_plan *plan)
{
    return plan->scratch_bytes;
}

/* A memory object has no pointer to const; a and b are only read. */
static void *writable(const void *memory)
{
    void *pointer;
    memcpy(&pointer, &memory, sizeof pointer);
    return pointer;
}

bool tdm_bf16_plan_run(const tdm_bf16_plan *plan, int thread, const tdm_bf16_run *run)
{
    static const int names[MEMORIES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST,
                                        DNNL_ARG_SCRATCHPAD};
    const compiled_product *product =
        &plan->products[run->accumulate][run->row_size][run->column_width][run->depth_size];
    void *handles[MEMORIES] = {writable(run->a), writable(run->b), run->c, run->scratch};
    dnnl_exec_arg_t arguments[MEMORIES];
    for (int i = 0; i < MEMORIES; i++) {
        arguments[i] = (dnnl_exec_arg_t){names[i], product->memories[thread * MEMORIES + i]};
        if (dnnl_memory_set_data_handle(arguments[i].memory, handles[i]) != dnnl_success)
            return false;
    }
    omp_set_num_threads(1);
    return dnnl_primitive_execute(product->primitive, plan->owner->streams[thread], MEMORIES,
                                  arguments) == dnnl_success;
}
