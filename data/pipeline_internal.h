/* The parts of the pipeline. lanes.c loads windows and gives out their rows in order; pipeline.c
 * makes batches of them. All of it lies under one lock; reading, parsing, opening windows and
 * moving rows run as jobs without it. */
#ifndef TDM_DATA_PIPELINE_INTERNAL_H
#define TDM_DATA_PIPELINE_INTERNAL_H

#include "data/pipeline.h"

#include <pthread.h>

/* Windows that a lane keeps loaded or loading: the one that it gives rows of, and the next. */
#define TDM_LANE_WINDOWS 2

/* A window of a lane, in the lane's list from its first block on until its last row has been moved.
 */
typedef struct tdm_loaded_window {
    tdm_window window; /* window.blocks has room for window_blocks */
    int lane;
    int assigned; /* blocks that have a job or are there */
    int missing;  /* blocks that are not there yet */
    bool open;    /* order is made: rows may be taken */
    int references;
    int64_t bytes; /* stored, of its blocks */
    struct tdm_loaded_window *next;
} tdm_loaded_window;

typedef struct tdm_lane {
    tdm_loaded_window *first;
    tdm_loaded_window **last;
    int windows;     /* in the list, and those whose rows are being moved */
    int moving;      /* of these, the latter */
    bool wants_more; /* those are not enough for a batch */
    /* Where the lane is: the epoch that it gives rows of, and the position in it. */
    int64_t epoch;
    tdm_lane_position position;
    /* The next window to load. */
    int64_t load_epoch;
    int64_t load_window;
} tdm_lane;

/* A block on its way into a window. */
typedef struct tdm_load_job {
    tdm_job job;
    tdm_pipeline *pipeline;
    tdm_loaded_window *window;
    int index; /* in the window */
    int64_t block;
    int32_t occurrence;
    tdm_block_text *text; /* of a stream; NULL: the job reads the block itself */
    struct tdm_load_job *next_free;
} tdm_load_job;

/* The block list of an epoch. */
typedef struct tdm_epoch_order {
    int64_t epoch; /* -1: none */
    int64_t count;
    uint32_t *blocks;
    uint16_t *occurrences; /* where blocks have weights: how often the list had the block before */
    int64_t stored_bytes;  /* likewise: that the list stands for */
    size_t capacity, occurrence_capacity;
} tdm_epoch_order;

/* Reads a stream from its beginning to its end, once an epoch. */
typedef struct tdm_stream_reader {
    tdm_job job;
    tdm_pipeline *pipeline;
    tdm_input_stream *stream;
    int64_t epoch;
    int64_t position; /* of the next block, in the epoch's list */
    bool running;
    tdm_block_text *texts; /* [text_count] */
    tdm_block_text **free_texts;
    int text_count, free_count;
} tdm_stream_reader;

/* Rows of one window that go to one place of a batch. */
typedef struct tdm_piece {
    tdm_loaded_window *window;
    int64_t first, count, at;
    int64_t token; /* the place of their tokens */
} tdm_piece;

typedef enum tdm_slot_state {
    TDM_SLOT_FREE = 0,
    TDM_SLOT_MAKING = 1,
    TDM_SLOT_READY = 2,
    TDM_SLOT_HELD = 3,
} tdm_slot_state;

#define TDM_BATCH_JOBS 8

typedef struct tdm_batch_slot tdm_batch_slot;

typedef struct tdm_batch_job {
    tdm_job job;
    tdm_batch_slot *slot;
    int index;
} tdm_batch_job;

struct tdm_batch_slot {
    tdm_delivery delivery; /* first: callers hold its address */
    tdm_pipeline *pipeline;
    tdm_slot_state state;
    tdm_piece *pieces;
    size_t piece_count, piece_capacity;
    int pending; /* jobs of this phase that have not ended */
    tdm_batch_job jobs[TDM_BATCH_JOBS];
};

struct tdm_pipeline {
    tdm_pipeline_options options;
    const tdm_featurizer *featurizer;
    tdm_input *input;
    pthread_mutex_t lock;
    int active; /* jobs submitted and not ended */
    bool closing;
    tdm_error error;

    tdm_lane *lanes;
    int64_t block_count;       /* -1: a stream whose end has not been seen */
    bool weighted;             /* blocks come more often than once in an epoch, or not in each */
    tdm_epoch_order orders[2]; /* of epochs e and e + 1, e being the one that rows are given of */
    tdm_stream_reader reader;
    tdm_block_text *texts; /* [threads], of jobs that read their block themselves */
    tdm_load_job *free_jobs;
    tdm_loaded_window *free_windows;
    tdm_extract **free_extracts; /* with room for all that there are */
    size_t free_extract_count, free_extract_capacity, extract_count;

    tdm_cache *cache;
    tdm_cache_writer *writer;
    bool writing;    /* the first epoch of this run goes into the cache */
    int64_t written; /* blocks */
    bool uncached;   /* it could not be opened or written */
    char *cache_path;

    tdm_batch_slot *slots;
    int64_t made;    /* batches planned so far: the next goes to slot made mod depth */
    int64_t taken;   /* given out */
    int64_t batches; /* of this epoch */
    bool ended;
    tdm_pipeline_stats stats;
};

/* ---- lanes.c; the lock is held by the caller of all of these --------------------------------- */

TDM_MUST_CHECK tdm_status tdm_lanes_init(tdm_pipeline *pipeline);
void tdm_lanes_deinit(tdm_pipeline *pipeline);

/* Starts loading what lanes lack. */
TDM_MUST_CHECK tdm_status tdm_lanes_load(tdm_pipeline *pipeline);

/* A lane's part of a batch: batch_size / lanes rows, of at most max_tokens / lanes tokens where
 * rows have tokens. Rows come in order: where the next one does not fit, the part is full. */

/* Parts that the window's rows fill, the last one as far as they do. No lock is needed. */
double tdm_window_parts(const tdm_batch_layout *batch, int lanes, const tdm_window *window);

/* True where every lane has its part loaded, or all that is left of its epoch; loads where not. */
TDM_MUST_CHECK tdm_status tdm_lanes_have(tdm_pipeline *pipeline, bool *have);

/* Takes the lane's part, appending pieces and reports to the slot and writing to rows from
 * delivery.batch.rows and tokens from delivery.batch.tokens on. Follows tdm_lanes_have. */
TDM_MUST_CHECK tdm_status tdm_lane_take(tdm_pipeline *pipeline, int lane, tdm_batch_slot *slot);

/* All lanes go over to the next epoch. */
void tdm_lanes_next_epoch(tdm_pipeline *pipeline);

/* The cache could not be opened or written, as the error record says: warns, and the text is read
 * again in later epochs. An error where that cannot be. */
TDM_MUST_CHECK tdm_status tdm_pipeline_go_uncached(tdm_pipeline *pipeline);

/* Windows of a lane in an epoch; more than can be where the end of a stream is not known. */
int64_t tdm_lane_window_count(const tdm_pipeline *pipeline, int lane, int64_t epoch);
bool tdm_epoch_is_trained(const tdm_pipeline *pipeline, int64_t epoch);

/* ---- epoch_order.c; likewise ----------------------------------------------------------------- */

/* The list is permuted where the input can seek, for then text and cache can both be read in any
 * order; without weights it is that of the files for streams, cached or not. What follows asks for
 * epochs whose order was made. */
TDM_MUST_CHECK tdm_status tdm_epoch_order_make(tdm_pipeline *pipeline, int64_t epoch);
int64_t tdm_epoch_blocks(const tdm_pipeline *pipeline, int64_t epoch);
int64_t tdm_epoch_stored_bytes(const tdm_pipeline *pipeline, int64_t epoch);
void tdm_epoch_block(const tdm_pipeline *pipeline, int64_t epoch, int64_t position, int64_t *block,
                     int32_t *occurrence);
void tdm_epoch_orders_free(tdm_pipeline *pipeline);

/* ---- cache_fill.c ---------------------------------------------------------------------------- */

/* Reads all of the input into pipeline->writer and opens the cache. On an error *failed tells
 * whether it is the cache's or the input's. */
TDM_MUST_CHECK tdm_status tdm_pipeline_fill_cache(tdm_pipeline *pipeline, bool *failed);

/* ---- windows.c; likewise --------------------------------------------------------------------- */

/* A new window at the end of the lane's list, which waits for window_blocks blocks. */
TDM_MUST_CHECK tdm_status tdm_window_create(tdm_pipeline *pipeline, int lane, int64_t epoch,
                                            int64_t number, tdm_loaded_window **out);

/* Makes the order of a window whose blocks are all there. Gives the lock up in between. */
TDM_MUST_CHECK tdm_status tdm_window_open(tdm_pipeline *pipeline, tdm_loaded_window *window);

/* Starts loading the window's next block, from `text` or, where that is NULL, by its number. */
TDM_MUST_CHECK tdm_status tdm_window_load_block(tdm_pipeline *pipeline, tdm_loaded_window *window,
                                                int64_t block, int32_t occurrence,
                                                tdm_block_text *text);

/* Commits the cache and goes over to it when all blocks of the epoch have been added. */
TDM_MUST_CHECK tdm_status tdm_pipeline_finish_cache(tdm_pipeline *pipeline);

void tdm_windows_free(tdm_loaded_window *first);
void tdm_extract_free(tdm_extract *extract);
void tdm_window_release(tdm_pipeline *pipeline, tdm_loaded_window *window);

/* ---- stream_reader.c; likewise --------------------------------------------------------------- */

TDM_MUST_CHECK tdm_status tdm_stream_reader_init(tdm_pipeline *pipeline);

/* Starts the reader where a lane waits for what it has not read. */
void tdm_stream_reader_start(tdm_pipeline *pipeline);

/* ---- pipeline.c ------------------------------------------------------------------------------ */

/* With the lock held: does whatever can be done now. */
void tdm_pipeline_pump(tdm_pipeline *pipeline);

/* Submits a job that ends with tdm_pipeline_job_end(), which takes the lock from it and is told
 * what tdm_clock_thread_seconds() was when it began. */
void tdm_pipeline_submit(tdm_pipeline *pipeline, tdm_priority priority, tdm_job *job);
void tdm_pipeline_job_end(tdm_pipeline *pipeline, tdm_status status, double start);

#endif
