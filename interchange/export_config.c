#include "core/file.h"
#include "core/memory.h"
#include "interchange/export_parts.h"
#include "interchange/pretrained_config.h"
#include "text/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* jansson takes NULL for a value that could not be made and fails then itself; the end of all is
 * that a NULL comes out. */

tdm_status tdm_export_json(json_t *json, const char *folder, const char *name)
{
    char *text = json == NULL ? NULL : json_dumps(json, JSON_INDENT(2));
    char *path = NULL;
    json_decref(json);
    TDM_FAIL_IF(text == NULL, TDM_E_NOMEM, "out of memory for %s, or a name that is not UTF-8",
                name);
    tdm_status status = tdm_path_join(folder, name, &path);
    if (status == TDM_OK)
        status = tdm_file_put(path, text, strlen(text), NULL);
    tdm_free(path);
    free(text);
    return status;
}

/* The id of a special token, or null. */
static json_t *special_id(const tdm_tokenizer *tokenizer, tdm_special special)
{
    int64_t id = tokenizer->specials[special];
    return id < 0 ? json_null() : json_integer(id);
}

static json_t *common_json(const tdm_export *from, const char *class_name)
{
    const tdm_bert_options *options = from->options;
    int64_t intermediate = options->intermediate > 0 ? options->intermediate : 4 * options->hidden;
    return json_pack("{s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:b}", "architectures",
                     class_name, "vocab_size", (json_int_t)from->inputs->vocabulary, "hidden_size",
                     (json_int_t)options->hidden, "num_hidden_layers", (json_int_t)options->layers,
                     "num_attention_heads", (json_int_t)options->heads, "intermediate_size",
                     (json_int_t)intermediate, "max_position_embeddings",
                     (json_int_t)tdm_export_positions(from), "initializer_range",
                     options->initializer, "pad_token_id",
                     special_id(from->tokenizer, TDM_SPECIAL_PAD), "tie_word_embeddings", 1);
}

static json_t *bert_json(const tdm_bert_options *options)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:I, s:s}", "hidden_act",
                     tdm_hidden_act_name(options->activation), "hidden_dropout_prob",
                     options->dropout, "attention_probs_dropout_prob",
                     tdm_bert_attention_dropout(options), "layer_norm_eps", options->norm_eps,
                     "type_vocab_size", (json_int_t)2, "position_embedding_type", "absolute");
}

static json_t *modern_json(const tdm_export *from)
{
    const tdm_bert_options *options = from->options;
    const tdm_tokenizer *tokenizer = from->tokenizer;
    const char *activation = tdm_hidden_act_name(options->activation);
    bool is_local = options->local_window > 0 && options->global_every > 1;
    json_t *json =
        json_pack("{s:s, s:s, s:f, s:b, s:b, s:b, s:b, s:b}", "hidden_activation", activation,
                  "classifier_activation", activation, "norm_eps", options->norm_eps, "norm_bias",
                  options->bias, "attention_bias", options->bias, "mlp_bias", options->bias,
                  "classifier_bias", options->bias, "decoder_bias", 1);
    json_t *more = json_pack(
        "{s:f, s:f, s:f, s:I, s:I, s:f, s:f}", "embedding_dropout", options->dropout, "mlp_dropout",
        options->dropout, "attention_dropout", tdm_bert_attention_dropout(options),
        "local_attention", (json_int_t)(is_local ? 2 * options->local_window : 128),
        "global_attn_every_n_layers", (json_int_t)(is_local ? options->global_every : 1),
        "global_rope_theta", options->rotary_theta, "local_rope_theta",
        is_local ? options->local_rotary_theta : options->rotary_theta);
    json_t *ids =
        json_pack("{s:o, s:o, s:o, s:o}", "cls_token_id", special_id(tokenizer, TDM_SPECIAL_CLS),
                  "sep_token_id", special_id(tokenizer, TDM_SPECIAL_SEP), "bos_token_id",
                  special_id(tokenizer, TDM_SPECIAL_CLS), "eos_token_id",
                  special_id(tokenizer, TDM_SPECIAL_SEP));
    bool is_whole = json_object_update(json, more) == 0 && json_object_update(json, ids) == 0;
    json_decref(more);
    json_decref(ids);
    if (is_whole)
        return json;
    json_decref(json);
    return NULL;
}

/* id2label, label2id and problem_type. */
static json_t *classes_json(const tdm_export *from)
{
    static const char *const problems[] = {
        [TDM_HEAD_CLASSES] = "single_label_classification",
        [TDM_HEAD_LABELS] = "multi_label_classification",
        [TDM_HEAD_REGRESSION] = "regression",
        [TDM_HEAD_TOKEN_CLASSES] = NULL,
    };
    json_t *names = json_object(), *ids = json_object();
    for (int64_t i = 0; i < from->inputs->classes; i++) {
        char id[24], fallback[32];
        snprintf(id, sizeof id, "%lld", (long long)i);
        snprintf(fallback, sizeof fallback, "LABEL_%s", id);
        const char *name = from->class_names != NULL ? from->class_names[i] : fallback;
        if (json_object_set_new(names, id, json_string(name)) != 0 ||
            json_object_set_new(ids, name, json_integer(i)) != 0) {
            json_decref(names);
            json_decref(ids);
            return NULL;
        }
    }
    json_t *json = json_pack("{s:o, s:o}", "id2label", names, "label2id", ids);
    const char *problem = problems[from->inputs->head];
    if (problem != NULL)
        json_object_set_new(json, "problem_type", json_string(problem));
    return json;
}

tdm_status tdm_export_config(const tdm_export *from, const tdm_export_class *is, const char *folder)
{
    static const char *const classes[] = {"Bert", "MegatronBert", "ModernBert"};
    char class_name[64];
    snprintf(class_name, sizeof class_name, "%s%s", classes[is->family], is->head);
    json_t *json = common_json(from, class_name);
    json_object_set_new(json, "model_type", json_string(tdm_encoder_family_name(is->family)));
    json_t *more =
        is->family == TDM_FAMILY_MODERN_BERT ? modern_json(from) : bert_json(from->options);
    json_t *labels = is->has[TDM_GROUP_CLASSIFIER] ? classes_json(from) : json_object();
    bool is_whole = json_object_update(json, more) == 0 && json_object_update(json, labels) == 0;
    json_decref(more);
    json_decref(labels);
    if (!is_whole) {
        json_decref(json);
        json = NULL;
    }
    return tdm_export_json(json, folder, "config.json");
}
