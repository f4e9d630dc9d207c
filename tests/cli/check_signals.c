/* What SIGINT and SIGTERM do. */
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"

#include <stdio.h>
#include <string.h>

/* A training that would go on for hours; its products are large enough that a signal meets one. */
#define PREPARE                                                                                    \
    "printf 'model: {type: deepfm, mlp: {units: [400, 400]}}\\nfeatures:\\n"                       \
    "  defaults: {buckets: 1000, embedding_dim: 16}\\n  fields:\\n"                                \
    "    - {column: I1..I13, transform: ln_squared}\\n    - {column: C1..C26}\\n"                  \
    "train: {batch_size: 512, epochs: 60000, log_every_seconds: 0.2}\\ndata: {cache: off}\\n"      \
    "checkpoint: {keep_last: 1}\\noutput: {dir: run}\\n' > r.yaml\n"                               \
    "tandem synth ctr --rows 20000 -o log.tsv > /dev/null\n"

/* An encoder's, whose second phase begins soon. */
#define PREPARE_TEXT                                                                               \
    "printf '%s\\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a river of light . > vocab.txt\n"     \
    "yes 'a river of light .' | head -n 3000 | sed 0~3G > corpus.txt\n"                            \
    "printf 'task: mlm\\nmodel: {type: bert, layers: 2, hidden: 64, heads: 2}\\n"                  \
    "data: {format: text, documents: blank_line, lanes: 4}\\n"                                     \
    "text: {tokenizer: vocab.txt, max_length: 32}\\n"                                              \
    "train: {batch_tokens: 1024, log_every_seconds: 0.2,\\n"                                       \
    "        phases: [{steps: 20, max_length: 16}, {steps: 1000000000}]}\\n"                       \
    "checkpoint: {keep_last: 1}\\noutput: {dir: run}\\n' > r.yaml\n"

/* "ready CHILD": waits until the program has the signals under control. "signal NAME PATTERN
 * SECONDS command…": runs the program in the background, waits until its standard error shows the
 * pattern and a little longer, sends the signal, and prints the exit code. */
#define SIGNAL                                                                                     \
    "alive() { kill -0 $1 2> /dev/null; }\n"                                                       \
    "ready() { while alive $1 && ! grep -q '^SigBlk:.*4002$' /proc/$1/status; do sleep 0.1; done;" \
    " }\n"                                                                                         \
    "signal() { name=$1; pattern=$2; pause=$3; shift 3; " TDM_TANDEM " \"$@\" 2> err & child=$!;"  \
    " ready $child; while alive $child && [ -n \"$pattern\" ] && ! grep -q \"$pattern\" err; do "  \
    "sleep 0.1; done;"                                                                             \
    " sleep $pause; kill -s $name $child; wait $child; echo $?; cat err 1>&2; }\n"

/* `prepare` makes the folder's recipe and `data`. */
static void check_stops(const char *prepare, const char *data)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell("cd %s\n%s" SIGNAL "for pause in 0.1 0.4 0.2 0.3; do\n"
                                "  signal INT step $pause train r.yaml %s --resume\ndone\n"
                                "signal TERM step 0.1 train r.yaml %s --resume",
                                folder, prepare, data, data);
    ck_assert_ran(ran, 0, NULL, "which is saved: --resume goes on");
    ck_assert_msg(strcmp(ran.out, "130\n130\n130\n130\n143\n") == 0, "%s%s", ran.out, ran.err);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem inspect run", folder);
    ck_assert_ran(ran, 0, " good", NULL);
    ck_assert_ptr_null(strstr(ran.out, "damaged"));
    tdm_ran_free(&ran);
    ran = tdm_run_shell("rm -rf %s", folder);
    tdm_ran_free(&ran);
}

START_TEST(a_stopped_training_is_saved_and_goes_on)
{
    check_stops(PREPARE, "log.tsv");
}
END_TEST

START_TEST(a_stopped_training_of_text_is_saved_and_goes_on)
{
    check_stops(PREPARE_TEXT, "corpus.txt");
}
END_TEST

START_TEST(a_log_that_is_stopped_is_not_there)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell(
        "cd %s\n" SIGNAL "signal TERM '' 0.2 synth ctr --rows 1000000000 -o log.tsv\nls", folder);
    ck_assert_ran(ran, 0, NULL, "stopped");
    ck_assert_str_eq(ran.out, "143\nerr\n");
    tdm_ran_free(&ran);
}
END_TEST

/* A reader that waits for input stops too. */
START_TEST(a_program_that_waits_for_input_is_stopped)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell("cd %s\n" PREPARE SIGNAL
                                "mkfifo pipe\nsleep 600 > pipe & writer=$!\n" TDM_TANDEM
                                " check r.yaml - < pipe & child=$!\n"
                                "ready $child; sleep 0.2; kill -INT $child; wait $child; echo $?\n"
                                "kill $writer",
                                folder);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_str_eq(ran.out, "130\n");
    tdm_ran_free(&ran);
}
END_TEST

TDM_CHECK_MAIN(a_stopped_training_is_saved_and_goes_on,
               a_stopped_training_of_text_is_saved_and_goes_on, a_log_that_is_stopped_is_not_there,
               a_program_that_waits_for_input_is_stopped)
