/* Running a program from a test, and what it said. */
#ifndef TDM_TESTS_RUN_PROGRAM_H
#define TDM_TESTS_RUN_PROGRAM_H

#include <stddef.h>

typedef struct tdm_ran {
    int code;  /* exit code; 128 + the signal's number where one ended it */
    char *out; /* standard output and standard error, zero-ended */
    char *err;
} tdm_ran;

/* Runs a shell command, printf's way, and waits for it. "tandem" in front is the program under
 * test. Fails the test where the shell cannot be started. */
tdm_ran tdm_run_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tdm_ran_free(tdm_ran *ran);

/* The code must be `code` and both outputs contain the texts (NULL: anything). */
#define ck_assert_ran(ran, expected_code, out_text, err_text)                                      \
    do {                                                                                           \
        const char *ck_out_ = (out_text), *ck_err_ = (err_text);                                   \
        ck_assert_msg((ran).code == (expected_code), "exit code %d\n%s\n%s", (ran).code,           \
                      (ran).out, (ran).err);                                                       \
        ck_assert_msg(ck_out_ == NULL || strstr((ran).out, ck_out_) != NULL,                       \
                      "stdout lacks \"%s\":\n%s", ck_out_, (ran).out);                             \
        ck_assert_msg(ck_err_ == NULL || strstr((ran).err, ck_err_) != NULL,                       \
                      "stderr lacks \"%s\":\n%s", ck_err_, (ran).err);                             \
    } while (0)

/* Lines of a text. */
size_t tdm_count_lines(const char *text);

#endif
