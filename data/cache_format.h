/* The layout of a cache file, little-endian; docs/FORMATS.md tells it to others.
 *
 *   header   64 bytes: magic, version, and a hash of the columns' names, types and widths
 *   blocks   each: the columns one after the other, row_records, bad records
 *   index    an entry a block, in the order of their numbers
 *   footer   32 bytes at the end of the file: where the index is, and its hash */
#ifndef TDM_DATA_CACHE_FORMAT_H
#define TDM_DATA_CACHE_FORMAT_H

#include <stdint.h>

#define TDM_CACHE_MAGIC   "TDMCACHE"
#define TDM_CACHE_VERSION 3

typedef struct tdm_cache_header {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
    uint64_t layout_hash;
    uint8_t padding[40];
} tdm_cache_header;

typedef struct tdm_cache_entry {
    uint64_t offset; /* of the block in the file */
    uint64_t bytes;
    uint64_t hash; /* XXH3-64 of them */
    int64_t rows;
    int64_t records;
    int64_t lines;
    int64_t first_line;
    int64_t stored_bytes;
    int64_t encoding_errors;
    int32_t file;
    uint32_t bad_count;
} tdm_cache_entry;

/* Before the reason and the text of each bad record. */
typedef struct tdm_cache_bad_record {
    int64_t line;
    int64_t record;
    int32_t file;
    int32_t column;
    int32_t kind;
    uint32_t reason_bytes;
    uint64_t text_bytes;
} tdm_cache_bad_record;

typedef struct tdm_cache_footer {
    uint64_t index_offset;
    int64_t block_count;
    uint64_t index_hash;
    char magic[8];
} tdm_cache_footer;

#endif
