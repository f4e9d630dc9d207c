/* The lines of files, some thousand at a time. */
#ifndef TDM_CLI_LINE_BATCHES_H
#define TDM_CLI_LINE_BATCHES_H

#include "core/config.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct tdm_line {
    const char *text; /* without its line feed */
    size_t bytes;
} tdm_line;

/* Lines of one file that follow each other. */
typedef struct tdm_line_batch {
    const char *name; /* of the file, for people */
    int64_t first;    /* the first line's number in it, from 1 */
    int64_t count;
    const tdm_line *lines; /* valid until the next batch */
} tdm_line_batch;

typedef struct tdm_line_reader tdm_line_reader;

/* The files that `names` stand for (data/paths.h) are read one after the other; "-" is standard
 * input, whose lines come as soon as they are there. A byte order mark at the front of a file is
 * skipped. `cancel` as for tdm_source_open(). */
TDM_MUST_CHECK tdm_status tdm_line_reader_create(const tdm_strings *names,
                                                 const atomic_bool *cancel, tdm_line_reader **out);
/* NULL is allowed. */
void tdm_line_reader_destroy(tdm_line_reader *reader);

/* The next lines; count 0 behind the last one. */
TDM_MUST_CHECK tdm_status tdm_line_reader_next(tdm_line_reader *reader, tdm_line_batch *batch);

/* Whether somebody may wait for the answer to the lines so far. */
bool tdm_line_reader_is_eager(const tdm_line_reader *reader);

/* The share of all stored bytes that have been read; NaN where their number is not known. */
double tdm_line_reader_share(const tdm_line_reader *reader);

#endif
