/* Checkpoints of other programs compute here what Transformers computes with them, and go back
 * bit by bit. The references are made by tests/golden/make_interchange_golden.py and
 * make_checkpoint_golden.py. */
#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/golden.h"
#include "tests/support/pretrained_rig.h"

#include <stdio.h>
#include <string.h>

#define TOLERANCE 1e-5

static const struct folder {
    const char *name;
    tdm_text_head head;
    int64_t classes;
    bool pairs;
} folders[] = {
    {"bert_pretraining", TDM_HEAD_MASKED, 0, true},
    {"bert_masked", TDM_HEAD_MASKED, 0, false},
    {"bert_classes", TDM_HEAD_CLASSES, 3, false},
    {"bert_tokens", TDM_HEAD_TOKEN_CLASSES, 5, false},
    {"megatron_masked", TDM_HEAD_MASKED, 0, false},
    {"modern_masked", TDM_HEAD_MASKED, 0, false},
};
#define FOLDERS (sizeof folders / sizeof folders[0])

/* ---- what a model answers -------------------------------------------------------------------- */

/* The sequences of the reference; every token is to be predicted. */
static int64_t load_batch(tdm_encoder_rig *rig, const tdm_golden *golden)
{
    static tdm_rig_sequence sequences[TDM_PRETRAINED_SEQUENCES];
    int64_t tokens, ends;
    const uint32_t *ids = tdm_golden_get(golden, "batch.ids", TDM_U32, &tokens);
    const uint32_t *types = tdm_golden_get(golden, "batch.types", TDM_U32, &tokens);
    const int32_t *cu_seqlens = tdm_golden_get(golden, "batch.cu_seqlens", TDM_I32, &ends);
    memset(sequences, 0, sizeof sequences);
    for (int64_t i = 0; i + 1 < ends; i++) {
        tdm_rig_sequence *sequence = &sequences[i];
        sequence->weight = 1;
        sequence->length = cu_seqlens[i + 1] - cu_seqlens[i];
        memcpy(sequence->ids, ids + cu_seqlens[i], (size_t)sequence->length * sizeof *ids);
        memcpy(sequence->types, types + cu_seqlens[i], (size_t)sequence->length * sizeof *types);
    }
    tdm_encoder_rig_load(rig, sequences, ends - 1);
    return ends - 1;
}

static void compare_output(tdm_encoder_rig *rig, const char *output, const tdm_golden *golden,
                           const char *name, int64_t rows)
{
    int64_t columns, elements;
    const float *reference = tdm_golden_get(golden, name, TDM_F32, &elements);
    double *found = tdm_encoder_rig_output(rig, output, rows, &columns), *expected;
    ck_assert_int_eq(rows * columns, elements);
    ck_assert_ok(tdm_alloc((size_t)elements, sizeof *expected, &expected));
    for (int64_t i = 0; i < elements; i++)
        expected[i] = (double)reference[i];
    tdm_golden_close_to(name, found, expected, elements, TOLERANCE);
    tdm_free(expected);
    free(found);
}

/* A model with the checkpoint's weights and this head. */
static void open_model(tdm_encoder_rig *rig, const tdm_pretrained *from, tdm_text_head head,
                       int64_t classes)
{
    tdm_bert_options options = from->config.options;
    tdm_pretrained_report report;
    const tdm_model_inputs inputs = {.vocabulary = tdm_tokenizer_size(from->tokenizer),
                                     .max_length =
                                         options.max_positions > 0 ? options.max_positions : 12,
                                     .head = head,
                                     .classes = classes};
    tdm_pretrained_rig_init(rig, &options, &inputs, false, true);
    ck_assert_ok(tdm_pretrained_rig_load(rig, from, from->tokenizer, &report));
    ck_assert_int_eq(report.new_tokens, 0);
}

static void check_head(const tdm_pretrained *from, const tdm_golden *golden, tdm_text_head head,
                       int64_t classes)
{
    tdm_encoder_rig rig;
    int64_t tokens;
    tdm_golden_get(golden, "batch.ids", TDM_U32, &tokens);
    open_model(&rig, from, head, classes);
    int64_t sequences = load_batch(&rig, golden);
    tdm_encoder_rig_forward(&rig, false);
    if (head == TDM_HEAD_NONE)
        compare_output(&rig, "hidden", golden, "hidden", tokens);
    else
        compare_output(&rig, "logits", golden, "logits",
                       head == TDM_HEAD_CLASSES ? sequences : tokens);
    tdm_encoder_rig_deinit(&rig);
}

/* What a classifier with these weights answers. */
static void check_classifier(const tdm_pretrained *from, const tdm_golden *golden, const char *name,
                             int64_t classes, const float *weight, const float *bias)
{
    tdm_encoder_rig rig;
    open_model(&rig, from, TDM_HEAD_CLASSES, classes);
    tdm_encoder_rig_set(&rig, tdm_rig_parameter(&rig.rig, "classifier.weight"), weight);
    tdm_encoder_rig_set(&rig, tdm_rig_parameter(&rig.rig, "classifier.bias"), bias);
    int64_t sequences = load_batch(&rig, golden);
    tdm_encoder_rig_forward(&rig, false);
    compare_output(&rig, "logits", golden, name, sequences);
    tdm_encoder_rig_deinit(&rig);
}

/* A classifier of the identity answers what the pooler says. */
static void check_pooler(const tdm_pretrained *from, const tdm_golden *golden)
{
    int64_t hidden = from->config.options.hidden;
    float *identity, *zeros;
    ck_assert_ok(tdm_alloc((size_t)(hidden * hidden), sizeof *identity, &identity));
    ck_assert_ok(tdm_alloc((size_t)hidden, sizeof *zeros, &zeros));
    for (int64_t i = 0; i < hidden; i++)
        identity[i * hidden + i] = 1;
    check_classifier(from, golden, "pooler", hidden, identity, zeros);
    tdm_free(identity);
    tdm_free(zeros);
}

/* One of the head of pairs answers what that says. */
static void check_pairs(const tdm_pretrained *from, const tdm_golden *golden)
{
    float weight[2 * 64], bias[2];
    int index = tdm_pretrained_tensors_find(from->tensors, "cls/seq_relationship/output_weights");
    ck_assert_ok(tdm_pretrained_tensors_read(from->tensors, index, 0, weight,
                                             2 * from->config.options.hidden));
    index = tdm_pretrained_tensors_find(from->tensors, "cls/seq_relationship/output_bias");
    ck_assert_ok(tdm_pretrained_tensors_read(from->tensors, index, 0, bias, 2));
    check_classifier(from, golden, "pair_logits", 2, weight, bias);
}

START_TEST(test_answers_of_transformers)
{
    for (size_t i = 0; i < FOLDERS; i++) {
        char path[128];
        tdm_pretrained from;
        tdm_text_head head = folders[i].head == TDM_HEAD_MASKED ? TDM_HEAD_FILL : folders[i].head;
        snprintf(path, sizeof path, "interchange/%s/answers.safetensors", folders[i].name);
        tdm_golden *golden = tdm_golden_open(path);
        ck_assert_ok(tdm_pretrained_open(tdm_golden_folder(folders[i].name), NULL, &from));
        check_head(&from, golden, TDM_HEAD_NONE, 0);
        check_head(&from, golden, head, folders[i].classes);
        if (tdm_golden_has(golden, "pooler"))
            check_pooler(&from, golden);
        tdm_pretrained_close(&from);
        tdm_golden_close(golden);
    }
}
END_TEST

START_TEST(test_answers_of_the_test_data)
{
    static const char *const names[][2] = {
        {"bert-xsmall-dummy", "checkpoint/bert_xsmall_dummy.safetensors"},
        {"keras-bert-tiny", "checkpoint/keras_bert_tiny.safetensors"},
    };
    if (tdm_test_data() == NULL) {
        tdm_test_skip("checkpoints of the test data");
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        char path[1024];
        tdm_pretrained from;
        snprintf(path, sizeof path, "%s/checkpoint/%s", tdm_test_data(), names[i][0]);
        tdm_golden *golden = tdm_golden_open(names[i][1]);
        ck_assert_ok(tdm_pretrained_open(path, NULL, &from));
        check_head(&from, golden, TDM_HEAD_NONE, 0);
        if (tdm_golden_has(golden, "pooler")) {
            check_pooler(&from, golden);
        } else {
            check_head(&from, golden, TDM_HEAD_FILL, 0);
            check_pairs(&from, golden);
        }
        tdm_pretrained_close(&from);
        tdm_golden_close(golden);
    }
}
END_TEST

/* ---- there and back -------------------------------------------------------------------------- */

static void same_tensors(const char *a_path, const char *b_path)
{
    tdm_pretrained_tensors *a, *b;
    ck_assert_ok(tdm_pretrained_tensors_open(a_path, &a));
    ck_assert_ok(tdm_pretrained_tensors_open(b_path, &b));
    ck_assert_int_eq(tdm_pretrained_tensors_count(a), tdm_pretrained_tensors_count(b));
    for (int i = 0; i < tdm_pretrained_tensors_count(a); i++) {
        const tdm_pretrained_tensor *x = tdm_pretrained_tensors_get(a, i);
        const tdm_pretrained_tensor *y = tdm_pretrained_tensors_get(b, i);
        ck_assert_str_eq(x->name, y->name);
        ck_assert_int_eq(x->shape.rank, y->shape.rank);
        for (int d = 0; d < x->shape.rank; d++)
            ck_assert_int_eq(x->shape.sizes[d], y->shape.sizes[d]);
        int64_t elements = tdm_shape_elements(&x->shape);
        float *values;
        ck_assert_ok(tdm_alloc((size_t)elements * 2, sizeof *values, &values));
        ck_assert_ok(tdm_pretrained_tensors_read(a, i, 0, values, elements));
        ck_assert_ok(tdm_pretrained_tensors_read(b, i, 0, values + elements, elements));
        ck_assert_msg(memcmp(values, values + elements, (size_t)elements * sizeof *values) == 0,
                      "%s differs", x->name);
        tdm_free(values);
    }
    tdm_pretrained_tensors_close(a);
    tdm_pretrained_tensors_close(b);
}

static void same_value(json_t *roots[2], const char *key)
{
    json_t *a = json_object_get(roots[0], key), *b = json_object_get(roots[1], key);
    ck_assert_msg(a == b || json_equal(a, b), "%s differs", key);
}

/* The class that config.json names is the same, and its settings are. */
static void same_config(const char *a_folder, const char *b_folder)
{
    json_t *roots[2];
    const char *const names[] = {a_folder, b_folder};
    tdm_pretrained_config a, b;
    for (int i = 0; i < 2; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/config.json", names[i]);
        ck_assert_ok(tdm_json_file_get(path, 1 << 20, &roots[i]));
    }
    same_value(roots, "architectures");
    same_value(roots, "id2label");
    same_value(roots, "label2id");
    json_decref(roots[0]);
    json_decref(roots[1]);
    ck_assert_ok(tdm_pretrained_config_read(a_folder, &a));
    ck_assert_ok(tdm_pretrained_config_read(b_folder, &b));
    ck_assert_int_eq(a.family, b.family);
    ck_assert_int_eq(a.vocabulary, b.vocabulary);
    ck_assert_double_eq(a.options.dropout, b.options.dropout);
    ck_assert_double_eq(a.options.attention_dropout, b.options.attention_dropout);
    ck_assert_double_eq(a.options.initializer, b.options.initializer);
    ck_assert_ok(tdm_pretrained_config_check(&a, NULL, &b.options, 12));
    tdm_pretrained_config_free(&a);
    tdm_pretrained_config_free(&b);
}

static void check_round_trip(const struct folder *folder)
{
    char path[512], out[512];
    tdm_pretrained from;
    tdm_encoder_rig rig;
    tdm_pretrained_report report;
    snprintf(path, sizeof path, "%s", tdm_golden_folder(folder->name));
    snprintf(out, sizeof out, "%s", tdm_test_path(tdm_test_folder(), "out/"));
    ck_assert_ok(tdm_pretrained_open(path, NULL, &from));
    const tdm_model_inputs inputs = {
        .vocabulary = 26, .max_length = 12, .head = folder->head, .classes = folder->classes};
    tdm_pretrained_rig_init(&rig, &from.config.options, &inputs, folder->pairs, false);
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, from.tokenizer, &report));
    ck_assert_int_eq(report.kept, 0);
    ck_assert_int_eq(report.unused, 0);
    ck_assert_int_eq(report.loaded, tdm_model_parameter_count(rig.rig.model));
    tdm_safetensors *parameters = tdm_pretrained_rig_save(&rig);
    const tdm_export export = {&from.config.options, &inputs, parameters, from.tokenizer, NULL};
    ck_assert_ok(tdm_export_huggingface(&export, out, false));
    same_tensors(path, out);
    same_config(path, out);
    tdm_safetensors_close(parameters);
    tdm_encoder_rig_deinit(&rig);
    tdm_pretrained_close(&from);
}

START_TEST(test_there_and_back)
{
    for (size_t i = 0; i < FOLDERS; i++)
        check_round_trip(&folders[i]);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_several_files)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s", tdm_golden_folder("bert_masked"));
    same_tensors(whole, tdm_golden_folder("bert_sharded"));
}
END_TEST

TDM_CHECK_MAIN(test_answers_of_transformers, test_answers_of_the_test_data, test_there_and_back,
               test_several_files)
