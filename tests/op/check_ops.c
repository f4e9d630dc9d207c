/* Every op of the CPU, on every table of kernels that this machine runs: against the reference; the
 * same bits on 1, 2, 5 and 16 threads; and in the deferred mode. The tests are made from
 * TDM_OPS_LIST, so an op without cases or without a reference does not link. */
#include "core/memory.h"
#include "cpu/backend_cpu.h"
#include "tests/op/op_cases.h"
#include "tests/op/reference_ops.h"
#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>

#define WORLD_BYTES ((size_t)8 << 20)

typedef union any_args {
#define ANY_ARGS(name, kind) tdm_##name##_args name;
    TDM_OPS_LIST(ANY_ARGS)
#undef ANY_ARGS
} any_args;

typedef struct op_test {
    const char *name;
    bool (*make)(op_world *world, int n, any_args *args);
    void (*reference)(op_world *world, const any_args *args);
    tdm_status (*run)(tdm_backend *backend, const any_args *args);
} op_test;

#define OP_TEST(name, kind)                                                                        \
    static bool make_##name(op_world *world, int n, any_args *args)                                \
    {                                                                                              \
        memset(args, 0, sizeof *args);                                                             \
        return case_##name(world, n, &args->name);                                                 \
    }                                                                                              \
    static void refer_##name(op_world *world, const any_args *args)                                \
    {                                                                                              \
        reference_##name(world, &args->name);                                                      \
    }                                                                                              \
    static tdm_status run_##name(tdm_backend *backend, const any_args *args)                       \
    {                                                                                              \
        return backend->ops->name(backend, &args->name, NULL);                                     \
    }                                                                                              \
    static const op_test op_test_##name = {#name, make_##name, refer_##name, run_##name};
TDM_OPS_LIST(OP_TEST)
#undef OP_TEST

static const int thread_counts[] = {1, 2, 5, 16};
static const char *const kernel_names[] = {"baseline", "avx2", "avx512"};
#define THREAD_COUNTS 4
#define KERNEL_NAMES  3

typedef struct op_backends {
    tdm_pool *pools[THREAD_COUNTS];
    tdm_backend *direct[THREAD_COUNTS];
    tdm_backend *deferred;
    op_world worlds[THREAD_COUNTS], deferred_world;
} op_backends;

static void backends_init(op_backends *all)
{
    for (int i = 0; i < THREAD_COUNTS; i++) {
        ck_assert_ok(tdm_pool_create(thread_counts[i], &all->pools[i]));
        ck_assert_ok(tdm_cpu_create(all->pools[i], &all->direct[i]));
        op_world_create(all->direct[i], WORLD_BYTES, &all->worlds[i]);
    }
    ck_assert_ok(tdm_cpu_create_deferred(all->pools[1], &all->deferred));
    op_world_create(all->deferred, WORLD_BYTES, &all->deferred_world);
}

static void backends_deinit(op_backends *all)
{
    op_world_destroy(&all->deferred_world);
    tdm_backend_destroy(all->deferred);
    for (int i = 0; i < THREAD_COUNTS; i++) {
        op_world_destroy(&all->worlds[i]);
        tdm_backend_destroy(all->direct[i]);
        tdm_pool_destroy(all->pools[i]);
    }
}

static bool use_kernels(op_backends *all, const char *name)
{
    if (tdm_kernels_named(name) == NULL)
        return false;
    for (int i = 0; i < THREAD_COUNTS; i++)
        ck_assert_ok(tdm_cpu_use_kernels(all->direct[i], name));
    ck_assert_ok(tdm_cpu_use_kernels(all->deferred, name));
    return true;
}

/* Makes and runs case n; false where there is none. With `reference` the mirror holds its result.
 */
static bool run_case(const op_test *test, op_world *world, int n, bool reference, const char *label)
{
    any_args args;
    op_world_reset(world, (uint64_t)n);
    if (!test->make(world, n, &args))
        return false;
    op_world_upload(world);
    if (reference)
        test->reference(world, &args);
    ck_assert_ok(test->run(world->backend, &args));
    memset(&args, 0xff, sizeof args); /* an op has read its arguments when it returns */
    if (world->backend->ops->gemm != tdm_cpu_direct_ops.gemm)
        ck_assert_msg(op_world_untouched(world), "%s: ran before anybody waited", label);
    ck_assert_ok(world->backend->type->stream_sync(world->backend, NULL));
    op_world_download(world);
    return true;
}

static void need_same_bits(const op_world *a, const op_world *b, const char *label,
                           const char *what)
{
    ck_assert_uint_eq(a->used, b->used);
    ck_assert_msg(memcmp(a->host, b->host, a->used) == 0, "%s: other bits %s", label, what);
}

static void run_op(const op_test *test)
{
    op_backends all;
    backends_init(&all);
    int cases = 0;
    for (int k = 0; k < KERNEL_NAMES; k++) {
        if (!use_kernels(&all, kernel_names[k]))
            continue;
        for (int n = 0;; n++, cases++) {
            char label[64];
            snprintf(label, sizeof label, "%s %d, %s", test->name, n, kernel_names[k]);
            if (!run_case(test, &all.worlds[0], n, true, label))
                break;
            op_world_compare(&all.worlds[0], label);
            for (int i = 1; i < THREAD_COUNTS; i++) {
                run_case(test, &all.worlds[i], n, false, label);
                need_same_bits(&all.worlds[0], &all.worlds[i], label, "on more threads");
            }
            run_case(test, &all.deferred_world, n, false, label);
            need_same_bits(&all.worlds[0], &all.deferred_world, label, "in the deferred mode");
        }
    }
    ck_assert_int_gt(cases, 0);
    backends_deinit(&all);
}

#define CHECK_OP(name, kind)                                                                       \
    START_TEST(test_##name)                                                                        \
    {                                                                                              \
        run_op(&op_test_##name);                                                                   \
    }                                                                                              \
    END_TEST
TDM_OPS_LIST(CHECK_OP)
#undef CHECK_OP

START_TEST(test_every_slot_is_filled)
{
    tdm_pool *pool;
    tdm_backend *backend;
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
    ck_assert_ok(tdm_ops_check(backend));
    tdm_backend_destroy(backend);
    ck_assert_ok(tdm_cpu_create_deferred(pool, &backend));
    ck_assert_ok(tdm_ops_check(backend));
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}
END_TEST

#define LISTED(name, kind) test_##name,
TDM_CHECK_MAIN(TDM_OPS_LIST(LISTED) test_every_slot_is_filled)
