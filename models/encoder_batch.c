/* Where the layers of an encoder find the batch's tensors. */
#include "models/encoder_layers.h"

static int find(const tdm_plan *plan, const char *name)
{
    return tdm_batch_layout_find(tdm_plan_batch(plan), name);
}

static tdm_status find_vector(const tdm_plan *plan, const char *name, tdm_dtype dtype, int64_t size,
                              int *out)
{
    return tdm_plan_batch_tensor(plan, name, dtype, (tdm_shape){1, {size}}, out);
}

static tdm_status find_tokens(const tdm_plan *plan, tdm_encoder_batch *out)
{
    int ids = find(plan, "ids");
    TDM_FAIL_IF(ids < 0, TDM_E_ARG, "the batch has no tensor \"ids\"");
    int64_t tokens = tdm_shape_elements(&tdm_plan_batch(plan)->tensors[ids].shape);
    TDM_TRY(tdm_plan_batch_axis(plan, "token_count", tokens, &out->tokens));
    TDM_TRY(find_vector(plan, "ids", TDM_U32, tokens, &out->ids));
    TDM_TRY(find_vector(plan, "types", TDM_U32, tokens, &out->types));
    TDM_TRY(find_vector(plan, "positions", TDM_U32, tokens, &out->positions));
    return find_vector(plan, "token_rows", TDM_U32, tokens, &out->token_rows);
}

static tdm_status find_spans(const tdm_plan *plan, tdm_encoder_batch *out)
{
    int64_t sequences = out->sequences.size;
    out->cu_seqlens = out->lengths = -1;
    if (find(plan, "lengths") < 0) {
        TDM_TRY(find_vector(plan, "cu_seqlens", TDM_I32, sequences + 1, &out->cu_seqlens));
        out->first_tokens = out->cu_seqlens;
        return TDM_OK;
    }
    TDM_TRY(find_vector(plan, "first_tokens", TDM_U32, sequences, &out->first_tokens));
    return find_vector(plan, "lengths", TDM_I32, sequences, &out->lengths);
}

static tdm_status find_masks(tdm_plan *plan, bool labelled, tdm_encoder_batch *out)
{
    int positions = find(plan, "mask_positions");
    TDM_FAIL_IF(positions < 0, TDM_E_ARG, "the batch has no tensor \"mask_positions\"");
    int64_t most = tdm_plan_batch(plan)->tensors[positions].shape.sizes[0];
    TDM_TRY(tdm_plan_batch_axis(plan, "mask_count", most, &out->predictions));
    TDM_TRY(find_vector(plan, "mask_positions", TDM_U32, most, &out->mask_positions));
    if (!labelled)
        return TDM_OK;
    TDM_TRY(find_vector(plan, "mask_labels", TDM_U32, most, &out->mask_labels));
    int64_t parts = (most + TDM_MASKED_PART - 1) / TDM_MASKED_PART;
    TDM_TRY(find_vector(plan, "mask_parts", TDM_I64, parts, &out->mask_parts));
    out->pair_labels = find(plan, "pair_labels");
    if (out->pair_labels < 0)
        return TDM_OK;
    return find_vector(plan, "pair_labels", TDM_U32, out->sequences.size, &out->pair_labels);
}

static tdm_status find_labels(tdm_plan *plan, const tdm_model_inputs *inputs,
                              tdm_encoder_batch *out)
{
    int64_t sequences = out->sequences.size;
    out->labels = find(plan, "labels");
    if (out->labels < 0) {
        tdm_plan_cannot_train(plan, "labels");
        return TDM_OK;
    }
    switch (inputs->head) {
    case TDM_HEAD_CLASSES:
        return find_vector(plan, "labels", TDM_U32, sequences, &out->labels);
    case TDM_HEAD_REGRESSION:
        return find_vector(plan, "labels", TDM_F32, sequences, &out->labels);
    case TDM_HEAD_TOKEN_CLASSES:
        return find_vector(plan, "labels", TDM_U32, out->tokens.size, &out->labels);
    case TDM_HEAD_LABELS: /* the layer of its loss looks at them */
    case TDM_HEAD_NONE:
    case TDM_HEAD_MASKED:
    case TDM_HEAD_FILL:
        break;
    }
    return TDM_OK;
}

tdm_status tdm_encoder_batch_find(tdm_plan *plan, const tdm_model_inputs *inputs,
                                  tdm_encoder_batch *out)
{
    *out = (tdm_encoder_batch){
        .sequences = tdm_plan_rows(plan),
        .mask_positions = -1,
        .mask_labels = -1,
        .mask_parts = -1,
        .pair_labels = -1,
        .labels = -1,
        .max_length = inputs->max_length,
    };
    TDM_TRY(find_tokens(plan, out));
    TDM_TRY(find_spans(plan, out));
    switch (inputs->head) {
    case TDM_HEAD_NONE:
        tdm_plan_cannot_train(plan, "labels");
        return TDM_OK;
    case TDM_HEAD_FILL:
        tdm_plan_cannot_train(plan, "mask_labels");
        return find_masks(plan, false, out);
    case TDM_HEAD_MASKED:
        return find_masks(plan, true, out);
    default:
        return find_labels(plan, inputs, out);
    }
}

tdm_dropout_draws tdm_step_token_dropout(const tdm_step *step, const tdm_encoder_batch *batch,
                                         const char *name, float rate)
{
    tdm_dropout_draws draws = tdm_step_dropout(step, name, rate);
    draws.sample_rows = tdm_step_batch(step, batch->token_rows);
    draws.positions = tdm_step_batch(step, batch->positions);
    return draws;
}
