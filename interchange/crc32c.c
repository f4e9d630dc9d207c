#include "interchange/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* its bits reversed */
#define SLICES     8
#define MASK_DELTA 0xa282ead8u

/* tables[k][b]: byte b with k zero bytes behind it. */
static uint32_t tables[SLICES][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        tables[0][byte] = crc;
    }
    for (int slice = 1; slice < SLICES; slice++) {
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables[slice - 1][byte];
            tables[slice][byte] = before >> 8 ^ tables[0][before & 0xff];
        }
    }
}

uint32_t tdm_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    pthread_once(&tables_once, make_tables);
    const unsigned char *next = data;
    crc = ~crc;
    for (; bytes >= SLICES; bytes -= SLICES, next += SLICES) {
        uint32_t words[2];
        memcpy(words, next, sizeof words);
        words[0] ^= crc;
        crc = 0;
        for (int i = 0; i < SLICES; i++)
            crc ^= tables[SLICES - 1 - i][words[i / 4] >> 8 * (i % 4) & 0xff];
    }
    for (; bytes > 0; bytes--)
        crc = crc >> 8 ^ tables[0][(crc ^ *next++) & 0xff];
    return ~crc;
}

uint32_t tdm_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + MASK_DELTA;
}
