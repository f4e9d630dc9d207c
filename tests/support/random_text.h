/* Random texts that are a function of a seed and an index, for tests of text/. The same texts are
 * made by tests/golden/make_text_golden.py. */
#ifndef TDM_TESTS_RANDOM_TEXT_H
#define TDM_TESTS_RANDOM_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define TDM_RANDOM_TEXT_CHARS 31
#define TDM_RANDOM_TEXT_BYTES (4 * TDM_RANDOM_TEXT_CHARS)

/* Number `n` of SplitMix64 (Steele, Lea and Flood, 2014) from this seed. */
uint64_t tdm_random_number(uint64_t seed, uint64_t n);

/* Text `index` in UTF-8; returns its bytes. Its draws are the numbers from
 * (TDM_RANDOM_TEXT_CHARS + 1) * index on: the first, mod 32, is how many code points there are;
 * then for each of them, draw mod the number of ranges chooses one of random_ranges.inc, and draw /
 * 2^32 mod its size a member. */
size_t tdm_random_text(uint64_t seed, uint64_t index, char out[TDM_RANDOM_TEXT_BYTES]);

/* The same with some bytes changed, left out and doubled, so that most are not valid UTF-8. */
size_t tdm_random_bytes(uint64_t seed, uint64_t index, char out[TDM_RANDOM_TEXT_BYTES]);

#endif
