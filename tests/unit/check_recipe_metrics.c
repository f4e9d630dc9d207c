/* How a recipe's results are measured, and which of its metrics makes a checkpoint the best. */
#include "tests/support/check_main.h"
#include "trainer/recipe.h"

#include <stdio.h>
#include <string.h>

static const char ctr[] = "features: {label: y, fields: [{column: a}]}\n"
                          "data: {format: csv, train: a.csv}\n"
                          "model: {type: logistic_regression}\n";
static const char mlm[] = "task: mlm\n"
                          "data: {train: a.txt}\n"
                          "text: {tokenizer: vocab.txt}\n"
                          "model: {type: bert}\n";
static const char classify[] = "task: classify\n"
                               "data: {train: a.tsv}\n"
                               "text: {tokenizer: vocab.txt}\n"
                               "model: {type: bert}\n";

#define TWO        "labels.classes=[no, yes]"
#define THREE      "labels.classes=[a, b, c]"
#define MULTIPLE   "labels={type: multiple, classes: [a, b]}"
#define REGRESSION "labels.type=regression"
#define TOKENS     "labels={type: tokens, classes: [B, I, O]}"
#define BEST(name) "checkpoint.keep_best=" name

static tdm_recipe *parse(const char *text, const char *first, const char *second)
{
    const char *overrides[2];
    tdm_recipe_arguments arguments = {.overrides = overrides};
    tdm_recipe *recipe;
    if (first != NULL)
        overrides[arguments.override_count++] = first;
    if (second != NULL)
        overrides[arguments.override_count++] = second;
    ck_assert_ok(tdm_recipe_parse(text, strlen(text), "r.yaml", &arguments, &recipe));
    return recipe;
}

static const struct {
    const char *text, *labels;
    const tdm_metrics_type *type;
    int64_t classes, none;
} kinds[] = {
    {ctr, NULL, &tdm_click_metrics_type, 0, 0},
    {mlm, NULL, &tdm_text_metrics_type, 0, 0},
    {classify, TWO, &tdm_binary_metrics_type, 2, -1},
    {classify, THREE, &tdm_class_metrics_type, 3, -1},
    {classify, "labels.classes=[O, a, b]", &tdm_class_metrics_type, 3, -1},
    {classify, MULTIPLE, &tdm_multiple_metrics_type, 2, -1},
    {classify, REGRESSION, &tdm_regression_metrics_type, 0, -1},
    {classify, TOKENS, &tdm_token_metrics_type, 3, 2},
    {classify, "labels={type: tokens, classes: [a, b]}", &tdm_token_metrics_type, 2, -1},
};

START_TEST(test_kinds)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        tdm_recipe *recipe = parse(kinds[i].text, kinds[i].labels, NULL);
        tdm_metrics_spec spec = tdm_recipe_metrics(recipe);
        ck_assert_ptr_eq(spec.type, kinds[i].type);
        ck_assert_int_eq(spec.classes.none, kinds[i].none);
        if (kinds[i].classes > 0)
            ck_assert_int_eq(spec.classes.count, kinds[i].classes);
        tdm_recipe_free(recipe);
    }
}
END_TEST

static const struct {
    const char *text, *labels, *choice;
    const char *metric, *resolved; /* NULL: none */
    bool higher;
} choices[] = {
    {ctr, NULL, NULL, "auc", "auc", true},
    {ctr, NULL, BEST("logloss"), "logloss", "logloss", false},
    {ctr, NULL, BEST("none"), NULL, "none", false},
    {mlm, NULL, NULL, "loss", "loss", false},
    {mlm, NULL, BEST("masked_accuracy"), "masked_accuracy", "masked_accuracy", true},
    {mlm, NULL, BEST("none"), NULL, "none", false},
    {classify, TWO, NULL, "accuracy", "accuracy", true},
    {classify, TWO, BEST("auc"), "auc", "auc", true},
    {classify, TWO, BEST("f1"), "f1", "f1", true},
    {classify, THREE, BEST("auto"), "accuracy", "accuracy", true},
    {classify, THREE, BEST("f1"), "macro_f1", "f1", true},
    {classify, MULTIPLE, NULL, "micro_f1", "f1", true},
    {classify, MULTIPLE, BEST("accuracy"), "accuracy", "accuracy", true},
    {classify, TOKENS, NULL, "micro_f1", "f1", true},
    {classify, TOKENS, BEST("loss"), "loss", "loss", false},
    {classify, REGRESSION, NULL, "pearson", "pearson", true},
    {classify, REGRESSION, BEST("r2"), "r2", "r2", true},
    {classify, REGRESSION, BEST("none"), NULL, "none", false},
};

START_TEST(test_the_best)
{
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        tdm_recipe *recipe = parse(choices[i].text, choices[i].labels, choices[i].choice);
        tdm_metrics_spec spec = tdm_recipe_metrics(recipe);
        const tdm_metric *best;
        ck_assert_ok(tdm_recipe_best_metric(recipe, spec.type, &best));
        if (choices[i].metric != NULL) {
            ck_assert_str_eq(best->name, choices[i].metric);
            ck_assert_int_eq(best->goal, choices[i].higher ? TDM_GOAL_HIGHER : TDM_GOAL_LOWER);
        } else {
            ck_assert_ptr_null(best);
        }
        tdm_text text = {0};
        char line[64];
        snprintf(line, sizeof line, "  keep_best: %s\n", choices[i].resolved);
        ck_assert_ok(tdm_recipe_emit(recipe, &text));
        ck_assert_ptr_nonnull(strstr(text.bytes, line));
        tdm_text_free(&text);
        tdm_recipe_free(recipe);
    }
}
END_TEST

START_TEST(test_metrics_that_a_kind_lacks)
{
    const struct {
        const char *labels, *choice, *message;
    } cases[] = {
        {THREE, BEST("auc"),
         "checkpoint.keep_best: auc is no metric of more than two classes: take accuracy, f1, "
         "loss, or none"},
        {TWO, BEST("pearson"),
         "pearson is no metric of two classes: take accuracy, f1, auc, loss, or none"},
        {REGRESSION, BEST("accuracy"),
         "accuracy is no metric of numbers: take loss, pearson, r2, or none"},
        {MULTIPLE, BEST("auc"), "auc is no metric of any number of classes"},
        {TOKENS, BEST("r2"), "r2 is no metric of classes of tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_recipe *recipe = parse(classify, cases[i].labels, cases[i].choice);
        tdm_metrics_spec spec = tdm_recipe_metrics(recipe);
        const tdm_metric *best;
        ck_assert_fails(tdm_recipe_best_metric(recipe, spec.type, &best), TDM_E_CONFIG,
                        cases[i].message);
        ck_assert_ptr_null(best);
        tdm_recipe_free(recipe);
    }
}
END_TEST

START_TEST(test_metrics_that_a_task_lacks)
{
    const struct {
        const char *text, *choice, *message;
    } cases[] = {
        {ctr, BEST("loss"), "expected one of auc, logloss, none, not loss"},
        {mlm, BEST("auc"), "expected one of loss, masked_accuracy, none, not auc"},
        {classify, BEST("logloss"), "checkpoint.keep_best: expected one of auto, accuracy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tdm_recipe_arguments arguments = {.overrides = &cases[i].choice, .override_count = 1};
        tdm_recipe *recipe;
        ck_assert_fails(
            tdm_recipe_parse(cases[i].text, strlen(cases[i].text), "r.yaml", &arguments, &recipe),
            TDM_E_CONFIG, cases[i].message);
    }
}
END_TEST

TDM_CHECK_MAIN(test_kinds, test_the_best, test_metrics_that_a_kind_lacks,
               test_metrics_that_a_task_lacks)
