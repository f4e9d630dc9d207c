/* System calls as core/file.c, core/append_file.c and core/folder.c make them: asked of the test
 * hook first, and failing with a message. Private to core/. */
#ifndef TDM_CORE_FILE_CALLS_H
#define TDM_CORE_FILE_CALLS_H

#include "core/status.h"

#include <stdbool.h>

/* True where the call may be made; else errno says how it fails. */
bool tdm_io_allowed(const char *call, const char *path);

/* TDM_E_IO: "path: cannot <action>: <what errno says>". */
tdm_status tdm_io_fail(const char *action, const char *path);

/* fsync(2) of an open file or folder. */
TDM_MUST_CHECK tdm_status tdm_descriptor_sync(int descriptor, const char *path);

/* write(2) of all the bytes; *length, unless NULL, grows by what was written, also on failure. */
TDM_MUST_CHECK tdm_status tdm_descriptor_write(int descriptor, const char *path, const void *data,
                                               size_t bytes, int64_t *length);

/* Syncs the folder that holds `path`. */
TDM_MUST_CHECK tdm_status tdm_parent_sync(const char *path);

#endif
