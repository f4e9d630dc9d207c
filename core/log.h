/* Where warnings and notices go. The library itself prints nothing: until a program sets a sink,
 * messages are dropped. */
#ifndef TDM_CORE_LOG_H
#define TDM_CORE_LOG_H

#include "core/status.h"

typedef enum tdm_log_level { TDM_LOG_INFO, TDM_LOG_WARNING } tdm_log_level;

/* `message` has no newline. May be called from any thread. */
typedef void (*tdm_log_sink)(void *context, tdm_log_level level, const char *message);

/* Set before threads start. */
void tdm_log_set_sink(tdm_log_sink sink, void *context);

void tdm_info(const char *format, ...) TDM_PRINTF(1, 2);
void tdm_warn(const char *format, ...) TDM_PRINTF(1, 2);

#endif
