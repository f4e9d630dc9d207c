/* Where a verb writes a result that can be large: standard output, or the file that -o names, which
 * is whole or not there. */
#ifndef TDM_CLI_OUTPUT_H
#define TDM_CLI_OUTPUT_H

#include "core/status.h"

#include <stdbool.h>

typedef struct tdm_output tdm_output;

/* `path` NULL or "-": standard output. A file that is there already is TDM_E_ARG unless `force`;
 * pipes and devices are written to as they are. */
TDM_MUST_CHECK tdm_status tdm_output_open(const char *path, bool force, tdm_output **out);

/* True where what else there is to say must not go to standard output. */
bool tdm_output_is_stdout(const tdm_output *output);

TDM_MUST_CHECK tdm_status tdm_output_write(tdm_output *output, const void *data, size_t bytes);

/* True for a file, which can be written over until it is committed. */
bool tdm_output_is_file(const tdm_output *output);

/* Writes over bytes of a file from `offset` on. */
TDM_MUST_CHECK tdm_status tdm_output_patch(tdm_output *output, int64_t offset, const void *data,
                                           size_t bytes);

/* Lets a reader see what has been written; nothing for a file, which appears as a whole. */
TDM_MUST_CHECK tdm_status tdm_output_flush(tdm_output *output);

/* Puts the file in its place. */
TDM_MUST_CHECK tdm_status tdm_output_commit(tdm_output *output);

/* Without a commit, removes what was written. NULL is allowed. */
void tdm_output_close(tdm_output *output);

#endif
