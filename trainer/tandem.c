/* The public predictor: records in memory through the same code that tandem predict runs. */
#include "core/memory.h"
#include "data/input_memory.h"
#include "trainer/predictor.h"

#include <math.h>

struct tdm_predictor {
    tdm_run *run;
    tdm_memory_input *input;
    tdm_extractor *extractor;
    tdm_block_text text;
    tdm_extract block;
    tdm_block_answers answers;
};

static tdm_status open_predictor(tdm_predictor *predictor, const char *run,
                                 const tdm_predictor_options *options)
{
    tdm_run_options run_options = {.use = TDM_USE_PREDICTION};
    if (options != NULL) {
        run_options.checkpoint = options->checkpoint;
        run_options.threads = options->threads;
    }
    TDM_TRY(tdm_run_open(run, &run_options, &predictor->run));
    TDM_FAIL_IF(predictor->run->recipe->task != TDM_TASK_CTR, TDM_E_UNSUPPORTED,
                "%s: is a run of task classify, and the predictor answers probabilities of clicks: "
                "tandem predict answers the others",
                run);
    TDM_TRY(tdm_memory_input_create(
        predictor->run->format, predictor->run->recipe->data.max_record_bytes, &predictor->input));
    return tdm_extractor_create(predictor->run->task.featurizer,
                                tdm_memory_input_get(predictor->input), predictor->run->pool,
                                TDM_SELECT_ALL, 0, &predictor->extractor);
}

tdm_status tdm_predictor_open(const char *run, const tdm_predictor_options *options,
                              tdm_predictor **predictor)
{
    *predictor = NULL;
    tdm_predictor *opened;
    TDM_TRY(tdm_alloc(1, sizeof *opened, &opened));
    tdm_status status = open_predictor(opened, run, options);
    if (status != TDM_OK) {
        tdm_predictor_close(opened);
        return status;
    }
    *predictor = opened;
    return TDM_OK;
}

/* The answers to the records of one block, of which `room` fit. */
static tdm_status answer_block(tdm_predictor *predictor, float *probabilities, int64_t room)
{
    tdm_extract *block = &predictor->block;
    TDM_TRY(tdm_extract_block(predictor->extractor, &predictor->text, block));
    TDM_TRY(tdm_answer_block(predictor->run, block, &predictor->answers));
    for (int64_t r = 0; r < block->records && r < room; r++)
        probabilities[r] = NAN;
    for (int64_t row = 0; row < block->rows; row++) {
        if (block->row_records[row] < room)
            probabilities[block->row_records[row]] = predictor->answers.numbers[row];
    }
    return TDM_OK;
}

tdm_status tdm_predictor_predict(tdm_predictor *predictor, const char *text, size_t text_bytes,
                                 float *probabilities, int64_t capacity, int64_t *count)
{
    *count = 0;
    tdm_scorer_empty(predictor->run->scorer);
    TDM_TRY(tdm_memory_input_begin(predictor->input, text, text_bytes));
    for (;;) {
        bool ended;
        TDM_TRY(tdm_memory_input_next(predictor->input, &predictor->text, &ended));
        if (ended)
            break;
        int64_t room = capacity > *count ? capacity - *count : 0;
        TDM_TRY(answer_block(predictor, room > 0 ? probabilities + *count : NULL, room));
        *count += predictor->block.records;
    }
    TDM_FAIL_IF(*count > capacity, TDM_E_ARG, "the text holds %lld records, there is room for %lld",
                (long long)*count, (long long)capacity);
    return TDM_OK;
}

void tdm_predictor_close(tdm_predictor *predictor)
{
    if (predictor == NULL)
        return;
    tdm_extractor_destroy(predictor->extractor);
    tdm_memory_input_destroy(predictor->input);
    tdm_block_text_deinit(&predictor->text);
    tdm_extract_deinit(&predictor->block);
    tdm_block_answers_deinit(&predictor->answers);
    tdm_run_close(predictor->run);
    tdm_free(predictor);
}
