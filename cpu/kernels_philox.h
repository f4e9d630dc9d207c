/* tdm_philox for vectors, for the sources of the kernels: the draws of one row. */
#ifndef TDM_CPU_KERNELS_PHILOX_H
#define TDM_CPU_KERNELS_PHILOX_H

#include "cpu/kernels_vector.h"

typedef uint32_t words32 __attribute__((vector_size(WIDTH * 4)));

#if defined(__SSE2__)
typedef uint64_t words __attribute__((vector_size(WIDTH * 4)));

static ALWAYS_INLINE words multiply_low(words a, uint64_t factor)
{
    return (words)MM(mul_epu32)((mm_words)a, (mm_words)((words){0} + factor));
}

#define ROUNDS 10

/* What the rounds of tdm_philox have in common for one row. */
typedef struct philox_row {
    words sample_low, sample_high, epoch;
    words keys[ROUNDS][2];
} philox_row;

static ALWAYS_INLINE philox_row philox_start(const tdm_dropout_row *row)
{
    philox_row start;
    start.sample_low = (words){0} + (uint32_t)row->sample;
    start.sample_high = (words){0} + (uint32_t)(row->sample >> 32);
    start.epoch = (words){0} + row->epoch;
    uint32_t k0 = row->key.words[0], k1 = row->key.words[1];
    for (int round = 0; round < ROUNDS; round++) {
        start.keys[round][0] = (words){0} + k0;
        start.keys[round][1] = (words){0} + k1;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return start;
}

/* tdm_philox for WIDTH / 2 groups, one in the lower half of each lane; the upper halves hold what
 * is left over, which no step looks at. */
static ALWAYS_INLINE void philox_lanes(const philox_row *row, words groups, words out[4])
{
    words c0 = groups, c1 = row->sample_low, c2 = row->sample_high, c3 = row->epoch;
    for (int round = 0; round < ROUNDS; round++) {
        words p0 = multiply_low(c0, 0xD2511F53u), p1 = multiply_low(c2, 0xCD9E8D57u);
        c0 = (p1 >> 32) ^ c1 ^ row->keys[round][0];
        c2 = (p0 >> 32) ^ c3 ^ row->keys[round][1];
        c1 = p1;
        c3 = p0;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The words of WIDTH groups that begin with `group`, in the order of their elements. Word k of a
 * 128-bit block q is that of group k · WIDTH / 4 + q, so that turning 4 × 4 blocks orders them. */
static ALWAYS_INLINE void philox_words(const philox_row *row, uint32_t group, words32 out[4])
{
    words even = {0}, odd, even_words[4], odd_words[4];
    for (uint32_t lane = 0; lane < WIDTH / 2; lane++)
        even[lane] = lane / 2 + lane % 2 * (WIDTH / 2);
    even += group;
    odd = even + WIDTH / 4;
    philox_lanes(row, even, even_words);
    philox_lanes(row, odd, odd_words);
    mm_words all[4];
    for (int i = 0; i < 4; i++)
        all[i] = (mm_words)((even_words[i] & 0xffffffffu) | odd_words[i] << 32);
    mm_words low01 = MM(unpacklo_epi32)(all[0], all[1]);
    mm_words low23 = MM(unpacklo_epi32)(all[2], all[3]);
    mm_words high01 = MM(unpackhi_epi32)(all[0], all[1]);
    mm_words high23 = MM(unpackhi_epi32)(all[2], all[3]);
    out[0] = (words32)MM(unpacklo_epi64)(low01, low23);
    out[1] = (words32)MM(unpackhi_epi64)(low01, low23);
    out[2] = (words32)MM(unpacklo_epi64)(high01, high23);
    out[3] = (words32)MM(unpackhi_epi64)(high01, high23);
}

#else

typedef tdm_dropout_row philox_row;

static inline philox_row philox_start(const tdm_dropout_row *row)
{
    return *row;
}

static inline void philox_words(const philox_row *row, uint32_t group, words32 out[4])
{
    for (uint32_t i = 0; i < WIDTH; i++) {
        tdm_philox_words drawn = tdm_random4(row->key, row->sample, row->epoch, group + i);
        for (uint32_t word = 0; word < 4; word++)
            out[(4 * i + word) / WIDTH][(4 * i + word) % WIDTH] = drawn.words[word];
    }
}

#endif

/* All ones where an element is kept. */
static ALWAYS_INLINE mask kept_mask(const tdm_dropout_row *row, words32 drawn)
{
    return (mask)((mask)(drawn >> 8) >= (int32_t)row->threshold);
}

#endif
