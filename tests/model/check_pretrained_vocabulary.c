/* Checkpoints whose vocabulary is another one than the recipe's. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/pretrained_rig.h"
#include "tests/support/tokenizer_rig.h"

#include <stdio.h>
#include <string.h>

enum { HIDDEN = 16, OLD_TOKENS = 26 };

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

/* The golden vocabulary is [PAD] [UNK] [CLS] [SEP] [MASK], a to h (5 to 12), ##a to ##h (13 to
 * 20), cab (21), bead, ##ed, fa (24), . (25). */
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
    tdm_notices_listen();
    ck_assert_ok(tdm_pretrained_open(tdm_golden_folder("bert_masked"), NULL, &from));
    tdm_tokenizer *ours = tdm_test_tokenizer(ours_text, NULL);
    tdm_pretrained_rig_open(&rig, &from, 11, TDM_HEAD_MASKED, 0);
    ck_assert_ok(tdm_pretrained_rig_load(&rig, &from, ours, &report));
    ck_assert_int_eq(report.new_tokens, 3);
    ck_assert_int_eq(report.left_out, 18);
    tdm_notices_check(
        "3 tokens are new and begin as the mean of their pieces, 1 of them as the mean of "
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

enum { MANY_ROWS = OLD_TOKENS + 1024 };

/* Tables with rows behind those of the tokens. */
static bool with_many_rows(char name[128], tdm_safetensors_source *source)
{
    static float table[MANY_ROWS * HIDDEN];
    (void)name;
    if (source->shape.sizes[0] != OLD_TOKENS)
        return true;
    source->shape.sizes[0] = MANY_ROWS;
    source->data = table;
    return true;
}

START_TEST(test_vocabularies_that_do_not_fit)
{
    char folder[512];
    tdm_pretrained from;
    tdm_tokenizer *small = tdm_test_tokenizer("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", NULL);
    snprintf(folder, sizeof folder, "%s", tdm_changed_folder(NULL, NULL));
    /* No vocabulary: the number must be the same. */
    ck_assert_ok(tdm_file_remove(tdm_test_path(folder, "vocab.txt")));
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    ck_assert_fails(tdm_pretrained_try(&from, small, TDM_HEAD_MASKED), TDM_E_DATA,
                    "has 26 rows, the tokenizer of the recipe 6 tokens, and no vocab.txt");
    tdm_tokenizer *same;
    ck_assert_ok(tdm_tokenizer_open(tdm_test_path(tdm_golden_folder("bert_masked"), "vocab.txt"),
                                    NULL, &same));
    ck_assert_ok(tdm_pretrained_try(&from, same, TDM_HEAD_MASKED));
    tdm_pretrained_close(&from);
    /* Less tokens than rows: tables are often padded. */
    const char *text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "vocab.txt"), text, strlen(text), NULL));
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    tdm_notices_listen();
    ck_assert_ok(tdm_pretrained_try(&from, small, TDM_HEAD_MASKED));
    tdm_notices_check("has 19 rows of tokens more than the vocabulary beside it has tokens");
    tdm_pretrained_close(&from);
    /* But not by so many. */
    ck_assert_ok(tdm_pretrained_open(tdm_changed_folder(with_many_rows, NULL), NULL, &from));
    ck_assert_fails(tdm_pretrained_try(&from, small, TDM_HEAD_MASKED), TDM_E_FORMAT,
                    "has 1050 rows, and the vocabulary beside it only 26 tokens: it is cut off");
    tdm_pretrained_close(&from);
    /* More tokens than rows. */
    char many[512] = "[UNK]\n";
    for (int i = 0; i < OLD_TOKENS; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "t%d\n", i);
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "vocab.txt"), many, strlen(many), NULL));
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    ck_assert_fails(tdm_pretrained_try(&from, small, TDM_HEAD_MASKED), TDM_E_FORMAT,
                    "has 26 rows, and the vocabulary beside it 27 tokens");
    tdm_pretrained_close(&from);
    tdm_tokenizer_close(same);
    tdm_tokenizer_close(small);
}
END_TEST

/* A file that says how text was split is believed, and a recipe that splits otherwise is warned
 * of. */
START_TEST(test_settings_of_the_tokenizer)
{
    char folder[512];
    tdm_pretrained from;
    static const char cased[] = "{\"do_lower_case\": false, \"tokenize_chinese_chars\": false}";
    snprintf(folder, sizeof folder, "%s", tdm_changed_folder(NULL, NULL));
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
    tdm_notices_listen();
    ck_assert_ok(tdm_pretrained_try(&from, ours, TDM_HEAD_MASKED));
    tdm_notices_check("warning: ");
    tdm_notices_check(
        "lowercase 0, strip_accents 0, handle_chinese_chars 0, and the recipe's tokenizer "
        "has 1, 1, 1");
    ck_assert_ok(tdm_tokenizer_save(ours, tdm_test_path(folder, "tokenizer.json")));
    ck_assert_ok(tdm_file_remove(tdm_test_path(folder, "vocab.txt")));
    tdm_pretrained_close(&from);
    ck_assert_ok(tdm_pretrained_open(folder, NULL, &from));
    tdm_notices_listen();
    ck_assert_ok(tdm_pretrained_try(&from, ours, TDM_HEAD_MASKED));
    ck_assert_str_eq(tdm_notices(), "");
    tdm_pretrained_close(&from);
    tdm_tokenizer_close(ours);
}
END_TEST

TDM_CHECK_MAIN(test_grown_vocabulary, test_vocabularies_that_do_not_fit,
               test_settings_of_the_tokenizer)
