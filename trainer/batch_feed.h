/* Batches on their way from the pipeline to the device. Where the device reads the host's memory
 * they stay where they are; else the copy of the next batch runs beside the step of this one.
 * Private to this folder. */
#ifndef TDM_TRAINER_BATCH_FEED_H
#define TDM_TRAINER_BATCH_FEED_H

#include "data/pipeline.h"

typedef struct tdm_fed_batch {
    tdm_delivery *delivery;
    const unsigned char *data; /* on the device; NULL at the end of an epoch */
} tdm_fed_batch;

typedef struct tdm_batch_feed {
    tdm_pipeline *pipeline; /* borrowed */
    tdm_backend *backend;   /* borrowed */
    bool copies;
    size_t batch_bytes;
    unsigned char *slots[2]; /* device memory */
    tdm_event *copied[2];
    tdm_stream *stream;
    int turn;
    tdm_fed_batch ahead; /* fetched already; delivery NULL: none */
    tdm_error error;     /* of fetching it */
} tdm_batch_feed;

TDM_MUST_CHECK tdm_status tdm_batch_feed_init(tdm_batch_feed *feed, tdm_pipeline *pipeline,
                                              tdm_backend *backend,
                                              const tdm_backend_properties *properties,
                                              size_t batch_bytes);
/* Gives back what was fetched ahead. */
void tdm_batch_feed_deinit(tdm_batch_feed *feed);

/* The next batch, ready for the default stream. */
TDM_MUST_CHECK tdm_status tdm_batch_feed_next(tdm_batch_feed *feed, tdm_fed_batch *out);

/* Where batches are copied: fetches the one behind this one and begins its copy. An error comes out
 * of the call of tdm_batch_feed_next() that would give that batch. */
void tdm_batch_feed_ahead(tdm_batch_feed *feed);

/* When the step has ended on the device. */
void tdm_batch_feed_release(tdm_batch_feed *feed, const tdm_fed_batch *batch);

/* Device memory that a feed takes. */
int64_t tdm_batch_feed_bytes(const tdm_backend_properties *properties, size_t batch_bytes);

#endif
