/* What tandem features shows of a text recipe: sequences, masked or labelled, or what all of them
 * are like. */
#ifndef TDM_CLI_MASKED_ROWS_H
#define TDM_CLI_MASKED_ROWS_H

#include "cli/reading.h"

/* Prints the first `rows` sequences that training will see. */
TDM_MUST_CHECK tdm_status tdm_masked_rows_show(tdm_reading *reading, int64_t rows, bool json,
                                               const atomic_bool *cancel);

/* Reads all of an epoch. */
TDM_MUST_CHECK tdm_status tdm_masked_rows_stats(tdm_reading *reading, bool json,
                                                const atomic_bool *cancel);

#endif
