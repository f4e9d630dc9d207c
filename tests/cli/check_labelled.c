/* What features, check and bench features make of a recipe of labelled text. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/run_program.h"
#include "tests/support/text_rig.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static char folder[TDM_FOLDER_BYTES];

static void open_folder(const char *name, const char *text, const char *labels)
{
    tdm_new_folder(folder);
    tdm_free(tdm_rig_vocabulary(folder, 0));
    tdm_free(tdm_data_rig_put_text(folder, name, text));
    char *recipe;
    ck_assert_ok(tdm_format(&recipe,
                            "task: classify\nmodel: {type: bert}\ntrain: {batch_tokens: 1024}\n"
                            "data: {lanes: 1, max_bad_records: 10}\n"
                            "text: {tokenizer: vocab.txt, max_length: 8}\nlabels: {%s}\n",
                            labels));
    tdm_free(tdm_data_rig_put_text(folder, "r.yaml", recipe));
    tdm_free(recipe);
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

static void check_output(const char *command, int code, const char *out, const char *err)
{
    tdm_ran ran = run_in_folder(command);
    ck_assert_ran(ran, code, out, err);
    tdm_ran_free(&ran);
}

static const char reviews[] = "label\ttext\npos\tthe river .\nneg\tthe the the the night of a\n"
                              "pos\t\n\tthe\npos\ta house\n";

START_TEST(features_shows_labels)
{
    open_folder("a.tsv", reviews, "");
    check_output("features r.yaml a.tsv --rows 9", 0,
                 ", 8 tokens, label neg\n  [CLS] the the the the night of [SEP]\n",
                 "2 bad record(s) in block 0: there is no word in it");
    check_output("features r.yaml a.tsv --rows 9", 0, ", 5 tokens, label pos\n", NULL);
    json_t *json = json_of("features r.yaml a.tsv --rows 9 --json");
    const json_t *rows = json_object_get(json, "rows");
    ck_assert_uint_eq(json_array_size(rows), 3);
    for (size_t r = 0; r < 3; r++) {
        const json_t *row = json_array_get(rows, r);
        const json_t *tokens = json_object_get(row, "tokens");
        bool neg = json_array_size(tokens) == 8;
        ck_assert_str_eq(json_string_value(json_object_get(row, "label")), neg ? "neg" : "pos");
        ck_assert_ptr_null(json_object_get(row, "predictions"));
    }
    json_decref(json);
    json = json_of("features r.yaml a.tsv --stats --json");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "records")), 3);
    ck_assert_double_eq_tol(json_number_value(json_object_get(json, "cut_share")), 1.0 / 12, 1e-9);
    ck_assert_ptr_null(json_object_get(json, "mask_share"));
    json_decref(json);
    check_output("features r.yaml a.tsv --stats", 0, "8.33% of the tokens cut off\n", NULL);
    close_folder();
}
END_TEST

START_TEST(features_shows_labels_of_each_type)
{
    open_folder("a.tsv", "label\ttext\n1\tthe\n2\tof\n1,2\ta\n\tnight\n", "type: multiple");
    check_output("features r.yaml a.tsv --rows 9", 0, ", labels 1, 2\n  [CLS] a [SEP]\n", NULL);
    check_output("features r.yaml a.tsv --rows 9", 0, ", labels none\n  [CLS] night [SEP]\n", NULL);
    json_t *json = json_of("features r.yaml a.tsv --rows 9 --json");
    size_t labels = 0;
    for (size_t r = 0; r < 4; r++)
        labels += json_array_size(
            json_object_get(json_array_get(json_object_get(json, "rows"), r), "labels"));
    ck_assert_uint_eq(labels, 4);
    json_decref(json);
    tdm_free(tdm_data_rig_put_text(folder, "b.tsv", "label\ttext\n0.5\tthe\n"));
    check_output("features r.yaml b.tsv labels.type=regression", 0, ", label 0.5\n  [CLS] the",
                 NULL);
    tdm_free(tdm_data_rig_put_text(folder, "c.txt", "the O\nWo B-X\n"));
    check_output("features r.yaml c.txt labels.type=tokens", 0,
                 ", 5 tokens\n  [CLS] the<O> w<B-X> ##o [SEP]\n", NULL);
    check_output("features r.yaml c.txt labels.type=tokens --json", 0, "\"label\": \"B-X\"", NULL);
    close_folder();
}
END_TEST

START_TEST(check_tells_of_labels)
{
    open_folder("a.tsv", reviews, "");
    check_output("check r.yaml a.tsv", 0, "5 records, 3 rows, 2 bad (40%)\n", NULL);
    check_output("check r.yaml a.tsv", 0, "a.tsv:5", "a.tsv:5: label: the label is missing");
    check_output("check r.yaml a.tsv", 0, "text: there is no word in it\n", NULL);
    check_output("check r.yaml a.tsv", 0, "         2    66.67%  pos\n", NULL);
    check_output("check r.yaml a.tsv", 0, "33.3% of the records are longer than text.max_length",
                 NULL);
    check_output("check r.yaml a.tsv 'labels.classes=[pos, bad]' data.max_bad_records=2", 3,
                 "label: \"neg\" is none of the 2 classes: pos, bad", "training would stop");
    json_t *json = json_of("check r.yaml a.tsv --json");
    const json_t *labels = json_object_get(json, "labels");
    const json_t *first = json_array_get(json_object_get(labels, "classes"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "bad_records")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(labels, "longest_record")), 7);
    ck_assert_str_eq(json_string_value(json_object_get(first, "class")), "neg");
    ck_assert_int_eq(json_integer_value(json_object_get(first, "count")), 1);
    json_decref(json);
    close_folder();
}
END_TEST

START_TEST(check_tells_of_labels_of_each_type)
{
    open_folder("a.tsv", "label\ttext\n1\tthe\n2\tof\n1,2\ta\n\tnight\n", "type: multiple");
    check_output("check r.yaml a.tsv", 0, "1 records have none, 1 in the mean\n", NULL);
    check_output("check r.yaml a.tsv", 0, "         2    50.00%  2\n", NULL);
    check_output("check r.yaml a.tsv labels.type=regression", 0,
                 "labels from 1 to 2, mean 1.5, standard deviation 0.5\n", NULL);
    check_output("check r.yaml a.tsv labels.type=regression --json", 0, "\"mean\": 1.5", NULL);
    tdm_free(tdm_data_rig_put_text(folder, "c.txt", "the O\nWo B-X\nof O\n"));
    check_output("check r.yaml c.txt labels.type=tokens", 0, "         2    66.67%  O\n", NULL);
    close_folder();
}
END_TEST

START_TEST(bench_features_measures_labelled_text)
{
    char *corpus = tdm_rig_corpus(3, 80);
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "label\ttext\n"));
    int64_t records = 0;
    for (char *line = strtok(corpus, "\n"); line != NULL; line = strtok(NULL, "\n"))
        ck_assert_ok(tdm_text_printf(&text, "%d\t%s\n", (int)(records++ % 3), line));
    open_folder("a.tsv", text.bytes, "");
    json_t *json = json_of("bench features r.yaml a.tsv --threads 1 --cache --json");
    ck_assert_int_gt(json_integer_value(json_object_get(json, "tokens")), 5 * records);
    ck_assert_double_gt(json_number_value(json_object_get(json, "cache_tokens_per_second")), 0);
    json_decref(json);
    tdm_text_free(&text);
    tdm_free(corpus);
    close_folder();
}
END_TEST

START_TEST(what_cannot_be_done_says_so)
{
    open_folder("a.tsv", reviews, "");
    check_output("features r.yaml a.tsv labels.column=sentiment", 2, NULL,
                 "labels.column: there is no column sentiment (columns: label .. text)");
    check_output("features r.yaml a.tsv 'data.columns=[label, text]'", 3, NULL,
                 "a record has the label label, the name of its column");
    tdm_free(tdm_data_rig_put_text(folder, "b.tsv", "label\ttext\npos\t\nneg\t\n"));
    check_output("features r.yaml b.tsv", 3, NULL, "there is no good record");
    close_folder();
}
END_TEST

TDM_CHECK_MAIN(features_shows_labels, features_shows_labels_of_each_type, check_tells_of_labels,
               check_tells_of_labels_of_each_type, bench_features_measures_labelled_text,
               what_cannot_be_done_says_so)
