#include "cli/reading.h"

#include <math.h>

tdm_recipe_arguments tdm_command_recipe_arguments(const tdm_command *command)
{
    return (tdm_recipe_arguments){.overrides = command->overrides,
                                  .override_count = command->override_count,
                                  .train = command->plain + 1,
                                  .train_count = command->plain_count - 1};
}

static tdm_status open_parts(const char *recipe, const tdm_recipe_arguments *arguments, int threads,
                             tdm_ctr_use use, const atomic_bool *cancel, tdm_reading *out)
{
    TDM_TRY(tdm_recipe_load(recipe, arguments, &out->recipe));
    TDM_TRY(tdm_recipe_open_input(out->recipe, cancel, &out->input));
    TDM_TRY(tdm_recipe_feature_spec(out->recipe, out->input, &out->spec));
    TDM_TRY(tdm_pool_create(threads < 0 ? (int)out->recipe->train.threads : threads, &out->pool));
    TDM_TRY(tdm_ctr_featurizer_create(out->spec, tdm_input_format(out->input), out->pool,
                                      out->recipe->train.batch_size, use, &out->featurizer));
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
