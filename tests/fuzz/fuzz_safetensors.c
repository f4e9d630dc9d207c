/* Opens any bytes as a safetensors file. What opens must be readable to the last byte. */
#include "core/memory.h"
#include "core/safetensors.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void read_all(const tdm_safetensors *file, const uint8_t *data, size_t size)
{
    int64_t total = 0;
    for (int i = 0; i < tdm_safetensors_count(file); i++) {
        const tdm_safetensors_tensor *tensor = tdm_safetensors_get(file, i);
        require(tdm_safetensors_find(file, tensor->name) == i);
        require(tdm_shape_elements(&tensor->shape) * (int64_t)tdm_dtype_size(tensor->dtype) ==
                tensor->bytes);
        require(tensor->offset >= 0 && (size_t)(tensor->offset + tensor->bytes) <= size);
        unsigned char *bytes;
        require(tdm_alloc((size_t)tensor->bytes, 1, &bytes) == TDM_OK);
        require(tdm_safetensors_read(file, i, 0, bytes, (size_t)tensor->bytes) == TDM_OK);
        require(tensor->bytes == 0 ||
                memcmp(bytes, data + tensor->offset, (size_t)tensor->bytes) == 0);
        tdm_free(bytes);
        total += tensor->bytes;
    }
    require((size_t)total <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int descriptor = -1;
    if (descriptor < 0)
        descriptor = memfd_create("safetensors", 0);
    require(descriptor >= 0 && ftruncate(descriptor, 0) == 0);
    require(pwrite(descriptor, data, size, 0) == (ssize_t)size);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    tdm_safetensors *file;
    if (tdm_safetensors_open(path, &file) == TDM_OK)
        read_all(file, data, size);
    tdm_safetensors_close(file);
    require(tdm_memory_stats_get().live_bytes == 0);
    return 0;
}
