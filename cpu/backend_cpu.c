/* The direct mode: an op has run when its function returns, so streams and events have nothing to
 * do. */
#include "cpu/backend_cpu.h"

#include "core/memory.h"
#include "cpu/bf16_products.h"

#include <dnnl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Copies from this size on are cut into tiles. */
#define COPY_TILE_BYTES ((size_t)256 << 10)

static void cpu_destroy(tdm_backend *backend)
{
    tdm_cpu_deinit(tdm_cpu(backend));
    tdm_free(backend);
}

/* The kernel's name of the processor, or "CPU". */
static void read_device_name(char *name, size_t capacity)
{
    snprintf(name, capacity, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL)
        return;
    char line[256];
    while (fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        colon[1 + strcspn(colon + 1, "\n")] = '\0';
        snprintf(name, capacity, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    fclose(file);
}

static tdm_status cpu_properties(tdm_backend *backend, tdm_backend_properties *out)
{
    const dnnl_version_t *version = dnnl_version();
    int64_t page = sysconf(_SC_PAGESIZE);
    *out = (tdm_backend_properties){.memory_bytes = sysconf(_SC_PHYS_PAGES) * page,
                                    .memory_free_bytes = sysconf(_SC_AVPHYS_PAGES) * page,
                                    .host_memory = true,
                                    .bf16 = tdm_cpu(backend)->bf16};
    read_device_name(out->name, sizeof out->name);
    snprintf(out->instructions, sizeof out->instructions, "%s, oneDNN %d.%d.%d",
             tdm_cpu(backend)->kernels->name, version->major, version->minor, version->patch);
    return TDM_OK;
}

static tdm_status cpu_alloc(tdm_backend *backend, size_t bytes, void *out)
{
    (void)backend;
    return tdm_alloc(bytes, 1, out);
}

static void cpu_free(tdm_backend *backend, void *memory)
{
    (void)backend;
    tdm_free(memory);
}

typedef struct copy_job {
    char *to;
    const char *from; /* NULL: zeroes */
    size_t bytes;
} copy_job;

static void copy_tile(void *context, int64_t index)
{
    const copy_job *job = context;
    size_t begin = (size_t)index * COPY_TILE_BYTES;
    size_t bytes = job->bytes - begin < COPY_TILE_BYTES ? job->bytes - begin : COPY_TILE_BYTES;
    if (job->from == NULL)
        memset(job->to + begin, 0, bytes);
    else
        memcpy(job->to + begin, job->from + begin, bytes);
}

static tdm_status run_copy(tdm_backend *backend, void *to, const void *from, size_t bytes)
{
    copy_job job = {.to = to, .from = from, .bytes = bytes};
    tdm_pool_for(backend->pool, (int64_t)((bytes + COPY_TILE_BYTES - 1) / COPY_TILE_BYTES),
                 copy_tile, &job);
    return TDM_OK;
}

static tdm_status cpu_copy(tdm_backend *backend, void *to, const void *from, size_t bytes,
                           tdm_stream *stream)
{
    (void)stream;
    return run_copy(backend, to, from, bytes);
}

static tdm_status cpu_zero(tdm_backend *backend, void *device, size_t bytes, tdm_stream *stream)
{
    (void)stream;
    return run_copy(backend, device, NULL, bytes);
}

/* Streams and events are one byte each, so that every handle is its own. */
static tdm_status cpu_stream_create(tdm_backend *backend, tdm_stream **out)
{
    (void)backend;
    return tdm_alloc(1, 1, out);
}

static void cpu_stream_destroy(tdm_backend *backend, tdm_stream *stream)
{
    (void)backend;
    tdm_free(stream);
}

static tdm_status cpu_stream_sync(tdm_backend *backend, tdm_stream *stream)
{
    (void)backend;
    (void)stream;
    return TDM_OK;
}

static tdm_status cpu_event_create(tdm_backend *backend, tdm_event **out)
{
    (void)backend;
    return tdm_alloc(1, 1, out);
}

static void cpu_event_destroy(tdm_backend *backend, tdm_event *event)
{
    (void)backend;
    tdm_free(event);
}

static tdm_status cpu_event_stream(tdm_backend *backend, tdm_event *event, tdm_stream *stream)
{
    (void)backend;
    (void)event;
    (void)stream;
    return TDM_OK;
}

static tdm_status cpu_event_sync(tdm_backend *backend, tdm_event *event)
{
    (void)backend;
    (void)event;
    return TDM_OK;
}

const tdm_backend_type tdm_cpu_direct = {
    .name = "cpu",
    .destroy = cpu_destroy,
    .properties = cpu_properties,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .host_alloc = cpu_alloc,
    .host_free = cpu_free,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_sync = cpu_stream_sync,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_stream,
    .event_wait = cpu_event_stream,
    .event_sync = cpu_event_sync,
};

const tdm_ops tdm_cpu_direct_ops = {
#define DIRECT_OP(name, kind) .name = tdm_cpu_##name,
    TDM_OPS_LIST(DIRECT_OP)
#undef DIRECT_OP
};

void tdm_cpu_init(tdm_cpu_backend *backend, tdm_pool *pool, const tdm_backend_type *type,
                  const tdm_ops *ops)
{
    backend->base = (tdm_backend){.type = type, .ops = ops, .pool = pool};
    backend->kernels = tdm_kernels_best();
    backend->bf16 = tdm_cpu_has_bf16();
}

void tdm_cpu_deinit(tdm_cpu_backend *backend)
{
    tdm_free(backend->scratch);
    tdm_bf16_products_destroy(backend->bf16_products);
}

tdm_status tdm_cpu_create(tdm_pool *pool, tdm_backend **out)
{
    tdm_cpu_backend *backend;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *backend, &backend));
    tdm_cpu_init(backend, pool, &tdm_cpu_direct, &tdm_cpu_direct_ops);
    *out = &backend->base;
    return TDM_OK;
}

tdm_status tdm_cpu_use_kernels(tdm_backend *backend, const char *name)
{
    const tdm_kernels *kernels = tdm_kernels_named(name);
    TDM_FAIL_IF(kernels == NULL, TDM_E_UNSUPPORTED, "this CPU does not run the kernels \"%s\"",
                name);
    tdm_cpu(backend)->kernels = kernels;
    return TDM_OK;
}

tdm_status tdm_cpu_scratch(tdm_cpu_backend *backend, size_t bytes, void *out)
{
    if (bytes > backend->scratch_bytes) {
        tdm_free(backend->scratch);
        backend->scratch_bytes = 0;
        TDM_TRY(tdm_alloc(bytes, 1, &backend->scratch));
        backend->scratch_bytes = bytes;
    }
    memcpy(out, &backend->scratch, sizeof backend->scratch);
    return TDM_OK;
}

tdm_status tdm_cpu_need_f32(const char *op, const tdm_matrix *matrices, int count)
{
    for (int i = 0; i < count; i++) {
        TDM_FAIL_IF(matrices[i].dtype != TDM_F32, TDM_E_UNSUPPORTED,
                    "the op %s of the CPU does not compute in %s: use precision fp32", op,
                    tdm_dtype_name(matrices[i].dtype));
    }
    return TDM_OK;
}

tdm_status tdm_cpu_need_bf16(const tdm_backend *backend)
{
    TDM_FAIL_IF(!((const tdm_cpu_backend *)(const void *)backend)->bf16, TDM_E_UNSUPPORTED,
                "this CPU has no products in bf16 (AVX512_BF16 or AMX_BF16): set "
                "train.precision: fp32");
    return TDM_OK;
}
