/* CRC-32C (Castagnoli; RFC 3720, appendix B.4). */
#ifndef TDM_INTERCHANGE_CRC32C_H
#define TDM_INTERCHANGE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `crc`'s bytes, 0 where there are none, and these behind them. From any thread. */
uint32_t tdm_crc32c(uint32_t crc, const void *data, size_t bytes);

/* As leveldb stores it, so that a checksum of data that holds checksums stays a good one. */
uint32_t tdm_crc32c_mask(uint32_t crc);

#endif
