#include "cli/console.h"

#include "core/file.h"
#include "core/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define STATUS_BYTES 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_terminal;
static char status_line[STATUS_BYTES];

/* Both with the lock held. */
static void hide_status(void)
{
    if (status_line[0] != '\0')
        fputs("\r\033[K", stderr);
}

static void show_status(void)
{
    if (status_line[0] != '\0')
        fputs(status_line, stderr);
    fflush(stderr);
}

static void print_message(void *context, tdm_log_level level, const char *message)
{
    (void)context;
    pthread_mutex_lock(&lock);
    hide_status();
    fprintf(stderr, "%s%s\n", level == TDM_LOG_WARNING ? "warning: " : "", message);
    show_status();
    pthread_mutex_unlock(&lock);
}

void tdm_console_init(void)
{
    is_terminal = isatty(STDERR_FILENO) == 1;
    tdm_log_set_sink(print_message, NULL);
}

bool tdm_console_is_terminal(void)
{
    return is_terminal;
}

static size_t terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
        return 80;
    return size.ws_col;
}

void tdm_console_status(const char *line)
{
    if (!is_terminal)
        return;
    size_t width = terminal_width() - 1;
    pthread_mutex_lock(&lock);
    hide_status();
    snprintf(status_line, sizeof status_line, "%.*s", (int)(width < STATUS_BYTES ? width : 500),
             line);
    show_status();
    pthread_mutex_unlock(&lock);
}

void tdm_console_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&lock);
    hide_status();
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    show_status();
    pthread_mutex_unlock(&lock);
    va_end(arguments);
}

tdm_status tdm_console_text(tdm_status status, tdm_text *text)
{
    if (status == TDM_OK && text->bytes != NULL)
        fputs(text->bytes, stdout);
    tdm_text_free(text);
    return status;
}

tdm_status tdm_console_json(json_t *json)
{
    TDM_FAIL_IF(json == NULL, TDM_E_NOMEM, "out of memory while writing JSON");
    int failed = json_dumpf(json, stdout, JSON_REAL_PRECISION(12));
    json_decref(json);
    TDM_FAIL_IF(failed != 0, TDM_E_IO, "standard output: %s", tdm_io_error_text(errno));
    putchar('\n');
    return TDM_OK;
}

tdm_status tdm_console_flush(void)
{
    bool failed = ferror(stdout) != 0;
    failed = fflush(stdout) != 0 || failed;
    TDM_FAIL_IF(failed, TDM_E_IO, "standard output: %s", tdm_io_error_text(errno));
    return TDM_OK;
}
