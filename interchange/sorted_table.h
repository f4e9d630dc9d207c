/* Sorted tables of keys and values, as leveldb lays them out and TensorFlow writes its checkpoint
 * indexes (https://github.com/google/leveldb/blob/main/doc/table_format.md;
 * tensorflow/core/lib/io).
 *
 *   data blocks
 *   meta block, a block of no entries
 *   index block   for each data block a key that is not before its last one, and its handle:
 *                 where it begins and how many bytes it has, two varints
 *   footer        48 bytes: the handles of meta and index block, zeros, 8 bytes of magic
 *
 * A block is entries, each: bytes shared with the key before, further bytes of the key, bytes of
 * the value (varints), those bytes of the key, the value; then the offsets of entries that share
 * nothing, and their count (32 bits, little-endian). Behind it stand the kind of compression, one
 * byte, and the masked CRC-32C of the block and that byte. */
#ifndef TDM_INTERCHANGE_SORTED_TABLE_H
#define TDM_INTERCHANGE_SORTED_TABLE_H

#include "core/status.h"
#include "interchange/protobuf.h"

/* Called for each entry; key and value hold for the call. */
typedef tdm_status (*tdm_sorted_table_take)(void *context, const char *key, size_t key_bytes,
                                            tdm_wire value);

/* Reads a table that lies in memory, its entries in ascending order. `name` stands for the file in
 * messages. TDM_E_FORMAT for what is damaged: checksums, lengths and the order of keys are checked.
 * TDM_E_UNSUPPORTED for compressed blocks. A failing `take` ends the reading. */
TDM_MUST_CHECK tdm_status tdm_sorted_table_read(const void *data, size_t bytes, const char *name,
                                                tdm_sorted_table_take take, void *context);

#endif
