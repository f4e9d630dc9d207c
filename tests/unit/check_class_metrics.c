#include "tests/support/check_main.h"

#include "core/memory.h"
#include "core/rng.h"
#include "tests/support/metrics_rig.h"

#include <math.h>
#include <string.h>

#define ROWS    700
#define CLASSES 5 /* at most */

/* Rows of the kinds that a test goes through. */
typedef struct kind {
    const tdm_metrics_type *type;
    int classes, none;
} kind;

static const kind kinds[] = {
    {&tdm_binary_metrics_type, 2, -1},   {&tdm_class_metrics_type, 5, -1},
    {&tdm_token_metrics_type, 4, 0},     {&tdm_token_metrics_type, 3, -1},
    {&tdm_multiple_metrics_type, 3, -1},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

typedef struct rows {
    kind of;
    float logits[ROWS][CLASSES]; /* or probabilities; packed by step_of() */
    uint32_t labels[ROWS];
    float sets[ROWS][CLASSES];
    float weights[ROWS];
    float packed[ROWS * CLASSES], packed_sets[ROWS * CLASSES];
} rows;

static tdm_metrics_spec spec_of(const kind *of)
{
    return (tdm_metrics_spec){.type = of->type,
                              .classes = {.count = of->classes, .none = of->none}};
}

static bool is_multiple(const rows *made)
{
    return made->of.type == &tdm_multiple_metrics_type;
}

/* The last class is never predicted and never a label. Logits lie on a coarse grid, so that there
 * are ties among them. */
static rows *make_rows(const kind *of)
{
    tdm_philox_key key = tdm_philox_make_key(5, TDM_PURPOSE_SYNTH, 2);
    rows *made;
    ck_assert_ok(tdm_alloc(1, sizeof *made, &made));
    made->of = *of;
    uint32_t used = of->classes > 2 ? (uint32_t)of->classes - 1 : 2;
    for (uint64_t i = 0; i < ROWS; i++) {
        tdm_philox_words words = tdm_random4(key, i, 0, 0);
        made->labels[i] = words.words[0] % 9 == 0 ? TDM_NO_LABEL : words.words[1] % used;
        made->weights[i] = (float)(i % 4) * 0.5f;
        for (int c = 0; c < of->classes; c++) {
            float noise = (float)(words.words[2] >> (4 * c) & 15) / 8 - 1;
            bool is_label = (uint32_t)c == made->labels[i];
            made->sets[i][c] = (words.words[3] >> c & 1) != 0 && (uint32_t)c < used ? 1 : 0;
            made->logits[i][c] = (uint32_t)c >= used ? -9 : noise + (is_label ? 0.5f : 0);
            if (is_multiple(made))
                made->logits[i][c] = (uint32_t)c >= used ? 0.1f : 0.5f + noise / 3;
        }
    }
    return made;
}

/* Rows [from, from + count), with the loss as the op would sum it. */
static tdm_class_step step_of(rows *made, int from, int count)
{
    const int classes = made->of.classes;
    tdm_class_step step = {.rows = count,
                           .count = count,
                           .outputs = made->packed,
                           .labels = is_multiple(made) ? NULL : made->labels + from,
                           .label_sets = is_multiple(made) ? made->packed_sets : NULL,
                           .weights = made->weights + from};
    for (int i = 0; i < count; i++) {
        const float *z = made->logits[from + i];
        double weight = (double)made->weights[from + i];
        uint32_t label = made->labels[from + i];
        bool right = true;
        for (int c = 0; c < classes; c++) {
            made->packed[i * classes + c] = z[c];
            made->packed_sets[i * classes + c] = made->sets[from + i][c];
            if (is_multiple(made)) {
                step.loss.weight_sum += weight;
                step.loss.correct_sum +=
                    (z[c] > 0.5f) == (made->sets[from + i][c] > 0.5f) ? weight : 0;
            } else if (label != TDM_NO_LABEL) {
                right = right && z[c] <= z[label];
            }
        }
        if (is_multiple(made) || label == TDM_NO_LABEL)
            continue;
        step.loss.weight_sum += weight;
        step.loss.correct_sum += right ? weight : 0;
    }
    step.loss.loss_sum = 0.3 * step.loss.weight_sum;
    return step;
}

static void add(tdm_metrics *metrics, rows *made, int from, int count)
{
    const tdm_class_step step = step_of(made, from, count);
    ck_assert_ok(tdm_class_metrics_add(&metrics->of_classes, &step));
}

static tdm_metrics_result measure(rows *made, int64_t exact_auc_rows)
{
    const tdm_metrics_spec spec = spec_of(&made->of);
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &spec, exact_auc_rows));
    add(&metrics, made, 0, ROWS);
    tdm_metrics_result result = tdm_test_result(&metrics);
    tdm_metrics_deinit(&metrics);
    return result;
}

static double get(const tdm_metrics_result *result, const char *name)
{
    return tdm_test_metric(result, name);
}

/* ---- against plain loops --------------------------------------------------------------------- */

static int predicted(const rows *made, int row)
{
    int best = (int)made->labels[row];
    for (int c = 0; c < made->of.classes; c++)
        best = made->logits[row][c] > made->logits[row][best] ? c : best;
    return best;
}

/* confusion[label][prediction] */
static double count_confusion(const rows *made, double confusion[CLASSES][CLASSES])
{
    double count = 0;
    memset(confusion, 0, CLASSES * sizeof confusion[0]);
    for (int i = 0; i < ROWS; i++) {
        if (made->labels[i] == TDM_NO_LABEL || made->weights[i] == 0)
            continue;
        confusion[made->labels[i]][predicted(made, i)] += (double)made->weights[i];
        count++;
    }
    return count;
}

/* Of one class, or of all but `none` where `class` is -1. */
static double f1(double confusion[CLASSES][CLASSES], int class, int none)
{
    double right = 0, wrong = 0;
    for (int c = 0; c < CLASSES; c++) {
        if (class >= 0 ? c != class : c == none)
            continue;
        right += confusion[c][c];
        for (int d = 0; d < CLASSES; d++)
            wrong += c == d ? 0 : confusion[c][d] + confusion[d][c];
    }
    return 2 * right / (2 * right + wrong);
}

static double accuracy(double confusion[CLASSES][CLASSES])
{
    double right = 0, all = 0;
    for (int c = 0; c < CLASSES; c++) {
        right += confusion[c][c];
        for (int d = 0; d < CLASSES; d++)
            all += confusion[c][d];
    }
    return right / all;
}

START_TEST(classes)
{
    double confusion[CLASSES][CLASSES];
    rows *made = make_rows(&kinds[1]);
    tdm_metrics_result result = measure(made, 0);
    (void)count_confusion(made, confusion);
    ck_assert_int_eq(result.rows, ROWS);
    ck_assert_int_eq(result.count, 3);
    ck_assert_double_eq_tol(get(&result, "loss"), 0.3, 1e-15);
    ck_assert_double_eq_tol(get(&result, "accuracy"), accuracy(confusion), 1e-14);
    double sum = 0;
    for (int c = 0; c < 4; c++)
        sum += f1(confusion, c, -1);
    ck_assert_double_eq_tol(get(&result, "macro_f1"), sum / 4, 1e-14);
    tdm_free(made);
}
END_TEST

START_TEST(tokens)
{
    double confusion[CLASSES][CLASSES];
    for (int k = 2; k <= 3; k++) {
        rows *made = make_rows(&kinds[k]);
        tdm_metrics_result result = measure(made, 0);
        double labels = count_confusion(made, confusion);
        ck_assert_int_eq(result.count, 4);
        ck_assert_double_eq(get(&result, "labels"), labels);
        ck_assert_double_eq_tol(get(&result, "accuracy"), accuracy(confusion), 1e-14);
        ck_assert_double_eq_tol(get(&result, "micro_f1"), f1(confusion, -1, kinds[k].none), 1e-14);
        if (kinds[k].none < 0)
            ck_assert_double_eq_tol(get(&result, "micro_f1"), get(&result, "accuracy"), 1e-14);
        tdm_free(made);
    }
}
END_TEST

/* Pairs that are in order, ties counted half. */
static double auc_by_pairs(const rows *made)
{
    double wins = 0, pairs = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < ROWS; j++) {
            if (made->labels[i] != 1 || made->labels[j] != 0)
                continue;
            double weight = (double)made->weights[i] * (double)made->weights[j];
            double a = (double)made->logits[i][1] - (double)made->logits[i][0];
            double b = (double)made->logits[j][1] - (double)made->logits[j][0];
            wins += weight * (a > b ? 1 : a == b ? 0.5 : 0);
            pairs += weight;
        }
    }
    return wins / pairs;
}

START_TEST(two_classes)
{
    double confusion[CLASSES][CLASSES];
    rows *made = make_rows(&kinds[0]);
    (void)count_confusion(made, confusion);
    for (int exact = 0; exact < 2; exact++) {
        tdm_metrics_result result = measure(made, exact ? 10000 : 0);
        ck_assert_int_eq(result.count, 5);
        ck_assert_double_eq_tol(get(&result, "accuracy"), accuracy(confusion), 1e-14);
        ck_assert_double_eq_tol(get(&result, "f1"), f1(confusion, 1, -1), 1e-14);
        ck_assert_double_le(fabs(get(&result, "auc") - auc_by_pairs(made)),
                            get(&result, "auc_error") + 1e-12);
        ck_assert(exact ? get(&result, "auc_error") == 0 : get(&result, "auc_error") < 0.1);
    }
    tdm_free(made);
}
END_TEST

START_TEST(any_number_of_classes)
{
    rows *made = make_rows(&kinds[4]);
    tdm_metrics_result result = measure(made, 0);
    double right = 0, wrong = 0, equal = 0, all = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < made->of.classes; c++) {
            bool yes = made->logits[i][c] > 0.5f, label = made->sets[i][c] > 0;
            double weight = (double)made->weights[i];
            right += yes && label ? weight : 0;
            wrong += yes != label ? weight : 0;
            equal += yes == label ? weight : 0;
            all += weight;
        }
    }
    ck_assert_double_eq_tol(get(&result, "accuracy"), equal / all, 1e-14);
    ck_assert_double_eq_tol(get(&result, "micro_f1"), 2 * right / (2 * right + wrong), 1e-14);
    tdm_free(made);
}
END_TEST

/* ---- small cases ----------------------------------------------------------------------------- */

static tdm_metrics_result measure_one(const kind *of, const float *outputs, uint32_t label,
                                      double loss)
{
    const tdm_metrics_spec spec = spec_of(of);
    const tdm_class_step step = {.rows = 1,
                                 .count = 1,
                                 .outputs = outputs,
                                 .labels = &label,
                                 .loss = {.weight_sum = 1, .loss_sum = loss, .correct_sum = 1}};
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &spec, 0));
    ck_assert_ok(tdm_class_metrics_add(&metrics.of_classes, &step));
    tdm_metrics_result result = tdm_test_result(&metrics);
    tdm_metrics_deinit(&metrics);
    return result;
}

START_TEST(of_equal_logits_the_label_counts)
{
    const float equal[CLASSES] = {1, 1, 1, 1, 1};
    for (uint32_t label = 0; label < CLASSES; label++) {
        tdm_metrics_result result = measure_one(&kinds[1], equal, label, 0.5);
        ck_assert_double_eq(get(&result, "macro_f1"), 1);
    }
}
END_TEST

START_TEST(what_is_not_defined)
{
    const float sure[] = {3, -3};
    tdm_metrics_result negatives = measure_one(&kinds[0], sure, 0, 0.5);
    ck_assert(isnan(get(&negatives, "auc")) && isnan(get(&negatives, "auc_error")));
    ck_assert(isnan(get(&negatives, "f1")));
    ck_assert_double_eq(get(&negatives, "accuracy"), 1);
    tdm_metrics_result missed = measure_one(&kinds[0], sure, 1, 0.5);
    ck_assert_double_eq(get(&missed, "f1"), 0);

    const tdm_class_step nothing = {0};
    for (size_t k = 0; k < KINDS; k++) {
        const tdm_metrics_spec spec = spec_of(&kinds[k]);
        tdm_metrics metrics;
        ck_assert_ok(tdm_metrics_init(&metrics, &spec, 0));
        ck_assert_ok(tdm_class_metrics_add(&metrics.of_classes, &nothing));
        tdm_metrics_result none = tdm_test_result(&metrics);
        ck_assert_int_eq(none.rows, 0);
        for (int i = 0; i < none.count; i++)
            ck_assert(none.items[i].metric->is_count ? none.items[i].value == 0
                                                     : isnan(none.items[i].value));
        tdm_metrics_deinit(&metrics);
    }
}
END_TEST

START_TEST(nan_shows)
{
    const float lost[CLASSES] = {NAN, 1, NAN, 1, 1};
    for (size_t k = 0; k < 4; k++) {
        tdm_metrics_result result = measure_one(&kinds[k], lost, 1, NAN);
        for (int i = 0; i < result.count; i++)
            ck_assert(result.items[i].metric->is_count || isnan(result.items[i].value));
    }
}
END_TEST

/* ---- windows and checkpoints ----------------------------------------------------------------- */

START_TEST(windows_and_merging)
{
    for (size_t k = 0; k < KINDS; k++) {
        rows *made = make_rows(&kinds[k]);
        const tdm_metrics_spec spec = spec_of(&kinds[k]);
        tdm_metrics window, total, whole;
        ck_assert_ok(tdm_metrics_init(&window, &spec, 0));
        ck_assert_ok(tdm_metrics_init(&total, &spec, 0));
        ck_assert_ok(tdm_metrics_init(&whole, &spec, 0));
        int64_t before = tdm_memory_stats_get().allocations;
        for (int at = 0; at < ROWS; at += 100) {
            tdm_metrics_reset(&window);
            add(&window, made, at, 60);
            add(&window, made, at + 60, 40);
            ck_assert_ok(tdm_metrics_merge(&total, &window));
        }
        ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
        add(&whole, made, 0, ROWS);
        tdm_test_same_result(&total, &whole, 1e-13);
        tdm_metrics_deinit(&window);
        tdm_metrics_deinit(&total);
        tdm_metrics_deinit(&whole);
        tdm_free(made);
    }
}
END_TEST

START_TEST(restored_to_the_bit)
{
    for (size_t k = 0; k < KINDS; k++) {
        rows *made = make_rows(&kinds[k]);
        const tdm_metrics_spec spec = spec_of(&kinds[k]);
        tdm_metrics never_stopped, resumed;
        ck_assert_ok(tdm_metrics_init(&never_stopped, &spec, 0));
        ck_assert_ok(tdm_metrics_init(&resumed, &spec, 0));
        for (int i = 0; i < ROWS; i++)
            made->weights[i] *= 0.1f;
        for (int at = 0; at < ROWS; at += 175) {
            tdm_test_save_and_restore(&never_stopped, &resumed);
            tdm_test_same_bits(&never_stopped, &resumed);
            add(&never_stopped, made, at, 175);
            add(&resumed, made, at, 175);
            tdm_test_same_bits(&never_stopped, &resumed);
            tdm_test_same_result(&never_stopped, &resumed, 0);
        }
        tdm_metrics_deinit(&never_stopped);
        tdm_metrics_deinit(&resumed);
        tdm_free(made);
    }
}
END_TEST

START_TEST(damaged_state)
{
    const tdm_test_damage damages[] = {
        {"rows", "-1", "rows is not a count"},
        {"labels", "1.5", "labels is not a count"},
        {"loss", "[1, 2]", "loss is not the sums"},
        {"classes", "{}", "classes is not a list"},
        {"classes", "[1, 1, 1]", "classes is not a list"},
        {"classes", "[2, 1, 1, 1]", "classes is damaged at item 0"},
        {"classes", "[-1, 1, 1, 1]", "classes is damaged at item 0"},
        {"classes", "[1, 1, 1, 1, 0, 1, 1, 1]", "classes is damaged at item 4"},
        {"classes", "[0, 0.5, 1, 1]", "classes is damaged at item 0"},
        {"classes", "[0, 1, -1, 1]", "classes is damaged at item 0"},
        {"classes", "[0, 1, 1, \"7ff8000000000000\"]", "classes is damaged at item 0"},
        {"auc_bins", "[1, 2]", "auc_bins is not a list"},
    };
    rows *made = make_rows(&kinds[0]);
    const tdm_metrics_spec spec = spec_of(&kinds[0]);
    tdm_metrics metrics;
    ck_assert_ok(tdm_metrics_init(&metrics, &spec, 0));
    add(&metrics, made, 0, 100);
    tdm_test_damaged_metrics(&metrics, damages, sizeof damages / sizeof damages[0]);
    tdm_metrics_deinit(&metrics);
    tdm_free(made);
}
END_TEST

START_TEST(out_of_memory)
{
    const tdm_metrics_spec spec = spec_of(&kinds[0]);
    tdm_metrics metrics;
    for (int n = 1; n <= 2; n++) {
        tdm_memory_fail_at(n, false);
        ck_assert_fails(tdm_metrics_init(&metrics, &spec, 0), TDM_E_NOMEM, "out of memory");
    }
    for (size_t k = 0; k < KINDS; k++) {
        const tdm_metrics_spec every = spec_of(&kinds[k]);
        rows *made = make_rows(&kinds[k]);
        ck_assert_ok(tdm_metrics_init(&metrics, &every, 0));
        add(&metrics, made, 0, 100);
        tdm_test_save_without_memory(&metrics);
        tdm_metrics_deinit(&metrics);
        tdm_free(made);
    }
}
END_TEST

TDM_CHECK_MAIN(classes, tokens, two_classes, any_number_of_classes,
               of_equal_logits_the_label_counts, what_is_not_defined, nan_shows,
               windows_and_merging, restored_to_the_bit, damaged_state, out_of_memory)
