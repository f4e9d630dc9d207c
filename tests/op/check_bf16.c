/* bfloat16 on the CPU: rounding, packing on every level, and products where the CPU has them. */
#include "core/memory.h"
#include "cpu/backend_cpu.h"
#include "cpu/bf16.h"
#include "tests/op/reference_ops.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <string.h>

#define PANEL TDM_BF16_PANEL

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static const struct {
    uint32_t from;
    tdm_bf16 to;
} known[] = {
    {0x00000000, 0x0000},
    {0x80000000, 0x8000},
    {0x3f800000, 0x3f80},
    {0x3f808000, 0x3f80}, /* a tie, to even */
    {0x3f818000, 0x3f82}, /* a tie, to even */
    {0x3f807fff, 0x3f80},
    {0x3f808001, 0x3f81},
    {0xbf818000, 0xbf82},
    {0x3fffffff, 0x4000}, /* into the exponent */
    {0x7f7fffff, 0x7f80}, /* the largest float becomes infinite */
    {0x7f7f7fff, 0x7f7f},
    {0x7f800000, 0x7f80},
    {0xff800000, 0xff80},
    {0x7fc00000, 0x7fc0},
    {0xffc12345, 0xffc1},
    {0x7f800001, 0x7fc0}, /* a signalling NaN, whose upper half alone would be infinite */
    {0x7fffffff, 0x7fff},
    {0x00000001, 0x0000},
    {0x007fffff, 0x0000},
    {0x807fffff, 0x8000}, /* subnormal */
    {0x00800000, 0x0080},
    {0x80807fff, 0x8080},
};
#define KNOWN (sizeof known / sizeof known[0])

static void pack_row(const float *from, int64_t count, tdm_bf16 *to)
{
    tdm_bf16_source source = {from, 1, count, count};
    tdm_bf16_pack_rows(&source, 1, count, to);
}

START_TEST(test_known_numbers)
{
    for (int level = 0; level < tdm_bf16_levels.count; level++) {
        if (!tdm_cpu_level_force(&tdm_bf16_levels, level))
            continue;
        float from[KNOWN];
        tdm_bf16 to[KNOWN];
        for (size_t i = 0; i < KNOWN; i++)
            from[i] = float_of(known[i].from);
        pack_row(from, KNOWN, to);
        for (size_t i = 0; i < KNOWN; i++)
            ck_assert_msg(to[i] == known[i].to, "level %d: %08x gives %04x, not %04x", level,
                          known[i].from, to[i], known[i].to);
    }
    tdm_cpu_level_force(&tdm_bf16_levels, -1);
}
END_TEST

/* All upper halves with lower halves around the tie: the levels agree, and all but NaN with the
 * reference. */
START_TEST(test_all_numbers)
{
    static const uint32_t lower[] = {0x0000, 0x0001, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { LOWER = 6, COUNT = 1 << 16 };
    static float from[COUNT];
    static tdm_bf16 to[COUNT], again[COUNT];
    for (int l = 0; l < LOWER; l++) {
        for (uint32_t upper = 0; upper < COUNT; upper++)
            from[upper] = float_of(upper << 16 | lower[l]);
        ck_assert(tdm_cpu_level_force(&tdm_bf16_levels, 0));
        pack_row(from, COUNT, to);
        tdm_cpu_level_force(&tdm_bf16_levels, -1);
        pack_row(from, COUNT, again);
        ck_assert_mem_eq(to, again, sizeof to);
        for (int i = 0; i < COUNT; i++) {
            float got = tdm_bf16_to_float(to[i]);
            float want = (float)reference_bf16((double)from[i]);
            if (isnan(from[i]) ? !isnan(got) : got != want || signbit(got) != signbit(from[i]))
                ck_abort_msg("%a gives %a, not %a", (double)from[i], (double)got, (double)want);
        }
    }
}
END_TEST

/* ---- packing --------------------------------------------------------------------------------- */

typedef struct pack_shape {
    int64_t rows, depth; /* of the operand: rows of the first, columns of the second */
    int64_t rows_padded, depth_padded;
} pack_shape;

static const pack_shape pack_shapes[] = {
    {1, 1, 32, 32},     {31, 33, 32, 64},    {128, 512, 128, 512}, {17, 95, 128, 128},
    {130, 32, 160, 32}, {64, 2, 64, 64},     {65, 100, 128, 128},  {200, 63, 256, 64},
    {5, 31, 5, 32},     {256, 512, 256, 512}};
#define PACK_SHAPES (sizeof pack_shapes / sizeof pack_shapes[0])
#define GUARD       0x1234

/* Element (row, d) of the operand as the source has it. */
static tdm_bf16 wanted(const tdm_bf16_source *from, bool turned, int64_t row, int64_t d)
{
    int64_t r = turned ? d : row, c = turned ? row : d;
    return r < from->rows && c < from->columns
               ? tdm_bf16_from_float(from->data[r * from->stride + c])
               : 0;
}

static void check_packed(const pack_shape *shape, const tdm_bf16_source *from, bool turned,
                         bool panels)
{
    int64_t rows = panels ? (shape->rows + PANEL - 1) / PANEL * PANEL : shape->rows_padded;
    int64_t depth = shape->depth_padded;
    tdm_bf16 *to;
    ck_assert_ok(tdm_alloc((size_t)(rows * depth) + 1, sizeof *to, &to));
    memset(to, 0xff, (size_t)(rows * depth) * sizeof *to);
    to[rows * depth] = GUARD;
    if (panels && turned)
        tdm_bf16_pack_panels(from, depth, to);
    else if (panels)
        tdm_bf16_pack_panels_turned(from, depth, to);
    else if (turned)
        tdm_bf16_pack_rows_turned(from, rows, depth, to);
    else
        tdm_bf16_pack_rows(from, rows, depth, to);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t d = 0; d < depth; d++) {
            int64_t place = panels ? (r / PANEL * depth + d / 2 * 2) * PANEL + r % PANEL * 2 + d % 2
                                   : r * depth + d;
            if (to[place] != wanted(from, turned, r, d))
                ck_abort_msg("%s%s of %lld x %lld: (%lld, %lld) is %04x",
                             panels ? "panels" : "rows", turned ? " turned" : "",
                             (long long)shape->rows, (long long)shape->depth, (long long)r,
                             (long long)d, to[place]);
        }
    }
    ck_assert_int_eq(to[rows * depth], GUARD);
    tdm_free(to);
}

/* The source ends where its memory ends, so that a wild read shows under the address sanitizer. */
START_TEST(test_packing)
{
    for (size_t i = 0; i < 4 * 2 * PACK_SHAPES; i++) {
        const pack_shape *shape = &pack_shapes[i / 8];
        bool turned = i & 1, panels = i & 2;
        if (!tdm_cpu_level_force(&tdm_bf16_levels, i & 4 ? 1 : 0))
            continue;
        int64_t rows = turned ? shape->depth : shape->rows;
        int64_t columns = turned ? shape->rows : shape->depth, stride = columns + 3;
        float *data;
        size_t count = (size_t)((rows - 1) * stride + columns);
        ck_assert_ok(tdm_alloc(count, sizeof *data, &data));
        for (size_t j = 0; j < count; j++)
            data[j] = 1.0f + (float)(j * 7919 % 1000);
        tdm_bf16_source from = {data, rows, columns, stride};
        check_packed(shape, &from, turned, panels);
        tdm_free(data);
    }
    tdm_cpu_level_force(&tdm_bf16_levels, -1);
}
END_TEST

/* ---- products -------------------------------------------------------------------------------- */

static tdm_pool *pool;
static tdm_backend *backend;

static void open_backend(void)
{
    ck_assert_ok(tdm_pool_create(2, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
}

static void close_backend(void)
{
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}

static tdm_matrix ones(int64_t rows, int64_t columns)
{
    tdm_matrix matrix = {.rows = rows, .columns = columns, .stride = columns};
    ck_assert_ok(tdm_alloc((size_t)(rows * columns), sizeof(float), &matrix.data));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)matrix.data)[i] = 1.0f;
    return matrix;
}

/* A CPU without the instructions, or one made to seem so. */
START_TEST(test_missing_instructions)
{
    tdm_backend_properties properties;
    float x = 1.0f;
    tdm_matrix one = {.data = &x, .rows = 1, .columns = 1, .stride = 1};
    tdm_gemm_args args = {.a = one, .b = one, .c = one, .compute = TDM_BF16};
    open_backend();
    tdm_cpu(backend)->bf16 = false;
    ck_assert_ok(backend->type->properties(backend, &properties));
    ck_assert(!properties.bf16);
    ck_assert_fails(backend->ops->gemm(backend, &args, NULL), TDM_E_UNSUPPORTED, "AVX512_BF16");
    ck_assert_fails(backend->ops->gemm(backend, &args, NULL), TDM_E_UNSUPPORTED,
                    "train.precision: fp32");
    args.compute = TDM_F16;
    ck_assert_fails(backend->ops->gemm(backend, &args, NULL), TDM_E_UNSUPPORTED, "F16");
    ck_assert(x == 1.0f);
    close_backend();
}
END_TEST

static bool has_bf16(void)
{
    if (!tdm_cpu_has_bf16())
        tdm_test_skip("this CPU has no products in bf16");
    return tdm_cpu_has_bf16();
}

START_TEST(test_properties_tell)
{
    tdm_backend_properties properties;
    open_backend();
    ck_assert_ok(backend->type->properties(backend, &properties));
    ck_assert_int_eq(properties.bf16, tdm_cpu_has_bf16());
    close_backend();
}
END_TEST

/* Whatever rows are valid: nothing is allocated after the first products. */
START_TEST(test_steps_allocate_nothing)
{
    if (!has_bf16())
        return;
    open_backend();
    int64_t rows = 300;
    tdm_matrix x = ones(300, 100), w = ones(70, 100), y = ones(300, 70);
    tdm_gemm_args forward = {.a = x, .b = w, .c = y, .trans_b = true, .rows = &rows};
    tdm_gemm_args weights = {.a = y, .b = x, .c = w, .trans_a = true, .accumulate = true};
    weights.rows = &rows;
    forward.compute = weights.compute = TDM_BF16;
    int64_t before = 0;
    for (rows = 1; rows <= 300; rows += 13) {
        ck_assert_ok(backend->ops->gemm(backend, &forward, NULL));
        ck_assert_ok(backend->ops->gemm(backend, &weights, NULL));
        if (rows == 1)
            before = tdm_memory_stats_get().allocations;
    }
    ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
    tdm_free(x.data);
    tdm_free(w.data);
    tdm_free(y.data);
    close_backend();
}
END_TEST

/* Wherever memory ends, the op says so, leaves nothing behind and works the next time. */
START_TEST(test_out_of_memory)
{
    if (!has_bf16())
        return;
    tdm_matrix a = ones(3, 40), b = ones(40, 5), c = ones(3, 5);
    tdm_gemm_args args = {.a = a, .b = b, .c = c, .compute = TDM_BF16};
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status != TDM_OK; n += 1 + n / 8) {
        open_backend();
        tdm_memory_fail_at(n, true);
        status = backend->ops->gemm(backend, &args, NULL);
        tdm_memory_fail_at(0, false);
        if (status != TDM_OK)
            ck_assert_int_eq(status, TDM_E_NOMEM);
        ck_assert_ok(backend->ops->gemm(backend, &args, NULL));
        for (int i = 0; i < 15; i++)
            ck_assert(((float *)c.data)[i] == 40.0f);
        close_backend();
    }
    tdm_free(a.data);
    tdm_free(b.data);
    tdm_free(c.data);
}
END_TEST

/* What is not finite shows, as in F32. */
START_TEST(test_not_finite)
{
    if (!has_bf16())
        return;
    open_backend();
    tdm_matrix a = ones(2, 3), b = ones(3, 2), c = ones(2, 2);
    tdm_gemm_args args = {.a = a, .b = b, .c = c, .compute = TDM_BF16};
    float *left = a.data, *out = c.data;
    left[1] = NAN;
    left[4] = -INFINITY;
    ck_assert_ok(backend->ops->gemm(backend, &args, NULL));
    ck_assert(isnan(out[0]) && isnan(out[1]));
    ck_assert(isinf(out[2]) && isinf(out[3]) && out[2] < 0.0f);
    args.activation = TDM_ACTIVATION_GELU;
    ck_assert_ok(backend->ops->gemm(backend, &args, NULL));
    ck_assert(isnan(out[0]) && isnan(out[1]));
    tdm_free(a.data);
    tdm_free(b.data);
    tdm_free(c.data);
    close_backend();
}
END_TEST

TDM_CHECK_MAIN(test_known_numbers, test_all_numbers, test_packing, test_missing_instructions,
               test_properties_tell, test_steps_allocate_nothing, test_out_of_memory,
               test_not_finite)
