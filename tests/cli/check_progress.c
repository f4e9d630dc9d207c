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

START_TEST(a_run_that_had_ended_has_no_speed)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = train(folder, "tandem train r.yaml corpus.txt train.max_steps=2 > first\n"
                                "tandem train r.yaml corpus.txt train.max_steps=2 --resume");
    ck_assert_ran(ran, 0, "run: ", NULL);
    ck_assert_ptr_nonnull(strstr(ran.out, " rows in 2 steps, "));
    ck_assert_ptr_null(strstr(ran.out, "tokens/s"));
    ck_assert_ptr_null(strstr(ran.out, "nan"));
    end(&ran, folder);
}
END_TEST

START_TEST(nothing_to_evaluate_on_is_told_once)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = train(folder, "tandem train r.yaml corpus.txt train.max_steps=2 "
                                "train.eval_every_steps=1 data.eval.hold_out=0.0001%");
    const char *warning = "data.eval: there is no row to evaluate on";
    ck_assert_ran(ran, 0, NULL, warning);
    ck_assert_ptr_null(strstr(strstr(ran.err, warning) + 1, warning));
    ck_assert_ptr_nonnull(strstr(ran.err, "step 2: eval  (0 rows)"));
    ck_assert_ptr_null(strstr(ran.err, "nan"));
    end(&ran, folder);
}
END_TEST

START_TEST(folders_in_place_of_a_recipe)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = train(folder, "tandem train r.yaml corpus.txt train.max_steps=2 > first\n"
                                "tandem train run --resume");
    ck_assert_ran(ran, 2, NULL, "run: is the folder of a run, whose recipe is run/recipe.yaml");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem train run/recipe.yaml --resume", folder);
    ck_assert_ran(ran, 0, "run: ", NULL);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem train . corpus.txt", folder);
    ck_assert_ran(ran, 1, NULL, ".: cannot read: is a folder, where a file is wanted");
    end(&ran, folder);
}
END_TEST

TDM_CHECK_MAIN(epochs_are_told_as_they_end, numbers_that_grow_are_short,
               a_run_that_had_ended_has_no_speed, nothing_to_evaluate_on_is_told_once,
               folders_in_place_of_a_recipe)
