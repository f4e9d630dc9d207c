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

static tdm_status export_task(const char *run, const tdm_recipe *recipe, const tdm_task *task,
                              const char *folder, const tdm_export_options *options, int64_t *step)
{
    char *path;
    TDM_TRY(tdm_run_folder_choose(run, options->checkpoint, step));
    TDM_TRY(tdm_checkpoint_path(run, *step, TDM_MODEL_FILE, &path));
    tdm_status status = export_checkpoint(recipe, task, path, folder, options->force);
    tdm_free(path);
    return status;
}

/* What the run's model was made for. */
static tdm_status export_recipe(const char *run, const tdm_recipe *recipe, const char *folder,
                                const tdm_export_options *options, int64_t *step)
{
    tdm_pool *pool;
    tdm_record_format *format;
    tdm_task task;
    TDM_FAIL_IF(recipe->task == TDM_TASK_CTR, TDM_E_UNSUPPORTED,
                "%s: is a run of task ctr, whose model no class of Transformers holds", run);
    TDM_TRY(tdm_pool_create(1, &pool));
    tdm_status status = tdm_task_load(recipe, run, pool, TDM_USE_EVALUATION, &format, &task);
    if (status == TDM_OK) {
        status = export_task(run, recipe, &task, folder, options, step);
        tdm_task_close(&task);
    }
    tdm_record_format_destroy(format);
    tdm_pool_destroy(pool);
    return status;
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
