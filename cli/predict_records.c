/* tandem predict: a line, or a vector, for each input record. */
#include "cli/console.h"
#include "cli/label_lines.h"
#include "cli/output.h"
#include "cli/predict.h"
#include "cli/progress.h"
#include "cli/vector_output.h"
#include "core/memory.h"
#include "trainer/predictor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- lines ----------------------------------------------------------------------------------- */

typedef struct answering {
    tdm_run *run;
    tdm_output *output;         /* or */
    tdm_vector_output *vectors; /* with --embed */
    bool keyed, json;
    bool flush; /* after each block */
    int64_t *rows;
    size_t rows_capacity;
    char *lines; /* of clicks */
    size_t lines_capacity;
    tdm_text text;  /* of labels */
    float *numbers; /* of vectors */
    size_t numbers_capacity;
} answering;

#define PROBABILITY_BYTES 32

/* Writes the line of row `row` at `to` and returns the byte behind it. */
static char *write_line(char *to, bool keyed, const tdm_extract *block, const float *probabilities,
                        int64_t row)
{
    if (row >= 0 && keyed) {
        uint64_t begin = row > 0 ? block->key_ends[row - 1] : 0;
        size_t bytes = (size_t)(block->key_ends[row] - begin);
        memcpy(to, block->keys + begin, bytes);
        to += bytes;
        *to++ = ',';
    }
    if (row >= 0)
        to += snprintf(to, PROBABILITY_BYTES, "%.8g", (double)probabilities[row]);
    *to++ = '\n';
    return to;
}

static tdm_status write_clicks(answering *answer, const tdm_extract *block,
                               const float *probabilities)
{
    size_t records = (size_t)block->records;
    size_t keys =
        answer->keyed && block->key_count > 0 ? (size_t)block->key_ends[block->key_count - 1] : 0;
    TDM_TRY(tdm_grow(&answer->lines, &answer->lines_capacity,
                     keys + records * (PROBABILITY_BYTES + 2), 1));
    char *end = answer->lines;
    for (size_t r = 0; r < records; r++)
        end = write_line(end, answer->keyed, block, probabilities, answer->rows[r]);
    return tdm_output_write(answer->output, answer->lines, (size_t)(end - answer->lines));
}

/* Good record `row`, -1 for a bad one. */
static tdm_status append_line(answering *answer, const tdm_extract *block,
                              const tdm_block_answers *answers, int64_t row)
{
    tdm_text *text = &answer->text;
    if (row < 0)
        return tdm_text_printf(text, answer->json ? "null\n" : "\n");
    if (answer->keyed) {
        uint64_t begin = row > 0 ? block->key_ends[row - 1] : 0;
        TDM_TRY(tdm_text_printf(text, "%.*s,", (int)(block->key_ends[row] - begin),
                                block->keys + begin));
    }
    const tdm_label_spec *labels = answer->run->task.labels;
    if (labels == NULL)
        return tdm_text_printf(text, "{\"probability\": %.9g}\n", (double)answers->numbers[row]);
    return tdm_label_line(labels, block, answers, row, answer->json, text);
}

static tdm_status write_labels(answering *answer, const tdm_extract *block,
                               const tdm_block_answers *answers)
{
    answer->text.length = 0;
    for (int64_t r = 0; r < block->records; r++)
        TDM_TRY(append_line(answer, block, answers, answer->rows[r]));
    return tdm_output_write(answer->output, answer->text.bytes, answer->text.length);
}

/* NaN for a bad record. */
static tdm_status write_vectors(answering *answer, const tdm_extract *block,
                                const tdm_block_answers *answers)
{
    size_t columns = (size_t)answers->columns;
    TDM_TRY(tdm_grow(&answer->numbers, &answer->numbers_capacity, (size_t)block->records * columns,
                     sizeof *answer->numbers));
    for (int64_t r = 0; r < block->records; r++) {
        float *to = answer->numbers + (size_t)r * columns;
        for (size_t c = 0; c < columns && answer->rows[r] < 0; c++)
            to[c] = NAN;
        if (answer->rows[r] >= 0)
            memcpy(to, answers->numbers + (size_t)answer->rows[r] * columns, columns * sizeof *to);
    }
    return tdm_vector_output_write(answer->vectors, answer->run->pool, answer->numbers,
                                   block->records, answers->columns);
}

static tdm_status write_answers(answering *answer, const tdm_extract *block,
                                const tdm_block_answers *answers)
{
    if (answer->vectors != NULL)
        return write_vectors(answer, block, answers);
    return answer->run->task.labels == NULL && !answer->json
               ? write_clicks(answer, block, answers->numbers)
               : write_labels(answer, block, answers);
}

static tdm_status answer_block(void *context, const tdm_extract *block,
                               const tdm_block_answers *answers)
{
    answering *answer = context;
    TDM_TRY(tdm_grow(&answer->rows, &answer->rows_capacity, (size_t)block->records,
                     sizeof *answer->rows));
    tdm_block_record_rows(&answer->run->task, block, answer->rows);
    TDM_TRY(write_answers(answer, block, answers));
    if (!answer->flush)
        return TDM_OK;
    return answer->vectors != NULL ? tdm_vector_output_flush(answer->vectors)
                                   : tdm_output_flush(answer->output);
}

/* ---- the output ------------------------------------------------------------------------------ */

static tdm_status open_output(const tdm_predict_values *values, answering *answer)
{
    if (values->embed)
        return tdm_vector_output_open(values->output, values->force, values->json,
                                      &answer->vectors);
    return tdm_output_open(values->output, values->force, &answer->output);
}

static bool is_stdout(const answering *answer)
{
    return answer->vectors != NULL ? tdm_vector_output_is_stdout(answer->vectors)
                                   : tdm_output_is_stdout(answer->output);
}

static tdm_status commit(answering *answer)
{
    if (answer->vectors == NULL)
        return tdm_output_commit(answer->output);
    const tdm_bert_options *encoder = answer->run->task.encoder;
    return tdm_vector_output_commit(answer->vectors, encoder->hidden);
}

static void close_answering(answering *answer)
{
    tdm_output_close(answer->output);
    tdm_vector_output_close(answer->vectors);
    tdm_free(answer->rows);
    tdm_free(answer->lines);
    tdm_free(answer->numbers);
    tdm_text_free(&answer->text);
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* "C1,C2" taken apart in place; *names is freed with tdm_free(). */
static tdm_status split_names(char *text, const char ***names, int *count)
{
    int commas = 0;
    for (const char *at = text; *at != '\0'; at++)
        commas += *at == ',';
    TDM_TRY(tdm_alloc((size_t)commas + 1, sizeof **names, names));
    *count = 0;
    for (char *rest = text; rest != NULL;)
        (*names)[(*count)++] = strsep(&rest, ",");
    return TDM_OK;
}

static bool reads_stdin(const tdm_strings *files)
{
    for (int64_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i], "-") == 0)
            return true;
    }
    return false;
}

static tdm_status tell_counts(const tdm_prediction_counts *counts, const char *bad_answers)
{
    TDM_FAIL_IF(counts->records > 0 && counts->bad_records == counts->records, TDM_E_DATA,
                "none of the %lld records could be used", (long long)counts->records);
    if (counts->bad_records > 0)
        tdm_console_print("%lld of %lld records were bad: their %s", (long long)counts->bad_records,
                          (long long)counts->records, bad_answers);
    return TDM_OK;
}

static tdm_status predict(const tdm_command *command, const tdm_strings *files, answering *answer,
                          tdm_predict_options *options)
{
    tdm_run *run = answer->run;
    tdm_bad_record_log *log;
    TDM_TRY(tdm_bad_record_log_create(TDM_BAD_RECORD_SKIP,
                                      (tdm_share){.value = 1, .is_share = true}, NULL, &log));
    tdm_progress progress;
    tdm_progress_init(&progress, "predicting", run->recipe->train.log_every_seconds);
    options->eager = reads_stdin(files);
    options->stop = command->cancel;
    options->bad_records = log;
    options->answer = answer_block;
    options->context = answer;
    if (!is_stdout(answer)) {
        options->progress = tdm_progress_rows;
        options->progress_context = &progress;
    }
    answer->flush = options->eager;
    tdm_prediction_counts counts;
    tdm_status status = tdm_predict_run(run, files, options, &counts);
    tdm_progress_end(&progress);
    tdm_bad_record_log_destroy(log);
    TDM_TRY(status);
    TDM_TRY(commit(answer));
    return tell_counts(&counts, answer->vectors != NULL ? "vectors are NaN, or their lines empty"
                                : answer->json          ? "answers are null"
                                                        : "lines are empty");
}

static tdm_status open_and_predict(const tdm_command *command, answering *answer,
                                   tdm_predict_options *options)
{
    const tdm_predict_values *values = command->values;
    const tdm_strings files = tdm_command_files(command, 1);
    int pooling, precision;
    TDM_TRY(tdm_predict_pooling(values, &pooling));
    TDM_TRY(tdm_predict_precision(values, values->embed ? TDM_PRECISION_FP32 : -1, &precision));
    options->pooling = (tdm_pooling)pooling;
    const tdm_run_options run_options = {
        .checkpoint = values->checkpoint,
        .threads = (int)values->threads,
        .use = values->embed ? TDM_USE_VECTORS : TDM_USE_PREDICTION,
        .precision = 1 + precision,
    };
    TDM_FAIL_IF(values->batch_tokens > 0 || values->max_length > 0, TDM_E_ARG,
                "--batch-tokens and --max-length are of lines: the records of %s are read as they "
                "were for its training",
                command->plain[0]);
    TDM_TRY(open_output(values, answer));
    TDM_TRY(tdm_run_open(command->plain[0], &run_options, &answer->run));
    return predict(command, &files, answer, options);
}

tdm_status tdm_predict_records(const tdm_command *command)
{
    const tdm_predict_values *values = command->values;
    tdm_predict_options options = {0};
    answering answer = {.keyed = values->with != NULL, .json = values->json};
    char *with = NULL;
    const char **columns = NULL;
    tdm_status status;
    if (answer.keyed) {
        TDM_TRY_GOTO(tdm_strdup(values->with, &with), done);
        TDM_TRY_GOTO(split_names(with, &columns, &options.column_count), done);
        options.columns = columns;
    }
    status = open_and_predict(command, &answer, &options);
done:
    close_answering(&answer);
    tdm_run_close(answer.run);
    tdm_free(columns);
    tdm_free(with);
    return status;
}
