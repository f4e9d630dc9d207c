/* What tandem tokenize --stats tells of a text: how well a vocabulary fits it. */
#ifndef TDM_CLI_TOKEN_STATS_H
#define TDM_CLI_TOKEN_STATS_H

#include "cli/line_batches.h"
#include "tandem/text.h"

typedef struct tdm_token_stats tdm_token_stats;

/* The tokenizer is borrowed. */
TDM_MUST_CHECK tdm_status tdm_token_stats_create(const tdm_tokenizer *tokenizer,
                                                 tdm_token_stats **out);
/* NULL is allowed. */
void tdm_token_stats_destroy(tdm_token_stats *stats);

/* Takes in the lines of a batch, encoded with offsets from these inputs, without truncation and
 * without what overflows. */
TDM_MUST_CHECK tdm_status tdm_token_stats_add(tdm_token_stats *stats, const tdm_line_batch *batch,
                                              const tdm_text_input *inputs,
                                              const tdm_encodings *encodings);

/* Prints the result on standard output. */
TDM_MUST_CHECK tdm_status tdm_token_stats_print(const tdm_token_stats *stats, bool json);

#endif
