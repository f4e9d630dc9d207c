/* Initial values. */
#include "tests/support/check_main.h"
#include "tests/support/ctr_rig.h"

#include <math.h>

static int64_t units[] = {16, 5};
static const tdm_deepfm_options deepfm = {.mlp = {.units = {units, 2}}, .embedding_init = 0.01};

/* More than one piece of staging. */
static const tdm_model_field large_fields[] = {{"a", 1200004, 2}, {"b", 300, 2}};

static tdm_rig_options large_model(uint64_t seed, int threads)
{
    return (tdm_rig_options){
        .type = &tdm_deepfm,
        .options = &deepfm,
        .inputs = {.field_count = 2, .fields = large_fields},
        .batch_size = 8,
        .seed = seed,
        .threads = threads,
    };
}

static float *initial_values(uint64_t seed, int threads, bool deferred, const char *name,
                             int64_t *count)
{
    tdm_rig rig;
    tdm_rig_options options = large_model(seed, threads);
    options.deferred = deferred;
    tdm_rig_init(&rig, &options);
    const tdm_parameter *parameter = tdm_rig_parameter(&rig, name);
    *count = tdm_shape_elements(&parameter->shape);
    float *values = calloc((size_t)*count, sizeof *values);
    ck_assert_ptr_nonnull(values);
    tdm_rig_copy_out(&rig, values, tdm_rig_values(&rig, parameter),
                     (size_t)*count * sizeof *values);
    tdm_rig_deinit(&rig);
    return values;
}

START_TEST(initial_values_depend_on_seed_and_name_alone)
{
    int64_t count;
    float *values = initial_values(5, 1, false, "embedding.a.weight", &count);
    float *threads = initial_values(5, 5, false, "embedding.a.weight", &count);
    float *deferred = initial_values(5, 2, true, "embedding.a.weight", &count);
    float *other_seed = initial_values(6, 1, false, "embedding.a.weight", &count);
    ck_assert_mem_eq(values, threads, (size_t)count * sizeof *values);
    ck_assert_mem_eq(values, deferred, (size_t)count * sizeof *values);
    ck_assert_mem_ne(values, other_seed, (size_t)count * sizeof *values);

    /* Any element, by the definition. */
    tdm_philox_key key =
        tdm_philox_make_key(5, TDM_PURPOSE_INIT, tdm_layer_word("embedding.a.weight"));
    const float bound = (float)(0.01 * sqrt(3.0));
    static const int64_t rows[] = {1, 2, 77777, 1048575, 1048576, 1048577, 1200003};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint32_t column = 0; column < 2; column++) {
            float u = tdm_uniform(tdm_random(key, (uint64_t)rows[i], 0, column));
            ck_assert(values[rows[i] * 2 + column] == bound * (2 * u - 1));
        }
    }
    free(values);
    free(threads);
    free(deferred);
    free(other_seed);
}
END_TEST

START_TEST(initial_values_have_their_distributions)
{
    int64_t count;
    float *table = initial_values(5, 1, false, "embedding.a.weight", &count);
    double squares = 0, sum = 0;
    for (int64_t i = 2; i < count; i++) {
        sum += (double)table[i];
        squares += (double)table[i] * (double)table[i];
    }
    ck_assert(table[0] == 0 && table[1] == 0);
    ck_assert_double_eq_tol(sqrt(squares / (double)count), 0.01, 1e-4);
    ck_assert_double_eq_tol(sum / (double)count, 0, 1e-4);
    free(table);

    float *weight = initial_values(5, 1, false, "mlp.0.weight", &count);
    const double bound = sqrt(6.0 / (4 + 16));
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)weight[i]));
    ck_assert_double_le(largest, bound);
    ck_assert_double_gt(largest, 0.8 * bound);
    free(weight);

    static const char *const zeros[] = {"mlp.0.bias", "first_order.b.weight"};
    for (int z = 0; z < 2; z++) {
        float *values = initial_values(5, 1, false, zeros[z], &count);
        for (int64_t i = 0; i < count; i++)
            ck_assert(values[i] == 0);
        free(values);
    }
}
END_TEST

START_TEST(init_starts_over)
{
    tdm_rig rig;
    tdm_rig_options options = large_model(1, 2);
    tdm_rig_init(&rig, &options);
    const tdm_parameter *parameter = tdm_rig_parameter(&rig, "mlp.1.bias");
    const float one = 1;
    float value;
    ck_assert_ok(rig.backend->type->copy_in(rig.backend, tdm_rig_values(&rig, parameter), &one,
                                            sizeof one, NULL));
    ck_assert_ok(tdm_model_init(rig.model));
    tdm_rig_copy_out(&rig, &value, tdm_rig_values(&rig, parameter), sizeof value);
    ck_assert(value == 0);
    tdm_rig_deinit(&rig);
}
END_TEST

TDM_CHECK_MAIN(initial_values_depend_on_seed_and_name_alone,
               initial_values_have_their_distributions, init_starts_over)
