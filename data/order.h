/* Orders that are pure functions of (seed, epoch, what is ordered). */
#ifndef TDM_DATA_ORDER_H
#define TDM_DATA_ORDER_H

#include "core/rng.h"

/* Permutes items in place (Fisher and Yates), the i-th draw being element i of (key, sample,
 * epoch). */
void tdm_shuffle(uint32_t *items, int64_t count, tdm_philox_key key, uint64_t sample,
                 uint32_t epoch);

#endif
