/* Products that are too large for the cases in check_ops.c: the ways in which the op gemm cuts them
 * into tiles and lays out their operands. All elements are small whole numbers, so that every sum
 * is exact in any order, in bfloat16 too. */
#include "core/memory.h"
#include "cpu/backend_cpu.h"
#include "cpu/bf16.h"
#include "tests/support/check_main.h"

#include <math.h>

static tdm_pool *pool;
static tdm_backend *backend;

static void open_backend(void)
{
    ck_assert_ok(tdm_pool_create(3, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
}

static void close_backend(void)
{
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}

static uint64_t drawn;

/* From -3 to 3. */
static float draw(void)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (float)((int)(drawn >> 40) % 7 - 3);
}

/* Rows at and behind `valid` are NaN. */
static tdm_matrix make_matrix(int64_t rows, int64_t columns, int64_t valid)
{
    tdm_matrix matrix = {.rows = rows, .columns = columns, .stride = columns};
    ck_assert_ok(tdm_alloc((size_t)(rows * columns), sizeof(float), &matrix.data));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)matrix.data)[i] = i / columns < valid ? draw() : NAN;
    return matrix;
}

/* Element (row, column) of op(matrix). */
static int64_t element(const tdm_matrix *matrix, bool turned, int64_t row, int64_t column)
{
    return (int64_t)(turned ? tdm_cpu_row(matrix, column)[row] : tdm_cpu_row(matrix, row)[column]);
}

typedef enum orientation { AS_IT_IS, A_TURNED, B_TURNED } orientation;

typedef struct product {
    int64_t m, n, k;
    int64_t invalid; /* rows of the batch */
    orientation turned;
} product;

/* to[row] = op(matrix) · vector */
static void multiply(const tdm_matrix *matrix, bool turned, int64_t rows, int64_t columns,
                     const int64_t *vector, int64_t *to)
{
    for (int64_t r = 0; r < rows; r++) {
        to[r] = 0;
        for (int64_t c = 0; c < columns; c++)
            to[r] += element(matrix, turned, r, c) * vector[c];
    }
}

#define LONGEST 6000

/* (a · b) · v is a · (b · v), for a v that no error is likely to cancel in (Freivalds, 1977). */
static void check_product(const product *p, bool accumulate, tdm_dtype compute)
{
    bool trans_a = p->turned == A_TURNED, trans_b = p->turned == B_TURNED;
    static int64_t v[LONGEST], b_v[LONGEST], want[LONGEST], before[LONGEST], got[LONGEST];
    int64_t batch = trans_a ? p->k : p->m, valid = batch - p->invalid;
    int64_t m = trans_a ? p->m : valid, k = trans_a ? valid : p->k;
    tdm_gemm_args args = {
        .a = make_matrix(batch, trans_a ? p->m : p->k, valid),
        .b = make_matrix(trans_b ? p->n : p->k, trans_b ? p->k : p->n, trans_a ? valid : INT64_MAX),
        .c = make_matrix(p->m, p->n, accumulate ? m : 0),
        .trans_a = trans_a,
        .trans_b = trans_b,
        .accumulate = accumulate,
        .compute = compute,
        .rows = &valid,
    };
    for (int64_t i = 0; i < p->n; i++)
        v[i] = 31000 * (int64_t)draw() + i + 1;
    multiply(&args.b, trans_b, k, p->n, v, b_v);
    multiply(&args.a, trans_a, m, k, b_v, want);
    for (int64_t r = 0; r < m; r++)
        before[r] = 0;
    if (accumulate)
        multiply(&args.c, false, m, p->n, v, before);
    ck_assert_ok(backend->ops->gemm(backend, &args, NULL));
    multiply(&args.c, false, m, p->n, v, got);
    for (int64_t r = 0; r < m; r++) {
        if (got[r] != before[r] + want[r])
            ck_abort_msg("%s, %lld x %lld x %lld%s%s%s: row %lld is wrong", tdm_dtype_name(compute),
                         (long long)p->m, (long long)p->n, (long long)p->k,
                         trans_a ? ", a turned" : "", trans_b ? ", b turned" : "",
                         accumulate ? ", added" : "", (long long)r);
    }
    for (int64_t i = m * p->n; i < p->m * p->n; i++) {
        if (!isnan(((float *)args.c.data)[i]))
            ck_abort_msg("row %lld is not valid, and is written", (long long)(i / p->n));
    }
    tdm_free(args.a.data);
    tdm_free(args.b.data);
    tdm_free(args.c.data);
}

static void check_products(tdm_dtype compute, const product *products, size_t count)
{
    open_backend();
    for (size_t i = 0; i < 2 * count; i++)
        check_product(&products[i / 2], i % 2 == 1, compute);
    close_backend();
}

#define PRODUCTS(name) (name), sizeof(name) / sizeof((name)[0])

START_TEST(test_large_products)
{
    static const product products[] = {
        /* rows of b that lie badly: it is copied, but not for a small batch */
        {1100, 1024, 40, 60, AS_IT_IS},
        {500, 1024, 40, 1, AS_IT_IS},
        /* b is turned; in the first, its rows would lie badly then */
        {300, 512, 50, 7, B_TURNED},
        {300, 500, 50, 7, B_TURNED},
        /* several tiles of columns */
        {300, 2400, 20, 5, AS_IT_IS},
        {300, 2400, 20, 5, B_TURNED},
        {200, 2400, 20, 5, B_TURNED},
        /* gradients of weights; in the last two, rows of b lie badly */
        {100, 200, 400, 30, A_TURNED},
        {600, 100, 300, 17, A_TURNED},
        {600, 1024, 70, 9, A_TURNED},
        {1200, 1024, 70, 9, A_TURNED},
    };
    check_products(TDM_F32, PRODUCTS(products));
}
END_TEST

START_TEST(test_large_products_in_bf16)
{
    static const product products[] = {
        /* tiles of rows, and several groups of sums */
        {1150, 1100, 600, 40, AS_IT_IS},
        {1150, 1100, 600, 40, B_TURNED},
        /* tiles of columns */
        {600, 700, 1120, 50, AS_IT_IS},
        {600, 700, 1120, 50, A_TURNED},
        /* tiles of the depth */
        {70, 100, 5000, 0, AS_IT_IS},
        {300, 40, 4500, 100, B_TURNED},
        {70, 100, 5000, 3000, A_TURNED},
        {130, 300, 4100, 4, A_TURNED},
    };
    if (!tdm_cpu_has_bf16())
        tdm_test_skip("this CPU has no products in bf16");
    else
        check_products(TDM_BF16, PRODUCTS(products));
}
END_TEST

TDM_CHECK_MAIN(test_large_products, test_large_products_in_bf16)
