/* How tandem predict writes what a model says of labelled text. */
#ifndef TDM_CLI_LABEL_LINES_H
#define TDM_CLI_LABEL_LINES_H

#include "trainer/predictor.h"

/* Appends the answer to good record `record` of a block, with its line end:
 *   classes     the likeliest class, a comma, its probability
 *   multiple    so each class whose probability is above a half; "-" where none is
 *   regression  the number
 *   tokens      a line for each word, a tab and its class behind it, and an empty line
 * In JSON an object:
 *   classes     {"class":, "probability":, "probabilities": {class: probability, ...}}
 *   multiple    {"classes": [...], "probabilities": {...}}
 *   regression  {"value":}
 *   tokens      {"words": [{"word":, "class":, "probabilities": {...}}, ...]} */
TDM_MUST_CHECK tdm_status tdm_label_line(const tdm_label_spec *spec, const tdm_extract *block,
                                         const tdm_block_answers *answers, int64_t record,
                                         bool json, tdm_text *text);

#endif
