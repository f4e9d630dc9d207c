/* Clicks: a probability a record. */
#include "trainer/task.h"

#include "core/file.h"
#include "core/memory.h"
#include "features/ctr_featurizer.h"
#include "trainer/run_folder.h"

tdm_status tdm_run_load_features(const char *run_folder, tdm_feature_spec **spec,
                                 tdm_record_format **format)
{
    char *path;
    TDM_TRY(tdm_path_join(run_folder, TDM_RUN_FEATURES, &path));
    tdm_status status = tdm_feature_spec_load(path, spec, format);
    tdm_free(path);
    return status;
}

static tdm_status describe_inputs(tdm_task *task)
{
    const tdm_feature_spec *spec = task->spec;
    TDM_TRY(tdm_alloc((size_t)spec->field_count, sizeof *task->fields, &task->fields));
    for (int32_t i = 0; i < spec->field_count; i++) {
        task->fields[i] = (tdm_model_field){
            .name = spec->fields[i].name,
            .table_rows = spec->fields[i].buckets + 4,
            .embedding_dim = spec->fields[i].embedding_dim,
        };
    }
    task->inputs = (tdm_model_inputs){
        .field_count = spec->field_count,
        .fields = task->fields,
        .dense_count = spec->dense_count,
    };
    task->model_batch = task->featurizer->batch;
    task->output = "probabilities";
    return TDM_OK;
}

static tdm_ctr_use use_of(tdm_use use)
{
    switch (use) {
    case TDM_USE_TRAINING:
        return TDM_CTR_TRAINING;
    case TDM_USE_EVALUATION:
        return TDM_CTR_EVALUATION;
    case TDM_USE_PREDICTION:
    case TDM_USE_VECTORS:
        break;
    }
    return TDM_CTR_PREDICTION;
}

static tdm_status ctr_open(tdm_task *task, tdm_recipe *recipe, tdm_input *input, tdm_pool *pool,
                           tdm_use use)
{
    TDM_TRY(tdm_recipe_feature_spec(recipe, input, &task->spec));
    TDM_TRY(tdm_ctr_featurizer_create(task->spec, tdm_input_format(input), pool,
                                      recipe->train.batch_size, use_of(use), &task->featurizer));
    return describe_inputs(task);
}

static tdm_status ctr_load(tdm_task *task, const tdm_recipe *recipe, const char *folder,
                           tdm_pool *pool, tdm_use use, tdm_record_format **format)
{
    TDM_TRY(tdm_run_load_features(folder, &task->spec, format));
    TDM_TRY(tdm_ctr_featurizer_create(task->spec, *format, pool, recipe->train.batch_size,
                                      use_of(use), &task->featurizer));
    return describe_inputs(task);
}

static tdm_status ctr_save(const tdm_task *task, const tdm_input *input, const char *folder)
{
    char *path;
    TDM_TRY(tdm_path_join(folder, TDM_RUN_FEATURES, &path));
    tdm_status status = tdm_feature_spec_save(task->spec, tdm_input_format(input), path);
    tdm_free(path);
    return status;
}

/* The features must still be those that the weights were trained on. */
static tdm_status ctr_check(const tdm_task *task, const tdm_input *input, const char *folder)
{
    tdm_feature_spec *spec;
    tdm_record_format *format;
    uint64_t saved = 0, now = 0;
    TDM_TRY(tdm_run_load_features(folder, &spec, &format));
    tdm_status status = tdm_feature_spec_hash(spec, format, &saved);
    if (status == TDM_OK)
        status = tdm_feature_spec_hash(task->spec, tdm_input_format(input), &now);
    if (status == TDM_OK && saved != now)
        status = tdm_fail(TDM_E_CONFIG,
                          "%s/%s: the features or the columns of the training data are not what "
                          "they were: change them back, or train into another folder (output.dir)",
                          folder, TDM_RUN_FEATURES);
    tdm_feature_spec_destroy(spec);
    tdm_record_format_destroy(format);
    return status;
}

static tdm_status ctr_add(const tdm_task *task, tdm_metrics *metrics, const tdm_outcome *outcome)
{
    const tdm_batch *batch = outcome->batch;
    int label = tdm_batch_layout_find(batch->layout, "label");
    (void)task;
    return tdm_click_metrics_add(&metrics->click, outcome->output, tdm_batch_data(batch, label),
                                 tdm_batch_data(batch, TDM_BATCH_WEIGHT), batch->rows);
}

const tdm_task_type tdm_ctr_task = {
    .open = ctr_open,
    .load = ctr_load,
    .save = ctr_save,
    .check = ctr_check,
    .add = ctr_add,
};
