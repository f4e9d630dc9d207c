#include "trainer/init_from.h"

#include "core/log.h"
#include "core/memory.h"
#include "trainer/checkpoint.h"
#include "trainer/encoder_source.h"
#include "trainer/recipe_internal.h"
#include "trainer/run_folder.h"
#include "trainer/tensor_file.h"

#include <string.h>

/* ---- the recipe ------------------------------------------------------------------------------ */

/* How a vocab.txt without a word on it is to be read. */
static tdm_tokenizer_settings settings_of(const tdm_text_options *text)
{
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    if (text->lowercase > 0)
        settings.lowercase = text->lowercase - 1 > 0;
    if (text->strip_accents > 0)
        settings.strip_accents = text->strip_accents - 1;
    if (text->unicode > 0)
        settings.unicode = (tdm_unicode_mode)(text->unicode - 1);
    return settings;
}

static void complete_model(const tdm_encoder_source *source, tdm_recipe *recipe)
{
    tdm_bert_options *options = recipe->model_options;
    tdm_pretrained_config_fill(&source->from.config, recipe->model, options);
    /* What files of other programs do not say. */
    if (source->recipe != NULL && tdm_recipe_node(recipe, "model", "pooler") == NULL)
        options->pooler = source->from.config.options.pooler;
}

static bool is_json(const char *path)
{
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

/* A tokenizer.json says all of it by itself. */
static tdm_status complete_text(const tdm_pretrained *from, tdm_text_options *text)
{
    if (text->tokenizer != NULL || from->tokenizer_path == NULL)
        return TDM_OK;
    TDM_TRY(tdm_strdup(from->tokenizer_path, &text->tokenizer));
    if (is_json(from->tokenizer_path))
        return TDM_OK;
    tdm_tokenizer_settings settings = tdm_tokenizer_get_settings(from->tokenizer);
    TDM_FAIL_IF(!settings.handle_chinese_chars, TDM_E_UNSUPPORTED,
                "%s: is to be read with tokenize_chinese_chars false, which no key of a recipe "
                "says: name a tokenizer.json as text.tokenizer",
                from->tokenizer_path);
    text->lowercase = 1 + settings.lowercase;
    text->strip_accents = 1 + settings.strip_accents;
    return TDM_OK;
}

tdm_status tdm_init_from_complete(tdm_recipe *recipe)
{
    const tdm_tokenizer_settings settings = settings_of(&recipe->text);
    const tdm_encoder_source_options options = {.settings_only = true, .settings = &settings};
    tdm_encoder_source source;
    tdm_status status = tdm_encoder_source_open(recipe->init_from, &options, &source);
    if (status != TDM_OK)
        return tdm_fail_context(status, "model.init_from");
    complete_model(&source, recipe);
    status = tdm_pretrained_config_check(&source.from.config, recipe->model, recipe->model_options,
                                         recipe->text.max_length);
    if (status == TDM_OK)
        status = complete_text(&source.from, &recipe->text);
    tdm_encoder_source_close(&source);
    return status;
}

/* ---- weights --------------------------------------------------------------------------------- */

static tdm_status load_same(const tdm_session *session, const tdm_saved_tensor *tensors, int count)
{
    const char *from = session->recipe->init_from;
    char *path;
    int64_t step;
    int loaded;
    TDM_TRY(tdm_run_folder_choose(from, NULL, &step));
    TDM_TRY(tdm_checkpoint_path(from, step, TDM_MODEL_FILE, &path));
    tdm_status status = tdm_tensor_file_load_some(path, session->backend, tensors, count, &loaded);
    if (status == TDM_OK && loaded == 0)
        status = tdm_fail(TDM_E_CONFIG,
                          "model.init_from: none of the model's %d tensors is in %s with the same "
                          "name and shape",
                          count, path);
    if (status == TDM_OK)
        tdm_info("model.init_from: %d of %d tensors start from step %lld of %s", loaded, count,
                 (long long)step, from);
    tdm_free(path);
    return status;
}

static tdm_status load_from(const tdm_session *session, const tdm_encoder_source *source,
                            const tdm_saved_tensor *tensors, int count)
{
    const tdm_recipe *recipe = session->recipe;
    const tdm_task *task = &session->task;
    tdm_pretrained_report report;
    TDM_TRY(tdm_pretrained_config_check(&source->from.config, recipe->model, recipe->model_options,
                                        recipe->text.max_length));
    TDM_TRY(tdm_pretrained_load(&source->from, recipe->model_options, &task->inputs,
                                task->tokenizer, session->backend, tensors, count, &report));
    if (source->recipe != NULL)
        tdm_info("model.init_from: %d of %d tensors start from step %lld of %s", report.loaded,
                 count, (long long)source->step, recipe->init_from);
    else
        tdm_info("model.init_from: %d of %d tensors start from %s", report.loaded, count,
                 recipe->init_from);
    return TDM_OK;
}

static tdm_status load_encoder(const tdm_session *session, const tdm_saved_tensor *tensors,
                               int count)
{
    const tdm_tokenizer_settings settings = settings_of(&session->recipe->text);
    const tdm_encoder_source_options options = {.settings = &settings};
    tdm_encoder_source source;
    tdm_status status = tdm_encoder_source_open(session->recipe->init_from, &options, &source);
    if (status != TDM_OK)
        return tdm_fail_context(status, "model.init_from");
    status = load_from(session, &source, tensors, count);
    tdm_encoder_source_close(&source);
    return status;
}

tdm_status tdm_init_from_load(const tdm_session *session)
{
    tdm_saved_tensor *tensors;
    int count;
    TDM_TRY(tdm_model_tensors(session->model, &tensors, &count));
    tdm_status status = session->recipe->task == TDM_TASK_CTR
                            ? load_same(session, tensors, count)
                            : load_encoder(session, tensors, count);
    tdm_free(tensors);
    return status;
}
