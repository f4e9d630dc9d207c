/* What predict answers to records of labelled text, beside what eval says of the same. */
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"
#include "tests/support/text_runs.h"
#include "tests/support/training.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static tdm_ran run_in_folder(const char *command)
{
    return tdm_run_shell("cd %s\n%s", tdm_text_folder, command);
}

static void check_ran(int code, const char *out, const char *err, const char *command)
{
    tdm_ran ran = run_in_folder(command);
    ck_assert_ran(ran, code, out, err);
    tdm_ran_free(&ran);
}

/* A metric of eval. */
static double metric(const char *command, const char *name)
{
    tdm_ran ran = run_in_folder(command);
    ck_assert_ran(ran, 0, NULL, NULL);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_msg(json_is_number(json_object_get(json, name)), "%s: no %s in %s", command, name,
                  ran.out);
    double value = json_number_value(json_object_get(json, name));
    json_decref(json);
    tdm_ran_free(&ran);
    return value;
}

/* Enough steps to tell some records from others. */
#define LEARN "optimizer.learning_rate=0.02", "train.max_steps=12"

static void begin(const char *name, const char *labels)
{
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, name, WITH(TINY_MODEL, LEARN, labels)));
}

/* ---- one of several classes ------------------------------------------------------------------ */

START_TEST(classes_are_those_that_eval_counts)
{
    begin("run", "labels={}");
    tdm_ran ran = run_in_folder("tandem predict run lines.tsv --with label");
    ck_assert_ran(ran, 0, NULL, NULL);
    int lines = 0, right = 0;
    for (char *line = strtok(ran.out, "\n"); line != NULL; line = strtok(NULL, "\n"), lines++) {
        char label[8], class[8];
        double probability;
        ck_assert_int_eq(sscanf(line, "%7[^,],%7[^,],%lf", label, class, &probability), 3);
        ck_assert(probability >= 0.5 && probability <= 1);
        right += strcmp(label, class) == 0;
    }
    ck_assert_int_eq(lines, 60);
    ck_assert_double_eq_tol(metric("tandem eval run lines.tsv --json", "accuracy"), right / 60.0,
                            1e-9);
    tdm_ran_free(&ran);
    tdm_text_runs_end();
}
END_TEST

START_TEST(labels_are_not_looked_at)
{
    static const char command[] =
        "tandem predict run lines.tsv > all\n"
        "cut -f2 lines.tsv | tandem predict run - | cmp - all || exit 1\n"
        "sed '2,$s/^[a-z]*/odd/' lines.tsv | tandem predict run - | cmp - all || exit 2\n"
        "gzip -k lines.tsv && tandem predict run lines.tsv.gz -o part && cmp part all";
    begin("run", "labels={}");
    check_ran(0, "", NULL, command);
    tdm_text_runs_end();
}
END_TEST

START_TEST(bad_records_have_empty_answers)
{
    static const char bad[] = "{ head -n 3 lines.tsv; printf 'pos\\t\\t\\n'; echo few; sed -n 4p "
                              "lines.tsv; } > bad.tsv\n";
    char command[512];
    begin("run", "labels={}");
    snprintf(command, sizeof command,
             "%standem predict run bad.tsv | awk -F, '{print NF}' | tr '\\n' ' '", bad);
    check_ran(0, "2 2 0 0 2 ", "2 of 5 records were bad: their lines are empty", command);
    check_ran(0, "2 2 0 0 2 ", "bad.tsv:4: text: there is no word in it", command);
    snprintf(command, sizeof command, "%standem predict run bad.tsv --json | sed -n 3,4p", bad);
    check_ran(0, "null\nnull\n", "answers are null", command);
    snprintf(command, sizeof command, "%standem predict run bad.tsv --embed | cut -f1,16", bad);
    check_ran(0, "\n\n\n", "2 of 5 records were bad: their vectors are NaN", command);
    check_ran(3, "\n", "none of the 1 records could be used",
              "printf 'text\\n \\n' | tandem predict run -");
    tdm_text_runs_end();
}
END_TEST

START_TEST(json_has_all_probabilities)
{
    begin("run", "labels={}");
    tdm_ran ran = run_in_folder("head -n 2 lines.tsv | tandem predict run - --json");
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s%s", ran.out, ran.err);
    const char *class = json_string_value(json_object_get(json, "class"));
    json_t *probabilities = json_object_get(json, "probabilities");
    double pos = json_number_value(json_object_get(probabilities, "pos"));
    double neg = json_number_value(json_object_get(probabilities, "neg"));
    ck_assert_double_eq_tol(pos + neg, 1, 1e-6);
    ck_assert_str_eq(class, pos > neg ? "pos" : "neg");
    ck_assert_double_eq(json_number_value(json_object_get(json, "probability")), fmax(pos, neg));
    json_decref(json);
    tdm_ran_free(&ran);
    tdm_text_runs_end();
}
END_TEST

/* Records of two texts, as they were for the training. */
START_TEST(pairs_are_answered)
{
    begin("run", "labels={text_pair: pair}");
    check_ran(0, "60\n", NULL, "tandem predict run lines.tsv | grep -c '^[np]'");
    check_ran(
        1, NULL, "differ",
        "tandem predict run lines.tsv > a; sed '2,$s/\\t[a-z]*$/\\tunder/' lines.tsv | tandem "
        "predict run - | cmp - a 1>&2");
    tdm_text_runs_end();
}
END_TEST

START_TEST(columns_of_json)
{
    tdm_text_runs_begin();
    check_ran(0, "", NULL,
              "for i in 1 2 3 4; do printf '{\"text\": \"the\\\\nlight\", \"label\": "
              "\"a,b\"}\\n{\"label\": \"c\", \"text\": \"river\"}\\n'; done > t.jsonl");
    ck_assert_ok(tdm_text_train(
        TDM_TASK_CLASSIFY, "run",
        WITH(TINY_MODEL, LEARN, "data.format=jsonl", tdm_text_override("data.train=", "t.jsonl"))));
    check_ran(0, "\"the\nlight\",\"a,b\",\"a,b\",0.", NULL,
              "head -n 1 t.jsonl | tandem predict run - --with text,label");
    check_ran(0, "river,c,c,0.", NULL,
              "sed -n 2p t.jsonl | tandem predict run - --with text,label");
    tdm_text_runs_end();
}
END_TEST

/* ---- any of several, numbers ----------------------------------------------------------------- */

START_TEST(several_classes)
{
    begin("run", "labels={type: multiple}");
    tdm_ran ran =
        run_in_folder("tandem predict run lines.tsv; tandem predict run lines.tsv --json");
    ck_assert_ran(ran, 0, NULL, NULL);
    char *json_lines = ran.out, *line = ran.out;
    for (int i = 0; i < 60; i++)
        json_lines = strchr(json_lines, '\n') + 1;
    for (int i = 0; i < 60; i++) {
        char expected[128] = "";
        char *end = strchr(json_lines, '\n');
        json_t *json = json_loadb(json_lines, (size_t)(end - json_lines), 0, NULL);
        ck_assert_ptr_nonnull(json);
        const char *name;
        json_t *probability;
        size_t above = 0;
        json_object_foreach(json_object_get(json, "probabilities"), name, probability)
        {
            if (json_number_value(probability) <= 0.5)
                continue;
            ck_assert_str_eq(
                json_string_value(json_array_get(json_object_get(json, "classes"), above++)), name);
            size_t length = strlen(expected);
            snprintf(expected + length, sizeof expected - length, "%s%s,%.6g",
                     length > 0 ? "," : "", name, json_number_value(probability));
        }
        ck_assert_uint_eq(json_array_size(json_object_get(json, "classes")), above);
        if (above == 0)
            ck_assert(line[0] == '-' && line[1] == '\n');
        else
            ck_assert_msg(strncmp(line, expected, 6) == 0, "\"%.20s\" is not \"%s\"", line,
                          expected);
        json_decref(json);
        json_lines = end + 1;
        line = strchr(line, '\n') + 1;
    }
    tdm_ran_free(&ran);
    tdm_text_runs_end();
}
END_TEST

START_TEST(numbers_are_those_that_eval_measures)
{
    static const char make[] = "awk -F'\\t' 'BEGIN {OFS=FS} NR>1 {$1 = ($1 == \"pos\") * 3 + NR % "
                               "2} {print}' lines.tsv > numbers.tsv";
    tdm_text_runs_begin();
    check_ran(0, "", NULL, make);
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "run",
                                WITH(TINY_MODEL, LEARN, "labels={type: regression}",
                                     tdm_text_override("data.train=", "numbers.tsv"))));
    tdm_ran ran = run_in_folder("tandem predict run numbers.tsv --with label");
    ck_assert_ran(ran, 0, NULL, NULL);
    double sum = 0;
    int lines = 0;
    for (char *line = strtok(ran.out, "\n"); line != NULL; line = strtok(NULL, "\n"), lines++) {
        double label, number;
        ck_assert_int_eq(sscanf(line, "%lf,%lf", &label, &number), 2);
        sum += (label - number) * (label - number);
    }
    ck_assert_int_eq(lines, 60);
    ck_assert_double_eq_tol(metric("tandem eval run numbers.tsv --json", "mse"), sum / 60, 1e-4);
    check_ran(0, "{\"value\": ", NULL, "tandem predict run numbers.tsv --json");
    tdm_ran_free(&ran);
    tdm_text_runs_end();
}
END_TEST

/* ---- words ----------------------------------------------------------------------------------- */

static void begin_words(void)
{
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "run",
                                WITH(TINY_MODEL, LEARN, "labels={type: tokens}",
                                     tdm_text_override("data.train=", "words.txt"))));
}

START_TEST(words_have_classes)
{
    begin_words();
    /* Word for word the file that was read, with another second column. */
    check_ran(0, "", NULL,
              "tandem predict run words.txt > out; cut -f1 out > a; cut -d' ' -f1 words.txt | cmp "
              "a -");
    tdm_ran ran = run_in_folder("tandem predict run words.txt | tr '\\t' ' ' | paste -d' ' - "
                                "words.txt | awk 'NF == 4 {n++; "
                                "right += $2 == $4} END {print right / n, n}'");
    ck_assert_ran(ran, 0, NULL, NULL);
    double share;
    int words;
    ck_assert_int_eq(sscanf(ran.out, "%lf %d", &share, &words), 2);
    ck_assert_int_eq(words, 120);
    ck_assert_double_eq_tol(metric("tandem eval run words.txt --json", "accuracy"), share, 1e-4);
    tdm_ran_free(&ran);
    /* Words alone are records, too. */
    check_ran(0, "", NULL, "cut -d' ' -f1 words.txt | tandem predict run - | cmp - out");
    check_ran(2, NULL, "no columns of records stand before them",
              "tandem predict run words.txt --with text");
    tdm_text_runs_end();
}
END_TEST

/* Words of several pieces, one without any, and a record that is too long. */
START_TEST(words_that_are_no_tokens)
{
    static const char words[] =
        "{ printf 'rivers\\n\\342\\200\\213\\nlight\\n\\n'; yes stones | head "
        "-n 20; echo; } > odd.txt\n";
    char command[512];
    begin_words();
    snprintf(command, sizeof command,
             "%standem predict run odd.txt > out; wc -l < out; cut -f1 out | "
             "cmp - odd.txt || exit 9; awk -F'\\t' '{print NF \":\" ($2 != "
             "\"\")}' out | tr '\\n' ' '",
             words);
    /* Thirty pieces fit: fifteen of the twenty words. */
    check_ran(0,
              "25\n2:1 2:0 2:1 0:0 2:1 2:1 2:1 2:1 2:1 2:1 2:1 2:1 2:1 2:1 2:1 2:1 2:1 2:1 2:1 2:0 "
              "2:0 2:0 2:0 2:0 0:0 ",
              NULL, command);
    snprintf(command, sizeof command, "%standem predict run odd.txt --json > out; head -n 1 out",
             words);
    check_ran(0, "{\"words\": [{\"word\": \"rivers\", \"class\": ", NULL, command);
    check_ran(0, "\"class\": null}", NULL, "head -n 1 out");
    tdm_text_runs_end();
}
END_TEST

/* Lines of words stay as they are; JSON has U+FFFD for what is no UTF-8. */
START_TEST(words_that_are_no_text)
{
    begin_words();
    check_ran(0, "the caf\xe9\xa0s", NULL,
              "printf 'the\ncaf\\351\\240s\n' | tandem predict run - | cut -f1 | paste -sd' '");
    check_ran(0, "\"word\": \"caf\xef\xbf\xbd\xef\xbf\xbds\"", NULL,
              "printf 'the\ncaf\\351\\240s\n' | tandem predict run - --json");
    tdm_text_runs_end();
}
END_TEST

/* Labels of lists may hold what separates those of texts, and line feeds. */
START_TEST(classes_of_lists)
{
    static const char make[] =
        "for i in 1 2 3 4; do printf '{\"text\": \"the light\", \"label\": [\"a,b\", \"c\"]}\n"
        "{\"text\": \"of light\", \"label\": \"d,c\\\\n\"}\n'; done > l.jsonl";
    tdm_text_runs_begin();
    check_ran(0, "", NULL, make);
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "run",
                                WITH(TINY_MODEL, LEARN, "labels={type: multiple}",
                                     "data.format=jsonl", "data.columns=[label, text]",
                                     tdm_text_override("data.train=", "l.jsonl"))));
    check_ran(0, "{\"a,b\": ", NULL, "tandem predict run l.jsonl --json | head -n 1");
    check_ran(0, "\"a,b\",0.", NULL, "tandem predict run l.jsonl | head -n 1");
    check_ran(0, "classes: [\"a,b\", c, d]", NULL, "cat run/recipe.yaml");
    tdm_text_runs_end();
}
END_TEST

START_TEST(words_of_columns)
{
    static const char make[] =
        "{ printf 'label\\ttext\\n'; for i in 1 2 3 4 5 6; do printf 'O L\\tthe "
        "light\\nL O\\tlight of\\n'; done; } > tagged.tsv";
    tdm_text_runs_begin();
    check_ran(0, "", NULL, make);
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "run",
                                WITH(TINY_MODEL, LEARN, "labels={type: tokens}", "data.format=tsv",
                                     tdm_text_override("data.train=", "tagged.tsv"))));
    check_ran(0, "the\nlight\n\nlight\nof\n\n", NULL,
              "tandem predict run tagged.tsv | head -n 6 | cut -f1");
    tdm_text_runs_end();
}
END_TEST

/* ---- vectors --------------------------------------------------------------------------------- */

/* Records and lines of the same texts have the same vectors. */
START_TEST(records_become_vectors)
{
    begin("run", "labels={}");
    check_ran(
        0, "", NULL,
        "tandem export run -o out --format huggingface 2> /dev/null && tandem predict run "
        "lines.tsv --embed > a && sed 1d lines.tsv | cut -f2 | tandem predict out --embed > b "
        "&& wc -l < a | grep -q 60 && awk 'NR == FNR {for (i = 1; i <= NF; i++) v[NR, i] = $i; "
        "next} {for (i = 1; i <= NF; i++) {d = v[FNR, i] - $i; if (d > 1e-5 || d < -1e-5) "
        "print FNR, i, d}}' a b");
    check_ran(0, "", NULL, "tandem predict run lines.tsv --embed --pooling cls -o v.npy");
    check_ran(0, "3968\n", NULL, "stat -c %s v.npy"); /* 128 + 60 * 16 * 4 */
    check_ran(2, NULL, "are of lines: the records of run are read as they were",
              "tandem predict run lines.tsv --embed --max-length 8");
    tdm_text_runs_end();
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(what_has_no_answer)
{
    tdm_predictor *predictor;
    begin("run", "labels={}");
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
    check_ran(2, NULL,
              "mlm: is a run of task mlm, whose model has no answers to records: ask it "
              "with --fill-mask or --embed",
              "tandem predict mlm corpus.txt");
    check_ran(2, NULL, "the records have no column lable; did you mean label?",
              "tandem predict run lines.tsv --with lable");
    check_ran(2, NULL, "--json does not go with it",
              "tandem predict run lines.tsv --with label --json");
    check_ran(
        0, "141", NULL,
        "{ yes \"$(cat lines.tsv)\" | head -n 30000 | tandem predict run -; echo $? > code; } | "
        "head -n 1 > first; sleep 0; cat code | tr -d '\\n'; true");
    ck_assert_fails(tdm_predictor_open(tdm_text_path("run"), NULL, &predictor), TDM_E_UNSUPPORTED,
                    "is a run of task classify");
    ck_assert_ptr_null(predictor);
    tdm_text_runs_end();
}
END_TEST

TDM_CHECK_MAIN(classes_are_those_that_eval_counts, labels_are_not_looked_at,
               bad_records_have_empty_answers, json_has_all_probabilities, pairs_are_answered,
               columns_of_json, several_classes, numbers_are_those_that_eval_measures,
               words_have_classes, words_that_are_no_tokens, words_that_are_no_text,
               classes_of_lists, words_of_columns, records_become_vectors, what_has_no_answer)
