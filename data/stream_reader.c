/* Reads a stream block by block and deals the blocks to the lanes' windows. */
#include "core/clock.h"
#include "core/memory.h"
#include "data/pipeline_internal.h"

#include <stddef.h>

/* Whether the lane wants a window that the reader has not begun, of this epoch or a later one, or
 * has one that it has not ended. */
static bool waits_for_reader(const tdm_pipeline *pipeline, int index)
{
    const tdm_lane *lane = &pipeline->lanes[index];
    int64_t epoch = pipeline->reader.epoch;
    if ((lane->windows < TDM_LANE_WINDOWS || lane->wants_more) && lane->load_epoch >= epoch &&
        lane->load_window < tdm_lane_window_count(pipeline, index, lane->load_epoch) &&
        tdm_epoch_is_trained(pipeline, lane->load_epoch))
        return true;
    for (const tdm_loaded_window *window = lane->first; window != NULL; window = window->next) {
        if (window->window.epoch == epoch && window->assigned < window->window.block_count)
            return true;
    }
    return false;
}

/* With the lock held: starts the reader where a lane waits for what it has not read. */
void tdm_stream_reader_start(tdm_pipeline *pipeline)
{
    tdm_stream_reader *reader = &pipeline->reader;
    if (reader->running || reader->free_count == 0 || pipeline->closing ||
        pipeline->error.status != TDM_OK)
        return;
    for (int i = 0; i < pipeline->options.lanes; i++) {
        if (!waits_for_reader(pipeline, i))
            continue;
        reader->running = true;
        tdm_pipeline_submit(pipeline, TDM_PRIORITY_BACKGROUND, &reader->job);
        return;
    }
}

/* The stream has ended: its length is known, and windows that wait for more blocks have all. */
static tdm_status end_stream(tdm_pipeline *pipeline)
{
    tdm_stream_reader *reader = &pipeline->reader;
    pipeline->block_count = reader->position;
    tdm_input_stream_close(reader->stream);
    reader->stream = NULL;
    int64_t epoch = reader->epoch++;
    reader->position = 0;
    TDM_TRY(tdm_pipeline_finish_cache(pipeline));
    for (int i = 0; i < pipeline->options.lanes; i++) {
        for (tdm_loaded_window *window = pipeline->lanes[i].first; window != NULL;
             window = window->next) {
            int short_of = window->window.block_count - window->assigned;
            if (window->window.epoch != epoch || short_of == 0)
                continue;
            window->window.block_count -= short_of;
            window->missing -= short_of;
            if (window->missing == 0)
                TDM_TRY(tdm_window_open(pipeline, window));
        }
    }
    return TDM_OK;
}

/* Deals the text that was read to its window; one before the lane's start is dropped. */
static tdm_status deal_block(tdm_pipeline *pipeline, tdm_block_text *text)
{
    tdm_stream_reader *reader = &pipeline->reader;
    int64_t position = reader->position++;
    int lane_index = (int)(position % pipeline->options.lanes);
    int64_t turn = position / pipeline->options.lanes;
    int64_t number = turn / pipeline->options.window_blocks;
    tdm_lane *lane = &pipeline->lanes[lane_index];
    bool begins = turn % pipeline->options.window_blocks == 0;
    tdm_loaded_window *window = NULL;
    /* Another lane may have asked for this epoch before this one did. */
    if (lane->load_epoch < reader->epoch) {
        lane->load_epoch = reader->epoch;
        lane->load_window = 0;
    }
    if (number >= lane->load_window && begins)
        TDM_TRY(tdm_window_create(pipeline, lane_index, reader->epoch, number, &window));
    for (tdm_loaded_window *w = lane->first; w != NULL && window == NULL; w = w->next) {
        if (w->window.epoch == reader->epoch && w->window.number == number)
            window = w;
    }
    if (window == NULL) {
        reader->free_texts[reader->free_count++] = text;
        return TDM_OK;
    }
    return tdm_window_load_block(pipeline, window, position, 0, text);
}

static void read_stream(tdm_job *job)
{
    double start = tdm_clock_thread_seconds();
    tdm_stream_reader *reader =
        (tdm_stream_reader *)((char *)job - offsetof(tdm_stream_reader, job));
    tdm_pipeline *pipeline = reader->pipeline;
    pthread_mutex_lock(&pipeline->lock);
    tdm_block_text *text = reader->free_texts[--reader->free_count];
    bool closing = pipeline->closing;
    pthread_mutex_unlock(&pipeline->lock);
    tdm_status status = TDM_OK;
    bool ended = false;
    if (reader->stream == NULL && !closing)
        status = tdm_input_stream_open(pipeline->input, &reader->stream);
    if (status == TDM_OK && !closing)
        status = tdm_input_stream_next(reader->stream, text, &ended);
    pthread_mutex_lock(&pipeline->lock);
    reader->running = false;
    if (status == TDM_OK && !closing && !ended) {
        status = deal_block(pipeline, text);
    } else {
        reader->free_texts[reader->free_count++] = text;
        if (ended)
            status = end_stream(pipeline);
    }
    tdm_pipeline_job_end(pipeline, status, start);
}

tdm_status tdm_stream_reader_init(tdm_pipeline *pipeline)
{
    tdm_stream_reader *reader = &pipeline->reader;
    reader->job.run = read_stream;
    reader->pipeline = pipeline;
    reader->epoch = pipeline->lanes[0].epoch;
    reader->text_count = tdm_pool_threads(pipeline->options.pool) + 2;
    TDM_TRY(tdm_alloc((size_t)reader->text_count, sizeof *reader->texts, &reader->texts));
    TDM_TRY(tdm_alloc((size_t)reader->text_count, sizeof *reader->free_texts, &reader->free_texts));
    for (int i = 0; i < reader->text_count; i++) {
        reader->free_texts[reader->free_count++] = &reader->texts[i];
        if (!tdm_input_seekable(pipeline->input))
            TDM_TRY(tdm_input_reserve_block(pipeline->input, &reader->texts[i]));
    }
    return TDM_OK;
}
