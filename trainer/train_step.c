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

static tdm_status write_scalars(tdm_training *training, int64_t epoch)
{
    tdm_backend *backend = training->session.backend;
    training->scalars = (tdm_step_scalars){
        .step = training->state.step + 1,
        .epoch = epoch,
        .clip_norm = training->recipe->train.clip_norm,
        .loss_scale = 1,
    };
    tdm_optimizer_learning_rates(&training->recipe->optimizer, training->state.step + 1,
                                 schedule_progress(training), &training->scalars);
    return backend->type->copy_in(backend, training->device_scalars, &training->scalars,
                                  sizeof training->scalars, NULL);
}

/* Puts the whole step on the stream. Each row is scored by the forward pass, before its update. */
static tdm_status launch(tdm_training *training, const tdm_fed_batch *fed)
{
    tdm_backend *backend = training->session.backend;
    tdm_model *model = training->session.model;
    tdm_step_scalars *scalars = training->device_scalars;
    TDM_TRY(write_scalars(training, fed->delivery->epoch));
    TDM_TRY(tdm_model_forward(model, fed->data, scalars, true, NULL));
    TDM_TRY(tdm_model_backward(model, fed->data, scalars, false, NULL));
    TDM_TRY(tdm_optimizer_step(training->optimizer, fed->data, scalars, NULL));
    TDM_TRY(backend->type->copy_out(backend, &training->scalars, scalars, sizeof *scalars, NULL));
    if (training->probabilities == NULL)
        return TDM_OK;
    size_t bytes = (size_t)fed->delivery->batch.rows * sizeof(float);
    tdm_matrix probabilities;
    TDM_TRY(tdm_model_output(model, "probabilities", &probabilities));
    return backend->type->copy_out(backend, training->probabilities, probabilities.data, bytes,
                                   NULL);
}

static const float *probabilities(const tdm_training *training)
{
    tdm_matrix probabilities;
    if (training->probabilities != NULL)
        return training->probabilities;
    return tdm_model_output(training->session.model, "probabilities", &probabilities) == TDM_OK
               ? probabilities.data
               : NULL;
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
    const float *scores = probabilities(training);
    uint64_t first = samples[0], last = samples[0];
    int64_t bad = -1;
    for (int64_t i = 0; i < batch->rows; i++) {
        first = samples[i] < first ? samples[i] : first;
        last = samples[i] > last ? samples[i] : last;
        if (bad < 0 && !isfinite(scores[i]))
            bad = i;
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

static tdm_status report_numbers(tdm_training *training, const tdm_batch *batch)
{
    char tensor[128], rows[560];
    const char *what = isfinite(training->scalars.losses[0].loss_sum) ? "a gradient" : "the loss";
    describe_rows(training, batch, rows, sizeof rows);
    TDM_TRY(tdm_model_find_non_finite(training->session.model, tensor));
    return tdm_fail(TDM_E_NUMERIC,
                    "step %lld: %s is not a finite number; the first bad tensor is %s; %s; lower "
                    "optimizer.dense.learning_rate and optimizer.sparse.learning_rate, or set "
                    "train.clip_norm",
                    (long long)training->state.step + 1, what,
                    tensor[0] == '\0' ? "none that is left" : tensor, rows);
}

/* ---- the step -------------------------------------------------------------------------------- */

static tdm_status account(tdm_training *training, const tdm_batch *batch)
{
    tdm_train_state *state = &training->state;
    int label = tdm_batch_layout_find(batch->layout, "label");
    TDM_TRY(tdm_metrics_add(&state->window, probabilities(training), tdm_batch_data(batch, label),
                            tdm_batch_data(batch, TDM_BATCH_WEIGHT), batch->rows));
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
    if (!isfinite(training->scalars.losses[0].loss_sum) || training->scalars.found_inf != 0)
        return report_numbers(training, batch);
    return account(training, batch);
}
