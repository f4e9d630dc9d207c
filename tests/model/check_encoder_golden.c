/* The encoder against PyTorch in double precision: tests/golden/make_encoder_golden.py. */
#include "tests/support/check_main.h"
#include "tests/support/encoder_rig.h"
#include "tests/support/golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const cases[] = {"bert_post", "megatron_pre", "modern",     "gelu_tanh",
                                    "classes",   "labels",       "regression", "token_classes"};
#define CASES ((int)(sizeof cases / sizeof cases[0]))

/* As metadata calls them, in the order of tdm_text_head. */
static const char *const heads[] = {"none",   "masked",     "fill",         "classes",
                                    "labels", "regression", "token_classes"};

typedef struct golden_case {
    const char *name;
    tdm_golden *golden;
    tdm_encoder_rig_options options;
} golden_case;

typedef enum golden_sizes {
    SEQUENCES,
    TOKENS,
    PREDICTIONS,
    VOCABULARY,
    MAX_LENGTH,
    CLASSES,
} golden_sizes;

static tdm_text_head find_head(const char *name)
{
    for (int i = 0; i < (int)(sizeof heads / sizeof heads[0]); i++) {
        if (strcmp(heads[i], name) == 0)
            return (tdm_text_head)i;
    }
    ck_abort_msg("no head %s", name);
}

static void bind_options(const char *text, tdm_bert_options *options)
{
    tdm_config *config;
    ck_assert_ok(tdm_config_parse(text, strlen(text), "golden.yaml", NULL, 0, &config));
    ck_assert_ok(tdm_config_bind(tdm_config_root(config), &tdm_bert_schema, options));
    tdm_config_free(config);
}

static void open_case(golden_case *test, const char *name)
{
    char path[64];
    int64_t count;
    *test = (golden_case){.name = name};
    snprintf(path, sizeof path, "encoder/%s.safetensors", name);
    test->golden = tdm_golden_open(path);
    const int64_t *sizes = tdm_golden_get(test->golden, "sizes", TDM_I64, &count);
    ck_assert_int_eq(count, CLASSES + 1);
    test->options = (tdm_encoder_rig_options){
        .inputs = {.vocabulary = sizes[VOCABULARY],
                   .max_length = sizes[MAX_LENGTH],
                   .head = find_head(tdm_golden_text(test->golden, "head")),
                   .classes = sizes[CLASSES]},
        .setup = {.seed = 1, .compute = TDM_F32},
        .sequences = sizes[SEQUENCES],
        .tokens = sizes[TOKENS],
        .predictions = sizes[PREDICTIONS],
        .pairs = tdm_golden_has(test->golden, "batch.pair_labels"),
        .threads = 2,
    };
    bind_options(tdm_golden_text(test->golden, "model"), &test->options.model);
}

static void close_case(golden_case *test)
{
    tdm_config_unbind(&tdm_bert_schema, &test->options.model);
    tdm_golden_close(test->golden);
}

static const void *get(const golden_case *test, const char *prefix, const char *name,
                       tdm_dtype dtype, int64_t *elements)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", prefix, name);
    return tdm_golden_get(test->golden, full, dtype, elements);
}

/* Batch `index` of the file, as it is there. */
static void load_batch(const golden_case *test, tdm_encoder_rig *rig, int64_t index)
{
    for (int i = 0; i < rig->rig.layout.count; i++) {
        const tdm_batch_tensor *tensor = &rig->rig.layout.tensors[i];
        /* Nothing is dropped. */
        if (i == TDM_BATCH_OCCURRENCE)
            continue;
        const int64_t elements = tdm_shape_elements(&tensor->shape);
        const size_t bytes = (size_t)elements * tdm_dtype_size(tensor->dtype);
        int64_t count;
        const unsigned char *values = get(test, "batch", tensor->name, tensor->dtype, &count);
        ck_assert_int_ge(count, (index + 1) * elements);
        memcpy(rig->rig.host_batch + tensor->offset, values + (size_t)index * bytes, bytes);
    }
    tdm_encoder_rig_put(rig);
}

static void start(const golden_case *test, const tdm_encoder_rig_options *options,
                  tdm_encoder_rig *rig)
{
    tdm_encoder_rig_init(rig, options);
    for (int i = 0; i < tdm_model_parameter_count(rig->rig.model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(rig->rig.model, i);
        int64_t count;
        const float *values = get(test, "init", parameter->name, TDM_F32, &count);
        ck_assert_msg(count == tdm_shape_elements(&parameter->shape), "%s, %s: of another shape",
                      test->name, parameter->name);
        tdm_encoder_rig_set(rig, parameter, values);
    }
    load_batch(test, rig, 0);
}

static void check_close(const golden_case *test, const char *prefix, const char *name,
                        const double *values, int64_t count, double tolerance)
{
    char what[160];
    int64_t elements;
    snprintf(what, sizeof what, "%s%s%s", prefix, name[0] == 0 ? "" : ".", name);
    const float *expected = tdm_golden_get(test->golden, what, TDM_F32, &elements);
    ck_assert_int_eq(count, elements);
    double *reference = calloc((size_t)elements, sizeof *reference);
    ck_assert_ptr_nonnull(reference);
    for (int64_t i = 0; i < elements; i++)
        reference[i] = (double)expected[i];
    snprintf(what, sizeof what, "%s: %s%s%s", test->name, prefix, name[0] == 0 ? "" : ".", name);
    tdm_golden_close_to(what, values, reference, count, tolerance);
    free(reference);
}

static void check_losses(const golden_case *test, const tdm_encoder_rig *rig, int64_t step,
                         double tolerance)
{
    int64_t count;
    const tdm_dtype compute = rig->options.setup.compute;
    const double *losses = tdm_golden_get(test->golden, "losses", TDM_F64, &count);
    ck_assert_int_ge(count, (step + 1) * TDM_LOSSES * 3);
    for (int i = 0; i < TDM_LOSSES; i++) {
        const double *expected = losses + (step * TDM_LOSSES + i) * 3;
        const tdm_loss_scalars *found = &rig->rig.scalars.losses[i];
        ck_assert_msg(found->weight_sum == expected[0] &&
                          fabs(found->loss_sum - expected[1]) <= tolerance * expected[1],
                      "%s, step %d, loss %d: %.9g of %.9g, not %.9g of %.9g", test->name,
                      (int)step + 1, i, found->loss_sum, found->weight_sum, expected[1],
                      expected[0]);
        if (compute == TDM_F32)
            ck_assert_double_eq_tol(found->correct_sum, expected[2], 1e-6);
    }
}

static void check_gradients(const golden_case *test, tdm_encoder_rig *rig, double tolerance)
{
    int expected = 0;
    for (int i = 0; i < tdm_model_parameter_count(rig->rig.model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(rig->rig.model, i);
        double *gradients = tdm_rig_read_gradients(&rig->rig, parameter);
        check_close(test, "grad", parameter->name, gradients, tdm_shape_elements(&parameter->shape),
                    tolerance);
        free(gradients);
        expected++;
    }
    ck_assert_int_eq(expected, tdm_golden_count(test->golden, "grad."));
}

static void check_step(const golden_case *test, const tdm_encoder_rig_options *options,
                       double loss_tolerance, double gradient_tolerance)
{
    tdm_encoder_rig rig;
    start(test, options, &rig);
    tdm_encoder_rig_run(&rig, false);
    check_losses(test, &rig, 0, loss_tolerance);
    check_gradients(test, &rig, gradient_tolerance);
    tdm_encoder_rig_deinit(&rig);
}

static void check_steps(tdm_dtype compute, bool deferred, double loss_tolerance,
                        double gradient_tolerance)
{
    for (int i = 0; i < CASES; i++) {
        golden_case test;
        open_case(&test, cases[i]);
        tdm_encoder_rig_options options = test.options;
        options.setup.compute = compute;
        options.deferred = deferred;
        check_step(&test, &options, loss_tolerance, gradient_tolerance);
        close_case(&test);
    }
}

START_TEST(losses_and_gradients_are_pytorchs)
{
    check_steps(TDM_F32, false, 1e-6, 1e-5);
}
END_TEST

START_TEST(so_they_are_when_every_op_is_put_off)
{
    check_steps(TDM_F32, true, 1e-6, 1e-5);
}
END_TEST

static bool has_bf16(void)
{
    float numbers[4] = {1, 2, 3, 4};
    float product[4];
    tdm_pool *pool;
    tdm_backend *backend;
    const tdm_matrix factor = {.data = numbers, .rows = 2, .columns = 2, .stride = 2};
    const tdm_matrix result = {.data = product, .rows = 2, .columns = 2, .stride = 2};
    const tdm_gemm_args args = {.a = factor, .b = factor, .c = result, .compute = TDM_BF16};
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
    tdm_status status = backend->ops->gemm(backend, &args, NULL);
    ck_assert(status == TDM_OK || status == TDM_E_UNSUPPORTED);
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
    return status == TDM_OK;
}

/* Rounding the factors alone, all else in double precision, moves gradients by up to 3.3e-2. */
START_TEST(in_bf16_they_are_near)
{
    if (has_bf16())
        check_steps(TDM_BF16, false, 1e-2, 4e-2);
    else
        tdm_test_skip("this CPU has no products in bf16");
}
END_TEST

/* An output of the model with `head` in place of its own, which has no labels. */
static void check_output(const golden_case *test, tdm_text_head head, const char *output,
                         const char *name)
{
    tdm_encoder_rig rig;
    tdm_encoder_rig_options options = test->options;
    int64_t columns, count;
    const float *expected = tdm_golden_get(test->golden, name, TDM_F32, &count);
    options.inputs.head = head;
    options.pairs = false;
    options.inference = true;
    start(test, &options, &rig);
    tdm_encoder_rig_forward(&rig, false);
    const int64_t width = head == TDM_HEAD_NONE   ? options.model.hidden
                          : head == TDM_HEAD_FILL ? options.inputs.vocabulary
                                                  : options.inputs.classes;
    double *values = tdm_encoder_rig_output(&rig, output, count / width, &columns);
    ck_assert_int_eq(columns, width);
    double *reference = calloc((size_t)count, sizeof *reference);
    ck_assert_ptr_nonnull(reference);
    for (int64_t i = 0; i < count; i++) {
        reference[i] = (double)expected[i];
        if (head == TDM_HEAD_LABELS)
            reference[i] = 1 / (1 + exp(-reference[i]));
    }
    tdm_golden_close_to(test->name, values, reference, count, 2e-6);
    free(reference);
    free(values);
    tdm_encoder_rig_deinit(&rig);
}

START_TEST(hidden_states_and_outputs_are_pytorchs)
{
    for (int i = 0; i < CASES; i++) {
        golden_case test;
        open_case(&test, cases[i]);
        const tdm_text_head head = test.options.inputs.head;
        check_output(&test, TDM_HEAD_NONE, "hidden", "hidden");
        check_output(&test, head == TDM_HEAD_MASKED ? TDM_HEAD_FILL : head,
                     head == TDM_HEAD_LABELS ? "probabilities" : "logits", "logits");
        close_case(&test);
    }
}
END_TEST

START_TEST(fifty_steps_of_adamw_are_pytorchs)
{
    golden_case test;
    tdm_encoder_rig rig;
    int64_t steps;
    open_case(&test, "curve");
    start(&test, &test.options, &rig);
    const double *rates = tdm_golden_get(test.golden, "learning_rates", TDM_F64, &steps);
    rig.clip_norm = 1;
    for (int64_t step = 0; step < steps; step++) {
        load_batch(&test, &rig, step);
        rig.learning_rate = rates[step];
        tdm_encoder_rig_run(&rig, false);
        check_losses(&test, &rig, step, 1e-4);
        tdm_encoder_rig_update(&rig, 0.01);
    }
    tdm_encoder_rig_deinit(&rig);
    close_case(&test);
}
END_TEST

TDM_CHECK_MAIN(losses_and_gradients_are_pytorchs, so_they_are_when_every_op_is_put_off,
               in_bf16_they_are_near, hidden_states_and_outputs_are_pytorchs,
               fifty_steps_of_adamw_are_pytorchs)
