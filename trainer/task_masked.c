/* Masked tokens: the encoder guesses what was masked, and of pairs whether they belong together. */
#include "trainer/task.h"

#include "core/file.h"
#include "core/memory.h"
#include "data/options.h"
#include "text/text_featurizer.h"
#include "text/tokenizer.h"
#include "trainer/batch_parts.h"
#include "trainer/run_folder.h"

static tdm_status make(tdm_task *task, const tdm_recipe *recipe, tdm_pool *pool)
{
    TDM_TRY(tdm_text_featurizer_create(&recipe->text, task->tokenizer, pool,
                                       recipe->train.batch_tokens, (int)recipe->data.lanes,
                                       &task->featurizer));
    task->inputs = (tdm_model_inputs){
        .vocabulary = tdm_tokenizer_size(task->tokenizer),
        .max_length = recipe->text.max_length,
        .head = TDM_HEAD_MASKED,
    };
    return tdm_batch_part_layout(&task->featurizer->batch, recipe->train.micro_batch_tokens,
                                 recipe->text.max_length, &task->model_batch);
}

static tdm_status masked_open(tdm_task *task, const tdm_recipe *recipe, const tdm_input *input,
                              tdm_pool *pool, tdm_use use)
{
    (void)input;
    (void)use;
    TDM_TRY(tdm_recipe_tokenizer(recipe, &task->tokenizer));
    return make(task, recipe, pool);
}

static tdm_status load_tokenizer(const char *folder, tdm_tokenizer **out)
{
    char *path;
    *out = NULL;
    TDM_TRY(tdm_path_join(folder, TDM_RUN_TOKENIZER, &path));
    tdm_status status = tdm_tokenizer_open(path, NULL, out);
    tdm_free(path);
    return status;
}

static tdm_status masked_load(tdm_task *task, const tdm_recipe *recipe, const char *folder,
                              tdm_pool *pool, tdm_use use, tdm_record_format **format)
{
    (void)use;
    tdm_format_options options;
    TDM_TRY(tdm_data_format_options(&recipe->data, &options));
    TDM_TRY(tdm_record_format_create(&options, folder, "", 0, format));
    TDM_TRY(load_tokenizer(folder, &task->tokenizer));
    return make(task, recipe, pool);
}

static tdm_status masked_save(const tdm_task *task, const tdm_input *input, const char *folder)
{
    char *path;
    (void)input;
    TDM_TRY(tdm_path_join(folder, TDM_RUN_TOKENIZER, &path));
    tdm_status status = tdm_tokenizer_save(task->tokenizer, path);
    tdm_free(path);
    return status;
}

static tdm_status masked_check(const tdm_task *task, const tdm_input *input, const char *folder)
{
    tdm_tokenizer *saved;
    (void)input;
    TDM_TRY(load_tokenizer(folder, &saved));
    bool same = tdm_tokenizer_hash(saved) == tdm_tokenizer_hash(task->tokenizer);
    tdm_tokenizer_close(saved);
    TDM_FAIL_IF(!same, TDM_E_CONFIG,
                "%s/%s: text.tokenizer is not what it was: change it back, or train into another "
                "folder (output.dir)",
                folder, TDM_RUN_TOKENIZER);
    return TDM_OK;
}

static int64_t number_of(const tdm_batch *batch, const char *name)
{
    return *(const int64_t *)tdm_batch_data(batch, tdm_batch_layout_find(batch->layout, name));
}

static void masked_weigh(const tdm_task *task, const tdm_batch *batch, tdm_step_scalars *scalars)
{
    (void)task;
    scalars->losses[0].weight_sum = (double)number_of(batch, "mask_count");
    scalars->losses[1].weight_sum = 0;
    if (tdm_batch_layout_find(batch->layout, "pair_labels") >= 0)
        scalars->losses[1].weight_sum = (double)batch->rows;
}

const tdm_task_type tdm_masked_task = {
    .open = masked_open,
    .load = masked_load,
    .save = masked_save,
    .check = masked_check,
    .weigh = masked_weigh,
    .add = NULL,
};
