#include "trainer/predictor.h"

#include "core/memory.h"
#include "core/ops.h"
#include "data/block_stream.h"
#include "text/label_block.h"
#include "text/masked_batch.h"

#include <math.h>
#include <string.h>

/* ---- one block ------------------------------------------------------------------------------- */

static void softmax(float *logits, int64_t count)
{
    float largest = logits[0];
    double sum = 0;
    for (int64_t i = 1; i < count; i++)
        largest = logits[i] > largest ? logits[i] : largest;
    for (int64_t i = 0; i < count; i++)
        sum += exp((double)(logits[i] - largest));
    for (int64_t i = 0; i < count; i++)
        logits[i] = (float)(exp((double)(logits[i] - largest)) / sum);
}

static int64_t count_numbers(const tdm_block_answers *answers)
{
    return answers->word_ends == NULL || answers->records == 0
               ? answers->records
               : answers->word_ends[answers->records - 1];
}

/* Room for the numbers of `more` further answers or words; *out is where they go. */
static tdm_status reserve(tdm_block_answers *answers, int64_t before, int64_t more, float **out)
{
    TDM_TRY(tdm_grow(&answers->numbers, &answers->numbers_capacity,
                     (size_t)((before + more) * answers->columns), sizeof *answers->numbers));
    *out = answers->numbers + before * answers->columns;
    return TDM_OK;
}

static tdm_status add_rows(const tdm_task *task, const tdm_outcome *outcome,
                           tdm_block_answers *answers)
{
    int64_t rows = outcome->batch->rows;
    float *numbers;
    bool is_logits = task->labels != NULL && task->labels->type == TDM_LABEL_CLASSES;
    TDM_TRY(reserve(answers, answers->records, rows, &numbers));
    memcpy(numbers, outcome->output, (size_t)(rows * answers->columns) * sizeof *numbers);
    for (int64_t r = 0; is_logits && r < rows; r++)
        softmax(numbers + r * answers->columns, answers->columns);
    answers->records += rows;
    return TDM_OK;
}

static tdm_status add_word(const float *logits, uint32_t word, int64_t index,
                           tdm_block_answers *answers)
{
    float *numbers;
    TDM_TRY(reserve(answers, index, 1, &numbers));
    TDM_TRY(tdm_grow(&answers->words, &answers->words_capacity, (size_t)index + 1,
                     sizeof *answers->words));
    memcpy(numbers, logits, (size_t)answers->columns * sizeof *numbers);
    softmax(numbers, answers->columns);
    answers->words[index] = word;
    return TDM_OK;
}

/* Rows of the output are the batch's tokens; those where a word begins count. */
static tdm_status add_words(const tdm_outcome *outcome, tdm_block_answers *answers)
{
    tdm_masked_batch texts = tdm_masked_batch_of(outcome->batch);
    int64_t count = count_numbers(answers);
    TDM_TRY(tdm_grow(&answers->word_ends, &answers->word_ends_capacity,
                     (size_t)(answers->records + texts.rows), sizeof *answers->word_ends));
    for (int64_t r = 0; r < texts.rows; r++) {
        tdm_token_range range = tdm_masked_batch_row(&texts, r);
        for (int64_t t = range.begin; t < range.end; t++) {
            if (texts.words[t] == TDM_NO_LABEL)
                continue;
            TDM_TRY(
                add_word(outcome->output + t * answers->columns, texts.words[t], count++, answers));
        }
        answers->word_ends[answers->records++] = count;
    }
    return TDM_OK;
}

static tdm_status add_vectors(const tdm_run *run, const tdm_outcome *outcome,
                              tdm_block_answers *answers)
{
    tdm_masked_batch texts = tdm_masked_batch_of(outcome->batch);
    tdm_pooling_args args = {.pooling = answers->pooling,
                             .hidden = outcome->output,
                             .columns = answers->columns,
                             .stride = answers->columns,
                             .begins = texts.cu_seqlens,
                             .lengths = texts.lengths,
                             .row_tokens = texts.row_stride,
                             .sequences = texts.rows};
    TDM_TRY(reserve(answers, answers->records, texts.rows, &args.vectors));
    tdm_pool_states(run->pool, &args);
    answers->records += texts.rows;
    return TDM_OK;
}

static tdm_status add_outcome(const tdm_run *run, const tdm_outcome *outcome,
                              tdm_block_answers *answers)
{
    if (outcome->batch == NULL)
        return TDM_OK;
    if (run->task.inputs.head == TDM_HEAD_TOKEN_CLASSES)
        return add_words(outcome, answers);
    return run->task.spec == NULL && run->task.inputs.head == TDM_HEAD_NONE
               ? add_vectors(run, outcome, answers)
               : add_rows(&run->task, outcome, answers);
}

tdm_status tdm_answer_block(tdm_run *run, tdm_extract *block, tdm_block_answers *answers)
{
    tdm_matrix output;
    TDM_TRY(tdm_model_output(run->model, run->task.output, &output));
    answers->records = 0;
    answers->columns = output.columns;
    for (int64_t first = 0;;) {
        int64_t taken;
        tdm_outcome outcome;
        TDM_TRY(tdm_scorer_fill(run->scorer, block, first, &taken));
        first += taken;
        TDM_TRY(tdm_scorer_run(run->scorer, &outcome));
        TDM_TRY(add_outcome(run, &outcome, answers));
        tdm_scorer_empty(run->scorer);
        if (first == tdm_scorer_rows(run->scorer))
            return TDM_OK;
    }
}

void tdm_block_answers_deinit(tdm_block_answers *answers)
{
    tdm_free(answers->numbers);
    tdm_free(answers->word_ends);
    tdm_free(answers->words);
    *answers = (tdm_block_answers){0};
}

void tdm_block_record_rows(const tdm_task *task, const tdm_extract *block, int64_t *rows)
{
    if (task->featurizer->columns.rows_are_pieces) {
        tdm_label_record_rows(block, rows);
        return;
    }
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
    tdm_block_answers answers;
    int64_t rows; /* answered */
    int64_t stored_bytes;
} prediction;

static tdm_status keep_columns(prediction *predict)
{
    const tdm_predict_options *options = predict->options;
    const tdm_record_format *format = predict->run->format;
    const tdm_label_spec *labels = predict->run->task.labels;
    if (labels != NULL && labels->type == TDM_LABEL_TOKENS) {
        TDM_FAIL_IF(options->column_count > 0, TDM_E_ARG,
                    "words are answered, a line each: no columns of records stand before them");
        return tdm_extractor_keep_text(predict->extractor, tdm_label_text_column(labels));
    }
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
    predict->stored_bytes += block->stored_bytes;
    TDM_TRY(add_bad_records(predict, block));
    TDM_TRY(tdm_answer_block(predict->run, block, &predict->answers));
    predict->rows += predict->answers.records;
    TDM_TRY(options->answer(options->context, block, &predict->answers));
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
    prediction predict = {
        .run = run, .options = options, .counts = out, .answers = {.pooling = options->pooling}};
    tdm_scorer_empty(run->scorer);
    tdm_status status = open_blocks(&predict, files);
    if (status == TDM_OK)
        status = predict_blocks(&predict);
    tdm_block_stream_close(predict.blocks);
    tdm_input_stream_close(predict.eager);
    tdm_block_text_deinit(&predict.text);
    tdm_extract_deinit(&predict.block);
    tdm_block_answers_deinit(&predict.answers);
    tdm_extractor_destroy(predict.extractor);
    tdm_input_close(predict.input);
    return status;
}
