/* tandem train on text, in phases, killed at random instants and resumed each time, ends with the
 * bits of a training that nobody disturbed. Run by `ctest -C slow -L slow`. */
#include "core/clock.h"
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/random_text.h"
#include "tests/support/same_run.h"
#include "tests/support/texts.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLS 20
#define SEED  1

static const char *const overrides[] = {
    "train.phases=[{steps: 150, max_length: 16}, {steps: 60, micro_batch_tokens: 64},"
    " {steps: 150, batch_tokens: 1024}, {steps: 90, max_length: 64}]",
    "data.eval={hold_out: 10%}",
    "train.eval_every_steps=50",
    "checkpoint.every_steps=25",
    "optimizer.schedule={type: linear, warmup_steps: 20}",
    "data.cache=on",
    NULL,
};

/* Writes the recipe of a training in <folder>/<name>, and returns its path, freed with
 * tdm_free(). */
static char *write_recipe(const char *name)
{
    char *folder, *path;
    tdm_text text = {0};
    ck_assert_ok(tdm_format(&folder, "%s/%s", tdm_texts.folder, name));
    ck_assert_ok(tdm_format(&path, "%s.yaml", folder));
    tdm_recipe *recipe =
        tdm_texts_recipe(TDM_TASK_MLM, folder, (const char **)(uintptr_t)overrides);
    ck_assert_ok(tdm_recipe_emit(recipe, &text));
    ck_assert_ok(tdm_file_put(path, text.bytes, text.length, NULL));
    tdm_recipe_free(recipe);
    tdm_text_free(&text);
    tdm_free(folder);
    return path;
}

static const char *path_of(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", tdm_texts.folder, name);
    return path;
}

/* What it says goes to a file, which is left where the test fails. */
static pid_t start_training(const char *recipe)
{
    int log = open(path_of("log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, (mode_t)0666);
    ck_assert_int_ge(log, 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execl(TDM_TANDEM, "tandem", "train", recipe, "--resume", (char *)NULL);
        _exit(127);
    }
    close(log);
    return child;
}

/* Returns false where the training ended, as it has to, before `seconds` had passed. */
static bool kill_after(const char *recipe, double seconds)
{
    pid_t child = start_training(recipe);
    usleep((useconds_t)(1e6 * seconds));
    kill(child, SIGKILL);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "see %s", path_of("log"));
    return WIFSIGNALED(status);
}

static void finish(const char *recipe)
{
    int status;
    pid_t child = start_training(recipe);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "see %s", path_of("log"));
}

/* The undisturbed training and one that was killed. */
static void compare(void)
{
    char whole[400];
    snprintf(whole, sizeof whole, "%s", path_of("whole/run"));
    tdm_assert_same_runs(whole, path_of("killed/run"), 450);
    ck_assert_ok(tdm_folder_remove(path_of("killed")));
}

START_TEST(killed_trainings_end_with_the_same_bits)
{
    tdm_texts_begin(1000);
    char *whole = write_recipe("whole"), *killed = write_recipe("killed");
    double start = tdm_clock_seconds();
    finish(whole);
    double seconds = tdm_clock_seconds() - start;
    int kills = 0, runs = 0, here = 0;
    for (uint64_t n = 0; kills < KILLS; n++) {
        double share = (double)(tdm_random_number(SEED, n) >> 11) * 0x1p-53;
        bool was_killed = kill_after(killed, share * seconds);
        kills += was_killed;
        here += was_killed;
        /* At most a few in one training, so that the last of its phases sees some too. */
        if (was_killed && here < 4)
            continue;
        finish(killed);
        compare();
        here = 0;
        runs++;
    }
    if (here > 0) {
        finish(killed);
        compare();
        runs++;
    }
    printf("%d kills of %d trainings of %.1f s: the same bits\n", kills, runs, seconds);
    tdm_free(whole);
    tdm_free(killed);
    tdm_texts_end();
}
END_TEST

TDM_CHECK_MAIN(killed_trainings_end_with_the_same_bits)
