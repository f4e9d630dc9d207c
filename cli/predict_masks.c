/* tandem predict --fill-mask: what could stand where a text says [MASK]. */
#include "cli/line_batches.h"
#include "cli/output.h"
#include "cli/predict.h"
#include "core/json.h"
#include "core/memory.h"
#include "trainer/fill_mask.h"

#include <string.h>

/* Tokens of a batch of lines; a single text makes a batch of its own. */
#define BATCH_TOKENS 1024
#define TOP          5

typedef struct filling {
    const tdm_command *command;
    const tdm_predict_values *values;
    tdm_encoder_run *run;
    tdm_mask_filler *filler;
    tdm_output *output;
    tdm_text_input *inputs;
    size_t inputs_capacity;
    int64_t answered;
} filling;

/* ---- answers --------------------------------------------------------------------------------- */

static const char *token_of(const filling *work, uint32_t id, int *bytes)
{
    size_t length;
    const char *token = tdm_tokenizer_token(work->run->tokenizer, id, &length);
    *bytes = token == NULL ? 0 : (int)length;
    return token == NULL ? "" : token;
}

static json_t *guesses_json(const filling *work, const tdm_mask_guess *guesses, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        int bytes;
        const char *token = token_of(work, guesses[i].id, &bytes);
        json_t *one =
            json_pack("{s:s%, s:I, s:f}", "token", token, (size_t)bytes, "id",
                      (json_int_t)guesses[i].id, "probability", (double)guesses[i].probability);
        if (json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Of one mask its guesses, of several a list of such lists. */
static json_t *answer_json(const filling *work, const tdm_mask_answer *answer)
{
    if (answer->masks == 1)
        return guesses_json(work, answer->guesses, answer->top);
    json_t *list = json_array();
    for (int64_t m = 0; m < answer->masks; m++) {
        json_t *one = guesses_json(work, answer->guesses + m * answer->top, answer->top);
        if (json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static tdm_status append_guesses(const filling *work, const tdm_mask_guess *guesses, int64_t count,
                                 tdm_text *text)
{
    for (int64_t i = 0; i < count; i++) {
        int bytes;
        const char *token = token_of(work, guesses[i].id, &bytes);
        TDM_TRY(
            tdm_text_printf(text, "%.3f  %.*s\n", (double)guesses[i].probability, bytes, token));
    }
    return TDM_OK;
}

static tdm_status append_answer(const filling *work, const tdm_mask_answer *answer, tdm_text *text)
{
    if (work->answered > 0)
        TDM_TRY(tdm_text_printf(text, "\n"));
    for (int64_t m = 0; m < answer->masks; m++) {
        if (answer->masks > 1)
            TDM_TRY(tdm_text_printf(text, "%lld. mask\n", (long long)(m + 1)));
        TDM_TRY(append_guesses(work, answer->guesses + m * answer->top, answer->top, text));
    }
    return TDM_OK;
}

static tdm_status append_json(const filling *work, const tdm_mask_answer *answer, tdm_text *text)
{
    json_t *json = answer_json(work, answer);
    char *line = json == NULL ? NULL : json_dumps(json, JSON_REAL_PRECISION(9));
    json_decref(json);
    TDM_FAIL_IF(line == NULL, TDM_E_NOMEM, "out of memory for an answer in JSON");
    tdm_status status = tdm_text_printf(text, "%s\n", line);
    free(line);
    return status;
}

static tdm_status write_answer(void *context, const tdm_mask_answer *answer)
{
    filling *work = context;
    tdm_text text = {0};
    TDM_FAIL_IF(atomic_load(work->command->cancel), TDM_E_CANCELLED, "stopped");
    tdm_status status =
        work->values->json ? append_json(work, answer, &text) : append_answer(work, answer, &text);
    if (status == TDM_OK)
        status = tdm_output_write(work->output, text.bytes, text.length);
    work->answered++;
    tdm_text_free(&text);
    return status;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static tdm_status fill_text(filling *work)
{
    const char *text = work->values->fill_mask;
    const tdm_text_input input = {.text = text, .bytes = strlen(text)};
    int64_t failed;
    return tdm_mask_filler_fill(work->filler, &input, 1, write_answer, work, &failed);
}

static tdm_status fill_batch(filling *work, const tdm_line_batch *batch)
{
    TDM_TRY(tdm_grow(&work->inputs, &work->inputs_capacity, (size_t)batch->count,
                     sizeof *work->inputs));
    for (int64_t i = 0; i < batch->count; i++)
        work->inputs[i] =
            (tdm_text_input){.text = batch->lines[i].text, .bytes = batch->lines[i].bytes};
    int64_t failed;
    tdm_status status =
        tdm_mask_filler_fill(work->filler, work->inputs, batch->count, write_answer, work, &failed);
    if (status != TDM_OK && failed >= 0)
        return tdm_fail_context(status, "%s:%lld", batch->name, (long long)(batch->first + failed));
    return status;
}

static tdm_status fill_lines(filling *work, tdm_line_reader *reader)
{
    for (tdm_line_batch batch = {.count = 1}; batch.count > 0;) {
        TDM_FAIL_IF(atomic_load(work->command->cancel), TDM_E_CANCELLED, "stopped");
        TDM_TRY(tdm_line_reader_next(reader, &batch));
        TDM_TRY(fill_batch(work, &batch));
        if (tdm_line_reader_is_eager(reader))
            TDM_TRY(tdm_output_flush(work->output));
    }
    return TDM_OK;
}

static tdm_status fill_files(filling *work)
{
    const tdm_strings names = tdm_command_files(work->command, 1);
    tdm_line_reader *reader;
    TDM_TRY(tdm_line_reader_create(&names, work->command->cancel, &reader));
    tdm_status status = fill_lines(work, reader);
    tdm_line_reader_destroy(reader);
    return status;
}

static tdm_status fill(filling *work)
{
    const tdm_predict_values *values = work->values;
    bool reads = strcmp(values->fill_mask, "-") == 0;
    const tdm_encoder_run_options options = {.checkpoint = values->checkpoint,
                                             .threads = (int)values->threads,
                                             .head = TDM_HEAD_FILL,
                                             .batch_tokens = reads ? BATCH_TOKENS : 0,
                                             .precision = TDM_PRECISION_FP32};
    TDM_FAIL_IF(!reads && work->command->plain_count > 1, TDM_E_ARG,
                "--fill-mask has a text, and %s is named besides: --fill-mask - reads the lines of "
                "files",
                work->command->plain[1]);
    TDM_TRY(tdm_output_open(values->output, values->force, &work->output));
    TDM_TRY(tdm_encoder_run_open(work->command->plain[0], &options, &work->run));
    TDM_TRY(tdm_mask_filler_create(work->run, values->top > 0 ? values->top : TOP, &work->filler));
    TDM_TRY(reads ? fill_files(work) : fill_text(work));
    return tdm_output_commit(work->output);
}

tdm_status tdm_predict_masks(const tdm_command *command)
{
    filling work = {.command = command, .values = command->values};
    tdm_status status = fill(&work);
    tdm_mask_filler_destroy(work.filler);
    tdm_encoder_run_close(work.run);
    tdm_output_close(work.output);
    tdm_free(work.inputs);
    return status;
}
