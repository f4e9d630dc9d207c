#include "trainer/evaluate.h"

#include "core/clock.h"
#include "data/block_stream.h"

#include <math.h>

#define PROGRESS_SECONDS 0.2

typedef struct evaluation {
    const tdm_task *task;
    tdm_scorer *scorer;
    tdm_extractor *extractor;
    tdm_metrics *metrics;
    const tdm_evaluate_options *options;
    tdm_evaluation *out;
    int64_t stored_bytes; /* consumed */
    double told;          /* when progress was told last */
} evaluation;

static tdm_status run_batch(evaluation *eval)
{
    tdm_outcome outcome;
    TDM_TRY(tdm_scorer_run(eval->scorer, &outcome));
    if (outcome.batch != NULL)
        TDM_TRY(eval->task->type->add(eval->task, eval->metrics, &outcome));
    tdm_scorer_empty(eval->scorer);
    return TDM_OK;
}

static tdm_status add_bad_records(evaluation *eval, tdm_extract *block)
{
    tdm_bad_record_log *log = eval->options->bad_records;
    eval->out->records += block->records;
    eval->out->bad_records += (int64_t)block->bad_count;
    if (log == NULL)
        return TDM_OK;
    const tdm_bad_report report = tdm_bad_report_of(block);
    TDM_TRY(tdm_bad_record_log_add(log, tdm_extractor_input(eval->extractor), &report));
    return tdm_bad_record_log_judge(log, tdm_good_records_of(block), false);
}

static tdm_status add_block(evaluation *eval, tdm_extract *block)
{
    TDM_TRY(add_bad_records(eval, block));
    for (int64_t first = 0;;) {
        int64_t taken;
        TDM_TRY(tdm_scorer_fill(eval->scorer, block, first, &taken));
        first += taken;
        if (first == tdm_scorer_rows(eval->scorer))
            break;
        TDM_TRY(run_batch(eval));
    }
    eval->stored_bytes += block->stored_bytes;
    return TDM_OK;
}

static void tell_progress(evaluation *eval)
{
    const tdm_evaluate_options *options = eval->options;
    double now = tdm_clock_seconds();
    if (options->progress == NULL || now < eval->told + PROGRESS_SECONDS)
        return;
    int64_t total = tdm_input_stored_bytes(tdm_extractor_input(eval->extractor));
    double share = total > 0 ? (double)eval->stored_bytes / (double)total : NAN;
    options->progress(options->context, eval->metrics->rows, share);
    eval->told = now;
}

static tdm_status evaluate_blocks(evaluation *eval, tdm_block_stream *stream)
{
    const atomic_bool *stop = eval->options->stop;
    for (;;) {
        tdm_extract *block;
        TDM_TRY(tdm_block_stream_next(stream, &block));
        if (block == NULL)
            break;
        TDM_TRY(add_block(eval, block));
        tell_progress(eval);
        TDM_FAIL_IF(stop != NULL && atomic_load(stop), TDM_E_CANCELLED,
                    "the evaluation was stopped");
    }
    TDM_TRY(run_batch(eval));
    if (eval->options->bad_records != NULL)
        TDM_TRY(tdm_bad_record_log_judge(eval->options->bad_records, 0, true));
    return TDM_OK;
}

tdm_status tdm_evaluate(const tdm_task *task, tdm_scorer *scorer, tdm_extractor *extractor,
                        tdm_pool *pool, tdm_metrics *metrics, const tdm_evaluate_options *options,
                        tdm_evaluation *out)
{
    double start = tdm_clock_seconds();
    *out = (tdm_evaluation){0};
    evaluation eval = {
        .task = task,
        .scorer = scorer,
        .extractor = extractor,
        .metrics = metrics,
        .options = options,
        .out = out,
        .told = start,
    };
    tdm_block_stream *stream;
    tdm_metrics_reset(metrics);
    tdm_scorer_empty(scorer);
    TDM_TRY(tdm_block_stream_open(extractor, pool, &stream));
    tdm_status status = evaluate_blocks(&eval, stream);
    tdm_block_stream_close(stream);
    TDM_TRY(status);
    out->seconds = tdm_clock_seconds() - start;
    return tdm_metrics_get(metrics, pool, &out->metrics);
}

static tdm_status evaluate_input(tdm_run *run, tdm_input *input,
                                 const tdm_evaluate_options *options, tdm_evaluation *out)
{
    tdm_extractor *extractor = NULL;
    tdm_metrics metrics = {0};
    tdm_status status;
    TDM_TRY(tdm_extractor_create(run->task.featurizer, input, run->pool, TDM_SELECT_ALL, 0,
                                 &extractor));
    TDM_TRY_GOTO(
        tdm_metrics_init(&metrics, &run->task.metrics, run->recipe->metrics.exact_auc_rows), done);
    status = tdm_evaluate(&run->task, run->scorer, extractor, run->pool, &metrics, options, out);
done:
    tdm_metrics_deinit(&metrics);
    tdm_extractor_destroy(extractor);
    return status;
}

tdm_status tdm_evaluate_run(tdm_run *run, const tdm_strings *files,
                            const tdm_evaluate_options *options, tdm_evaluation *out)
{
    tdm_input *input;
    TDM_TRY(tdm_run_open_input(run, files, false, options->stop, &input));
    tdm_status status = evaluate_input(run, input, options, out);
    tdm_input_close(input);
    return status;
}
