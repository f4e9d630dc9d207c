#include "trainer/batch_feed.h"

int64_t tdm_batch_feed_bytes(const tdm_backend_properties *properties, size_t batch_bytes)
{
    return properties->host_memory ? 0 : 2 * (int64_t)batch_bytes;
}

tdm_status tdm_batch_feed_init(tdm_batch_feed *feed, tdm_pipeline *pipeline, tdm_backend *backend,
                               const tdm_backend_properties *properties, size_t batch_bytes)
{
    *feed = (tdm_batch_feed){
        .pipeline = pipeline,
        .backend = backend,
        .copies = !properties->host_memory,
        .batch_bytes = batch_bytes,
    };
    if (!feed->copies)
        return TDM_OK;
    TDM_TRY(backend->type->stream_create(backend, &feed->stream));
    for (int i = 0; i < 2; i++) {
        TDM_TRY(backend->type->alloc(backend, batch_bytes, &feed->slots[i]));
        TDM_TRY(backend->type->event_create(backend, &feed->copied[i]));
    }
    return TDM_OK;
}

void tdm_batch_feed_deinit(tdm_batch_feed *feed)
{
    if (feed->backend == NULL)
        return;
    const tdm_backend_type *type = feed->backend->type;
    if (feed->ahead.delivery != NULL) {
        /* The copy may still read the delivery's memory. */
        (void)!type->stream_sync(feed->backend, feed->stream);
        tdm_pipeline_release(feed->pipeline, feed->ahead.delivery);
    }
    for (int i = 0; i < 2; i++) {
        if (feed->copied[i] != NULL)
            type->event_destroy(feed->backend, feed->copied[i]);
        if (feed->slots[i] != NULL)
            type->free(feed->backend, feed->slots[i]);
    }
    if (feed->stream != NULL)
        type->stream_destroy(feed->backend, feed->stream);
    *feed = (tdm_batch_feed){0};
}

static tdm_status fetch(tdm_batch_feed *feed, tdm_fed_batch *out)
{
    tdm_backend *backend = feed->backend;
    *out = (tdm_fed_batch){0};
    TDM_TRY(tdm_pipeline_next(feed->pipeline, &out->delivery));
    const tdm_batch *batch = &out->delivery->batch;
    if (batch->rows == 0)
        return TDM_OK;
    out->data = batch->data;
    if (!feed->copies)
        return TDM_OK;
    unsigned char *slot = feed->slots[feed->turn];
    TDM_TRY(backend->type->copy_in(backend, slot, batch->data, feed->batch_bytes, feed->stream));
    TDM_TRY(backend->type->event_record(backend, feed->copied[feed->turn], feed->stream));
    TDM_TRY(backend->type->event_wait(backend, feed->copied[feed->turn], NULL));
    feed->turn ^= 1;
    out->data = slot;
    return TDM_OK;
}

tdm_status tdm_batch_feed_next(tdm_batch_feed *feed, tdm_fed_batch *out)
{
    if (feed->error.status != TDM_OK)
        return tdm_error_raise(&feed->error);
    if (feed->ahead.delivery == NULL)
        return fetch(feed, out);
    *out = feed->ahead;
    feed->ahead = (tdm_fed_batch){0};
    return TDM_OK;
}

void tdm_batch_feed_ahead(tdm_batch_feed *feed)
{
    if (!feed->copies)
        return;
    tdm_status status = fetch(feed, &feed->ahead);
    if (status != TDM_OK)
        tdm_error_keep(&feed->error, status);
}

void tdm_batch_feed_release(tdm_batch_feed *feed, const tdm_fed_batch *batch)
{
    tdm_pipeline_release(feed->pipeline, batch->delivery);
}
