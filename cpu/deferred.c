/* The deferred mode, for tests: everything that is put on a stream is queued with a copy of its
 * arguments, and runs only when somebody waits for it. Code that reads results too early, or frees
 * or changes what a queued op still needs, then fails on the CPU as it would on a GPU. */
#include "cpu/backend_cpu.h"

#include "core/memory.h"

typedef struct copy_args {
    void *to;
    const void *from; /* NULL: zeroes */
    size_t bytes;
} copy_args;

typedef enum item_kind {
    ITEM_COPY,
#define ITEM_KIND(name, need) ITEM_##name,
    TDM_OPS_LIST(ITEM_KIND)
#undef ITEM_KIND
} item_kind;

typedef struct queue_item {
    struct queue_item *next;
    item_kind kind;
    union {
        copy_args copy;
#define ITEM_ARGS(name, need) tdm_##name##_args name;
        TDM_OPS_LIST(ITEM_ARGS)
#undef ITEM_ARGS
    } args;
} queue_item;

typedef struct deferred_stream {
    struct deferred_stream *next;
    int64_t number; /* never used twice, so that an event may outlive its stream */
    queue_item *first;
    queue_item **last;
    int64_t queued, done; /* counts of items since the start */
} deferred_stream;

typedef struct deferred_event {
    int64_t stream; /* number */
    int64_t count;  /* items that were queued when it was recorded */
} deferred_event;

typedef struct deferred_backend {
    tdm_cpu_backend cpu;
    deferred_stream default_stream; /* the head of the list of streams */
    int64_t next_number;
} deferred_backend;

static deferred_backend *deferred_get(tdm_backend *backend)
{
    return (deferred_backend *)(void *)backend;
}

static deferred_stream *stream_get(tdm_backend *backend, tdm_stream *stream)
{
    return stream == NULL ? &deferred_get(backend)->default_stream
                          : (deferred_stream *)(void *)stream;
}

static void stream_init(deferred_backend *deferred, deferred_stream *stream)
{
    stream->number = deferred->next_number++;
    stream->last = &stream->first;
}

static queue_item *stream_pop(deferred_stream *stream)
{
    queue_item *item = stream->first;
    stream->first = item->next;
    if (stream->first == NULL)
        stream->last = &stream->first;
    stream->done++;
    return item;
}

static void stream_deinit(deferred_stream *stream)
{
    while (stream->first != NULL)
        tdm_free(stream_pop(stream));
}

static tdm_status queue(tdm_backend *backend, tdm_stream *handle, const queue_item *item)
{
    deferred_stream *stream = stream_get(backend, handle);
    queue_item *copy;
    TDM_TRY(tdm_alloc(1, sizeof *copy, &copy));
    *copy = *item;
    *stream->last = copy;
    stream->last = &copy->next;
    stream->queued++;
    return TDM_OK;
}

static tdm_status run_item(tdm_backend *backend, const queue_item *item)
{
    switch (item->kind) {
    case ITEM_COPY:
        if (item->args.copy.from == NULL)
            return tdm_cpu_direct.zero(backend, item->args.copy.to, item->args.copy.bytes, NULL);
        return tdm_cpu_direct.copy(backend, item->args.copy.to, item->args.copy.from,
                                   item->args.copy.bytes, NULL);
#define RUN_OP(name, need)                                                                         \
    case ITEM_##name:                                                                              \
        return tdm_cpu_direct_ops.name(backend, &item->args.name, NULL);
        TDM_OPS_LIST(RUN_OP)
#undef RUN_OP
    }
    return tdm_fail(TDM_E_STATE, "a queued item is of no kind");
}

/* Runs the stream until `count` of its items are done; goes on behind one that fails. */
static tdm_status run_until(tdm_backend *backend, deferred_stream *stream, int64_t count)
{
    tdm_error error = {0};
    while (stream->done < count) {
        queue_item *item = stream_pop(stream);
        tdm_status status = run_item(backend, item);
        if (status != TDM_OK)
            tdm_error_keep(&error, status);
        tdm_free(item);
    }
    return error.status == TDM_OK ? TDM_OK : tdm_error_raise(&error);
}

#define DEFER_OP(name, need)                                                                       \
    static tdm_status defer_##name(tdm_backend *backend, const tdm_##name##_args *args,            \
                                   tdm_stream *stream)                                             \
    {                                                                                              \
        return queue(backend, stream, &(queue_item){.kind = ITEM_##name, .args.name = *args});     \
    }
TDM_OPS_LIST(DEFER_OP)
#undef DEFER_OP

static const tdm_ops deferred_ops = {
#define DEFERRED_SLOT(name, need) .name = defer_##name,
    TDM_OPS_LIST(DEFERRED_SLOT)
#undef DEFERRED_SLOT
};

static tdm_status deferred_copy(tdm_backend *backend, void *to, const void *from, size_t bytes,
                                tdm_stream *stream)
{
    return queue(backend, stream, &(queue_item){.kind = ITEM_COPY, .args.copy = {to, from, bytes}});
}

static tdm_status deferred_zero(tdm_backend *backend, void *device, size_t bytes,
                                tdm_stream *stream)
{
    return deferred_copy(backend, device, NULL, bytes, stream);
}

static void deferred_destroy(tdm_backend *backend)
{
    deferred_backend *deferred = deferred_get(backend);
    deferred_stream *stream = deferred->default_stream.next;
    while (stream != NULL) {
        deferred_stream *next = stream->next;
        stream_deinit(stream);
        tdm_free(stream);
        stream = next;
    }
    stream_deinit(&deferred->default_stream);
    tdm_cpu_deinit(&deferred->cpu);
    tdm_free(deferred);
}

static tdm_status deferred_properties(tdm_backend *backend, tdm_backend_properties *out)
{
    return tdm_cpu_direct.properties(backend, out);
}

static tdm_status deferred_alloc(tdm_backend *backend, size_t bytes, void *out)
{
    return tdm_cpu_direct.alloc(backend, bytes, out);
}

static void deferred_free(tdm_backend *backend, void *memory)
{
    tdm_cpu_direct.free(backend, memory);
}

static tdm_status deferred_stream_create(tdm_backend *backend, tdm_stream **out)
{
    deferred_backend *deferred = deferred_get(backend);
    deferred_stream *stream;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *stream, &stream));
    stream_init(deferred, stream);
    stream->next = deferred->default_stream.next;
    deferred->default_stream.next = stream;
    *out = (tdm_stream *)(void *)stream;
    return TDM_OK;
}

/* What is still queued is dropped: nobody waited for it. */
static void deferred_stream_destroy(tdm_backend *backend, tdm_stream *handle)
{
    if (handle == NULL)
        return;
    deferred_stream *stream = stream_get(backend, handle);
    deferred_stream **link = &deferred_get(backend)->default_stream.next;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    stream_deinit(stream);
    tdm_free(stream);
}

static tdm_status deferred_stream_sync(tdm_backend *backend, tdm_stream *handle)
{
    deferred_stream *stream = stream_get(backend, handle);
    return run_until(backend, stream, stream->queued);
}

static tdm_status deferred_event_create(tdm_backend *backend, tdm_event **out)
{
    (void)backend;
    return tdm_alloc(1, sizeof(deferred_event), out);
}

static void deferred_event_destroy(tdm_backend *backend, tdm_event *event)
{
    (void)backend;
    tdm_free(event);
}

static tdm_status deferred_event_record(tdm_backend *backend, tdm_event *handle, tdm_stream *stream)
{
    deferred_event *event = (deferred_event *)(void *)handle;
    *event =
        (deferred_event){stream_get(backend, stream)->number, stream_get(backend, stream)->queued};
    return TDM_OK;
}

static tdm_status deferred_event_sync(tdm_backend *backend, tdm_event *handle)
{
    const deferred_event *event = (const deferred_event *)(const void *)handle;
    deferred_stream *stream = &deferred_get(backend)->default_stream;
    while (stream != NULL && stream->number != event->stream)
        stream = stream->next;
    return stream == NULL ? TDM_OK : run_until(backend, stream, event->count);
}

/* Running what lies before the event at once keeps the order that the stream was promised. */
static tdm_status deferred_event_wait(tdm_backend *backend, tdm_event *event, tdm_stream *stream)
{
    (void)stream;
    return deferred_event_sync(backend, event);
}

static const tdm_backend_type deferred_type = {
    .name = "cpu",
    .destroy = deferred_destroy,
    .properties = deferred_properties,
    .alloc = deferred_alloc,
    .free = deferred_free,
    .host_alloc = deferred_alloc,
    .host_free = deferred_free,
    .copy_in = deferred_copy,
    .copy_out = deferred_copy,
    .copy = deferred_copy,
    .zero = deferred_zero,
    .stream_create = deferred_stream_create,
    .stream_destroy = deferred_stream_destroy,
    .stream_sync = deferred_stream_sync,
    .event_create = deferred_event_create,
    .event_destroy = deferred_event_destroy,
    .event_record = deferred_event_record,
    .event_wait = deferred_event_wait,
    .event_sync = deferred_event_sync,
};

tdm_status tdm_cpu_create_deferred(tdm_pool *pool, tdm_backend **out)
{
    deferred_backend *deferred;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *deferred, &deferred));
    tdm_cpu_init(&deferred->cpu, pool, &deferred_type, &deferred_ops);
    stream_init(deferred, &deferred->default_stream);
    *out = &deferred->cpu.base;
    return TDM_OK;
}
