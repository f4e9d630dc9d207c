#include "models/layers.h"

#include <assert.h>

typedef struct fm_layer {
    tdm_layer base;
    int fields;
    int64_t dim;
    tdm_value embeddings, output;
    tdm_scratch sums;
    bool accumulate;
} fm_layer;

/* The columns of a matrix that hold embeddings. */
static tdm_matrix embedding_columns(const fm_layer *layer, tdm_matrix matrix)
{
    matrix.columns = layer->fields * layer->dim;
    return matrix;
}

static tdm_matrix sums_matrix(const fm_layer *layer, const tdm_step *step)
{
    return (tdm_matrix){.data = tdm_step_scratch(step, layer->sums),
                        .rows = tdm_plan_batch(step->plan)->batch_size,
                        .columns = layer->dim,
                        .stride = layer->dim,
                        .dtype = TDM_F32};
}

static tdm_status fm_forward(tdm_layer *base, const tdm_step *step)
{
    const fm_layer *layer = (const fm_layer *)base;
    const tdm_fm_fwd_args args = {
        .embeddings = embedding_columns(layer, tdm_step_value(step, layer->embeddings)),
        .fields = layer->fields,
        .out = tdm_step_value(step, layer->output),
        .sums = sums_matrix(layer, step),
        .rows = tdm_step_rows(step),
    };
    return step->backend->ops->fm_fwd(step->backend, &args, step->stream);
}

static tdm_status fm_backward(tdm_layer *base, const tdm_step *step)
{
    const fm_layer *layer = (const fm_layer *)base;
    tdm_matrix gradient = tdm_step_gradient(step, layer->embeddings);
    assert(layer->accumulate || gradient.columns == layer->fields * layer->dim);
    const tdm_fm_bwd_args args = {
        .embeddings = embedding_columns(layer, tdm_step_value(step, layer->embeddings)),
        .sums = sums_matrix(layer, step),
        .dout = tdm_step_gradient(step, layer->output),
        .d_embeddings = embedding_columns(layer, gradient),
        .fields = layer->fields,
        .accumulate = layer->accumulate,
        .rows = tdm_step_rows(step),
    };
    return step->backend->ops->fm_bwd(step->backend, &args, step->stream);
}

static const tdm_layer_type fm_type = {.forward = fm_forward, .backward = fm_backward};

tdm_status tdm_fm_add(tdm_plan *plan, const char *name, tdm_value embeddings, int fields,
                      int64_t dim, tdm_value *output)
{
    fm_layer *layer;
    size_t sums_bytes = (size_t)(tdm_plan_batch(plan)->batch_size * dim) * sizeof(float);
    TDM_TRY(tdm_plan_layer(plan, &fm_type, name, sizeof *layer, &layer));
    layer->fields = fields;
    layer->dim = dim;
    layer->embeddings = embeddings;
    TDM_TRY(tdm_plan_scratch(plan, sums_bytes, TDM_SCRATCH_KEPT, &layer->sums));
    TDM_TRY(tdm_plan_value(plan, tdm_plan_rows(plan), 1, &layer->output));
    TDM_TRY(tdm_plan_input(plan, embeddings, &layer->accumulate));
    TDM_TRY(tdm_plan_keep(plan, embeddings));
    *output = layer->output;
    return TDM_OK;
}
