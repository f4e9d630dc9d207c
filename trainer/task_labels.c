/* Labelled texts: classes of a text or of its words, any number of them, or a number. */
#include "core/memory.h"
#include "text/label_featurizer.h"
#include "text/masked_batch.h"
#include "trainer/task_text.h"

static tdm_text_head head_of(tdm_label_type type)
{
    switch (type) {
    case TDM_LABEL_CLASSES:
        return TDM_HEAD_CLASSES;
    case TDM_LABEL_MULTIPLE:
        return TDM_HEAD_LABELS;
    case TDM_LABEL_REGRESSION:
        return TDM_HEAD_REGRESSION;
    case TDM_LABEL_TOKENS:
        break;
    }
    return TDM_HEAD_TOKEN_CLASSES;
}

static tdm_status make(tdm_task *task, const tdm_recipe *recipe, const tdm_record_format *format,
                       tdm_pool *pool, tdm_use use)
{
    const tdm_label_spec *spec = task->labels;
    int64_t classes = spec->type == TDM_LABEL_REGRESSION ? 1 : spec->classes.size;
    TDM_TRY(tdm_label_featurizer_create(spec, format, &recipe->text, task->tokenizer, pool,
                                        recipe->train.batch_tokens, (int)recipe->data.lanes,
                                        &task->featurizer));
    if (use == TDM_USE_VECTORS) {
        task->output = "hidden";
        return tdm_text_task_finish(task, recipe, TDM_HEAD_NONE, 0);
    }
    task->output = spec->type == TDM_LABEL_MULTIPLE ? "probabilities" : "logits";
    return tdm_text_task_finish(task, recipe, head_of(spec->type), classes);
}

/* A header may have named the columns: the run folder says them by itself. */
static tdm_status complete_columns(tdm_recipe *recipe, const tdm_record_format *format)
{
    tdm_strings *columns = &recipe->data.columns;
    bool has_names = format->type == &tdm_format_csv || format->type == &tdm_format_tsv;
    if (columns->count > 0 || !has_names)
        return TDM_OK;
    TDM_TRY(tdm_alloc((size_t)format->column_count, sizeof *columns->items, &columns->items));
    for (int32_t i = 0; i < format->column_count; i++) {
        TDM_TRY(tdm_strdup(format->columns[i], &columns->items[i]));
        columns->count++;
    }
    return TDM_OK;
}

static tdm_label_use use_of(tdm_use use)
{
    return use >= TDM_USE_PREDICTION ? TDM_LABEL_PREDICTION : TDM_LABEL_TRAINING;
}

static tdm_status labels_open(tdm_task *task, tdm_recipe *recipe, tdm_input *input, tdm_pool *pool,
                              tdm_use use)
{
    TDM_TRY(tdm_recipe_label_spec(recipe, input, pool, use_of(use), &task->labels));
    TDM_TRY(complete_columns(recipe, tdm_input_format(input)));
    TDM_TRY(tdm_recipe_tokenizer(recipe, &task->tokenizer));
    return make(task, recipe, tdm_input_format(input), pool, use);
}

static tdm_status labels_load(tdm_task *task, const tdm_recipe *recipe, const char *folder,
                              tdm_pool *pool, tdm_use use, tdm_record_format **format)
{
    TDM_TRY(tdm_run_text_format(recipe, folder, format));
    TDM_TRY(tdm_label_spec_create(&recipe->labels, NULL, *format, &recipe->data.columns,
                                  use_of(use), &task->labels));
    TDM_TRY(tdm_run_load_tokenizer(folder, &task->tokenizer));
    return make(task, recipe, *format, pool, use);
}

static double sum_weights(const tdm_batch *batch)
{
    const float *weights = tdm_batch_data(batch, TDM_BATCH_WEIGHT);
    double sum = 0;
    for (int64_t r = 0; r < batch->rows; r++)
        sum += (double)weights[r];
    return sum;
}

/* Padding, which has no labels, included. */
static int64_t places_of_tokens(const tdm_masked_batch *texts)
{
    return texts->row_stride > 0 ? texts->rows * texts->row_stride : texts->tokens;
}

static int64_t count_labels(const tdm_masked_batch *texts)
{
    const uint32_t *labels = texts->labels;
    int64_t count = 0;
    for (int64_t t = 0; t < places_of_tokens(texts); t++)
        count += labels[t] != TDM_NO_LABEL;
    return count;
}

static void labels_weigh(const tdm_task *task, const tdm_batch *batch, tdm_step_scalars *scalars)
{
    tdm_masked_batch texts = tdm_masked_batch_of(batch);
    double *weight_sum = &scalars->losses[0].weight_sum;
    *weight_sum = sum_weights(batch);
    if (task->labels->type == TDM_LABEL_MULTIPLE)
        *weight_sum *= (double)task->inputs.classes;
    if (task->labels->type == TDM_LABEL_TOKENS && texts.labels != NULL)
        *weight_sum = (double)count_labels(&texts);
}

static tdm_status labels_add(const tdm_task *task, tdm_metrics *metrics, const tdm_outcome *outcome)
{
    tdm_label_type type = task->labels->type;
    tdm_masked_batch texts = tdm_masked_batch_of(outcome->batch);
    const float *weights = tdm_batch_data(outcome->batch, TDM_BATCH_WEIGHT);
    const tdm_loss_scalars *loss = &outcome->scalars->losses[0];
    bool of_tokens = type == TDM_LABEL_TOKENS;
    if (type == TDM_LABEL_REGRESSION) {
        tdm_regression_metrics_add(&metrics->regression, outcome->output, texts.labels, weights,
                                   texts.rows, loss);
        return TDM_OK;
    }
    const tdm_class_step step = {
        .rows = texts.rows,
        .count = of_tokens ? places_of_tokens(&texts) : texts.rows,
        .outputs = outcome->output,
        .labels = type == TDM_LABEL_MULTIPLE ? NULL : texts.labels,
        .label_sets = type == TDM_LABEL_MULTIPLE ? texts.labels : NULL,
        .weights = of_tokens ? NULL : weights,
        .loss = *loss,
    };
    return tdm_class_metrics_add(&metrics->of_classes, &step);
}

const tdm_task_type tdm_labels_task = {
    .open = labels_open,
    .load = labels_load,
    .save = tdm_text_task_save,
    .check = tdm_text_task_check,
    .weigh = labels_weigh,
    .add = labels_add,
};
