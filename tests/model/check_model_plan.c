/* Plans and their memory, the errors of a model, and the search for numbers that are not finite. */
#include "tests/support/check_main.h"
#include "tests/support/ctr_rig.h"

#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BATCH 33

static const tdm_model_field fields[] = {{"a", 14, 4}, {"b", 104, 4}, {"c", 9, 4}};
static const tdm_model_field mixed_fields[] = {{"a", 14, 4}, {"b", 104, 4}, {"c", 9, 8}};
static const tdm_model_field same_names[] = {{"a", 14, 4}, {"a", 104, 4}};
static int64_t units[] = {16, 5};
static const tdm_deepfm_options deepfm = {.mlp = {.units = {units, 2}}, .embedding_init = 0.01};
static const tdm_dcn_v2_options dcn_v2 = {
    .crosses = 2, .mlp = {.units = {units, 2}}, .embedding_init = 0.01};

static tdm_rig_options small_model(void)
{
    return (tdm_rig_options){
        .type = &tdm_deepfm,
        .options = &deepfm,
        .inputs = {.field_count = 3, .fields = fields, .dense_count = 2},
        .batch_size = BATCH,
        .seed = 3,
    };
}

/* ---- a backend that counts ------------------------------------------------------------------- */

static tdm_status (*counted_alloc)(tdm_backend *backend, size_t bytes, void *out);
static int64_t counted_bytes;

static tdm_status count_alloc(tdm_backend *backend, size_t bytes, void *out)
{
    counted_bytes += (int64_t)bytes;
    return counted_alloc(backend, bytes, out);
}

typedef struct bench {
    tdm_pool *pool;
    tdm_backend *backend;
    tdm_backend_type type;
    tdm_batch_layout layout;
} bench;

static void bench_init(bench *test, const tdm_model_inputs *inputs, bool inference)
{
    ck_assert_ok(tdm_pool_create(1, &test->pool));
    ck_assert_ok(tdm_cpu_create(test->pool, &test->backend));
    test->type = *test->backend->type;
    counted_alloc = test->type.alloc;
    counted_bytes = 0;
    test->type.alloc = count_alloc;
    test->backend->type = &test->type;
    test->layout = tdm_rig_layout(inputs, BATCH, inference);
}

static void bench_deinit(bench *test)
{
    tdm_backend_destroy(test->backend);
    tdm_pool_destroy(test->pool);
}

static tdm_status create(bench *test, const tdm_model_type *type, const tdm_model_inputs *inputs,
                         tdm_model **out)
{
    const void *options = type == &tdm_deepfm ? (const void *)&deepfm : &dcn_v2;
    const tdm_model_setup setup = {.seed = 3};
    return tdm_model_create(type, options, inputs, &test->layout, test->backend, &setup, out);
}

START_TEST(memory_is_what_was_planned)
{
    for (int training = 0; training < 2; training++) {
        bench test;
        tdm_model *model;
        tdm_rig_options options = small_model();
        bench_init(&test, &options.inputs, training == 0);
        ck_assert_ok(create(&test, &tdm_deepfm, &options.inputs, &model));
        ck_assert_int_eq(counted_bytes, 0);
        ck_assert_ok(tdm_model_allocate(model, training == 1));
        tdm_model_memory memory = tdm_model_memory_get(model);
        int64_t slabs = memory.dense_elements * (1 + training) + memory.sparse_elements;
        int64_t arena = training ? memory.arena_bytes : memory.inference_arena_bytes;
        ck_assert_int_eq(counted_bytes, slabs * 4 + arena);
        ck_assert_int_gt(memory.arena_bytes, 0);
        ck_assert_fails(tdm_model_allocate(model, training == 1), TDM_E_STATE, "already");
        tdm_model_destroy(model);
        bench_deinit(&test);
    }
}
END_TEST

START_TEST(parameters_have_names_shapes_and_places)
{
    tdm_rig rig;
    tdm_rig_options options = small_model();
    tdm_rig_init(&rig, &options);
    const tdm_parameter *table = tdm_rig_parameter(&rig, "embedding.b.weight");
    ck_assert(table->sparse);
    ck_assert_int_eq(table->shape.sizes[0], 104);
    ck_assert_int_eq(table->shape.sizes[1], 4);
    const tdm_parameter *weight = tdm_rig_parameter(&rig, "mlp.0.weight");
    ck_assert(!weight->sparse && weight->decay);
    ck_assert_int_eq(weight->shape.sizes[0], 16);
    ck_assert_int_eq(weight->shape.sizes[1], 3 * 4 + 2);
    ck_assert(!tdm_rig_parameter(&rig, "mlp.0.bias")->decay);

    /* Dense parameters lie in reverse order, tables in order; none overlap. */
    int64_t ends[2] = {0, 0};
    int count = tdm_model_parameter_count(rig.model);
    for (int i = 0; i < 2 * count; i++) {
        bool sparse = i >= count;
        const tdm_parameter *parameter =
            tdm_model_parameter(rig.model, sparse ? i - count : count - 1 - i);
        if (parameter->sparse != sparse)
            continue;
        ck_assert_int_ge(parameter->offset, ends[sparse]);
        ck_assert_int_eq(parameter->offset % 16, 0);
        ends[sparse] = parameter->offset + tdm_shape_elements(&parameter->shape);
    }
    tdm_model_memory memory = tdm_model_memory_get(rig.model);
    ck_assert_int_le(ends[0], memory.dense_elements);
    ck_assert_int_le(ends[1], memory.sparse_elements);
    tdm_rig_deinit(&rig);
}
END_TEST

START_TEST(products_are_those_of_a_training_step)
{
    tdm_rig rig;
    tdm_product products[32];
    int count;
    tdm_rig_options options = small_model();
    tdm_rig_init(&rig, &options);
    tdm_model_products(rig.model, products, 32, &count);
    /* Dense columns have no gradient; each layer of the MLP has three products. */
    ck_assert_int_eq(count, 2 + 3 * 3);
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += products[i].m * products[i].n * products[i].k;
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(products[i].count, TDM_BATCH_ROWS);
    ck_assert_int_eq(sum, BATCH * (2 * 2 + 3 * (14 * 16 + 16 * 5 + 5)));
    /* The MLP is the first in backward to reach the embeddings. */
    ck_assert(products[2].trans_b && !products[4].accumulate);
    ck_assert(products[3].trans_a && products[3].accumulate);
    tdm_model_products(rig.model, products, 0, &count);
    ck_assert_int_eq(count, 11);
    tdm_rig_deinit(&rig);

    options.type = &tdm_dcn_v2;
    options.options = &dcn_v2;
    tdm_rig_init(&rig, &options);
    tdm_model_products(rig.model, products, 32, &count);
    ck_assert_int_eq(count, 3 * (2 + 1 + 3));
    tdm_rig_deinit(&rig);
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------- */

static void check_refused(const tdm_model_type *type, tdm_model_inputs inputs, tdm_status code,
                          const char *text)
{
    bench test;
    tdm_model *model;
    bench_init(&test, &inputs, false);
    ck_assert_fails(create(&test, type, &inputs, &model), code, text);
    ck_assert_ptr_null(model);
    bench_deinit(&test);
}

START_TEST(impossible_models_are_refused)
{
    const tdm_model_inputs none = {0};
    const tdm_model_inputs only_dense = {.dense_count = 2};
    const tdm_model_inputs mixed = {.field_count = 3, .fields = mixed_fields};
    const tdm_model_inputs twice = {.field_count = 2, .fields = same_names};
    check_refused(&tdm_logistic_regression, none, TDM_E_CONFIG, "no inputs");
    check_refused(&tdm_dcn_v2, none, TDM_E_CONFIG, "no inputs");
    check_refused(&tdm_deepfm, only_dense, TDM_E_CONFIG, "dcn_v2");
    check_refused(&tdm_deepfm, mixed, TDM_E_CONFIG, "a has 4 but c has 8");
    check_refused(&tdm_dcn_v2, twice, TDM_E_CONFIG, "embedding.a.weight");
}
END_TEST

START_TEST(batches_without_what_the_model_reads_are_refused)
{
    tdm_rig_options options = small_model();
    static const struct {
        const char *tensor, *text;
    } lacks[] = {{"ids", "\"ids\""},
                 {"dense", "\"dense\""},
                 {"distinct_ids", "\"distinct_ids\""},
                 {"distinct_starts", "\"distinct_starts\""},
                 {"distinct_positions", "\"distinct_positions\""}};
    for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++) {
        bench test;
        tdm_model *model;
        bench_init(&test, &options.inputs, false);
        int index = tdm_batch_layout_find(&test.layout, lacks[i].tensor);
        test.layout.tensors[index].name = "else";
        ck_assert_fails(create(&test, &tdm_deepfm, &options.inputs, &model), TDM_E_ARG,
                        lacks[i].text);
        /* Or has it in another shape. */
        test.layout.tensors[index].name = lacks[i].tensor;
        test.layout.tensors[index].shape.sizes[1]++;
        ck_assert_fails(create(&test, &tdm_deepfm, &options.inputs, &model), TDM_E_ARG,
                        lacks[i].text);
        bench_deinit(&test);
    }
}
END_TEST

START_TEST(training_needs_labels_and_distinct_ids)
{
    tdm_rig_options options = small_model();
    static const char *const needed[] = {"label", "distinct_counts"};
    for (int i = 0; i < 2; i++) {
        bench test;
        tdm_model *model;
        bench_init(&test, &options.inputs, false);
        test.layout.tensors[tdm_batch_layout_find(&test.layout, needed[i])].name = "else";
        ck_assert_ok(create(&test, &tdm_deepfm, &options.inputs, &model));
        ck_assert_fails(tdm_model_allocate(model, true), TDM_E_STATE, needed[i]);
        ck_assert_ok(tdm_model_allocate(model, false));
        tdm_model_destroy(model);
        bench_deinit(&test);
    }
}
END_TEST

START_TEST(calls_out_of_order_are_refused)
{
    bench test;
    tdm_model *model;
    char name[128];
    tdm_rig_options options = small_model();
    bench_init(&test, &options.inputs, true);
    ck_assert_ok(create(&test, &tdm_deepfm, &options.inputs, &model));
    ck_assert_fails(tdm_model_init(model), TDM_E_STATE, "not allocated");
    ck_assert_fails(tdm_model_forward(model, NULL, NULL, false, NULL), TDM_E_STATE,
                    "not allocated");
    ck_assert_fails(tdm_model_find_non_finite(model, name), TDM_E_STATE, "not allocated");
    ck_assert_ok(tdm_model_allocate(model, false));
    ck_assert_fails(tdm_model_forward(model, NULL, NULL, true, NULL), TDM_E_STATE, "predicting");
    tdm_model_destroy(model);
    bench_deinit(&test);

    tdm_rig rig;
    tdm_rig_init(&rig, &options);
    tdm_rig_rows rows = tdm_rig_random_rows(&options, BATCH, 1);
    tdm_rig_load(&rig, &rows);
    tdm_rig_rows_free(&rows);
    tdm_rig_run(&rig, 1, 0, false);
    ck_assert_fails(tdm_model_backward(rig.model, rig.batch, rig.device_scalars, false, NULL),
                    TDM_E_STATE, "forward");
    tdm_rig_run(&rig, 1, 0, true);
    ck_assert_fails(tdm_model_backward(rig.model, rig.batch, rig.device_scalars, false, NULL),
                    TDM_E_STATE, "forward");
    tdm_rig_deinit(&rig);
}
END_TEST

static tdm_status refuse_op(tdm_backend *backend, const tdm_relu_bwd_args *args, tdm_stream *stream)
{
    (void)backend, (void)args, (void)stream;
    return tdm_fail(TDM_E_DEVICE, "the op was refused");
}

START_TEST(failing_and_missing_ops_are_named)
{
    tdm_rig rig;
    tdm_rig_options options = small_model();
    tdm_rig_init(&rig, &options);
    tdm_rig_rows rows = tdm_rig_random_rows(&options, BATCH, 1);
    tdm_rig_load(&rig, &rows);
    tdm_rig_rows_free(&rows);
    const tdm_ops *ops = rig.backend->ops;
    tdm_ops broken = *ops;
    broken.relu_bwd = refuse_op;
    rig.backend->ops = &broken;
    ck_assert_ok(tdm_model_forward(rig.model, rig.batch, rig.device_scalars, true, NULL));
    ck_assert_fails(tdm_model_backward(rig.model, rig.batch, rig.device_scalars, false, NULL),
                    TDM_E_DEVICE, "backward pass of mlp.1: the op was refused");

    tdm_model *model;
    const tdm_model_setup setup = {.seed = 1};
    broken.fm_bwd = NULL;
    ck_assert_fails(tdm_model_create(&tdm_deepfm, &deepfm, &options.inputs, &rig.layout,
                                     rig.backend, &setup, &model),
                    TDM_E_UNSUPPORTED, "fm_bwd");
    rig.backend->ops = ops;
    tdm_rig_deinit(&rig);
}
END_TEST

START_TEST(no_memory_leaves_nothing_behind)
{
    bench test;
    tdm_rig_options options = small_model();
    static const tdm_model_type *const types[] = {&tdm_logistic_regression, &tdm_deepfm,
                                                  &tdm_dcn_v2};
    bench_init(&test, &options.inputs, false);
    for (int t = 0; t < 3; t++) {
        int64_t failures = 0;
        for (;;) {
            tdm_model *model;
            int64_t live = tdm_memory_stats_get().live_bytes;
            tdm_memory_fail_at(failures + 1, true);
            tdm_status status = create(&test, types[t], &options.inputs, &model);
            if (status == TDM_OK)
                status = tdm_model_allocate(model, true);
            if (status == TDM_OK)
                status = tdm_model_init(model);
            tdm_memory_fail_at(0, false);
            tdm_model_destroy(model);
            ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
            if (status == TDM_OK)
                break;
            ck_assert_int_eq(status, TDM_E_NOMEM);
            failures++;
        }
        ck_assert_int_gt(failures, 20);
    }
    bench_deinit(&test);
}
END_TEST

/* ---- numbers that are not finite ------------------------------------------------------------- */

static void check_found(tdm_rig *rig, const char *expected)
{
    char name[128];
    ck_assert_ok(tdm_model_find_non_finite(rig->model, name));
    ck_assert_str_eq(name, expected);
}

static void set_parameter(tdm_rig *rig, const char *name, int64_t element, float value)
{
    float *device = tdm_rig_values(rig, tdm_rig_parameter(rig, name)) + element;
    ck_assert_ok(rig->backend->type->copy_in(rig->backend, device, &value, sizeof value, NULL));
    ck_assert_ok(rig->backend->type->stream_sync(rig->backend, NULL));
}

static void load_and_run(tdm_rig *rig, float first_dense, double loss_scale)
{
    tdm_rig_rows rows = tdm_rig_random_rows(&rig->options, BATCH - 3, 1);
    float *dense = (float *)rows.dense;
    dense[0] = first_dense;
    for (int64_t i = (BATCH - 3) * 2; i < BATCH * 2; i++)
        dense[i] = NAN;
    tdm_rig_load(rig, &rows);
    tdm_rig_rows_free(&rows);
    rig->scalars = (tdm_step_scalars){.step = 1, .loss_scale = loss_scale};
    ck_assert_ok(rig->backend->type->copy_in(rig->backend, rig->device_scalars, &rig->scalars,
                                             sizeof rig->scalars, NULL));
    ck_assert_ok(tdm_model_forward(rig->model, rig->batch, rig->device_scalars, true, NULL));
    ck_assert_ok(tdm_model_backward(rig->model, rig->batch, rig->device_scalars, false, NULL));
    ck_assert_ok(rig->backend->type->stream_sync(rig->backend, NULL));
}

START_TEST(the_first_tensor_that_is_not_finite_is_named)
{
    tdm_rig rig;
    tdm_rig_options options = small_model();
    tdm_rig_init(&rig, &options);
    check_found(&rig, "");
    load_and_run(&rig, 0.5f, 1); /* rows behind the valid ones are not looked at */
    check_found(&rig, "");
    load_and_run(&rig, INFINITY, 1);
    check_found(&rig, "dense");
    load_and_run(&rig, 0.5f, 1e300);
    check_found(&rig, "logit output gradient");
    load_and_run(&rig, 0.5f, 1);
    check_found(&rig, "");

    /* Weights that are finite and yet too large. */
    for (int i = 0; i < 14; i++)
        set_parameter(&rig, "mlp.0.weight", i, 3e38f);
    set_parameter(&rig, "mlp.0.bias", 0, 3e38f);
    load_and_run(&rig, 3e38f, 1);
    check_found(&rig, "mlp.0 output");
    set_parameter(&rig, "embedding.c.weight", 4 * 8 + 3, NAN);
    check_found(&rig, "embedding.c.weight");
    ck_assert_ok(tdm_model_init(rig.model));
    load_and_run(&rig, 0.5f, 1);
    check_found(&rig, "");
    tdm_rig_deinit(&rig);
}
END_TEST

/* Ops that spoil what they compute. */

static const tdm_ops *true_ops;

static tdm_status spoil_bias(tdm_backend *backend, const tdm_relu_bwd_args *args,
                             tdm_stream *stream)
{
    ck_assert_ok(true_ops->relu_bwd(backend, args, stream));
    args->bias_gradient[2] = INFINITY;
    return TDM_OK;
}

static tdm_status spoil_table(tdm_backend *backend, const tdm_embedding_bwd_args *args,
                              tdm_stream *stream)
{
    ck_assert_ok(true_ops->embedding_bwd(backend, args, stream));
    if (args->field_count < 2)
        return TDM_OK;
    const tdm_embedding_field *field = &args->fields[1];
    int32_t count = args->distinct.counts[1];
    float *end = args->gradients + field->gradients + count * field->dim;
    end[0] = NAN; /* behind the last distinct id: nobody looks at it */
    end[-1] = -INFINITY;
    return TDM_OK;
}

START_TEST(gradients_that_are_not_finite_are_named)
{
    tdm_rig rig;
    tdm_rig_options options = small_model();
    tdm_rig_init(&rig, &options);
    load_and_run(&rig, 0.5f, 1);
    check_found(&rig, "");
    true_ops = rig.backend->ops;
    tdm_ops broken = *true_ops;
    rig.backend->ops = &broken;
    broken.embedding_bwd = spoil_table;
    check_found(&rig, "embedding.b.weight gradient");
    broken.relu_bwd = spoil_bias;
    check_found(&rig, "mlp.1.bias gradient");
    rig.backend->ops = true_ops;
    check_found(&rig, "");
    tdm_rig_deinit(&rig);
}
END_TEST

TDM_CHECK_MAIN(memory_is_what_was_planned, parameters_have_names_shapes_and_places,
               products_are_those_of_a_training_step, impossible_models_are_refused,
               batches_without_what_the_model_reads_are_refused,
               training_needs_labels_and_distinct_ids, calls_out_of_order_are_refused,
               failing_and_missing_ops_are_named, no_memory_leaves_nothing_behind,
               the_first_tensor_that_is_not_finite_is_named,
               gradients_that_are_not_finite_are_named)
