/* The distinct ids of a batch, field by field (tdm_distinct_ids in core/ops.h), found by the CPU so
 * that a device only has to add up rows. */
#ifndef TDM_FEATURES_DISTINCT_H
#define TDM_FEATURES_DISTINCT_H

#include "core/batch.h"

/* What one thread needs. */
typedef struct tdm_distinct_scratch {
    uint32_t *slots; /* [1 << slot_bits]: a hash table of distinct indices + 1 */
    int slot_bits;
    int32_t *indices; /* [batch] the distinct index of each value, -1 for padding */
} tdm_distinct_scratch;

TDM_MUST_CHECK tdm_status tdm_distinct_scratch_init(tdm_distinct_scratch *scratch,
                                                    int64_t batch_size);
void tdm_distinct_scratch_deinit(tdm_distinct_scratch *scratch);

/* Appends the four tensors, the next indices behind "ids". */
void tdm_distinct_layout_add(tdm_batch_layout *layout, int32_t fields);

/* Fills the part of `field` from tensor `ids` (u32 [fields, batch]). */
void tdm_find_distinct(tdm_batch *batch, int ids, int32_t field, tdm_distinct_scratch *scratch);

#endif
