#include "trainer/task.h"

#include "core/memory.h"

const tdm_task_type *tdm_task_type_of(const tdm_recipe *recipe)
{
    switch ((tdm_task_kind)recipe->task) {
    case TDM_TASK_MLM:
        return &tdm_masked_task;
    case TDM_TASK_CLASSIFY:
        return &tdm_labels_task;
    case TDM_TASK_CTR:
        break;
    }
    return &tdm_ctr_task;
}

tdm_status tdm_task_open(tdm_recipe *recipe, tdm_input *input, tdm_pool *pool, tdm_use use,
                         tdm_task *out)
{
    *out = (tdm_task){.type = tdm_task_type_of(recipe)};
    tdm_status status = out->type->open(out, recipe, input, pool, use);
    if (status != TDM_OK) {
        tdm_task_close(out);
        return status;
    }
    out->metrics = tdm_recipe_metrics(recipe);
    return TDM_OK;
}

tdm_status tdm_task_load(const tdm_recipe *recipe, const char *folder, tdm_pool *pool, tdm_use use,
                         tdm_record_format **format, tdm_task *out)
{
    *out = (tdm_task){.type = tdm_task_type_of(recipe)};
    *format = NULL;
    tdm_status status = out->type->load(out, recipe, folder, pool, use, format);
    if (status != TDM_OK) {
        tdm_task_close(out);
        return status;
    }
    out->metrics = tdm_recipe_metrics(recipe);
    return TDM_OK;
}

void tdm_task_close(tdm_task *task)
{
    tdm_featurizer_destroy(task->featurizer);
    tdm_feature_spec_destroy(task->spec);
    tdm_tokenizer_close(task->tokenizer);
    tdm_label_spec_destroy(task->labels);
    tdm_free(task->fields);
    *task = (tdm_task){0};
}

tdm_status tdm_task_model(const tdm_task *task, const tdm_recipe *recipe, tdm_backend *backend,
                          tdm_model **out)
{
    const tdm_model_setup setup = {
        .seed = (uint64_t)recipe->seed,
        .compute = recipe->train.precision == TDM_PRECISION_BF16 ? TDM_BF16 : TDM_F32,
        .recompute = recipe->train.recompute,
    };
    return tdm_model_create(recipe->model_type, recipe->model_options, &task->inputs,
                            &task->model_batch, backend, &setup, out);
}
