#include "models/encoder_layers.h"

typedef struct token_embedding_layer {
    tdm_layer base;
    tdm_encoder_batch batch;
    int word, position, type;   /* parameters; -1: none */
    int norm_weight, norm_bias; /* -1: none */
    int64_t tables[3];          /* rows of each */
    float eps, dropout;
    tdm_value sum, output; /* one where nothing is normalized */
    tdm_scratch means, rstds;
} token_embedding_layer;

/* The tables and the batch's tensors of their ids. */
typedef struct lookup_part {
    int parameter;
    int ids;
    int64_t rows;
} lookup_part;

static int list_parts(const token_embedding_layer *layer, lookup_part parts[3])
{
    const lookup_part all[3] = {
        {layer->word, layer->batch.ids, layer->tables[0]},
        {layer->position, layer->batch.positions, layer->tables[1]},
        {layer->type, layer->batch.types, layer->tables[2]},
    };
    int count = 0;
    for (int i = 0; i < 3; i++) {
        if (all[i].parameter >= 0)
            parts[count++] = all[i];
    }
    return count;
}

static tdm_matrix table_matrix(const lookup_part *part, float *data, int64_t columns)
{
    return (tdm_matrix){
        .data = data, .rows = part->rows, .columns = columns, .stride = columns, .dtype = TDM_F32};
}

static tdm_status look_up(const token_embedding_layer *layer, const tdm_step *step, tdm_matrix sum)
{
    lookup_part parts[3];
    int count = list_parts(layer, parts);
    for (int i = 0; i < count; i++) {
        const tdm_lookup_fwd_args args = {
            .table =
                table_matrix(&parts[i], tdm_step_parameter(step, parts[i].parameter), sum.columns),
            .ids = tdm_step_batch(step, parts[i].ids),
            .out = sum,
            .accumulate = i > 0,
            .rows = tdm_step_value_rows(step, layer->sum),
        };
        TDM_TRY(step->backend->ops->lookup_fwd(step->backend, &args, step->stream));
    }
    return TDM_OK;
}

static tdm_status look_up_backward(const token_embedding_layer *layer, const tdm_step *step,
                                   tdm_matrix dsum)
{
    lookup_part parts[3];
    int count = list_parts(layer, parts);
    for (int i = 0; i < count; i++) {
        const tdm_lookup_bwd_args args = {
            .dout = dsum,
            .ids = tdm_step_batch(step, parts[i].ids),
            .table_gradient = table_matrix(
                &parts[i], tdm_step_parameter_gradient(step, parts[i].parameter), dsum.columns),
            .rows = tdm_step_value_rows(step, layer->sum),
        };
        TDM_TRY(step->backend->ops->lookup_bwd(step->backend, &args, step->stream));
    }
    return TDM_OK;
}

static tdm_status drop(const token_embedding_layer *layer, const tdm_step *step, tdm_matrix x)
{
    const tdm_dropout_args args = {
        .x = x,
        .y = x,
        .draws = tdm_step_token_dropout(step, &layer->batch, layer->base.name, layer->dropout),
        .rows = tdm_step_value_rows(step, layer->output),
    };
    if (args.draws.rate <= 0)
        return TDM_OK;
    return step->backend->ops->dropout(step->backend, &args, step->stream);
}

static tdm_status token_embedding_forward(tdm_layer *base, const tdm_step *step)
{
    const token_embedding_layer *layer = (const token_embedding_layer *)base;
    tdm_matrix sum = tdm_step_value(step, layer->sum), y = tdm_step_value(step, layer->output);
    TDM_TRY(look_up(layer, step, sum));
    if (layer->norm_weight >= 0) {
        const tdm_layer_norm_fwd_args args = {
            .x = sum,
            .gamma = tdm_step_parameter(step, layer->norm_weight),
            .beta = layer->norm_bias < 0 ? NULL : tdm_step_parameter(step, layer->norm_bias),
            .eps = layer->eps,
            .y = y,
            .means = step->training ? tdm_step_scratch(step, layer->means) : NULL,
            .rstds = step->training ? tdm_step_scratch(step, layer->rstds) : NULL,
            .rows = tdm_step_value_rows(step, layer->sum),
        };
        TDM_TRY(step->backend->ops->layer_norm_fwd(step->backend, &args, step->stream));
    }
    return drop(layer, step, y);
}

static tdm_status token_embedding_backward(tdm_layer *base, const tdm_step *step)
{
    const token_embedding_layer *layer = (const token_embedding_layer *)base;
    tdm_matrix gradient = tdm_step_gradient(step, layer->output);
    TDM_TRY(drop(layer, step, gradient));
    if (layer->norm_weight >= 0) {
        const tdm_layer_norm_bwd_args args = {
            .sum = tdm_step_value(step, layer->sum),
            .gamma = tdm_step_parameter(step, layer->norm_weight),
            .means = tdm_step_scratch(step, layer->means),
            .rstds = tdm_step_scratch(step, layer->rstds),
            .dy = gradient,
            .dx = gradient,
            .gamma_gradient = tdm_step_parameter_gradient(step, layer->norm_weight),
            .beta_gradient =
                layer->norm_bias < 0 ? NULL : tdm_step_parameter_gradient(step, layer->norm_bias),
            .rows = tdm_step_value_rows(step, layer->sum),
        };
        TDM_TRY(step->backend->ops->layer_norm_bwd(step->backend, &args, step->stream));
    }
    return look_up_backward(layer, step, gradient);
}

static const tdm_layer_type token_embedding_type = {.forward = token_embedding_forward,
                                                    .backward = token_embedding_backward};

static tdm_status plan_tables(tdm_plan *plan, const tdm_bert_options *options,
                              const tdm_model_inputs *inputs, token_embedding_layer *layer)
{
    const tdm_init init = {TDM_INIT_NORMAL, (float)(2.0 * options->initializer)};
    int64_t hidden = options->hidden;
    layer->tables[0] = inputs->vocabulary;
    layer->tables[1] = options->max_positions > 0 ? options->max_positions : inputs->max_length;
    layer->tables[2] = 2;
    layer->position = layer->type = -1;
    TDM_TRY(tdm_plan_parameter(plan, "embeddings.word", "weight",
                               (tdm_shape){2, {layer->tables[0], hidden}}, init, true, false,
                               &layer->word));
    if (options->positions == TDM_POSITION_LEARNED)
        TDM_TRY(tdm_plan_parameter(plan, "embeddings.position", "weight",
                                   (tdm_shape){2, {layer->tables[1], hidden}}, init, true, false,
                                   &layer->position));
    if (!options->types)
        return TDM_OK;
    return tdm_plan_parameter(plan, "embeddings.type", "weight",
                              (tdm_shape){2, {layer->tables[2], hidden}}, init, true, false,
                              &layer->type);
}

static tdm_status plan_norm(tdm_plan *plan, const tdm_bert_options *options,
                            token_embedding_layer *layer)
{
    layer->norm_weight = layer->norm_bias = -1;
    if (options->norm == TDM_NORM_PRE && !options->embedding_norm)
        return TDM_OK;
    const tdm_shape shape = {1, {options->hidden}};
    size_t bytes = (size_t)layer->batch.tokens.size * sizeof(float);
    TDM_TRY(tdm_plan_parameter(plan, "embeddings.norm", "weight", shape,
                               (tdm_init){TDM_INIT_ONE, 0}, false, false, &layer->norm_weight));
    if (options->bias)
        TDM_TRY(tdm_plan_parameter(plan, "embeddings.norm", "bias", shape,
                                   (tdm_init){TDM_INIT_ZERO, 0}, false, false, &layer->norm_bias));
    TDM_TRY(tdm_plan_scratch(plan, bytes, TDM_SCRATCH_KEPT, &layer->means));
    return tdm_plan_scratch(plan, bytes, TDM_SCRATCH_KEPT, &layer->rstds);
}

tdm_status tdm_token_embedding_add(tdm_plan *plan, const tdm_bert_options *options,
                                   const tdm_model_inputs *inputs, const tdm_encoder_batch *batch,
                                   int *word, tdm_value *output)
{
    token_embedding_layer *layer;
    TDM_TRY(tdm_plan_layer(plan, &token_embedding_type, "embeddings", sizeof *layer, &layer));
    layer->batch = *batch;
    layer->eps = (float)options->norm_eps;
    layer->dropout = (float)options->dropout;
    TDM_TRY(plan_tables(plan, options, inputs, layer));
    TDM_TRY(plan_norm(plan, options, layer));
    TDM_TRY(tdm_plan_value(plan, batch->tokens, options->hidden, &layer->sum));
    layer->output = layer->sum;
    if (layer->norm_weight >= 0) {
        TDM_TRY(tdm_plan_value(plan, batch->tokens, options->hidden, &layer->output));
        TDM_TRY(tdm_plan_keep(plan, layer->sum));
    }
    *word = layer->word;
    *output = layer->output;
    return TDM_OK;
}
