#include "data/order.h"

void tdm_shuffle(uint32_t *items, int64_t count, tdm_philox_key key, uint64_t sample,
                 uint32_t epoch)
{
    tdm_philox_words words = {{0}};
    uint32_t element = 0;
    for (int64_t last = count - 1; last > 0; last--) {
        if ((element & 3) == 0)
            words = tdm_random4(key, sample, epoch, element >> 2);
        uint32_t word = words.words[element & 3];
        int64_t other = (int64_t)(((uint64_t)word * (uint64_t)(last + 1)) >> 32);
        uint32_t item = items[last];
        items[last] = items[other];
        items[other] = item;
        element++;
    }
}
