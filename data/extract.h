/* From the text of a block to the columns that a featurizer makes of it. */
#ifndef TDM_DATA_EXTRACT_H
#define TDM_DATA_EXTRACT_H

#include "core/featurizer.h"
#include "core/pool.h"
#include "data/input.h"

typedef enum tdm_selection {
    TDM_SELECT_ALL = 0,
    TDM_SELECT_TRAINING = 1, /* what hold_out leaves */
    TDM_SELECT_HELD_OUT = 2,
} tdm_selection;

typedef struct tdm_extractor tdm_extractor;

/* `featurizer`, `input` and `pool` are borrowed. A record is held out where the XXH3-64 of its
 * bytes (line end excluded) falls below `hold_out` of the range: the same records in any file and
 * run. */
TDM_MUST_CHECK tdm_status tdm_extractor_create(const tdm_featurizer *featurizer, tdm_input *input,
                                               tdm_pool *pool, tdm_selection selection,
                                               double hold_out, tdm_extractor **out);
/* NULL is allowed. */
void tdm_extractor_destroy(tdm_extractor *extractor);

/* Keeps these columns' cells of every good record in extract->keys, as CSV: separated by commas,
 * quoted where they need it. `columns` is copied. Called once, like the next one in its place. */
TDM_MUST_CHECK tdm_status tdm_extractor_keep(tdm_extractor *extractor, const int32_t *columns,
                                             int count);
/* Keeps the cells of one column as they stand. */
TDM_MUST_CHECK tdm_status tdm_extractor_keep_text(tdm_extractor *extractor, int32_t column);

const tdm_featurizer *tdm_extractor_featurizer(const tdm_extractor *extractor);
/* Of selection and share: part of the key of a cache. */
uint64_t tdm_extractor_selection_hash(const tdm_extractor *extractor);
tdm_input *tdm_extractor_input(const tdm_extractor *extractor);

/* Fills *out (cleared first). Bad records come in the order of the file; a record that is not
 * selected is neither a row nor looked at further. Callable from every thread of the pool at once.
 */
TDM_MUST_CHECK tdm_status tdm_extract_block(tdm_extractor *extractor, const tdm_block_text *text,
                                            tdm_extract *out);

#endif
