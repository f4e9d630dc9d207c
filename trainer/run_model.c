#include "trainer/run_model.h"

#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "trainer/checkpoint.h"
#include "trainer/device.h"
#include "trainer/run_folder.h"
#include "trainer/tensor_file.h"

/* All of the checkpoint, or its encoder alone. */
static tdm_status load_tensors(tdm_run *run, tdm_use use, const char *path,
                               const tdm_saved_tensor *tensors, int count)
{
    int loaded;
    if (use != TDM_USE_VECTORS)
        return tdm_tensor_file_load(path, run->backend, tensors, count);
    TDM_TRY(tdm_tensor_file_load_some(path, run->backend, tensors, count, &loaded));
    TDM_FAIL_IF(loaded < count, TDM_E_FORMAT, "%s: has %d of the encoder's %d tensors", path,
                loaded, count);
    return TDM_OK;
}

static tdm_status load_weights(tdm_run *run, tdm_use use)
{
    tdm_saved_tensor *tensors = NULL;
    int count;
    char *path;
    TDM_TRY(tdm_checkpoint_path(run->folder, run->step, TDM_MODEL_FILE, &path));
    tdm_status status = tdm_model_tensors(run->model, &tensors, &count);
    if (status == TDM_OK)
        status = load_tensors(run, use, path, tensors, count);
    tdm_free(tensors);
    tdm_free(path);
    return status;
}

tdm_status tdm_run_create_backend(const tdm_recipe *recipe, tdm_pool *pool, tdm_backend **out)
{
    static const tdm_recipe any = {.train.device = TDM_DEVICE_AUTO};
    tdm_status status = tdm_device_create(recipe == NULL ? &any : recipe, pool, out);
    if (status == TDM_OK || recipe == NULL || recipe->train.device != TDM_DEVICE_GPU)
        return status;
    tdm_info("the model was trained on a GPU, which is not to be had here (%s): the CPU runs it",
             tdm_error_message());
    return tdm_cpu_create(pool, out);
}

/* What was trained in bfloat16 runs in fp32 where there is no other way. */
static tdm_status choose_precision(tdm_run *run, int precision)
{
    tdm_backend_properties device;
    TDM_TRY(run->backend->type->properties(run->backend, &device));
    if (precision > 0)
        run->recipe->train.precision = precision - 1;
    else if (!device.bf16)
        run->recipe->train.precision = TDM_PRECISION_FP32;
    return tdm_recipe_resolve_precision(run->recipe, &device);
}

static tdm_status open_run(tdm_run *run, const char *folder, const tdm_run_options *options)
{
    TDM_TRY(tdm_strdup(folder, &run->folder));
    TDM_TRY(tdm_run_folder_choose(folder, options->checkpoint, &run->step));
    TDM_TRY(tdm_recipe_load_run(folder, &run->recipe));
    tdm_recipe_set_phase(run->recipe, tdm_recipe_phase_of(run->recipe, run->step));
    TDM_TRY(tdm_pool_create(options->threads, &run->pool));
    TDM_TRY(tdm_run_create_backend(run->recipe, run->pool, &run->backend));
    TDM_TRY(choose_precision(run, options->precision));
    TDM_TRY(tdm_task_load(run->recipe, folder, run->pool, options->use, &run->format, &run->task));
    TDM_TRY(tdm_task_model(&run->task, run->recipe, run->backend, &run->model));
    TDM_TRY(tdm_model_allocate(run->model, false));
    TDM_TRY(load_weights(run, options->use));
    return tdm_scorer_create(run->model, &run->task, run->backend, &run->scorer);
}

tdm_status tdm_run_open(const char *run_folder, const tdm_run_options *options, tdm_run **out)
{
    *out = NULL;
    tdm_run *run;
    TDM_TRY(tdm_alloc(1, sizeof *run, &run));
    tdm_status status = open_run(run, run_folder, options);
    if (status == TDM_OK)
        *out = run;
    else
        tdm_run_close(run);
    return status;
}

void tdm_run_close(tdm_run *run)
{
    if (run == NULL)
        return;
    tdm_scorer_destroy(run->scorer);
    tdm_model_destroy(run->model);
    tdm_task_close(&run->task);
    tdm_backend_destroy(run->backend);
    tdm_pool_destroy(run->pool);
    tdm_record_format_destroy(run->format);
    tdm_recipe_free(run->recipe);
    tdm_free(run->folder);
    tdm_free(run);
}

tdm_status tdm_run_open_input(const tdm_run *run, const tdm_strings *files, bool eager,
                              const atomic_bool *cancel, tdm_input **out)
{
    const tdm_input_options options = {
        .paths = files,
        .saved_format = run->format,
        .lanes = 1,
        .max_record_bytes = run->recipe->data.max_record_bytes,
        .pool = run->pool,
        .eager = eager,
        .cancel = cancel,
    };
    return tdm_input_open(&options, out);
}
