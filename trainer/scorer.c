#include "trainer/scorer.h"

#include "core/memory.h"
#include "trainer/outputs.h"

struct tdm_scorer {
    tdm_model *model;
    const tdm_task *task;
    tdm_backend *backend;
    tdm_batch batch; /* in host memory */
    unsigned char
        *device; /* the batch on the device; NULL where it reads the host's memory, or parts
                              of it */
    tdm_batch_parts *parts;
    tdm_step_scalars *device_scalars;
    tdm_step_scalars scalars; /* a copy */
    tdm_outputs outputs;
    tdm_window window; /* of one block */
    tdm_extract *block;
};

static bool is_whole(const tdm_task *task)
{
    return task->model_batch.bytes == task->featurizer->batch.bytes;
}

static tdm_status allocate(tdm_scorer *scorer)
{
    tdm_backend *backend = scorer->backend;
    const tdm_task *task = scorer->task;
    const tdm_batch_layout *layout = &task->featurizer->batch;
    tdm_backend_properties properties;
    TDM_TRY(backend->type->properties(backend, &properties));
    TDM_TRY(backend->type->host_alloc(backend, layout->bytes, &scorer->batch.data));
    if (!properties.host_memory && is_whole(task))
        TDM_TRY(backend->type->alloc(backend, layout->bytes, &scorer->device));
    TDM_TRY(tdm_batch_parts_create(layout, &task->model_batch, backend, &scorer->parts));
    TDM_TRY(backend->type->alloc(backend, sizeof *scorer->device_scalars, &scorer->device_scalars));
    return tdm_outputs_init(&scorer->outputs, scorer->model, task, backend);
}

tdm_status tdm_scorer_create(tdm_model *model, const tdm_task *task, tdm_backend *backend,
                             tdm_scorer **out)
{
    *out = NULL;
    tdm_scorer *scorer;
    TDM_TRY(tdm_alloc(1, sizeof *scorer, &scorer));
    scorer->model = model;
    scorer->task = task;
    scorer->backend = backend;
    scorer->batch.layout = &task->featurizer->batch;
    scorer->window = (tdm_window){.block_count = 1, .blocks = &scorer->block};
    tdm_status status = allocate(scorer);
    if (status == TDM_OK)
        *out = scorer;
    else
        tdm_scorer_destroy(scorer);
    return status;
}

void tdm_scorer_destroy(tdm_scorer *scorer)
{
    if (scorer == NULL)
        return;
    const tdm_backend_type *type = scorer->backend->type;
    tdm_batch_parts_destroy(scorer->parts);
    if (scorer->batch.data != NULL)
        type->host_free(scorer->backend, scorer->batch.data);
    tdm_outputs_deinit(&scorer->outputs);
    if (scorer->device != NULL)
        type->free(scorer->backend, scorer->device);
    if (scorer->device_scalars != NULL)
        type->free(scorer->backend, scorer->device_scalars);
    tdm_window_deinit(&scorer->window);
    tdm_free(scorer);
}

int64_t tdm_scorer_bytes(const tdm_task *task, bool host_memory)
{
    const tdm_batch_layout *layout = &task->featurizer->batch;
    return (int64_t)layout->bytes + tdm_batch_parts_bytes(&task->model_batch, host_memory) +
           tdm_outputs_bytes(task) + (int64_t)sizeof(tdm_step_scalars);
}

void tdm_scorer_empty(tdm_scorer *scorer)
{
    scorer->batch.rows = scorer->batch.tokens = 0;
}

int64_t tdm_scorer_rows(const tdm_scorer *scorer)
{
    return scorer->window.rows;
}

static int64_t tokens_before(const tdm_window *window, int64_t row)
{
    return row == 0 || window->token_ends == NULL ? 0 : window->token_ends[row - 1];
}

/* How many of the rows from `first` on the batch has room for. */
static int64_t find_room(const tdm_scorer *scorer, int64_t first)
{
    const tdm_batch *batch = &scorer->batch;
    const tdm_window *window = &scorer->window;
    int64_t room = batch->layout->batch_size - batch->rows, left = window->rows - first;
    int64_t most = left < room ? left : room;
    int64_t token_room = batch->layout->max_tokens - batch->tokens;
    if (batch->layout->max_tokens == 0 || window->token_ends == NULL)
        return most;
    int64_t taken = 0;
    while (taken < most &&
           tokens_before(window, first + taken + 1) - tokens_before(window, first) <= token_room)
        taken++;
    return taken;
}

tdm_status tdm_scorer_fill(tdm_scorer *scorer, tdm_extract *block, int64_t first, int64_t *taken)
{
    const tdm_featurizer *featurizer = scorer->task->featurizer;
    tdm_batch *batch = &scorer->batch;
    scorer->block = block;
    if (first == 0)
        TDM_TRY(featurizer->type->open_window(featurizer, 0, false, &scorer->window));
    *taken = find_room(scorer, first);
    featurizer->type->assemble(featurizer, &scorer->window, first, *taken, batch, batch->rows,
                               batch->tokens);
    batch->rows += *taken;
    batch->tokens +=
        tokens_before(&scorer->window, first + *taken) - tokens_before(&scorer->window, first);
    return TDM_OK;
}

static tdm_status put_scalars(tdm_scorer *scorer)
{
    tdm_backend *backend = scorer->backend;
    const tdm_task *task = scorer->task;
    scorer->scalars = (tdm_step_scalars){.loss_scale = 1};
    if (task->type->weigh != NULL)
        task->type->weigh(task, &scorer->batch, &scorer->scalars);
    return backend->type->copy_in(backend, scorer->device_scalars, &scorer->scalars,
                                  sizeof scorer->scalars, NULL);
}

static tdm_status run_parts(tdm_scorer *scorer, const unsigned char *data)
{
    tdm_batch_parts_begin(scorer->parts, &scorer->batch, data);
    for (;;) {
        const unsigned char *part;
        tdm_row_range rows;
        TDM_TRY(tdm_batch_parts_next(scorer->parts, &part, &rows));
        if (part == NULL)
            return TDM_OK;
        TDM_TRY(tdm_model_forward(scorer->model, part, scorer->device_scalars, false, NULL));
        TDM_TRY(tdm_outputs_take(&scorer->outputs, &scorer->batch, rows));
    }
}

tdm_status tdm_scorer_run(tdm_scorer *scorer, tdm_outcome *out)
{
    tdm_backend *backend = scorer->backend;
    const tdm_featurizer *featurizer = scorer->task->featurizer;
    tdm_batch *batch = &scorer->batch;
    const unsigned char *data = batch->data;
    *out = (tdm_outcome){.batch = NULL};
    if (batch->rows == 0)
        return TDM_OK;
    *(int64_t *)tdm_batch_data(batch, TDM_BATCH_ROWS) = batch->rows;
    for (int part = 0; part < featurizer->finish_parts; part++)
        featurizer->type->finish(featurizer, batch, part);
    TDM_TRY(put_scalars(scorer));
    if (scorer->device != NULL) {
        TDM_TRY(backend->type->copy_in(backend, scorer->device, batch->data, batch->layout->bytes,
                                       NULL));
        data = scorer->device;
    }
    TDM_TRY(run_parts(scorer, data));
    TDM_TRY(backend->type->copy_out(backend, &scorer->scalars, scorer->device_scalars,
                                    sizeof scorer->scalars, NULL));
    TDM_TRY(backend->type->stream_sync(backend, NULL));
    *out =
        (tdm_outcome){.batch = batch, .scalars = &scorer->scalars, .output = scorer->outputs.host};
    return TDM_OK;
}
