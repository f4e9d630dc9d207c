#include "tests/support/check_main.h"

#include "core/memory.h"
#include "tests/support/metrics_rig.h"

#include <math.h>
#include <string.h>

static const tdm_metrics_spec text = {.type = &tdm_text_metrics_type};

static tdm_metrics_result measure(const tdm_text_counts_step *steps, int count)
{
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &text, 0));
    for (int i = 0; i < count; i++)
        tdm_text_metrics_add(&metrics.text, &steps[i]);
    tdm_metrics_result result = tdm_test_result(&metrics);
    tdm_metrics_deinit(&metrics);
    return result;
}

static double get(const tdm_metrics_result *result, const char *name)
{
    return tdm_test_metric(result, name);
}

/* Step i of a training on pairs. */
static tdm_text_counts_step make_step(int i)
{
    return (tdm_text_counts_step){
        .rows = 8 + i,
        .tokens = 900 + 7 * i,
        .unknown = i % 3,
        .capacity = 1024,
        .losses = {{.weight_sum = 130 + i, .loss_sum = 900.1 / (i + 1), .correct_sum = 10 + i},
                   {.weight_sum = 8 + i, .loss_sum = 5.7 / (i + 3), .correct_sum = 6}}};
}

START_TEST(known_values)
{
    const tdm_text_counts_step steps[] = {make_step(0), make_step(5)};
    tdm_metrics_result result = measure(steps, 2);
    double masked = (900.1 + 900.1 / 6) / (130 + 135);
    double pairs = (5.7 / 3 + 5.7 / 8) / (8 + 13);
    ck_assert_int_eq(result.rows, 8 + 13);
    ck_assert_double_eq_tol(get(&result, "loss"), masked + pairs, 1e-14);
    ck_assert_double_eq_tol(get(&result, "masked_loss"), masked, 1e-14);
    ck_assert_double_eq_tol(get(&result, "masked_accuracy"), 25.0 / 265, 1e-15);
    ck_assert_double_eq_tol(get(&result, "pair_loss"), pairs, 1e-15);
    ck_assert_double_eq_tol(get(&result, "pair_accuracy"), 12.0 / 21, 1e-15);
    ck_assert_double_eq_tol(get(&result, "perplexity"), exp(masked), 1e-10);
    ck_assert_double_eq(get(&result, "tokens"), 900 + 935);
    ck_assert_double_eq(get(&result, "predictions"), 265);
    ck_assert_double_eq_tol(get(&result, "unknown_share"), 2.0 / 1835, 1e-15);
    ck_assert_double_eq_tol(get(&result, "fill"), 1835.0 / 2048, 1e-15);
}
END_TEST

/* The keys of the result as JSON, one behind another. */
static char *keys_of(const tdm_metrics_result *result)
{
    static char keys[256];
    json_t *json;
    const char *key;
    json_t *value;
    keys[0] = '\0';
    ck_assert_ok(tdm_metrics_result_json(result, &json));
    json_object_foreach(json, key, value)
    {
        strcat(strcat(keys, key), value->type == JSON_INTEGER ? "! " : " ");
    }
    json_decref(json);
    return keys;
}

START_TEST(pairs_are_told_where_there_are_any)
{
    tdm_text_counts_step step = make_step(1);
    tdm_metrics_result result = measure(&step, 1);
    ck_assert_str_eq(keys_of(&result),
                     "rows! loss masked_loss masked_accuracy pair_loss pair_accuracy perplexity "
                     "tokens! predictions! unknown_share fill ");
    step.losses[1] = (tdm_loss_scalars){0};
    result = measure(&step, 1);
    ck_assert_str_eq(keys_of(&result), "rows! loss masked_loss masked_accuracy perplexity tokens! "
                                       "predictions! unknown_share fill ");
    ck_assert_double_eq(get(&result, "loss"), get(&result, "masked_loss"));
}
END_TEST

START_TEST(nothing_is_not_defined)
{
    tdm_metrics_result none = measure(NULL, 0);
    static const char *const names[] = {"loss",       "masked_loss",   "masked_accuracy",
                                        "perplexity", "unknown_share", "fill"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_msg(isnan(get(&none, names[i])), "%s", names[i]);
    ck_assert_double_eq(get(&none, "tokens"), 0);
    ck_assert_double_eq(get(&none, "predictions"), 0);

    /* A batch of pairs in which nothing was masked. */
    tdm_text_counts_step step = make_step(0);
    step.losses[0] = (tdm_loss_scalars){0};
    tdm_metrics_result pairs = measure(&step, 1);
    ck_assert(isnan(get(&pairs, "masked_loss")) && isnan(get(&pairs, "perplexity")));
    ck_assert_double_eq(get(&pairs, "loss"), get(&pairs, "pair_loss"));
}
END_TEST

START_TEST(nan_shows)
{
    tdm_text_counts_step steps[] = {make_step(0), make_step(1)};
    steps[1].losses[0].loss_sum = NAN;
    tdm_metrics_result result = measure(steps, 2);
    ck_assert(isnan(get(&result, "loss")) && isnan(get(&result, "masked_loss")));
    ck_assert(isnan(get(&result, "masked_accuracy")) && isnan(get(&result, "perplexity")));
    ck_assert(!isnan(get(&result, "pair_loss")) && !isnan(get(&result, "pair_accuracy")));
}
END_TEST

START_TEST(windows_and_merging)
{
    tdm_metrics window, total, whole;
    ck_assert_ok(tdm_metrics_init(&window, &text, 0));
    ck_assert_ok(tdm_metrics_init(&total, &text, 0));
    ck_assert_ok(tdm_metrics_init(&whole, &text, 0));
    int64_t before = tdm_memory_stats_get().allocations;
    for (int i = 0; i < 40; i++) {
        const tdm_text_counts_step step = make_step(i);
        if (i % 7 == 0)
            tdm_metrics_reset(&window);
        tdm_text_metrics_add(&window.text, &step);
        tdm_text_metrics_add(&whole.text, &step);
        if (i % 7 == 6 || i == 39)
            ck_assert_ok(tdm_metrics_merge(&total, &window));
    }
    ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
    tdm_test_same_result(&total, &whole, 1e-12);
    tdm_metrics_deinit(&window);
    tdm_metrics_deinit(&total);
    tdm_metrics_deinit(&whole);
}
END_TEST

START_TEST(restored_to_the_bit)
{
    tdm_metrics never_stopped, resumed;
    ck_assert_ok(tdm_metrics_init(&never_stopped, &text, 0));
    ck_assert_ok(tdm_metrics_init(&resumed, &text, 0));
    for (int i = 0; i < 10; i++) {
        const tdm_text_counts_step step = make_step(i);
        tdm_test_save_and_restore(&never_stopped, &resumed);
        tdm_test_same_bits(&never_stopped, &resumed);
        tdm_text_metrics_add(&never_stopped.text, &step);
        tdm_text_metrics_add(&resumed.text, &step);
        tdm_test_same_bits(&never_stopped, &resumed);
        ck_assert_mem_eq(&never_stopped.text, &resumed.text, sizeof resumed.text);
    }
    tdm_metrics_deinit(&never_stopped);
    tdm_metrics_deinit(&resumed);
}
END_TEST

START_TEST(damaged_state)
{
    const tdm_test_damage damages[] = {
        {"rows", "-1", "rows is not a count"},
        {"tokens", "1.5", "tokens is not a count"},
        {"unknown", "null", "unknown is not a count"},
        {"capacity", "\"1\"", "capacity is not a count"},
        {"masked", "[1, 2]", "masked is not the sums"},
        {"masked", "[1, 2, 3, 4]", "masked is not the sums"},
        {"masked", "{}", "masked is not the sums"},
        {"pairs", "[0.5, 1, 1]", "pairs is not the sums"},
        {"pairs", "[1, \"3ff\", 1]", "pairs is not the sums"},
        {"pairs", "[1, 1, null]", "pairs is not the sums"},
    };
    const tdm_text_counts_step step = make_step(2);
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &text, 0));
    tdm_text_metrics_add(&metrics.text, &step);
    tdm_test_damaged_metrics(&metrics, damages, sizeof damages / sizeof damages[0]);
    tdm_metrics_deinit(&metrics);
}
END_TEST

START_TEST(out_of_memory)
{
    const tdm_text_counts_step step = make_step(2);
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &text, 0));
    tdm_text_metrics_add(&metrics.text, &step);
    tdm_test_save_without_memory(&metrics);
    tdm_metrics_deinit(&metrics);
}
END_TEST

/* Above 709 nats it is infinite, which JSON has no word for. */
START_TEST(enormous_perplexity)
{
    const tdm_text_counts_step step = {.losses = {{.weight_sum = 1, .loss_sum = 800}}};
    tdm_metrics_result result = measure(&step, 1);
    json_t *json;
    ck_assert(isinf(get(&result, "perplexity")));
    ck_assert_ok(tdm_metrics_result_json(&result, &json));
    ck_assert(json_is_null(json_object_get(json, "perplexity")));
    json_decref(json);
}
END_TEST

START_TEST(in_lines)
{
    const tdm_text_counts_step step = make_step(0);
    tdm_metrics_result result = measure(&step, 1);
    static const char *const order[] = {"loss", "masked_accuracy", "perplexity", "pair_accuracy"};
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(tdm_metrics_result_headline(&result, i + 1)->metric->name, order[i]);
    const char *work;
    ck_assert_double_eq(tdm_metrics_result_work(&result, &work), 900.0 / 8);
    ck_assert_str_eq(work, "tokens");
    tdm_metrics_result none = measure(NULL, 0);
    ck_assert(isnan(tdm_metrics_result_work(&none, &work)));
}
END_TEST

TDM_CHECK_MAIN(known_values, pairs_are_told_where_there_are_any, nothing_is_not_defined, nan_shows,
               windows_and_merging, restored_to_the_bit, damaged_state, out_of_memory,
               enormous_perplexity, in_lines)
