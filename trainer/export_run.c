#include "trainer/export_run.h"

#include "core/memory.h"
#include "interchange/export_huggingface.h"
#include "trainer/checkpoint.h"
#include "trainer/run_folder.h"
#include "trainer/task.h"
#include "trainer/tensor_file.h"

static tdm_status export_checkpoint(const tdm_recipe *recipe, const tdm_task *task,
                                    const char *checkpoint, const char *folder, bool force)
{
    bool has_names =
        recipe->task == TDM_TASK_CLASSIFY && task->labels->type != TDM_LABEL_REGRESSION;
    tdm_safetensors *parameters;
    TDM_TRY(tdm_safetensors_open(checkpoint, &parameters));
    const tdm_export from = {
        .options = recipe->model_options,
        .inputs = &task->inputs,
        .parameters = parameters,
        .tokenizer = task->tokenizer,
        .class_names = has_names ? (const char *const *)recipe->labels.classes.items : NULL,
    };
    tdm_status status = tdm_export_huggingface(&from, folder, force);
    tdm_safetensors_close(parameters);
    return status;
}

static tdm_status export_task(const char *run, int64_t step, const tdm_recipe *recipe,
                              const char *folder, bool force)
{
    tdm_pool *pool = NULL;
    tdm_record_format *format = NULL;
    tdm_task task = {0};
    char *path;
    TDM_TRY(tdm_checkpoint_path(run, step, TDM_MODEL_FILE, &path));
    tdm_status status;
    TDM_TRY_GOTO(tdm_pool_create(1, &pool), done);
    TDM_TRY_GOTO(tdm_task_load(recipe, run, pool, TDM_USE_EVALUATION, &format, &task), done);
    status = export_checkpoint(recipe, &task, path, folder, force);
done:
    tdm_task_close(&task);
    tdm_record_format_destroy(format);
    tdm_pool_destroy(pool);
    tdm_free(path);
    return status;
}

static tdm_status export_recipe(const char *run, tdm_recipe *recipe, const char *folder,
                                const tdm_export_options *options, int64_t *step)
{
    TDM_FAIL_IF(recipe->task == TDM_TASK_CTR, TDM_E_UNSUPPORTED,
                "%s: is a run of task ctr, whose model no class of Transformers holds", run);
    TDM_TRY(tdm_run_folder_choose(run, options->checkpoint, step));
    tdm_recipe_set_phase(recipe, tdm_recipe_phase_of(recipe, *step));
    return export_task(run, *step, recipe, folder, options->force);
}

tdm_status tdm_export_run(const char *run, const char *folder, const tdm_export_options *options,
                          int64_t *step)
{
    tdm_recipe *recipe;
    *step = -1;
    TDM_TRY(tdm_recipe_load_run(run, &recipe));
    tdm_status status = export_recipe(run, recipe, folder, options, step);
    tdm_recipe_free(recipe);
    return status;
}
