/* The decoder of masked tokens, whose matrix is the word table. */
#include "models/encoder_layers.h"

#include "core/memory.h"

typedef struct masked_head_layer {
    tdm_layer base;
    int word, bias; /* parameters */
    int64_t vocabulary, columns;
    int labels, parts; /* tensors of the batch */
    int64_t part_count;
    tdm_value x, logits; /* logits TDM_NO_VALUE: made part by part */
    bool accumulate;     /* always false: nothing else reads x */
} masked_head_layer;

static tdm_matrix word_matrix(const masked_head_layer *layer, float *data)
{
    return (tdm_matrix){.data = data,
                        .rows = layer->vocabulary,
                        .columns = layer->columns,
                        .stride = layer->columns,
                        .dtype = TDM_F32};
}

static tdm_status make_logits(const masked_head_layer *layer, const tdm_step *step, tdm_matrix x,
                              tdm_matrix logits, const int64_t *rows)
{
    const tdm_gemm_args args = {
        .a = x,
        .b = word_matrix(layer, tdm_step_parameter(step, layer->word)),
        .c = logits,
        .trans_b = true,
        .bias = tdm_step_parameter(step, layer->bias),
        .compute = step->compute,
        .rows = rows,
    };
    return step->backend->ops->gemm(step->backend, &args, step->stream);
}

/* ---- the loss -------------------------------------------------------------------------------- */

/* Predictions [first, first + TDM_MASKED_PART). */
typedef struct masked_part {
    tdm_matrix x, dx, logits;
    const uint32_t *labels;
    const int64_t *rows; /* valid ones */
} masked_part;

static tdm_matrix cut_rows(tdm_matrix matrix, int64_t first)
{
    int64_t left = matrix.rows - first;
    if (matrix.data != NULL)
        matrix.data = (float *)matrix.data + first * matrix.stride;
    matrix.rows = left < TDM_MASKED_PART ? left : TDM_MASKED_PART;
    return matrix;
}

static int64_t logits_stride(int64_t vocabulary)
{
    const int64_t line = TDM_ALIGNMENT / sizeof(float);
    return (vocabulary + line - 1) / line * line;
}

static masked_part part_of(const masked_head_layer *layer, const tdm_step *step, int64_t index)
{
    int64_t first = index * TDM_MASKED_PART;
    masked_part part = {
        .x = cut_rows(tdm_step_value(step, layer->x), first),
        .labels = (const uint32_t *)tdm_step_batch(step, layer->labels) + first,
        .rows = (const int64_t *)tdm_step_batch(step, layer->parts) + index,
    };
    part.logits = (tdm_matrix){.data = tdm_step_workspace(step),
                               .rows = part.x.rows,
                               .columns = layer->vocabulary,
                               .stride = logits_stride(layer->vocabulary),
                               .dtype = TDM_F32};
    return part;
}

static tdm_status run_loss(const masked_head_layer *layer, const tdm_step *step,
                           const masked_part *part, bool gradient)
{
    TDM_TRY(make_logits(layer, step, part->x, part->logits, part->rows));
    tdm_softmax_loss_args args = {
        .logits = part->logits,
        .labels = part->labels,
        .loss = 0,
        .scalars = step->scalars,
        .rows = part->rows,
    };
    if (gradient)
        args.dlogits = part->logits;
    return step->backend->ops->softmax_loss(step->backend, &args, step->stream);
}

static tdm_status masked_loss_forward(tdm_layer *base, const tdm_step *step)
{
    const masked_head_layer *layer = (const masked_head_layer *)base;
    for (int64_t i = 0; i < layer->part_count && !step->training; i++) {
        masked_part part = part_of(layer, step, i);
        TDM_TRY(run_loss(layer, step, &part, false));
    }
    return TDM_OK;
}

static tdm_status part_backward(const masked_head_layer *layer, const tdm_step *step,
                                const masked_part *part)
{
    const tdm_ops *ops = step->backend->ops;
    const tdm_column_sum_args bias_args = {
        .x = part->logits,
        .sums = tdm_step_parameter_gradient(step, layer->bias),
        .rows = part->rows,
    };
    const tdm_gemm_args word_args = {
        .a = part->logits,
        .b = part->x,
        .c = word_matrix(layer, tdm_step_parameter_gradient(step, layer->word)),
        .trans_a = true,
        .accumulate = true,
        .compute = step->compute,
        .rows = part->rows,
    };
    const tdm_gemm_args input_args = {
        .a = part->logits,
        .b = word_matrix(layer, tdm_step_parameter(step, layer->word)),
        .c = part->dx,
        .compute = step->compute,
        .rows = part->rows,
    };
    TDM_TRY(ops->column_sum(step->backend, &bias_args, step->stream));
    TDM_TRY(ops->gemm(step->backend, &word_args, step->stream));
    return ops->gemm(step->backend, &input_args, step->stream);
}

static tdm_status masked_loss_backward(tdm_layer *base, const tdm_step *step)
{
    const masked_head_layer *layer = (const masked_head_layer *)base;
    for (int64_t i = 0; i < layer->part_count; i++) {
        masked_part part = part_of(layer, step, i);
        part.dx = cut_rows(tdm_step_gradient(step, layer->x), i * TDM_MASKED_PART);
        TDM_TRY(run_loss(layer, step, &part, true));
        TDM_TRY(part_backward(layer, step, &part));
    }
    return TDM_OK;
}

static void masked_loss_products(const tdm_layer *base, const tdm_plan *plan,
                                 tdm_product_list *list)
{
    const masked_head_layer *layer = (const masked_head_layer *)base;
    tdm_axis axis = tdm_plan_axis(plan, layer->x);
    const tdm_product products[] = {
        {.m = axis.size, .n = layer->vocabulary, .k = layer->columns, .trans_b = true},
        {.m = layer->vocabulary,
         .n = layer->columns,
         .k = axis.size,
         .trans_a = true,
         .accumulate = true},
        {.m = axis.size, .n = layer->columns, .k = layer->vocabulary},
    };
    for (int i = 0; i < 3; i++, list->count++) {
        if (list->count >= list->capacity)
            continue;
        list->items[list->count] = products[i];
        list->items[list->count].count = axis.count;
    }
}

static const tdm_layer_type masked_loss_type = {
    .forward = masked_loss_forward,
    .backward = masked_loss_backward,
    .products = masked_loss_products,
};

static tdm_status add_head(tdm_plan *plan, const tdm_layer_type *type, const char *name,
                           const tdm_encoder_batch *batch, int word, int64_t vocabulary,
                           tdm_value x, masked_head_layer **out)
{
    masked_head_layer *layer;
    TDM_TRY(tdm_plan_layer(plan, type, name, sizeof *layer, &layer));
    layer->word = word;
    layer->vocabulary = vocabulary;
    layer->columns = tdm_plan_columns(plan, x);
    layer->labels = batch->mask_labels;
    layer->parts = batch->mask_parts;
    layer->part_count = (batch->predictions.size + TDM_MASKED_PART - 1) / TDM_MASKED_PART;
    layer->x = x;
    layer->logits = TDM_NO_VALUE;
    TDM_TRY(tdm_plan_parameter(plan, "masked", "bias", (tdm_shape){1, {vocabulary}},
                               (tdm_init){TDM_INIT_ZERO, 0}, false, false, &layer->bias));
    TDM_TRY(tdm_plan_input(plan, x, &layer->accumulate));
    *out = layer;
    return tdm_plan_keep(plan, x);
}

tdm_status tdm_masked_loss_add(tdm_plan *plan, const tdm_encoder_batch *batch, int word,
                               int64_t vocabulary, tdm_value x)
{
    masked_head_layer *layer;
    int64_t rows = batch->predictions.size;
    if (rows > TDM_MASKED_PART)
        rows = TDM_MASKED_PART;
    TDM_TRY(add_head(plan, &masked_loss_type, "masked_loss", batch, word, vocabulary, x, &layer));
    tdm_plan_workspace(plan, (size_t)(rows * logits_stride(vocabulary)) * sizeof(float));
    return TDM_OK;
}

/* ---- logits ---------------------------------------------------------------------------------- */

static tdm_status masked_logits_forward(tdm_layer *base, const tdm_step *step)
{
    const masked_head_layer *layer = (const masked_head_layer *)base;
    return make_logits(layer, step, tdm_step_value(step, layer->x),
                       tdm_step_value(step, layer->logits), tdm_step_value_rows(step, layer->x));
}

static const tdm_layer_type masked_logits_type = {.forward = masked_logits_forward};

tdm_status tdm_masked_logits_add(tdm_plan *plan, const tdm_encoder_batch *batch, int word,
                                 int64_t vocabulary, tdm_value x)
{
    masked_head_layer *layer;
    TDM_TRY(
        add_head(plan, &masked_logits_type, "masked_logits", batch, word, vocabulary, x, &layer));
    TDM_TRY(tdm_plan_value(plan, batch->predictions, vocabulary, &layer->logits));
    tdm_plan_output(plan, "logits", layer->logits);
    return TDM_OK;
}
