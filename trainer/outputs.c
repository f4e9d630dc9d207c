#include "trainer/outputs.h"

#include <math.h>

/* Rows of the output are tokens, else rows of the batch. */
static bool is_of_tokens(const tdm_task *task)
{
    return task->encoder != NULL &&
           (task->inputs.head == TDM_HEAD_NONE || task->inputs.head == TDM_HEAD_TOKEN_CLASSES);
}

static int64_t columns_of(const tdm_task *task)
{
    if (task->encoder == NULL)
        return 1;
    return task->inputs.head == TDM_HEAD_NONE ? task->encoder->hidden : task->inputs.classes;
}

int64_t tdm_outputs_bytes(const tdm_task *task)
{
    const tdm_batch_layout *layout = &task->featurizer->batch;
    int64_t tokens =
        layout->max_tokens > 0 ? layout->max_tokens : layout->batch_size * task->inputs.max_length;
    int64_t rows = is_of_tokens(task) ? tokens : layout->batch_size;
    return task->output == NULL ? 0 : rows * columns_of(task) * (int64_t)sizeof(float);
}

tdm_status tdm_outputs_init(tdm_outputs *outputs, tdm_model *model, const tdm_task *task,
                            tdm_backend *backend)
{
    *outputs = (tdm_outputs){.model = model, .task = task, .backend = backend};
    if (task->output == NULL)
        return TDM_OK;
    return backend->type->host_alloc(backend, (size_t)tdm_outputs_bytes(task), &outputs->host);
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
    if (!is_of_tokens(outputs->task))
        return rows;
    if (tensor < 0)
        return (tdm_row_range){rows.begin * length, rows.end * length};
    const int32_t *cu_seqlens = tdm_batch_data(batch, tensor);
    return (tdm_row_range){cu_seqlens[rows.begin], cu_seqlens[rows.end]};
}

static bool are_finite(const float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(numbers[i]))
            return false;
    }
    return true;
}

int64_t tdm_outputs_find_non_finite(const tdm_outputs *outputs, const tdm_batch *batch)
{
    int lengths = tdm_batch_layout_find(batch->layout, "lengths");
    int64_t columns = columns_of(outputs->task);
    for (int64_t row = 0; outputs->host != NULL && row < batch->rows; row++) {
        tdm_row_range range = output_rows(outputs, batch, (tdm_row_range){row, row + 1});
        if (lengths >= 0 && is_of_tokens(outputs->task))
            range.end = range.begin + ((const int32_t *)tdm_batch_data(batch, lengths))[row];
        if (!are_finite(outputs->host + range.begin * columns, (range.end - range.begin) * columns))
            return row;
    }
    return -1;
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
