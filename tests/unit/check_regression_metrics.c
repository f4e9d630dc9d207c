#include "tests/support/check_main.h"

#include "core/memory.h"
#include "core/rng.h"
#include "tests/support/metrics_rig.h"

#include <math.h>
#include <string.h>

#define ROWS 2000

static const tdm_metrics_spec numbers = {.type = &tdm_regression_metrics_type};

typedef struct rows {
    float predictions[ROWS], labels[ROWS], weights[ROWS];
    tdm_loss_scalars loss;
} rows;

/* Labels about `mean`, predictions that follow them with noise. */
static rows *make_rows(float mean, bool weighted)
{
    tdm_philox_key key = tdm_philox_make_key(3, TDM_PURPOSE_SYNTH, 1);
    rows *made;
    ck_assert_ok(tdm_alloc(1, sizeof *made, &made));
    for (uint64_t i = 0; i < ROWS; i++) {
        tdm_philox_words words = tdm_random4(key, i, 0, 0);
        made->labels[i] = mean + tdm_uniform(words.words[0]);
        made->predictions[i] = made->labels[i] * 0.75f + 0.3f * tdm_uniform(words.words[1]);
        made->weights[i] = weighted ? (float)(i % 4) * 0.3f : 1.0f;
        made->loss.weight_sum += (double)made->weights[i];
    }
    made->loss.loss_sum = 12.5;
    return made;
}

static void add(tdm_metrics *metrics, const rows *made, int from, int count)
{
    const tdm_loss_scalars share = {.weight_sum = made->loss.weight_sum * count / ROWS,
                                    .loss_sum = made->loss.loss_sum * count / ROWS};
    tdm_regression_metrics_add(&metrics->regression, made->predictions + from, made->labels + from,
                               made->weights + from, count, &share);
}

static double get(const tdm_metrics_result *result, const char *name)
{
    return tdm_test_metric(result, name);
}

/* Against two passes in double; a large mean must not cost digits. */
START_TEST(sums)
{
    for (int c = 0; c < 4; c++) {
        rows *made = make_rows(c & 1 ? 5000.0f : 0.0f, c & 2);
        double weight = 0, label = 0, prediction = 0, errors = 0;
        int64_t count = 0;
        for (int i = 0; i < ROWS; i++) {
            double w = (double)made->weights[i];
            double y = (double)made->labels[i], z = (double)made->predictions[i];
            count += w > 0;
            weight += w;
            label += w * y;
            prediction += w * z;
            errors += w * (z - y) * (z - y);
        }
        label /= weight;
        prediction /= weight;
        double yy = 0, zz = 0, yz = 0;
        for (int i = 0; i < ROWS; i++) {
            double w = (double)made->weights[i];
            double y = (double)made->labels[i] - label;
            double z = (double)made->predictions[i] - prediction;
            yy += w * y * y;
            zz += w * z * z;
            yz += w * y * z;
        }
        tdm_metrics metrics;
        ck_assert_ok(tdm_metrics_init(&metrics, &numbers, 0));
        int64_t before = tdm_memory_stats_get().allocations;
        add(&metrics, made, 0, ROWS);
        ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
        tdm_metrics_result result = tdm_test_result(&metrics);
        ck_assert_int_eq(result.rows, count);
        ck_assert_double_eq_tol(get(&result, "loss"), 12.5 / weight, 1e-14);
        ck_assert_double_eq_tol(get(&result, "mse") / (errors / weight), 1, 1e-12);
        ck_assert_double_eq_tol(get(&result, "pearson"), yz / sqrt(yy * zz), 1e-10);
        ck_assert_double_eq_tol(get(&result, "r2") / (1 - errors / yy), 1, 1e-9);
        tdm_metrics_deinit(&metrics);
        tdm_free(made);
    }
}
END_TEST

static tdm_metrics_result measure(const float *predictions, const float *labels,
                                  const float *weights, int64_t count)
{
    const tdm_loss_scalars loss = {.weight_sum = (double)count, .loss_sum = 1};
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &numbers, 0));
    tdm_regression_metrics_add(&metrics.regression, predictions, labels, weights, count, &loss);
    tdm_metrics_result result = tdm_test_result(&metrics);
    tdm_metrics_deinit(&metrics);
    return result;
}

START_TEST(known_values)
{
    const float labels[] = {1, 2, 3, 4}, mean[] = {2.5f, 2.5f, 2.5f, 2.5f};
    const float reversed[] = {4, 3, 2, 1};
    tdm_metrics_result perfect = measure(labels, labels, NULL, 4);
    ck_assert_double_eq(get(&perfect, "mse"), 0);
    ck_assert_double_eq(get(&perfect, "pearson"), 1);
    ck_assert_double_eq(get(&perfect, "r2"), 1);
    tdm_metrics_result flat = measure(mean, labels, NULL, 4);
    ck_assert_double_eq(get(&flat, "mse"), 1.25);
    ck_assert(isnan(get(&flat, "pearson")));
    ck_assert_double_eq(get(&flat, "r2"), 0);
    tdm_metrics_result worst = measure(reversed, labels, NULL, 4);
    ck_assert_double_eq(get(&worst, "mse"), 5);
    ck_assert_double_eq(get(&worst, "pearson"), -1);
    ck_assert_double_eq(get(&worst, "r2"), -3);
}
END_TEST

START_TEST(what_is_not_defined)
{
    const float same[] = {2, 2, 2}, others[] = {1, 2, 4}, zeros[] = {0, 0, 0};
    tdm_metrics_result flat = measure(others, same, NULL, 3);
    ck_assert_double_eq_tol(get(&flat, "mse"), 5.0 / 3, 1e-15);
    ck_assert(isnan(get(&flat, "pearson")) && isnan(get(&flat, "r2")));
    tdm_metrics_result none = measure(others, same, zeros, 3);
    ck_assert_int_eq(none.rows, 0);
    ck_assert(isnan(get(&none, "mse")) && isnan(get(&none, "pearson")) && isnan(get(&none, "r2")));
    const float odd[] = {1, NAN, 3};
    tdm_metrics_result lost = measure(odd, others, NULL, 3);
    ck_assert(isnan(get(&lost, "mse")) && isnan(get(&lost, "pearson")) && isnan(get(&lost, "r2")));
}
END_TEST

START_TEST(windows_and_merging)
{
    rows *made = make_rows(100, true);
    tdm_metrics window, total, whole;
    ck_assert_ok(tdm_metrics_init(&window, &numbers, 0));
    ck_assert_ok(tdm_metrics_init(&total, &numbers, 0));
    ck_assert_ok(tdm_metrics_init(&whole, &numbers, 0));
    ck_assert_ok(tdm_metrics_merge(&total, &window));
    for (int at = 0; at < ROWS; at += 400) {
        tdm_metrics_reset(&window);
        add(&window, made, at, 400);
        ck_assert_ok(tdm_metrics_merge(&total, &window));
    }
    tdm_metrics_reset(&window);
    ck_assert_ok(tdm_metrics_merge(&total, &window));
    add(&whole, made, 0, ROWS);
    tdm_test_same_result(&total, &whole, 1e-9);
    tdm_metrics_deinit(&window);
    tdm_metrics_deinit(&total);
    tdm_metrics_deinit(&whole);
    tdm_free(made);
}
END_TEST

START_TEST(restored_to_the_bit)
{
    rows *made = make_rows(1, true);
    tdm_metrics never_stopped, resumed;
    ck_assert_ok(tdm_metrics_init(&never_stopped, &numbers, 0));
    ck_assert_ok(tdm_metrics_init(&resumed, &numbers, 0));
    for (int at = 0; at < ROWS; at += 500) {
        tdm_test_save_and_restore(&never_stopped, &resumed);
        tdm_test_same_bits(&never_stopped, &resumed);
        add(&never_stopped, made, at, 500);
        add(&resumed, made, at, 500);
        tdm_test_same_bits(&never_stopped, &resumed);
        ck_assert_mem_eq(&never_stopped.regression, &resumed.regression, sizeof resumed.regression);
    }
    tdm_metrics_deinit(&never_stopped);
    tdm_metrics_deinit(&resumed);
    tdm_free(made);
}
END_TEST

START_TEST(damaged_state_and_no_memory)
{
    const tdm_test_damage damages[] = {
        {"rows", "-1", "rows is not a count"},
        {"loss", "[1]", "loss is not the sums"},
        {"weight_sum", "1.5", "weight_sum is not"},
        {"label_mean", "null", "label_mean is not"},
        {"prediction_mean", "true", "prediction_mean is not"},
        {"label_squares", "\"3FF0000000000000\"", "label_squares is not"},
        {"prediction_squares", "[]", "prediction_squares is not"},
        {"products", "\"3ff\"", "products is not"},
        {"error_squares", "{}", "error_squares is not"},
    };
    rows *made = make_rows(1, false);
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &numbers, 0));
    add(&metrics, made, 0, 10);
    tdm_test_damaged_metrics(&metrics, damages, sizeof damages / sizeof damages[0]);
    tdm_test_save_without_memory(&metrics);
    tdm_metrics_deinit(&metrics);
    tdm_free(made);
}
END_TEST

TDM_CHECK_MAIN(sums, known_values, what_is_not_defined, windows_and_merging, restored_to_the_bit,
               damaged_state_and_no_memory)
