/* tandem predict: a line for each input record. */
#include "cli/console.h"
#include "cli/output.h"
#include "cli/predict.h"
#include "cli/progress.h"
#include "core/memory.h"
#include "trainer/predictor.h"

#include <stdio.h>
#include <string.h>

/* ---- lines ----------------------------------------------------------------------------------- */

typedef struct answering {
    tdm_output *output;
    bool keyed;
    bool flush; /* after each block */
    int64_t *rows;
    size_t rows_capacity;
    char *lines;
    size_t lines_capacity;
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

static tdm_status answer_block(void *context, const tdm_extract *block, const float *probabilities)
{
    answering *answer = context;
    size_t records = (size_t)block->records;
    TDM_TRY(tdm_grow(&answer->rows, &answer->rows_capacity, records, sizeof *answer->rows));
    size_t keys = answer->keyed && block->rows > 0 ? (size_t)block->key_ends[block->rows - 1] : 0;
    TDM_TRY(tdm_grow(&answer->lines, &answer->lines_capacity,
                     keys + records * (PROBABILITY_BYTES + 2), 1));
    tdm_block_record_rows(block, answer->rows);
    char *end = answer->lines;
    for (size_t r = 0; r < records; r++)
        end = write_line(end, answer->keyed, block, probabilities, answer->rows[r]);
    TDM_TRY(tdm_output_write(answer->output, answer->lines, (size_t)(end - answer->lines)));
    return answer->flush ? tdm_output_flush(answer->output) : TDM_OK;
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

static tdm_status tell_counts(const tdm_prediction_counts *counts)
{
    TDM_FAIL_IF(counts->records > 0 && counts->bad_records == counts->records, TDM_E_DATA,
                "none of the %lld records could be used", (long long)counts->records);
    if (counts->bad_records > 0)
        tdm_console_print("%lld of %lld records were bad: their lines are empty",
                          (long long)counts->bad_records, (long long)counts->records);
    return TDM_OK;
}

static tdm_status predict(const tdm_command *command, tdm_run *run, const tdm_strings *files,
                          answering *answer, tdm_predict_options *options)
{
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
    if (!tdm_output_is_stdout(answer->output)) {
        options->progress = tdm_progress_rows;
        options->progress_context = &progress;
    }
    answer->flush = options->eager;
    tdm_prediction_counts counts;
    tdm_status status = tdm_predict_run(run, files, options, &counts);
    tdm_progress_end(&progress);
    tdm_bad_record_log_destroy(log);
    TDM_TRY(status);
    TDM_TRY(tdm_output_commit(answer->output));
    return tell_counts(&counts);
}

static tdm_status run_with_output(const tdm_command *command, answering *answer,
                                  tdm_predict_options *options)
{
    const tdm_predict_values *values = command->values;
    const tdm_strings files = tdm_command_files(command, 1);
    tdm_run_options run_options = {.checkpoint = values->checkpoint,
                                   .threads = (int)values->threads,
                                   .use = TDM_USE_PREDICTION};
    tdm_run *run;
    TDM_TRY(tdm_run_open(command->plain[0], &run_options, &run));
    tdm_status status = predict(command, run, &files, answer, options);
    tdm_run_close(run);
    return status;
}

tdm_status tdm_predict_records(const tdm_command *command)
{
    const tdm_predict_values *values = command->values;
    tdm_predict_options options = {0};
    answering answer = {.keyed = values->with != NULL};
    char *with = NULL;
    const char **columns = NULL;
    tdm_status status;
    if (answer.keyed) {
        TDM_TRY_GOTO(tdm_strdup(values->with, &with), done);
        TDM_TRY_GOTO(split_names(with, &columns, &options.column_count), done);
        options.columns = columns;
    }
    TDM_TRY_GOTO(tdm_output_open(values->output, values->force, &answer.output), done);
    status = run_with_output(command, &answer, &options);
done:
    tdm_output_close(answer.output);
    tdm_free(answer.rows);
    tdm_free(answer.lines);
    tdm_free(columns);
    tdm_free(with);
    return status;
}
