/* Metrics of a training window or of an evaluation: an accumulator and its result, of a kind that
 * the task chooses. Rows are added by the kind's own function.
 *
 * An accumulator belongs to one thread at a time. */
#ifndef TDM_TRAINER_METRICS_H
#define TDM_TRAINER_METRICS_H

#include "core/config.h"
#include "trainer/class_metrics.h"
#include "trainer/click_metrics.h"
#include "trainer/metrics_result.h"
#include "trainer/regression_metrics.h"
#include "trainer/text_metrics.h"

/* ---- the recipe's `metrics` section ---------------------------------------------------------- */

typedef struct tdm_metrics_options {
    int64_t exact_auc_rows; /* of an evaluation */
} tdm_metrics_options;

extern const tdm_config_schema tdm_metrics_schema;

/* ---- kinds ----------------------------------------------------------------------------------- */

typedef struct tdm_metrics tdm_metrics;

/* A kind of metrics; the functions are those of the accumulator below. */
typedef struct tdm_metrics_type {
    const char *name;          /* of what is measured, in the plural */
    const tdm_metric *metrics; /* all that a result may hold, in its order */
    int metric_count;
    /* the metric by which a checkpoint is the best, unless a recipe says another */
    const char *best;
    tdm_status (*init)(tdm_metrics *metrics); /* of 0 bytes; NULL, as deinit: nothing is to do */
    void (*deinit)(tdm_metrics *metrics);
    void (*reset)(tdm_metrics *metrics);
    tdm_status (*merge)(tdm_metrics *into, const tdm_metrics *from);
    int (*save)(const tdm_metrics *metrics, json_t *object);          /* 0, or not without memory */
    tdm_status (*restore)(tdm_metrics *metrics, const json_t *saved); /* into an empty one */
    tdm_status (*result)(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out);
} tdm_metrics_type;

extern const tdm_metrics_type tdm_click_metrics_type;
extern const tdm_metrics_type tdm_text_metrics_type;
extern const tdm_metrics_type tdm_binary_metrics_type;   /* one of two classes */
extern const tdm_metrics_type tdm_class_metrics_type;    /* one of more */
extern const tdm_metrics_type tdm_token_metrics_type;    /* one a token */
extern const tdm_metrics_type tdm_multiple_metrics_type; /* any number of them */
extern const tdm_metrics_type tdm_regression_metrics_type;

/* ---- the accumulator ------------------------------------------------------------------------- */

/* What an accumulator is of. */
typedef struct tdm_metrics_spec {
    const tdm_metrics_type *type;
    tdm_class_set classes; /* where there are any */
} tdm_metrics_spec;

struct tdm_metrics {
    tdm_metrics_spec spec; /* type NULL: none, which is 0 bytes */
    int64_t exact_auc_rows;
    union {
        int64_t rows; /* the first member of each */
        tdm_click_metrics click;
        tdm_text_metrics text;
        tdm_class_metrics of_classes;
        tdm_regression_metrics regression;
    };
};

/* exact_auc_rows: see auc.h. 0, for progressive metrics: adding never allocates. On failure
 * nothing is left. */
TDM_MUST_CHECK tdm_status tdm_metrics_init(tdm_metrics *metrics, const tdm_metrics_spec *spec,
                                           int64_t exact_auc_rows);
/* One of 0 bytes is allowed. */
void tdm_metrics_deinit(tdm_metrics *metrics);

/* Forgets all rows, as for the next window. */
void tdm_metrics_reset(tdm_metrics *metrics);

/* Adds the rows of `from`, which is of the same spec and stays as it is. */
TDM_MUST_CHECK tdm_status tdm_metrics_merge(tdm_metrics *into, const tdm_metrics *from);

/* *out is a new JSON object from which tdm_metrics_restore() makes the same bits. TDM_E_STATE
 * unless exact_auc_rows is 0: evaluations are not saved. */
TDM_MUST_CHECK tdm_status tdm_metrics_save(const tdm_metrics *metrics, json_t **out);

/* Replaces what an initialised accumulator with exact_auc_rows 0 holds. TDM_E_FORMAT naming the key
 * where `saved` is no such object; the accumulator is then empty. */
TDM_MUST_CHECK tdm_status tdm_metrics_restore(tdm_metrics *metrics, const json_t *saved);

/* The result so far; more rows may follow. What is not defined (no rows, one class only) is NaN.
 * The pool sorts for the exact AUC. */
TDM_MUST_CHECK tdm_status tdm_metrics_get(tdm_metrics *metrics, tdm_pool *pool,
                                          tdm_metrics_result *out);

#endif
