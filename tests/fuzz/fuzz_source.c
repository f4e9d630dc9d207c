/* Any bytes as a plain, gzip or Zstandard file: read in pieces of two sizes, they are the same
 * bytes and end in the same way. */
#include "core/memory.h"
#include "data/source.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST ((size_t)1 << 20)

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Reads up to MOST bytes. */
static tdm_status read_all(const char *path, size_t step, unsigned char *out, size_t *size)
{
    tdm_source *source;
    *size = 0;
    TDM_TRY(tdm_source_open(path, NULL, &source));
    tdm_status status = TDM_OK;
    for (size_t got = 1; status == TDM_OK && got > 0 && *size < MOST; *size += got) {
        size_t wanted = step < MOST - *size ? step : MOST - *size;
        status = tdm_source_read(source, out + *size, wanted, &got);
        require(got <= wanted);
    }
    tdm_source_close(source);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char first[MOST], second[MOST];
    static int descriptor = -1;
    if (size < 1)
        return 0;
    if (descriptor < 0)
        descriptor = memfd_create("source", 0);
    require(descriptor >= 0 && ftruncate(descriptor, 0) == 0);
    require(pwrite(descriptor, data + 1, size - 1, 0) == (ssize_t)size - 1);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    size_t first_size, second_size;
    tdm_status a = read_all(path, MOST, first, &first_size);
    tdm_status b = read_all(path, (size_t)data[0] * 7 + 1, second, &second_size);
    require(a == b && (a == TDM_OK || a == TDM_E_DATA));
    size_t least = first_size < second_size ? first_size : second_size;
    require(a != TDM_OK || first_size == second_size);
    require(memcmp(first, second, least) == 0);
    require(tdm_memory_stats_get().live_bytes == 0);
    return 0;
}
