#include "tests/support/random_text.h"

#include "text/unicode.h"

#include <string.h>

static const struct {
    uint32_t first, last;
} ranges[] = {
#include "tests/support/random_ranges.inc"
};

uint64_t tdm_random_number(uint64_t seed, uint64_t n)
{
    uint64_t x = seed + (n + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

size_t tdm_random_text(uint64_t seed, uint64_t index, char out[TDM_RANDOM_TEXT_BYTES])
{
    uint64_t draws = (TDM_RANDOM_TEXT_CHARS + 1) * index;
    uint64_t count = tdm_random_number(seed, draws) % (TDM_RANDOM_TEXT_CHARS + 1);
    size_t bytes = 0;
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t draw = tdm_random_number(seed, draws + i);
        size_t range = draw % (sizeof ranges / sizeof ranges[0]);
        uint64_t member = (draw >> 32) % (ranges[range].last - ranges[range].first + 1);
        bytes += (size_t)tdm_utf8_write(ranges[range].first + (uint32_t)member, out + bytes);
    }
    return bytes;
}

size_t tdm_random_bytes(uint64_t seed, uint64_t index, char out[TDM_RANDOM_TEXT_BYTES])
{
    size_t bytes = tdm_random_text(seed, index, out);
    for (uint64_t i = 0; i < 3 && bytes > 1; i++) {
        uint64_t draw = tdm_random_number(~seed, 3 * index + i);
        size_t at = (draw >> 32) % (bytes - 1);
        switch (draw % 3) {
        case 0:
            out[at] = (char)(draw >> 8);
            break;
        case 1:
            memmove(out + at, out + at + 1, --bytes - at);
            break;
        default:
            out[at] = out[at + 1];
            break;
        }
    }
    return bytes;
}
