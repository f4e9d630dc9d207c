#include "trainer/session.h"

#include "core/memory.h"
#include "trainer/device.h"

static tdm_status open_eval(tdm_session *session, const atomic_bool *stop)
{
    const tdm_recipe *recipe = session->recipe;
    tdm_input *input = session->input;
    tdm_selection selection = TDM_SELECT_HELD_OUT;
    if (recipe->eval.files.count > 0) {
        const tdm_input_options options = {
            .paths = &recipe->eval.files,
            .saved_format = (tdm_record_format *)(uintptr_t)tdm_input_format(session->input),
            .lanes = 1,
            .max_record_bytes = recipe->data.max_record_bytes,
            .pool = session->pool,
            .cancel = stop,
        };
        TDM_TRY(tdm_input_open(&options, &session->eval_input));
        input = session->eval_input;
        selection = TDM_SELECT_ALL;
    } else if (recipe->eval.hold_out <= 0) {
        return TDM_OK;
    }
    return tdm_extractor_create(session->task.featurizer, input, session->pool, selection,
                                recipe->eval.hold_out, &session->eval_extractor);
}

static tdm_status open_train(tdm_session *session, const atomic_bool *stop)
{
    tdm_recipe *recipe = session->recipe;
    TDM_TRY(tdm_recipe_open_input(recipe, session->pool, stop, &session->input));
    TDM_TRY(tdm_task_open(recipe, session->input, session->pool, TDM_USE_TRAINING, &session->task));
    bool holds_out = recipe->eval.hold_out > 0;
    return tdm_extractor_create(session->task.featurizer, session->input, session->pool,
                                holds_out ? TDM_SELECT_TRAINING : TDM_SELECT_ALL,
                                recipe->eval.hold_out, &session->extractor);
}

static tdm_status find_cache(tdm_session *session)
{
    const tdm_recipe *recipe = session->recipe;
    bool wanted = recipe->data.cache == TDM_CACHE_ON ||
                  (recipe->data.cache == TDM_CACHE_AUTO && recipe->train.epochs != 1);
    if (!wanted)
        return TDM_OK;
    char *folder;
    TDM_TRY(tdm_recipe_cache_folder(recipe, &folder));
    tdm_status status = tdm_cache_path(session->extractor, folder, &session->cache_path);
    tdm_free(folder);
    return status;
}

static tdm_status open_session(tdm_session *session, const atomic_bool *stop)
{
    const tdm_recipe *recipe = session->recipe;
    TDM_TRY(tdm_recipe_check_training(recipe));
    TDM_TRY(tdm_pool_create((int)recipe->train.threads, &session->pool));
    TDM_TRY(tdm_device_create(recipe, session->pool, &session->backend));
    TDM_TRY(session->backend->type->properties(session->backend, &session->properties));
    TDM_TRY(tdm_recipe_resolve_precision(session->recipe, &session->properties));
    TDM_TRY(open_train(session, stop));
    TDM_TRY(open_eval(session, stop));
    TDM_TRY(tdm_task_model(&session->task, recipe, session->backend, &session->model));
    return find_cache(session);
}

tdm_status tdm_session_init(tdm_session *session, tdm_recipe *recipe, const atomic_bool *stop)
{
    *session = (tdm_session){.recipe = recipe};
    tdm_status status = open_session(session, stop);
    if (status != TDM_OK)
        tdm_session_deinit(session);
    return status;
}

void tdm_session_deinit(tdm_session *session)
{
    tdm_free(session->cache_path);
    tdm_model_destroy(session->model);
    tdm_extractor_destroy(session->eval_extractor);
    tdm_input_close(session->eval_input);
    tdm_extractor_destroy(session->extractor);
    tdm_task_close(&session->task);
    tdm_input_close(session->input);
    tdm_backend_destroy(session->backend);
    tdm_pool_destroy(session->pool);
    *session = (tdm_session){0};
}

tdm_pipeline_options tdm_session_pipeline(const tdm_session *session)
{
    const tdm_recipe *recipe = session->recipe;
    return (tdm_pipeline_options){
        .extractor = session->extractor,
        .pool = session->pool,
        .backend = session->backend,
        .seed = (uint64_t)recipe->seed,
        .lanes = (int)recipe->data.lanes,
        .window_blocks = (int)recipe->data.window_blocks,
        .epochs = recipe->train.epochs == 0 ? -1 : recipe->train.epochs,
        .depth = TDM_RING_DEPTH,
        .cache_path = session->cache_path,
        .write_cache = true,
    };
}
