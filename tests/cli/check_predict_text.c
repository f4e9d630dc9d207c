/* What predict answers with an encoder, guesses for masks and vectors, and how eval judges it. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/pretrained_rig.h"
#include "tests/support/run_program.h"
#include "tests/support/text_runs.h"
#include "tests/support/training.h"

#include <jansson.h>
#include <math.h>
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
    check_ran(2, NULL, "--with is of the answers to records",
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

/* ---- vectors --------------------------------------------------------------------------------- */

/* The numbers of a .npy of so many vectors, which must be as NumPy reads them. */
static const float *npy_numbers(const char *file, int64_t rows, int64_t columns)
{
    static char *data;
    char expected[128];
    size_t bytes;
    tdm_free(data);
    ck_assert_ok(tdm_file_get(tdm_text_path(file), 1 << 20, &data, &bytes));
    ck_assert_uint_eq(bytes, 128 + (size_t)(rows * columns) * sizeof(float));
    ck_assert(memcmp(data, "\x93NUMPY\x01\x00\x76\x00", 10) == 0);
    snprintf(expected, sizeof expected,
             "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), } ", (long long)rows,
             (long long)columns);
    ck_assert(memcmp(data + 10, expected, strlen(expected)) == 0);
    ck_assert_int_eq(data[127], '\n');
    return (const float *)(const void *)(data + 128);
}

static const char lines[] = "printf 'the river\\n\\nhouse of light and stone\\n' > lines.txt\n";

static void embed(int code, const char *out, const char *err, const char *command)
{
    char all[sizeof lines + 2048];
    snprintf(all, sizeof all, "%s%s", lines, command);
    check_ran(code, out, err, all);
}

START_TEST(lines_become_vectors)
{
    begin();
    embed(0, "", "3 vectors of 13 tokens", "tandem predict mlm lines.txt --embed -o v.npy");
    const float *numbers = npy_numbers("v.npy", 3, 16);
    tdm_ran ran = tdm_run_shell("cd %s && tandem predict mlm --embed < lines.txt", tdm_text_folder);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_uint_eq(tdm_count_lines(ran.out), 3);
    char *at = ran.out;
    for (int i = 0; i < 3 * 16; i++) {
        ck_assert_double_eq_tol(strtod(at, &at), (double)numbers[i], 1e-6);
        ck_assert_int_eq(*at, i % 16 == 15 ? '\n' : '\t');
    }
    tdm_ran_free(&ran);
    json_t *json = json_of("head -n 1 lines.txt | tandem predict mlm - --embed --json");
    ck_assert_uint_eq(json_array_size(json), 16);
    ck_assert_double_eq_tol(json_real_value(json_array_get(json, 3)), (double)numbers[3], 1e-6);
    json_decref(json);
    /* The state of [CLS] is another vector. */
    embed(0, "", NULL, "tandem predict mlm lines.txt --embed --pooling cls -o cls.npy");
    float first = npy_numbers("v.npy", 3, 16)[0];
    ck_assert_float_ne(npy_numbers("cls.npy", 3, 16)[0], first);
    embed(0, "", "0 vectors of 0 tokens", "tandem predict mlm /dev/null --embed -o none.npy");
    npy_numbers("none.npy", 0, 16);
    tdm_text_runs_end();
}
END_TEST

START_TEST(vectors_of_another_programs_encoder)
{
    char command[1024];
    tdm_text_runs_begin();
    snprintf(command, sizeof command,
             "gzip -k lines.txt && tandem predict %s lines.txt.gz --embed --threads 2 -o v.npy",
             tdm_golden_folder("bert_classes"));
    embed(0, "", "3 vectors", command);
    npy_numbers("v.npy", 3, 16);
    snprintf(command, sizeof command,
             "truncate -s -9 model.safetensors && cd .. && tandem predict cut lines.txt --embed");
    char all[2048];
    snprintf(all, sizeof all, "cp -r %s cut && cd cut && %s", tdm_golden_folder("bert_masked"),
             command);
    embed(3, "", "cut/model.safetensors: ", all);
    tdm_text_runs_end();
}
END_TEST

/* What could not be finished is not there. */
START_TEST(interrupted_vectors_leave_no_file)
{
    begin();
    check_ran(0, "code 143\n", "No such file",
              "yes 'the river of light and stone' | head -n 4000000 > many.txt\n" TDM_TANDEM
              " predict mlm many.txt --embed -o part.npy & embed=$!\nsleep 1\n"
              "kill -TERM $embed; wait $embed; echo code $?; ls part.npy*; true");
    tdm_text_runs_end();
}
END_TEST

START_TEST(vectors_that_cannot_be_made)
{
    begin();
    embed(0, NULL, "1 of 3 texts have more than 6 tokens: their ends are left out",
          "tandem predict mlm lines.txt --embed --max-length 6");
    embed(2, NULL, "sequences of 33 tokens are too long: the model has 32 positions",
          "tandem predict mlm lines.txt --embed --max-length 33");
    embed(2, NULL, "v.npy is there already: --force",
          "touch v.npy; tandem predict mlm lines.txt --embed -o v.npy");
    embed(2, NULL, "--json does not go with it",
          "tandem predict mlm lines.txt --embed --json -o w.npy");
    embed(2, NULL, "p.npy: is no file",
          "mkfifo p.npy; cat p.npy & tandem predict mlm lines.txt --embed -o p.npy");
    embed(2, NULL, "--pooling takes one of the words that --help lists, not \"max\"",
          "tandem predict mlm lines.txt --embed --pooling max");
    embed(2, NULL, "--pooling is of --embed", "tandem predict mlm lines.txt --pooling cls");
    embed(2, NULL, "--fill-mask and --embed are two questions",
          "tandem predict mlm --embed --fill-mask '[MASK]'");
    embed(2, NULL, "nowhere: holds neither", "tandem predict nowhere lines.txt --embed");
    embed(2, NULL, "none.txt", "tandem predict mlm none.txt --embed -o gone.npy || ls gone.npy*");
    embed(2, NULL, "ctr: is a run of task ctr",
          "mkdir ctr && printf '# tandem run folder, format 1\\nmodel: {type: "
          "logistic_regression}\\n' > ctr/recipe.yaml; tandem predict ctr lines.txt --embed");
    /* Nobody reads what is written. */
    embed(0, "141", NULL,
          "yes 'the river' | head -n 20000 > many.txt\n"
          "{ tandem predict mlm many.txt --embed; echo $? > code; } | head -n 1 > first\n"
          "cat code");
    tdm_text_runs_end();
}
END_TEST

/* ---- eval ------------------------------------------------------------------------------------ */

/* What is masked is the same every time. */
START_TEST(evaluations_are_repeatable)
{
    begin();
    check_ran(0, "", NULL,
              "for t in 1 1 3; do tandem eval mlm corpus.txt --threads $t | tail -n +2 > now; test "
              "-f first || cp now first; cmp first now; done");
    tdm_text_runs_end();
}
END_TEST

START_TEST(pseudo_perplexity)
{
    begin();
    check_ran(0, "pseudo-perplexity ", NULL,
              "head -n 5 corpus.txt > few.txt; tandem eval mlm few.txt --pseudo-perplexity");
    check_ran(0, "pseudo-perplexity            n/a\n", NULL,
              "echo > blank.txt; tandem eval mlm blank.txt --pseudo-perplexity");
    json_t *json = json_of("tandem eval mlm few.txt --pseudo-perplexity --json");
    ck_assert_double_eq_tol(log(json_real_value(json_object_get(json, "pseudo_perplexity"))),
                            json_real_value(json_object_get(json, "pseudo_loss")), 1e-9);
    ck_assert_int_gt(json_integer_value(json_object_get(json, "tokens")), 10);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "step")), 4);
    json_decref(json);
    check_ran(2, NULL, "out: is no run, whose recipe says how files are read",
              "tandem export mlm -o out --format huggingface && tandem eval out few.txt "
              "--pseudo-perplexity");
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "classes", WITH(TINY_MODEL)));
    check_ran(3, NULL, "has no values for masked.dense.weight",
              "tandem eval classes lines.tsv --pseudo-perplexity");
    tdm_text_runs_end();
}
END_TEST

TDM_CHECK_MAIN(evaluations_are_repeatable, pseudo_perplexity, lines_become_vectors,
               vectors_of_another_programs_encoder, interrupted_vectors_leave_no_file,
               vectors_that_cannot_be_made, masks_are_filled, lines_are_filled,
               masks_that_cannot_be_filled)
