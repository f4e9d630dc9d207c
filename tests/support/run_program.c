#include "tests/support/run_program.h"

#include "tests/support/check_main.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* All of an open temporary file. */
static char *read_all(FILE *file)
{
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);
    rewind(file);
    char *text = malloc((size_t)bytes + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(fread(text, 1, (size_t)bytes, file), (size_t)bytes);
    text[bytes] = '\0';
    fclose(file);
    return text;
}

tdm_ran tdm_run_shell(const char *format, ...)
{
    char command[4096] = "tandem() { " TDM_TANDEM " \"$@\"; }\n";
    size_t length = strlen(command);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command + length, sizeof command - length, format, arguments);
    va_end(arguments);
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    ck_assert(out != NULL && err != NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return (tdm_ran){.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                     .out = read_all(out),
                     .err = read_all(err)};
}

void tdm_ran_free(tdm_ran *ran)
{
    free(ran->out);
    free(ran->err);
    *ran = (tdm_ran){0};
}

size_t tdm_count_lines(const char *text)
{
    size_t lines = 0;
    for (const char *at = strchr(text, '\n'); at != NULL; at = strchr(at + 1, '\n'))
        lines++;
    return lines;
}
