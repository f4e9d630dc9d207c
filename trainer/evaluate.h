/* Evaluation: the metrics of a model on records, in the order of the input. */
#ifndef TDM_TRAINER_EVALUATE_H
#define TDM_TRAINER_EVALUATE_H

#include "data/bad_records.h"
#include "data/extract.h"
#include "trainer/metrics.h"
#include "trainer/run_model.h"

typedef struct tdm_evaluate_options {
    const atomic_bool *stop; /* NULL: never; true: TDM_E_CANCELLED */
    /* A few times a second at most; `share` of the stored bytes, NaN where that is not known.
     * NULL: not called. */
    void (*progress)(void *context, int64_t rows, double share);
    void *context;
    tdm_bad_record_log *bad_records; /* takes them in and judges; NULL: they are only counted */
} tdm_evaluate_options;

typedef struct tdm_evaluation {
    tdm_metrics_result metrics;
    int64_t records; /* good and bad */
    int64_t bad_records;
    double seconds;
} tdm_evaluation;

/* Evaluates all rows that the extractor gives. `metrics` is reset first. */
TDM_MUST_CHECK tdm_status tdm_evaluate(const tdm_task *task, tdm_scorer *scorer,
                                       tdm_extractor *extractor, tdm_pool *pool,
                                       tdm_metrics *metrics, const tdm_evaluate_options *options,
                                       tdm_evaluation *out);

/* Evaluates a loaded run (use TDM_USE_EVALUATION) on files. */
TDM_MUST_CHECK tdm_status tdm_evaluate_run(tdm_run *run, const tdm_strings *files,
                                           const tdm_evaluate_options *options,
                                           tdm_evaluation *out);

#endif
