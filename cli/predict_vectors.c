/* tandem predict --embed: a vector for each line. */
#include "cli/console.h"
#include "cli/line_batches.h"
#include "cli/predict.h"
#include "cli/progress.h"
#include "cli/vector_output.h"
#include "core/clock.h"
#include "core/memory.h"
#include "trainer/embedder.h"

/* Enough for products to run at their full rate, and few enough for what they leave to stay in the
 * cache. */
#define BATCH_TOKENS 4096

typedef struct embedding {
    const tdm_command *command;
    const tdm_predict_values *values;
    tdm_encoder_run *run;
    tdm_embedder *embedder;
    tdm_vector_output *output;
    tdm_line_reader *reader;
    tdm_progress progress;
    int64_t added; /* lines */
    tdm_text_input *inputs;
    size_t inputs_capacity;
} embedding;

/* Lines are read ahead of the model. */
static void tell_progress(embedding *work)
{
    int64_t done = tdm_embedder_counts_get(work->embedder).texts;
    double read = tdm_line_reader_share(work->reader);
    if (!tdm_vector_output_is_stdout(work->output))
        tdm_progress_rows(&work->progress, done, read * (double)done / (double)work->added);
}

static tdm_status take_vectors(void *context, const float *vectors, int64_t count)
{
    embedding *work = context;
    TDM_FAIL_IF(atomic_load(work->command->cancel), TDM_E_CANCELLED, "stopped");
    tell_progress(work);
    return tdm_vector_output_write(work->output, work->run->pool, vectors, count,
                                   work->run->hidden);
}

static tdm_status open_parts(embedding *work)
{
    const tdm_predict_values *values = work->values;
    int pooling, precision;
    TDM_TRY(tdm_predict_pooling(values, &pooling));
    TDM_TRY(tdm_predict_precision(values, TDM_PRECISION_FP32, &precision));
    const tdm_encoder_run_options options = {
        .checkpoint = values->checkpoint,
        .threads = (int)values->threads,
        .head = TDM_HEAD_NONE,
        .max_length = values->max_length,
        .batch_tokens = values->batch_tokens > 0 ? values->batch_tokens : BATCH_TOKENS,
        .precision = precision,
    };
    const tdm_embedder_options embedder = {
        .pooling = (tdm_pooling)pooling, .take = take_vectors, .context = work};
    TDM_TRY(tdm_vector_output_open(values->output, values->force, values->json, &work->output));
    TDM_TRY(tdm_encoder_run_open(work->command->plain[0], &options, &work->run));
    return tdm_embedder_create(work->run, &embedder, &work->embedder);
}

static tdm_status add_lines(embedding *work, const tdm_line_batch *batch)
{
    TDM_TRY(tdm_grow(&work->inputs, &work->inputs_capacity, (size_t)batch->count,
                     sizeof *work->inputs));
    for (int64_t i = 0; i < batch->count; i++)
        work->inputs[i] =
            (tdm_text_input){.text = batch->lines[i].text, .bytes = batch->lines[i].bytes};
    work->added += batch->count;
    return tdm_embedder_add(work->embedder, work->inputs, batch->count);
}

/* Where somebody waits for the answers to what was read so far, they are given. */
static tdm_status answer_eagerly(const embedding *work)
{
    if (!tdm_line_reader_is_eager(work->reader))
        return TDM_OK;
    TDM_TRY(tdm_embedder_finish(work->embedder));
    return tdm_vector_output_flush(work->output);
}

static tdm_status embed_lines(embedding *work)
{
    for (tdm_line_batch batch = {.count = 1}; batch.count > 0;) {
        TDM_FAIL_IF(atomic_load(work->command->cancel), TDM_E_CANCELLED, "stopped");
        TDM_TRY(tdm_line_reader_next(work->reader, &batch));
        TDM_TRY(add_lines(work, &batch));
        TDM_TRY(answer_eagerly(work));
    }
    return tdm_embedder_finish(work->embedder);
}

static tdm_status embed_files(embedding *work)
{
    const tdm_strings names = tdm_command_files(work->command, 1);
    TDM_TRY(tdm_line_reader_create(&names, work->command->cancel, &work->reader));
    tdm_progress_init(&work->progress, "embedding", 10);
    tdm_status status = embed_lines(work);
    tdm_progress_end(&work->progress);
    return status;
}

static void tell_counts(const embedding *work, double seconds)
{
    tdm_embedder_counts counts = tdm_embedder_counts_get(work->embedder);
    if (!tdm_vector_output_is_stdout(work->output))
        tdm_console_print("%lld vectors of %lld tokens in %.2f s: %s tokens/s",
                          (long long)counts.texts, (long long)counts.tokens, seconds,
                          tdm_count_text((double)counts.tokens / seconds));
    if (counts.cut > 0)
        tdm_console_print("%lld of %lld texts have more than %lld tokens: their ends are left out",
                          (long long)counts.cut, (long long)counts.texts,
                          (long long)work->run->max_length);
}

static tdm_status embed(embedding *work)
{
    TDM_TRY(open_parts(work));
    double start = tdm_clock_seconds();
    TDM_TRY(embed_files(work));
    double seconds = tdm_clock_seconds() - start;
    TDM_TRY(tdm_vector_output_commit(work->output, work->run->hidden));
    tell_counts(work, seconds);
    return TDM_OK;
}

tdm_status tdm_predict_vectors(const tdm_command *command)
{
    embedding work = {.command = command, .values = command->values};
    bool has_records;
    TDM_TRY(tdm_encoder_source_has_records(command->plain[0], &has_records));
    if (has_records)
        return tdm_predict_records(command);
    tdm_status status = embed(&work);
    tdm_line_reader_destroy(work.reader);
    tdm_embedder_destroy(work.embedder);
    tdm_encoder_run_close(work.run);
    tdm_vector_output_close(work.output);
    tdm_free(work.inputs);
    return status;
}
