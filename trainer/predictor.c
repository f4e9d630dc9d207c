#include "trainer/predictor.h"

#include "core/memory.h"
#include "data/block_stream.h"

#include <math.h>
#include <string.h>

/* ---- one block ------------------------------------------------------------------------------- */

tdm_status tdm_score_block(tdm_scorer *scorer, tdm_extract *block, tdm_block_scores *scores)
{
    TDM_TRY(tdm_grow(&scores->probabilities, &scores->capacity, (size_t)block->rows,
                     sizeof *scores->probabilities));
    for (int64_t first = 0; first < block->rows;) {
        int64_t taken;
        tdm_outcome outcome;
        TDM_TRY(tdm_scorer_fill(scorer, block, first, &taken));
        TDM_TRY(tdm_scorer_run(scorer, &outcome));
        memcpy(scores->probabilities + first, outcome.output,
               (size_t)taken * sizeof *scores->probabilities);
        tdm_scorer_empty(scorer);
        first += taken;
    }
    return TDM_OK;
}

void tdm_block_scores_deinit(tdm_block_scores *scores)
{
    tdm_free(scores->probabilities);
    *scores = (tdm_block_scores){0};
}

void tdm_block_record_rows(const tdm_extract *block, int64_t *rows)
{
    for (int64_t r = 0; r < block->records; r++)
        rows[r] = -1;
    for (int64_t row = 0; row < block->rows; row++)
        rows[block->row_records[row]] = row;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Blocks come parsed ahead on the pool; or, where answers must not wait for input that has not come
 * yet, one after the other on this thread. */
typedef struct prediction {
    tdm_run *run;
    const tdm_predict_options *options;
    tdm_prediction_counts *counts;
    tdm_input *input;
    tdm_extractor *extractor;
    tdm_block_stream *blocks;
    tdm_input_stream *eager; /* or NULL */
    tdm_block_text text;
    tdm_extract block; /* eager */
    tdm_block_scores scores;
    int64_t rows;
    int64_t stored_bytes;
} prediction;

static tdm_status keep_columns(prediction *predict)
{
    const tdm_predict_options *options = predict->options;
    const tdm_record_format *format = predict->run->format;
    if (options->column_count == 0)
        return TDM_OK;
    int32_t *columns;
    TDM_TRY(tdm_alloc((size_t)options->column_count, sizeof *columns, &columns));
    tdm_status status = TDM_OK;
    for (int i = 0; i < options->column_count && status == TDM_OK; i++) {
        const char *name = options->columns[i];
        columns[i] = tdm_record_format_find(format, name);
        if (columns[i] >= 0)
            continue;
        char advice[TDM_ADVICE_BYTES];
        status = tdm_fail(TDM_E_ARG, "the records have no column %s%s", name,
                          tdm_did_you_mean(name, (const char *const *)format->columns,
                                           format->column_count, advice));
    }
    if (status == TDM_OK)
        status = tdm_extractor_keep(predict->extractor, columns, options->column_count);
    tdm_free(columns);
    return status;
}

static tdm_status open_blocks(prediction *predict, const tdm_strings *files)
{
    const tdm_predict_options *options = predict->options;
    tdm_run *run = predict->run;
    TDM_TRY(tdm_run_open_input(run, files, options->eager, options->stop, &predict->input));
    TDM_TRY(tdm_extractor_create(run->task.featurizer, predict->input, run->pool, TDM_SELECT_ALL, 0,
                                 &predict->extractor));
    TDM_TRY(keep_columns(predict));
    if (options->eager && !tdm_input_seekable(predict->input))
        return tdm_input_stream_open(predict->input, &predict->eager);
    return tdm_block_stream_open(predict->extractor, run->pool, &predict->blocks);
}

static tdm_status next_block(prediction *predict, tdm_extract **block)
{
    if (predict->eager == NULL)
        return tdm_block_stream_next(predict->blocks, block);
    bool ended;
    *block = NULL;
    TDM_TRY(tdm_input_stream_next(predict->eager, &predict->text, &ended));
    if (ended)
        return TDM_OK;
    *block = &predict->block;
    return tdm_extract_block(predict->extractor, &predict->text, *block);
}

static tdm_status add_bad_records(prediction *predict, tdm_extract *block)
{
    predict->counts->bad_records += (int64_t)block->bad_count;
    if (predict->options->bad_records == NULL)
        return TDM_OK;
    const tdm_bad_report report = tdm_bad_report_of(block);
    return tdm_bad_record_log_add(predict->options->bad_records, predict->input, &report);
}

static tdm_status predict_block(prediction *predict, tdm_extract *block)
{
    const tdm_predict_options *options = predict->options;
    predict->counts->records += block->records;
    predict->rows += block->rows;
    predict->stored_bytes += block->stored_bytes;
    TDM_TRY(add_bad_records(predict, block));
    TDM_TRY(tdm_score_block(predict->run->scorer, block, &predict->scores));
    TDM_TRY(options->answer(options->context, block, predict->scores.probabilities));
    int64_t total = tdm_input_stored_bytes(predict->input);
    if (options->progress != NULL)
        options->progress(options->progress_context, predict->rows,
                          total > 0 ? (double)predict->stored_bytes / (double)total : NAN);
    return TDM_OK;
}

static tdm_status predict_blocks(prediction *predict)
{
    const atomic_bool *stop = predict->options->stop;
    for (;;) {
        TDM_FAIL_IF(stop != NULL && atomic_load(stop), TDM_E_CANCELLED, "stopped after %lld rows",
                    (long long)predict->rows);
        tdm_extract *block;
        TDM_TRY(next_block(predict, &block));
        if (block == NULL)
            return TDM_OK;
        TDM_TRY(predict_block(predict, block));
    }
}

tdm_status tdm_predict_run(tdm_run *run, const tdm_strings *files,
                           const tdm_predict_options *options, tdm_prediction_counts *out)
{
    *out = (tdm_prediction_counts){0};
    prediction predict = {.run = run, .options = options, .counts = out};
    tdm_scorer_empty(run->scorer);
    tdm_status status = open_blocks(&predict, files);
    if (status == TDM_OK)
        status = predict_blocks(&predict);
    tdm_block_stream_close(predict.blocks);
    tdm_input_stream_close(predict.eager);
    tdm_block_text_deinit(&predict.text);
    tdm_extract_deinit(&predict.block);
    tdm_block_scores_deinit(&predict.scores);
    tdm_extractor_destroy(predict.extractor);
    tdm_input_close(predict.input);
    return status;
}
