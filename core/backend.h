/* A device: its memory, its streams of work, and the ops it runs (ops.h).
 *
 * Work put on a stream runs in order. Its results may be read only after stream_sync or after an
 * event recorded behind it; the CPU backend has a mode for tests that puts every op off until then.
 */
#ifndef TDM_CORE_BACKEND_H
#define TDM_CORE_BACKEND_H

#include "core/pool.h"
#include "core/status.h"

#include <stdbool.h>

typedef struct tdm_ops tdm_ops;
typedef struct tdm_backend tdm_backend;
typedef struct tdm_stream tdm_stream; /* NULL is the backend's own default stream */
typedef struct tdm_event tdm_event;

typedef struct tdm_backend_properties {
    char name[128];         /* of the device, in words */
    char instructions[128]; /* the instruction set in use, "" where that says nothing */
    int64_t memory_bytes;
    int64_t memory_free_bytes;
    bool host_memory; /* device pointers may be read by the host after a sync */
    bool bf16;        /* products in bfloat16 (compute TDM_BF16) */
} tdm_backend_properties;

/* Every slot is required. Functions may be called from one thread at a time. */
typedef struct tdm_backend_type {
    const char *name; /* "cpu", "gpu" */

    void (*destroy)(tdm_backend *backend);
    tdm_status (*properties)(tdm_backend *backend, tdm_backend_properties *out);

    /* Device memory, set to zero, aligned to TDM_ALIGNMENT. */
    tdm_status (*alloc)(tdm_backend *backend, size_t bytes, void *out);
    void (*free)(tdm_backend *backend, void *memory);

    /* Host memory that the device copies from at full speed. */
    tdm_status (*host_alloc)(tdm_backend *backend, size_t bytes, void *out);
    void (*host_free)(tdm_backend *backend, void *memory);

    /* The host's memory must stay as it is until the stream has passed the copy. */
    tdm_status (*copy_in)(tdm_backend *backend, void *device, const void *host, size_t bytes,
                          tdm_stream *stream);
    tdm_status (*copy_out)(tdm_backend *backend, void *host, const void *device, size_t bytes,
                           tdm_stream *stream);
    tdm_status (*copy)(tdm_backend *backend, void *to, const void *from, size_t bytes,
                       tdm_stream *stream);
    tdm_status (*zero)(tdm_backend *backend, void *device, size_t bytes, tdm_stream *stream);

    tdm_status (*stream_create)(tdm_backend *backend, tdm_stream **out);
    void (*stream_destroy)(tdm_backend *backend, tdm_stream *stream);
    tdm_status (*stream_sync)(tdm_backend *backend, tdm_stream *stream);

    tdm_status (*event_create)(tdm_backend *backend, tdm_event **out);
    void (*event_destroy)(tdm_backend *backend, tdm_event *event);
    tdm_status (*event_record)(tdm_backend *backend, tdm_event *event, tdm_stream *stream);
    tdm_status (*event_wait)(tdm_backend *backend, tdm_event *event, tdm_stream *stream);
    tdm_status (*event_sync)(tdm_backend *backend, tdm_event *event);
} tdm_backend_type;

struct tdm_backend {
    const tdm_backend_type *type;
    const tdm_ops *ops;
    tdm_pool *pool; /* borrowed */
};

/* The create functions of the backends. Each lives in its own folder; a build without the folder
 * links its stub, which answers TDM_E_UNSUPPORTED. `pool` is borrowed and must outlive the backend.
 */
TDM_MUST_CHECK tdm_status tdm_cpu_create(tdm_pool *pool, tdm_backend **out);
TDM_MUST_CHECK tdm_status tdm_gpu_create(tdm_pool *pool, int device, tdm_backend **out);

/* Tests: a CPU backend that runs nothing before a sync or an event. */
TDM_MUST_CHECK tdm_status tdm_cpu_create_deferred(tdm_pool *pool, tdm_backend **out);

/* NULL is allowed. */
void tdm_backend_destroy(tdm_backend *backend);

#endif
