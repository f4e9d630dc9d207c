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

/* The last one runs in the deferred mode. */
#define BACKENDS (THREAD_COUNTS + 1)

typedef struct op_machine {
    tdm_pool *pools[THREAD_COUNTS];
    tdm_backend *backends[BACKENDS];
    op_world world;
    unsigned char *first; /* what the first backend computed */
} op_machine;

static void machine_init(op_machine *machine)
{
    for (int i = 0; i < THREAD_COUNTS; i++) {
        ck_assert_ok(tdm_pool_create(thread_counts[i], &machine->pools[i]));
        ck_assert_ok(tdm_cpu_create(machine->pools[i], &machine->backends[i]));
    }
    ck_assert_ok(tdm_cpu_create_deferred(machine->pools[1], &machine->backends[THREAD_COUNTS]));
    op_world_create(machine->backends[0], WORLD_BYTES, &machine->world);
    ck_assert_ok(tdm_alloc(WORLD_BYTES, 1, &machine->first));
}

static void machine_deinit(op_machine *machine)
{
    op_world_destroy(&machine->world);
    tdm_free(machine->first);
    for (int i = 0; i < BACKENDS; i++)
        tdm_backend_destroy(machine->backends[i]);
    for (int i = 0; i < THREAD_COUNTS; i++)
        tdm_pool_destroy(machine->pools[i]);
}

static void run_on(const op_test *test, op_world *world, tdm_backend *backend, const any_args *args,
                   const char *label)
{
    any_args copy = *args;
    op_world_restart(world, backend);
    ck_assert_ok(test->run(backend, &copy));
    memset(&copy, 0xff, sizeof copy); /* an op has read its arguments when it returns */
    if (backend->ops->gemm != tdm_cpu_direct_ops.gemm)
        ck_assert_msg(op_world_untouched(world), "%s: ran before anybody waited", label);
    ck_assert_ok(backend->type->stream_sync(backend, NULL));
    op_world_download(world);
}

/* The first backend agrees with the reference, and the others with the first, bit for bit. */
static void run_kernels(const op_test *test, op_machine *machine, const any_args *args, int n,
                        const char *kernels)
{
    op_world *world = &machine->world;
    for (int i = 0; i < BACKENDS; i++) {
        char label[96];
        snprintf(label, sizeof label, "%s %d, %s, %s %d", test->name, n, kernels,
                 i == THREAD_COUNTS ? "deferred, threads" : "threads",
                 thread_counts[i % THREAD_COUNTS]);
        ck_assert_ok(tdm_cpu_use_kernels(machine->backends[i], kernels));
        run_on(test, world, machine->backends[i], args, label);
        if (i == 0) {
            op_world_compare(world, label);
            memcpy(machine->first, world->host, world->used);
        }
        ck_assert_msg(memcmp(machine->first, world->host, world->used) == 0, "%s: other bits",
                      label);
    }
}

static void run_op(const op_test *test)
{
    op_machine machine = {0};
    machine_init(&machine);
    int cases = 0;
    for (;; cases++) {
        any_args args;
        op_world_reset(&machine.world, (uint64_t)cases);
        if (!test->make(&machine.world, cases, &args))
            break;
        op_world_upload(&machine.world);
        test->reference(&machine.world, &args);
        for (int k = 0; k < KERNEL_NAMES; k++) {
            if (tdm_kernels_named(kernel_names[k]) != NULL)
                run_kernels(test, &machine, &args, cases, kernel_names[k]);
        }
    }
    ck_assert_int_gt(cases, 0);
    machine_deinit(&machine);
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
