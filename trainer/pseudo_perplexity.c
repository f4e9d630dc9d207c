#include "trainer/pseudo_perplexity.h"

#include "core/clock.h"
#include "core/memory.h"
#include "data/block_stream.h"
#include "text/masked_batch.h"
#include "text/text_featurizer.h"
#include "trainer/task_text.h"

#include <math.h>
#include <string.h>

#define PROGRESS_SECONDS 0.2

typedef struct measuring {
    tdm_encoder_run *run;
    const tdm_evaluate_options *options;
    tdm_pseudo_perplexity *out;
    uint32_t specials[3]; /* that are not masked */
    uint32_t mask;
    tdm_record_format *format;
    tdm_featurizer *featurizer; /* masks nothing */
    tdm_input *input;
    tdm_extractor *extractor;
    tdm_block_stream *blocks;
    tdm_batch batch; /* of one sequence */
    tdm_window window;
    tdm_extract *block;
    double loss_sum, correct_sum;
    int64_t stored_bytes; /* of the blocks before */
    double told;
} measuring;

/* ---- batches of copies ----------------------------------------------------------------------- */

static tdm_status run_copies(measuring *measure)
{
    tdm_encoder_run *run = measure->run;
    if (run->batch.predictions == 0)
        return TDM_OK;
    TDM_TRY(tdm_encoder_run_forward(run));
    measure->loss_sum += run->scalars.losses[0].loss_sum;
    measure->correct_sum += run->scalars.losses[0].correct_sum;
    measure->out->tokens += run->batch.predictions;
    tdm_sequence_batch_empty(&run->batch);
    return TDM_OK;
}

static bool is_special(const measuring *measure, uint32_t id)
{
    for (int i = 0; i < 3; i++) {
        if (measure->specials[i] == id)
            return true;
    }
    return false;
}

/* The sequence with one token masked. */
static tdm_status add_copy(measuring *measure, const uint32_t *ids, int64_t length, int64_t second,
                           int64_t token)
{
    tdm_sequence_batch *batch = &measure->run->batch;
    if (!tdm_sequence_batch_has_room(batch, length, 1))
        TDM_TRY(run_copies(measure));
    uint32_t *copy = tdm_sequence_batch_add(batch, length, second);
    memcpy(copy, ids, (size_t)length * sizeof *ids);
    copy[token] = measure->mask;
    tdm_sequence_batch_predict(batch, token, ids[token]);
    return TDM_OK;
}

/* ---- sequences ------------------------------------------------------------------------------- */

static void tell_progress(measuring *measure, int64_t row)
{
    const tdm_evaluate_options *options = measure->options;
    double now = tdm_clock_seconds();
    if (options->progress == NULL || now < measure->told + PROGRESS_SECONDS)
        return;
    int64_t total = tdm_input_stored_bytes(measure->input);
    double done = (double)measure->stored_bytes +
                  (double)measure->block->stored_bytes * (double)row / (double)measure->window.rows;
    options->progress(options->context, measure->out->tokens,
                      total > 0 ? done / (double)total : NAN);
    measure->told = now;
}

static tdm_status take_sequence(measuring *measure, int64_t row)
{
    const tdm_featurizer *featurizer = measure->featurizer;
    const tdm_sequence sequence = tdm_sequence_get(&measure->window, row);
    measure->batch.rows = 1;
    measure->batch.tokens = sequence.tokens;
    featurizer->type->assemble(featurizer, &measure->window, row, 1, &measure->batch, 0, 0);
    featurizer->type->finish(featurizer, &measure->batch, 0);
    const tdm_masked_batch texts = tdm_masked_batch_of(&measure->batch);
    int64_t length = sequence.tokens, second = 0;
    while (second < length && texts.types[second] == 0)
        second++;
    for (int64_t t = 0; t < length; t++) {
        if (!is_special(measure, texts.ids[t]))
            TDM_TRY(add_copy(measure, texts.ids, length, second, t));
    }
    measure->out->sequences++;
    return TDM_OK;
}

static tdm_status take_block(measuring *measure, tdm_extract *block)
{
    const tdm_featurizer *featurizer = measure->featurizer;
    const atomic_bool *stop = measure->options->stop;
    tdm_bad_record_log *log = measure->options->bad_records;
    measure->block = block;
    measure->out->records += block->records;
    measure->out->bad_records += (int64_t)block->bad_count;
    if (log != NULL) {
        const tdm_bad_report report = tdm_bad_report_of(block);
        TDM_TRY(tdm_bad_record_log_add(log, measure->input, &report));
        TDM_TRY(tdm_bad_record_log_judge(log, tdm_good_records_of(block), false));
    }
    TDM_TRY(featurizer->type->open_window(featurizer, 0, false, &measure->window));
    for (int64_t row = 0; row < measure->window.rows; row++) {
        TDM_FAIL_IF(stop != NULL && atomic_load(stop), TDM_E_CANCELLED,
                    "the evaluation was stopped");
        TDM_TRY(take_sequence(measure, row));
        tell_progress(measure, row + 1);
    }
    measure->stored_bytes += block->stored_bytes;
    return TDM_OK;
}

static tdm_status take_blocks(measuring *measure)
{
    for (;;) {
        tdm_extract *block;
        TDM_TRY(tdm_block_stream_next(measure->blocks, &block));
        if (block == NULL)
            break;
        TDM_TRY(take_block(measure, block));
    }
    TDM_TRY(run_copies(measure));
    return measure->options->bad_records == NULL
               ? TDM_OK
               : tdm_bad_record_log_judge(measure->options->bad_records, 0, true);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* What the run masks by chance is masked in turn here. */
static tdm_status open_featurizer(measuring *measure, const tdm_recipe *recipe)
{
    tdm_text_options text = recipe->text;
    text.masking.rate = 0;
    text.masking.at_least_one = false;
    text.masking.unit = TDM_MASK_TOKEN;
    text.masking.count = TDM_MASK_EXACT;
    text.batch = TDM_TEXT_UNPADDED;
    TDM_TRY(tdm_text_featurizer_create(&text, measure->run->tokenizer, measure->run->pool,
                                       text.max_length, 1, &measure->featurizer));
    measure->batch.layout = &measure->featurizer->batch;
    measure->window = (tdm_window){.block_count = 1, .blocks = &measure->block};
    return tdm_alloc(measure->featurizer->batch.bytes, 1, &measure->batch.data);
}

static tdm_status open_files(measuring *measure, const tdm_recipe *recipe, const tdm_strings *files)
{
    const tdm_input_options options = {
        .paths = files,
        .saved_format = measure->format,
        .lanes = 1,
        .max_record_bytes = recipe->data.max_record_bytes,
        .pool = measure->run->pool,
        .cancel = measure->options->stop,
    };
    TDM_TRY(tdm_input_open(&options, &measure->input));
    TDM_TRY(tdm_extractor_create(measure->featurizer, measure->input, measure->run->pool,
                                 TDM_SELECT_ALL, 0, &measure->extractor));
    return tdm_block_stream_open(measure->extractor, measure->run->pool, &measure->blocks);
}

static tdm_status measure_files(measuring *measure, const tdm_strings *files)
{
    const tdm_encoder_run *run = measure->run;
    const tdm_recipe *recipe = run->source.recipe;
    TDM_FAIL_IF(recipe == NULL || recipe->task != TDM_TASK_MLM, TDM_E_CONFIG,
                "%s: is no run of task mlm, whose texts have a pseudo-perplexity",
                run->source.from.config.path);
    const int64_t *specials = run->tokenizer->specials;
    measure->mask = (uint32_t)specials[TDM_SPECIAL_MASK];
    measure->specials[0] = (uint32_t)specials[TDM_SPECIAL_CLS];
    measure->specials[1] = (uint32_t)specials[TDM_SPECIAL_SEP];
    measure->specials[2] = (uint32_t)specials[TDM_SPECIAL_PAD];
    TDM_TRY(tdm_run_text_format(recipe, run->source.from.config.path, &measure->format));
    TDM_TRY(open_featurizer(measure, recipe));
    TDM_TRY(open_files(measure, recipe, files));
    return take_blocks(measure);
}

tdm_status tdm_measure_pseudo_perplexity(tdm_encoder_run *run, const tdm_strings *files,
                                         const tdm_evaluate_options *options,
                                         tdm_pseudo_perplexity *out)
{
    double start = tdm_clock_seconds();
    measuring measure = {.run = run, .options = options, .out = out, .told = start};
    *out = (tdm_pseudo_perplexity){0};
    tdm_sequence_batch_empty(&run->batch);
    tdm_status status = measure_files(&measure, files);
    tdm_block_stream_close(measure.blocks);
    tdm_extractor_destroy(measure.extractor);
    tdm_input_close(measure.input);
    tdm_window_deinit(&measure.window);
    tdm_featurizer_destroy(measure.featurizer);
    tdm_free(measure.batch.data);
    tdm_record_format_destroy(measure.format);
    out->loss = measure.loss_sum / (double)out->tokens;
    out->perplexity = exp(out->loss);
    out->accuracy = measure.correct_sum / (double)out->tokens;
    out->seconds = tdm_clock_seconds() - start;
    return status;
}
