/* What features, check and bench features make of a text recipe. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/run_program.h"
#include "tests/support/text_rig.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static char folder[TDM_FOLDER_BYTES];

/* A vocabulary, a corpus of 80 documents and a recipe for them. */
static void open_folder(const char *text)
{
    tdm_new_folder(folder);
    tdm_free(tdm_rig_vocabulary(folder, 0));
    char *corpus = tdm_rig_corpus(3, 80);
    tdm_free(tdm_data_rig_put_text(folder, "corpus.txt", corpus));
    tdm_free(tdm_data_rig_put_text(folder, "corpus.txt.gz", corpus));
    tdm_free(corpus);
    tdm_text recipe = {0};
    ck_assert_ok(tdm_text_printf(&recipe,
                                 "task: mlm\nmodel: {type: bert}\ntrain: {batch_tokens: 1024}\n"
                                 "data: {lanes: 1}\n"
                                 "text: {tokenizer: vocab.txt, max_length: 64%s}\n",
                                 text));
    tdm_free(tdm_data_rig_put_text(folder, "r.yaml", recipe.bytes));
    tdm_text_free(&recipe);
}

static void close_folder(void)
{
    ck_assert_ok(tdm_folder_remove(folder));
}

static tdm_ran run_in_folder(const char *command)
{
    return tdm_run_shell("cd %s && tandem %s", folder, command);
}

static json_t *json_of(const char *command)
{
    tdm_ran ran = run_in_folder(command);
    ck_assert_ran(ran, 0, NULL, NULL);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    tdm_ran_free(&ran);
    return json;
}

static double number_of(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    ck_assert_msg(json_is_number(value), "%s is no number", key);
    return json_number_value(value);
}

/* ---- features -------------------------------------------------------------------------------- */

static void check_row(const json_t *row)
{
    const json_t *tokens = json_object_get(row, "tokens");
    size_t count = json_array_size(tokens);
    int64_t labels = 0;
    ck_assert_int_eq((int64_t)number_of(row, "length"), (int64_t)count);
    for (size_t t = 0; t < count; t++)
        labels += json_object_get(json_array_get(tokens, t), "label") != NULL;
    ck_assert_int_eq((int64_t)number_of(row, "predictions"), labels);
    ck_assert_int_gt(labels, 0);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(tokens, 0), "token")),
                     "[CLS]");
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(tokens, count - 1), "token")),
                     "[SEP]");
}

START_TEST(features_shows_masked_sequences)
{
    open_folder("");
    tdm_ran ran = run_in_folder("features r.yaml corpus.txt --rows 2");
    ck_assert_ran(ran, 0, "sequence 1, ", NULL);
    ck_assert_ran(ran, 0, "[MASK]<", NULL);
    ck_assert_ran(ran, 0, " to predict\n  [CLS] ", NULL);
    ck_assert_ptr_null(strstr(ran.out, "sequence 3"));
    ck_assert_ptr_null(strstr(ran.out, "label"));
    /* The same rows again, on other threads. */
    tdm_ran again = run_in_folder("features r.yaml corpus.txt --rows 2 train.threads=3");
    ck_assert_str_eq(again.out, ran.out);
    tdm_ran_free(&again);
    again = run_in_folder("features r.yaml corpus.txt --rows 2 seed=2");
    ck_assert_int_eq(again.code, 0);
    ck_assert_str_ne(again.out, ran.out);
    tdm_ran_free(&again);
    tdm_ran_free(&ran);
    close_folder();
}
END_TEST

START_TEST(features_shows_pairs)
{
    open_folder(", sequences: segment_pairs");
    json_t *json = json_of("features r.yaml corpus.txt.gz --rows 20 --json");
    const json_t *rows = json_object_get(json, "rows");
    ck_assert_uint_eq(json_array_size(rows), 20);
    double labels = 0;
    for (size_t r = 0; r < 20; r++) {
        check_row(json_array_get(rows, r));
        labels += number_of(json_array_get(rows, r), "pair_label");
    }
    ck_assert(labels > 0 && labels < 20);
    json_decref(json);
    tdm_ran ran = run_in_folder("features r.yaml corpus.txt --rows 20");
    ck_assert_ran(ran, 0, "label 0: B follows A", NULL);
    ck_assert_ran(ran, 0, "label 1: B is of another document", NULL);
    tdm_ran_free(&ran);
    ran = run_in_folder("features r.yaml corpus.txt --rows 20 text.pairs=sop");
    ck_assert_ran(ran, 0, "label 1: swapped", NULL);
    tdm_ran_free(&ran);
    close_folder();
}
END_TEST

START_TEST(features_tells_what_an_epoch_is_like)
{
    static const char *const ways[] = {"", " text.batch=padded", " text.sequences=segment_pairs"};
    open_folder(", masking: {rate: 0.2, unit: whole_word}");
    for (int way = 0; way < 3; way++) {
        char command[128];
        snprintf(command, sizeof command, "features r.yaml corpus.txt --stats --json%s", ways[way]);
        json_t *json = json_of(command);
        ck_assert_int_eq((int64_t)number_of(json, "documents"), 80);
        ck_assert_double_eq_tol(number_of(json, "mask_share"), 0.2, 0.02);
        ck_assert_double_eq_tol(number_of(json, "by_mask"), 0.8, 0.06);
        ck_assert_double_eq_tol(number_of(json, "unknown_share"), 0.025, 0.02);
        ck_assert_double_gt(number_of(json, "batch_fill"), 0.4);
        ck_assert_double_le(number_of(json, "batch_fill"), 1);
        ck_assert_double_le(number_of(json, "sequence_fill"), 1);
        ck_assert_int_eq(json_object_get(json, "pair_label_share") != NULL, way == 2);
        if (way < 2)
            ck_assert_double_gt(number_of(json, "sequence_tokens"), number_of(json, "tokens"));
        json_decref(json);
    }
    tdm_ran ran = run_in_folder("features r.yaml corpus.txt --stats text.sequences=segment_pairs");
    ck_assert_ran(ran, 0, "80 documents, ", NULL);
    ck_assert_ran(ran, 0, "pairs: ", NULL);
    ck_assert_ran(ran, 0, " tokens to predict, ", NULL);
    tdm_ran_free(&ran);
    close_folder();
}
END_TEST

/* What is held out is not among what training sees. */
START_TEST(features_leaves_out_what_is_held_out)
{
    open_folder("");
    json_t *all = json_of("features r.yaml corpus.txt --stats --json");
    json_t *some = json_of("features r.yaml corpus.txt --stats --json 'data.eval={hold_out: 30%}'");
    ck_assert_double_lt(number_of(some, "documents"), number_of(all, "documents") - 10);
    json_decref(all);
    json_decref(some);
    close_folder();
}
END_TEST

/* ---- check ----------------------------------------------------------------------------------- */

START_TEST(check_reads_all_documents)
{
    open_folder("");
    json_t *json = json_of("check r.yaml corpus.txt --json");
    const json_t *text = json_object_get(json, "text");
    ck_assert_int_eq((int64_t)number_of(json, "records"), 80);
    ck_assert_int_eq((int64_t)number_of(json, "bad_records"), 0);
    ck_assert_int_eq((int64_t)number_of(json, "encoding_errors"), 0);
    ck_assert_int_eq((int64_t)number_of(text, "documents"), 80);
    ck_assert_double_gt(number_of(text, "sentences"), 160);
    ck_assert_double_gt(number_of(text, "tokens"), 2000);
    json_decref(json);
    tdm_free(tdm_data_rig_put_text(folder, "odd.txt", "a\n\nb\xff c\n\n\xc2\xad\n\nd\n"));
    tdm_ran ran = run_in_folder("check r.yaml odd.txt text.sequences=segment_pairs");
    ck_assert_ran(ran, 0, "4 records, 3 documents, 0 bad", "a document is one sentence");
    ck_assert_ran(ran, 0, "1 records with bytes that are not UTF-8", NULL);
    ck_assert_ran(ran, 0, "1 records without a token", NULL);
    ck_assert_ran(ran, 0, "100% have one sentence", NULL);
    tdm_ran_free(&ran);
    ran = run_in_folder("check r.yaml odd.txt data.encoding_errors=fail");
    ck_assert_ran(ran, 3, NULL, "odd.txt:3");
    tdm_ran_free(&ran);
    tdm_free(tdm_data_rig_put_text(folder, "empty.txt", "\n\n"));
    ran = run_in_folder("check r.yaml empty.txt");
    ck_assert_ran(ran, 3, NULL, "there is no document");
    tdm_ran_free(&ran);
    ran = run_in_folder("features r.yaml empty.txt");
    ck_assert_ran(ran, 3, NULL, "there is no document with a word in it");
    tdm_ran_free(&ran);
    close_folder();
}
END_TEST

/* ---- others ---------------------------------------------------------------------------------- */

START_TEST(bench_features_measures_text)
{
    open_folder("");
    json_t *json = json_of("bench features r.yaml corpus.txt --threads 1 --cache --json");
    ck_assert_double_gt(number_of(json, "tokens"), 2000);
    ck_assert_double_gt(number_of(json, "tokens_per_second"), 0);
    ck_assert_double_gt(number_of(json, "cache_tokens_per_second"), 0);
    ck_assert_double_gt(number_of(json, "share_of_tokenizer"), 0);
    /* 3 bytes a token, and little more. */
    ck_assert_double_gt(number_of(json, "cache_bytes"), 3 * number_of(json, "tokens"));
    ck_assert_double_lt(number_of(json, "cache_bytes"), 3 * number_of(json, "tokens") + 30000);
    json_decref(json);
    close_folder();
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    open_folder("");
    tdm_ran ran = run_in_folder("features r.yaml corpus.txt text.max_length=65 data.lanes=16");
    ck_assert_ran(ran, 2, NULL, "train.batch_tokens: 1024 is 64 for each of data.lanes, 16");
    tdm_ran_free(&ran);
    ran = run_in_folder("features r.yaml corpus.txt text.tokenizer=none.txt");
    ck_assert_ran(ran, 1, NULL, "text.tokenizer: none.txt: no such file");
    tdm_ran_free(&ran);
    close_folder();
}
END_TEST

/* The recipe that is shipped. */
START_TEST(bert_mini_is_read)
{
    open_folder("");
    tdm_ran ran =
        tdm_run_shell("cd %s && tandem features %s/recipes/bert/bert_mini.yaml corpus.txt", folder,
                      TDM_SOURCE_DIR);
    ck_assert_ran(ran, 0, "sequence 1, ", NULL);
    tdm_ran_free(&ran);
    close_folder();
}
END_TEST

TDM_CHECK_MAIN(features_shows_masked_sequences, features_shows_pairs,
               features_tells_what_an_epoch_is_like, features_leaves_out_what_is_held_out,
               check_reads_all_documents, bench_features_measures_text,
               what_does_not_fit_is_refused, bert_mini_is_read)
