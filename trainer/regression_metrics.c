#include "trainer/loss_sums.h"
#include "trainer/metrics.h"
#include "trainer/saved_number.h"

/* ---- adding ---------------------------------------------------------------------------------- */

/* Puts the moments of `from`, which has weight, to those of `into`. */
static void add_moments(tdm_regression_metrics *into, const tdm_regression_metrics *from)
{
    double weight = into->weight_sum + from->weight_sum;
    double share = from->weight_sum / weight;
    double between = into->weight_sum * share;
    double label = from->label_mean - into->label_mean;
    double prediction = from->prediction_mean - into->prediction_mean;
    into->label_squares += from->label_squares + label * label * between;
    into->prediction_squares += from->prediction_squares + prediction * prediction * between;
    into->products += from->products + label * prediction * between;
    into->label_mean += label * share;
    into->prediction_mean += prediction * share;
    into->error_squares += from->error_squares;
    into->weight_sum = weight;
}

void tdm_regression_metrics_add(tdm_regression_metrics *metrics, const float *predictions,
                                const float *labels, const float *weights, int64_t rows,
                                const tdm_loss_scalars *loss)
{
    for (int64_t i = 0; i < rows; i++) {
        double weight = weights == NULL ? 1.0 : (double)weights[i];
        double prediction = (double)predictions[i], label = (double)labels[i];
        if (weight == 0.0)
            continue;
        const tdm_regression_metrics row = {
            .weight_sum = weight,
            .label_mean = label,
            .prediction_mean = prediction,
            .error_squares = weight * (prediction - label) * (prediction - label),
        };
        add_moments(metrics, &row);
        metrics->rows++;
    }
    tdm_loss_sums_add(&metrics->loss, loss);
}

/* ---- the accumulator ------------------------------------------------------------------------- */

static void reset(tdm_metrics *metrics)
{
    metrics->regression = (tdm_regression_metrics){0};
}

static tdm_status merge(tdm_metrics *into_all, const tdm_metrics *from_all)
{
    tdm_regression_metrics *into = &into_all->regression;
    const tdm_regression_metrics *from = &from_all->regression;
    if (from->weight_sum > 0.0)
        add_moments(into, from);
    into->rows += from->rows;
    tdm_loss_sums_add(&into->loss, &from->loss);
    return TDM_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t offset;
} sums[] = {
    {"weight_sum", offsetof(tdm_regression_metrics, weight_sum)},
    {"label_mean", offsetof(tdm_regression_metrics, label_mean)},
    {"prediction_mean", offsetof(tdm_regression_metrics, prediction_mean)},
    {"label_squares", offsetof(tdm_regression_metrics, label_squares)},
    {"prediction_squares", offsetof(tdm_regression_metrics, prediction_squares)},
    {"products", offsetof(tdm_regression_metrics, products)},
    {"error_squares", offsetof(tdm_regression_metrics, error_squares)},
};
#define SUMS (sizeof sums / sizeof sums[0])

static int save(const tdm_metrics *metrics, json_t *object)
{
    const tdm_regression_metrics *regression = &metrics->regression;
    int failed = json_object_set_new(object, "rows", json_integer(regression->rows));
    failed |= json_object_set_new(object, "loss", tdm_loss_sums_save(&regression->loss));
    for (size_t i = 0; i < SUMS; i++) {
        const void *at = (const char *)regression + sums[i].offset;
        failed |= json_object_set_new(object, sums[i].name, tdm_saved_double(*(const double *)at));
    }
    return failed;
}

static tdm_status restore(tdm_metrics *metrics, const json_t *saved)
{
    tdm_regression_metrics *regression = &metrics->regression;
    TDM_TRY(tdm_saved_count_restore(saved, "rows", &regression->rows));
    TDM_TRY(tdm_loss_sums_restore(saved, "loss", &regression->loss));
    for (size_t i = 0; i < SUMS; i++) {
        void *at = (char *)regression + sums[i].offset;
        TDM_TRY(tdm_saved_double_restore(saved, sums[i].name, at));
    }
    return TDM_OK;
}

/* ---- the result ------------------------------------------------------------------------------ */

enum { LOSS, MSE, PEARSON, R2, METRICS };

static const tdm_metric table[METRICS] = {
    [LOSS] = {.name = "loss",
              .title = "loss",
              .brief = "loss",
              .headline = 1,
              .decimals = 5,
              .goal = TDM_GOAL_LOWER},
    [MSE] = {.name = "mse", .title = "mean squared error"},
    [PEARSON] = {.name = "pearson",
                 .title = "pearson",
                 .brief = "Pearson",
                 .headline = 2,
                 .decimals = 5,
                 .goal = TDM_GOAL_HIGHER},
    [R2] = {.name = "r2",
            .title = "r2",
            .brief = "R2",
            .headline = 3,
            .decimals = 5,
            .goal = TDM_GOAL_HIGHER},
};

static tdm_status result(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out)
{
    const tdm_regression_metrics *regression = &metrics->regression;
    double spread = sqrt(regression->label_squares * regression->prediction_squares);
    const double values[METRICS] = {
        [LOSS] = tdm_loss_sums_mean(&regression->loss),
        [MSE] = tdm_ratio(regression->error_squares, regression->weight_sum),
        [PEARSON] = tdm_ratio(regression->products, spread),
        [R2] = 1.0 - tdm_ratio(regression->error_squares, regression->label_squares),
    };
    (void)pool;
    *out = (tdm_metrics_result){.rows = regression->rows};
    for (int i = 0; i < METRICS; i++)
        tdm_metrics_result_add(out, &table[i], values[i]);
    return TDM_OK;
}

const tdm_metrics_type tdm_regression_metrics_type = {
    .name = "numbers",
    .metrics = table,
    .metric_count = METRICS,
    .best = "pearson",
    .reset = reset,
    .merge = merge,
    .save = save,
    .restore = restore,
    .result = result,
};
