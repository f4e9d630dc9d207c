#include "core/status.h"

#include <stdio.h>
#include <string.h>

static _Thread_local char message[TDM_ERROR_BYTES];

const char *tdm_status_text(tdm_status status)
{
    switch (status) {
#define STATUS_TEXT(name, number, text)                                                            \
    case TDM_##name:                                                                               \
        return text;
        TDM_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

const char *tdm_error_message(void)
{
    return message;
}

tdm_status tdm_fail(tdm_status status, const char *format, ...)
{
    /* Arguments may point into the record itself. */
    char text[TDM_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(message, text, sizeof text);
    return status;
}

tdm_status tdm_fail_context(tdm_status status, const char *format, ...)
{
    char prefix[TDM_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    return tdm_fail(status, "%s: %s", prefix, message);
}

void tdm_printable(const char *text, char *out, size_t bytes)
{
    const size_t longest = sizeof "\\xNN";
    size_t length = 0;
    for (; *text != '\0' && length + longest <= bytes; text++) {
        if (*text >= ' ' && *text <= '~')
            out[length++] = *text;
        else
            length += (size_t)snprintf(out + length, longest, "\\x%02x", (unsigned char)*text);
    }
    out[length] = '\0';
}

void tdm_error_keep(tdm_error *error, tdm_status status)
{
    if (error->status != TDM_OK)
        return;
    error->status = status;
    memcpy(error->message, message, sizeof message);
}

tdm_status tdm_error_raise(const tdm_error *error)
{
    memcpy(message, error->message, sizeof message);
    return error->status;
}
