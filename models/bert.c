#include "models/encoder_layers.h"

#include "core/memory.h"

/* What the functions of a build share. */
typedef struct encoder_build {
    tdm_plan *plan;
    const tdm_bert_options *options;
    const tdm_model_inputs *inputs;
    tdm_encoder_batch batch;
    tdm_linear_options linear;
    tdm_norm_options norm;
    tdm_activation activation;
    int64_t intermediate;
    int word;
} encoder_build;

static tdm_status add_linear(const encoder_build *build, const char *prefix, const char *name,
                             tdm_value x, int64_t units, tdm_activation activation, tdm_value *out)
{
    char *full_name;
    tdm_linear_options options = build->linear;
    options.units = units;
    options.activation = activation;
    TDM_TRY(tdm_format(&full_name, "%s.%s", prefix, name));
    tdm_status status = tdm_linear_add(build->plan, full_name, x, &options, out);
    tdm_free(full_name);
    return status;
}

static tdm_status add_norm(const encoder_build *build, const char *prefix, const char *name,
                           tdm_value x, tdm_value residual, tdm_value *sum, tdm_value *y)
{
    char *full_name;
    TDM_TRY(tdm_format(&full_name, "%s.%s", prefix, name));
    tdm_status status =
        tdm_norm_add(build->plan, full_name, &build->norm, &build->batch, x, residual, sum, y);
    tdm_free(full_name);
    return status;
}

static tdm_status add_attention(const encoder_build *build, const char *prefix, int64_t layer,
                                tdm_value x, tdm_value *out)
{
    tdm_value qkv, context;
    int64_t hidden = build->options->hidden;
    TDM_TRY(add_linear(build, prefix, "attention.qkv", x, 3 * hidden, TDM_ACTIVATION_NONE, &qkv));
    char *name;
    TDM_TRY(tdm_format(&name, "%s.attention", prefix));
    tdm_status status =
        tdm_attention_add(build->plan, name, build->options, layer, &build->batch, qkv, &context);
    tdm_free(name);
    TDM_TRY(status);
    return add_linear(build, prefix, "attention.output", context, hidden, TDM_ACTIVATION_NONE, out);
}

static tdm_status add_mlp(const encoder_build *build, const char *prefix, tdm_value x,
                          tdm_value *out)
{
    const tdm_bert_options *options = build->options;
    tdm_value inner;
    if (options->gated) {
        char *name;
        tdm_value both;
        TDM_TRY(add_linear(build, prefix, "mlp.input", x, 2 * build->intermediate,
                           TDM_ACTIVATION_NONE, &both));
        TDM_TRY(tdm_format(&name, "%s.mlp.gate", prefix));
        tdm_status status = tdm_gate_add(build->plan, name, build->activation, both, &inner);
        tdm_free(name);
        TDM_TRY(status);
    } else {
        TDM_TRY(add_linear(build, prefix, "mlp.input", x, build->intermediate, build->activation,
                           &inner));
    }
    return add_linear(build, prefix, "mlp.output", inner, options->hidden, TDM_ACTIVATION_NONE,
                      out);
}

/* x becomes norm(x + attention(x)), and that norm(x + mlp(x)). */
static tdm_status add_post_layer(const encoder_build *build, const char *prefix, int64_t layer,
                                 tdm_value *x)
{
    tdm_value out, sum;
    TDM_TRY(add_attention(build, prefix, layer, *x, &out));
    TDM_TRY(add_norm(build, prefix, "attention.norm", out, *x, &sum, x));
    TDM_TRY(add_mlp(build, prefix, *x, &out));
    return add_norm(build, prefix, "mlp.norm", out, *x, &sum, x);
}

/* The stream becomes stream + attention(norm(stream)), and that stream + mlp(norm(stream)). An
 * addition and the norm behind it are one layer, so that what a layer hands on is its last
 * addition's parts: `addend`, not yet added to *stream, TDM_NO_VALUE before the first. */
static tdm_status add_pre_layer(const encoder_build *build, const char *prefix, int64_t layer,
                                tdm_value *stream, tdm_value *addend)
{
    bool is_normed = layer == 0 && build->options->embedding_norm;
    tdm_value x = *stream;
    if (*addend != TDM_NO_VALUE)
        TDM_TRY(add_norm(build, prefix, "attention.norm", *addend, *stream, stream, &x));
    else if (!is_normed)
        TDM_TRY(add_norm(build, prefix, "attention.norm", *stream, TDM_NO_VALUE, stream, &x));
    TDM_TRY(add_attention(build, prefix, layer, x, addend));
    TDM_TRY(add_norm(build, prefix, "mlp.norm", *addend, *stream, stream, &x));
    return add_mlp(build, prefix, x, addend);
}

static tdm_status add_layers(const encoder_build *build, tdm_value x, tdm_value *hidden)
{
    bool is_pre = build->options->norm == TDM_NORM_PRE;
    tdm_value addend = TDM_NO_VALUE;
    for (int64_t i = 0; i < build->options->layers; i++) {
        char *prefix;
        TDM_TRY(tdm_plan_begin_recompute(build->plan));
        TDM_TRY(tdm_format(&prefix, "layer.%lld", (long long)i));
        tdm_status status = is_pre ? add_pre_layer(build, prefix, i, &x, &addend)
                                   : add_post_layer(build, prefix, i, &x);
        tdm_plan_end_recompute(build->plan);
        tdm_free(prefix);
        TDM_TRY(status);
    }
    *hidden = x;
    if (!is_pre)
        return TDM_OK;
    return tdm_norm_add(build->plan, "norm", &build->norm, &build->batch, addend, x, &x, hidden);
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* [predictions, hidden]: what the word table is multiplied with. */
static tdm_status add_transform(const encoder_build *build, tdm_value hidden, tdm_value *out)
{
    tdm_value rows, dense, sum;
    tdm_norm_options norm = build->norm;
    norm.dropout = 0;
    TDM_TRY(tdm_gather_add(build->plan, "masked.rows", build->batch.predictions,
                           build->batch.mask_positions, hidden, &rows));
    TDM_TRY(add_linear(build, "masked", "dense", rows, build->options->hidden, build->activation,
                       &dense));
    return tdm_norm_add(build->plan, "masked.norm", &norm, &build->batch, dense, TDM_NO_VALUE, &sum,
                        out);
}

/* [sequences, hidden] */
static tdm_status add_pooler(const encoder_build *build, tdm_value hidden, tdm_value *out)
{
    TDM_TRY(tdm_gather_add(build->plan, "first", build->batch.sequences, build->batch.first_tokens,
                           hidden, out));
    if (!build->options->pooler)
        return TDM_OK;
    tdm_linear_options options = build->linear;
    options.units = build->options->hidden;
    options.activation = TDM_ACTIVATION_TANH;
    options.bias = true;
    return tdm_linear_add(build->plan, "pooler", *out, &options, out);
}

static tdm_status add_masked(const encoder_build *build, tdm_value hidden)
{
    tdm_value transformed, pooled, logits;
    TDM_TRY(add_transform(build, hidden, &transformed));
    TDM_TRY(tdm_masked_loss_add(build->plan, &build->batch, build->word, build->inputs->vocabulary,
                                transformed));
    if (build->batch.pair_labels < 0)
        return TDM_OK;
    tdm_linear_options options = build->linear;
    options.units = 2;
    options.bias = true;
    TDM_TRY(add_pooler(build, hidden, &pooled));
    TDM_TRY(tdm_linear_add(build->plan, "pair", pooled, &options, &logits));
    return tdm_softmax_loss_add(build->plan, "pair_loss", logits, build->batch.pair_labels, false,
                                1);
}

static tdm_status add_fill(const encoder_build *build, tdm_value hidden)
{
    tdm_value transformed;
    TDM_TRY(add_transform(build, hidden, &transformed));
    return tdm_masked_logits_add(build->plan, &build->batch, build->word, build->inputs->vocabulary,
                                 transformed);
}

static tdm_status add_classifier(const encoder_build *build, tdm_value x, tdm_value *logits)
{
    tdm_linear_options options = build->linear;
    options.units = build->inputs->classes;
    options.bias = true;
    TDM_TRY(tdm_linear_add(build->plan, "classifier", x, &options, logits));
    tdm_plan_output(build->plan, "logits", *logits);
    return TDM_OK;
}

static tdm_status add_sequence_head(const encoder_build *build, tdm_value hidden)
{
    tdm_value x, logits;
    TDM_TRY(add_pooler(build, hidden, &x));
    TDM_TRY(tdm_drop_add(build->plan, "pooled", &build->batch, build->options->dropout, x, &x));
    TDM_TRY(add_classifier(build, x, &logits));
    switch (build->inputs->head) {
    case TDM_HEAD_LABELS:
        return tdm_bce_loss_add(build->plan, "loss", logits, "labels", false);
    case TDM_HEAD_REGRESSION:
        return tdm_squared_loss_add(build->plan, "loss", logits, build->batch.labels, 0);
    default:
        return tdm_softmax_loss_add(build->plan, "loss", logits, build->batch.labels, true, 0);
    }
}

static tdm_status add_token_head(const encoder_build *build, tdm_value hidden)
{
    tdm_value x, logits;
    TDM_TRY(
        tdm_drop_add(build->plan, "hidden", &build->batch, build->options->dropout, hidden, &x));
    TDM_TRY(add_classifier(build, x, &logits));
    return tdm_softmax_loss_add(build->plan, "loss", logits, build->batch.labels, false, 0);
}

static tdm_status add_head(const encoder_build *build, tdm_value hidden)
{
    switch (build->inputs->head) {
    case TDM_HEAD_MASKED:
        return add_masked(build, hidden);
    case TDM_HEAD_FILL:
        return add_fill(build, hidden);
    case TDM_HEAD_CLASSES:
    case TDM_HEAD_LABELS:
    case TDM_HEAD_REGRESSION:
        return add_sequence_head(build, hidden);
    case TDM_HEAD_TOKEN_CLASSES:
        return add_token_head(build, hidden);
    case TDM_HEAD_NONE:
        break;
    }
    tdm_plan_output(build->plan, "hidden", hidden);
    return TDM_OK;
}

/* ---- the model ------------------------------------------------------------------------------- */

static tdm_status check(const tdm_bert_options *options, const tdm_model_inputs *inputs)
{
    long long hidden = options->hidden, heads = options->heads;
    TDM_FAIL_IF(hidden % heads != 0, TDM_E_CONFIG,
                "model.hidden: %lld is not a multiple of model.heads, %lld", hidden, heads);
    TDM_FAIL_IF(options->positions == TDM_POSITION_ROTARY && hidden / heads % 2 != 0, TDM_E_CONFIG,
                "model.positions: rotary needs an even count of columns a head, and hidden / heads "
                "is %lld",
                hidden / heads);
    bool too_long = options->max_positions > 0 && inputs->max_length > options->max_positions;
    TDM_FAIL_IF(options->positions == TDM_POSITION_LEARNED && too_long, TDM_E_CONFIG,
                "text.max_length: %lld is more than model.max_positions, %lld",
                (long long)inputs->max_length, (long long)options->max_positions);
    return TDM_OK;
}

static tdm_status build(const void *bound, const tdm_model_inputs *inputs, tdm_plan *plan)
{
    const tdm_bert_options *options = bound;
    encoder_build build = {
        .plan = plan,
        .options = options,
        .inputs = inputs,
        .linear = {.bias = options->bias, .initializer = options->initializer},
        .norm = {.bias = options->bias,
                 .eps = (float)options->norm_eps,
                 .dropout = options->dropout},
        .activation = options->activation == TDM_ENCODER_GELU ? TDM_ACTIVATION_GELU
                                                              : TDM_ACTIVATION_GELU_TANH,
        .intermediate = options->intermediate > 0 ? options->intermediate : 4 * options->hidden,
    };
    tdm_value x, hidden;
    TDM_TRY(check(options, inputs));
    TDM_TRY(tdm_encoder_batch_find(plan, inputs, &build.batch));
    TDM_TRY(tdm_token_embedding_add(plan, options, inputs, &build.batch, &build.word, &x));
    TDM_TRY(add_layers(&build, x, &hidden));
    return add_head(&build, hidden);
}

const tdm_model_type tdm_bert = {
    .name = "bert",
    .help = "an encoder: BERT, and as settings of it pre-LayerNorm, rotary positions, GeGLU and "
            "local attention",
    .schema = &tdm_bert_schema,
    .build = build,
};

const tdm_model_type *const tdm_text_models[] = {
    &tdm_bert,
    NULL,
};
