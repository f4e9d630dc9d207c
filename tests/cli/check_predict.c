/* eval, predict and inspect on a run that is trained first, and the library on the same run. */
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"

#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS 4000

/* Holds log.tsv, r.yaml and run/, made once before the tests. */
static char folder[] = "/tmp/tandem-test-XXXXXX";

/* Outside of a test nothing can be asserted. */
static bool train_once(void)
{
    char command[2048];
    if (mkdtemp(folder) == NULL)
        return false;
    snprintf(
        command, sizeof command,
        "cd %s\nprintf 'model: {type: deepfm, mlp: {units: [16]}}\\nfeatures:\\n"
        "  defaults: {buckets: 1000, embedding_dim: 4}\\n  fields:\\n"
        "    - {column: I1..I13, transform: ln_squared}\\n    - {column: C1..C26}\\n"
        "data: {eval: {hold_out: 10%%%%}}\\ntrain: {batch_size: 256}\\noutput: {dir: run}\\n'"
        " > r.yaml\n%s synth ctr --rows %d -o log.tsv > /dev/null && "
        "%s train r.yaml log.tsv --json > result.json 2> train.log || { cat train.log; false; }",
        folder, TDM_TANDEM, ROWS, TDM_TANDEM);
    return system(command) == 0;
}

static void remove_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s is left\n", folder);
}

static json_t *parse(const tdm_ran *ran)
{
    ck_assert_msg(ran->code == 0, "exit code %d: %s", ran->code, ran->err);
    json_t *json = json_loads(ran->out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s", ran->out);
    return json;
}

/* Line by line the same: an empty line, or a number. How many rows the model sees at once may
 * change a probability's last bit. */
static void assert_same_answers(const char *left, const char *right)
{
    ck_assert_uint_eq(tdm_count_lines(left), tdm_count_lines(right));
    for (int line = 1; *left != '\0'; line++) {
        size_t left_bytes = strcspn(left, "\n"), right_bytes = strcspn(right, "\n");
        double a = strtod(left, NULL), b = strtod(right, NULL);
        bool both_empty = left_bytes == 0 && right_bytes == 0;
        bool both_nan = isnan(a) && isnan(b);
        bool close = left_bytes > 0 && right_bytes > 0 && fabs(a - b) < 1e-6;
        ck_assert_msg(both_empty || both_nan || close, "line %d: \"%.*s\" and \"%.*s\"", line,
                      (int)left_bytes, left, (int)right_bytes, right);
        left += left_bytes + 1;
        right += right_bytes + 1;
    }
}

START_TEST(train_answers_in_json)
{
    tdm_ran ran = tdm_run_shell("cat %s/result.json", folder);
    json_t *json = parse(&ran);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "epochs")), 1);
    json_t *eval = json_object_get(json, "eval");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "rows")) +
                         json_integer_value(json_object_get(eval, "rows")),
                     ROWS);
    ck_assert(json_number_value(json_object_get(eval, "logloss")) > 0);
    json_decref(json);
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(a_run_is_not_trained_over)
{
    tdm_ran ran = tdm_run_shell("cd %s && tandem train r.yaml log.tsv", folder);
    ck_assert_ran(ran, 2, NULL, "--resume");
    tdm_ran_free(&ran);
    ran =
        tdm_run_shell("cd %s && tandem train r.yaml log.tsv --resume train.batch_size=512", folder);
    ck_assert_ran(ran, 2, NULL, "batch_size");
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(the_dry_run_writes_nothing)
{
    tdm_ran ran = tdm_run_shell(
        "cd %s && tandem train r.yaml log.tsv --dry-run --json output.dir=dry; ls -d dry 1>&2",
        folder);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s%s", ran.out, ran.err);
    ck_assert(json_integer_value(json_object_get(json, "peak_bytes")) > 0);
    ck_assert_ptr_nonnull(strstr(ran.err, "No such file"));
    json_decref(json);
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(eval_answers_in_json_and_words)
{
    tdm_ran ran = tdm_run_shell("cd %s && tandem eval run log.tsv --json", folder);
    json_t *json = parse(&ran);
    ck_assert_uint_eq(tdm_count_lines(ran.out), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "rows")), ROWS);
    static const char *const keys[] = {"auc",         "logloss",    "normalized_entropy",
                                       "calibration", "mean_label", "mean_prediction"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_msg(json_number_value(json_object_get(json, keys[i])) > 0, "%s", keys[i]);
    json_decref(json);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem eval run log.tsv --checkpoint last", folder);
    ck_assert_ran(ran, 0, "logloss", NULL);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem eval run log.tsv --checkpoint 999999", folder);
    ck_assert_int_ne(ran.code, 0);
    ck_assert_ran(ran, ran.code, NULL, "999999");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && mkdir -p none && tandem eval none log.tsv", folder);
    ck_assert_ran(ran, 2, NULL, "none");
    tdm_ran_free(&ran);
}
END_TEST

/* The mean of the predictions is the one that eval tells. */
START_TEST(predict_answers_each_record)
{
    tdm_ran eval = tdm_run_shell("cd %s && tandem eval run log.tsv --json", folder);
    json_t *json = parse(&eval);
    tdm_ran ran = tdm_run_shell("cd %s && tandem predict run log.tsv", folder);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_uint_eq(tdm_count_lines(ran.out), ROWS);
    double sum = 0;
    for (char *at = ran.out; *at != '\0'; at++)
        sum += strtod(at, &at);
    ck_assert_double_eq_tol(sum / ROWS, json_number_value(json_object_get(json, "mean_prediction")),
                            1e-6);
    json_decref(json);
    tdm_ran_free(&eval);
    tdm_ran_free(&ran);
}
END_TEST

/* A label is not looked at: with it, without it, and with a wrong one, the answer is the same. */
START_TEST(predict_needs_no_label)
{
    tdm_ran with = tdm_run_shell("cd %s && tandem predict run log.tsv", folder);
    tdm_ran without = tdm_run_shell("cd %s && cut -f2- log.tsv | tandem predict run -", folder);
    tdm_ran odd = tdm_run_shell(
        "cd %s && sed 's/^[01]/x/' log.tsv > odd.tsv && tandem predict run odd.tsv", folder);
    ck_assert_ran(without, 0, NULL, NULL);
    ck_assert_ran(odd, 0, NULL, NULL);
    assert_same_answers(with.out, without.out);
    assert_same_answers(with.out, odd.out);
    tdm_ran_free(&with);
    tdm_ran_free(&without);
    tdm_ran_free(&odd);
}
END_TEST

START_TEST(bad_records_are_answered_by_empty_lines)
{
    tdm_ran ran = tdm_run_shell(
        "cd %s\n{ head -n 3 log.tsv; echo too few; sed -n '4s/\t[^\t]*/\tnan/p' log.tsv;"
        " sed -n 5p log.tsv; printf 'last without end'; } > bad.tsv\n"
        "tandem predict run bad.tsv",
        folder);
    tdm_ran good = tdm_run_shell("cd %s && head -n 5 log.tsv | tandem predict run - > good.txt &&"
                                 " { sed -n 1,3p good.txt; echo; echo; sed -n 5p good.txt; echo; }",
                                 folder);
    assert_same_answers(good.out, ran.out);
    tdm_ran_free(&good);
    ck_assert_ran(ran, 0, NULL, "3 of 7 records were bad");
    ck_assert_ran(ran, 0, NULL, "bad.tsv:5: I1: nan and inf are not accepted");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem predict run bad.tsv --with C1,I2 | awk -F, '{print NF}'",
                        folder);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_str_eq(ran.out, "3\n3\n3\n0\n0\n3\n0\n");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && printf 'a\\nb\\n' | tandem predict run", folder);
    ck_assert_ran(ran, 3, NULL, "none of the 2 records could be used");
    ck_assert_str_eq(ran.out, "\n\n");
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(predict_puts_columns_before_the_probability)
{
    tdm_ran ran = tdm_run_shell(
        "cd %s && tandem predict run log.tsv --with C2,label -o keyed.csv && "
        "cut -d, -f1,2 keyed.csv > keys && awk -F'\t' '{print $16 \",\" $1}' log.tsv | cmp - keys "
        "&&"
        " cut -d, -f3 keyed.csv > values && tandem predict run log.tsv | cmp - values",
        folder);
    ck_assert_ran(ran, 0, NULL, NULL);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem predict run log.tsv --with C2 -o keyed.csv", folder);
    ck_assert_ran(ran, 2, NULL, "keyed.csv is there already: --force");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem predict run log.tsv --with C2,c26", folder);
    ck_assert_ran(ran, 2, NULL, "the records have no column c26; did you mean C26?");
    tdm_ran_free(&ran);
}
END_TEST

/* What could not be finished is not there. */
START_TEST(an_interrupted_prediction_leaves_no_file)
{
    tdm_ran ran =
        tdm_run_shell("cd %s && mkfifo fifo && { exec sleep 60 > fifo & } && writer=$!\n" TDM_TANDEM
                      " predict run - -o part.txt < fifo & reader=$!\nsleep 2\n"
                      "kill -TERM $reader; wait $reader; echo code $?; kill $writer; ls part.txt*",
                      folder);
    ck_assert_ran(ran, ran.code, "code 143", "No such file");
    tdm_ran_free(&ran);
}
END_TEST

/* Each record is answered before the next one is sent. */
static void ask_and_answer(const char *threads)
{
    int to[2], from[2];
    ck_assert(pipe(to) == 0 && pipe(from) == 0);
    char run[300];
    snprintf(run, sizeof run, "%s/run", folder);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[1]);
        close(from[0]);
        execl(TDM_TANDEM, "tandem", "predict", run, "-", "--threads", threads, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    char path[300], line[4096], answer[64];
    snprintf(path, sizeof path, "%s/log.tsv", folder);
    FILE *log = fopen(path, "r");
    ck_assert_ptr_nonnull(log);
    for (int i = 0; i < 20; i++) {
        ck_assert_ptr_nonnull(fgets(line, sizeof line, log));
        ck_assert_int_eq(write(to[1], line, strlen(line)), (ssize_t)strlen(line));
        struct pollfd ready = {.fd = from[0], .events = POLLIN};
        ck_assert_msg(poll(&ready, 1, 60000) == 1, "record %d is not answered", i);
        ssize_t bytes = read(from[0], answer, sizeof answer);
        ck_assert_int_gt(bytes, 2);
        ck_assert_int_eq(answer[bytes - 1], '\n');
    }
    fclose(log);
    close(to[1]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    close(from[0]);
}

START_TEST(standard_input_is_answered_as_it_is_read)
{
    ask_and_answer("1");
    ask_and_answer("3");
}
END_TEST

START_TEST(inspect_tells_what_is_there)
{
    tdm_ran ran = tdm_run_shell("cd %s && tandem inspect run --json", folder);
    json_t *json = parse(&ran);
    ck_assert_str_eq(json_string_value(json_object_get(json, "model")), "deepfm");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "fields")), 39);
    json_t *checkpoint = json_array_get(json_object_get(json, "checkpoints"), 0);
    ck_assert(json_is_true(json_object_get(checkpoint, "good")));
    ck_assert(json_is_true(json_object_get(checkpoint, "best")));
    ck_assert_uint_gt(json_array_size(json_object_get(json, "tensors")), 39);
    ck_assert(json_number_value(json_object_get(json_object_get(json, "eval"), "auc")) > 0);
    json_decref(json);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem inspect run", folder);
    ck_assert_ran(ran, 0, "good, best", NULL);
    ck_assert_ran(ran, 0, "embedding.C1.weight", NULL);
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(the_benchmark_of_training_answers_in_json)
{
    tdm_ran ran = tdm_run_shell("cd %s && mkdir tmp && TMPDIR=%s/tmp tandem bench train r.yaml "
                                "--rows 2000 --json && ls tmp 1>&2",
                                folder, folder);
    json_t *json = parse(&ran);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "rows")), 2000);
    static const char *const keys[] = {"rows_per_second", "bytes_per_second",
                                       "matmul_limit_rows_per_second"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_msg(json_number_value(json_object_get(json, keys[i])) > 0, "%s", keys[i]);
    ck_assert_uint_gt(json_array_size(json_object_get(json, "products")), 2);
    ck_assert_ptr_null(strstr(ran.err, "tandem-bench"));
    json_decref(json);
    tdm_ran_free(&ran);
}
END_TEST

/* A damaged checkpoint is named; where none is good, predict fails and inspect still tells. */
START_TEST(a_damaged_checkpoint_is_named)
{
    tdm_ran ran = tdm_run_shell(
        "cd %s && cp -r run damaged && cd damaged/checkpoints/step-* && "
        "printf x | dd of=model.safetensors bs=1 seek=5000 conv=notrunc 2> /dev/null && "
        "cd %s && tandem inspect damaged; tandem predict damaged log.tsv 1>&2",
        folder, folder);
    ck_assert_ran(ran, 3, "damaged: ", "model.safetensors");
    tdm_ran_free(&ran);
}
END_TEST

/* ---- the library ----------------------------------------------------------------------------- */

START_TEST(the_library_answers_as_the_program_does)
{
    tdm_ran ran = tdm_run_shell("cd %s\n{ head -n 20 log.tsv; echo bad; cut -f2- log.tsv |"
                                " sed -n 21p; } > lines\n%s run < lines",
                                folder, TDM_EXAMPLE_PREDICT);
    tdm_ran program = tdm_run_shell("cd %s && head -n 21 log.tsv | tandem predict run - | sed "
                                    "'20s/$/\\nnan/'",
                                    folder);
    ck_assert_ran(ran, 0, NULL, NULL);
    assert_same_answers(program.out, ran.out);
    tdm_ran_free(&program);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && %s nowhere < lines", folder, TDM_EXAMPLE_PREDICT);
    ck_assert_ran(ran, 1, NULL, "nowhere");
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(the_library_answers_many_records_at_once)
{
    char run[300];
    snprintf(run, sizeof run, "%s/run", folder);
    tdm_predictor *predictor;
    ck_assert_ok(tdm_predictor_open(run, &(tdm_predictor_options){.threads = 2}, &predictor));
    tdm_ran text =
        tdm_run_shell("cd %s && head -n 10 log.tsv; echo bad; sed -n 11,600p log.tsv", folder);
    enum { RECORDS = 601 };
    float answers[RECORDS], alone;
    int64_t count;
    ck_assert_ok(
        tdm_predictor_predict(predictor, text.out, strlen(text.out), answers, RECORDS, &count));
    ck_assert_int_eq(count, RECORDS);
    const char *line = text.out;
    for (int i = 0; i < RECORDS; i++) {
        size_t bytes = strcspn(line, "\n");
        ck_assert_ok(tdm_predictor_predict(predictor, line, bytes, &alone, 1, &count));
        ck_assert_int_eq(count, 1);
        ck_assert_msg(isnan(alone) ? i == 10 && isnan(answers[i])
                                   : fabsf(alone - answers[i]) < 1e-6f,
                      "record %d: %g alone, %g among others", i, (double)alone, (double)answers[i]);
        line += bytes + 1;
    }
    /* Too little room: what fits is answered, nothing is written behind it. */
    float few[4] = {-1, -1, -1, -1};
    ck_assert_fails(tdm_predictor_predict(predictor, text.out, strlen(text.out), few, 3, &count),
                    TDM_E_ARG, "holds 601 records, there is room for 3");
    ck_assert_int_eq(count, RECORDS);
    ck_assert(fabsf(few[2] - answers[2]) < 1e-6f && few[3] == -1);
    ck_assert_ok(tdm_predictor_predict(predictor, "", 0, NULL, 0, &count));
    ck_assert_int_eq(count, 0);
    tdm_predictor_close(predictor);
    tdm_ran_free(&text);
}
END_TEST

/* More text than a block holds. */
START_TEST(the_library_answers_a_large_text)
{
    char run[300];
    snprintf(run, sizeof run, "%s/run", folder);
    tdm_predictor *predictor;
    ck_assert_ok(tdm_predictor_open(run, NULL, &predictor));
    tdm_ran text = tdm_run_shell("cd %s && for i in 1 2 3 4 5 6; do cat log.tsv; done", folder);
    enum { RECORDS = 6 * ROWS };
    float *answers = malloc(RECORDS * sizeof *answers);
    int64_t count;
    ck_assert_uint_gt(strlen(text.out), (size_t)5 << 20);
    ck_assert_ok(
        tdm_predictor_predict(predictor, text.out, strlen(text.out), answers, RECORDS, &count));
    ck_assert_int_eq(count, RECORDS);
    for (int i = ROWS; i < RECORDS; i++)
        ck_assert(fabsf(answers[i] - answers[i % ROWS]) < 1e-6f);
    free(answers);
    tdm_predictor_close(predictor);
    tdm_ran_free(&text);
}
END_TEST

START_TEST(the_library_says_why_a_run_cannot_be_opened)
{
    tdm_predictor *predictor;
    ck_assert_fails(tdm_predictor_open("/nowhere/run", NULL, &predictor), TDM_E_STATE,
                    "/nowhere/run");
    ck_assert_ptr_null(predictor);
    char run[300];
    snprintf(run, sizeof run, "%s/run", folder);
    ck_assert_fails(
        tdm_predictor_open(run, &(tdm_predictor_options){.checkpoint = "77"}, &predictor),
        TDM_E_STATE, "77");
    tdm_predictor_close(NULL);
}
END_TEST

int main(void)
{
    if (!train_once())
        return EXIT_FAILURE;
    const TTest *const tests[] = {
        train_answers_in_json,
        a_run_is_not_trained_over,
        the_dry_run_writes_nothing,
        eval_answers_in_json_and_words,
        predict_answers_each_record,
        predict_needs_no_label,
        bad_records_are_answered_by_empty_lines,
        predict_puts_columns_before_the_probability,
        an_interrupted_prediction_leaves_no_file,
        standard_input_is_answered_as_it_is_read,
        inspect_tells_what_is_there,
        the_benchmark_of_training_answers_in_json,
        a_damaged_checkpoint_is_named,
        the_library_answers_as_the_program_does,
        the_library_answers_many_records_at_once,
        the_library_answers_a_large_text,
        the_library_says_why_a_run_cannot_be_opened,
    };
    int code = tdm_check_run(__FILE__, tests, sizeof tests / sizeof tests[0]);
    remove_folder();
    return code;
}
