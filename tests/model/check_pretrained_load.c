/* What becomes of a checkpoint's tensors: under other names, of other types, and what is refused
 * before a parameter is touched. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/pretrained_rig.h"
#include "tests/support/tokenizer_rig.h"

#include <stdio.h>
#include <string.h>

enum { HIDDEN = 16, OLD_TOKENS = 26 };

static void open_changed(tdm_tensor_change how, tdm_pretrained *from)
{
    ck_assert_ok(tdm_pretrained_open(tdm_changed_folder(how, NULL), NULL, from));
}

/* Fails unless a model has the same values with both. */
static void same_values(const tdm_pretrained *a, const tdm_pretrained *b)
{
    tdm_encoder_rig rigs[2];
    const tdm_pretrained *from[] = {a, b};
    for (int i = 0; i < 2; i++) {
        tdm_pretrained_report report;
        tdm_pretrained_rig_open(&rigs[i], from[i], OLD_TOKENS, TDM_HEAD_MASKED, 0);
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
    static double data[TDM_CHANGED_TENSORS][1024];
    static int used;
    double *to = data[used++ % TDM_CHANGED_TENSORS];
    for (int64_t i = 0; i < tdm_shape_elements(&source->shape); i++)
        to[i] = (double)((const float *)source->data)[i];
    source->data = to;
    source->dtype = TDM_F64;
    return true;
}

START_TEST(test_names_and_types)
{
    static const tdm_tensor_change changes[] = {without_prefix, with_old_names, as_doubles};
    tdm_pretrained as_it_is, changed;
    ck_assert_ok(tdm_pretrained_open(tdm_golden_folder("bert_masked"), NULL, &as_it_is));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        open_changed(changes[i], &changed);
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
        ck_assert_ok(tdm_pretrained_open(tdm_changed_folder(NULL, &further[i]), NULL, &changed));
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
    ck_assert_ok(tdm_pretrained_open(tdm_golden_folder("bert_masked"), NULL, &from));
    tdm_pretrained_rig_open(&rig, &from, OLD_TOKENS, TDM_HEAD_CLASSES, 3);
    float *before = tdm_pretrained_rig_values(&rig, "classifier.weight", &elements);
    tdm_notices_listen();
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, from.tokenizer, &report));
    ck_assert_int_eq(report.kept, 4);
    ck_assert_int_eq(report.unused, 5);
    tdm_notices_check("has no values for these parameters, which keep their initial ones: "
                      "pooler.weight, pooler.bias, classifier.weight, classifier.bias\n");
    tdm_notices_check("tensors that this model has no place for: cls.predictions.bias, "
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
    ck_assert_ok(tdm_pretrained_open(tdm_golden_folder("bert_classes"), NULL, &from));
    tdm_pretrained_rig_open(&rig, &from, OLD_TOKENS, TDM_HEAD_CLASSES, 3);
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, from.tokenizer, &report));
    ck_assert_int_eq(report.kept + report.unused, 0);
    tdm_encoder_rig_deinit(&rig);
    tdm_pretrained_rig_open(&rig, &from, OLD_TOKENS, TDM_HEAD_CLASSES, 4); /* of another task */
    tdm_notices_listen();
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, from.tokenizer, &report));
    ck_assert_int_eq(report.kept, 2);
    ck_assert_int_eq(report.unused, 2);
    tdm_notices_check("keep their initial ones: classifier.weight, classifier.bias");
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
    open_changed(without_a_key, &from);
    ck_assert_fails(tdm_pretrained_try(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_FORMAT,
                    "has no tensor \"bert.encoder.layer.1.attention.self.key.weight\", which "
                    "layer.1.attention.qkv.weight is made of");
    tdm_pretrained_close(&from);
    open_changed(with_fewer_positions, &from);
    ck_assert_fails(tdm_pretrained_try(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_CONFIG,
                    "tensor \"bert.embeddings.position_embeddings.weight\" is [11, 16], and "
                    "embeddings.position.weight takes [12, 16]: model.max_positions");
    tdm_pretrained_close(&from);
    open_changed(with_a_flat_matrix, &from);
    ck_assert_fails(tdm_pretrained_try(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_CONFIG,
                    "is [320], and layer.0.mlp.output.weight takes [16, 20]");
    tdm_pretrained_close(&from);
    open_changed(with_integers, &from);
    ck_assert_fails(tdm_pretrained_try(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_UNSUPPORTED,
                    "tensor \"bert.embeddings.LayerNorm.weight\" has elements of type I32");
    tdm_pretrained_close(&from);
}
END_TEST

START_TEST(test_models_that_do_not_fit)
{
    tdm_pretrained from;
    tdm_encoder_rig rig;
    tdm_pretrained_report report;
    ck_assert_ok(tdm_pretrained_open(tdm_golden_folder("bert_masked"), NULL, &from));
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
    snprintf(folder, sizeof folder, "%s", tdm_changed_folder(NULL, &further));
    ck_assert_ok(tdm_file_get(tdm_test_path(folder, "config.json"), 1 << 16, &config, &bytes));
    char *tied = strstr(config, "\"tie_word_embeddings\": true");
    ck_assert_ptr_nonnull(tied);
    memcpy(tied, "\"tie_word_embeddings\":false", 27);
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "config.json"), config, bytes, NULL));
    tdm_free(config);
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    ck_assert_fails(tdm_pretrained_try(&from, from.tokenizer, TDM_HEAD_MASKED), TDM_E_UNSUPPORTED,
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
    ck_assert_ok(tdm_pretrained_open(tdm_golden_folder("bert_masked"), NULL, &from));
    tdm_tokenizer *ours =
        tdm_test_tokenizer("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfacab\nx\n", NULL);
    tdm_pretrained_rig_open(&rig, &from, 7, TDM_HEAD_MASKED, 0);
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
        status = tdm_pretrained_open(tdm_golden_folder("bert_masked"), NULL, &from);
        tdm_memory_fail_at(0, false);
        tdm_pretrained_close(&from);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    }
    ck_assert_int_eq(status, TDM_OK);
}
END_TEST

TDM_CHECK_MAIN(test_names_and_types, test_heads_that_one_side_lacks, test_classifiers,
               test_checkpoints_that_do_not_fit, test_models_that_do_not_fit,
               test_decoder_of_its_own, test_out_of_memory)
