#include "data/order.h"

#include "core/random_fill.h"

#define DRAWN 64 /* at a time */

void tdm_shuffle(uint32_t *items, int64_t count, tdm_philox_key key, uint64_t sample,
                 uint32_t epoch)
{
    uint32_t words[DRAWN];
    uint32_t element = 0;
    for (int64_t last = count - 1; last > 0; last--, element++) {
        if (element % DRAWN == 0)
            tdm_random_fill(key, sample, epoch, element / 4, DRAWN / 4, words);
        uint32_t other = tdm_random_below(words[element % DRAWN], (uint32_t)(last + 1));
        uint32_t item = items[last];
        items[last] = items[other];
        items[other] = item;
    }
}
