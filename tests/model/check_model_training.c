/* What holds of every model: it learns, its gradients are those of its loss, its numbers repeat. */
#include "tests/support/check_main.h"
#include "tests/support/ctr_rig.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

#define BATCH 64

static const tdm_model_field fields[] = {
    {"a", 1004, 6}, {"b", 5, 6}, {"c", 104, 6}, {"d", 50004, 6}, {"e", 24, 6}};
static int64_t units[] = {48, 20};

static const tdm_deepfm_options deepfm = {.mlp = {.units = {units, 2}}, .embedding_init = 0.1};
static const tdm_deepfm_options deepfm_dropout = {.mlp = {.units = {units, 2}, .dropout = 0.3},
                                                  .embedding_init = 0.1};
static const tdm_dcn_v2_options dcn_v2 = {
    .crosses = 3, .mlp = {.units = {units, 2}}, .embedding_init = 0.1};
static const tdm_dcn_v2_options dcn_v2_one_layer = {
    .crosses = 1, .mlp = {.units = {units, 1}, .dropout = 0.5}, .embedding_init = 0.1};
static const tdm_dcn_v2_options dcn_v2_no_layer = {.crosses = 1, .embedding_init = 0.1};

/* Every model, and the shapes of inputs that it allows. */
static const struct {
    const tdm_model_type *type;
    const void *options;
    int field_count, dense_count;
} variants[] = {
    {&tdm_logistic_regression, NULL, 5, 4}, {&tdm_deepfm, &deepfm, 5, 4},
    {&tdm_deepfm, &deepfm_dropout, 5, 4},   {&tdm_dcn_v2, &dcn_v2, 5, 4},
    {&tdm_logistic_regression, NULL, 0, 4}, {&tdm_logistic_regression, NULL, 5, 0},
    {&tdm_deepfm, &deepfm, 5, 0},           {&tdm_dcn_v2, &dcn_v2, 0, 4},
    {&tdm_dcn_v2, &dcn_v2_no_layer, 2, 1},
};
#define VARIANTS ((int)(sizeof variants / sizeof variants[0]))
enum { LOGISTIC_REGRESSION, DEEPFM, DEEPFM_DROPOUT, DCN_V2, MAIN_VARIANTS, DEEPFM_NO_DENSE = 6 };

static tdm_rig_options variant(int index)
{
    return (tdm_rig_options){
        .type = variants[index].type,
        .options = variants[index].options,
        .inputs = {.field_count = variants[index].field_count,
                   .fields = fields,
                   .dense_count = variants[index].dense_count},
        .batch_size = BATCH,
        .seed = 7,
        .threads = 2,
    };
}

static void load_random(tdm_rig *rig, int64_t rows, uint64_t seed)
{
    tdm_rig_rows random = tdm_rig_random_rows(&rig->options, rows, seed);
    tdm_rig_load(rig, &random);
    tdm_rig_rows_free(&random);
}

static void start(tdm_rig *rig, const tdm_rig_options *options, int64_t rows, uint64_t seed)
{
    tdm_rig_init(rig, options);
    load_random(rig, rows, seed);
}

static void train(tdm_rig *rig, int step)
{
    tdm_rig_run(rig, step, 0, true);
    tdm_rig_update(rig);
}

static void poke(tdm_rig *rig, float *device, float value)
{
    ck_assert_ok(rig->backend->type->copy_in(rig->backend, device, &value, sizeof value, NULL));
    ck_assert_ok(rig->backend->type->stream_sync(rig->backend, NULL));
}

static double loss_with(tdm_rig *rig, float *device, double value)
{
    poke(rig, device, (float)value);
    return tdm_rig_run(rig, 1, 0, true);
}

/* The element whose gradient is largest, by differences to either side: where a ReLU has its kink
 * on one of them, the other still tells. */
static void check_largest_gradient(tdm_rig *rig, const tdm_parameter *parameter)
{
    const double h = 2e-4;
    int64_t largest = 0;
    double loss = tdm_rig_run(rig, 1, 0, true);
    double *gradients = tdm_rig_read_gradients(rig, parameter);
    double *values = tdm_rig_read_values(rig, parameter);
    for (int64_t i = 1; i < tdm_shape_elements(&parameter->shape); i++) {
        if (fabs(gradients[i]) > fabs(gradients[largest]))
            largest = i;
    }
    float *device = tdm_rig_values(rig, parameter) + largest;
    double found = gradients[largest];
    double above = (loss_with(rig, device, values[largest] + h) - loss) / h;
    double below = (loss - loss_with(rig, device, values[largest] - h)) / h;
    poke(rig, device, (float)values[largest]);
    double nearest = fabs(found - above) < fabs(found - below) ? above : below;
    ck_assert_msg(found != 0, "%s: no gradient", parameter->name);
    ck_assert_msg(fabs(found - nearest) <= 1e-2 * fabs(found) + 1e-4,
                  "%s: gradient %.6g, differences %.6g and %.6g", parameter->name, found, above,
                  below);
    free(gradients);
    free(values);
}

START_TEST(gradients_are_those_of_the_loss)
{
    for (int v = 0; v < VARIANTS; v++) {
        tdm_rig rig;
        tdm_rig_options options = variant(v);
        start(&rig, &options, BATCH - 3, 100);
        for (int step = 1; step <= 5; step++)
            train(&rig, step);
        for (int i = 0; i < tdm_model_parameter_count(rig.model); i++)
            check_largest_gradient(&rig, tdm_model_parameter(rig.model, i));
        tdm_rig_deinit(&rig);
    }
}
END_TEST

START_TEST(every_model_learns_32_rows_by_heart)
{
    static const int learners[] = {LOGISTIC_REGRESSION, DEEPFM, DCN_V2, DEEPFM_NO_DENSE};
    for (size_t i = 0; i < sizeof learners / sizeof learners[0]; i++) {
        tdm_rig rig;
        tdm_rig_options options = variant(learners[i]);
        start(&rig, &options, 32, 5);
        double loss = 1;
        int step = 0;
        while (step < 2000 && loss >= 0.01) {
            loss = tdm_rig_run(&rig, ++step, 0, true);
            tdm_rig_update(&rig);
        }
        ck_assert_msg(loss < 0.01, "%s: loss %g after %d steps", options.type->name, loss, step);
        tdm_rig_deinit(&rig);
    }
}
END_TEST

/* The weights and probabilities after three steps on batches of many tiles, in new memory. */
static float *train_three_steps(int index, int threads, bool deferred, size_t *count)
{
    enum { ROWS = 1500, CHECKED = ROWS - 400 };
    tdm_rig rig;
    tdm_rig_options options = variant(index);
    options.batch_size = ROWS;
    options.threads = threads;
    options.deferred = deferred;
    tdm_rig_init(&rig, &options);
    for (int step = 1; step <= 3; step++) {
        load_random(&rig, ROWS - 200 * (step - 1), (uint64_t)step);
        train(&rig, step);
    }
    tdm_model_memory memory = tdm_model_memory_get(rig.model);
    size_t dense = (size_t)memory.dense_elements, sparse = (size_t)memory.sparse_elements;
    *count = dense + sparse + CHECKED;
    float *out = calloc(*count, sizeof *out);
    ck_assert_ptr_nonnull(out);
    tdm_rig_copy_out(&rig, out, tdm_model_dense_values(rig.model), dense * sizeof *out);
    tdm_rig_copy_out(&rig, out + dense, tdm_model_sparse_values(rig.model), sparse * sizeof *out);
    tdm_rig_probabilities(&rig, out + dense + sparse, CHECKED);
    tdm_rig_deinit(&rig);
    return out;
}

START_TEST(any_number_of_threads_gives_the_same_bits)
{
    static const struct {
        int threads;
        bool deferred;
    } others[] = {{2, false}, {5, false}, {2, true}};
    for (int v = 0; v < MAIN_VARIANTS; v++) {
        size_t count;
        float *one = train_three_steps(v, 1, false, &count);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            float *other = train_three_steps(v, others[i].threads, others[i].deferred, &count);
            ck_assert_msg(memcmp(one, other, count * sizeof *one) == 0, "variant %d, %d threads%s",
                          v, others[i].threads, others[i].deferred ? ", deferred" : "");
            free(other);
        }
        free(one);
    }
}
END_TEST

/* Whatever ran in between: gradients start at zero and nothing is left over. */
START_TEST(a_second_pass_over_a_batch_gives_the_same_bits)
{
    static const char *const names[] = {"mlp.0.weight", "embedding.a.weight",
                                        "first_order.e.weight", "linear.weight"};
    tdm_rig rig;
    tdm_rig_options options = variant(DEEPFM);
    start(&rig, &options, BATCH, 3);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const tdm_parameter *parameter = tdm_rig_parameter(&rig, names[i]);
        load_random(&rig, BATCH - 7, 3);
        tdm_rig_run(&rig, 1, 0, true);
        double *first = tdm_rig_read_gradients(&rig, parameter);
        load_random(&rig, BATCH, 4);
        tdm_rig_run(&rig, 1, 0, true);
        load_random(&rig, BATCH - 7, 3);
        tdm_rig_run(&rig, 1, 0, true);
        double *second = tdm_rig_read_gradients(&rig, parameter);
        ck_assert_mem_eq(first, second,
                         (size_t)tdm_shape_elements(&parameter->shape) * sizeof *first);
        free(first);
        free(second);
    }
    tdm_rig_deinit(&rig);
}
END_TEST

START_TEST(dropout_repeats_within_an_epoch_and_changes_with_it)
{
    tdm_rig rig;
    tdm_rig_options options = variant(DEEPFM_DROPOUT);
    start(&rig, &options, BATCH, 3);
    double loss = tdm_rig_run(&rig, 1, 4, true);
    double evaluated = tdm_rig_run(&rig, 1, 4, false);
    ck_assert(evaluated != loss);
    ck_assert(tdm_rig_run(&rig, 2, 4, true) == loss);
    ck_assert(tdm_rig_run(&rig, 2, 5, true) != loss);
    ck_assert(tdm_rig_run(&rig, 2, 5, false) == evaluated);
    tdm_rig_deinit(&rig);

    /* Evaluation is the model without dropout. */
    options = variant(DEEPFM);
    start(&rig, &options, BATCH, 3);
    ck_assert(tdm_rig_run(&rig, 1, 4, true) == evaluated);
    tdm_rig_deinit(&rig);
}
END_TEST

static double first_logit(tdm_rig *rig)
{
    float probability;
    tdm_rig_probabilities(rig, &probability, 1);
    return log((double)probability / (1 - (double)probability));
}

/* Behind one hidden layer the logit is linear in what dropout scales. */
START_TEST(dropout_keeps_the_expectation)
{
    enum { EPOCHS = 2000 };
    tdm_rig rig;
    tdm_rig_options options = variant(DCN_V2);
    options.options = &dcn_v2_one_layer;
    start(&rig, &options, BATCH, 3);
    tdm_rig_run(&rig, 1, 0, false);
    double expected = first_logit(&rig);
    double sum = 0, squares = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        tdm_rig_run(&rig, 1, epoch, true);
        double logit = first_logit(&rig);
        sum += logit;
        squares += logit * logit;
    }
    double mean = sum / EPOCHS;
    double deviation = sqrt(squares / EPOCHS - mean * mean);
    ck_assert_double_gt(deviation, 1e-3);
    ck_assert_double_eq_tol(mean, expected, 5 * deviation / sqrt(EPOCHS));
    tdm_rig_deinit(&rig);
}
END_TEST

START_TEST(a_step_allocates_nothing)
{
    for (int v = 0; v < VARIANTS; v++) {
        tdm_rig rig;
        tdm_rig_options options = variant(v);
        start(&rig, &options, BATCH, 3);
        for (int step = 1; step <= 3; step++)
            train(&rig, step);
        int64_t before = tdm_memory_stats_get().allocations;
        train(&rig, 4);
        tdm_rig_run(&rig, 5, 0, false);
        ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
        tdm_rig_deinit(&rig);
    }
}
END_TEST

START_TEST(predicting_needs_neither_labels_nor_distinct_ids)
{
    for (int v = 0; v < VARIANTS; v++) {
        float found[2][BATCH];
        for (int inference = 0; inference < 2; inference++) {
            tdm_rig rig;
            tdm_rig_options options = variant(v);
            options.inference = inference == 1;
            start(&rig, &options, BATCH, 9);
            tdm_rig_run(&rig, 1, 0, false);
            tdm_rig_probabilities(&rig, found[inference], BATCH);
            tdm_rig_deinit(&rig);
        }
        ck_assert_mem_eq(found[0], found[1], sizeof found[0]);
    }
}
END_TEST

TDM_CHECK_MAIN(gradients_are_those_of_the_loss, every_model_learns_32_rows_by_heart,
               any_number_of_threads_gives_the_same_bits,
               a_second_pass_over_a_batch_gives_the_same_bits,
               dropout_repeats_within_an_epoch_and_changes_with_it, dropout_keeps_the_expectation,
               a_step_allocates_nothing, predicting_needs_neither_labels_nor_distinct_ids)
