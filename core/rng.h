/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). A number is a pure function of what it is for, so masks, dropout and order
 * repeat on any number of threads and ranks and after any restart.
 *
 *   key     = (seed folded to 32 bits, purpose << 16 | layer)
 *   counter = (element >> 2, sample low, sample high, epoch | occurrence << 16)
 *   word    = element & 3 */
#ifndef TDM_CORE_RNG_H
#define TDM_CORE_RNG_H

#include <stdint.h>

typedef enum tdm_purpose {
    TDM_PURPOSE_INIT = 1,
    TDM_PURPOSE_BLOCK_ORDER = 2,
    TDM_PURPOSE_ROW_ORDER = 3,
    TDM_PURPOSE_DROPOUT = 4,
    TDM_PURPOSE_SYNTH = 5,
    TDM_PURPOSE_MASK = 6,
    TDM_PURPOSE_SEQUENCES = 7,
} tdm_purpose;

typedef struct tdm_philox_key {
    uint32_t words[2];
} tdm_philox_key;

typedef struct tdm_philox_words {
    uint32_t words[4];
} tdm_philox_words;

static inline tdm_philox_key tdm_philox_make_key(uint64_t seed, tdm_purpose purpose, uint32_t layer)
{
    tdm_philox_key key = {
        {(uint32_t)(seed ^ (seed >> 32)), (uint32_t)purpose << 16 | (layer & 0xffffu)}};
    return key;
}

static inline tdm_philox_words tdm_philox(tdm_philox_key key, tdm_philox_words counter)
{
    uint32_t k0 = key.words[0], k1 = key.words[1];
    uint32_t c0 = counter.words[0], c1 = counter.words[1];
    uint32_t c2 = counter.words[2], c3 = counter.words[3];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    tdm_philox_words out = {{c0, c1, c2, c3}};
    return out;
}

/* Elements 4 * group .. 4 * group + 3 of `sample` in `epoch`. */
static inline tdm_philox_words tdm_random4(tdm_philox_key key, uint64_t sample, uint32_t epoch,
                                           uint32_t group)
{
    tdm_philox_words counter = {{group, (uint32_t)sample, (uint32_t)(sample >> 32), epoch}};
    return tdm_philox(key, counter);
}

static inline uint32_t tdm_random(tdm_philox_key key, uint64_t sample, uint32_t epoch,
                                  uint32_t element)
{
    return tdm_random4(key, sample, epoch, element >> 2).words[element & 3];
}

/* The elements of (key, sample, epoch) one after another. */
typedef struct tdm_random_stream {
    tdm_philox_key key;
    uint64_t sample;
    uint32_t epoch;
    uint32_t element; /* the next one, 0 at the beginning */
    tdm_philox_words words;
} tdm_random_stream;

static inline uint32_t tdm_random_next(tdm_random_stream *stream)
{
    uint32_t element = stream->element++;
    if ((element & 3) == 0)
        stream->words = tdm_random4(stream->key, stream->sample, stream->epoch, element >> 2);
    return stream->words.words[element & 3];
}

/* 0 .. count - 1 of a word. */
static inline uint32_t tdm_random_below(uint32_t word, uint32_t count)
{
    return (uint32_t)(((uint64_t)word * count) >> 32);
}

/* [0, 1): 24 bits, each value exact in float. */
static inline float tdm_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

#endif
