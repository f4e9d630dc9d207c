/* The hash that turns a value into a row of its field's table. docs/FORMATS.md specifies it with
 * test vectors, so that another program can reproduce it.
 *
 *   salt  = XXH3-64(name of the field in UTF-8, seed = features.hash_seed)
 *   hash  = XXH3-64(bytes of the value, seed = salt)
 *   row   = 4 + floor(hash · buckets / 2^64)
 *
 * The last line gives every bucket ⌊2^64 / buckets⌋ or one more of the hashes, from their high
 * bits: there is no remainder to be biased by, and low bits are not favoured. */
#ifndef TDM_FEATURES_HASH_H
#define TDM_FEATURES_HASH_H

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Rows of every table that stand for no value. */
enum {
    TDM_ID_PADDING = 0,
    TDM_ID_MISSING = 1,
    TDM_ID_UNSEEN = 2,
    TDM_ID_RARE = 3,
    TDM_ID_FIRST = 4
};

static inline uint64_t tdm_field_salt(const char *name, size_t bytes, uint64_t hash_seed)
{
    return XXH3_64bits_withSeed(name, bytes, hash_seed);
}

/* Most values have four to eight bytes: that case of XXH3 is called by its own name, so that what
 * depends on the salt alone is computed once a column. */
static inline uint64_t tdm_value_hash(const char *value, size_t bytes, uint64_t salt)
{
    if (bytes - 4 <= 4)
        return XXH3_len_4to8_64b((const uint8_t *)value, bytes, XXH3_kSecret, salt);
    return XXH3_64bits_withSeed(value, bytes, salt);
}

static inline uint32_t tdm_hash_row(uint64_t hash, uint64_t buckets)
{
    return TDM_ID_FIRST + (uint32_t)(((unsigned __int128)hash * buckets) >> 64);
}

#endif
