/* From an input to batches: blocks dealt to lanes, windows of mixed rows, a ring of reused batches.
 *
 * The order is a pure function of (seed, epoch, block list): see docs/ARCHITECTURE.md, "The life of
 * a batch". It does not depend on threads, timing, the ring's depth or the cache. */
#ifndef TDM_DATA_PIPELINE_H
#define TDM_DATA_PIPELINE_H

#include "core/backend.h"
#include "data/bad_records.h"
#include "data/cache.h"

typedef struct tdm_pipeline tdm_pipeline;

typedef struct tdm_pipeline_options {
    tdm_extractor *extractor; /* borrowed, like pool and backend */
    tdm_pool *pool;
    tdm_backend *backend; /* whose host memory the ring is made of */
    uint64_t seed;
    int lanes; /* divides the batch size */
    int window_blocks;
    int64_t epochs;            /* -1: without end */
    int depth;                 /* batches in the ring, at least 2 */
    const char *cache_path;    /* NULL: no cache */
    bool write_cache;          /* where there is none yet */
    const tdm_position *start; /* NULL: the beginning */
} tdm_pipeline_options;

TDM_MUST_CHECK tdm_status tdm_pipeline_create(const tdm_pipeline_options *options,
                                              tdm_pipeline **out);
/* NULL is allowed. */
void tdm_pipeline_destroy(tdm_pipeline *pipeline);

/* A batch, or the end of an epoch, with the records of the windows that begin with it: those whose
 * first row it holds, or that were passed since the batch before because they have none. */
typedef struct tdm_delivery {
    tdm_batch batch; /* rows is 0 at the end of an epoch */
    int64_t epoch;
    bool epoch_end;
    bool last;               /* of the run: nothing follows */
    int64_t windows;         /* that begin with it */
    int64_t good_records;    /* of these, in the first epoch; where blocks are repeated, once */
    tdm_bad_report *reports; /* likewise, of bad ones */
    size_t report_count;
    size_t report_capacity;
} tdm_delivery;

/* The next one, in order; works on the pool while it waits. Every delivery is given back with
 * tdm_pipeline_release() when the device no longer reads it. */
TDM_MUST_CHECK tdm_status tdm_pipeline_next(tdm_pipeline *pipeline, tdm_delivery **out);
void tdm_pipeline_release(tdm_pipeline *pipeline, tdm_delivery *delivery);

typedef struct tdm_pipeline_stats {
    int64_t records;       /* parsed or read from the cache so far */
    int64_t stored_bytes;  /* of input that they stand for */
    int64_t batches_ready; /* in the ring now */
    int depth;
    double wait_seconds; /* that tdm_pipeline_next waited: the device waiting for the CPU */
    double work_seconds; /* of computing, on all threads: reading, parsing, making batches */
    bool cached;         /* blocks come from the cache now */
} tdm_pipeline_stats;

tdm_pipeline_stats tdm_pipeline_stats_get(tdm_pipeline *pipeline);

/* What a pipeline with these options will give and hold, judged by the beginning of the input. */
typedef struct tdm_pipeline_plan {
    int64_t rows;    /* of an epoch; -1, like batches: not known */
    int64_t tokens;  /* of these; 0 where rows have none */
    int64_t batches; /* of an epoch */
    int64_t bytes;   /* of memory, at the peak */
} tdm_pipeline_plan;

TDM_MUST_CHECK tdm_status tdm_pipeline_plan_make(const tdm_pipeline_options *options,
                                                 tdm_pipeline_plan *out);

#endif
