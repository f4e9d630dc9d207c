#include "interchange/weight_names.h"

#include <stdio.h>
#include <string.h>

/* ---- the tables ------------------------------------------------------------------------------ */

typedef enum row_kind {
    ROW_EXACT = 0, /* a tensor */
    ROW_TABLE = 1, /* the weight of an embedding */
    ROW_DENSE = 2, /* weight and bias of a matrix */
    ROW_NORM = 3,  /* weight and bias of a LayerNorm */
} row_kind;

/* '#' stands for the layer; sizes are of our weight, and its bias has the first of them. */
typedef struct row {
    row_kind kind;
    tdm_weight_group group;
    const char *sizes;
    const char *ours, *theirs;
    int part, parts;
} row;

#define ROW(kind, group, sizes, ours, theirs)                                                      \
    {                                                                                              \
        ROW_##kind, TDM_GROUP_##group, sizes, ours, theirs, 0, 1                                   \
    }
#define THIRD(part, theirs)                                                                        \
    {                                                                                              \
        ROW_DENSE, TDM_GROUP_ENCODER, "QH", "layer.#.attention.qkv", theirs, part, 3               \
    }

/* BERT's, and with other norms MegatronBERT's. */
static const row bert_rows[] = {
    ROW(TABLE, ENCODER, "VH", "embeddings.word", "bert.embeddings.word_embeddings"),
    ROW(TABLE, ENCODER, "PH", "embeddings.position", "bert.embeddings.position_embeddings"),
    ROW(TABLE, ENCODER, "TH", "embeddings.type", "bert.embeddings.token_type_embeddings"),
    THIRD(0, "bert.encoder.layer.#.attention.self.query"),
    THIRD(1, "bert.encoder.layer.#.attention.self.key"),
    THIRD(2, "bert.encoder.layer.#.attention.self.value"),
    ROW(DENSE, ENCODER, "HH", "layer.#.attention.output",
        "bert.encoder.layer.#.attention.output.dense"),
    ROW(DENSE, ENCODER, "GH", "layer.#.mlp.input", "bert.encoder.layer.#.intermediate.dense"),
    ROW(DENSE, ENCODER, "HI", "layer.#.mlp.output", "bert.encoder.layer.#.output.dense"),
    ROW(DENSE, POOLER, "HH", "pooler", "bert.pooler.dense"),
    ROW(DENSE, MASKED, "HH", "masked.dense", "cls.predictions.transform.dense"),
    ROW(NORM, MASKED, "H", "masked.norm", "cls.predictions.transform.LayerNorm"),
    ROW(EXACT, MASKED, "V", "masked.bias", "cls.predictions.bias"),
    ROW(DENSE, PAIRS, "NH", "pair", "cls.seq_relationship"),
    ROW(DENSE, CLASSIFIER, "CH", "classifier", "classifier"),
};

static const row bert_norms[] = {
    ROW(NORM, ENCODER, "H", "embeddings.norm", "bert.embeddings.LayerNorm"),
    ROW(NORM, ENCODER, "H", "layer.#.attention.norm",
        "bert.encoder.layer.#.attention.output.LayerNorm"),
    ROW(NORM, ENCODER, "H", "layer.#.mlp.norm", "bert.encoder.layer.#.output.LayerNorm"),
};

static const row megatron_norms[] = {
    ROW(NORM, ENCODER, "H", "layer.#.attention.norm", "bert.encoder.layer.#.attention.ln"),
    ROW(NORM, ENCODER, "H", "layer.#.mlp.norm", "bert.encoder.layer.#.ln"),
    ROW(NORM, ENCODER, "H", "norm", "bert.encoder.ln"),
};

/* Its classifiers have a matrix, an activation and a norm before them, which ours lack. */
static const row modern_rows[] = {
    ROW(TABLE, ENCODER, "VH", "embeddings.word", "model.embeddings.tok_embeddings"),
    ROW(NORM, ENCODER, "H", "embeddings.norm", "model.embeddings.norm"),
    ROW(NORM, ENCODER, "H", "layer.#.attention.norm", "model.layers.#.attn_norm"),
    ROW(DENSE, ENCODER, "QH", "layer.#.attention.qkv", "model.layers.#.attn.Wqkv"),
    ROW(DENSE, ENCODER, "HH", "layer.#.attention.output", "model.layers.#.attn.Wo"),
    ROW(NORM, ENCODER, "H", "layer.#.mlp.norm", "model.layers.#.mlp_norm"),
    ROW(DENSE, ENCODER, "GH", "layer.#.mlp.input", "model.layers.#.mlp.Wi"),
    ROW(DENSE, ENCODER, "HI", "layer.#.mlp.output", "model.layers.#.mlp.Wo"),
    ROW(NORM, ENCODER, "H", "norm", "model.final_norm"),
    ROW(DENSE, MASKED, "HH", "masked.dense", "head.dense"),
    ROW(NORM, MASKED, "H", "masked.norm", "head.norm"),
    ROW(EXACT, MASKED, "V", "masked.bias", "decoder.bias"),
};

#define LAYER "bert/encoder/layer_#/"

static const row tensorflow_rows[] = {
    ROW(TABLE, ENCODER, "VH", "embeddings.word", "bert/embeddings/word_embeddings"),
    ROW(TABLE, ENCODER, "PH", "embeddings.position", "bert/embeddings/position_embeddings"),
    ROW(TABLE, ENCODER, "TH", "embeddings.type", "bert/embeddings/token_type_embeddings"),
    ROW(NORM, ENCODER, "H", "embeddings.norm", "bert/embeddings/LayerNorm"),
    THIRD(0, LAYER "attention/self/query"),
    THIRD(1, LAYER "attention/self/key"),
    THIRD(2, LAYER "attention/self/value"),
    ROW(DENSE, ENCODER, "HH", "layer.#.attention.output", LAYER "attention/output/dense"),
    ROW(NORM, ENCODER, "H", "layer.#.attention.norm", LAYER "attention/output/LayerNorm"),
    ROW(DENSE, ENCODER, "GH", "layer.#.mlp.input", LAYER "intermediate/dense"),
    ROW(DENSE, ENCODER, "HI", "layer.#.mlp.output", LAYER "output/dense"),
    ROW(NORM, ENCODER, "H", "layer.#.mlp.norm", LAYER "output/LayerNorm"),
    ROW(DENSE, POOLER, "HH", "pooler", "bert/pooler/dense"),
    ROW(DENSE, MASKED, "HH", "masked.dense", "cls/predictions/transform/dense"),
    ROW(NORM, MASKED, "H", "masked.norm", "cls/predictions/transform/LayerNorm"),
    ROW(EXACT, MASKED, "V", "masked.bias", "cls/predictions/output_bias"),
    ROW(EXACT, PAIRS, "NH", "pair.weight", "cls/seq_relationship/output_weights"),
    ROW(EXACT, PAIRS, "N", "pair.bias", "cls/seq_relationship/output_bias"),
    ROW(EXACT, CLASSIFIER, "CH", "classifier.weight", "output_weights"),
    ROW(EXACT, CLASSIFIER, "C", "classifier.bias", "output_bias"),
};

#define SAME(kind, group, sizes, name) ROW(kind, group, sizes, name, name)

static const row our_rows[] = {
    SAME(TABLE, ENCODER, "VH", "embeddings.word"),
    SAME(TABLE, ENCODER, "PH", "embeddings.position"),
    SAME(TABLE, ENCODER, "TH", "embeddings.type"),
    SAME(NORM, ENCODER, "H", "embeddings.norm"),
    SAME(NORM, ENCODER, "H", "layer.#.attention.norm"),
    SAME(DENSE, ENCODER, "QH", "layer.#.attention.qkv"),
    SAME(DENSE, ENCODER, "HH", "layer.#.attention.output"),
    SAME(NORM, ENCODER, "H", "layer.#.mlp.norm"),
    SAME(DENSE, ENCODER, "GH", "layer.#.mlp.input"),
    SAME(DENSE, ENCODER, "HI", "layer.#.mlp.output"),
    SAME(NORM, ENCODER, "H", "norm"),
    SAME(DENSE, POOLER, "HH", "pooler"),
    SAME(DENSE, MASKED, "HH", "masked.dense"),
    SAME(NORM, MASKED, "H", "masked.norm"),
    SAME(EXACT, MASKED, "V", "masked.bias"),
    SAME(DENSE, PAIRS, "NH", "pair"),
    SAME(DENSE, CLASSIFIER, "CH", "classifier"),
};

typedef struct row_list {
    const row *rows;
    int count;
} row_list;

#define LIST(table)                                                                                \
    {                                                                                              \
        table, (int)(sizeof(table) / sizeof((table)[0]))                                           \
    }

typedef struct naming {
    row_list lists[2];
    const char *prefix;
} naming;

static const naming namings[] = {
    [TDM_NAMING_BERT] = {{LIST(bert_rows), LIST(bert_norms)}, "bert."},
    [TDM_NAMING_MEGATRON_BERT] = {{LIST(bert_rows), LIST(megatron_norms)}, "bert."},
    [TDM_NAMING_MODERN_BERT] = {{LIST(modern_rows)}, "model."},
    [TDM_NAMING_TENSORFLOW] = {{LIST(tensorflow_rows)}, ""},
    [TDM_NAMING_OURS] = {{LIST(our_rows)}, ""},
};

/* ---- their tensors --------------------------------------------------------------------------- */

/* `pattern` with the layer in the place of '#', and `ending` behind it. */
static void expand(const char *pattern, int64_t layer, const char *ending,
                   char out[TDM_WEIGHT_NAME_BYTES])
{
    const char *mark = strchr(pattern, '#');
    if (mark == NULL)
        snprintf(out, TDM_WEIGHT_NAME_BYTES, "%s%s", pattern, ending);
    else
        snprintf(out, TDM_WEIGHT_NAME_BYTES, "%.*s%lld%s%s", (int)(mark - pattern), pattern,
                 (long long)layer, mark + 1, ending);
}

/* How the weight and the bias of a row end. */
static const char *ending_of(tdm_weight_naming names, row_kind kind, bool is_bias)
{
    bool is_tensorflow = names == TDM_NAMING_TENSORFLOW;
    switch (kind) {
    case ROW_EXACT:
        return "";
    case ROW_TABLE:
        return is_tensorflow ? "" : ".weight";
    case ROW_DENSE:
        if (is_tensorflow)
            return is_bias ? "/bias" : "/kernel";
        break;
    case ROW_NORM:
        if (is_tensorflow)
            return is_bias ? "/beta" : "/gamma";
        break;
    }
    return is_bias ? ".bias" : ".weight";
}

static tdm_weight weight_of(tdm_weight_naming names, const row *from, int64_t layer, bool is_bias)
{
    bool is_head = from->group == TDM_GROUP_POOLER || from->group == TDM_GROUP_PAIRS ||
                   from->group == TDM_GROUP_CLASSIFIER;
    tdm_weight weight = {
        .group = from->group,
        .part = from->part,
        .parts = from->parts,
        .transposed = names == TDM_NAMING_TENSORFLOW && from->kind == ROW_DENSE && !is_bias,
        .is_bias = is_bias && !is_head,
        .layer = strchr(from->ours, '#') == NULL ? -1 : layer,
        .rank = is_bias ? 1 : (int)strnlen(from->sizes, TDM_WEIGHT_RANK),
    };
    memcpy(weight.sizes, from->sizes, (size_t)weight.rank);
    const char *ours = from->kind == ROW_EXACT ? "" : is_bias ? ".bias" : ".weight";
    expand(from->ours, layer, ours, weight.ours);
    expand(from->theirs, layer, ending_of(names, from->kind, is_bias), weight.theirs);
    return weight;
}

static tdm_status each_of_row(tdm_weight_naming names, const row *from, int64_t layer,
                              tdm_status (*take)(void *context, const tdm_weight *weight),
                              void *context)
{
    tdm_weight weight = weight_of(names, from, layer, false);
    TDM_TRY(take(context, &weight));
    if (from->kind != ROW_DENSE && from->kind != ROW_NORM)
        return TDM_OK;
    weight = weight_of(names, from, layer, true);
    return take(context, &weight);
}

static tdm_status each_of_list(tdm_weight_naming names, const row_list *list, int64_t layers,
                               tdm_status (*take)(void *context, const tdm_weight *weight),
                               void *context)
{
    for (int i = 0; i < list->count; i++) {
        int64_t count = strchr(list->rows[i].ours, '#') == NULL ? 1 : layers;
        for (int64_t layer = 0; layer < count; layer++)
            TDM_TRY(each_of_row(names, &list->rows[i], layer, take, context));
    }
    return TDM_OK;
}

tdm_status tdm_weight_names_each(tdm_weight_naming names, int64_t layers,
                                 tdm_status (*take)(void *context, const tdm_weight *weight),
                                 void *context)
{
    TDM_TRY(each_of_list(names, &namings[names].lists[0], layers, take, context));
    return each_of_list(names, &namings[names].lists[1], layers, take, context);
}

const char *tdm_weight_prefix(tdm_weight_naming names)
{
    return namings[names].prefix;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

int64_t tdm_weight_size(char dimension, const tdm_bert_options *options,
                        const tdm_model_inputs *inputs, const char **key)
{
    int64_t intermediate = options->intermediate > 0 ? options->intermediate : 4 * options->hidden;
    switch (dimension) {
    case 'V':
        *key = "text.tokenizer";
        return inputs->vocabulary;
    case 'P':
        *key = "model.max_positions";
        return options->max_positions > 0 ? options->max_positions : inputs->max_length;
    case 'T':
        *key = "model.types";
        return 2;
    case 'N':
        *key = "text.pairs";
        return 2;
    case 'C':
        *key = "the number of classes";
        return inputs->classes;
    case 'I':
        *key = "model.intermediate";
        return intermediate;
    case 'G':
        *key = "model.intermediate and model.gated";
        return options->gated ? 2 * intermediate : intermediate;
    case 'Q':
        *key = "model.hidden";
        return 3 * options->hidden;
    default:
        *key = "model.hidden";
        return options->hidden;
    }
}

/* ---- tensors that say nothing ---------------------------------------------------------------- */

static bool has_ending(const char *text, const char *ending)
{
    size_t length = strlen(text), bytes = strlen(ending);
    return length >= bytes && strcmp(text + length - bytes, ending) == 0;
}

bool tdm_weight_is_redundant(tdm_weight_naming names, const char *name)
{
    static const char *const endings[] = {"embeddings.position_ids", "embeddings.token_type_ids",
                                          "decoder.weight", "decoder.bias"};
    static const char *const tensorflow_endings[] = {"/adam_m", "/adam_v", "global_step"};
    bool is_tensorflow = names == TDM_NAMING_TENSORFLOW;
    const char *const *list = is_tensorflow ? tensorflow_endings : endings;
    size_t count = is_tensorflow ? sizeof tensorflow_endings / sizeof tensorflow_endings[0]
                                 : sizeof endings / sizeof endings[0];
    for (size_t i = 0; i < count; i++) {
        if (has_ending(name, list[i]))
            return true;
    }
    return false;
}
