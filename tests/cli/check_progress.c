/* What a training tells while it runs. */
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"

#include <string.h>

#define PREPARE                                                                                    \
    "printf '%s\\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a river of light . > vocab.txt\n"     \
    "yes 'a river of light .' | head -n 300 | sed 0~3G > corpus.txt\n"                             \
    "printf 'task: mlm\\nmodel: {type: bert, layers: 2, hidden: 32, heads: 2}\\n"                  \
    "data: {format: text, documents: blank_line, lanes: 2}\\n"                                     \
    "text: {tokenizer: vocab.txt, max_length: 32}\\n"                                              \
    "train: {batch_tokens: 256}\\noutput: {dir: run}\\n' > r.yaml\n"

static tdm_ran train(const char *folder, const char *command)
{
    return tdm_run_shell("cd %s\n%s%s", folder, PREPARE, command);
}

static void end(tdm_ran *ran, const char *folder)
{
    tdm_ran_free(ran);
    *ran = tdm_run_shell("rm -rf %s", folder);
    tdm_ran_free(ran);
}

START_TEST(epochs_are_told_as_they_end)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = train(folder, "tandem train r.yaml corpus.txt train.epochs=2");
    ck_assert_ran(ran, 0, NULL, "epoch 1/2  step ");
    ck_assert_ptr_nonnull(strstr(ran.err, "epoch 2/2  step "));
    ck_assert_ptr_null(strstr(ran.err, "epoch 3/2"));
    ck_assert_ptr_null(strstr(ran.err, "  0 tokens/s"));
    end(&ran, folder);
}
END_TEST

/* Perplexities of up to e to the 709th still are a short line. */
START_TEST(numbers_that_grow_are_short)
{
    static const char command[] =
        "for rate in 4 6 8 10 15; do tandem train r.yaml corpus.txt output.dir=run$rate "
        "text.sequences=segment_pairs optimizer.type=sgd optimizer.learning_rate=$rate "
        "train.max_steps=8 train.eval_every_steps=1 data.eval=[corpus.txt]; done; true";
    const char *folder = tdm_test_folder();
    tdm_ran ran = train(folder, command);
    ck_assert_ran(ran, 0, NULL, "e+");
    for (char *word = strtok(ran.err, " \n"); word != NULL; word = strtok(NULL, " \n"))
        ck_assert_uint_lt(strspn(word, "0123456789."), 20);
    for (char *word = strtok(ran.out, " \n"); word != NULL; word = strtok(NULL, " \n"))
        ck_assert_uint_lt(strspn(word, "0123456789."), 20);
    end(&ran, folder);
}
END_TEST

TDM_CHECK_MAIN(epochs_are_told_as_they_end, numbers_that_grow_are_short)
