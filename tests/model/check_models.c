/* The CTR models against PyTorch in double precision: tests/golden/make_ctr_golden.py. */
#include "tests/support/check_main.h"
#include "tests/support/ctr_rig.h"
#include "tests/support/golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BATCH      37
#define DENSE      3
#define MAX_FIELDS 8

static int64_t mlp_units[] = {16, 8};
static const tdm_deepfm_options deepfm_options = {.mlp = {.units = {mlp_units, 2}}};
static const tdm_dcn_v2_options dcn_v2_options = {.crosses = 2, .mlp = {.units = {mlp_units, 2}}};

typedef struct golden_case {
    const tdm_model_type *type;
    const void *options;
} golden_case;

static const golden_case cases[] = {
    {&tdm_logistic_regression, NULL},
    {&tdm_deepfm, &deepfm_options},
    {&tdm_dcn_v2, &dcn_v2_options},
};
#define CASES ((int)(sizeof cases / sizeof cases[0]))

typedef struct golden_rig {
    tdm_golden *golden;
    char field_names[MAX_FIELDS][16];
    tdm_model_field fields[MAX_FIELDS];
    tdm_rig rig;
} golden_rig;

static const void *get(const golden_rig *test, const char *prefix, const char *name,
                       tdm_dtype dtype, int64_t *elements)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", prefix, name);
    return tdm_golden_get(test->golden, full, dtype, elements);
}

static void set_initial_weights(golden_rig *test)
{
    tdm_backend *backend = test->rig.backend;
    for (int i = 0; i < tdm_model_parameter_count(test->rig.model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(test->rig.model, i);
        int64_t count;
        const float *values = get(test, "init", parameter->name, TDM_F32, &count);
        ck_assert_int_eq(count, tdm_shape_elements(&parameter->shape));
        ck_assert_ok(backend->type->copy_in(backend, tdm_rig_values(&test->rig, parameter), values,
                                            (size_t)count * sizeof(float), NULL));
        ck_assert_ok(backend->type->stream_sync(backend, NULL));
    }
}

static void open_case(golden_rig *test, const golden_case *model, bool deferred)
{
    char path[128];
    int64_t fields;
    memset(test, 0, sizeof *test);
    snprintf(path, sizeof path, "ctr/%s.safetensors", model->type->name);
    test->golden = tdm_golden_open(path);
    const int64_t *rows = get(test, "fields", "rows", TDM_I64, &fields);
    const int64_t *dims = get(test, "fields", "dims", TDM_I64, &fields);
    ck_assert_int_le(fields, MAX_FIELDS);
    for (int i = 0; i < fields; i++) {
        snprintf(test->field_names[i], sizeof test->field_names[i], "C%d", i + 1);
        test->fields[i] = (tdm_model_field){
            .name = test->field_names[i], .table_rows = rows[i], .embedding_dim = (int32_t)dims[i]};
    }
    const tdm_rig_options options = {
        .type = model->type,
        .options = model->options,
        .inputs = {.field_count = (int)fields, .fields = test->fields, .dense_count = DENSE},
        .batch_size = BATCH,
        .seed = 1,
        .threads = 2,
        .deferred = deferred,
    };
    tdm_rig_init(&test->rig, &options);
    set_initial_weights(test);
}

static void close_case(golden_rig *test)
{
    tdm_rig_deinit(&test->rig);
    tdm_golden_close(test->golden);
}

static int64_t load_batch(golden_rig *test, int64_t index)
{
    int64_t count;
    int64_t fields = test->rig.options.inputs.field_count;
    const int64_t *rows = get(test, "batch", "rows", TDM_I64, &count);
    ck_assert_int_lt(index, count);
    const uint32_t *ids = get(test, "batch", "ids", TDM_U32, &count);
    const float *dense = get(test, "batch", "dense", TDM_F32, &count);
    const float *label = get(test, "batch", "label", TDM_F32, &count);
    const float *weight = get(test, "batch", "weight", TDM_F32, &count);
    const tdm_rig_rows batch = {
        .rows = rows[index],
        .ids = ids + index * fields * BATCH,
        .dense = dense + index * BATCH * DENSE,
        .label = label + index * BATCH,
        .weight = weight + index * BATCH,
    };
    tdm_rig_load(&test->rig, &batch);
    return rows[index];
}

/* The logits themselves stay inside the model; their probabilities come out. */
static void check_probabilities(golden_rig *test, int64_t rows)
{
    int64_t count;
    float probabilities[BATCH];
    double expected[BATCH], found[BATCH];
    const double *logits = tdm_golden_get(test->golden, "logits", TDM_F64, &count);
    ck_assert_int_eq(count, rows);
    tdm_rig_probabilities(&test->rig, probabilities, BATCH);
    for (int64_t r = 0; r < rows; r++) {
        expected[r] = 1 / (1 + exp(-logits[r]));
        found[r] = (double)probabilities[r];
    }
    tdm_golden_close_to("probabilities", found, expected, rows, 1e-6);
}

static void check_gradients(golden_rig *test)
{
    for (int i = 0; i < tdm_model_parameter_count(test->rig.model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(test->rig.model, i);
        int64_t count;
        const double *reference = get(test, "grad", parameter->name, TDM_F64, &count);
        double *gradients = tdm_rig_read_gradients(&test->rig, parameter);
        tdm_golden_close_to(parameter->name, gradients, reference, count, 1e-5);
        free(gradients);
    }
}

static void check_first_batch(int index, bool deferred)
{
    golden_rig test;
    int64_t count;
    open_case(&test, &cases[index], deferred);
    int64_t rows = load_batch(&test, 0);
    double loss = tdm_rig_run(&test.rig, 1, 0, true);
    double expected = *(const double *)tdm_golden_get(test.golden, "loss", TDM_F64, &count);
    ck_assert_double_eq_tol(loss, expected, 1e-6 * expected);
    check_probabilities(&test, rows);
    check_gradients(&test);
    close_case(&test);
}

START_TEST(loss_predictions_and_gradients_are_pytorchs)
{
    for (int i = 0; i < CASES; i++)
        check_first_batch(i, false);
}
END_TEST

START_TEST(so_they_are_when_every_op_is_put_off)
{
    for (int i = 0; i < CASES; i++)
        check_first_batch(i, true);
}
END_TEST

static void check_training(int index)
{
    golden_rig test;
    int64_t steps, count;
    open_case(&test, &cases[index], false);
    const double *curve = tdm_golden_get(test.golden, "train.loss", TDM_F64, &steps);
    for (int64_t step = 0; step < steps; step++) {
        load_batch(&test, step);
        double loss = tdm_rig_run(&test.rig, step + 1, 0, true);
        ck_assert_msg(fabs(loss - curve[step]) <= 2e-5 * curve[step],
                      "%s, step %d: loss %.9g, not %.9g", cases[index].type->name, (int)step + 1,
                      loss, curve[step]);
        tdm_rig_update(&test.rig);
    }
    for (int i = 0; i < tdm_model_parameter_count(test.rig.model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(test.rig.model, i);
        const double *reference = get(&test, "final", parameter->name, TDM_F64, &count);
        double *values = tdm_rig_read_values(&test.rig, parameter);
        tdm_golden_close_to(parameter->name, values, reference, count, 1e-4);
        free(values);
    }
    close_case(&test);
}

START_TEST(ten_steps_of_adam_are_pytorchs)
{
    for (int i = 0; i < CASES; i++)
        check_training(i);
}
END_TEST

TDM_CHECK_MAIN(loss_predictions_and_gradients_are_pytorchs, so_they_are_when_every_op_is_put_off,
               ten_steps_of_adam_are_pytorchs)
