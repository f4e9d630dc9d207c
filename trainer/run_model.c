#include "trainer/run_model.h"

#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "trainer/checkpoint.h"
#include "trainer/device.h"
#include "trainer/run_folder.h"
#include "trainer/tensor_file.h"

tdm_status tdm_run_load_features(const char *run_folder, tdm_feature_spec **spec,
                                 tdm_record_format **format)
{
    char *path;
    TDM_TRY(tdm_path_join(run_folder, TDM_RUN_FEATURES, &path));
    tdm_status status = tdm_feature_spec_load(path, spec, format);
    tdm_free(path);
    return status;
}

tdm_status tdm_recipe_create_model(const tdm_recipe *recipe, const tdm_feature_spec *spec,
                                   const tdm_batch_layout *batch, tdm_backend *backend,
                                   tdm_model **out)
{
    tdm_model_field *fields;
    TDM_TRY(tdm_alloc((size_t)spec->field_count, sizeof *fields, &fields));
    for (int32_t i = 0; i < spec->field_count; i++) {
        fields[i] = (tdm_model_field){
            .name = spec->fields[i].name,
            .table_rows = spec->fields[i].buckets + 4,
            .embedding_dim = spec->fields[i].embedding_dim,
        };
    }
    const tdm_model_inputs inputs = {
        .field_count = spec->field_count,
        .fields = fields,
        .dense_count = spec->dense_count,
    };
    const tdm_model_setup setup = {.seed = (uint64_t)recipe->seed};
    tdm_status status = tdm_model_create(recipe->model_type, recipe->model_options, &inputs, batch,
                                         backend, &setup, out);
    tdm_free(fields);
    return status;
}

static tdm_status load_weights(tdm_run *run)
{
    tdm_saved_tensor *tensors = NULL;
    int count;
    char *path;
    TDM_TRY(tdm_checkpoint_path(run->folder, run->step, TDM_MODEL_FILE, &path));
    tdm_status status = tdm_model_tensors(run->model, &tensors, &count);
    if (status == TDM_OK)
        status = tdm_tensor_file_load(path, run->backend, tensors, count);
    tdm_free(tensors);
    tdm_free(path);
    return status;
}

/* A model that was trained on a GPU predicts on a machine without one. */
static tdm_status create_backend(tdm_run *run)
{
    tdm_status status = tdm_device_create(run->recipe, run->pool, &run->backend);
    if (status == TDM_OK || run->recipe->train.device != TDM_DEVICE_GPU)
        return status;
    tdm_info("the model was trained on a GPU, which is not to be had here (%s): the CPU runs it",
             tdm_error_message());
    return tdm_cpu_create(run->pool, &run->backend);
}

static tdm_status open_run(tdm_run *run, const char *folder, const tdm_run_options *options)
{
    TDM_TRY(tdm_strdup(folder, &run->folder));
    TDM_TRY(tdm_run_folder_choose(folder, options->checkpoint, &run->step));
    TDM_TRY(tdm_recipe_load_run(folder, &run->recipe));
    TDM_TRY(tdm_run_load_features(folder, &run->spec, &run->format));
    TDM_TRY(tdm_pool_create(options->threads, &run->pool));
    TDM_TRY(create_backend(run));
    int64_t batch_size =
        options->batch_size > 0 ? options->batch_size : run->recipe->train.batch_size;
    TDM_TRY(tdm_ctr_featurizer_create(run->spec, run->format, run->pool, batch_size, options->use,
                                      &run->featurizer));
    TDM_TRY(tdm_recipe_create_model(run->recipe, run->spec, &run->featurizer->batch, run->backend,
                                    &run->model));
    TDM_TRY(tdm_model_allocate(run->model, false));
    TDM_TRY(load_weights(run));
    return tdm_scorer_create(run->model, run->featurizer, run->backend, &run->scorer);
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
    tdm_featurizer_destroy(run->featurizer);
    tdm_backend_destroy(run->backend);
    tdm_pool_destroy(run->pool);
    tdm_record_format_destroy(run->format);
    tdm_feature_spec_destroy(run->spec);
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
