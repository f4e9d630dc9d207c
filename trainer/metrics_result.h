/* What was measured: a list of named numbers. */
#ifndef TDM_TRAINER_METRICS_RESULT_H
#define TDM_TRAINER_METRICS_RESULT_H

#include "core/config.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define TDM_MAX_METRICS 16

/* What a checkpoint that is kept as the best would have. */
typedef enum tdm_metric_goal {
    TDM_GOAL_NONE = 0, /* it does not tell which is the best */
    TDM_GOAL_LOWER = 1,
    TDM_GOAL_HIGHER = 2,
} tdm_metric_goal;

/* One of the numbers that a kind of metrics tells. Its strings are static. */
typedef struct tdm_metric {
    const char *name;  /* the key in JSON */
    const char *title; /* in a table for people */
    const char *brief; /* in a line of progress; NULL where headline is 0 */
    int headline;      /* its place in a line of progress, from 1; 0: it is not there */
    int decimals;      /* in that line */
    tdm_metric_goal goal;
    bool is_count;    /* a whole number */
    bool is_work;     /* a count, named in the plural, whose number a second is how fast it goes */
    bool is_optional; /* results may lack it */
    bool is_error;    /* a bound of another's error: a table has it where it is above 0 */
} tdm_metric;

typedef struct tdm_metric_value {
    const tdm_metric *metric;
    double value; /* NaN where it is not defined; counts are exact up to 2^53 */
} tdm_metric_value;

typedef struct tdm_metrics_result {
    int64_t rows;
    int count;
    tdm_metric_value items[TDM_MAX_METRICS]; /* in the order of their table */
} tdm_metrics_result;

/* NaN unless b is above 0. */
static inline double tdm_ratio(double a, double b)
{
    return b > 0.0 ? a / b : NAN;
}

/* All metrics of a table, each with this value, of no rows. */
tdm_metrics_result tdm_metrics_result_make(const tdm_metric *metrics, int count, double value);

/* Appends the metric of this name in a table of which all earlier ones are there or left out. */
void tdm_metrics_result_add(tdm_metrics_result *result, const tdm_metric *metric, double value);

/* NaN where the result lacks it. */
double tdm_metrics_result_get(const tdm_metrics_result *result, const char *name);

/* The item at place `headline` (from 1) of a line of progress; NULL where the result lacks it. */
const tdm_metric_value *tdm_metrics_result_headline(const tdm_metrics_result *result, int headline);

/* What a row holds of the work that speed is told in, and its name: 1 of "rows", where the metrics
 * have none of their own. NaN without rows. */
double tdm_metrics_result_work(const tdm_metrics_result *result, const char **name);

/* Sets how much of that work was done a second, "tokens_per_second", in a JSON object; of rows that
 * is the rows_per_second. 0, or not without memory. */
int tdm_metrics_result_set_speed(const tdm_metrics_result *result, double rows_per_second,
                                 json_t *object);

/* *out is a new JSON object: "rows" and the names as keys; null for NaN. */
TDM_MUST_CHECK tdm_status tdm_metrics_result_json(const tdm_metrics_result *result, json_t **out);

/* Reads what tdm_metrics_result_json() made, with reals of all their digits. TDM_E_FORMAT naming
 * the key that is missing or wrong. */
TDM_MUST_CHECK tdm_status tdm_metrics_result_restore(const json_t *saved, const tdm_metric *metrics,
                                                     int count, tdm_metrics_result *out);

/* Appends one line a metric, "  title  value", values below each other; n/a for NaN. */
TDM_MUST_CHECK tdm_status tdm_metrics_result_text(const tdm_metrics_result *result, tdm_text *text);

#endif
