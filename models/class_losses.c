/* Losses of logits that a classifier has made. */
#include "models/encoder_layers.h"

typedef struct class_loss_layer {
    tdm_layer base;
    int labels; /* a tensor of the batch; -1: it only predicts */
    bool weighted;
    int loss;
    tdm_value logits;
    bool accumulate; /* always false: nothing else reads the logits */
} class_loss_layer;

static const void *labels_of(const class_loss_layer *layer, const tdm_step *step)
{
    return tdm_step_batch(step, layer->labels);
}

static const float *weights_of(const class_loss_layer *layer, const tdm_step *step)
{
    return layer->weighted ? tdm_step_batch(step, TDM_BATCH_WEIGHT) : NULL;
}

static tdm_status run_softmax(const class_loss_layer *layer, const tdm_step *step,
                              tdm_matrix dlogits)
{
    const tdm_softmax_loss_args args = {
        .logits = tdm_step_value(step, layer->logits),
        .labels = labels_of(layer, step),
        .weights = weights_of(layer, step),
        .dlogits = dlogits,
        .loss = layer->loss,
        .scalars = step->scalars,
        .rows = tdm_step_value_rows(step, layer->logits),
    };
    return step->backend->ops->softmax_loss(step->backend, &args, step->stream);
}

static tdm_status run_squared(const class_loss_layer *layer, const tdm_step *step,
                              tdm_matrix dlogits)
{
    const tdm_squared_loss_args args = {
        .logits = tdm_step_value(step, layer->logits),
        .labels = labels_of(layer, step),
        .weights = weights_of(layer, step),
        .dlogits = dlogits,
        .loss = layer->loss,
        .scalars = step->scalars,
        .rows = tdm_step_value_rows(step, layer->logits),
    };
    return step->backend->ops->squared_loss(step->backend, &args, step->stream);
}

static bool only_scores(const class_loss_layer *layer, const tdm_step *step)
{
    return layer->labels >= 0 && !step->training;
}

static tdm_status softmax_forward(tdm_layer *base, const tdm_step *step)
{
    const class_loss_layer *layer = (const class_loss_layer *)base;
    const tdm_matrix none = {.data = NULL};
    return only_scores(layer, step) ? run_softmax(layer, step, none) : TDM_OK;
}

static tdm_status softmax_backward(tdm_layer *base, const tdm_step *step)
{
    const class_loss_layer *layer = (const class_loss_layer *)base;
    return run_softmax(layer, step, tdm_step_gradient(step, layer->logits));
}

static tdm_status squared_forward(tdm_layer *base, const tdm_step *step)
{
    const class_loss_layer *layer = (const class_loss_layer *)base;
    const tdm_matrix none = {.data = NULL};
    return only_scores(layer, step) ? run_squared(layer, step, none) : TDM_OK;
}

static tdm_status squared_backward(tdm_layer *base, const tdm_step *step)
{
    const class_loss_layer *layer = (const class_loss_layer *)base;
    return run_squared(layer, step, tdm_step_gradient(step, layer->logits));
}

static const tdm_layer_type softmax_type = {.forward = softmax_forward,
                                            .backward = softmax_backward};
static const tdm_layer_type squared_type = {.forward = squared_forward,
                                            .backward = squared_backward};

static tdm_status add_loss(tdm_plan *plan, const tdm_layer_type *type, const char *name,
                           tdm_value logits, int labels, bool weighted, int loss)
{
    class_loss_layer *layer;
    TDM_TRY(tdm_plan_layer(plan, type, name, sizeof *layer, &layer));
    layer->labels = labels;
    layer->weighted = weighted;
    layer->loss = loss;
    layer->logits = logits;
    TDM_TRY(tdm_plan_input(plan, logits, &layer->accumulate));
    return tdm_plan_keep(plan, logits);
}

tdm_status tdm_softmax_loss_add(tdm_plan *plan, const char *name, tdm_value logits, int labels,
                                bool weighted, int loss)
{
    return add_loss(plan, &softmax_type, name, logits, labels, weighted, loss);
}

tdm_status tdm_squared_loss_add(tdm_plan *plan, const char *name, tdm_value logits, int labels,
                                int loss)
{
    return add_loss(plan, &squared_type, name, logits, labels, true, loss);
}
