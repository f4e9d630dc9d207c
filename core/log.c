#include "core/log.h"

#include <stdio.h>

static tdm_log_sink log_sink;
static void *log_context;

void tdm_log_set_sink(tdm_log_sink sink, void *context)
{
    log_sink = sink;
    log_context = context;
}

TDM_PRINTF(2, 0)
static void log_message(tdm_log_level level, const char *format, va_list arguments)
    TDM_PRINTF(2, 0);

static void log_message(tdm_log_level level, const char *format, va_list arguments)
{
    if (log_sink == NULL)
        return;
    char message[2 * TDM_ERROR_BYTES];
    vsnprintf(message, sizeof message, format, arguments);
    log_sink(log_context, level, message);
}

void tdm_info(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_message(TDM_LOG_INFO, format, arguments);
    va_end(arguments);
}

void tdm_warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_message(TDM_LOG_WARNING, format, arguments);
    va_end(arguments);
}
