/* The terminal: messages, the progress line, and results.
 *
 * Messages of any thread and the progress line share standard error without mixing. */
#ifndef TDM_CLI_CONSOLE_H
#define TDM_CLI_CONSOLE_H

#include "core/config.h"
#include "core/json.h"

#include <stdbool.h>

/* Sends the library's messages to standard error: notices as they are, warnings behind
 * "warning: ". Called once, before threads start. */
void tdm_console_init(void);

/* True where standard error is a terminal, so that a line can be written over. */
bool tdm_console_is_terminal(void);

/* Shows `line` in place of the last one; later messages appear above it. Cut at the terminal's
 * width. "" takes it away. */
void tdm_console_status(const char *line);

/* A line of its own on standard error. */
void tdm_console_print(const char *format, ...) TDM_PRINTF(1, 2);

/* Prints a text on standard output where `status`, of making it, is OK. Frees the text and returns
 * `status`. */
TDM_MUST_CHECK tdm_status tdm_console_text(tdm_status status, tdm_text *text);

/* Prints one JSON object on one line of standard output. Takes `json`, which may be NULL where it
 * could not be made. */
TDM_MUST_CHECK tdm_status tdm_console_json(json_t *json);

/* Writes out what standard output still holds; TDM_E_IO where any of it could not be written. */
TDM_MUST_CHECK tdm_status tdm_console_flush(void);

#endif
