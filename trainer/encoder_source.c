#include "trainer/encoder_source.h"

#include "core/file.h"
#include "core/memory.h"
#include "trainer/checkpoint.h"
#include "trainer/run_folder.h"
#include "trainer/tensor_file.h"

static tdm_status is_run(const char *path, bool *out)
{
    char *recipe;
    TDM_TRY(tdm_path_join(path, TDM_RUN_RECIPE, &recipe));
    *out = tdm_file_exists(recipe);
    tdm_free(recipe);
    return TDM_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static tdm_status open_run_weights(const char *folder, const char *checkpoint,
                                   tdm_encoder_source *out)
{
    char *path;
    TDM_TRY(tdm_run_folder_choose(folder, checkpoint, &out->step));
    tdm_recipe_set_phase(out->recipe, tdm_recipe_phase_of(out->recipe, out->step));
    TDM_TRY(tdm_checkpoint_path(folder, out->step, TDM_MODEL_FILE, &path));
    tdm_status status = tdm_pretrained_tensors_open(path, &out->from.tensors);
    tdm_free(path);
    return status;
}

static tdm_status open_run(const char *folder, const tdm_encoder_source_options *options,
                           tdm_encoder_source *out)
{
    tdm_pretrained *from = &out->from;
    tdm_pretrained_config *config = &from->config;
    TDM_TRY(tdm_recipe_load_run(folder, &out->recipe));
    TDM_FAIL_IF(out->recipe->task == TDM_TASK_CTR, TDM_E_CONFIG,
                "%s: is a run of task ctr, whose model is no encoder of text", folder);
    config->options = *(const tdm_bert_options *)out->recipe->model_options;
    if (config->options.max_positions == 0)
        config->options.max_positions = out->recipe->text.max_length;
    config->tied = true;
    from->is_ours = true;
    TDM_TRY(tdm_path_join(folder, TDM_RUN_RECIPE, &config->path));
    TDM_TRY(tdm_path_join(folder, TDM_RUN_TOKENIZER, &from->tokenizer_path));
    TDM_TRY(tdm_tokenizer_open(from->tokenizer_path, NULL, &from->tokenizer));
    config->vocabulary = tdm_tokenizer_size(from->tokenizer);
    return options->settings_only ? TDM_OK : open_run_weights(folder, options->checkpoint, out);
}

tdm_status tdm_encoder_source_has_records(const char *path, bool *out)
{
    tdm_recipe *recipe;
    TDM_TRY(is_run(path, out));
    if (!*out)
        return TDM_OK;
    TDM_TRY(tdm_recipe_load_run(path, &recipe));
    *out = recipe->task == TDM_TASK_CLASSIFY;
    tdm_recipe_free(recipe);
    return TDM_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static tdm_status open_any(const char *path, const tdm_encoder_source_options *options,
                           tdm_encoder_source *out)
{
    bool run, other;
    TDM_TRY(is_run(path, &run));
    if (run)
        return open_run(path, options, out);
    TDM_TRY(tdm_pretrained_find(path, &other));
    TDM_FAIL_IF(!other, TDM_E_STATE,
                "%s: holds neither a run (" TDM_RUN_RECIPE
                ") nor another program's model (config.json or bert_config.json)",
                path);
    return options->settings_only
               ? tdm_pretrained_open_settings(path, options->settings, &out->from)
               : tdm_pretrained_open(path, options->settings, &out->from);
}

tdm_status tdm_encoder_source_open(const char *path, const tdm_encoder_source_options *options,
                                   tdm_encoder_source *out)
{
    *out = (tdm_encoder_source){.step = -1};
    tdm_status status = open_any(path, options, out);
    if (status != TDM_OK)
        tdm_encoder_source_close(out);
    return status;
}

void tdm_encoder_source_close(tdm_encoder_source *source)
{
    tdm_pretrained_close(&source->from);
    tdm_recipe_free(source->recipe);
    *source = (tdm_encoder_source){.step = -1};
}
