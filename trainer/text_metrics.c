#include "trainer/loss_sums.h"
#include "trainer/metrics.h"
#include "trainer/saved_number.h"

enum { MASKED, PAIRS };

static void add_losses(tdm_loss_scalars *into, const tdm_loss_scalars *from)
{
    for (int i = 0; i < TDM_LOSSES; i++)
        tdm_loss_sums_add(&into[i], &from[i]);
}

void tdm_text_metrics_add(tdm_text_metrics *metrics, const tdm_text_counts_step *step)
{
    metrics->rows += step->rows;
    metrics->tokens += step->tokens;
    metrics->unknown += step->unknown;
    metrics->capacity += step->capacity;
    add_losses(metrics->losses, step->losses);
}

/* ---- the accumulator ------------------------------------------------------------------------- */

static void reset(tdm_metrics *metrics)
{
    metrics->text = (tdm_text_metrics){0};
}

static tdm_status merge(tdm_metrics *into_all, const tdm_metrics *from_all)
{
    tdm_text_metrics *into = &into_all->text;
    const tdm_text_metrics *from = &from_all->text;
    into->rows += from->rows;
    into->tokens += from->tokens;
    into->unknown += from->unknown;
    into->capacity += from->capacity;
    add_losses(into->losses, from->losses);
    return TDM_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static int save(const tdm_metrics *metrics, json_t *object)
{
    const tdm_text_metrics *text = &metrics->text;
    int failed = json_object_set_new(object, "rows", json_integer(text->rows));
    failed |= json_object_set_new(object, "tokens", json_integer(text->tokens));
    failed |= json_object_set_new(object, "unknown", json_integer(text->unknown));
    failed |= json_object_set_new(object, "capacity", json_integer(text->capacity));
    failed |= json_object_set_new(object, "masked", tdm_loss_sums_save(&text->losses[MASKED]));
    failed |= json_object_set_new(object, "pairs", tdm_loss_sums_save(&text->losses[PAIRS]));
    return failed;
}

static tdm_status restore(tdm_metrics *metrics, const json_t *saved)
{
    tdm_text_metrics *text = &metrics->text;
    TDM_TRY(tdm_saved_count_restore(saved, "rows", &text->rows));
    TDM_TRY(tdm_saved_count_restore(saved, "tokens", &text->tokens));
    TDM_TRY(tdm_saved_count_restore(saved, "unknown", &text->unknown));
    TDM_TRY(tdm_saved_count_restore(saved, "capacity", &text->capacity));
    TDM_TRY(tdm_loss_sums_restore(saved, "masked", &text->losses[MASKED]));
    return tdm_loss_sums_restore(saved, "pairs", &text->losses[PAIRS]);
}

/* ---- the result ------------------------------------------------------------------------------ */

enum {
    LOSS,
    MASKED_LOSS,
    MASKED_ACCURACY,
    PAIR_LOSS,
    PAIR_ACCURACY,
    PERPLEXITY,
    TOKENS,
    PREDICTIONS,
    UNKNOWN_SHARE,
    FILL,
    METRICS,
};

static const tdm_metric metrics_of_text[METRICS] = {
    [LOSS] = {.name = "loss",
              .title = "loss",
              .brief = "loss",
              .headline = 1,
              .decimals = 5,
              .goal = TDM_GOAL_LOWER},
    [MASKED_LOSS] = {.name = "masked_loss", .title = "masked loss"},
    [MASKED_ACCURACY] = {.name = "masked_accuracy",
                         .title = "masked accuracy",
                         .brief = "accuracy",
                         .headline = 2,
                         .decimals = 5,
                         .goal = TDM_GOAL_HIGHER},
    [PAIR_LOSS] = {.name = "pair_loss", .title = "pair loss", .is_optional = true},
    [PAIR_ACCURACY] = {.name = "pair_accuracy",
                       .title = "pair accuracy",
                       .brief = "pairs",
                       .headline = 4,
                       .decimals = 5,
                       .is_optional = true},
    [PERPLEXITY] = {.name = "perplexity",
                    .title = "perplexity",
                    .brief = "perplexity",
                    .headline = 3,
                    .decimals = 2},
    [TOKENS] = {.name = "tokens", .title = "tokens", .is_count = true, .is_work = true},
    [PREDICTIONS] = {.name = "predictions", .title = "predictions", .is_count = true},
    [UNKNOWN_SHARE] = {.name = "unknown_share", .title = "unknown share"},
    [FILL] = {.name = "fill", .title = "fill"},
};

/* Of the losses that say something; NaN where none does. */
static double sum_of_means(const tdm_loss_scalars *losses)
{
    double sum = 0;
    bool any = false;
    for (int i = 0; i < TDM_LOSSES; i++) {
        if (!(losses[i].weight_sum > 0.0))
            continue;
        sum += tdm_loss_sums_mean(&losses[i]);
        any = true;
    }
    return any ? sum : NAN;
}

static tdm_status result(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out)
{
    const tdm_text_metrics *text = &metrics->text;
    const tdm_loss_scalars *masked = &text->losses[MASKED], *pairs = &text->losses[PAIRS];
    const double values[METRICS] = {
        [LOSS] = sum_of_means(text->losses),
        [MASKED_LOSS] = tdm_loss_sums_mean(masked),
        [MASKED_ACCURACY] = tdm_loss_sums_accuracy(masked),
        [PAIR_LOSS] = tdm_loss_sums_mean(pairs),
        [PAIR_ACCURACY] = tdm_loss_sums_accuracy(pairs),
        [PERPLEXITY] = exp(tdm_loss_sums_mean(masked)),
        [TOKENS] = (double)text->tokens,
        [PREDICTIONS] = masked->weight_sum,
        [UNKNOWN_SHARE] = tdm_ratio((double)text->unknown, (double)text->tokens),
        [FILL] = tdm_ratio((double)text->tokens, (double)text->capacity),
    };
    (void)pool;
    *out = (tdm_metrics_result){.rows = text->rows};
    for (int i = 0; i < METRICS; i++) {
        if (!metrics_of_text[i].is_optional || pairs->weight_sum > 0.0)
            tdm_metrics_result_add(out, &metrics_of_text[i], values[i]);
    }
    return TDM_OK;
}

const tdm_metrics_type tdm_text_metrics_type = {
    .name = "masked tokens",
    .metrics = metrics_of_text,
    .metric_count = METRICS,
    .best = "loss",
    .reset = reset,
    .merge = merge,
    .save = save,
    .restore = restore,
    .result = result,
};
