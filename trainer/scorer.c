#include "trainer/scorer.h"

#include "core/memory.h"

struct tdm_scorer {
    tdm_model *model;
    const tdm_featurizer *featurizer;
    tdm_backend *backend;
    tdm_batch batch;           /* in host memory */
    unsigned char *device;     /* the batch on the device; NULL where it reads the host's memory */
    tdm_step_scalars *scalars; /* on the device; zero */
    float *probabilities;      /* in host memory */
    tdm_window window;         /* of one block */
    tdm_extract *block;
    int label; /* tensor */
};

static tdm_status allocate(tdm_scorer *scorer)
{
    tdm_backend *backend = scorer->backend;
    const tdm_batch_layout *layout = &scorer->featurizer->batch;
    tdm_backend_properties properties;
    TDM_TRY(backend->type->properties(backend, &properties));
    TDM_TRY(backend->type->host_alloc(backend, layout->bytes, &scorer->batch.data));
    if (!properties.host_memory)
        TDM_TRY(backend->type->alloc(backend, layout->bytes, &scorer->device));
    TDM_TRY(backend->type->alloc(backend, sizeof *scorer->scalars, &scorer->scalars));
    return backend->type->host_alloc(backend, (size_t)layout->batch_size * sizeof(float),
                                     &scorer->probabilities);
}

tdm_status tdm_scorer_create(tdm_model *model, const tdm_featurizer *featurizer,
                             tdm_backend *backend, tdm_scorer **out)
{
    *out = NULL;
    tdm_scorer *scorer;
    TDM_TRY(tdm_alloc(1, sizeof *scorer, &scorer));
    scorer->model = model;
    scorer->featurizer = featurizer;
    scorer->backend = backend;
    scorer->batch.layout = &featurizer->batch;
    scorer->label = tdm_batch_layout_find(&featurizer->batch, "label");
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
    if (scorer->batch.data != NULL)
        type->host_free(scorer->backend, scorer->batch.data);
    if (scorer->probabilities != NULL)
        type->host_free(scorer->backend, scorer->probabilities);
    if (scorer->device != NULL)
        type->free(scorer->backend, scorer->device);
    if (scorer->scalars != NULL)
        type->free(scorer->backend, scorer->scalars);
    tdm_window_deinit(&scorer->window);
    tdm_free(scorer);
}

int64_t tdm_scorer_bytes(const tdm_featurizer *featurizer)
{
    const tdm_batch_layout *layout = &featurizer->batch;
    return (int64_t)(layout->bytes + (size_t)layout->batch_size * sizeof(float) +
                     sizeof(tdm_step_scalars));
}

bool tdm_scorer_is_full(const tdm_scorer *scorer)
{
    return scorer->batch.rows == scorer->batch.layout->batch_size;
}

void tdm_scorer_empty(tdm_scorer *scorer)
{
    scorer->batch.rows = 0;
}

tdm_status tdm_scorer_fill(tdm_scorer *scorer, tdm_extract *block, int64_t first, int64_t *taken)
{
    const tdm_featurizer_type *type = scorer->featurizer->type;
    int64_t room = scorer->batch.layout->batch_size - scorer->batch.rows;
    scorer->block = block;
    if (first == 0)
        TDM_TRY(type->open_window(scorer->featurizer, 0, false, &scorer->window));
    int64_t left = scorer->window.rows - first;
    *taken = left < room ? left : room;
    type->assemble(scorer->featurizer, &scorer->window, first, *taken, &scorer->batch,
                   scorer->batch.rows, 0);
    scorer->batch.rows += *taken;
    return TDM_OK;
}

tdm_status tdm_scorer_run(tdm_scorer *scorer, tdm_scores *out)
{
    tdm_backend *backend = scorer->backend;
    tdm_batch *batch = &scorer->batch;
    const unsigned char *data = batch->data;
    *out = (tdm_scores){0};
    if (batch->rows == 0)
        return TDM_OK;
    *(int64_t *)tdm_batch_data(batch, TDM_BATCH_ROWS) = batch->rows;
    if (scorer->device != NULL) {
        TDM_TRY(backend->type->copy_in(backend, scorer->device, batch->data, batch->layout->bytes,
                                       NULL));
        data = scorer->device;
    }
    tdm_matrix probabilities;
    TDM_TRY(tdm_model_forward(scorer->model, data, scorer->scalars, false, NULL));
    TDM_TRY(tdm_model_output(scorer->model, "probabilities", &probabilities));
    TDM_TRY(backend->type->copy_out(backend, scorer->probabilities, probabilities.data,
                                    (size_t)batch->rows * sizeof(float), NULL));
    TDM_TRY(backend->type->stream_sync(backend, NULL));
    *out = (tdm_scores){
        .rows = batch->rows,
        .probabilities = scorer->probabilities,
        .labels = tdm_batch_data(batch, scorer->label),
        .weights = tdm_batch_data(batch, TDM_BATCH_WEIGHT),
    };
    batch->rows = 0;
    return TDM_OK;
}
