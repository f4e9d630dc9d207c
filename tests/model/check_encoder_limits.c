/* Encoders at their limits: no memory, too many random numbers, and numbers that are not finite. */
#include "tests/support/check_main.h"
#include "tests/support/encoder_rig.h"

#include "core/memory.h"

#include <math.h>

enum { SEQUENCES = 3, LENGTH = 40, VOCABULARY = 61 };

static tdm_encoder_rig_options small_options(void)
{
    return (tdm_encoder_rig_options){
        .model = {.layers = 2,
                  .hidden = 32,
                  .heads = 4,
                  .dropout = 0.1,
                  .attention_dropout = -1,
                  .norm = TDM_NORM_PRE,
                  .norm_eps = 1e-12,
                  .positions = TDM_POSITION_ROTARY,
                  .rotary_theta = 10000,
                  .types = true,
                  .bias = true,
                  .initializer = 0.2},
        .inputs = {.vocabulary = VOCABULARY, .max_length = LENGTH, .head = TDM_HEAD_MASKED},
        .setup = {.seed = 7, .compute = TDM_F32},
        .sequences = SEQUENCES,
        .tokens = SEQUENCES * LENGTH,
        .predictions = SEQUENCES * LENGTH,
        .threads = 2,
    };
}

static tdm_status create(const tdm_encoder_rig_options *options, const tdm_batch_layout *layout,
                         tdm_backend *backend, tdm_model **out)
{
    return tdm_model_create(&tdm_bert, &options->model, &options->inputs, layout, backend,
                            &options->setup, out);
}

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(no_memory_for_a_plan_leaves_nothing_behind)
{
    tdm_pool *pool;
    tdm_backend *backend;
    tdm_encoder_rig_options options = small_options();
    tdm_batch_layout layout = tdm_encoder_rig_layout(&options);
    options.setup.recompute = true;
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status != TDM_OK; n++) {
        tdm_model *model;
        int64_t live = tdm_memory_stats_get().live_bytes;
        tdm_memory_fail_at(n, n % 2 == 0);
        status = create(&options, &layout, backend, &model);
        tdm_memory_fail_at(0, false);
        tdm_model_destroy(model);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
        ck_assert(status == TDM_OK || status == TDM_E_NOMEM);
    }
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}
END_TEST

/* ---- numbers that are not finite ------------------------------------------------------------- */

static void load(tdm_encoder_rig *rig)
{
    tdm_rig_sequence sequences[SEQUENCES];
    tdm_encoder_rig_sequences(&rig->options, 5, 0, SEQUENCES, sequences);
    tdm_encoder_rig_load(rig, sequences, SEQUENCES);
}

static void set_all(tdm_encoder_rig *rig, const char *name, float value)
{
    const tdm_parameter *parameter = tdm_rig_parameter(&rig->rig, name);
    int64_t count = tdm_shape_elements(&parameter->shape);
    float *values = calloc((size_t)count, sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = value;
    tdm_encoder_rig_set(rig, parameter, values);
    free(values);
}

static void check_found(tdm_encoder_rig *rig, const char *expected)
{
    char name[128];
    ck_assert_ok(tdm_model_find_non_finite(rig->rig.model, name));
    ck_assert_str_eq(name, expected);
}

/* What only training computes is not looked at where it was not computed. */
START_TEST(values_of_training_say_nothing_of_a_prediction)
{
    tdm_encoder_rig rig;
    tdm_encoder_rig_options options = small_options();
    tdm_encoder_rig_init(&rig, &options);
    load(&rig);
    set_all(&rig, "layer.1.mlp.input.bias", INFINITY);
    tdm_encoder_rig_run(&rig, false);
    check_found(&rig, "layer.1.mlp.input.bias");
    set_all(&rig, "layer.1.mlp.input.bias", 0);
    tdm_encoder_rig_forward(&rig, false);
    check_found(&rig, "");
    tdm_encoder_rig_deinit(&rig);

    options.inputs.head = TDM_HEAD_FILL;
    options.inference = true;
    tdm_encoder_rig_init(&rig, &options);
    load(&rig);
    tdm_encoder_rig_forward(&rig, false);
    check_found(&rig, "");
    set_all(&rig, "layer.1.mlp.norm.weight", 1e30f);
    set_all(&rig, "layer.1.mlp.input.weight", 1e10f);
    tdm_encoder_rig_forward(&rig, false);
    check_found(&rig, "layer.1.mlp.input output");
    tdm_encoder_rig_deinit(&rig);
}
END_TEST

TDM_CHECK_MAIN(no_memory_for_a_plan_leaves_nothing_behind,
               values_of_training_say_nothing_of_a_prediction)
