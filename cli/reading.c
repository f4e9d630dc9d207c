#include "cli/reading.h"

#include "cpu/backend_cpu.h"

#include <math.h>

tdm_recipe_arguments tdm_command_recipe_arguments(const tdm_command *command)
{
    return (tdm_recipe_arguments){.overrides = command->overrides,
                                  .override_count = command->override_count,
                                  .train = command->plain + 1,
                                  .train_count = command->plain_count - 1};
}

static tdm_status open_labels(tdm_reading *reading)
{
    tdm_recipe *recipe = reading->recipe;
    TDM_TRY(tdm_recipe_label_spec(recipe, reading->input, reading->pool, TDM_LABEL_TRAINING,
                                  &reading->labels));
    return tdm_label_featurizer_create(
        reading->labels, tdm_input_format(reading->input), &recipe->text, reading->tokenizer,
        reading->pool, recipe->train.batch_tokens, (int)recipe->data.lanes, &reading->featurizer);
}

static tdm_status open_featurizer(tdm_reading *reading, tdm_ctr_use use)
{
    const tdm_recipe *recipe = reading->recipe;
    if (recipe->task != TDM_TASK_CTR)
        TDM_TRY(tdm_recipe_tokenizer(recipe, &reading->tokenizer));
    if (recipe->task == TDM_TASK_CLASSIFY)
        return open_labels(reading);
    if (recipe->task == TDM_TASK_MLM)
        return tdm_text_featurizer_create(&recipe->text, reading->tokenizer, reading->pool,
                                          recipe->train.batch_tokens, (int)recipe->data.lanes,
                                          &reading->featurizer);
    TDM_TRY(tdm_recipe_feature_spec(recipe, reading->input, &reading->spec));
    return tdm_ctr_featurizer_create(reading->spec, tdm_input_format(reading->input), reading->pool,
                                     recipe->train.batch_size, use, &reading->featurizer);
}

static tdm_status open_parts(const char *recipe, const tdm_recipe_arguments *arguments, int threads,
                             tdm_ctr_use use, const atomic_bool *cancel, tdm_reading *out)
{
    TDM_TRY(tdm_recipe_load(recipe, arguments, &out->recipe));
    TDM_TRY(tdm_pool_create(threads < 0 ? (int)out->recipe->train.threads : threads, &out->pool));
    TDM_TRY(tdm_recipe_open_input(out->recipe, out->pool, cancel, &out->input));
    TDM_TRY(open_featurizer(out, use));
    return tdm_extractor_create(out->featurizer, out->input, out->pool, TDM_SELECT_ALL, 0,
                                &out->extractor);
}

tdm_status tdm_reading_open(const char *recipe, const tdm_recipe_arguments *arguments, int threads,
                            tdm_ctr_use use, const atomic_bool *cancel, tdm_reading *out)
{
    *out = (tdm_reading){0};
    tdm_status status = open_parts(recipe, arguments, threads, use, cancel, out);
    if (status != TDM_OK)
        tdm_reading_close(out);
    return status;
}

void tdm_reading_close(tdm_reading *reading)
{
    tdm_extractor_destroy(reading->extractor);
    tdm_featurizer_destroy(reading->featurizer);
    tdm_pool_destroy(reading->pool);
    tdm_feature_spec_destroy(reading->spec);
    tdm_label_spec_destroy(reading->labels);
    tdm_tokenizer_close(reading->tokenizer);
    tdm_input_close(reading->input);
    tdm_recipe_free(reading->recipe);
    *reading = (tdm_reading){0};
}

tdm_status tdm_reading_blocks(tdm_reading *reading, const atomic_bool *cancel,
                              tdm_status (*take)(void *context, const tdm_extract *block),
                              void (*progress)(void *context, int64_t rows, double share),
                              void *progress_context, void *context)
{
    tdm_block_stream *stream;
    TDM_TRY(tdm_block_stream_open(reading->extractor, reading->pool, &stream));
    int64_t total = tdm_input_stored_bytes(reading->input);
    int64_t rows = 0, bytes = 0;
    tdm_status status = TDM_OK;
    tdm_extract *block;
    for (;;) {
        if (cancel != NULL && atomic_load(cancel))
            status = tdm_fail(TDM_E_CANCELLED, "stopped");
        if (status != TDM_OK)
            break;
        TDM_TRY_GOTO(tdm_block_stream_next(stream, &block), out);
        if (block == NULL)
            break;
        TDM_TRY_GOTO(take(context, block), out);
        rows += block->rows;
        bytes += block->stored_bytes;
        if (progress != NULL)
            progress(progress_context, rows, total > 0 ? (double)bytes / (double)total : NAN);
    }
out:
    tdm_block_stream_close(stream);
    return status;
}

tdm_status tdm_reading_select_training(tdm_reading *reading)
{
    tdm_extractor *extractor;
    TDM_TRY(tdm_extractor_create(reading->featurizer, reading->input, reading->pool,
                                 TDM_SELECT_TRAINING, reading->recipe->eval.hold_out, &extractor));
    tdm_extractor_destroy(reading->extractor);
    reading->extractor = extractor;
    return TDM_OK;
}

/* ---- batches --------------------------------------------------------------------------------- */

#define RING_DEPTH 4

static tdm_status take_batches(tdm_pipeline *pipeline, const tdm_batch_run *run)
{
    for (bool stop = false; !stop;) {
        if (run->cancel != NULL && atomic_load(run->cancel))
            return tdm_fail(TDM_E_CANCELLED, "stopped");
        tdm_delivery *delivery;
        TDM_TRY(tdm_pipeline_next(pipeline, &delivery));
        bool last = delivery->last;
        tdm_status status = run->take(run->context, delivery, &stop);
        tdm_pipeline_release(pipeline, delivery);
        TDM_TRY(status);
        stop = stop || last;
    }
    return TDM_OK;
}

tdm_status tdm_reading_batches(tdm_reading *reading, const tdm_batch_run *run)
{
    const tdm_recipe *recipe = reading->recipe;
    tdm_backend *backend;
    TDM_TRY(tdm_cpu_create(reading->pool, &backend));
    const tdm_pipeline_options options = {.extractor = reading->extractor,
                                          .pool = reading->pool,
                                          .backend = backend,
                                          .seed = (uint64_t)recipe->seed,
                                          .lanes = (int)recipe->data.lanes,
                                          .window_blocks = (int)recipe->data.window_blocks,
                                          .epochs = run->epochs,
                                          .depth = RING_DEPTH,
                                          .cache_path = run->cache_path,
                                          .write_cache = run->cache_path != NULL};
    tdm_pipeline *pipeline = NULL;
    tdm_status status = tdm_pipeline_create(&options, &pipeline);
    if (status == TDM_OK)
        status = take_batches(pipeline, run);
    tdm_pipeline_destroy(pipeline);
    tdm_backend_destroy(backend);
    return status;
}
