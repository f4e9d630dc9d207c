#include "data/order.h"

void tdm_shuffle(uint32_t *items, int64_t count, tdm_philox_key key, uint64_t sample,
                 uint32_t epoch)
{
    tdm_random_stream stream = {.key = key, .sample = sample, .epoch = epoch};
    for (int64_t last = count - 1; last > 0; last--) {
        uint32_t other = tdm_random_below(tdm_random_next(&stream), (uint32_t)(last + 1));
        uint32_t item = items[last];
        items[last] = items[other];
        items[other] = item;
    }
}
