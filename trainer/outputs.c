#include "trainer/outputs.h"

tdm_status tdm_outputs_init(tdm_outputs *outputs, tdm_model *model, const tdm_task *task,
                            tdm_backend *backend)
{
    const tdm_batch_layout *layout = &task->featurizer->batch;
    tdm_matrix output;
    *outputs = (tdm_outputs){.model = model, .task = task, .backend = backend};
    if (task->output == NULL)
        return TDM_OK;
    TDM_TRY(tdm_model_output(model, task->output, &output));
    outputs->of_tokens = output.rows != task->model_batch.batch_size;
    int64_t tokens =
        layout->max_tokens > 0 ? layout->max_tokens : layout->batch_size * task->inputs.max_length;
    int64_t rows = outputs->of_tokens ? tokens : layout->batch_size;
    return backend->type->host_alloc(backend, (size_t)(rows * output.columns) * sizeof(float),
                                     &outputs->host);
}

void tdm_outputs_deinit(tdm_outputs *outputs)
{
    if (outputs->host != NULL)
        outputs->backend->type->host_free(outputs->backend, outputs->host);
    *outputs = (tdm_outputs){0};
}

/* Rows of the batch as rows of the output. */
static tdm_row_range output_rows(const tdm_outputs *outputs, const tdm_batch *batch,
                                 tdm_row_range rows)
{
    int tensor = tdm_batch_layout_find(batch->layout, "cu_seqlens");
    int64_t length = outputs->task->inputs.max_length;
    if (!outputs->of_tokens)
        return rows;
    if (tensor < 0)
        return (tdm_row_range){rows.begin * length, rows.end * length};
    const int32_t *cu_seqlens = tdm_batch_data(batch, tensor);
    return (tdm_row_range){cu_seqlens[rows.begin], cu_seqlens[rows.end]};
}

tdm_status tdm_outputs_take(tdm_outputs *outputs, const tdm_batch *batch, tdm_row_range rows)
{
    tdm_matrix output;
    if (outputs->host == NULL)
        return TDM_OK;
    TDM_TRY(tdm_model_output(outputs->model, outputs->task->output, &output));
    tdm_row_range range = output_rows(outputs, batch, rows);
    int64_t count = range.end - range.begin, step = output.stride == output.columns ? count : 1;
    for (int64_t row = 0; row < count; row += step)
        TDM_TRY(outputs->backend->type->copy_out(
            outputs->backend, outputs->host + (range.begin + row) * output.columns,
            (const float *)output.data + row * output.stride,
            (size_t)(step * output.columns) * sizeof(float), NULL));
    return TDM_OK;
}
