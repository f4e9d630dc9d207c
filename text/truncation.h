/* How sequences are cut to a length: the rules of Hugging Face's fast tokenizers. */
#ifndef TDM_TEXT_TRUNCATION_H
#define TDM_TEXT_TRUNCATION_H

#include "tandem/text.h"

#include <stdbool.h>

/* What is left of a text's and a pair's tokens when both together may have `budget` of them (below
 * 0: any number). Where nothing may be left both are 0. TDM_E_DATA where only_first or only_second
 * cannot reach that; `has_pair` false: there is no second text. */
TDM_MUST_CHECK tdm_status tdm_truncation_lengths(tdm_truncation truncation, int64_t budget,
                                                 bool has_pair, const int64_t counts[2],
                                                 int64_t lengths[2]);

/* The parts of `count` tokens that have at most `length` of them, and overlap by `stride`: the
 * first is what is kept, the others are what overflows, in order; from the end on where `left`. At
 * most count + 1 are written to `windows`; returns how many. stride < length, or length is 0: then
 * all overflows at once. */
int64_t tdm_truncation_windows(int64_t count, int64_t length, int64_t stride, bool left,
                               tdm_text_range *windows);

#endif
