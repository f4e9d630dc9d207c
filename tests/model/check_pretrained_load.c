/* What becomes of a checkpoint's tensors: by token, under other names, of other types, and what is
 * refused before a parameter is touched. */
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/pretrained_rig.h"
#include "tests/support/tokenizer_rig.h"

#include <stdio.h>
#include <string.h>

enum { HIDDEN = 16, OLD_TOKENS = 26 };

static const char *golden_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, TDM_SOURCE_DIR "/tests/golden/interchange/%s", name);
    return path;
}

/* ---- notices --------------------------------------------------------------------------------- */

static char notices[8192];

static void keep_notice(void *context, tdm_log_level level, const char *message)
{
    (void)context;
    size_t used = strlen(notices);
    snprintf(notices + used, sizeof notices - used, "%s%s\n",
             level == TDM_LOG_WARNING ? "warning: " : "", message);
}

static void listen_to_notices(void)
{
    notices[0] = '\0';
    tdm_log_set_sink(keep_notice, NULL);
}

static void check_notice(const char *text)
{
    ck_assert_msg(strstr(notices, text) != NULL, "\"%s\" is not in \"%s\"", text, notices);
}

/* ---- folders that are changed ---------------------------------------------------------------- */

/* A tensor on its way into another folder; false leaves it out. */
typedef bool (*change)(char name[128], tdm_safetensors_source *source);

static tdm_status keep_all(const char *folder, const char *name)
{
    char *data, from[600];
    size_t bytes;
    snprintf(from, sizeof from, "%s", tdm_test_path(golden_folder("bert_masked"), name));
    TDM_TRY(tdm_file_get(from, 1 << 20, &data, &bytes));
    tdm_status status = tdm_file_put(tdm_test_path(folder, name), data, bytes, NULL);
    tdm_free(data);
    return status;
}

#define MAX_TENSORS 64

/* A new folder with a golden folder's config and vocabulary, and its tensors changed; `further` may be one
 * more. */
static const char *changed_folder(const char *golden, change how,
                                  const tdm_safetensors_source *further)
{
    static char folder[512];
    static char names[MAX_TENSORS][128];
    static float data[MAX_TENSORS][1024];
    tdm_safetensors *file;
    tdm_safetensors_source sources[MAX_TENSORS + 1];
    int count = 0;
    snprintf(folder, sizeof folder, "%s", tdm_test_folder());
    ck_assert_ok(keep_all(folder, "config.json"));
    ck_assert_ok(keep_all(folder, "vocab.txt"));
    ck_assert_ok(
        tdm_safetensors_open(tdm_test_path(golden_folder(golden), "model.safetensors"), &file));
    for (int i = 0; i < tdm_safetensors_count(file); i++) {
        const tdm_safetensors_tensor *tensor = tdm_safetensors_get(file, i);
        ck_assert_int_le(tensor->bytes, (int64_t)sizeof data[0]);
        ck_assert_ok(tdm_safetensors_read(file, i, 0, data[count], (size_t)tensor->bytes));
        snprintf(names[count], sizeof names[count], "%s", tensor->name);
        sources[count] = (tdm_safetensors_source){.name = names[count],
                                                  .dtype = tensor->dtype,
                                                  .shape = tensor->shape,
                                                  .data = data[count]};
        if (how == NULL || how(names[count], &sources[count]))
            count++;
    }
    tdm_safetensors_close(file);
    if (further != NULL)
        sources[count++] = *further;
    ck_assert_ok(tdm_safetensors_write(tdm_test_path(folder, "model.safetensors"), sources, count,
                                       NULL, 0, NULL, NULL));
    return folder;
}

static void open_changed(const char *golden, change how, tdm_pretrained *from)
{
    ck_assert_ok(tdm_pretrained_open(changed_folder(golden, how, NULL), NULL, from));
}

/* ---- models ---------------------------------------------------------------------------------- */

static void open_model(tdm_encoder_rig *rig, const tdm_pretrained *from, int64_t vocabulary,
                       tdm_text_head head, int64_t classes)
{
    const tdm_model_inputs inputs = {
        .vocabulary = vocabulary, .max_length = 12, .head = head, .classes = classes};
    tdm_pretrained_rig_init(rig, &from->config.options, &inputs, false, false);
}

/* The status of loading into a new model, whose parameters must be as they were where it fails. */
static tdm_status load(const tdm_pretrained *from, const tdm_tokenizer *tokenizer,
                       tdm_text_head head)
{
    tdm_encoder_rig rig;
    tdm_pretrained_report report;
    int64_t elements;
    open_model(&rig, from, tdm_tokenizer_size(tokenizer), head, 3);
    float *before = tdm_pretrained_rig_values(&rig, "embeddings.word.weight", &elements);
    tdm_status status = tdm_pretrained_rig_load(&rig, from, tokenizer, &report);
    float *after = tdm_pretrained_rig_values(&rig, "embeddings.word.weight", &elements);
    bool is_same = memcmp(before, after, (size_t)elements * sizeof *before) == 0;
    ck_assert_int_eq(is_same, status != TDM_OK);
    free(before);
    free(after);
    tdm_encoder_rig_deinit(&rig);
    return status;
}

/* Fails unless a model has the same values with both. */
static void same_values(const tdm_pretrained *a, const tdm_pretrained *b)
{
    tdm_encoder_rig rigs[2];
    const tdm_pretrained *from[] = {a, b};
    for (int i = 0; i < 2; i++) {
        tdm_pretrained_report report;
        open_model(&rigs[i], from[i], OLD_TOKENS, TDM_HEAD_MASKED, 0);
        ck_assert_ok(tdm_pretrained_rig_load(&rigs[i], from[i], from[i]->tokenizer, &report));
        ck_assert_int_eq(report.kept + report.unused, 0);
    }
    for (int i = 0; i < tdm_model_parameter_count(rigs[0].rig.model); i++) {
        const char *name = tdm_model_parameter(rigs[0].rig.model, i)->name;
        int64_t elements;
        float *x = tdm_pretrained_rig_values(&rigs[0], name, &elements);
        float *y = tdm_pretrained_rig_values(&rigs[1], name, &elements);
        ck_assert_msg(memcmp(x, y, (size_t)elements * sizeof *x) == 0, "%s differs", name);
        free(x);
        free(y);
    }
    tdm_encoder_rig_deinit(&rigs[0]);
    tdm_encoder_rig_deinit(&rigs[1]);
}

/* ---- rows of tokens -------------------------------------------------------------------------- */

/* The mean of rows of the checkpoint's table. */
static void expect_row(const tdm_pretrained *from, const char *table, int64_t columns,
                       const float *found, const int64_t *rows, int64_t count)
{
    int index = tdm_pretrained_tensors_find(from->tensors, table);
    float row[HIDDEN];
    double mean[HIDDEN] = {0};
    for (int64_t i = 0; i < count; i++) {
        ck_assert_ok(
            tdm_pretrained_tensors_read(from->tensors, index, rows[i] * columns, row, columns));
        for (int64_t c = 0; c < columns; c++)
            mean[c] += (double)row[c] / (double)count;
    }
    for (int64_t c = 0; c < columns; c++)
        ck_assert_float_eq_tol(found[c], (float)mean[c], 1e-6f);
}

/* The golden vocabulary is [PAD] [UNK] [CLS] [SEP] [MASK], a to h (5 to 12), ##a to ##h (13 to 20), cab
 * (21), bead, ##ed, fa (24), . (25). */
START_TEST(test_grown_vocabulary)
{
    static const char ours_text[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfa\ncab\nfacab\n##bed\n"
                                    "a\nzzz\n";
    static const struct {
        int64_t id, count, rows[OLD_TOKENS];
    } expected[] = {
        {4, 1, {4}},
        {5, 1, {24}},
        {6, 1, {21}},
        {7, 4, {24, 15, 13, 14}}, /* fa ##c ##a ##b */
        {8, 2, {14, 23}},         /* ##b ##ed */
        {9, 1, {5}},
        {10, OLD_TOKENS, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                          13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25}},
    };
    tdm_pretrained from;
    tdm_encoder_rig rig;
    tdm_pretrained_report report;
    int64_t elements;
    listen_to_notices();
    ck_assert_ok(tdm_pretrained_open(golden_folder("bert_masked"), NULL, &from));
    tdm_tokenizer *ours = tdm_test_tokenizer(ours_text, NULL);
    open_model(&rig, &from, 11, TDM_HEAD_MASKED, 0);
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, ours, &report));
    ck_assert_int_eq(report.new_tokens, 3);
    ck_assert_int_eq(report.left_out, 18);
    check_notice("3 tokens are new and begin as the mean of their pieces, 1 of them as the mean of "
                 "all tokens; 18 tokens are left out");
    float *words = tdm_pretrained_rig_values(&rig, "embeddings.word.weight", &elements);
    float *bias = tdm_pretrained_rig_values(&rig, "masked.bias", &elements);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        expect_row(&from, "bert.embeddings.word_embeddings.weight", HIDDEN,
                   words + expected[i].id * HIDDEN, expected[i].rows, expected[i].count);
        expect_row(&from, "cls.predictions.bias", 1, bias + expected[i].id, expected[i].rows,
                   expected[i].count);
    }
    free(words);
    free(bias);
    tdm_encoder_rig_deinit(&rig);
    tdm_tokenizer_close(ours);
    tdm_pretrained_close(&from);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_vocabularies_that_do_not_fit)
{
    char folder[512];
    tdm_pretrained from;
    tdm_tokenizer *small = tdm_test_tokenizer("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", NULL);
    snprintf(folder, sizeof folder, "%s", changed_folder("bert_masked", NULL, NULL));
    /* No vocabulary: the number must be the same. */
    ck_assert_ok(tdm_file_remove(tdm_test_path(folder, "vocab.txt")));
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    ck_assert_fails(load(&from, small, TDM_HEAD_MASKED), TDM_E_DATA,
                    "has 26 rows, the tokenizer of the recipe 6 tokens, and no vocab.txt");
    tdm_tokenizer *same;
    ck_assert_ok(
        tdm_tokenizer_open(tdm_test_path(golden_folder("bert_masked"), "vocab.txt"), NULL, &same));
    ck_assert_ok(load(&from, same, TDM_HEAD_MASKED));
    tdm_pretrained_close(&from);
    /* Less tokens than rows: tables are often padded. */
    const char *text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "vocab.txt"), text, strlen(text), NULL));
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    ck_assert_ok(load(&from, small, TDM_HEAD_MASKED));
    tdm_pretrained_close(&from);
    /* More tokens than rows. */
    char many[512] = "[UNK]\n";
    for (int i = 0; i < OLD_TOKENS; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "t%d\n", i);
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "vocab.txt"), many, strlen(many), NULL));
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    ck_assert_fails(load(&from, small, TDM_HEAD_MASKED), TDM_E_FORMAT,
                    "has 26 rows, and the vocabulary beside it 27 tokens");
    tdm_pretrained_close(&from);
    tdm_tokenizer_close(same);
    tdm_tokenizer_close(small);
}
END_TEST

/* A file that says how text was split is believed, and a recipe that splits otherwise is warned of. */
START_TEST(test_settings_of_the_tokenizer)
{
    char folder[512];
    tdm_pretrained from;
    static const char cased[] = "{\"do_lower_case\": false, \"tokenize_chinese_chars\": false}";
    snprintf(folder, sizeof folder, "%s", changed_folder("bert_masked", NULL, NULL));
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    settings.lowercase = false;
    ck_assert_ok(tdm_pretrained_open(folder, &settings, &from));
    ck_assert(!tdm_tokenizer_get_settings(from.tokenizer).lowercase);
    tdm_pretrained_close(&from);
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "tokenizer_config.json"), cased,
                              sizeof cased - 1, NULL));
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    tdm_tokenizer_settings theirs = tdm_tokenizer_get_settings(from.tokenizer);
    ck_assert(!theirs.lowercase && !theirs.handle_chinese_chars);
    ck_assert_int_eq(theirs.strip_accents, 0);
    tdm_tokenizer *ours;
    ck_assert_ok(tdm_tokenizer_open(tdm_test_path(folder, "vocab.txt"), NULL, &ours));
    listen_to_notices();
    ck_assert_ok(load(&from, ours, TDM_HEAD_MASKED));
    check_notice("warning: ");
    check_notice("lowercase 0, strip_accents 0, handle_chinese_chars 0, and the recipe's tokenizer "
                 "has 1, 1, 1");
    ck_assert_ok(tdm_tokenizer_save(ours, tdm_test_path(folder, "tokenizer.json")));
    ck_assert_ok(tdm_file_remove(tdm_test_path(folder, "vocab.txt")));
    tdm_pretrained_close(&from);
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    listen_to_notices();
    ck_assert_ok(load(&from, ours, TDM_HEAD_MASKED));
    ck_assert_str_eq(notices, "");
    tdm_pretrained_close(&from);
    tdm_tokenizer_close(ours);
}
END_TEST

/* ---- names and types ------------------------------------------------------------------------- */

static bool without_prefix(char name[128], tdm_safetensors_source *source)
{
    (void)source;
    if (strncmp(name, "bert.", 5) == 0)
        memmove(name, name + 5, strlen(name) - 4);
    return true;
}

static bool with_old_names(char name[128], tdm_safetensors_source *source)
{
    (void)source;
    char *norm = strstr(name, "LayerNorm.");
    if (norm != NULL)
        strcpy(norm + 10, strcmp(norm + 10, "weight") == 0 ? "gamma" : "beta");
    return true;
}

static bool as_doubles(char name[128], tdm_safetensors_source *source)
{
    (void)name;
    static double data[MAX_TENSORS][1024];
    static int used;
    double *to = data[used++ % MAX_TENSORS];
    for (int64_t i = 0; i < tdm_shape_elements(&source->shape); i++)
        to[i] = (double)((const float *)source->data)[i];
    source->data = to;
    source->dtype = TDM_F64;
    return true;
}

START_TEST(test_names_and_types)
{
    static const change changes[] = {without_prefix, with_old_names, as_doubles};
    tdm_pretrained as_it_is, changed;
    ck_assert_ok(tdm_pretrained_open(golden_folder("bert_masked"), NULL, &as_it_is));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        open_changed("bert_masked", changes[i], &changed);
        same_values(&as_it_is, &changed);
        tdm_pretrained_close(&changed);
    }
    /* What other versions save too. */
    static const int64_t positions[12];
    static const float decoder[OLD_TOKENS * HIDDEN];
    const tdm_safetensors_source further[] = {
        {"bert.embeddings.position_ids", TDM_I64, {2, {1, 12}}, positions, NULL, NULL},
        {"cls.predictions.decoder.weight", TDM_F32, {2, {OLD_TOKENS, HIDDEN}}, decoder, NULL, NULL},
        {"cls.predictions.decoder.bias", TDM_F32, {1, {OLD_TOKENS}}, decoder, NULL, NULL},
    };
    for (size_t i = 0; i < 3; i++) {
        ck_assert_ok(
            tdm_pretrained_open(changed_folder("bert_masked", NULL, &further[i]), NULL, &changed));
        same_values(&as_it_is, &changed);
        tdm_pretrained_close(&changed);
    }
    tdm_pretrained_close(&as_it_is);
}
END_TEST

/* ---- heads ----------------------------------------------------------------------------------- */

START_TEST(test_heads_that_one_side_lacks)
{
    tdm_pretrained from;
    tdm_encoder_rig rig;
    tdm_pretrained_report report;
    int64_t elements;
    ck_assert_ok(tdm_pretrained_open(golden_folder("bert_masked"), NULL, &from));
    open_model(&rig, &from, OLD_TOKENS, TDM_HEAD_CLASSES, 3);
    float *before = tdm_pretrained_rig_values(&rig, "classifier.weight", &elements);
    listen_to_notices();
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, from.tokenizer, &report));
    ck_assert_int_eq(report.kept, 4);
    ck_assert_int_eq(report.unused, 5);
    check_notice("has no values for these parameters, which keep their initial ones: "
                 "pooler.weight, pooler.bias, classifier.weight, classifier.bias\n");
    check_notice("tensors that this model has no place for: cls.predictions.bias, "
                 "cls.predictions.transform.LayerNorm.bias");
    float *after = tdm_pretrained_rig_values(&rig, "classifier.weight", &elements);
    ck_assert(memcmp(before, after, (size_t)elements * sizeof *after) == 0);
    free(before);
    free(after);
    tdm_encoder_rig_deinit(&rig);
    tdm_pretrained_close(&from);
}
END_TEST

START_TEST(test_classifiers)
{
    tdm_pretrained from;
    tdm_encoder_rig rig;
    tdm_pretrained_report report;
    ck_assert_ok(tdm_pretrained_open(golden_folder("bert_classes"), NULL, &from));
    open_model(&rig, &from, OLD_TOKENS, TDM_HEAD_CLASSES, 3);
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, from.tokenizer, &report));
    ck_assert_int_eq(report.kept + report.unused, 0);
    tdm_encoder_rig_deinit(&rig);
    open_model(&rig, &from, OLD_TOKENS, TDM_HEAD_CLASSES, 4); /* of another task */
    listen_to_notices();
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, from.tokenizer, &report));
    ck_assert_int_eq(report.kept, 2);
    ck_assert_int_eq(report.unused, 2);
    check_notice("keep their initial ones: classifier.weight, classifier.bias");
    tdm_encoder_rig_deinit(&rig);
    tdm_pretrained_close(&from);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

static bool without_a_key(char name[128], tdm_safetensors_source *source)
{
    (void)source;
    return strcmp(name, "bert.encoder.layer.1.attention.self.key.weight") != 0;
}

static bool with_fewer_positions(char name[128], tdm_safetensors_source *source)
{
    if (strcmp(name, "bert.embeddings.position_embeddings.weight") == 0)
        source->shape.sizes[0] = 11;
    return true;
}

static bool with_a_flat_matrix(char name[128], tdm_safetensors_source *source)
{
    if (strcmp(name, "bert.encoder.layer.0.output.dense.weight") == 0)
        source->shape = (tdm_shape){1, {16 * 20}};
    return true;
}

static bool with_integers(char name[128], tdm_safetensors_source *source)
{
    if (strcmp(name, "bert.embeddings.LayerNorm.weight") == 0)
        source->dtype = TDM_I32;
    return true;
}

START_TEST(test_checkpoints_that_do_not_fit)
{
    tdm_pretrained from;
    open_changed("bert_masked", without_a_key, &from);
    ck_assert_fails(load(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_FORMAT,
                    "has no tensor \"bert.encoder.layer.1.attention.self.key.weight\", which "
                    "layer.1.attention.qkv.weight is made of");
    tdm_pretrained_close(&from);
    open_changed("bert_masked", with_fewer_positions, &from);
    ck_assert_fails(load(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_CONFIG,
                    "tensor \"bert.embeddings.position_embeddings.weight\" is [11, 16], and "
                    "embeddings.position.weight takes [12, 16]: model.max_positions");
    tdm_pretrained_close(&from);
    open_changed("bert_masked", with_a_flat_matrix, &from);
    ck_assert_fails(load(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_CONFIG,
                    "is [320], and layer.0.mlp.output.weight takes [16, 20]");
    tdm_pretrained_close(&from);
    open_changed("bert_masked", with_integers, &from);
    ck_assert_fails(load(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_UNSUPPORTED,
                    "tensor \"bert.embeddings.LayerNorm.weight\" has elements of type I32");
    tdm_pretrained_close(&from);
}
END_TEST

START_TEST(test_models_that_do_not_fit)
{
    tdm_pretrained from;
    tdm_encoder_rig rig;
    tdm_pretrained_report report;
    ck_assert_ok(tdm_pretrained_open(golden_folder("bert_masked"), NULL, &from));
    tdm_bert_options options = from.config.options;
    const tdm_model_inputs inputs = {
        .vocabulary = OLD_TOKENS, .max_length = 12, .head = TDM_HEAD_MASKED};
    options.hidden = 32;
    tdm_pretrained_rig_init(&rig, &options, &inputs, false, false);
    ck_assert_fails(tdm_pretrained_rig_load(&rig, &from, from.tokenizer, &report), TDM_E_CONFIG,
                    "is [26, 16], and embeddings.word.weight takes [26, 32]: model.hidden");
    tdm_encoder_rig_deinit(&rig);
    options.hidden = 16;
    options.norm = TDM_NORM_PRE; /* has a last norm that BERT has not */
    options.embedding_norm = true;
    tdm_pretrained_rig_init(&rig, &options, &inputs, false, false);
    ck_assert_fails(tdm_pretrained_rig_load(&rig, &from, from.tokenizer, &report), TDM_E_CONFIG,
                    "has nothing for norm.weight: it is of a model of type bert");
    tdm_encoder_rig_deinit(&rig);
    tdm_pretrained_close(&from);
}
END_TEST

START_TEST(test_decoder_of_its_own)
{
    char folder[512], *config;
    size_t bytes;
    tdm_pretrained from;
    static const float decoder[OLD_TOKENS * HIDDEN];
    const tdm_safetensors_source further = {
        "cls.predictions.decoder.weight", TDM_F32, {2, {OLD_TOKENS, HIDDEN}}, decoder, NULL, NULL};
    snprintf(folder, sizeof folder, "%s", changed_folder("bert_masked", NULL, &further));
    ck_assert_ok(tdm_file_get(tdm_test_path(folder, "config.json"), 1 << 16, &config, &bytes));
    char *tied = strstr(config, "\"tie_word_embeddings\": true");
    ck_assert_ptr_nonnull(tied);
    memcpy(tied, "\"tie_word_embeddings\":false", 27);
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "config.json"), config, bytes, NULL));
    tdm_free(config);
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    ck_assert_fails(load(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_UNSUPPORTED,
                    "config.json: tie_word_embeddings is false");
    tdm_pretrained_close(&from);
}
END_TEST

START_TEST(test_out_of_memory)
{
    tdm_pretrained from;
    tdm_encoder_rig rig;
    tdm_pretrained_report report;
    int count;
    ck_assert_ok(tdm_pretrained_open(golden_folder("bert_masked"), NULL, &from));
    tdm_tokenizer *ours =
        tdm_test_tokenizer("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfacab\nx\n", NULL);
    open_model(&rig, &from, 7, TDM_HEAD_MASKED, 0);
    tdm_saved_tensor *parameters = tdm_pretrained_parameters(&rig, &count);
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status == TDM_E_NOMEM; n++) {
        tdm_memory_fail_at(n, true);
        status = tdm_pretrained_load(&from, &rig.options.model, &rig.options.inputs, ours,
                                     rig.rig.backend, parameters, count, &report);
        tdm_memory_fail_at(0, false);
    }
    ck_assert_int_eq(status, TDM_OK);
    tdm_free(parameters);
    tdm_encoder_rig_deinit(&rig);
    tdm_tokenizer_close(ours);
    tdm_pretrained_close(&from);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    status = TDM_E_NOMEM;
    for (int64_t n = 1; status == TDM_E_NOMEM; n++) {
        tdm_memory_fail_at(n, true);
        status = tdm_pretrained_open(golden_folder("bert_masked"), NULL, &from);
        tdm_memory_fail_at(0, false);
        tdm_pretrained_close(&from);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    }
    ck_assert_int_eq(status, TDM_OK);
}
END_TEST

TDM_CHECK_MAIN(test_grown_vocabulary, test_vocabularies_that_do_not_fit,
               test_settings_of_the_tokenizer, test_names_and_types, test_heads_that_one_side_lacks,
               test_classifiers, test_checkpoints_that_do_not_fit, test_models_that_do_not_fit,
               test_decoder_of_its_own, test_out_of_memory)
