#include "tests/support/check_main.h"

#include "core/memory.h"
#include "core/rng.h"
#include "trainer/auc.h"

#include <math.h>
#include <string.h>

#define NO_LIMIT 1000000000

typedef struct rows {
    float *scores, *labels, *weights;
    int64_t count;
} rows;

static uint32_t draw(uint64_t row, uint32_t element)
{
    tdm_philox_key key = tdm_philox_make_key(7, TDM_PURPOSE_SYNTH, 0);
    return tdm_random(key, row, 0, element);
}

/* Logits of spread 2 around -1.5, rounded to 1/steps (0: not rounded) so that scores tie. */
static rows make_rows(int64_t count, int steps, bool weighted, bool soft)
{
    rows made = {.count = count};
    ck_assert_ok(tdm_alloc((size_t)count, sizeof(float), &made.scores));
    ck_assert_ok(tdm_alloc((size_t)count, sizeof(float), &made.labels));
    ck_assert_ok(tdm_alloc((size_t)count, sizeof(float), &made.weights));
    for (int64_t i = 0; i < count; i++) {
        float sum = 0.0f;
        for (uint32_t e = 0; e < 4; e++)
            sum += tdm_uniform(draw((uint64_t)i, e));
        float logit = 3.5f * (sum - 2.0f) - 1.5f;
        if (steps > 0)
            logit = roundf(logit * (float)steps) / (float)steps;
        made.scores[i] = 1.0f / (1.0f + expf(-logit));
        float uniform = tdm_uniform(draw((uint64_t)i, 4));
        made.labels[i] = uniform < made.scores[i] ? 1.0f : 0.0f;
        if (soft && i % 3 == 0)
            made.labels[i] = uniform;
        made.weights[i] = weighted ? (float)(draw((uint64_t)i, 5) % 9) * 0.375f : 1.0f;
    }
    return made;
}

static void free_rows(rows *made)
{
    tdm_free(made->scores);
    tdm_free(made->labels);
    tdm_free(made->weights);
}

/* Every pair, one by one. */
static double brute_force(const rows *all)
{
    double wins = 0.0, pairs = 0.0;
    for (int64_t i = 0; i < all->count; i++) {
        for (int64_t j = 0; j < all->count; j++) {
            double positive = (double)all->weights[i] * (double)all->labels[i];
            double negative = (double)all->weights[j] * (1.0 - (double)all->labels[j]);
            pairs += positive * negative;
            if (all->scores[i] > all->scores[j])
                wins += positive * negative;
            else if (all->scores[i] == all->scores[j])
                wins += 0.5 * positive * negative;
        }
    }
    return wins / pairs;
}

static tdm_auc_result measure(int64_t exact_rows, const float *scores, const float *labels,
                              const float *weights, int64_t count, int64_t step, int threads)
{
    tdm_auc auc;
    tdm_pool *pool;
    tdm_auc_result result;
    ck_assert_ok(tdm_auc_init(&auc, exact_rows));
    ck_assert_ok(tdm_pool_create(threads, &pool));
    for (int64_t at = 0; at < count; at += step) {
        int64_t some = count - at < step ? count - at : step;
        ck_assert_ok(tdm_auc_add(&auc, scores + at, labels + at,
                                 weights == NULL ? NULL : weights + at, some));
    }
    ck_assert_ok(tdm_auc_get(&auc, pool, &result));
    tdm_pool_destroy(pool);
    tdm_auc_deinit(&auc);
    return result;
}

static tdm_auc_result measure_rows(const rows *all, int64_t exact_rows, int64_t step)
{
    return measure(exact_rows, all->scores, all->labels, all->weights, all->count, step, 2);
}

START_TEST(known_values)
{
    const float scores[] = {0.1f, 0.4f, 0.35f, 0.8f};
    const float labels[] = {0, 0, 1, 1};
    tdm_auc_result result = measure(NO_LIMIT, scores, labels, NULL, 4, 4, 1);
    ck_assert_double_eq(result.auc, 0.75);
    ck_assert_double_eq(result.error, 0.0);

    /* Perfect but for a row of weight 0, and reversed. */
    const float perfect[] = {0, 0, 1, 1, 0};
    const float reversed[] = {1, 1, 0, 0, 0};
    const float order[] = {0.0f, 0.1f, 0.9f, 1.0f, 0.95f};
    const float weights[] = {1, 1, 1, 1, 0};
    ck_assert_double_eq(measure(NO_LIMIT, order, perfect, weights, 5, 5, 1).auc, 1.0);
    ck_assert_double_eq(measure(0, order, perfect, weights, 5, 5, 1).auc, 1.0);
    ck_assert_double_eq(measure(NO_LIMIT, order, reversed, weights, 5, 5, 1).auc, 0.0);

    /* The pair (0.3, 0.2) of weight 2 · 1 is won, (0.3, 0.6) of weight 2 · 4 lost. */
    const float three[] = {0.3f, 0.2f, 0.6f};
    const float one_positive[] = {1, 0, 0};
    const float heavy[] = {2, 1, 4};
    ck_assert_double_eq(measure(NO_LIMIT, three, one_positive, heavy, 3, 3, 1).auc, 0.2);
    ck_assert_double_eq(measure(0, three, one_positive, heavy, 3, 3, 1).auc, 0.2);
}
END_TEST

START_TEST(all_ties)
{
    float scores[100], labels[100];
    for (int i = 0; i < 100; i++) {
        scores[i] = 0.25f;
        labels[i] = i % 3 == 0 ? 1.0f : 0.0f;
    }
    tdm_auc_result exact = measure(NO_LIMIT, scores, labels, NULL, 100, 100, 2);
    ck_assert_double_eq(exact.auc, 0.5);
    ck_assert_double_eq(exact.error, 0.0);
    tdm_auc_result counted = measure(0, scores, labels, NULL, 100, 100, 2);
    ck_assert_double_eq(counted.auc, 0.5);
    ck_assert_double_eq(counted.error, 0.5);
}
END_TEST

START_TEST(one_class_is_undefined)
{
    const float scores[] = {0.1f, 0.4f, 0.35f};
    const float ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};
    for (int64_t exact_rows = 0; exact_rows <= 10; exact_rows += 10) {
        tdm_auc_result none = measure(exact_rows, scores, ones, NULL, 0, 3, 1);
        tdm_auc_result positives = measure(exact_rows, scores, ones, NULL, 3, 3, 1);
        tdm_auc_result negatives = measure(exact_rows, scores, zeros, NULL, 3, 3, 1);
        ck_assert(isnan(none.auc) && isnan(none.error));
        ck_assert(isnan(positives.auc) && isnan(positives.error));
        ck_assert(isnan(negatives.auc) && isnan(negatives.error));
    }
}
END_TEST

START_TEST(exact_equals_counting_pairs)
{
    const struct {
        int64_t count;
        int steps;
        bool weighted, soft;
    } cases[] = {{2, 0, false, false},    {7, 2, true, false},     {49, 0, false, false},
                 {1000, 0, false, false}, {1000, 2, false, false}, {1000, 5, true, false},
                 {1000, 3, true, true},   {2500, 40, true, false}, {2500, 0, true, true}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        rows made = make_rows(cases[c].count, cases[c].steps, cases[c].weighted, cases[c].soft);
        made.labels[0] = 1.0f;
        made.weights[0] = 2.0f;
        made.labels[1] = 0.0f;
        made.weights[1] = 1.5f;
        double expected = brute_force(&made);
        tdm_auc_result exact = measure_rows(&made, NO_LIMIT, 300);
        ck_assert_double_eq_tol(exact.auc, expected, cases[c].soft ? 1e-7 : 1e-13);
        tdm_auc_result counted = measure_rows(&made, 0, 300);
        ck_assert_double_le(fabs(counted.auc - expected), counted.error + 1e-13);
        free_rows(&made);
    }
}
END_TEST

/* Scores at and just below the places where bins may end, rising. */
static int64_t edge_scores(float *scores)
{
    int64_t count = 0;
    scores[count++] = 0.0f;
    scores[count++] = 0x1p-149f;
    scores[count++] = 0x1p-40f;
    for (int exponent = -19; exponent <= -2; exponent++) {
        for (int eighth = 0; eighth < 8; eighth++) {
            float value = ldexpf(1.0f + (float)eighth / 8.0f, exponent);
            scores[count++] = nextafterf(value, 0.0f);
            scores[count++] = value;
        }
    }
    for (int64_t i = count - 1; i >= 0; i--)
        scores[count++] = 1.0f - scores[i];
    return count;
}

/* All negative below a cut and all positive from it on: nothing may be lost but ties. */
START_TEST(bins_order_as_scores)
{
    float scores[1000], labels[1000];
    int64_t count = edge_scores(scores);
    for (int64_t cut = 1; cut < count; cut++) {
        for (int64_t i = 0; i < count; i++)
            labels[i] = i < cut ? 0.0f : 1.0f;
        tdm_auc_result result = measure(0, scores, labels, NULL, count, count, 1);
        ck_assert_double_ge(result.auc, 1.0 - result.error - 1e-13);
        ck_assert_double_le(result.error, 0.05);
    }
}
END_TEST

START_TEST(bins_tell_near_logits_apart)
{
    for (float p = 0x1p-17f; p < 0.9999f; p += 0.7f * p * (1.0f - p)) {
        float logit = logf(p / (1.0f - p)) + 0.00125f;
        const float scores[] = {p, 1.0f / (1.0f + expf(-logit))};
        const float labels[] = {0, 1};
        ck_assert_double_eq(measure(0, scores, labels, NULL, 2, 2, 1).auc, 1.0);
    }
}
END_TEST

START_TEST(odd_scores_stay_in_range)
{
    const float scores[] = {-1.0f, -0.0f, 0.0f, 1.0f, 2.0f, INFINITY, -INFINITY, NAN, -NAN};
    const float labels[] = {0, 0, 0, 1, 1, 1, 0, 1, 0};
    for (int64_t exact_rows = 0; exact_rows <= 10; exact_rows += 10) {
        ck_assert_double_eq(measure(exact_rows, scores, labels, NULL, 7, 7, 1).auc, 1.0);
        double auc = measure(exact_rows, scores, labels, NULL, 9, 9, 1).auc;
        ck_assert(auc >= 0.0 && auc <= 1.0);
    }
}
END_TEST

START_TEST(a_million_rows)
{
    rows made = make_rows(1000000, 0, false, false);
    tdm_auc_result exact = measure_rows(&made, NO_LIMIT, 4096);
    tdm_auc_result counted = measure_rows(&made, 0, 4096);
    ck_assert_double_gt(exact.auc, 0.75);
    ck_assert_double_lt(exact.auc, 0.95);
    ck_assert_double_le(fabs(counted.auc - exact.auc), counted.error);
    ck_assert_double_gt(counted.error, 0.0);
    ck_assert_double_lt(counted.error, 1e-4);
    free_rows(&made);
}
END_TEST

START_TEST(same_bits_on_any_threads)
{
    rows made = make_rows(50000, 200, true, true);
    tdm_auc_result one =
        measure(NO_LIMIT, made.scores, made.labels, made.weights, made.count, 50000, 1);
    for (int threads = 2; threads <= 5; threads += 3) {
        tdm_auc_result more =
            measure(NO_LIMIT, made.scores, made.labels, made.weights, made.count, 50000, threads);
        ck_assert_int_eq(memcmp(&one, &more, sizeof one), 0);
    }
    free_rows(&made);
}
END_TEST

START_TEST(goes_over_to_the_histogram)
{
    rows made = make_rows(1000, 0, true, false);
    int64_t entries = 0;
    for (int i = 0; i < 1000; i++)
        entries += made.weights[i] > 0.0f;
    ck_assert_int_lt(entries, 1000);
    tdm_auc_result counted = measure_rows(&made, 0, 9);
    ck_assert_double_gt(counted.error, 0.0);
    ck_assert_double_eq(measure_rows(&made, entries, 9).error, 0.0);
    tdm_auc_result late = measure_rows(&made, entries - 1, 9);
    ck_assert_double_eq(late.auc, counted.auc);
    ck_assert_double_eq(late.error, counted.error);
    tdm_auc_result at_once = measure_rows(&made, entries - 1, 1000);
    ck_assert_double_eq(at_once.auc, counted.auc);
    free_rows(&made);

    rows soft = make_rows(1000, 0, false, true);
    ck_assert_double_eq_tol(measure_rows(&soft, 900, 100).auc, measure_rows(&soft, 0, 100).auc,
                            1e-7);
    ck_assert_double_gt(measure_rows(&soft, 1000, 100).error, 0.0);
    ck_assert_double_eq(measure_rows(&soft, 1334, 100).error, 0.0);
    free_rows(&soft);
}
END_TEST

START_TEST(more_rows_after_a_result)
{
    rows made = make_rows(600, 10, true, false);
    tdm_pool *pool;
    tdm_auc auc;
    tdm_auc_result result;
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_auc_init(&auc, 600));
    ck_assert_ok(tdm_auc_add(&auc, made.scores, made.labels, made.weights, 300));
    ck_assert_ok(tdm_auc_get(&auc, pool, &result));
    ck_assert_ok(tdm_auc_add(&auc, made.scores + 300, made.labels + 300, made.weights + 300, 300));
    ck_assert_ok(tdm_auc_get(&auc, pool, &result));
    ck_assert_double_eq_tol(result.auc, brute_force(&made), 1e-13);

    /* Reset forgets the rows, and that there were too many. */
    ck_assert_ok(tdm_auc_add(&auc, made.scores, made.labels, NULL, 600));
    ck_assert_ptr_nonnull(auc.bins);
    tdm_auc_reset(&auc);
    ck_assert_ok(tdm_auc_get(&auc, pool, &result));
    ck_assert(isnan(result.auc));
    ck_assert_ok(tdm_auc_add(&auc, made.scores, made.labels, made.weights, 600));
    ck_assert_ok(tdm_auc_get(&auc, pool, &result));
    ck_assert_double_eq(result.error, 0.0);
    ck_assert_double_eq_tol(result.auc, brute_force(&made), 1e-13);
    tdm_auc_deinit(&auc);
    tdm_pool_destroy(pool);
    free_rows(&made);
}
END_TEST

/* Both kinds into both kinds, and past the limit. */
START_TEST(merging)
{
    rows made = make_rows(800, 10, true, false);
    const int64_t limits[][2] = {
        {NO_LIMIT, NO_LIMIT}, {0, 0}, {0, NO_LIMIT}, {NO_LIMIT, 0}, {500, NO_LIMIT}};
    tdm_pool *pool;
    ck_assert_ok(tdm_pool_create(1, &pool));
    for (size_t c = 0; c < sizeof limits / sizeof limits[0]; c++) {
        tdm_auc into, from;
        tdm_auc_result result;
        ck_assert_ok(tdm_auc_init(&into, limits[c][0]));
        ck_assert_ok(tdm_auc_init(&from, limits[c][1]));
        ck_assert_ok(tdm_auc_add(&into, made.scores, made.labels, made.weights, 400));
        ck_assert_ok(
            tdm_auc_add(&from, made.scores + 400, made.labels + 400, made.weights + 400, 400));
        ck_assert_ok(tdm_auc_merge(&into, &from));
        ck_assert_ok(tdm_auc_get(&into, pool, &result));
        tdm_auc_result expected = measure_rows(&made, c == 0 ? NO_LIMIT : 0, 800);
        ck_assert_double_eq(result.auc, expected.auc);
        ck_assert_double_eq(result.error, expected.error);
        tdm_auc_deinit(&into);
        tdm_auc_deinit(&from);
    }
    tdm_pool_destroy(pool);
    free_rows(&made);
}
END_TEST

START_TEST(the_histogram_never_allocates)
{
    rows made = make_rows(4096, 0, false, false);
    tdm_auc auc;
    ck_assert_ok(tdm_auc_init(&auc, 0));
    int64_t before = tdm_memory_stats_get().allocations;
    for (int i = 0; i < 3; i++)
        ck_assert_ok(tdm_auc_add(&auc, made.scores, made.labels, NULL, made.count));
    tdm_auc_reset(&auc);
    ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
    tdm_auc_deinit(&auc);
    free_rows(&made);
}
END_TEST

START_TEST(out_of_memory)
{
    const float scores[] = {0.1f, 0.2f}, labels[] = {0, 1};
    tdm_auc auc;
    tdm_auc_result result;
    tdm_pool *pool;
    ck_assert_ok(tdm_pool_create(1, &pool));
    tdm_memory_fail_at(1, false);
    ck_assert_fails(tdm_auc_init(&auc, 0), TDM_E_NOMEM, "out of memory");
    ck_assert_ok(tdm_auc_init(&auc, 2));
    tdm_memory_fail_at(1, false);
    ck_assert_fails(tdm_auc_add(&auc, scores, labels, NULL, 2), TDM_E_NOMEM, "out of memory");
    ck_assert_ok(tdm_auc_add(&auc, scores, labels, NULL, 2));
    tdm_memory_fail_at(1, false);
    ck_assert_fails(tdm_auc_get(&auc, pool, &result), TDM_E_NOMEM, "out of memory");
    tdm_memory_fail_at(1, false);
    ck_assert_fails(tdm_auc_add(&auc, scores, labels, NULL, 2), TDM_E_NOMEM, "out of memory");
    ck_assert_ok(tdm_auc_get(&auc, pool, &result));
    ck_assert_double_eq(result.auc, 1.0);
    tdm_auc_deinit(&auc);
    tdm_pool_destroy(pool);
}
END_TEST

TDM_CHECK_MAIN(known_values, all_ties, one_class_is_undefined, exact_equals_counting_pairs,
               bins_order_as_scores, bins_tell_near_logits_apart, odd_scores_stay_in_range,
               a_million_rows, same_bits_on_any_threads, goes_over_to_the_histogram,
               more_rows_after_a_result, merging, the_histogram_never_allocates, out_of_memory)
