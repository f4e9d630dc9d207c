/* Any bytes as a cache file. The first byte says whether magic, versions and checksums are put
 * right first, so that what lies behind them is reached. */
#include "core/memory.h"
#include "data/cache.h"
#include "data/cache_format.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const tdm_columns_layout layout = {.count = 2,
                                          .columns = {{"label", TDM_F32, 1}, {"ids", TDM_U32, 2}}};

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The header that this layout has, from a cache without blocks. */
static tdm_cache_header good_header(void)
{
    tdm_cache_header header = {0};
    tdm_cache_writer *writer;
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/fuzz-cache-%d", (int)getpid());
    require(tdm_cache_writer_create(path, &layout, &writer) == TDM_OK);
    require(tdm_cache_writer_commit(writer, 0) == TDM_OK);
    tdm_cache_writer_close(writer);
    FILE *file = fopen(path, "rb");
    require(file != NULL && fread(&header, sizeof header, 1, file) == 1);
    fclose(file);
    require(unlink(path) == 0);
    return header;
}

static void sign(unsigned char *file, size_t size)
{
    static tdm_cache_header header;
    if (header.version == 0)
        header = good_header();
    tdm_cache_footer footer;
    if (size < sizeof header + sizeof footer)
        return;
    memcpy(file, &header, sizeof header);
    unsigned char *end = file + size - sizeof footer;
    memcpy(&footer, end, sizeof footer);
    memcpy(footer.magic, TDM_CACHE_MAGIC, 8);
    size_t room = size - sizeof footer;
    footer.index_offset %= room + 1;
    footer.block_count %= (int64_t)((room - footer.index_offset) / sizeof(tdm_cache_entry)) + 1;
    if (footer.block_count < 0)
        footer.block_count = -footer.block_count;
    unsigned char *index = file + footer.index_offset;
    for (int64_t i = 0; i < footer.block_count; i++) {
        tdm_cache_entry entry;
        memcpy(&entry, index + (size_t)i * sizeof entry, sizeof entry);
        if (entry.offset > size || entry.bytes > size - entry.offset)
            continue;
        entry.hash = XXH3_64bits(file + entry.offset, entry.bytes);
        memcpy(index + (size_t)i * sizeof entry, &entry, sizeof entry);
    }
    size_t index_bytes = (size_t)footer.block_count * sizeof(tdm_cache_entry);
    footer.index_hash = XXH3_64bits(index, index_bytes);
    memcpy(end, &footer, sizeof footer);
}

static void read_blocks(const tdm_cache *cache)
{
    tdm_extract extract = {0};
    for (int64_t b = 0; b < tdm_cache_block_count(cache); b++) {
        if (tdm_cache_read(cache, b, &extract) != TDM_OK)
            continue;
        require(extract.rows >= 0 && (size_t)extract.rows <= extract.capacity);
        uint64_t sum = 0;
        for (int64_t r = 0; r < 2 * extract.rows; r++)
            sum += ((uint32_t *)extract.columns[1])[r];
        for (size_t i = 0; i < extract.bad_count; i++)
            sum += strlen(extract.bad[i].reason) + (extract.bad[i].text_bytes > 0);
        require(sum + 1 > 0);
    }
    tdm_extract_deinit(&extract);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int descriptor = -1;
    static unsigned char file[1 << 16];
    if (size < 1 || size > sizeof file)
        return 0;
    if (descriptor < 0)
        descriptor = memfd_create("cache", 0);
    memcpy(file, data + 1, size - 1);
    if (data[0] & 1)
        sign(file, size - 1);
    require(descriptor >= 0 && ftruncate(descriptor, 0) == 0);
    require(pwrite(descriptor, file, size - 1, 0) == (ssize_t)size - 1);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    tdm_cache *cache;
    require(tdm_cache_open(path, &layout, &cache) == TDM_OK);
    if (cache != NULL)
        read_blocks(cache);
    tdm_cache_close(cache);
    require(tdm_memory_stats_get().live_bytes == 0);
    return 0;
}
