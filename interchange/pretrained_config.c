#include "interchange/pretrained_config.h"

#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

#define CONFIG_LIMIT ((size_t)16 << 20)
#define MOST_THETA   1e12

static const char *const family_names[] = {"bert", "megatron-bert", "modernbert", NULL};

const char *tdm_encoder_family_name(tdm_encoder_family family)
{
    return family_names[family];
}

const char *tdm_hidden_act_name(int activation)
{
    return activation == TDM_ENCODER_GELU ? "gelu" : "gelu_pytorch_tanh";
}

/* Bounds of values are those of the keys of model.type bert (models/bert_options.c). */

/* ---- values ---------------------------------------------------------------------------------- */

/* A file while it is read. */
typedef struct reading {
    const char *path;
    const json_t *root;
} reading;

/* The value of a key; NULL where there is none or a null. */
static const json_t *get(const reading *from, const char *key)
{
    const json_t *value = json_object_get(from->root, key);
    return json_is_null(value) ? NULL : value;
}

static tdm_status read_size(const reading *from, const char *key, int64_t least, int64_t most,
                            int64_t *out)
{
    const json_t *value = get(from, key);
    TDM_FAIL_IF(value == NULL, TDM_E_FORMAT, "%s: has no %s", from->path, key);
    TDM_FAIL_IF(!json_is_integer(value) || json_integer_value(value) < least ||
                    json_integer_value(value) > most,
                TDM_E_FORMAT, "%s: %s is no integer from %lld to %lld", from->path, key,
                (long long)least, (long long)most);
    *out = json_integer_value(value);
    return TDM_OK;
}

static tdm_status read_number(const reading *from, const char *key, double fallback, double least,
                              double most, double *out)
{
    const json_t *value = get(from, key);
    *out = value == NULL ? fallback : json_number_value(value);
    TDM_FAIL_IF((value != NULL && !json_is_number(value)) || !(*out >= least) || *out > most,
                TDM_E_FORMAT, "%s: %s is no number from %g to %g", from->path, key, least, most);
    return TDM_OK;
}

static tdm_status read_bool(const reading *from, const char *key, bool fallback, bool *out)
{
    const json_t *value = get(from, key);
    *out = value == NULL ? fallback : json_is_true(value);
    TDM_FAIL_IF(value != NULL && !json_is_boolean(value), TDM_E_FORMAT,
                "%s: %s is neither true nor false", from->path, key);
    return TDM_OK;
}

/* TDM_E_UNSUPPORTED: "path: key is <value>: <why>". */
static tdm_status refuse(const reading *from, const char *key, const char *why)
{
    char shown[128];
    const json_t *value = json_object_get(from->root, key);
    char *text = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    tdm_printable(value == NULL ? "not given" : text == NULL ? "?" : text, shown, sizeof shown);
    free(text);
    return tdm_fail(TDM_E_UNSUPPORTED, "%s: %s is %s: %s", from->path, key, shown, why);
}

static tdm_status read_activation(const reading *from, const char *key, int *out)
{
    /* Names of one function each, in Transformers. */
    static const char *const exact[] = {"gelu", "gelu_python", NULL};
    static const char *const tanhs[] = {"gelu_new",      "gelu_pytorch_tanh", "gelu_python_tanh",
                                        "gelu_accurate", "gelu_fast",         NULL};
    const json_t *value = get(from, key);
    const char *name = value == NULL ? "gelu" : json_string_value(value);
    TDM_FAIL_IF(name == NULL, TDM_E_FORMAT, "%s: %s is no name", from->path, key);
    if (tdm_name_find(exact, name) >= 0)
        *out = TDM_ENCODER_GELU;
    else if (tdm_name_find(tanhs, name) >= 0)
        *out = TDM_ENCODER_GELU_TANH;
    else
        return refuse(from, key, "model.activation has gelu and gelu_tanh only");
    return TDM_OK;
}

/* ---- what no option of ours holds ------------------------------------------------------------ */

static tdm_status require_false(const reading *from, const char *key, const char *why)
{
    bool value;
    TDM_TRY(read_bool(from, key, false, &value));
    return value ? refuse(from, key, why) : TDM_OK;
}

static tdm_status check_common(const reading *from, const tdm_bert_options *options)
{
    TDM_TRY(require_false(from, "is_decoder", "an encoder is wanted"));
    TDM_TRY(require_false(from, "add_cross_attention", "an encoder is wanted"));
    const json_t *pruned = get(from, "pruned_heads");
    if (json_object_size(pruned) > 0)
        return refuse(from, "pruned_heads", "all layers have all heads here");
    if (get(from, "quantization_config") != NULL)
        return refuse(from, "quantization_config", "weights must be plain numbers");
    TDM_FAIL_IF(options->hidden % options->heads != 0, TDM_E_UNSUPPORTED,
                "%s: hidden_size %lld is not a multiple of num_attention_heads %lld", from->path,
                (long long)options->hidden, (long long)options->heads);
    const json_t *head_dim = get(from, "head_dim");
    if (head_dim != NULL && json_integer_value(head_dim) != options->hidden / options->heads)
        return refuse(from, "head_dim",
                      "heads have hidden_size / num_attention_heads columns here");
    return TDM_OK;
}

static tdm_status check_bert(const reading *from, const tdm_bert_options *options)
{
    const json_t *positions = get(from, "position_embedding_type");
    const char *name = json_string_value(positions);
    if (positions != NULL && (name == NULL || strcmp(name, "absolute") != 0))
        return refuse(from, "position_embedding_type",
                      "model.positions has an embedding a position (absolute) and rotary only");
    const json_t *embedding = get(from, "embedding_size");
    if (embedding != NULL && json_integer_value(embedding) != options->hidden)
        return refuse(from, "embedding_size", "embeddings are as wide as hidden_size here");
    return TDM_OK;
}

/* ---- BERT and MegatronBERT ------------------------------------------------------------------- */

static tdm_status read_common(const reading *from, tdm_pretrained_config *out)
{
    tdm_bert_options *options = &out->options;
    TDM_TRY(read_size(from, "num_hidden_layers", 1, 1024, &options->layers));
    TDM_TRY(read_size(from, "hidden_size", 1, 65536, &options->hidden));
    TDM_TRY(read_size(from, "num_attention_heads", 1, 1024, &options->heads));
    TDM_TRY(read_size(from, "intermediate_size", 1, 1 << 20, &options->intermediate));
    TDM_TRY(read_size(from, "vocab_size", 1, INT32_MAX, &out->vocabulary));
    TDM_TRY(read_number(from, "initializer_range", 0.02, 1e-6, 1, &options->initializer));
    TDM_TRY(read_bool(from, "tie_word_embeddings", true, &out->tied));
    return check_common(from, options);
}

static tdm_status read_bert(const reading *from, tdm_pretrained_config *out)
{
    tdm_bert_options *options = &out->options;
    int64_t types;
    TDM_TRY(read_size(from, "max_position_embeddings", 1, 1 << 20, &options->max_positions));
    TDM_TRY(read_size(from, "type_vocab_size", 1, 65536, &types));
    if (types != 2)
        return refuse(from, "type_vocab_size", "there are two segments here");
    TDM_TRY(read_number(from, "hidden_dropout_prob", 0.1, 0, 0.99, &options->dropout));
    TDM_TRY(read_number(from, "attention_probs_dropout_prob", 0.1, 0, 0.99,
                        &options->attention_dropout));
    TDM_TRY(read_number(from, "layer_norm_eps", 1e-12, 0, 1, &options->norm_eps));
    TDM_TRY(read_activation(from, "hidden_act", &options->activation));
    options->positions = TDM_POSITION_LEARNED;
    options->types = true;
    options->bias = true;
    options->norm = out->family == TDM_FAMILY_BERT ? TDM_NORM_POST : TDM_NORM_PRE;
    options->embedding_norm = out->family == TDM_FAMILY_BERT;
    return check_bert(from, options);
}

/* ---- ModernBERT ------------------------------------------------------------------------------ */

/* Which layers see all tokens. Files have layer_types, or before that global_attn_every_n_layers.
 */
static tdm_status read_layer_types(const reading *from, tdm_bert_options *options)
{
    const json_t *types = get(from, "layer_types");
    options->global_every = 3;
    if (types == NULL)
        return get(from, "global_attn_every_n_layers") == NULL
                   ? TDM_OK
                   : read_size(from, "global_attn_every_n_layers", 1, 1024, &options->global_every);
    bool is_good = json_array_size(types) == (size_t)options->layers;
    int64_t second = options->layers;
    for (int64_t i = options->layers - 1; i > 0; i--) {
        const char *name = json_string_value(json_array_get(types, (size_t)i));
        if (name != NULL && strcmp(name, "full_attention") == 0)
            second = i;
    }
    for (int64_t i = 0; i < options->layers; i++) {
        const char *name = json_string_value(json_array_get(types, (size_t)i));
        const char *expected = i % second == 0 ? "full_attention" : "sliding_attention";
        is_good = is_good && name != NULL && strcmp(name, expected) == 0;
    }
    options->global_every = second;
    return is_good ? TDM_OK
                   : refuse(from, "layer_types",
                            "layers 0, n, 2 n, ... see all tokens here, the others are local");
}

/* The base of the rotary positions of one kind of layer: rope_parameters, or before that a key of
 * its own. */
static tdm_status read_theta(const reading *from, const char *kind, const char *key,
                             double fallback, double *out)
{
    const json_t *all = get(from, "rope_parameters");
    const json_t *parameters = json_object_get(all, kind);
    const json_t *theta = json_object_get(parameters, "rope_theta");
    const char *type = json_string_value(json_object_get(parameters, "rope_type"));
    if (type != NULL && strcmp(type, "default") != 0)
        return refuse(from, "rope_parameters", "rotary positions are not scaled here");
    if (theta == NULL)
        return read_number(from, key, fallback, 1, MOST_THETA, out);
    *out = json_number_value(theta);
    TDM_FAIL_IF(!json_is_number(theta) || !(*out >= 1) || *out > MOST_THETA, TDM_E_FORMAT,
                "%s: rope_theta of %s is no number from 1 to %g", from->path, kind, MOST_THETA);
    return TDM_OK;
}

static tdm_status read_biases(const reading *from, bool *out)
{
    static const char *const keys[] = {"mlp_bias", "norm_bias", "classifier_bias"};
    TDM_TRY(read_bool(from, "attention_bias", false, out));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bool value;
        TDM_TRY(read_bool(from, keys[i], false, &value));
        if (value != *out)
            return refuse(from, keys[i],
                          "attention, MLPs, norms and head all have biases (model.bias) or none");
    }
    return TDM_OK;
}

static tdm_status read_modern(const reading *from, tdm_pretrained_config *out)
{
    tdm_bert_options *options = &out->options;
    int head_activation;
    int64_t window = 128;
    if (get(from, "local_attention") != NULL)
        TDM_TRY(read_size(from, "local_attention", 2, 1 << 20, &window));
    TDM_TRY(read_layer_types(from, options));
    options->local_window = options->global_every == 1 ? 0 : window / 2;
    if (get(from, "rope_scaling") != NULL)
        return refuse(from, "rope_scaling", "rotary positions are not scaled here");
    TDM_TRY(
        read_theta(from, "full_attention", "global_rope_theta", 160000, &options->rotary_theta));
    TDM_TRY(read_theta(from, "sliding_attention", "local_rope_theta", 10000,
                       &options->local_rotary_theta));
    TDM_TRY(read_biases(from, &options->bias));
    TDM_TRY(read_number(from, "mlp_dropout", 0, 0, 0.99, &options->dropout));
    TDM_TRY(read_number(from, "attention_dropout", 0, 0, 0.99, &options->attention_dropout));
    TDM_TRY(read_number(from, "norm_eps", 1e-5, 0, 1, &options->norm_eps));
    TDM_TRY(read_activation(from, "hidden_activation", &options->activation));
    TDM_TRY(read_activation(from, "classifier_activation", &head_activation));
    if (head_activation != options->activation)
        return refuse(from, "classifier_activation",
                      "the head has the activation of the MLPs here");
    options->positions = TDM_POSITION_ROTARY;
    options->norm = TDM_NORM_PRE;
    options->embedding_norm = true;
    options->gated = true;
    return TDM_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Files of before 2020 have no model_type, but the names of classes. */
static tdm_status read_family(const reading *from, bool is_google, tdm_encoder_family *out)
{
    static const char *const classes[] = {"Bert", "MegatronBert", "ModernBert"};
    const json_t *type = get(from, "model_type");
    const char *name = json_string_value(type);
    if (type != NULL) {
        int family = name == NULL ? -1 : tdm_name_find(family_names, name);
        if (family < 0)
            return refuse(from, "model_type",
                          "models of type bert, megatron-bert and modernbert can be read");
        *out = (tdm_encoder_family)family;
        return TDM_OK;
    }
    *out = TDM_FAMILY_BERT;
    const char *architecture =
        json_string_value(json_array_get(json_object_get(from->root, "architectures"), 0));
    if (architecture == NULL && is_google)
        return TDM_OK;
    TDM_FAIL_IF(architecture == NULL, TDM_E_FORMAT, "%s: has no model_type", from->path);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (strncmp(architecture, classes[i], strlen(classes[i])) == 0) {
            *out = (tdm_encoder_family)i;
            return TDM_OK;
        }
    }
    return refuse(from, "architectures", "BERT, MegatronBERT and ModernBERT can be read");
}

static tdm_status read_file(const char *path, bool is_google, tdm_pretrained_config *out)
{
    json_t *root;
    TDM_TRY(tdm_json_file_get(path, CONFIG_LIMIT, &root));
    const reading from = {.path = path, .root = root};
    tdm_status status;
    TDM_TRY_GOTO(read_family(&from, is_google, &out->family), done);
    TDM_TRY_GOTO(read_common(&from, out), done);
    status =
        out->family == TDM_FAMILY_MODERN_BERT ? read_modern(&from, out) : read_bert(&from, out);
done:
    json_decref(root);
    return status;
}

tdm_status tdm_pretrained_config_read(const char *folder, tdm_pretrained_config *out)
{
    *out = (tdm_pretrained_config){
        .options = {
            .global_every = 3, .rotary_theta = 10000, .local_rotary_theta = 10000, .pooler = true}};
    char *google = NULL;
    tdm_status status;
    TDM_TRY(tdm_path_join(folder, "config.json", &out->path));
    TDM_TRY_GOTO(tdm_path_join(folder, "bert_config.json", &google), fail);
    bool is_google = !tdm_file_exists(out->path);
    if (is_google) {
        char *missing = out->path;
        out->path = google;
        google = missing;
    }
    if (!tdm_file_exists(out->path)) {
        status = tdm_fail(TDM_E_DATA,
                          "%s: has neither config.json nor bert_config.json, which say what model "
                          "it holds",
                          folder);
        goto fail;
    }
    TDM_TRY_GOTO(read_file(out->path, is_google, out), fail);
    tdm_free(google);
    return TDM_OK;
fail:
    tdm_free(google);
    tdm_pretrained_config_free(out);
    return status;
}

void tdm_pretrained_config_free(tdm_pretrained_config *config)
{
    tdm_free(config->path);
    *config = (tdm_pretrained_config){0};
}
