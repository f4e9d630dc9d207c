#include "interchange/export_parts.h"

/* ---- the encoder ----------------------------------------------------------------------------- */

static tdm_status refused(const char *setting, const char *with)
{
    return tdm_fail(TDM_E_UNSUPPORTED, "no class of Transformers has %s with %s", setting, with);
}

static tdm_status check_bert(const tdm_bert_options *options)
{
    bool is_pre = options->norm == TDM_NORM_PRE;
    const char *with = is_pre ? "model.norm: pre and model.positions: learned" : "model.norm: post";
    if (options->positions == TDM_POSITION_ROTARY)
        return refused("model.positions: rotary", with);
    if (is_pre && options->embedding_norm)
        return refused("model.embedding_norm: true", with);
    if (options->gated)
        return refused("model.gated: true", with);
    if (!options->bias)
        return refused("model.bias: false", with);
    if (options->local_window > 0 && options->global_every > 1)
        return refused("model.local_window", with);
    return TDM_OK;
}

static tdm_status check_modern(const tdm_bert_options *options)
{
    static const char with[] = "model.norm: pre and model.positions: rotary";
    if (!options->embedding_norm)
        return refused("model.embedding_norm: false", with);
    if (!options->gated)
        return refused("model.gated: false", with);
    if (options->types)
        return refused("model.types: true", with);
    return TDM_OK;
}

/* ---- the head -------------------------------------------------------------------------------- */

static tdm_status find_masked(const tdm_export *from, tdm_export_class *out)
{
    bool has_pairs = tdm_safetensors_find(from->parameters, "pair.weight") >= 0;
    out->has[TDM_GROUP_MASKED] = true;
    out->head = has_pairs ? "ForPreTraining" : "ForMaskedLM";
    out->has[TDM_GROUP_PAIRS] = has_pairs;
    out->has[TDM_GROUP_POOLER] = has_pairs;
    if (has_pairs && out->family == TDM_FAMILY_MODERN_BERT)
        return refused("a head of text.pairs", "model.positions: rotary");
    if (has_pairs && !from->options->pooler)
        return refused("model.pooler: false", "text.pairs");
    return TDM_OK;
}

static tdm_status find_classifier(const tdm_export *from, tdm_export_class *out)
{
    bool is_tokens = from->inputs->head == TDM_HEAD_TOKEN_CLASSES;
    out->head = is_tokens ? "ForTokenClassification" : "ForSequenceClassification";
    out->has[TDM_GROUP_CLASSIFIER] = true;
    out->has[TDM_GROUP_POOLER] = !is_tokens;
    TDM_FAIL_IF(out->family == TDM_FAMILY_MODERN_BERT, TDM_E_UNSUPPORTED,
                "ModernBert%s, the class of Transformers with model.positions: rotary, has a "
                "matrix, an activation and a norm before its classifier, and this model none",
                out->head);
    if (!is_tokens && !from->options->pooler)
        return refused("model.pooler: false", "a classifier of texts");
    return TDM_OK;
}

tdm_status tdm_export_class_find(const tdm_export *from, tdm_export_class *out)
{
    const tdm_bert_options *options = from->options;
    bool is_modern = options->norm == TDM_NORM_PRE && options->positions == TDM_POSITION_ROTARY;
    *out = (tdm_export_class){.has = {[TDM_GROUP_ENCODER] = true}};
    if (is_modern)
        out->family = TDM_FAMILY_MODERN_BERT;
    else
        out->family = options->norm == TDM_NORM_PRE ? TDM_FAMILY_MEGATRON_BERT : TDM_FAMILY_BERT;
    TDM_TRY(is_modern ? check_modern(options) : check_bert(options));
    switch (from->inputs->head) {
    case TDM_HEAD_MASKED:
    case TDM_HEAD_FILL:
        return find_masked(from, out);
    case TDM_HEAD_NONE:
        out->head = "Model";
        out->has[TDM_GROUP_POOLER] =
            tdm_safetensors_find(from->parameters, "pooler.weight") >= 0 && !is_modern;
        return TDM_OK;
    default:
        return find_classifier(from, out);
    }
}

int64_t tdm_export_positions(const tdm_export *from)
{
    int64_t most = from->options->max_positions;
    return from->options->positions == TDM_POSITION_LEARNED && most > 0 ? most
                                                                        : from->inputs->max_length;
}
