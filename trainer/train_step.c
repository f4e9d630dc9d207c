#include "trainer/training.h"

#include <math.h>
#include <stdio.h>

/* The share of the training that lies before this step, for the schedule. */
static double schedule_progress(const tdm_training *training)
{
    const tdm_train_options *train = &training->recipe->train;
    const tdm_train_state *state = &training->state;
    if (train->max_steps > 0)
        return (double)state->step / (double)train->max_steps;
    if (train->epochs == 0)
        return 0;
    return ((double)state->position.epoch + state->share) / (double)train->epochs;
}

static tdm_status write_scalars(tdm_training *training, const tdm_fed_batch *fed)
{
    tdm_backend *backend = training->session.backend;
    const tdm_task *task = &training->session.task;
    training->scalars = (tdm_step_scalars){
        .step = training->state.step + 1,
        .epoch = fed->delivery->epoch,
        .clip_norm = training->recipe->train.clip_norm,
        .loss_scale = 1,
    };
    tdm_optimizer_learning_rates(&training->recipe->optimizer, training->state.step + 1,
                                 schedule_progress(training), &training->scalars);
    if (task->type->weigh != NULL)
        task->type->weigh(task, &fed->delivery->batch, &training->scalars);
    return backend->type->copy_in(backend, training->device_scalars, &training->scalars,
                                  sizeof training->scalars, NULL);
}

/* Forward and backward of the batch, part by part; the last part is left in *data. */
static tdm_status run_parts(tdm_training *training, const tdm_fed_batch *fed,
                            const unsigned char **data)
{
    tdm_model *model = training->session.model;
    tdm_step_scalars *scalars = training->device_scalars;
    tdm_batch_parts_begin(training->parts, &fed->delivery->batch, fed->data);
    for (bool accumulate = false;; accumulate = true) {
        const unsigned char *part;
        tdm_row_range rows;
        TDM_TRY(tdm_batch_parts_next(training->parts, &part, &rows));
        if (part == NULL)
            return TDM_OK;
        TDM_TRY(tdm_model_forward(model, part, scalars, true, NULL));
        TDM_TRY(tdm_model_backward(model, part, scalars, accumulate, NULL));
        training->progress.work.parts++;
        TDM_TRY(tdm_outputs_take(&training->outputs, &fed->delivery->batch, rows));
        *data = part;
    }
}

/* Puts the whole step on the stream. Each row is scored before its update. */
static tdm_status launch(tdm_training *training, const tdm_fed_batch *fed)
{
    tdm_backend *backend = training->session.backend;
    tdm_step_scalars *scalars = training->device_scalars;
    const unsigned char *data = NULL;
    TDM_TRY(write_scalars(training, fed));
    TDM_TRY(run_parts(training, fed, &data));
    TDM_TRY(tdm_optimizer_step(training->optimizer, data, scalars, NULL));
    return backend->type->copy_out(backend, &training->scalars, scalars, sizeof *scalars, NULL);
}

/* ---- numbers that are not finite ------------------------------------------------------------- */

/* "day_0.tsv, block 3 of the file" of the file where blocks tell it, else "block 17". */
static void describe_block(const tdm_input *input, int64_t block, char *text, size_t bytes)
{
    for (int32_t i = 0; tdm_input_seekable(input) && i < tdm_input_file_count(input); i++) {
        const tdm_input_file *file = tdm_input_file_get(input, i);
        if (block >= file->first_block && block < file->first_block + file->block_count) {
            snprintf(text, bytes, "%s, block %lld", file->path,
                     (long long)(block - file->first_block));
            return;
        }
    }
    snprintf(text, bytes, "block %lld", (long long)block);
}

/* Where the batch came from, and its first row without a finite prediction where there is one. */
static void describe_rows(const tdm_training *training, const tdm_batch *batch, char *text,
                          size_t bytes)
{
    const uint64_t *samples = tdm_batch_data(batch, TDM_BATCH_SAMPLE);
    uint64_t first = samples[0], last = samples[0];
    int64_t bad = tdm_outputs_find_non_finite(&training->outputs, batch);
    for (int64_t i = 0; i < batch->rows; i++) {
        first = samples[i] < first ? samples[i] : first;
        last = samples[i] > last ? samples[i] : last;
    }
    char from[200], to[200], worst[200] = "";
    describe_block(training->session.input, (int64_t)(first >> 32), from, sizeof from);
    describe_block(training->session.input, (int64_t)(last >> 32), to, sizeof to);
    if (bad >= 0)
        describe_block(training->session.input, (int64_t)(samples[bad] >> 32), worst, sizeof worst);
    int length = snprintf(text, bytes, "its %lld rows are from %s row %u to %s row %u",
                          (long long)batch->rows, from, (unsigned)first, to, (unsigned)last);
    if (bad >= 0 && length > 0 && (size_t)length < bytes)
        snprintf(text + length, bytes - (size_t)length,
                 ", the first bad prediction is of %s row %u", worst, (unsigned)samples[bad]);
}

static bool has_finite_losses(const tdm_step_scalars *scalars)
{
    bool finite = true;
    for (int i = 0; i < TDM_LOSSES; i++)
        finite = finite && isfinite(scalars->losses[i].loss_sum);
    return finite;
}

static tdm_status report_numbers(tdm_training *training, const tdm_batch *batch)
{
    char tensor[128], rows[560];
    const char *what = has_finite_losses(&training->scalars) ? "a gradient" : "the loss";
    bool has_tables = tdm_model_sparse_gradient_count(training->session.model) > 0;
    describe_rows(training, batch, rows, sizeof rows);
    TDM_TRY(tdm_model_find_non_finite(training->session.model, tensor));
    return tdm_fail(TDM_E_NUMERIC,
                    "step %lld: %s is not a finite number; the first bad tensor is %s; %s; lower "
                    "%s, or set train.clip_norm",
                    (long long)training->state.step + 1, what,
                    tensor[0] == '\0' ? "none that is left" : tensor, rows,
                    has_tables ? "optimizer.dense.learning_rate and optimizer.sparse.learning_rate"
                               : "optimizer.learning_rate");
}

/* ---- the step -------------------------------------------------------------------------------- */

static tdm_status account(tdm_training *training, const tdm_batch *batch)
{
    tdm_train_state *state = &training->state;
    const tdm_task *task = &training->session.task;
    const tdm_outcome outcome = {
        .batch = batch, .scalars = &training->scalars, .output = training->outputs.host};
    tdm_pipeline_stats stats = tdm_pipeline_stats_get(training->pipeline);
    TDM_TRY(task->type->add(task, &state->window, &outcome));
    training->progress.full_steps += stats.batches_ready >= stats.depth - 1;
    tdm_step_work_add(&training->progress.work, task, batch);
    state->step++;
    state->rows += batch->rows;
    state->learning_rate = training->scalars.dense_learning_rate;
    state->gradient_norm = training->scalars.gradient_norm;
    state->position = batch->after;
    state->share = batch->share;
    return TDM_OK;
}

tdm_status tdm_training_step(tdm_training *training, const tdm_fed_batch *fed)
{
    tdm_backend *backend = training->session.backend;
    const tdm_batch *batch = &fed->delivery->batch;
    const tdm_train_options *train = &training->recipe->train;
    TDM_TRY(launch(training, fed));
    bool is_last = training->state.step + 1 == train->max_steps;
    if (!is_last)
        tdm_batch_feed_ahead(&training->feed);
    TDM_TRY(backend->type->stream_sync(backend, NULL));
    if (!has_finite_losses(&training->scalars) || training->scalars.found_inf != 0)
        return report_numbers(training, batch);
    return account(training, batch);
}
