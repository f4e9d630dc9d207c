#include "core/memory.h"
#include "core/ops.h"
#include "cpu/backend_cpu.h"
#include "tests/support/check_main.h"

#include <stdint.h>
#include <string.h>

static tdm_pool *pool;
static tdm_backend *backend;

static void open_backend(bool deferred)
{
    ck_assert_ok(tdm_pool_create(3, &pool));
    ck_assert_ok(deferred ? tdm_cpu_create_deferred(pool, &backend)
                          : tdm_cpu_create(pool, &backend));
}

static void close_backend(void)
{
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}

START_TEST(test_properties_name_the_machine)
{
    static const char *const names[] = {"baseline", "avx2", "avx512"};
    tdm_backend_properties properties;
    open_backend(false);
    for (int i = 0; i < 3; i++) {
        if (tdm_kernels_named(names[i]) == NULL)
            continue;
        ck_assert_ok(tdm_cpu_use_kernels(backend, names[i]));
        ck_assert_ok(backend->type->properties(backend, &properties));
        ck_assert_int_eq(strncmp(properties.instructions, names[i], strlen(names[i])), 0);
        ck_assert_ptr_nonnull(strstr(properties.instructions, "oneDNN "));
    }
    ck_assert_int_gt((int)strlen(properties.name), 0);
    ck_assert_ptr_null(strchr(properties.name, '\n'));
    ck_assert(properties.host_memory);
    ck_assert_int_gt(properties.memory_bytes, 0);
    ck_assert_int_le(properties.memory_free_bytes, properties.memory_bytes);
    close_backend();
}
END_TEST

START_TEST(test_unknown_kernels_are_refused)
{
    open_backend(false);
    ck_assert_fails(tdm_cpu_use_kernels(backend, "mmx"), TDM_E_UNSUPPORTED, "mmx");
    ck_assert_ptr_nonnull(tdm_kernels_best());
    close_backend();
}
END_TEST

static const size_t sizes[] = {1, 63, 4096, ((size_t)5 << 20) + 3};

START_TEST(test_memory_is_zero_and_aligned)
{
    open_backend(false);
    const tdm_backend_type *type = backend->type;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *device, *host;
        ck_assert_ok(type->alloc(backend, sizes[i], &device));
        ck_assert_ok(type->host_alloc(backend, sizes[i], &host));
        size_t alignment = sizes[i] >= (size_t)4 << 20 ? (size_t)2 << 20 : TDM_ALIGNMENT;
        ck_assert_uint_eq((uintptr_t)device % alignment, 0);
        ck_assert_uint_eq((uintptr_t)host % alignment, 0);
        for (size_t b = 0; b < sizes[i]; b++) {
            if (device[b] != 0 || host[b] != 0)
                ck_abort_msg("byte %zu of %zu is not zero", b, sizes[i]);
        }
        type->free(backend, device);
        type->host_free(backend, host);
    }
    type->free(backend, NULL);
    type->host_free(backend, NULL);
    close_backend();
}
END_TEST

START_TEST(test_copies_and_zero)
{
    open_backend(false);
    const tdm_backend_type *type = backend->type;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *a, *b, *host;
        ck_assert_ok(type->alloc(backend, sizes[i], &a));
        ck_assert_ok(type->alloc(backend, sizes[i], &b));
        ck_assert_ok(type->host_alloc(backend, sizes[i], &host));
        for (size_t k = 0; k < sizes[i]; k++)
            host[k] = (unsigned char)(k * 31 + k / 256 + 1);
        ck_assert_ok(type->copy_in(backend, a, host, sizes[i], NULL));
        ck_assert_ok(type->copy(backend, b, a, sizes[i], NULL));
        ck_assert_ok(type->zero(backend, a, sizes[i], NULL));
        ck_assert_ok(type->stream_sync(backend, NULL));
        ck_assert_mem_eq(b, host, sizes[i]);
        ck_assert_ok(type->copy_out(backend, host, a, sizes[i], NULL));
        ck_assert_ok(type->stream_sync(backend, NULL));
        ck_assert_mem_eq(host, a, sizes[i]);
        ck_assert(host[0] == 0 && memcmp(host, host + 1, sizes[i] - 1) == 0);
        type->free(backend, a);
        type->free(backend, b);
        type->host_free(backend, host);
    }
    ck_assert_ok(type->copy_in(backend, NULL, NULL, 0, NULL));
    close_backend();
}
END_TEST

START_TEST(test_streams_and_events_are_handles)
{
    open_backend(false);
    const tdm_backend_type *type = backend->type;
    tdm_stream *first, *second;
    tdm_event *event;
    ck_assert_ok(type->stream_create(backend, &first));
    ck_assert_ok(type->stream_create(backend, &second));
    ck_assert_ok(type->event_create(backend, &event));
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_ne(first, second);
    ck_assert_ok(type->event_record(backend, event, first));
    ck_assert_ok(type->event_wait(backend, event, second));
    ck_assert_ok(type->event_sync(backend, event));
    ck_assert_ok(type->stream_sync(backend, second));
    type->event_destroy(backend, event);
    type->event_destroy(backend, NULL);
    type->stream_destroy(backend, first);
    type->stream_destroy(backend, second);
    type->stream_destroy(backend, NULL);
    close_backend();
}
END_TEST

static const float ones[4] = {1.0f, 1.0f, 1.0f, 1.0f};

/* y += x on the stream, with x four ones. */
static void add_ones(float *x, float *y, tdm_stream *stream)
{
    tdm_add_args args = {.x = {.data = x, .rows = 1, .columns = 4, .stride = 4},
                         .y = {.data = y, .rows = 1, .columns = 4, .stride = 4},
                         .accumulate = true};
    ck_assert_ok(backend->ops->add(backend, &args, stream));
}

START_TEST(test_deferred_runs_at_a_sync)
{
    float *x, *y, got[4] = {9.0f};
    tdm_stream *stream;
    open_backend(true);
    const tdm_backend_type *type = backend->type;
    ck_assert_ok(type->alloc(backend, sizeof ones, &x));
    ck_assert_ok(type->alloc(backend, sizeof ones, &y));
    ck_assert_ok(type->stream_create(backend, &stream));
    ck_assert_ok(type->copy_in(backend, x, ones, sizeof ones, stream));
    add_ones(x, y, stream);
    add_ones(x, y, stream);
    ck_assert_ok(type->copy_out(backend, got, y, sizeof got, stream));
    ck_assert_ok(type->zero(backend, y, sizeof ones, stream));
    ck_assert_ok(type->stream_sync(backend, NULL));
    ck_assert(x[0] == 0.0f && y[0] == 0.0f && got[0] == 9.0f);
    ck_assert_ok(type->stream_sync(backend, stream));
    ck_assert(x[3] == 1.0f && got[3] == 2.0f && y[3] == 0.0f);
    type->stream_destroy(backend, stream);
    type->free(backend, x);
    type->free(backend, y);
    close_backend();
}
END_TEST

/* An event runs what lies before it, and nothing behind it. */
START_TEST(test_deferred_events)
{
    float *x, *y;
    tdm_stream *first, *second;
    tdm_event *event, *never;
    open_backend(true);
    const tdm_backend_type *type = backend->type;
    ck_assert_ok(type->alloc(backend, sizeof ones, &x));
    ck_assert_ok(type->alloc(backend, sizeof ones, &y));
    ck_assert_ok(type->stream_create(backend, &first));
    ck_assert_ok(type->stream_create(backend, &second));
    ck_assert_ok(type->event_create(backend, &event));
    ck_assert_ok(type->event_create(backend, &never));
    ck_assert_ok(type->copy_in(backend, x, ones, sizeof ones, first));
    ck_assert_ok(type->event_record(backend, event, first));
    add_ones(x, y, first);
    ck_assert_ok(type->event_sync(backend, never));
    ck_assert(x[0] == 0.0f);
    ck_assert_ok(type->event_wait(backend, event, second));
    ck_assert(x[0] == 1.0f && y[0] == 0.0f);
    ck_assert_ok(type->event_record(backend, event, first));
    ck_assert_ok(type->event_sync(backend, event));
    ck_assert(y[0] == 1.0f);
    add_ones(x, y, first);
    ck_assert_ok(type->event_record(backend, event, first));
    type->stream_destroy(backend, first); /* what was queued is dropped, the event is passed */
    ck_assert_ok(type->event_sync(backend, event));
    ck_assert(y[0] == 1.0f);
    add_ones(x, y, second);
    add_ones(x, y, NULL);
    type->event_destroy(backend, event);
    type->event_destroy(backend, never);
    close_backend(); /* drops the rest, and the second stream */
    tdm_free(x);
    tdm_free(y);
}
END_TEST

/* An op that cannot compute says so where it runs, and what follows it still runs. */
START_TEST(test_deferred_errors_come_with_the_sync)
{
    float *x, *y;
    open_backend(true);
    const tdm_backend_type *type = backend->type;
    ck_assert_ok(type->alloc(backend, sizeof ones, &x));
    ck_assert_ok(type->alloc(backend, sizeof ones, &y));
    tdm_add_args args = {.x = {.data = x, .rows = 1, .columns = 4, .stride = 4, .dtype = TDM_BF16},
                         .y = {.data = y, .rows = 1, .columns = 4, .stride = 4}};
    ck_assert_ok(backend->ops->add(backend, &args, NULL));
    ck_assert_ok(type->copy_in(backend, x, ones, sizeof ones, NULL));
    add_ones(x, y, NULL);
    ck_assert_fails(type->stream_sync(backend, NULL), TDM_E_UNSUPPORTED, "add");
    ck_assert(y[0] == 1.0f);
    ck_assert_ok(type->stream_sync(backend, NULL));
    type->free(backend, x);
    type->free(backend, y);
    close_backend();
}
END_TEST

START_TEST(test_other_types_are_refused)
{
    float data[4] = {0};
    tdm_matrix good = {.data = data, .rows = 1, .columns = 1, .stride = 1};
    tdm_matrix bad = good;
    bad.dtype = TDM_F16;
    open_backend(false);
    const tdm_ops *ops = backend->ops;
#define REFUSED(op, ...)                                                                           \
    ck_assert_fails(ops->op(backend, &(tdm_##op##_args){__VA_ARGS__}, NULL), TDM_E_UNSUPPORTED, #op)
    REFUSED(gemm, .a = good, .b = bad, .c = good);
    REFUSED(add, .x = good, .y = bad);
    REFUSED(column_sum, .x = bad, .sums = data);
    REFUSED(relu_bwd, .y = good, .dy = good, .dx = bad);
    REFUSED(dropout, .x = bad, .y = good);
    REFUSED(embedding_fwd, .out = bad);
    REFUSED(embedding_bwd, .dout = bad);
    REFUSED(fm_fwd, .embeddings = good, .out = bad, .sums = good);
    REFUSED(fm_bwd, .embeddings = good, .sums = good, .dout = good, .d_embeddings = bad);
    REFUSED(cross_fwd, .x0 = good, .x = good, .u = bad, .y = good);
    REFUSED(cross_bwd, .x0 = good, .u = good, .dy = bad, .du = good, .dx0 = good);
    REFUSED(lookup_fwd, .table = good, .out = bad);
    REFUSED(lookup_bwd, .dout = bad, .table_gradient = good);
    REFUSED(layer_norm_fwd, .x = good, .y = bad);
    REFUSED(layer_norm_bwd, .sum = good, .dy = bad);
    REFUSED(activation_bwd, .x = good, .dy = good, .dx = bad);
    REFUSED(gated_fwd, .x = bad, .y = good);
    REFUSED(gated_bwd, .x = good, .dy = bad, .dx = good);
    REFUSED(rotary, .x = bad);
    REFUSED(bce, .logits = bad);
    REFUSED(bce, .logits = good, .probabilities = bad);
    REFUSED(softmax_loss, .logits = bad);
    REFUSED(squared_loss, .logits = good, .dlogits = bad);
    REFUSED(gemm, .a = good, .b = good, .c = good, .preactivation = bad);
#undef REFUSED
    tdm_gemm_args both = {.a = good, .b = good, .c = good, .accumulate = true, .bias = data};
    ck_assert_fails(ops->gemm(backend, &both, NULL), TDM_E_ARG, "accumulates");
    both.bias = NULL;
    both.preactivation = good;
    ck_assert_fails(ops->gemm(backend, &both, NULL), TDM_E_ARG, "accumulates");
    tdm_step_scalars scalars = {0};
    tdm_sparse_update_args lamb = {.rule = {.type = TDM_UPDATE_LAMB}, .scalars = &scalars};
    ck_assert_fails(ops->sparse_update(backend, &lamb, NULL), TDM_E_UNSUPPORTED,
                    "lamb needs the norms of whole tensors");
    close_backend();
}
END_TEST

START_TEST(test_other_arguments_are_refused)
{
    float data[4] = {0};
    tdm_matrix x = {.data = data, .rows = 1, .columns = 4, .stride = 4};
    open_backend(false);
    const tdm_ops *ops = backend->ops;
#define REFUSED(op, ...)                                                                           \
    ck_assert_fails(ops->op(backend, &(tdm_##op##_args){__VA_ARGS__}, NULL), TDM_E_ARG, #op)
    REFUSED(activation_bwd, .activation = TDM_ACTIVATION_RELU, .x = x, .dy = x, .dx = x);
    REFUSED(gated_fwd, .activation = TDM_ACTIVATION_TANH, .x = x, .y = x);
    REFUSED(gated_bwd, .activation = TDM_ACTIVATION_NONE, .x = x, .dy = x, .dx = x);
    REFUSED(rotary, .x = x, .dim = 1);
    REFUSED(rotary, .x = x, .dim = 6);
    REFUSED(rotary, .x = x, .dim = 0);
#undef REFUSED
    close_backend();
}
END_TEST

/* The working memory of ops grows to the largest op, and stays: steps allocate nothing. */
START_TEST(test_working_memory_stays)
{
    static float x[300 * 40], sums[40];
    tdm_column_sum_args args = {.x = {.data = x, .rows = 300, .columns = 40, .stride = 40},
                                .sums = sums};
    open_backend(false);
    tdm_memory_fail_at(1, false);
    ck_assert_fails(backend->ops->column_sum(backend, &args, NULL), TDM_E_NOMEM, "memory");
    tdm_memory_fail_at(0, false);
    ck_assert_ok(backend->ops->column_sum(backend, &args, NULL));
    int64_t before = tdm_memory_stats_get().allocations;
    for (args.x.rows = 300; args.x.rows > 0; args.x.rows -= 100)
        ck_assert_ok(backend->ops->column_sum(backend, &args, NULL));
    ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
    close_backend();
}
END_TEST

/* How many rows are valid changes with every step. */
START_TEST(test_working_memory_does_not_depend_on_valid_rows)
{
    enum { ROWS = 2600, COLUMNS = 24 };
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS], sums[2][COLUMNS], weights[ROWS];
    static uint32_t numbers[ROWS];
    static tdm_step_scalars scalars = {.loss_scale = 1};
    static const int64_t valid[] = {1, ROWS};
    const tdm_matrix matrix = {.data = x, .rows = ROWS, .columns = COLUMNS, .stride = COLUMNS};
    tdm_matrix to = matrix;
    to.data = y;
    for (int32_t i = 0; i < ROWS; i++) {
        weights[i] = 1;
        numbers[i] = (uint32_t)i % COLUMNS;
    }
    numbers[ROWS - 1] = 40000;
#define SAME_MEMORY(op, ...)                                                                       \
    do {                                                                                           \
        int64_t allocations[2];                                                                    \
        open_backend(false);                                                                       \
        for (int i = 0; i < 2; i++) {                                                              \
            const tdm_##op##_args args = {__VA_ARGS__, .rows = &valid[i]};                         \
            ck_assert_ok(backend->ops->op(backend, &args, NULL));                                  \
            allocations[i] = tdm_memory_stats_get().allocations;                                   \
        }                                                                                          \
        ck_assert_msg(allocations[0] == allocations[1], #op " needs more memory");                 \
        close_backend();                                                                           \
    } while (0)
    SAME_MEMORY(rotary, .x = to, .dim = 8, .theta = 100, .positions = numbers,
                .max_positions = 40001);
    numbers[ROWS - 1] = 0;
    SAME_MEMORY(column_sum, .x = matrix, .sums = sums[0]);
    SAME_MEMORY(relu_bwd, .y = matrix, .dy = matrix, .dx = to, .bias_gradient = sums[0]);
    SAME_MEMORY(activation_bwd, .activation = TDM_ACTIVATION_GELU, .x = matrix, .dy = matrix,
                .dx = to, .bias_gradient = sums[0]);
    SAME_MEMORY(layer_norm_bwd, .sum = matrix, .gamma = weights, .means = weights, .rstds = weights,
                .dy = matrix, .dx = to, .gamma_gradient = sums[0], .beta_gradient = sums[1]);
    SAME_MEMORY(lookup_bwd, .dout = matrix, .ids = numbers, .table_gradient = to);
    SAME_MEMORY(weight_sum, .weights = weights, .batch = ROWS, .scalars = &scalars);
    SAME_MEMORY(softmax_loss, .logits = matrix, .labels = numbers, .scalars = &scalars);
    SAME_MEMORY(gemm, .a = {.data = weights, .rows = ROWS, .columns = 1, .stride = 1}, .b = matrix,
                .c = {.data = sums[0], .rows = 1, .columns = COLUMNS, .stride = COLUMNS},
                .trans_a = true);
#undef SAME_MEMORY
}
END_TEST

/* Creating and queueing fail cleanly where memory ends. */
START_TEST(test_out_of_memory)
{
    float x[4] = {0};
    tdm_backend *none;
    tdm_stream *stream;
    open_backend(true);
    tdm_memory_fail_at(1, true);
    ck_assert_fails(tdm_cpu_create(pool, &none), TDM_E_NOMEM, "memory");
    ck_assert_ptr_null(none);
    ck_assert_fails(tdm_cpu_create_deferred(pool, &none), TDM_E_NOMEM, "memory");
    ck_assert_ptr_null(none);
    ck_assert_fails(backend->type->stream_create(backend, &stream), TDM_E_NOMEM, "memory");
    ck_assert_fails(backend->type->zero(backend, x, sizeof x, NULL), TDM_E_NOMEM, "memory");
    tdm_memory_fail_at(0, false);
    ck_assert_ok(backend->type->stream_sync(backend, NULL));
    close_backend();
}
END_TEST

TDM_CHECK_MAIN(test_properties_name_the_machine, test_unknown_kernels_are_refused,
               test_memory_is_zero_and_aligned, test_copies_and_zero,
               test_streams_and_events_are_handles, test_deferred_runs_at_a_sync,
               test_deferred_events, test_deferred_errors_come_with_the_sync,
               test_other_types_are_refused, test_other_arguments_are_refused,
               test_working_memory_stays, test_working_memory_does_not_depend_on_valid_rows,
               test_out_of_memory)
