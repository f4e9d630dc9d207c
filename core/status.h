/* How functions fail: a tdm_status, and a message in a record of the calling thread. */
#ifndef TDM_CORE_STATUS_H
#define TDM_CORE_STATUS_H

#include "tandem/tandem.h"

#include <stdarg.h>

#define TDM_ERROR_BYTES 1024

#define TDM_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))

/* Records the message for this thread and returns `status`. */
tdm_status tdm_fail(tdm_status status, const char *format, ...) TDM_PRINTF(2, 3);

/* Puts "prefix: " before the recorded message and returns `status`: for callers that know the file,
 * step or tensor that the callee does not. */
tdm_status tdm_fail_context(tdm_status status, const char *format, ...) TDM_PRINTF(2, 3);

/* `text` as messages can show it: bytes that are not printable ASCII become "\xNN", and what does
 * not fit into `bytes` is left out. */
void tdm_printable(const char *text, char *out, size_t bytes);

/* An error on its way from a worker to whoever waits for the job. */
typedef struct tdm_error {
    tdm_status status;
    char message[TDM_ERROR_BYTES];
} tdm_error;

/* Copies this thread's message with `status` into *error, unless *error already holds one. */
void tdm_error_keep(tdm_error *error, tdm_status status);

/* Makes *error this thread's record and returns its status. */
tdm_status tdm_error_raise(const tdm_error *error);

#define TDM_TRY(expr)                                                                              \
    do {                                                                                           \
        tdm_status tdm_try_status_ = (expr);                                                       \
        if (tdm_try_status_ != TDM_OK)                                                             \
            return tdm_try_status_;                                                                \
    } while (0)

/* For functions with a `tdm_status status` and one label that cleans up. */
#define TDM_TRY_GOTO(expr, label)                                                                  \
    do {                                                                                           \
        status = (expr);                                                                           \
        if (status != TDM_OK)                                                                      \
            goto label;                                                                            \
    } while (0)

#define TDM_FAIL_IF(condition, code, ...)                                                          \
    do {                                                                                           \
        if (condition)                                                                             \
            return tdm_fail((code), __VA_ARGS__);                                                  \
    } while (0)

#endif
