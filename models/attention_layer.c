#include "models/encoder_layers.h"

#include <math.h>

typedef struct attention_layer {
    tdm_layer base;
    tdm_encoder_batch batch;
    int64_t heads, dim;
    int64_t window;      /* -1: all */
    double rotary_theta; /* 0: no rotary positions */
    float dropout;
    tdm_value qkv, output;
    tdm_scratch log_sums;
    bool accumulate; /* always false: nothing else reads qkv */
} attention_layer;

/* Turns queries and keys by their positions, or back. */
static tdm_status rotate(const attention_layer *layer, const tdm_step *step, tdm_matrix qkv,
                         bool inverse)
{
    if (layer->rotary_theta <= 0)
        return TDM_OK;
    qkv.columns = 2 * layer->heads * layer->dim;
    const tdm_rotary_args args = {
        .x = qkv,
        .dim = layer->dim,
        .theta = layer->rotary_theta,
        .positions = tdm_step_batch(step, layer->batch.positions),
        .max_positions = layer->batch.max_length,
        .inverse = inverse,
        .rows = tdm_step_value_rows(step, layer->qkv),
    };
    return step->backend->ops->rotary(step->backend, &args, step->stream);
}

static tdm_sequence_spans make_spans(const attention_layer *layer, const tdm_step *step)
{
    const tdm_encoder_batch *batch = &layer->batch;
    bool padded = batch->lengths >= 0;
    return (tdm_sequence_spans){
        .cu_seqlens = padded ? NULL : tdm_step_batch(step, batch->cu_seqlens),
        .lengths = padded ? tdm_step_batch(step, batch->lengths) : NULL,
        .stride = padded ? batch->tokens.size / batch->sequences.size : 0,
        .batch = batch->sequences.size,
        .max_length = batch->max_length,
        .rows = tdm_step_rows(step),
    };
}

static tdm_status attention_forward(tdm_layer *base, const tdm_step *step)
{
    const attention_layer *layer = (const attention_layer *)base;
    const tdm_attention_fwd_args args = {
        .qkv = tdm_step_value(step, layer->qkv),
        .heads = layer->heads,
        .window = layer->window,
        .scale = 1.0f / sqrtf((float)layer->dim),
        .dropout = tdm_step_dropout(step, base->name, layer->dropout),
        .spans = make_spans(layer, step),
        .compute = step->compute,
        .out = tdm_step_value(step, layer->output),
        .log_sums = step->training ? tdm_step_scratch(step, layer->log_sums) : NULL,
    };
    TDM_TRY(rotate(layer, step, args.qkv, false));
    return step->backend->ops->attention_fwd(step->backend, &args, step->stream);
}

static tdm_status attention_backward(tdm_layer *base, const tdm_step *step)
{
    const attention_layer *layer = (const attention_layer *)base;
    const tdm_attention_bwd_args args = {
        .qkv = tdm_step_value(step, layer->qkv),
        .out = tdm_step_value(step, layer->output),
        .dout = tdm_step_gradient(step, layer->output),
        .heads = layer->heads,
        .window = layer->window,
        .scale = 1.0f / sqrtf((float)layer->dim),
        .dropout = tdm_step_dropout(step, base->name, layer->dropout),
        .spans = make_spans(layer, step),
        .compute = step->compute,
        .log_sums = tdm_step_scratch(step, layer->log_sums),
        .dqkv = tdm_step_gradient(step, layer->qkv),
    };
    TDM_TRY(step->backend->ops->attention_bwd(step->backend, &args, step->stream));
    return rotate(layer, step, args.dqkv, true);
}

static const tdm_layer_type attention_type = {.forward = attention_forward,
                                              .backward = attention_backward};

tdm_status tdm_attention_add(tdm_plan *plan, const char *name, const tdm_bert_options *options,
                             int64_t layer_number, const tdm_encoder_batch *batch, tdm_value qkv,
                             tdm_value *output)
{
    attention_layer *layer;
    bool local = options->local_window > 0 && layer_number % options->global_every != 0;
    TDM_TRY(tdm_plan_layer(plan, &attention_type, name, sizeof *layer, &layer));
    layer->batch = *batch;
    layer->heads = options->heads;
    layer->dim = options->hidden / options->heads;
    layer->window = local ? options->local_window : -1;
    if (options->positions == TDM_POSITION_ROTARY)
        layer->rotary_theta = local ? options->local_rotary_theta : options->rotary_theta;
    layer->dropout = (float)tdm_bert_attention_dropout(options);
    layer->qkv = qkv;
    TDM_TRY(tdm_plan_scratch(plan, (size_t)(batch->tokens.size * layer->heads) * sizeof(float),
                             TDM_SCRATCH_KEPT, &layer->log_sums));
    TDM_TRY(tdm_plan_value(plan, batch->tokens, options->hidden, &layer->output));
    TDM_TRY(tdm_plan_keep(plan, layer->output));
    TDM_TRY(tdm_plan_input(plan, qkv, &layer->accumulate));
    TDM_TRY(tdm_plan_keep(plan, qkv));
    *output = layer->output;
    return TDM_OK;
}
