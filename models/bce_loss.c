#include "models/layers.h"

typedef struct bce_loss_layer {
    tdm_layer base;
    tdm_value logits, probabilities;
    int labels; /* a tensor of the batch; -1: none, it only predicts */
    bool sums_weights;
    bool accumulate; /* always false: nothing else reads the logits */
} bce_loss_layer;

static tdm_status run(const bce_loss_layer *layer, const tdm_step *step, tdm_matrix dlogits)
{
    const tdm_ops *ops = step->backend->ops;
    const float *weights = tdm_step_batch(step, TDM_BATCH_WEIGHT);
    const tdm_weight_sum_args sum_args = {
        .weights = weights,
        .batch = tdm_plan_batch(step->plan)->batch_size,
        .rows = tdm_step_rows(step),
        .scalars = step->scalars,
    };
    if (layer->sums_weights)
        TDM_TRY(ops->weight_sum(step->backend, &sum_args, step->stream));
    const tdm_bce_args args = {
        .logits = tdm_step_value(step, layer->logits),
        .labels = layer->labels < 0 ? NULL : tdm_step_batch(step, layer->labels),
        .weights = weights,
        .probabilities = tdm_step_value(step, layer->probabilities),
        .dlogits = dlogits,
        .scalars = step->scalars,
        .rows = tdm_step_rows(step),
    };
    return ops->bce(step->backend, &args, step->stream);
}

static tdm_status bce_loss_forward(tdm_layer *base, const tdm_step *step)
{
    const tdm_matrix none = {.data = NULL};
    return step->training ? TDM_OK : run((const bce_loss_layer *)base, step, none);
}

static tdm_status bce_loss_backward(tdm_layer *base, const tdm_step *step)
{
    const bce_loss_layer *layer = (const bce_loss_layer *)base;
    return run(layer, step, tdm_step_gradient(step, layer->logits));
}

static const tdm_layer_type bce_loss_type = {.forward = bce_loss_forward,
                                             .backward = bce_loss_backward};

static tdm_status find_labels(tdm_plan *plan, const char *labels, int64_t columns, int *out)
{
    tdm_shape shape = {2, {tdm_plan_batch(plan)->batch_size, columns}};
    *out = tdm_batch_layout_find(tdm_plan_batch(plan), labels);
    if (columns == 1)
        shape.rank = 1;
    if (*out >= 0)
        return tdm_plan_batch_tensor(plan, labels, TDM_F32, shape, out);
    tdm_plan_cannot_train(plan, labels);
    return TDM_OK;
}

tdm_status tdm_bce_loss_add(tdm_plan *plan, const char *name, tdm_value logits, const char *labels,
                            bool sums_weights)
{
    bce_loss_layer *layer;
    int64_t columns = tdm_plan_columns(plan, logits);
    TDM_TRY(tdm_plan_layer(plan, &bce_loss_type, name, sizeof *layer, &layer));
    layer->logits = logits;
    layer->sums_weights = sums_weights;
    TDM_TRY(find_labels(plan, labels, columns, &layer->labels));
    TDM_TRY(tdm_plan_input(plan, logits, &layer->accumulate));
    TDM_TRY(tdm_plan_keep(plan, logits));
    TDM_TRY(tdm_plan_value(plan, tdm_plan_axis(plan, logits), columns, &layer->probabilities));
    tdm_plan_output(plan, "probabilities", layer->probabilities);
    return TDM_OK;
}
