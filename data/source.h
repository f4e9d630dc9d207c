/* One input file as a stream of bytes: plain, gzip (also several members in one file), Zstandard,
 * or standard input ("-"), which may be compressed too. What it is, its first bytes tell. */
#ifndef TDM_DATA_SOURCE_H
#define TDM_DATA_SOURCE_H

#include "core/status.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef enum tdm_compression {
    TDM_COMPRESSION_NONE = 0,
    TDM_COMPRESSION_GZIP = 1,
    TDM_COMPRESSION_ZSTD = 2,
} tdm_compression;

typedef struct tdm_source tdm_source;

/* `cancel` may be NULL; where it becomes true, a read that waits for standard input or a pipe ends
 * with TDM_E_CANCELLED. Missing files, folders and files without permission are errors that name
 * them.
 */
TDM_MUST_CHECK tdm_status tdm_source_open(const char *path, const atomic_bool *cancel,
                                          tdm_source **out);

/* Reads up to `bytes` bytes of the uncompressed stream: as many, unless it ends or is eager; *got
 * is 0 only at its end. Truncated and corrupt streams are TDM_E_DATA with the file's name. */
TDM_MUST_CHECK tdm_status tdm_source_read(tdm_source *source, void *buffer, size_t bytes,
                                          size_t *got);

/* From now on a read answers with what is there instead of waiting for all that was asked for. */
void tdm_source_set_eager(tdm_source *source);

tdm_compression tdm_source_compression(const tdm_source *source);

/* The file's length and time of modification as they were when it was opened; false for standard
 * input, pipes and other files that have none. */
bool tdm_source_identity(const tdm_source *source, int64_t *bytes, int64_t *modified_ns);

/* Bytes of the file itself that have been used so far. */
int64_t tdm_source_stored_position(const tdm_source *source);

/* NULL is allowed. */
void tdm_source_close(tdm_source *source);

#endif
