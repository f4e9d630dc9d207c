#include "tests/support/check_main.h"

#include "core/memory.h"
#include "core/rng.h"
#include "tests/support/metrics_rig.h"

#include <math.h>
#include <string.h>

#define ROWS 3000

typedef struct rows {
    float probabilities[ROWS], labels[ROWS], weights[ROWS];
} rows;

static rows *make_rows(bool weighted, bool soft)
{
    tdm_philox_key key = tdm_philox_make_key(11, TDM_PURPOSE_SYNTH, 1);
    rows *made;
    ck_assert_ok(tdm_alloc(1, sizeof *made, &made));
    for (uint64_t i = 0; i < ROWS; i++) {
        float u = tdm_uniform(tdm_random(key, i, 0, 0));
        made->probabilities[i] = 0.02f + 0.9f * u * u;
        float uniform = tdm_uniform(tdm_random(key, i, 0, 1));
        made->labels[i] = soft ? uniform : uniform < made->probabilities[i] ? 1.0f : 0.0f;
        made->weights[i] = weighted ? (float)(i % 4) * 0.3f : 1.0f;
    }
    return made;
}

static const tdm_metrics_spec clicks = {.type = &tdm_click_metrics_type};

static double get(const tdm_metrics_result *result, const char *name)
{
    return tdm_test_metric(result, name);
}

static tdm_metrics_result measure(const float *probabilities, const float *labels,
                                  const float *weights, int64_t count)
{
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &clicks, 1000000));
    ck_assert_ok(tdm_click_metrics_add(&metrics.click, probabilities, labels, weights, count));
    tdm_metrics_result result = tdm_test_result(&metrics);
    tdm_metrics_deinit(&metrics);
    return result;
}

static double logloss_of(const float *probabilities, const float *labels, const float *weights,
                         int64_t count)
{
    tdm_metrics_result result = measure(probabilities, labels, weights, count);
    return get(&result, "logloss");
}

START_TEST(known_values)
{
    const float probabilities[] = {0.5f, 0.25f, 0.75f, 0.5f};
    const float labels[] = {1, 0, 1, 0};
    tdm_metrics_result result = measure(probabilities, labels, NULL, 4);
    double logloss = -(2.0 * log(0.5) + 2.0 * log(0.75)) / 4.0;
    ck_assert_int_eq(result.rows, 4);
    ck_assert_double_eq(get(&result, "positives"), 2);
    ck_assert_double_eq(get(&result, "auc"), 0.875);
    ck_assert_double_eq(get(&result, "auc_error"), 0.0);
    ck_assert_double_eq_tol(get(&result, "logloss"), logloss, 1e-15);
    ck_assert_double_eq_tol(get(&result, "normalized_entropy"), logloss / log(2.0), 1e-15);
    ck_assert_double_eq(get(&result, "calibration"), 1.0);
    ck_assert_double_eq(get(&result, "mean_label"), 0.5);
    ck_assert_double_eq(get(&result, "mean_prediction"), 0.5);
}
END_TEST

/* Predicting the mean label everywhere has normalized entropy 1. */
START_TEST(entropy_of_the_mean_label)
{
    float probabilities[64], labels[64];
    for (int i = 0; i < 64; i++) {
        probabilities[i] = 0.125f;
        labels[i] = i % 8 == 0 ? 1.0f : 0.0f;
    }
    tdm_metrics_result result = measure(probabilities, labels, NULL, 64);
    ck_assert_double_eq_tol(get(&result, "normalized_entropy"), 1.0, 1e-14);
    ck_assert_double_eq(get(&result, "calibration"), 1.0);
    ck_assert_double_eq(get(&result, "auc"), 0.5);
}
END_TEST

/* Against one logarithm a row, with each mix of weights and labels. */
START_TEST(sums)
{
    for (int c = 0; c < 4; c++) {
        rows *made = make_rows(c & 1, c & 2);
        double weight = 0, loss = 0, label = 0, prediction = 0;
        int64_t count = 0, positives = 0;
        for (int i = 0; i < ROWS; i++) {
            double w = (double)made->weights[i], y = (double)made->labels[i];
            double p = (double)made->probabilities[i];
            count += w > 0;
            positives += w > 0 && y > 0.5;
            weight += w;
            loss -= w * (y * log(p) + (1 - y) * log(1 - p));
            label += w * y;
            prediction += w * p;
        }
        tdm_metrics_result result = measure(made->probabilities, made->labels, made->weights, ROWS);
        ck_assert_int_eq(result.rows, count);
        ck_assert_double_eq(get(&result, "positives"), (double)positives);
        ck_assert_double_eq_tol(get(&result, "logloss"), loss / weight, 1e-13);
        ck_assert_double_eq_tol(get(&result, "mean_label"), label / weight, 1e-14);
        ck_assert_double_eq_tol(get(&result, "mean_prediction"), prediction / weight, 1e-14);
        ck_assert_double_eq_tol(get(&result, "calibration"), prediction / label, 1e-13);
        tdm_free(made);
    }
}
END_TEST

START_TEST(certain_probabilities_have_finite_loss)
{
    const float ends[] = {0.0f, 1.0f, 0.0f, 1.0f};
    const float labels[] = {1, 0, 0, 1};
    ck_assert_double_eq_tol(logloss_of(ends, labels, NULL, 1), 150 * log(2.0), 1e-12);
    ck_assert_double_eq_tol(logloss_of(ends + 1, labels + 1, NULL, 1), 25 * log(2.0), 1e-12);
    ck_assert_double_lt(logloss_of(ends + 2, labels + 2, NULL, 2), 1e-7);

    /* Many of them: their product leaves the range of double. */
    float zeros[500] = {0}, ones[500];
    for (int i = 0; i < 500; i++)
        ones[i] = 1.0f;
    ck_assert_double_eq_tol(logloss_of(zeros, ones, NULL, 500), 150 * log(2.0), 1e-11);
}
END_TEST

START_TEST(one_class_and_no_rows)
{
    const float probabilities[] = {0.25f, 0.75f};
    const float ones[] = {1, 1}, zeros[] = {0, 0};
    tdm_metrics_result positives = measure(probabilities, ones, NULL, 2);
    ck_assert(isnan(get(&positives, "auc")) && isnan(get(&positives, "auc_error")));
    ck_assert(isnan(get(&positives, "normalized_entropy")));
    ck_assert_double_eq(get(&positives, "calibration"), 0.5);
    ck_assert_double_eq_tol(get(&positives, "logloss"), -(log(0.25) + log(0.75)) / 2, 1e-15);

    tdm_metrics_result negatives = measure(probabilities, zeros, NULL, 2);
    ck_assert(isnan(get(&negatives, "auc")) && isnan(get(&negatives, "normalized_entropy")));
    ck_assert(isnan(get(&negatives, "calibration")));
    ck_assert_double_eq(get(&negatives, "mean_label"), 0.0);

    tdm_metrics_result none = measure(probabilities, ones, zeros, 2);
    ck_assert_int_eq(none.rows, 0);
    ck_assert_double_eq(get(&none, "positives"), 0);
    ck_assert(isnan(get(&none, "auc")) && isnan(get(&none, "logloss")) &&
              isnan(get(&none, "normalized_entropy")));
    ck_assert(isnan(get(&none, "calibration")) && isnan(get(&none, "mean_label")) &&
              isnan(get(&none, "mean_prediction")));
}
END_TEST

START_TEST(nan_shows)
{
    const float probabilities[] = {0.25f, NAN, 0.5f};
    const float labels[] = {0, 1, 1};
    tdm_metrics_result result = measure(probabilities, labels, NULL, 3);
    ck_assert(isnan(get(&result, "auc")) && isnan(get(&result, "auc_error")) &&
              isnan(get(&result, "logloss")));
    ck_assert(isnan(get(&result, "mean_prediction")) && isnan(get(&result, "calibration")));
    ck_assert_double_eq_tol(get(&result, "mean_label"), 2.0 / 3.0, 1e-15);
}
END_TEST

START_TEST(windows_and_merging)
{
    rows *made = make_rows(true, false);
    tdm_metrics window, total, whole;
    ck_assert_ok(tdm_metrics_init(&window, &clicks, 0));
    ck_assert_ok(tdm_metrics_init(&total, &clicks, 0));
    ck_assert_ok(tdm_metrics_init(&whole, &clicks, 0));
    int64_t before = tdm_memory_stats_get().allocations;
    for (int at = 0; at < ROWS; at += 1000) {
        tdm_metrics_reset(&window);
        ck_assert_int_eq(window.rows, 0);
        ck_assert_double_eq(window.click.loss_sum, 0.0);
        ck_assert_ok(tdm_click_metrics_add(&window.click, made->probabilities + at,
                                           made->labels + at, made->weights + at, 1000));
        ck_assert_ok(tdm_metrics_merge(&total, &window));
    }
    ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
    ck_assert_ok(tdm_click_metrics_add(&whole.click, made->probabilities, made->labels,
                                       made->weights, ROWS));

    tdm_test_same_result(&total, &whole, 1e-13);
    tdm_metrics_deinit(&window);
    tdm_metrics_deinit(&total);
    tdm_metrics_deinit(&whole);
    tdm_free(made);
}
END_TEST

START_TEST(restored_to_the_bit)
{
    for (int c = 0; c < 4; c++) {
        rows *made = make_rows(c & 1, c & 2);
        tdm_metrics never_stopped, resumed;
        ck_assert_ok(tdm_metrics_init(&never_stopped, &clicks, 0));
        ck_assert_ok(tdm_metrics_init(&resumed, &clicks, 0));
        tdm_test_save_and_restore(&never_stopped, &resumed);
        tdm_test_same_bits(&never_stopped, &resumed);
        ck_assert_ok(tdm_click_metrics_add(&never_stopped.click, made->probabilities, made->labels,
                                           made->weights, 1700));
        ck_assert_ok(tdm_click_metrics_add(&resumed.click, made->labels, made->labels, NULL, 100));
        tdm_test_save_and_restore(&never_stopped, &resumed);
        tdm_test_same_bits(&never_stopped, &resumed);
        ck_assert_ok(tdm_click_metrics_add(&never_stopped.click, made->probabilities + 1700,
                                           made->labels + 1700, made->weights + 1700, 1300));
        ck_assert_ok(tdm_click_metrics_add(&resumed.click, made->probabilities + 1700,
                                           made->labels + 1700, made->weights + 1700, 1300));
        tdm_test_same_bits(&never_stopped, &resumed);
        tdm_metrics_deinit(&never_stopped);
        tdm_metrics_deinit(&resumed);
        tdm_free(made);
    }
}
END_TEST

START_TEST(odd_doubles_are_restored)
{
    const double values[] = {-0.0, NAN, INFINITY, 0x1p-1074, 0x1p53, 0x1.8p60, -3.0, 0.1};
    tdm_metrics from, to;
    ck_assert_ok(tdm_metrics_init(&from, &clicks, 0));
    ck_assert_ok(tdm_metrics_init(&to, &clicks, 0));
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        from.click.loss_sum = values[i];
        tdm_test_save_and_restore(&from, &to);
        ck_assert_mem_eq(&from.click.loss_sum, &to.click.loss_sum, sizeof values[i]);
    }
    tdm_metrics_deinit(&from);
    tdm_metrics_deinit(&to);
}
END_TEST

START_TEST(damaged_state)
{
    const tdm_test_damage damages[] = {
        {"rows", "\"1\"", "rows is not a count"},
        {"positives", "-1", "positives is not a count"},
        {"weight_sum", "1.5", "weight_sum is not"},
        {"loss_sum", "\"3ff\"", "loss_sum is not"},
        {"label_sum", "\"3FF0000000000000\"", "label_sum is not"},
        {"prediction_sum", "null", "prediction_sum is not"},
        {"auc_bins", "{}", "auc_bins is not a list"},
        {"auc_bins", "[1, 2]", "auc_bins is not a list"},
        {"auc_bins", "[65536, 1, 1]", "auc_bins is damaged at item 0"},
        {"auc_bins", "[-1, 1, 1]", "auc_bins is damaged at item 0"},
        {"auc_bins", "[5, 1, 1, 5, 1, 1]", "auc_bins is damaged at item 3"},
        {"auc_bins", "[5, -1, 1]", "auc_bins is damaged at item 0"},
        {"auc_bins", "[5, 1, \"7ff8000000000000\"]", "auc_bins is damaged at item 0"},
        {"auc_bins", "[5, 1, 0.5]", "auc_bins is damaged at item 0"},
    };
    const float p[] = {0.3f}, label[] = {1};
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &clicks, 0));
    ck_assert_ok(tdm_click_metrics_add(&metrics.click, p, label, NULL, 1));
    tdm_test_damaged_metrics(&metrics, damages, sizeof damages / sizeof damages[0]);
    tdm_test_save_without_memory(&metrics);
    tdm_metrics_deinit(&metrics);
}
END_TEST

START_TEST(evaluations_are_not_saved)
{
    tdm_metrics metrics;
    json_t *saved;
    ck_assert_ok(tdm_metrics_init(&metrics, &clicks, 10));
    ck_assert_fails(tdm_metrics_save(&metrics, &saved), TDM_E_STATE, "exact AUC");
    ck_assert_ptr_null(saved);
    ck_assert_fails(tdm_metrics_restore(&metrics, saved), TDM_E_STATE, "exact AUC");
    tdm_metrics_deinit(&metrics);
}
END_TEST

static void assert_json(const tdm_metrics_result *result, const char *expected)
{
    json_t *json;
    ck_assert_ok(tdm_metrics_result_json(result, &json));
    char *text = json_dumps(json, 0);
    ck_assert_str_eq(text, expected);
    free(text);
    json_decref(json);
}

START_TEST(as_json)
{
    const float probabilities[] = {0.5f, 0.25f, 0.75f, 0.5f};
    const float labels[] = {1, 0, 1, 0};
    tdm_metrics_result full = measure(probabilities, labels, NULL, 4);
    full.items[2].value = 0.5;
    full.items[3].value = 0.75;
    assert_json(&full, "{\"rows\": 4, \"auc\": 0.875, \"auc_error\": 0.0, \"logloss\": 0.5, "
                       "\"normalized_entropy\": 0.75, \"calibration\": 1.0, "
                       "\"mean_label\": 0.5, \"mean_prediction\": 0.5, \"positives\": 2}");
    const float nothing[] = {0};
    tdm_metrics_result none = measure(nothing, nothing, nothing, 1);
    assert_json(&none, "{\"rows\": 0, \"auc\": null, \"auc_error\": null, \"logloss\": null, "
                       "\"normalized_entropy\": null, \"calibration\": null, "
                       "\"mean_label\": null, \"mean_prediction\": null, \"positives\": 0}");
}
END_TEST

START_TEST(as_text)
{
    const tdm_metrics_type *type = clicks.type;
    const double values[] = {0.8123456, 0.00003, 0.45, 0.75, NAN, 0.25, 0.125, 250000};
    tdm_metrics_result result = tdm_metrics_result_make(type->metrics, type->metric_count, 0);
    tdm_text text = {0};
    result.rows = 1000000;
    for (int i = 0; i < result.count; i++)
        result.items[i].value = values[i];
    ck_assert_ok(tdm_metrics_result_text(&result, &text));
    ck_assert_str_eq(text.bytes, "  rows                     1000000\n"
                                 "  auc                     0.812346\n"
                                 "  auc error, at most      0.000030\n"
                                 "  logloss                 0.450000\n"
                                 "  normalized entropy      0.750000\n"
                                 "  calibration                  n/a\n"
                                 "  mean label              0.250000\n"
                                 "  mean prediction         0.125000\n"
                                 "  positives                 250000\n");
    tdm_text_free(&text);

    result.items[1].value = 0.0;
    text = (tdm_text){0};
    ck_assert_ok(tdm_metrics_result_text(&result, &text));
    ck_assert_ptr_null(strstr(text.bytes, "at most"));
    tdm_text_free(&text);
}
END_TEST

START_TEST(in_lines)
{
    tdm_metrics_result result = measure(NULL, NULL, NULL, 0);
    static const char *const order[] = {"logloss", "auc", "normalized_entropy", "calibration"};
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(tdm_metrics_result_headline(&result, i + 1)->metric->name, order[i]);
    ck_assert_ptr_null(tdm_metrics_result_headline(&result, 5));
    const char *work;
    ck_assert_double_eq(tdm_metrics_result_work(&result, &work), 1);
    ck_assert_str_eq(work, "rows");
}
END_TEST

TDM_CHECK_MAIN(known_values, entropy_of_the_mean_label, sums,
               certain_probabilities_have_finite_loss, one_class_and_no_rows, nan_shows,
               windows_and_merging, restored_to_the_bit, odd_doubles_are_restored, damaged_state,
               evaluations_are_not_saved, as_json, as_text, in_lines)
