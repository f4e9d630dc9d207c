#include "cli/progress.h"

#include "cli/console.h"
#include "core/clock.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#define LINE_BYTES       320
#define STEP_METRICS     2
#define STEP_DECIMALS    4
#define TERMINAL_SECONDS 0.2 /* between two writings of the line */

/* ---- numbers for people ---------------------------------------------------------------------- */

static char *next_text(void)
{
    static _Thread_local char texts[8][32];
    static _Thread_local int next;
    return texts[next++ % 8];
}

const char *tdm_count_text(double count)
{
    char *text = next_text();
    if (count >= 999.5e6)
        snprintf(text, 32, "%.2f G", count / 1e9);
    else if (count >= 999.5e3)
        snprintf(text, 32, "%.2f M", count / 1e6);
    else if (count >= 10e3)
        snprintf(text, 32, "%.1f k", count / 1e3);
    else
        snprintf(text, 32, "%.0f", count);
    return text;
}

const char *tdm_duration_text(double seconds)
{
    char *text = next_text();
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e8) {
        snprintf(text, 32, "?");
        return text;
    }
    long whole = lround(seconds);
    if (whole >= 3600)
        snprintf(text, 32, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else if (whole >= 60)
        snprintf(text, 32, "%ld:%02ld", whole / 60, whole % 60);
    else
        snprintf(text, 32, "%ld s", whole);
    return text;
}

/* ---- the line -------------------------------------------------------------------------------- */

void tdm_progress_init(tdm_progress *progress, const char *what, double every_seconds)
{
    double now = tdm_clock_seconds();
    *progress = (tdm_progress){.what = what,
                               .every_seconds = every_seconds,
                               .started = now,
                               .first_share = -1,
                               .last_shown = now};
}

/* Whether it is time for another line. */
static bool is_due(tdm_progress *progress)
{
    double now = tdm_clock_seconds();
    double pause = tdm_console_is_terminal() ? TERMINAL_SECONDS : progress->every_seconds;
    if (now - progress->last_shown < pause)
        return false;
    progress->last_shown = now;
    return true;
}

static void show(const char *line)
{
    if (tdm_console_is_terminal())
        tdm_console_status(line);
    else
        tdm_console_print("%s", line);
}

void tdm_progress_end(tdm_progress *progress)
{
    (void)progress;
    tdm_console_status("");
}

void tdm_progress_rows(void *context, int64_t rows, double share)
{
    tdm_progress *progress = context;
    if (progress->first_share < 0)
        progress->first_share = isfinite(share) ? share : 0;
    if (!is_due(progress))
        return;
    double seconds = tdm_clock_seconds() - progress->started;
    double done = share - progress->first_share;
    char line[LINE_BYTES];
    int length = snprintf(line, sizeof line, "%s  %s rows  %s rows/s", progress->what,
                          tdm_count_text((double)rows), tdm_count_text((double)rows / seconds));
    if (isfinite(share) && done > 0)
        snprintf(line + length, sizeof line - (size_t)length, "  %.0f%%  %s left", 100 * share,
                 tdm_duration_text(seconds * (1 - share) / done));
    show(line);
}

void tdm_progress_show(tdm_progress *progress, const char *format, ...)
{
    if (!is_due(progress))
        return;
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(line, sizeof line, "%s  ", progress->what);
    vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
    va_end(arguments);
    show(line);
}

/* ---- training -------------------------------------------------------------------------------- */

/* A line being made; what does not fit is left out. */
typedef struct text_line {
    char text[LINE_BYTES];
    size_t length;
} text_line;

static void append(text_line *line, const char *format, ...) TDM_PRINTF(2, 3);

static void append(text_line *line, const char *format, ...)
{
    size_t room = sizeof line->text - line->length;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        line->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* The one that is running, or has ended. */
static void append_epoch(text_line *line, const tdm_train_status *status)
{
    long long epoch = status->epoch + (status->event != TDM_EVENT_EPOCH);
    if (status->epochs > 1)
        append(line, "epoch %lld/%lld  ", epoch, (long long)status->epochs);
    else if (status->epochs == 0)
        append(line, "epoch %lld  ", epoch);
}

/* Which side waits for which. */
static const char *balance(const tdm_train_status *status)
{
    char *text = next_text();
    if (status->wait_for_batches > 0.1 && status->wait_for_batches > status->wait_for_step)
        snprintf(text, 32, "model waits %.0f%%", 100 * status->wait_for_batches);
    else if (status->wait_for_step > 0.1)
        snprintf(text, 32, "reader waits %.0f%%", 100 * status->wait_for_step);
    else
        snprintf(text, 32, "in balance");
    return text;
}

/* "loss 0.4512  AUC 0.8012  ": at most `most` metrics of the headline, its first ones. */
static void append_metrics(text_line *line, const tdm_metrics_result *result, int most,
                           int most_decimals)
{
    for (int i = 1; i <= most; i++) {
        const tdm_metric_value *item = tdm_metrics_result_headline(result, i);
        if (item == NULL)
            continue;
        int decimals =
            item->metric->decimals < most_decimals ? item->metric->decimals : most_decimals;
        append(line, fabs(item->value) < 1e12 ? "%s %.*f  " : "%s %.*g  ", item->metric->brief,
               decimals, item->value);
    }
}

static void append_speed(text_line *line, const tdm_train_status *status)
{
    const char *work;
    double per_row = tdm_metrics_result_work(&status->window, &work);
    if (status->rows_per_second > 0)
        append(line, "%s %s/s  ", tdm_count_text(status->rows_per_second * per_row), work);
}

/* Short enough for a terminal of 80 columns; elsewhere with step, rows and FLOP/s. */
static text_line step_line(const tdm_train_status *status, bool is_short)
{
    text_line line = {.length = 0};
    append_epoch(&line, status);
    if (!is_short)
        append(&line, "step %lld  %s rows  ", (long long)status->step,
               tdm_count_text((double)status->rows));
    append(&line, "%3.0f%%  ", 100 * status->progress);
    append_speed(&line, status);
    if (!is_short && status->flops > 0)
        append(&line, "%.0f GFLOP/s  ", status->flops / 1e9);
    append_metrics(&line, &status->window, STEP_METRICS, STEP_DECIMALS);
    append(&line, "%s left  %s", tdm_duration_text(status->seconds_left), balance(status));
    return line;
}

static void print_eval(const tdm_train_status *status)
{
    text_line metrics = {.length = 0};
    if (status->eval.rows > 0)
        append_metrics(&metrics, &status->eval, TDM_MAX_METRICS, INT_MAX);
    tdm_console_print("step %lld: eval  %s(%s rows)%s", (long long)status->step, metrics.text,
                      tdm_count_text((double)status->eval.rows),
                      status->is_best ? "  best so far" : "");
}

void tdm_progress_train(void *context, const tdm_train_status *status)
{
    tdm_progress *progress = context;
    text_line line = {.length = 0};
    switch (status->event) {
    case TDM_EVENT_STEP:
        if (is_due(progress))
            show(step_line(status, tdm_console_is_terminal()).text);
        return;
    case TDM_EVENT_EVALUATING:
        append(&line, "step %lld: evaluating  %.0f%%", (long long)status->step,
               100 * status->eval_share);
        if (is_due(progress))
            show(line.text);
        return;
    case TDM_EVENT_EVAL:
        print_eval(status);
        return;
    case TDM_EVENT_CHECKPOINT:
        tdm_console_print("step %lld: checkpoint saved", (long long)status->step);
        return;
    case TDM_EVENT_EPOCH:
        tdm_console_print("%s", step_line(status, false).text);
        return;
    case TDM_EVENT_LOG:
        return;
    }
}
