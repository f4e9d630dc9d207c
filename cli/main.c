/* tandem: the program. Finds the verb, runs it, and turns its status into an exit code. */
#include "cli/console.h"
#include "cli/verbs.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_DATA = 3,
    EXIT_DEVICE = 4,  /* it failed, or what is asked for is not supported */
    EXIT_SIGNAL = 128 /* and the signal's number */
};

static atomic_bool cancel;
static atomic_int received;

/* Waits for signals on a thread of its own: a handler must never interrupt a thread that computes,
 * since oneDNN's kernels keep data below the stack pointer, where the handler's frame would lie.
 * The first signal asks the verb to stop, the second one ends the process. */
static void *wait_for_signals(void *context)
{
    const sigset_t *signals = context;
    int number = 0;
    if (sigwait(signals, &number) != 0)
        return NULL;
    atomic_store(&received, number);
    atomic_store(&cancel, true);
    if (sigwait(signals, &number) == 0)
        _exit(EXIT_SIGNAL + number);
    return NULL;
}

/* Threads that start later have the signals blocked, too. */
static void catch_signals(void)
{
    static sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_t thread;
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, &signals) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

static int exit_code(tdm_status status)
{
    switch (status) {
    case TDM_OK:
        return EXIT_DONE;
    case TDM_E_ARG:
    case TDM_E_CONFIG:
    case TDM_E_STATE:
        return EXIT_USAGE;
    case TDM_E_DATA:
    case TDM_E_FORMAT:
        return EXIT_DATA;
    case TDM_E_DEVICE:
    case TDM_E_UNSUPPORTED:
        return EXIT_DEVICE;
    case TDM_E_CANCELLED:
        return atomic_load(&received) != 0 ? EXIT_SIGNAL + atomic_load(&received) : EXIT_FAILED;
    case TDM_E_NOMEM:
    case TDM_E_IO:
    case TDM_E_VERSION:
    case TDM_E_NUMERIC:
        break;
    }
    return EXIT_FAILED;
}

static tdm_status run_verb(const tdm_verb *verb, int count, const char *const *words)
{
    tdm_command command;
    TDM_TRY(tdm_command_parse(verb, count, words, &command));
    command.cancel = &cancel;
    tdm_status status;
    if (command.help) {
        tdm_text text = {0};
        status = tdm_console_text(tdm_verb_describe(verb, &text), &text);
    } else {
        status = verb->run(&command);
    }
    tdm_command_deinit(&command);
    return status;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* *verb is set as soon as it is known: errors name it. */
static tdm_status run(int count, const char *const *words, const tdm_verb **verb)
{
    tdm_text text = {0};
    if (count >= 1 && asks_for_help(words[0]))
        return tdm_console_text(tdm_verbs_describe(&text), &text);
    if (count == 2 && asks_for_help(words[1])) {
        TDM_TRY(tdm_verb_group_describe(words[0], &text));
        if (text.length > 0)
            return tdm_console_text(TDM_OK, &text);
    }
    if (count >= 1 && strcmp(words[0], "--version") == 0) {
        printf("tandem %s\n", TDM_VERSION);
        return TDM_OK;
    }
    int used;
    TDM_TRY(tdm_verb_find(count, words, verb, &used));
    return run_verb(*verb, count - used, words + used);
}

int main(int argc, char **argv)
{
    tdm_console_init();
    catch_signals();
    const tdm_verb *verb = NULL;
    tdm_status status = run(argc - 1, (const char *const *)argv + 1, &verb);
    tdm_console_status("");
    if (status == TDM_OK)
        status = tdm_console_flush();
    if (status == TDM_OK)
        return EXIT_DONE;
    tdm_console_print("tandem%s%s: %s", verb != NULL ? " " : "", verb != NULL ? verb->name : "",
                      tdm_error_message());
    if (status == TDM_E_ARG)
        tdm_console_print("(tandem %s%s--help shows how)", verb != NULL ? verb->name : "",
                          verb != NULL ? " " : "");
    return exit_code(status);
}
