#include "data/block_stream.h"

#include "core/memory.h"

#include <pthread.h>

/* A place in the ring: a block being read and parsed, or waiting to be taken. */
typedef struct stream_slot {
    tdm_job job;
    tdm_block_stream *stream;
    int64_t block; /* seekable inputs: which one to read */
    tdm_block_text text;
    tdm_extract extract;
    bool busy;  /* a job owns it */
    bool ready; /* parsed and not taken */
} stream_slot;

struct tdm_block_stream {
    tdm_extractor *extractor;
    tdm_pool *pool;
    tdm_input_stream *input; /* NULL for seekable inputs */
    int depth;
    stream_slot *slots; /* block b lies in slot b mod depth */
    /* Under the lock: */
    pthread_mutex_t lock;
    int64_t next;  /* block to start */
    int64_t taken; /* block to give next */
    bool reading;  /* a job reads the stream, which is done by one at a time */
    bool ended;    /* no block from `next` on */
    bool closing;  /* blocks that have not begun are left */
    tdm_error error;
    tdm_extract *held; /* given to the caller */
};

static void run_slot(tdm_job *job);

/* With the lock held: starts what can be started. A stream is read by the job of the next block
 * alone, which then lets the block behind it start. */
static void start_slots(tdm_block_stream *stream)
{
    while (!stream->ended && stream->error.status == TDM_OK && !stream->reading &&
           stream->next < stream->taken + stream->depth) {
        stream_slot *slot = &stream->slots[stream->next % stream->depth];
        if (slot->busy || slot->ready || &slot->extract == stream->held)
            return;
        if (stream->input == NULL &&
            stream->next == tdm_input_block_count(tdm_extractor_input(stream->extractor))) {
            stream->ended = true;
            return;
        }
        slot->block = stream->next++;
        slot->busy = true;
        stream->reading = stream->input != NULL;
        tdm_pool_submit(stream->pool, TDM_PRIORITY_BATCH, &slot->job);
    }
}

static tdm_status read_text(tdm_block_stream *stream, stream_slot *slot, bool *ended)
{
    *ended = false;
    if (stream->input == NULL)
        return tdm_input_read_block(tdm_extractor_input(stream->extractor), slot->block,
                                    &slot->text);
    tdm_status status = tdm_input_stream_next(stream->input, &slot->text, ended);
    pthread_mutex_lock(&stream->lock);
    stream->reading = false;
    if (status != TDM_OK)
        tdm_error_keep(&stream->error, status);
    if (*ended) {
        stream->ended = true;
        stream->next = slot->block;
    }
    start_slots(stream);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

static void run_slot(tdm_job *job)
{
    stream_slot *slot = (stream_slot *)job;
    tdm_block_stream *stream = slot->stream;
    pthread_mutex_lock(&stream->lock);
    bool ended = stream->closing;
    pthread_mutex_unlock(&stream->lock);
    tdm_status status = ended ? TDM_OK : read_text(stream, slot, &ended);
    if (status == TDM_OK && !ended)
        status = tdm_extract_block(stream->extractor, &slot->text, &slot->extract);
    pthread_mutex_lock(&stream->lock);
    if (status != TDM_OK)
        tdm_error_keep(&stream->error, status);
    slot->busy = false;
    slot->ready = status == TDM_OK && !ended;
    pthread_mutex_unlock(&stream->lock);
}

/* Blocks end in another order than they began: with two a thread, none waits for the slowest. */
int tdm_block_stream_depth(const tdm_pool *pool)
{
    return 2 * tdm_pool_threads(pool) + 2;
}

tdm_status tdm_block_stream_open(tdm_extractor *extractor, tdm_pool *pool, tdm_block_stream **out)
{
    *out = NULL;
    tdm_block_stream *stream;
    TDM_TRY(tdm_alloc(1, sizeof *stream, &stream));
    stream->extractor = extractor;
    stream->pool = pool;
    stream->depth = tdm_block_stream_depth(pool);
    pthread_mutex_init(&stream->lock, NULL);
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)stream->depth, sizeof *stream->slots, &stream->slots), fail);
    for (int i = 0; i < stream->depth; i++) {
        stream->slots[i].job.run = run_slot;
        stream->slots[i].stream = stream;
    }
    if (!tdm_input_seekable(tdm_extractor_input(extractor)))
        TDM_TRY_GOTO(tdm_input_stream_open(tdm_extractor_input(extractor), &stream->input), fail);
    *out = stream;
    return TDM_OK;
fail:
    tdm_block_stream_close(stream);
    return status;
}

/* An error comes behind the blocks before it, so that what is given never depends on timing. */
static bool next_known(void *context)
{
    tdm_block_stream *stream = context;
    pthread_mutex_lock(&stream->lock);
    const stream_slot *slot = &stream->slots[stream->taken % stream->depth];
    bool known = slot->ready || (!slot->busy && stream->error.status != TDM_OK) ||
                 (stream->ended && stream->taken >= stream->next);
    pthread_mutex_unlock(&stream->lock);
    return known;
}

/* Only now: all blocks before have been parsed, so that their lines are known without reading them
 * again. */
static tdm_status find_first_line(tdm_block_stream *stream, tdm_extract *extract)
{
    if (extract->first_line >= 0 || extract->bad_count == 0)
        return TDM_OK;
    return tdm_input_lines_before(tdm_extractor_input(stream->extractor), extract->block,
                                  &extract->first_line);
}

tdm_status tdm_block_stream_next(tdm_block_stream *stream, tdm_extract **out)
{
    *out = NULL;
    pthread_mutex_lock(&stream->lock);
    stream->held = NULL;
    start_slots(stream);
    pthread_mutex_unlock(&stream->lock);
    tdm_pool_help_until(stream->pool, next_known, stream);
    pthread_mutex_lock(&stream->lock);
    stream_slot *slot = &stream->slots[stream->taken % stream->depth];
    tdm_status status = TDM_OK;
    if (slot->ready) {
        slot->ready = false;
        stream->taken++;
        stream->held = &slot->extract;
        *out = &slot->extract;
        start_slots(stream);
    } else {
        status = tdm_error_raise(&stream->error);
    }
    pthread_mutex_unlock(&stream->lock);
    if (*out != NULL)
        status = find_first_line(stream, *out);
    return status;
}

static bool none_busy(void *context)
{
    tdm_block_stream *stream = context;
    pthread_mutex_lock(&stream->lock);
    bool busy = false;
    for (int i = 0; i < stream->depth; i++)
        busy = busy || stream->slots[i].busy;
    pthread_mutex_unlock(&stream->lock);
    return !busy;
}

void tdm_block_stream_close(tdm_block_stream *stream)
{
    if (stream == NULL)
        return;
    if (stream->slots != NULL) {
        pthread_mutex_lock(&stream->lock);
        stream->ended = stream->closing = true;
        pthread_mutex_unlock(&stream->lock);
        tdm_pool_help_until(stream->pool, none_busy, stream);
        for (int i = 0; i < stream->depth; i++) {
            tdm_block_text_deinit(&stream->slots[i].text);
            tdm_extract_deinit(&stream->slots[i].extract);
        }
    }
    tdm_input_stream_close(stream->input);
    pthread_mutex_destroy(&stream->lock);
    tdm_free(stream->slots);
    tdm_free(stream);
}
