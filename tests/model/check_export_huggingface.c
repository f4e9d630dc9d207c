/* Folders for Transformers: the class that they are of, what stands in them, and what is refused.
 * That Transformers loads them is looked at by tests/golden/check_exports.py, which is given the
 * folder that TANDEM_EXPORTS names and this program fills. */
#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/pretrained_rig.h"
#include "tests/support/tokenizer_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TOKENS "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##a\n##b\n##c\nab\nbc\n##ab\n.\n"
enum { VOCABULARY = 15, LENGTH = 10 };

/* ---- shapes ---------------------------------------------------------------------------------- */

static tdm_bert_options bert(void)
{
    return (tdm_bert_options){.layers = 2,
                              .hidden = 12,
                              .heads = 3,
                              .intermediate = 20,
                              .dropout = 0.1,
                              .attention_dropout = -1,
                              .norm = TDM_NORM_POST,
                              .embedding_norm = true,
                              .norm_eps = 1e-12,
                              .rotary_theta = 10000,
                              .types = true,
                              .bias = true,
                              .global_every = 3,
                              .local_rotary_theta = 10000,
                              .pooler = true,
                              .initializer = 0.5};
}

static tdm_bert_options megatron(void)
{
    tdm_bert_options options = bert();
    options.norm = TDM_NORM_PRE;
    options.embedding_norm = false;
    options.activation = TDM_ENCODER_GELU_TANH;
    options.attention_dropout = 0.3;
    options.max_positions = 16;
    return options;
}

static tdm_bert_options modern(void)
{
    tdm_bert_options options = bert();
    options.layers = 3;
    options.norm = TDM_NORM_PRE;
    options.norm_eps = 1e-5;
    options.positions = TDM_POSITION_ROTARY;
    options.types = options.bias = false;
    options.gated = true;
    options.local_window = 2;
    options.global_every = 2;
    return options;
}

static tdm_bert_options modern_with_biases(void)
{
    tdm_bert_options options = modern();
    options.bias = true;
    options.local_window = 0;
    options.intermediate = 0;
    options.activation = TDM_ENCODER_GELU_TANH;
    return options;
}

static tdm_bert_options bert_without_types(void)
{
    tdm_bert_options options = bert();
    options.types = false;
    return options;
}

static const char *const class_names[] = {"good", "bad", "caf\xc3\xa9"};

static const struct shape {
    const char *name;
    tdm_bert_options (*options)(void);
    tdm_text_head head;
    bool pairs;
    const char *architecture, *problem;
} shapes[] = {
    {"bert_masked", bert, TDM_HEAD_MASKED, false, "BertForMaskedLM", NULL},
    {"bert_pairs", bert, TDM_HEAD_MASKED, true, "BertForPreTraining", NULL},
    {"bert_no_types", bert_without_types, TDM_HEAD_MASKED, false, "BertForMaskedLM", NULL},
    {"bert_none", bert, TDM_HEAD_NONE, false, "BertModel", NULL},
    {"bert_classes", bert, TDM_HEAD_CLASSES, false, "BertForSequenceClassification",
     "single_label_classification"},
    {"bert_labels", bert, TDM_HEAD_LABELS, false, "BertForSequenceClassification",
     "multi_label_classification"},
    {"bert_regression", bert, TDM_HEAD_REGRESSION, false, "BertForSequenceClassification",
     "regression"},
    {"bert_tokens", bert, TDM_HEAD_TOKEN_CLASSES, false, "BertForTokenClassification", NULL},
    {"megatron_masked", megatron, TDM_HEAD_MASKED, false, "MegatronBertForMaskedLM", NULL},
    {"megatron_pairs", megatron, TDM_HEAD_MASKED, true, "MegatronBertForPreTraining", NULL},
    {"megatron_classes", megatron, TDM_HEAD_CLASSES, false, "MegatronBertForSequenceClassification",
     "single_label_classification"},
    {"megatron_tokens", megatron, TDM_HEAD_TOKEN_CLASSES, false,
     "MegatronBertForTokenClassification", NULL},
    {"modern_masked", modern, TDM_HEAD_MASKED, false, "ModernBertForMaskedLM", NULL},
    {"modern_biases", modern_with_biases, TDM_HEAD_MASKED, false, "ModernBertForMaskedLM", NULL},
    {"modern_none", modern, TDM_HEAD_NONE, false, "ModernBertModel", NULL},
};

/* ---- exports --------------------------------------------------------------------------------- */

typedef struct fixture {
    tdm_bert_options options;
    tdm_model_inputs inputs;
    tdm_encoder_rig rig;
    tdm_tokenizer *tokenizer;
    tdm_safetensors *parameters;
    tdm_export export;
} fixture;

static void open_fixture(fixture *it, tdm_bert_options options, tdm_text_head head, bool pairs)
{
    it->options = options;
    it->inputs = (tdm_model_inputs){.vocabulary = VOCABULARY,
                                    .max_length = LENGTH,
                                    .head = head,
                                    .classes = head == TDM_HEAD_REGRESSION ? 1 : 3};
    it->tokenizer = tdm_test_tokenizer(TOKENS, NULL);
    tdm_pretrained_rig_init(&it->rig, &it->options, &it->inputs, pairs, head == TDM_HEAD_NONE);
    it->parameters = tdm_pretrained_rig_save(&it->rig);
    it->export = (tdm_export){&it->options, &it->inputs, it->parameters, it->tokenizer, NULL};
}

static void close_fixture(fixture *it)
{
    tdm_safetensors_close(it->parameters);
    tdm_encoder_rig_deinit(&it->rig);
    tdm_tokenizer_close(it->tokenizer);
}

static json_t *read_json(const char *folder, const char *name)
{
    json_t *root;
    ck_assert_ok(tdm_json_file_get(tdm_test_path(folder, name), 1 << 20, &root));
    return root;
}

static const char *text_at(const json_t *root, const char *key)
{
    return json_string_value(json_object_get(root, key));
}

/* What is exported reads as the same model with the same weights. */
static void check_reads_back(const fixture *it, const struct shape *shape, const char *folder)
{
    tdm_pretrained from;
    tdm_pretrained_report report;
    tdm_encoder_rig rig;
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    tdm_bert_options options = it->options;
    options.types = options.types || options.positions == TDM_POSITION_LEARNED;
    ck_assert_ok(tdm_pretrained_config_check(&from.config, NULL, &options, LENGTH));
    tdm_pretrained_rig_init(&rig, &it->options, &it->inputs, shape->pairs,
                            shape->head == TDM_HEAD_NONE);
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, it->tokenizer, &report));
    ck_assert_int_eq(report.kept, 0);
    ck_assert_int_eq(report.unused, it->options.types != options.types);
    for (int i = 0; i < tdm_safetensors_count(it->parameters); i++) {
        const tdm_safetensors_tensor *tensor = tdm_safetensors_get(it->parameters, i);
        int64_t elements;
        float *expected = malloc((size_t)tensor->bytes);
        float *found = tdm_pretrained_rig_values(&rig, tensor->name, &elements);
        ck_assert_ok(tdm_safetensors_read(it->parameters, i, 0, expected, (size_t)tensor->bytes));
        ck_assert_int_eq(elements * 4, tensor->bytes);
        ck_assert_msg(memcmp(expected, found, (size_t)tensor->bytes) == 0, "%s differs",
                      tensor->name);
        free(expected);
        free(found);
    }
    tdm_encoder_rig_deinit(&rig);
    tdm_pretrained_close(&from);
}

START_TEST(test_every_class)
{
    const char *base = getenv("TANDEM_EXPORTS");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct shape *shape = &shapes[i];
        fixture it;
        char folder[512];
        snprintf(folder, sizeof folder, "%s/%s", base != NULL ? base : tdm_test_folder(),
                 shape->name);
        open_fixture(&it, shape->options(), shape->head, shape->pairs);
        if (shape->head == TDM_HEAD_CLASSES)
            it.export.class_names = class_names;
        ck_assert_ok(tdm_export_huggingface(&it.export, folder, base != NULL));
        json_t *config = read_json(folder, "config.json");
        ck_assert_str_eq(
            json_string_value(json_array_get(json_object_get(config, "architectures"), 0)),
            shape->architecture);
        const char *problem = text_at(config, "problem_type");
        ck_assert(shape->problem == NULL ? problem == NULL : strcmp(problem, shape->problem) == 0);
        json_decref(config);
        check_reads_back(&it, shape, folder);
        close_fixture(&it);
    }
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_config)
{
    fixture it;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/out", tdm_test_folder());
    open_fixture(&it, megatron(), TDM_HEAD_CLASSES, false);
    it.export.class_names = class_names;
    ck_assert_ok(tdm_export_huggingface(&it.export, folder, false));
    json_t *config = read_json(folder, "config.json");
    ck_assert_str_eq(text_at(config, "model_type"), "megatron-bert");
    ck_assert_str_eq(text_at(config, "hidden_act"), "gelu_pytorch_tanh");
    ck_assert_double_eq(json_number_value(json_object_get(config, "hidden_dropout_prob")), 0.1);
    ck_assert_double_eq(json_number_value(json_object_get(config, "attention_probs_dropout_prob")),
                        0.3);
    ck_assert_int_eq(json_integer_value(json_object_get(config, "max_position_embeddings")), 16);
    ck_assert_int_eq(json_integer_value(json_object_get(config, "pad_token_id")), 0);
    ck_assert_str_eq(text_at(json_object_get(config, "id2label"), "2"), "caf\xc3\xa9");
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_object_get(config, "label2id"), "bad")), 1);
    json_decref(config);
    tdm_safetensors *weights;
    ck_assert_ok(tdm_safetensors_open(tdm_test_path(folder, "model.safetensors"), &weights));
    ck_assert_str_eq(tdm_safetensors_metadata(weights, "format"), "pt");
    tdm_safetensors_close(weights);
    close_fixture(&it);
}
END_TEST

/* ---- tokenizers ------------------------------------------------------------------------------ */

START_TEST(test_tokenizer)
{
    fixture it;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/out", tdm_test_folder());
    open_fixture(&it, bert(), TDM_HEAD_MASKED, false);
    ck_assert_ok(tdm_export_huggingface(&it.export, folder, false));
    json_t *config = read_json(folder, "tokenizer_config.json");
    ck_assert_str_eq(text_at(config, "tokenizer_class"), "BertTokenizer");
    ck_assert(json_is_true(json_object_get(config, "do_lower_case")));
    ck_assert(json_is_null(json_object_get(config, "strip_accents")));
    ck_assert_int_eq(json_integer_value(json_object_get(config, "model_max_length")), LENGTH);
    ck_assert_int_eq((int)json_array_size(json_object_get(config, "model_input_names")), 3);
    ck_assert_str_eq(text_at(config, "mask_token"), "[MASK]");
    json_decref(config);
    json_t *specials = read_json(folder, "special_tokens_map.json");
    ck_assert_int_eq((int)json_object_size(specials), 5);
    ck_assert_str_eq(text_at(specials, "pad_token"), "[PAD]");
    json_decref(specials);
    char *text;
    size_t bytes;
    ck_assert_ok(tdm_file_get(tdm_test_path(folder, "vocab.txt"), 1 << 16, &text, &bytes));
    ck_assert_str_eq(text, TOKENS);
    tdm_free(text);
    tdm_tokenizer *tokenizer;
    ck_assert_ok(tdm_tokenizer_open(tdm_test_path(folder, "tokenizer.json"), NULL, &tokenizer));
    ck_assert_int_eq(tdm_tokenizer_size(tokenizer), VOCABULARY);
    tdm_tokenizer_close(tokenizer);
    close_fixture(&it);
}
END_TEST

/* What BertTokenizer cannot be told is left to tokenizer.json. */
START_TEST(test_tokenizer_of_another_kind)
{
    fixture it;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/out", tdm_test_folder());
    open_fixture(&it, modern(), TDM_HEAD_MASKED, false);
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    settings.form = TDM_FORM_NFC;
    settings.lowercase = false;
    settings.strip_accents = 1;
    tdm_tokenizer *tokenizer = tdm_test_tokenizer(TOKENS, &settings);
    it.export.tokenizer = tokenizer;
    ck_assert_ok(tdm_export_huggingface(&it.export, folder, false));
    json_t *config = read_json(folder, "tokenizer_config.json");
    ck_assert_str_eq(text_at(config, "tokenizer_class"), "PreTrainedTokenizerFast");
    ck_assert(json_is_false(json_object_get(config, "do_lower_case")));
    ck_assert(json_is_true(json_object_get(config, "strip_accents")));
    ck_assert_int_eq((int)json_array_size(json_object_get(config, "model_input_names")), 2);
    json_decref(config);
    tdm_tokenizer_close(tokenizer);
    tokenizer = tdm_test_tokenizer("[UNK]\na\n", NULL);
    it.export.tokenizer = tokenizer;
    ck_assert_fails(tdm_export_huggingface(&it.export, folder, true), TDM_E_ARG,
                    "the tokenizer has 2 tokens, the model 15");
    tdm_tokenizer_close(tokenizer);
    close_fixture(&it);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

static void check_refused(tdm_bert_options options, tdm_text_head head, bool pairs,
                          const char *message)
{
    fixture it;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/out", tdm_test_folder());
    open_fixture(&it, options, head, pairs);
    ck_assert_fails(tdm_export_huggingface(&it.export, folder, false), TDM_E_UNSUPPORTED, message);
    ck_assert(!tdm_file_exists(folder));
    close_fixture(&it);
}

START_TEST(test_no_class_holds_it)
{
    tdm_bert_options options = bert();
    options.positions = TDM_POSITION_ROTARY;
    check_refused(options, TDM_HEAD_MASKED, false,
                  "no class of Transformers has model.positions: rotary with model.norm: post");
    options = bert();
    options.gated = true;
    check_refused(options, TDM_HEAD_MASKED, false, "model.gated: true with model.norm: post");
    options = bert();
    options.bias = false;
    check_refused(options, TDM_HEAD_MASKED, false, "model.bias: false with");
    options = bert();
    options.local_window = 2;
    check_refused(options, TDM_HEAD_MASKED, false, "model.local_window with");
    options = megatron();
    options.embedding_norm = true;
    check_refused(options, TDM_HEAD_MASKED, false,
                  "model.embedding_norm: true with model.norm: pre and model.positions: learned");
    options = modern();
    options.embedding_norm = false;
    check_refused(options, TDM_HEAD_MASKED, false, "model.embedding_norm: false with");
    options = modern();
    options.gated = false;
    check_refused(options, TDM_HEAD_MASKED, false,
                  "model.gated: false with model.norm: pre and model.positions: rotary");
    options = modern();
    options.types = true;
    check_refused(options, TDM_HEAD_MASKED, false, "model.types: true with");
    options = bert();
    options.pooler = false;
    check_refused(options, TDM_HEAD_CLASSES, false,
                  "model.pooler: false with a classifier of texts");
    check_refused(options, TDM_HEAD_MASKED, true, "model.pooler: false with text.pairs");
    check_refused(modern(), TDM_HEAD_MASKED, true, "a head of text.pairs with");
    check_refused(modern(), TDM_HEAD_CLASSES, false, "ModernBertForSequenceClassification");
    check_refused(modern(), TDM_HEAD_TOKEN_CLASSES, false, "ModernBertForTokenClassification");
}
END_TEST

START_TEST(test_parameters_that_do_not_fit)
{
    fixture it;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/out", tdm_test_folder());
    open_fixture(&it, bert(), TDM_HEAD_MASKED, false);
    it.options.layers = 3;
    ck_assert_fails(tdm_export_huggingface(&it.export, folder, false), TDM_E_FORMAT,
                    "the checkpoint has no tensor \"layer.2.attention.qkv.weight\"");
    it.options.layers = 2;
    it.options.intermediate = 21;
    ck_assert_fails(tdm_export_huggingface(&it.export, folder, false), TDM_E_FORMAT,
                    "\"layer.0.mlp.input.weight\" has 20 in dimension 0, and model.intermediate");
    it.options.intermediate = 20;
    it.inputs.head = TDM_HEAD_CLASSES;
    ck_assert_fails(tdm_export_huggingface(&it.export, folder, false), TDM_E_FORMAT,
                    "the checkpoint has no tensor \"pooler.weight\"");
    ck_assert(!tdm_file_exists(folder));
    strcat(folder, ".tmp");
    ck_assert(!tdm_file_exists(folder));
    close_fixture(&it);
}
END_TEST

/* ---- the place ------------------------------------------------------------------------------- */

START_TEST(test_folders_that_are_there)
{
    fixture it;
    char base[256], folder[512], file[600];
    snprintf(base, sizeof base, "%s", tdm_test_folder());
    snprintf(folder, sizeof folder, "%s/out", base);
    open_fixture(&it, bert(), TDM_HEAD_MASKED, false);
    ck_assert_ok(tdm_folder_create(folder)); /* empty */
    ck_assert_ok(tdm_export_huggingface(&it.export, folder, false));
    ck_assert_fails(tdm_export_huggingface(&it.export, folder, false), TDM_E_ARG,
                    "out is there already: --force overwrites it");
    it.options.dropout = 0.4;
    ck_assert_ok(tdm_export_huggingface(&it.export, folder, true));
    json_t *config = read_json(folder, "config.json");
    ck_assert_double_eq(json_number_value(json_object_get(config, "hidden_dropout_prob")), 0.4);
    json_decref(config);
    snprintf(file, sizeof file, "%s/notes.txt", folder);
    ck_assert_ok(tdm_file_put(file, "x", 1, NULL));
    ck_assert_fails(tdm_export_huggingface(&it.export, folder, true), TDM_E_ARG,
                    "holds notes.txt, which is no file of an export");
    ck_assert(tdm_file_exists(file));
    ck_assert_fails(tdm_export_huggingface(&it.export, file, true), TDM_E_ARG,
                    "cannot become a folder");
    snprintf(folder, sizeof folder, "%s/new/deep/", base);
    ck_assert_ok(tdm_export_huggingface(&it.export, folder, false));
    close_fixture(&it);
}
END_TEST

/* FOLDER.tmp and FOLDER.replaced are used, but not where they are somebody's own. */
START_TEST(test_folders_beside_it)
{
    static const char *const endings[] = {".tmp", ".replaced"};
    fixture it;
    char folder[256], beside[300], file[400];
    snprintf(folder, sizeof folder, "%s/out", tdm_test_folder());
    open_fixture(&it, bert(), TDM_HEAD_MASKED, false);
    ck_assert_ok(tdm_export_huggingface(&it.export, folder, false));
    for (size_t i = 0; i < 2; i++) {
        snprintf(beside, sizeof beside, "%s%s", folder, endings[i]);
        ck_assert_ok(tdm_folder_create(beside));
        snprintf(file, sizeof file, "%s/model.safetensors.tmp", beside);
        ck_assert_ok(tdm_file_put(file, "x", 1, NULL)); /* of an export that was ended */
        ck_assert_ok(tdm_export_huggingface(&it.export, folder, true));
        ck_assert(!tdm_file_exists(beside));
        ck_assert_ok(tdm_folder_create(beside));
        snprintf(file, sizeof file, "%s/notes.txt", beside);
        ck_assert_ok(tdm_file_put(file, "x", 1, NULL));
        ck_assert_fails(tdm_export_huggingface(&it.export, folder, true), TDM_E_ARG,
                        "holds notes.txt, which is no file of an export");
        ck_assert(tdm_file_exists(file));
        ck_assert_ok(tdm_folder_remove(beside));
    }
    close_fixture(&it);
}
END_TEST

/* Writing fails at every call once: there is the old folder then or the new one, as a whole. */
static int calls_left;

static int fail_once(const char *call, const char *path)
{
    (void)call;
    (void)path;
    return --calls_left == 0 ? ENOSPC : 0;
}

static bool is_whole(const char *folder)
{
    static const char *const names[] = {
        "config.json",    "model.safetensors",     "vocab.txt",
        "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!tdm_file_exists(tdm_test_path(folder, names[i])))
            return false;
    }
    return true;
}

START_TEST(test_writing_fails)
{
    fixture it;
    char folder[512], temporary[600];
    snprintf(folder, sizeof folder, "%s/out", tdm_test_folder());
    snprintf(temporary, sizeof temporary, "%s.tmp", folder);
    open_fixture(&it, bert(), TDM_HEAD_MASKED, false);
    tdm_status status = TDM_E_IO;
    int calls = 1;
    for (; status == TDM_E_IO; calls++) {
        calls_left = calls;
        tdm_file_set_test_hook(fail_once);
        status = tdm_export_huggingface(&it.export, folder, false);
        tdm_file_set_test_hook(NULL);
        ck_assert_msg(!tdm_file_exists(temporary), "call %d", calls);
        ck_assert_msg(tdm_file_exists(folder) ? is_whole(folder) : status != TDM_OK, "call %d",
                      calls);
        if (status != TDM_OK)
            ck_assert_ok(tdm_folder_remove(folder));
    }
    ck_assert_int_eq(status, TDM_OK);
    ck_assert_int_gt(calls, 20);
    close_fixture(&it);
}
END_TEST

START_TEST(test_replacing_fails)
{
    fixture it;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/out", tdm_test_folder());
    open_fixture(&it, bert(), TDM_HEAD_MASKED, false);
    ck_assert_ok(tdm_export_huggingface(&it.export, folder, false));
    tdm_status status = TDM_E_IO;
    for (int calls = 1; status == TDM_E_IO; calls++) {
        calls_left = calls;
        tdm_file_set_test_hook(fail_once);
        status = tdm_export_huggingface(&it.export, folder, true);
        tdm_file_set_test_hook(NULL);
        ck_assert_msg(is_whole(folder), "call %d", calls);
    }
    ck_assert_int_eq(status, TDM_OK);
    close_fixture(&it);
}
END_TEST

START_TEST(test_out_of_memory)
{
    fixture it;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/out", tdm_test_folder());
    open_fixture(&it, modern(), TDM_HEAD_MASKED, false);
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status == TDM_E_NOMEM; n++) {
        tdm_memory_fail_at(n, false);
        status = tdm_export_huggingface(&it.export, folder, false);
        tdm_memory_fail_at(0, false);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
        ck_assert(!tdm_file_exists(folder) || is_whole(folder));
        ck_assert_ok(tdm_folder_remove(folder));
    }
    ck_assert_int_eq(status, TDM_OK);
    close_fixture(&it);
}
END_TEST

TDM_CHECK_MAIN(test_every_class, test_config, test_tokenizer, test_tokenizer_of_another_kind,
               test_no_class_holds_it, test_parameters_that_do_not_fit, test_folders_that_are_there,
               test_folders_beside_it, test_writing_fails, test_replacing_fails, test_out_of_memory)
