/* Any bytes as features.json. What loads, saved and loaded again, is the same. */
#include "core/file.h"
#include "core/memory.h"
#include "features/feature_spec.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static uint64_t hash_of(const tdm_feature_spec *spec, const tdm_record_format *format)
{
    uint64_t hash;
    require(tdm_feature_spec_hash(spec, format, &hash) == TDM_OK);
    require(spec->label >= 0 && spec->label < format->column_count);
    for (int32_t i = 0; i < spec->field_count; i++)
        require(spec->fields[i].column >= 0 && spec->fields[i].column < format->column_count);
    for (int32_t i = 0; i < spec->dense_count; i++)
        require(spec->dense[i].column >= 0 && spec->dense[i].column < format->column_count);
    return hash;
}

static void save_and_load(const tdm_feature_spec *spec, const tdm_record_format *format)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/fuzz-features-%d.json", (int)getpid());
    tdm_feature_spec *again;
    tdm_record_format *again_format;
    require(tdm_feature_spec_save(spec, format, path) == TDM_OK);
    require(tdm_feature_spec_load(path, &again, &again_format) == TDM_OK);
    require(hash_of(spec, format) == hash_of(again, again_format));
    tdm_feature_spec_destroy(again);
    tdm_record_format_destroy(again_format);
    require(tdm_file_remove(path) == TDM_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int descriptor = -1;
    if (descriptor < 0)
        descriptor = memfd_create("features", 0);
    require(descriptor >= 0 && ftruncate(descriptor, 0) == 0);
    require(pwrite(descriptor, data, size, 0) == (ssize_t)size);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    tdm_feature_spec *spec;
    tdm_record_format *format;
    if (tdm_feature_spec_load(path, &spec, &format) == TDM_OK)
        save_and_load(spec, format);
    tdm_feature_spec_destroy(spec);
    tdm_record_format_destroy(format);
    require(tdm_memory_stats_get().live_bytes == 0);
    return 0;
}
