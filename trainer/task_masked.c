/* Masked tokens: the encoder guesses what was masked, and of pairs whether they belong together. */
#include "text/masked_batch.h"
#include "text/text_featurizer.h"
#include "trainer/task_text.h"

static tdm_status make(tdm_task *task, const tdm_recipe *recipe, tdm_pool *pool)
{
    TDM_TRY(tdm_text_featurizer_create(&recipe->text, task->tokenizer, pool,
                                       recipe->train.batch_tokens, (int)recipe->data.lanes,
                                       &task->featurizer));
    return tdm_text_task_finish(task, recipe, TDM_HEAD_MASKED, 0);
}

static tdm_status masked_open(tdm_task *task, tdm_recipe *recipe, tdm_input *input, tdm_pool *pool,
                              tdm_use use)
{
    (void)input;
    (void)use;
    TDM_TRY(tdm_recipe_tokenizer(recipe, &task->tokenizer));
    return make(task, recipe, pool);
}

static tdm_status masked_load(tdm_task *task, const tdm_recipe *recipe, const char *folder,
                              tdm_pool *pool, tdm_use use, tdm_record_format **format)
{
    TDM_FAIL_IF(use >= TDM_USE_PREDICTION, TDM_E_CONFIG,
                "%s: is a run of task mlm, whose model has no answers to records: ask it with "
                "--fill-mask or --embed",
                folder);
    TDM_TRY(tdm_run_text_format(recipe, folder, format));
    TDM_TRY(tdm_run_load_tokenizer(folder, &task->tokenizer));
    return make(task, recipe, pool);
}

static void masked_weigh(const tdm_task *task, const tdm_batch *batch, tdm_step_scalars *scalars)
{
    tdm_masked_batch masked = tdm_masked_batch_of(batch);
    (void)task;
    scalars->losses[0].weight_sum = (double)masked.mask_count;
    scalars->losses[1].weight_sum = masked.pair_labels == NULL ? 0.0 : (double)masked.rows;
}

static int64_t count_unknown(const tdm_task *task, const tdm_masked_batch *batch)
{
    uint32_t unknown = (uint32_t)task->tokenizer->specials[TDM_SPECIAL_UNK];
    int64_t count = 0;
    for (int64_t r = 0; r < batch->rows; r++) {
        tdm_token_range range = tdm_masked_batch_row(batch, r);
        for (int64_t t = range.begin; t < range.end; t++)
            count += batch->ids[t] == unknown;
    }
    return count;
}

static tdm_status masked_add(const tdm_task *task, tdm_metrics *metrics, const tdm_outcome *outcome)
{
    tdm_masked_batch batch = tdm_masked_batch_of(outcome->batch);
    const tdm_batch_layout *layout = outcome->batch->layout;
    int64_t padded = batch.row_stride * layout->batch_size;
    tdm_text_counts_step step = {
        .rows = batch.rows,
        .tokens = batch.tokens,
        .unknown = count_unknown(task, &batch),
        .capacity = batch.row_stride > 0 ? padded : layout->max_tokens,
    };
    for (int i = 0; i < TDM_LOSSES; i++)
        step.losses[i] = outcome->scalars->losses[i];
    tdm_text_metrics_add(&metrics->text, &step);
    return TDM_OK;
}

const tdm_task_type tdm_masked_task = {
    .open = masked_open,
    .load = masked_load,
    .save = tdm_text_task_save,
    .check = tdm_text_task_check,
    .weigh = masked_weigh,
    .add = masked_add,
};
