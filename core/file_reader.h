/* A file whose bytes are read in any order. */
#ifndef TDM_CORE_FILE_READER_H
#define TDM_CORE_FILE_READER_H

#include "core/status.h"

typedef struct tdm_file_reader {
    char *path;
    int descriptor;
    int64_t bytes;
} tdm_file_reader;

/* Opens a plain file. On failure nothing is left to close. */
TDM_MUST_CHECK tdm_status tdm_file_reader_open(const char *path, tdm_file_reader *out);

/* One of zeros is allowed. */
void tdm_file_reader_close(tdm_file_reader *reader);

/* Reads exactly `bytes` bytes from byte `offset` on: TDM_E_FORMAT where the file has fewer. May be
 * called from several threads at a time. */
TDM_MUST_CHECK tdm_status tdm_file_reader_read(const tdm_file_reader *reader, int64_t offset,
                                               void *buffer, size_t bytes);

#endif
