/* What the beginning of an input tells of all of it: how many rows it gives, and what they take. */
#ifndef TDM_DATA_INPUT_SAMPLE_H
#define TDM_DATA_INPUT_SAMPLE_H

#include "data/extract.h"

/* All but the first are a byte of text. */
typedef struct tdm_input_sample {
    double text;          /* bytes, a stored byte; 0: nothing is known */
    double rows, tokens;  /* of windows; tokens 0 where rows have none */
    double extract_bytes; /* of memory, for what is extracted */
    double window_bytes;  /* of memory, for the order of a window */
    double parts;         /* that the rows fill, of a lane in batches */
} tdm_input_sample;

/* Reads some 4 MiB of text, and makes windows of `blocks` blocks of it. Of standard input nothing
 * is read, and nothing known. */
TDM_MUST_CHECK tdm_status tdm_input_sample_take(tdm_extractor *extractor, int blocks, int lanes,
                                                tdm_input_sample *out);

#endif
