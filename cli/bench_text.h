/* What tandem bench features measures of a text recipe: text, or cached tokens, to masked
 * batches. */
#ifndef TDM_CLI_BENCH_TEXT_H
#define TDM_CLI_BENCH_TEXT_H

#include "cli/reading.h"

/* Measures and prints. `cache`: from the cache, too. */
TDM_MUST_CHECK tdm_status tdm_bench_text(tdm_reading *reading, bool cache, bool json,
                                         const atomic_bool *cancel);

#endif
