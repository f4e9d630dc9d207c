/* A file that grows by whole lines and can be cut back to a length it had. */
#ifndef TDM_CORE_APPEND_FILE_H
#define TDM_CORE_APPEND_FILE_H

#include "core/status.h"

typedef struct tdm_append_file tdm_append_file;

/* Opens the file at its end, or creates it. */
TDM_MUST_CHECK tdm_status tdm_append_file_open(const char *path, tdm_append_file **out);
/* NULL is allowed. */
void tdm_append_file_close(tdm_append_file *file);

/* Hands the bytes to the system at once. */
TDM_MUST_CHECK tdm_status tdm_append_file_write(tdm_append_file *file, const void *data,
                                                size_t bytes);

/* What was written reaches the disk. */
TDM_MUST_CHECK tdm_status tdm_append_file_sync(tdm_append_file *file);

int64_t tdm_append_file_length(const tdm_append_file *file);

/* TDM_E_FORMAT where the file is shorter than that. */
TDM_MUST_CHECK tdm_status tdm_append_file_cut(tdm_append_file *file, int64_t bytes);

#endif
