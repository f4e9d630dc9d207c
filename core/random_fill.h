/* Many random numbers of core/rng.h at once, in vectors where the CPU has them. */
#ifndef TDM_CORE_RANDOM_FILL_H
#define TDM_CORE_RANDOM_FILL_H

#include "core/rng.h"

#include <stdbool.h>

/* Groups of four words that are made together: `words` has room for a multiple of them. */
#define TDM_RANDOM_GROUPS 8

/* words[i] is element 4 * first + i of (key, sample, epoch), for at least 4 * groups of them,
 * rounded up to a multiple of 4 * TDM_RANDOM_GROUPS. The same bits as tdm_random(). */
void tdm_random_fill(tdm_philox_key key, uint64_t sample, uint32_t epoch, uint32_t first,
                     int64_t groups, uint32_t *words);

/* Tests: 0 the plain loop, 1 AVX2, 2 AVX-512; -1 lets the CPU decide. False where the CPU lacks
 * it. */
bool tdm_random_fill_force(int level);

#endif
