/* What predict answers with an encoder: guesses for masks. */
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"
#include "tests/support/text_runs.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void check_ran(int code, const char *out, const char *err, const char *command)
{
    tdm_ran ran = tdm_run_shell("cd %s\n%s", tdm_text_folder, command);
    ck_assert_ran(ran, code, out, err);
    tdm_ran_free(&ran);
}

static json_t *json_of(const char *command)
{
    tdm_ran ran = tdm_run_shell("cd %s\n%s", tdm_text_folder, command);
    ck_assert_ran(ran, 0, NULL, NULL);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s", ran.out);
    tdm_ran_free(&ran);
    return json;
}

static void begin(void)
{
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
}

/* ---- masks ----------------------------------------------------------------------------------- */

START_TEST(masks_are_filled)
{
    begin();
    tdm_ran ran =
        tdm_run_shell("cd %s && tandem predict mlm --fill-mask 'the [MASK] .'", tdm_text_folder);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_uint_eq(tdm_count_lines(ran.out), 5);
    double probability;
    char token[32];
    ck_assert_int_eq(sscanf(ran.out, "%lf  %31s\n", &probability, token), 2);
    ck_assert(probability > 0 && probability < 1);
    tdm_ran_free(&ran);
    json_t *json = json_of("tandem predict mlm --fill-mask 'the [MASK] .' --json --top 3");
    ck_assert_uint_eq(json_array_size(json), 3);
    json_t *best = json_array_get(json, 0);
    ck_assert_str_eq(json_string_value(json_object_get(best, "token")), token);
    ck_assert_double_eq_tol(json_real_value(json_object_get(best, "probability")), probability,
                            6e-4);
    ck_assert(json_is_integer(json_object_get(best, "id")));
    json_decref(json);
    json = json_of("tandem predict mlm --fill-mask '[MASK] a [MASK]' --json --top 2");
    ck_assert_uint_eq(json_array_size(json), 2);
    ck_assert_uint_eq(json_array_size(json_array_get(json, 1)), 2);
    json_decref(json);
    check_ran(0, "1. mask\n0.", NULL, "tandem predict mlm --fill-mask '[MASK] a [MASK]' --top 1");
    check_ran(0, "\n2. mask\n0.", NULL, "tandem predict mlm --fill-mask '[MASK] a [MASK]' --top 1");
    tdm_text_runs_end();
}
END_TEST

START_TEST(lines_are_filled)
{
    static const char fill[] = "printf 'the [MASK]\\n[MASK] of a\\n' > lines.txt\n"
                               "tandem predict mlm lines.txt --fill-mask - --json -o out.jsonl\n"
                               "tandem predict mlm --fill-mask - --json < lines.txt | cmp - "
                               "out.jsonl && wc -l < out.jsonl";
    begin();
    check_ran(0, "2\n", NULL, fill);
    check_ran(2, NULL, "out.jsonl is there already: --force",
              "tandem predict mlm lines.txt --fill-mask - --json -o out.jsonl");
    check_ran(0, "\n\n0.", NULL, "tandem predict mlm lines.txt --fill-mask - --top 1");
    check_ran(3, "0.", "lines.txt:3: there is no [MASK] in the text",
              "echo none >> lines.txt; tandem predict mlm lines.txt --fill-mask - --top 1");
    /* What cannot be finished is not there. */
    check_ran(3, NULL, "lines.txt:3",
              "tandem predict mlm lines.txt --fill-mask - -o part.txt && ls part.txt*");
    /* Nobody reads what is written. */
    check_ran(0, "141", NULL,
              "yes 'the [MASK]' | head -n 20000 > many.txt\n"
              "{ tandem predict mlm many.txt --fill-mask -; echo $? > code; } | head -n 1 > first\n"
              "cat code");
    tdm_text_runs_end();
}
END_TEST

START_TEST(masks_that_cannot_be_filled)
{
    begin();
    check_ran(3, NULL, "there is no [MASK] in the text, which is how this vocabulary writes",
              "tandem predict mlm --fill-mask 'the river'");
    check_ran(2, NULL, "--fill-mask has a text, and corpus.txt is named besides",
              "tandem predict mlm corpus.txt --fill-mask 'the [MASK]'");
    check_ran(2, NULL, "--top is of --fill-mask", "tandem predict mlm corpus.txt --top 3");
    check_ran(2, NULL, "--with is of records",
              "tandem predict mlm --fill-mask '[MASK]' --with label");
    check_ran(2, NULL, "corpus.txt: holds neither a run (recipe.yaml) nor",
              "tandem predict corpus.txt --fill-mask '[MASK]'");
    check_ran(
        2, NULL, "ctr: is a run of task ctr",
        "mkdir ctr && printf '# tandem run folder, format 1\\nmodel: {type: "
        "logistic_regression}\\n' > ctr/recipe.yaml; tandem predict ctr --fill-mask '[MASK]'");
    check_ran(3, NULL, "the text has 42 tokens, and the model takes 32",
              "tandem predict mlm --fill-mask \"[MASK] $(yes river | head -n 39 | tr '\\n' ' ')\"");
    tdm_text_runs_end();
}
END_TEST

TDM_CHECK_MAIN(masks_are_filled, lines_are_filled, masks_that_cannot_be_filled)
