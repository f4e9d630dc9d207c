#include "core/file.h"
#include "core/memory.h"
#include "interchange/pretrained_config.h"
#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>

#define SIZES                                                                                      \
    "\"vocab_size\": 30, \"hidden_size\": 16, \"num_hidden_layers\": 4, "                          \
    "\"num_attention_heads\": 2, \"intermediate_size\": 24"
#define BERT                                                                                       \
    "{\"model_type\": \"bert\", " SIZES ", \"max_position_embeddings\": 12, \"type_vocab_size\": " \
    "2"
#define MODERN "{\"model_type\": \"modernbert\", " SIZES

static tdm_status read_text(const char *name, const char *text, tdm_pretrained_config *config)
{
    const char *folder = tdm_test_folder();
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, name), text, strlen(text), NULL));
    return tdm_pretrained_config_read(folder, config);
}

/* The options of a config.json. */
static tdm_bert_options options_of(const char *text)
{
    tdm_pretrained_config config;
    ck_assert_ok(read_text("config.json", text, &config));
    tdm_bert_options options = config.options;
    tdm_pretrained_config_free(&config);
    return options;
}

static void check_refused(const char *text, tdm_status status, const char *message)
{
    tdm_pretrained_config config;
    ck_assert_fails(read_text("config.json", text, &config), status, message);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}

START_TEST(test_bert)
{
    tdm_pretrained_config config;
    ck_assert_ok(read_text("config.json",
                           BERT ", \"hidden_act\": \"gelu_new\", \"hidden_dropout_prob\": 0.2, "
                                "\"attention_probs_dropout_prob\": 0, \"layer_norm_eps\": 1e-5, "
                                "\"initializer_range\": 0.05, \"position_embedding_type\": "
                                "\"absolute\", \"embedding_size\": 16, \"pruned_heads\": {}}",
                           &config));
    const tdm_bert_options *options = &config.options;
    ck_assert_int_eq(config.family, TDM_FAMILY_BERT);
    ck_assert_int_eq(config.vocabulary, 30);
    ck_assert(config.tied);
    ck_assert_int_eq(options->layers, 4);
    ck_assert_int_eq(options->hidden, 16);
    ck_assert_int_eq(options->heads, 2);
    ck_assert_int_eq(options->intermediate, 24);
    ck_assert_int_eq(options->max_positions, 12);
    ck_assert_int_eq(options->activation, TDM_ENCODER_GELU_TANH);
    ck_assert_int_eq(options->norm, TDM_NORM_POST);
    ck_assert_int_eq(options->positions, TDM_POSITION_LEARNED);
    ck_assert(options->types && options->bias && !options->gated);
    ck_assert_double_eq(options->dropout, 0.2);
    ck_assert_double_eq(options->attention_dropout, 0);
    ck_assert_double_eq(options->norm_eps, 1e-5);
    ck_assert_double_eq(options->initializer, 0.05);
    tdm_pretrained_config_free(&config);
}
END_TEST

START_TEST(test_defaults_of_bert)
{
    tdm_bert_options options = options_of(BERT ", \"hidden_act\": null}");
    ck_assert_int_eq(options.activation, TDM_ENCODER_GELU);
    ck_assert_double_eq(options.dropout, 0.1);
    ck_assert_double_eq(options.norm_eps, 1e-12);
    ck_assert_double_eq(options.initializer, 0.02);
}
END_TEST

START_TEST(test_whose_model)
{
    tdm_pretrained_config config;
    static const char untyped[] = "{" SIZES ", \"max_position_embeddings\": 12, "
                                  "\"type_vocab_size\": 2%s}";
    char text[512];
    snprintf(text, sizeof text, untyped, ", \"architectures\": [\"MegatronBertForMaskedLM\"]");
    tdm_bert_options options = options_of(text);
    ck_assert_int_eq(options.norm, TDM_NORM_PRE);
    ck_assert(!options.embedding_norm);
    snprintf(text, sizeof text, untyped, ", \"architectures\": [\"BertForMaskedLM\"]");
    ck_assert_int_eq(options_of(text).norm, TDM_NORM_POST);
    snprintf(text, sizeof text, untyped, "");
    check_refused(text, TDM_E_FORMAT, "has no model_type");
    ck_assert_ok(read_text("bert_config.json", text, &config)); /* Google's */
    ck_assert_int_eq(config.family, TDM_FAMILY_BERT);
    tdm_pretrained_config_free(&config);
    snprintf(text, sizeof text, untyped, ", \"architectures\": [\"GPT2LMHeadModel\"]");
    check_refused(text, TDM_E_UNSUPPORTED, "architectures is [\"GPT2LMHeadModel\"]");
    check_refused("{\"model_type\": \"roberta\"}", TDM_E_UNSUPPORTED,
                  "model_type is \"roberta\": models of type bert, megatron-bert and modernbert");
    check_refused("{\"model_type\": 7}", TDM_E_UNSUPPORTED, "model_type is 7");
    ck_assert_fails(tdm_pretrained_config_read(tdm_test_folder(), &config), TDM_E_DATA,
                    "has neither config.json nor bert_config.json");
}
END_TEST

START_TEST(test_modern)
{
    tdm_bert_options options =
        options_of(MODERN ", \"local_attention\": 6, \"layer_types\": [\"full_attention\", "
                          "\"sliding_attention\", \"full_attention\", \"sliding_attention\"], "
                          "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\", "
                          "\"rope_theta\": 5000}, \"sliding_attention\": {\"rope_theta\": 70}}, "
                          "\"mlp_dropout\": 0.3, \"attention_dropout\": 0.1, \"norm_eps\": 1e-6, "
                          "\"norm_bias\": true, \"attention_bias\": true, \"mlp_bias\": true, "
                          "\"classifier_bias\": true}");
    ck_assert_int_eq(options.norm, TDM_NORM_PRE);
    ck_assert(options.embedding_norm && options.gated && options.bias && !options.types);
    ck_assert_int_eq(options.positions, TDM_POSITION_ROTARY);
    ck_assert_int_eq(options.local_window, 3);
    ck_assert_int_eq(options.global_every, 2);
    ck_assert_double_eq(options.rotary_theta, 5000);
    ck_assert_double_eq(options.local_rotary_theta, 70);
    ck_assert_double_eq(options.dropout, 0.3);
    ck_assert_double_eq(options.attention_dropout, 0.1);
    ck_assert_double_eq(options.norm_eps, 1e-6);
    /* As files had it before layer_types. */
    options = options_of(MODERN ", \"global_attn_every_n_layers\": 1, \"global_rope_theta\": 9}");
    ck_assert_int_eq(options.local_window, 0);
    ck_assert_double_eq(options.rotary_theta, 9);
    options = options_of(MODERN "}");
    ck_assert_int_eq(options.local_window, 64);
    ck_assert_int_eq(options.global_every, 3);
    ck_assert_double_eq(options.rotary_theta, 160000);
    ck_assert_double_eq(options.local_rotary_theta, 10000);
    ck_assert_double_eq(options.norm_eps, 1e-5);
    ck_assert(!options.bias);
    options = options_of(MODERN ", \"layer_types\": [\"full_attention\", \"sliding_attention\", "
                                "\"sliding_attention\", \"sliding_attention\"]}");
    ck_assert_int_eq(options.global_every, 4);
}
END_TEST

START_TEST(test_what_no_option_holds)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {BERT ", \"position_embedding_type\": \"relative_key\"}",
         "position_embedding_type is \"relative_key\""},
        {BERT ", \"position_embedding_type\": \"alibi\"}", "position_embedding_type is \"alibi\""},
        {BERT ", \"embedding_size\": 8}", "embedding_size is 8"},
        {BERT ", \"hidden_act\": \"relu\"}", "hidden_act is \"relu\""},
        {BERT ", \"is_decoder\": true}", "is_decoder is true"},
        {BERT ", \"add_cross_attention\": true}", "add_cross_attention is true"},
        {BERT ", \"pruned_heads\": {\"1\": [0]}}", "pruned_heads is {\"1\":[0]}"},
        {BERT ", \"quantization_config\": {\"bits\": 8}}", "quantization_config is"},
        {BERT ", \"head_dim\": 4}", "head_dim is 4"},
        {"{\"model_type\": \"bert\", " SIZES
         ", \"max_position_embeddings\": 12, \"type_vocab_size\": 1}",
         "type_vocab_size is 1: there are two segments"},
        {MODERN ", \"mlp_bias\": true}", "mlp_bias is true"},
        {MODERN ", \"attention_bias\": true}", "mlp_bias is not given"},
        {MODERN ", \"hidden_activation\": \"silu\"}", "hidden_activation is \"silu\""},
        {MODERN ", \"classifier_activation\": \"gelu_new\"}", "classifier_activation is"},
        {MODERN ", \"rope_scaling\": {\"type\": \"linear\"}}", "rope_scaling is"},
        {MODERN ", \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\"}}}",
         "rope_parameters is"},
        {MODERN ", \"layer_types\": [\"full_attention\", \"sliding_attention\", "
                "\"full_attention\", \"full_attention\"]}",
         "layer_types is"},
        {MODERN ", \"layer_types\": [\"sliding_attention\", \"sliding_attention\", "
                "\"sliding_attention\", \"sliding_attention\"]}",
         "layer_types is"},
        {MODERN ", \"layer_types\": [\"full_attention\"]}", "layer_types is"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_refused(cases[i].text, TDM_E_UNSUPPORTED, cases[i].message);
}
END_TEST

/* A value is shown as far as there is room for it. */
START_TEST(test_long_values)
{
    char text[512], long_name[301];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", long_name);
    check_refused(text, TDM_E_UNSUPPORTED, "model_type is \"xxxxxxxxxxxxxxxx");
}
END_TEST

START_TEST(test_damage)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"model_type\": \"bert\"", "damaged"},
        {"[]", "has no model_type"},
        {"{\"model_type\": \"bert\"}", "has no num_hidden_layers"},
        {"{\"model_type\": \"bert\", \"num_hidden_layers\": 0}",
         "num_hidden_layers is no integer from 1 to 1024"},
        {"{\"model_type\": \"bert\", \"num_hidden_layers\": \"2\"}", "num_hidden_layers"},
        {BERT ", \"hidden_dropout_prob\": 1.5}", "hidden_dropout_prob is no number"},
        {BERT ", \"layer_norm_eps\": \"x\"}", "layer_norm_eps is no number"},
        {BERT ", \"hidden_act\": 3}", "hidden_act is no name"},
        {BERT ", \"is_decoder\": 1}", "is_decoder is neither true nor false"},
        {BERT ", \"initializer_range\": 0}", "initializer_range is no number from 1e-06 to 1"},
        {MODERN ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 0.5}}}",
         "rope_theta of full_attention"},
        {MODERN ", \"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": 1e13}}}",
         "rope_theta of sliding_attention is no number from 1 to 1e+12"},
        {MODERN ", \"global_rope_theta\": 0}", "global_rope_theta is no number from 1 to 1e+12"},
        {MODERN ", \"global_attn_every_n_layers\": 1025}",
         "global_attn_every_n_layers is no integer from 1 to 1024"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_refused(cases[i].text, TDM_E_FORMAT, cases[i].message);
    check_refused("{\"model_type\": \"bert\", \"vocab_size\": 30, \"hidden_size\": 16, "
                  "\"num_hidden_layers\": 4, \"num_attention_heads\": 3, \"intermediate_size\": 8, "
                  "\"max_position_embeddings\": 12, \"type_vocab_size\": 2}",
                  TDM_E_UNSUPPORTED, "hidden_size 16 is not a multiple of num_attention_heads 3");
}
END_TEST

/* ---- beside a recipe ------------------------------------------------------------------------- */

/* The section of a recipe with these lines, bound. */
typedef struct recipe {
    tdm_config *config;
    const tdm_config_node *model;
    tdm_bert_options options;
} recipe;

static recipe bind(const char *text)
{
    recipe out;
    ck_assert_ok(tdm_config_parse(text, strlen(text), "recipe.yaml", NULL, 0, &out.config));
    out.model = tdm_config_get(tdm_config_root(out.config), "model");
    ck_assert_ok(tdm_config_bind(out.model, &tdm_bert_schema, &out.options));
    return out;
}

static void unbind(recipe *from)
{
    tdm_config_unbind(&tdm_bert_schema, &from->options);
    tdm_config_free(from->config);
}

START_TEST(test_fill)
{
    tdm_pretrained_config config;
    ck_assert_ok(read_text("config.json", MODERN ", \"mlp_dropout\": 0.25}", &config));
    recipe given = bind("model:\n  hidden: 20\n  dropout: 0.4\n  pooler: false\n");
    tdm_pretrained_config_fill(&config, given.model, &given.options);
    ck_assert_int_eq(given.options.hidden, 20);
    ck_assert_double_eq(given.options.dropout, 0.4);
    ck_assert(!given.options.pooler);
    ck_assert_int_eq(given.options.layers, 4);
    ck_assert_int_eq(given.options.norm, TDM_NORM_PRE);
    ck_assert_int_eq(given.options.local_window, 64);
    ck_assert(given.options.gated && !given.options.bias);
    tdm_pretrained_config_fill(&config, NULL, &given.options);
    ck_assert_int_eq(given.options.hidden, 16);
    ck_assert_double_eq(given.options.dropout, 0.25);
    unbind(&given);
    tdm_pretrained_config_free(&config);
}
END_TEST

START_TEST(test_check)
{
    tdm_pretrained_config config;
    ck_assert_ok(read_text("config.json", BERT "}", &config));
    recipe other = bind("model:\n  hidden: 32\n  heads: 2\n  norm: pre\n  gated: true\n");
    tdm_status status = tdm_pretrained_config_check(&config, other.model, &other.options, 12);
    ck_assert_int_eq(status, TDM_E_CONFIG);
    const char *message = tdm_error_message();
    ck_assert_ptr_nonnull(strstr(message, "recipe.yaml:2: model: "));
    ck_assert_ptr_nonnull(strstr(message, "/config.json is of another model: "));
    ck_assert_ptr_nonnull(strstr(message, "model.layers is 12 here and 4 there"));
    ck_assert_ptr_nonnull(strstr(message, "model.hidden is 32 here and 16 there"));
    ck_assert_ptr_nonnull(strstr(message, "model.intermediate is 128 here and 24 there"));
    ck_assert_ptr_nonnull(strstr(message, "model.norm is pre here and post there"));
    ck_assert_ptr_nonnull(strstr(message, "model.gated is true here and false there"));
    ck_assert_ptr_null(strstr(message, "model.heads"));
    ck_assert_ptr_null(strstr(message, "model.max_positions"));
    unbind(&other);
    /* What does not change the function of the weights may differ, and what has no effect. */
    recipe same = bind("model: {layers: 4, hidden: 16, heads: 2, intermediate: 24, dropout: 0.5, "
                       "attention_dropout: 0.2, initializer: 0.3, pooler: false, "
                       "embedding_norm: false, rotary_theta: 5, global_every: 9}");
    ck_assert_ok(tdm_pretrained_config_check(&config, same.model, &same.options, 12));
    ck_assert_fails(tdm_pretrained_config_check(&config, NULL, &same.options, 11), TDM_E_CONFIG,
                    "model.max_positions is 11 here and 12 there");
    same.options.norm_eps = 1e-5;
    ck_assert_fails(tdm_pretrained_config_check(&config, NULL, &same.options, 12), TDM_E_CONFIG,
                    "model.norm_eps is 1e-05 here and 1e-12 there");
    unbind(&same);
    tdm_pretrained_config_free(&config);
}
END_TEST

START_TEST(test_check_of_local_attention)
{
    tdm_pretrained_config config;
    ck_assert_ok(read_text("config.json", MODERN ", \"global_attn_every_n_layers\": 4}", &config));
    tdm_bert_options options = config.options;
    options.global_every = 7; /* of 4 layers the first is global then too */
    options.max_positions = 99;
    ck_assert_ok(tdm_pretrained_config_check(&config, NULL, &options, 12));
    options.global_every = 2;
    ck_assert_fails(tdm_pretrained_config_check(&config, NULL, &options, 12), TDM_E_CONFIG,
                    "model.global_every is 2 here and 4 there");
    options.global_every = 4;
    options.local_rotary_theta = 11000;
    ck_assert_fails(tdm_pretrained_config_check(&config, NULL, &options, 12), TDM_E_CONFIG,
                    "model.local_rotary_theta is 11000 here and 10000 there");
    tdm_pretrained_config_free(&config);
    ck_assert_ok(read_text("config.json", MODERN ", \"global_attn_every_n_layers\": 1}", &config));
    options = config.options;
    options.local_rotary_theta = 11000;
    options.global_every = 3;
    ck_assert_ok(tdm_pretrained_config_check(&config, NULL, &options, 12));
    options.local_window = 5;
    ck_assert_fails(tdm_pretrained_config_check(&config, NULL, &options, 12), TDM_E_CONFIG,
                    "model.local_window is 5 here and 0 there");
    tdm_pretrained_config_free(&config);
}
END_TEST

TDM_CHECK_MAIN(test_bert, test_defaults_of_bert, test_whose_model, test_modern,
               test_what_no_option_holds, test_long_values, test_damage, test_fill, test_check,
               test_check_of_local_attention)
