/* Writes TensorFlow's checkpoints, good and damaged ones, for tests. */
#ifndef TDM_TESTS_BUNDLE_RIG_H
#define TDM_TESTS_BUNDLE_RIG_H

#include "core/tensor.h"

#include <stdbool.h>

/* A tensor as the index describes it; `data` goes where it says. */
typedef struct tdm_test_entry {
    const char *name;
    int dtype; /* TensorFlow's number */
    tdm_shape shape;
    int shard;
    int64_t offset, size;
    const void *data;      /* [size]; NULL: nothing is written */
    uint32_t checksum_xor; /* spoils the checksum */
    bool sliced;
} tdm_test_entry;

typedef struct tdm_test_bundle {
    const tdm_test_entry *entries; /* in the order of their names */
    int count;
    int shards;
    int endianness;
    int compression;       /* of the data block */
    int entries_per_block; /* 0: all in one */
    bool no_header;
    uint32_t block_xor; /* spoils the data blocks' checksums */
} tdm_test_bundle;

/* Writes PREFIX.index and the shards, zeros where no tensor lies. */
void tdm_test_bundle_write(const char *prefix, const tdm_test_bundle *bundle);

#endif
