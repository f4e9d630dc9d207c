/* Lanes: which block belongs to which window of which lane, loading windows, giving out their rows.
 */
#include "core/log.h"
#include "core/memory.h"
#include "data/order.h"
#include "data/pipeline_internal.h"

#include <string.h>
#include <unistd.h>

/* ---- the order ----------------------------------------------------------------------------------
 */

/* Windows of a lane in an epoch; more than can be where the end of a stream is not known. */
static int64_t windows_of_lane(const tdm_pipeline *pipeline, int lane)
{
    if (pipeline->block_count < 0)
        return INT64_MAX;
    int64_t lanes = pipeline->options.lanes;
    int64_t blocks =
        pipeline->block_count > lane ? (pipeline->block_count - lane - 1) / lanes + 1 : 0;
    return (blocks + pipeline->options.window_blocks - 1) / pipeline->options.window_blocks;
}

/* The block at a position of an epoch's list: permuted where the input can seek, for then text and
 * cache can both be read in any order; in the order of the files for streams, cached or not. */
static tdm_status block_at(tdm_pipeline *pipeline, int64_t epoch, int64_t position, int64_t *block)
{
    *block = position;
    if (!tdm_input_seekable(pipeline->input))
        return TDM_OK;
    tdm_epoch_order *order = &pipeline->orders[epoch & 1];
    if (order->blocks == NULL)
        TDM_TRY(tdm_alloc((size_t)pipeline->block_count, sizeof *order->blocks, &order->blocks));
    if (order->epoch != epoch) {
        for (int64_t i = 0; i < pipeline->block_count; i++)
            order->blocks[i] = (uint32_t)i;
        tdm_philox_key key =
            tdm_philox_make_key(pipeline->options.seed, TDM_PURPOSE_BLOCK_ORDER, 0);
        tdm_shuffle(order->blocks, pipeline->block_count, key, 0, (uint32_t)epoch);
        order->epoch = epoch;
    }
    *block = order->blocks[position];
    return TDM_OK;
}

/* ---- windows ------------------------------------------------------------------------------------
 */

static tdm_status new_window(tdm_pipeline *pipeline, int lane, int64_t epoch, int64_t number,
                             tdm_loaded_window **out)
{
    tdm_loaded_window *window = pipeline->free_windows;
    if (window != NULL) {
        pipeline->free_windows = window->next;
    } else {
        TDM_TRY(tdm_alloc(1, sizeof *window, &window));
        tdm_status status = tdm_alloc((size_t)pipeline->options.window_blocks,
                                      sizeof *window->window.blocks, &window->window.blocks);
        if (status != TDM_OK) {
            tdm_free(window);
            return status;
        }
    }
    window->window.epoch = epoch;
    window->window.number = number;
    window->window.block_count = pipeline->options.window_blocks;
    window->window.rows = 0;
    window->lane = lane;
    window->assigned = 0;
    window->missing = pipeline->options.window_blocks;
    window->open = false;
    window->references = 1;
    window->bytes = 0;
    window->next = NULL;
    tdm_lane *owner = &pipeline->lanes[lane];
    *owner->last = window;
    owner->last = &window->next;
    owner->windows++;
    owner->wants_more = false;
    owner->load_window = number + 1;
    *out = window;
    return TDM_OK;
}

static void free_window(tdm_loaded_window *window)
{
    tdm_free(window->window.blocks);
    tdm_free(window->window.order);
    tdm_free(window);
}

static tdm_status take_extract(tdm_pipeline *pipeline, tdm_extract **out)
{
    if (pipeline->free_extract_count > 0) {
        *out = pipeline->free_extracts[--pipeline->free_extract_count];
        return TDM_OK;
    }
    TDM_TRY(tdm_grow(&pipeline->free_extracts, &pipeline->free_extract_capacity,
                     pipeline->extract_count + 1, sizeof *out));
    TDM_TRY(tdm_alloc(1, sizeof **out, out));
    pipeline->extract_count++;
    return TDM_OK;
}

static void give_extract(tdm_pipeline *pipeline, tdm_extract *extract)
{
    pipeline->free_extracts[pipeline->free_extract_count++] = extract;
}

void tdm_window_release(tdm_pipeline *pipeline, tdm_loaded_window *window)
{
    if (--window->references > 0)
        return;
    pipeline->lanes[window->lane].windows--;
    pipeline->lanes[window->lane].moving--;
    for (int i = 0; i < window->window.block_count; i++) {
        if (window->window.blocks[i] != NULL)
            give_extract(pipeline, window->window.blocks[i]);
        window->window.blocks[i] = NULL;
    }
    window->next = pipeline->free_windows;
    pipeline->free_windows = window;
}

/* Makes the order of a window whose blocks are all there. Nobody else looks at it before `open`. */
static tdm_status open_window(tdm_pipeline *pipeline, tdm_loaded_window *window)
{
    pthread_mutex_unlock(&pipeline->lock);
    tdm_status status = pipeline->featurizer->type->open_window(
        pipeline->featurizer, pipeline->options.seed, true, &window->window);
    pthread_mutex_lock(&pipeline->lock);
    window->open = status == TDM_OK;
    return status;
}

/* ---- the cache ----------------------------------------------------------------------------------
 */

static tdm_status cache_block(tdm_pipeline *pipeline, const tdm_extract *extract)
{
    if (!pipeline->writing)
        return TDM_OK;
    pthread_mutex_unlock(&pipeline->lock);
    tdm_status status = tdm_cache_writer_add(pipeline->writer, extract);
    pthread_mutex_lock(&pipeline->lock);
    if (status == TDM_OK)
        pipeline->written++;
    return status;
}

/* Others may be inside the writer, so it is closed at the end only. */
tdm_status tdm_pipeline_go_uncached(tdm_pipeline *pipeline)
{
    bool warned = pipeline->uncached;
    pipeline->writing = false;
    pipeline->uncached = true;
    if (tdm_input_is_stdin(pipeline->input) && pipeline->options.epochs != 1)
        return tdm_fail(TDM_E_IO,
                        "the cache could not be written, and standard input, or a pipe, cannot be "
                        "read again: %s",
                        tdm_error_message());
    if (!warned)
        tdm_warn("the cache could not be written, so that every epoch reads the text: %s",
                 tdm_error_message());
    return TDM_OK;
}

/* When all blocks of the epoch have been added. */
static tdm_status finish_cache(tdm_pipeline *pipeline)
{
    if (!pipeline->writing || pipeline->block_count < 0 ||
        pipeline->written < pipeline->block_count)
        return TDM_OK;
    pipeline->writing = false;
    if (tdm_cache_writer_commit(pipeline->writer, pipeline->block_count) != TDM_OK ||
        tdm_cache_open(pipeline->cache_path, &pipeline->featurizer->columns, &pipeline->cache) !=
            TDM_OK)
        return tdm_pipeline_go_uncached(pipeline);
    return TDM_OK;
}

/* ---- loading a block ----------------------------------------------------------------------------
 */

/* A stream has no text to go back to in the middle of an epoch; a new run has, without the cache.
 */
static tdm_status refuse_damaged_block(const tdm_pipeline *pipeline)
{
    if (tdm_input_is_stdin(pipeline->input))
        return tdm_fail(TDM_E_FORMAT, "%s; what was read from standard input cannot be read again",
                        tdm_error_message());
    unlink(pipeline->cache_path);
    return tdm_fail(TDM_E_FORMAT, "%s; it was removed: go on with --resume, which reads the text",
                    tdm_error_message());
}

static tdm_status fill_extract(tdm_pipeline *pipeline, const tdm_load_job *job,
                               const tdm_cache *cache, tdm_extract *extract)
{
    tdm_block_text *text = job->text;
    if (cache != NULL) {
        tdm_status status = tdm_cache_read(cache, job->block, extract);
        if (status == TDM_E_FORMAT && !tdm_input_seekable(pipeline->input))
            return refuse_damaged_block(pipeline);
        if (status != TDM_E_FORMAT)
            return status;
        tdm_warn("%s; the block is read from the text", tdm_error_message());
    }
    if (text == NULL) {
        text = &pipeline->texts[tdm_pool_thread_index()];
        TDM_TRY(tdm_input_read_block(pipeline->input, job->block, text));
    }
    return tdm_extract_block(pipeline->options.extractor, text, extract);
}

static void read_stream(tdm_job *job);

static bool is_trained(const tdm_pipeline *pipeline, int64_t epoch)
{
    return pipeline->options.epochs < 0 || epoch < pipeline->options.epochs;
}

/* Whether the lane wants a window that the reader has not begun, of this epoch or a later one, or
 * has one that it has not ended. */
static bool waits_for_reader(const tdm_pipeline *pipeline, int index)
{
    const tdm_lane *lane = &pipeline->lanes[index];
    int64_t epoch = pipeline->reader.epoch;
    if ((lane->windows < TDM_LANE_WINDOWS || lane->wants_more) && lane->load_epoch >= epoch &&
        lane->load_window < windows_of_lane(pipeline, index) &&
        is_trained(pipeline, lane->load_epoch))
        return true;
    for (const tdm_loaded_window *window = lane->first; window != NULL; window = window->next) {
        if (window->window.epoch == epoch && window->assigned < window->window.block_count)
            return true;
    }
    return false;
}

/* With the lock held: starts the reader where a lane waits for what it has not read. */
static void start_reader(tdm_pipeline *pipeline)
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

static tdm_status put_block(tdm_pipeline *pipeline, tdm_load_job *job, tdm_extract *extract)
{
    tdm_loaded_window *window = job->window;
    window->window.blocks[job->index] = extract;
    if (cache_block(pipeline, extract) != TDM_OK)
        TDM_TRY(tdm_pipeline_go_uncached(pipeline));
    pipeline->stats.records += extract->records;
    pipeline->stats.stored_bytes += extract->stored_bytes;
    window->bytes += extract->stored_bytes;
    TDM_TRY(finish_cache(pipeline));
    return --window->missing == 0 ? open_window(pipeline, window) : TDM_OK;
}

static void run_load(tdm_job *base)
{
    tdm_load_job *job = (tdm_load_job *)base;
    tdm_pipeline *pipeline = job->pipeline;
    tdm_extract *extract = NULL;
    pthread_mutex_lock(&pipeline->lock);
    tdm_status status = pipeline->closing ? TDM_E_CANCELLED : take_extract(pipeline, &extract);
    const tdm_cache *cache = job->text == NULL ? pipeline->cache : NULL;
    pthread_mutex_unlock(&pipeline->lock);
    if (status == TDM_OK)
        status = fill_extract(pipeline, job, cache, extract);
    pthread_mutex_lock(&pipeline->lock);
    if (status == TDM_OK)
        status = put_block(pipeline, job, extract);
    else if (extract != NULL)
        give_extract(pipeline, extract);
    if (job->text != NULL)
        pipeline->reader.free_texts[pipeline->reader.free_count++] = job->text;
    job->next_free = pipeline->free_jobs;
    pipeline->free_jobs = job;
    tdm_pipeline_job_end(pipeline, status);
}

static tdm_status submit_load(tdm_pipeline *pipeline, tdm_loaded_window *window, int64_t block,
                              tdm_block_text *text)
{
    tdm_load_job *job = pipeline->free_jobs;
    if (job != NULL)
        pipeline->free_jobs = job->next_free;
    else
        TDM_TRY(tdm_alloc(1, sizeof *job, &job));
    *job = (tdm_load_job){.job.run = run_load,
                          .pipeline = pipeline,
                          .window = window,
                          .index = window->assigned++,
                          .block = block,
                          .text = text};
    tdm_pipeline_submit(pipeline, TDM_PRIORITY_BACKGROUND, &job->job);
    return TDM_OK;
}

/* ---- streams ------------------------------------------------------------------------------------
 */

/* The stream has ended: its length is known, and windows that wait for more blocks have all. */
static tdm_status end_stream(tdm_pipeline *pipeline)
{
    tdm_stream_reader *reader = &pipeline->reader;
    pipeline->block_count = reader->position;
    tdm_input_stream_close(reader->stream);
    reader->stream = NULL;
    int64_t epoch = reader->epoch++;
    reader->position = 0;
    TDM_TRY(finish_cache(pipeline));
    for (int i = 0; i < pipeline->options.lanes; i++) {
        for (tdm_loaded_window *window = pipeline->lanes[i].first; window != NULL;
             window = window->next) {
            int short_of = window->window.block_count - window->assigned;
            if (window->window.epoch != epoch || short_of == 0)
                continue;
            window->window.block_count -= short_of;
            window->missing -= short_of;
            if (window->missing == 0)
                TDM_TRY(open_window(pipeline, window));
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
        TDM_TRY(new_window(pipeline, lane_index, reader->epoch, number, &window));
    for (tdm_loaded_window *w = lane->first; w != NULL && window == NULL; w = w->next) {
        if (w->window.epoch == reader->epoch && w->window.number == number)
            window = w;
    }
    if (window == NULL) {
        reader->free_texts[reader->free_count++] = text;
        return TDM_OK;
    }
    return submit_load(pipeline, window, position, text);
}

static void read_stream(tdm_job *job)
{
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
    tdm_pipeline_job_end(pipeline, status);
}

/* ---- loading windows ----------------------------------------------------------------------------
 */

/* Moves the lane's load cursor over to the next epoch where this one has no window left. False
 * where there is nothing to load, or not yet. */
static bool can_load(tdm_pipeline *pipeline, tdm_lane *lane, int index)
{
    if (lane->load_window >= windows_of_lane(pipeline, index)) {
        /* While the cache is being written the next epoch waits for it. */
        if (pipeline->writing)
            return false;
        lane->load_epoch++;
        lane->load_window = 0;
        if (windows_of_lane(pipeline, index) == 0)
            return false;
    }
    return is_trained(pipeline, lane->load_epoch);
}

static tdm_status load_window(tdm_pipeline *pipeline, int index)
{
    tdm_lane *lane = &pipeline->lanes[index];
    int64_t lanes = pipeline->options.lanes;
    int64_t window_blocks = pipeline->options.window_blocks;
    int64_t epoch = lane->load_epoch;
    tdm_loaded_window *window;
    TDM_TRY(new_window(pipeline, index, epoch, lane->load_window, &window));
    int64_t first = window->window.number * window_blocks;
    int64_t last = (pipeline->block_count - index - 1) / lanes + 1;
    int64_t count = last - first < window_blocks ? last - first : window_blocks;
    window->window.block_count = (int)count;
    window->missing = (int)count;
    for (int64_t i = 0; i < count; i++) {
        int64_t block;
        TDM_TRY(block_at(pipeline, epoch, (first + i) * lanes + index, &block));
        TDM_TRY(submit_load(pipeline, window, block, NULL));
    }
    return TDM_OK;
}

static bool random_access(const tdm_pipeline *pipeline)
{
    return tdm_input_seekable(pipeline->input) || pipeline->cache != NULL;
}

/* Starts a window of the lane; a stream's are begun by its reader. */
static tdm_status load_lane(tdm_pipeline *pipeline, int index)
{
    tdm_lane *lane = &pipeline->lanes[index];
    if (!can_load(pipeline, lane, index) || !random_access(pipeline))
        return TDM_OK;
    return load_window(pipeline, index);
}

tdm_status tdm_lanes_load(tdm_pipeline *pipeline)
{
    for (int i = 0; i < pipeline->options.lanes; i++) {
        tdm_lane *lane = &pipeline->lanes[i];
        for (int before = -1; lane->windows < TDM_LANE_WINDOWS && before != lane->windows;) {
            before = lane->windows;
            TDM_TRY(load_lane(pipeline, i));
        }
    }
    if (!random_access(pipeline))
        start_reader(pipeline);
    return TDM_OK;
}

/* ---- giving out rows ----------------------------------------------------------------------------
 */

/* Rows of the lane's epoch that are loaded, up to `rows`. *known is false where more may come. */
static int64_t rows_loaded(const tdm_pipeline *pipeline, int index, int64_t rows, bool *known)
{
    const tdm_lane *lane = &pipeline->lanes[index];
    int64_t loaded = -lane->position.row;
    *known = true;
    for (const tdm_loaded_window *window = lane->first; window != NULL; window = window->next) {
        if (window->window.epoch != lane->epoch)
            return loaded < 0 ? 0 : loaded;
        if (!window->open) {
            *known = false;
            return loaded;
        }
        loaded += window->window.rows;
        if (loaded >= rows)
            return loaded;
    }
    *known =
        lane->load_epoch > lane->epoch ||
        (lane->load_epoch == lane->epoch && lane->load_window >= windows_of_lane(pipeline, index));
    return loaded < 0 ? 0 : loaded;
}

tdm_status tdm_lanes_have(tdm_pipeline *pipeline, int64_t rows, bool *have)
{
    *have = true;
    for (int i = 0; i < pipeline->options.lanes; i++) {
        bool known;
        int64_t loaded = rows_loaded(pipeline, i, rows, &known);
        if (known || loaded >= rows)
            continue;
        *have = false;
        /* Where small windows are not enough for a batch, one more is begun; one that is being
         * moved soon makes room for another anyway. */
        if (pipeline->lanes[i].moving > 0)
            continue;
        const tdm_loaded_window *window = pipeline->lanes[i].first;
        while (window != NULL && window->open)
            window = window->next;
        if (window != NULL)
            continue;
        pipeline->lanes[i].wants_more = true;
        TDM_TRY(load_lane(pipeline, i));
    }
    if (!*have && !random_access(pipeline))
        start_reader(pipeline);
    return TDM_OK;
}

/* Hands the window's bad records on, in the first epoch, once. */
static tdm_status report_window(tdm_loaded_window *window, tdm_delivery *delivery)
{
    for (int i = 0; window->window.epoch == 0 && i < window->window.block_count; i++) {
        tdm_extract *extract = window->window.blocks[i];
        if (extract->bad_count == 0)
            continue;
        TDM_TRY(tdm_grow(&delivery->reports, &delivery->report_capacity, delivery->report_count + 1,
                         sizeof *delivery->reports));
        delivery->reports[delivery->report_count++] =
            (tdm_bad_report){.block = extract->block,
                             .file = extract->file,
                             .first_line = extract->first_line,
                             .records = extract->bad,
                             .count = extract->bad_count};
        extract->bad = NULL;
        extract->bad_count = extract->bad_capacity = 0;
    }
    return TDM_OK;
}

static void leave_window(tdm_pipeline *pipeline, tdm_lane *lane)
{
    tdm_loaded_window *window = lane->first;
    lane->position.bytes += window->bytes;
    lane->position.window = window->window.number + 1;
    lane->position.row = 0;
    lane->first = window->next;
    if (lane->first == NULL)
        lane->last = &lane->first;
    lane->moving++;
    tdm_window_release(pipeline, window);
}

tdm_status tdm_lane_take(tdm_pipeline *pipeline, int index, int64_t rows, tdm_batch_slot *slot)
{
    tdm_lane *lane = &pipeline->lanes[index];
    tdm_batch *batch = &slot->delivery.batch;
    while (rows > 0 && lane->first != NULL && lane->first->window.epoch == lane->epoch) {
        tdm_loaded_window *window = lane->first;
        if (lane->position.row == 0)
            TDM_TRY(report_window(window, &slot->delivery));
        int64_t left = window->window.rows - lane->position.row;
        if (left == 0) {
            leave_window(pipeline, lane);
            continue;
        }
        int64_t count = left < rows ? left : rows;
        TDM_TRY(tdm_grow(&slot->pieces, &slot->piece_capacity, slot->piece_count + 1,
                         sizeof *slot->pieces));
        slot->pieces[slot->piece_count++] = (tdm_piece){
            .window = window, .first = lane->position.row, .count = count, .at = batch->rows};
        window->references++;
        lane->position.row += count;
        batch->rows += count;
        rows -= count;
        if (count == left)
            leave_window(pipeline, lane);
    }
    return TDM_OK;
}

void tdm_lanes_next_epoch(tdm_pipeline *pipeline)
{
    for (int i = 0; i < pipeline->options.lanes; i++) {
        tdm_lane *lane = &pipeline->lanes[i];
        lane->epoch++;
        lane->position = (tdm_lane_position){0};
    }
}

/* ---- beginning and end --------------------------------------------------------------------------
 */

static tdm_status init_reader(tdm_pipeline *pipeline)
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

tdm_status tdm_lanes_init(tdm_pipeline *pipeline)
{
    int lanes = pipeline->options.lanes;
    const tdm_position *start = pipeline->options.start;
    pipeline->block_count = pipeline->cache != NULL ? tdm_cache_block_count(pipeline->cache)
                                                    : tdm_input_block_count(pipeline->input);
    pipeline->orders[0].epoch = pipeline->orders[1].epoch = -1;
    TDM_TRY(tdm_alloc((size_t)lanes, sizeof *pipeline->lanes, &pipeline->lanes));
    for (int i = 0; i < lanes; i++) {
        tdm_lane *lane = &pipeline->lanes[i];
        lane->last = &lane->first;
        if (start != NULL) {
            lane->epoch = start->epoch;
            lane->position = start->lanes[i];
        }
        lane->load_epoch = lane->epoch;
        lane->load_window = lane->position.window;
    }
    int threads = tdm_pool_threads(pipeline->options.pool);
    TDM_TRY(tdm_alloc((size_t)threads, sizeof *pipeline->texts, &pipeline->texts));
    for (int i = 0; i < threads && tdm_input_seekable(pipeline->input); i++)
        TDM_TRY(tdm_input_reserve_block(pipeline->input, &pipeline->texts[i]));
    return init_reader(pipeline);
}

static void free_extract_of(tdm_extract *extract)
{
    if (extract != NULL)
        tdm_extract_deinit(extract);
    tdm_free(extract);
}

static void free_windows_of(tdm_loaded_window *first)
{
    while (first != NULL) {
        tdm_loaded_window *next = first->next;
        for (int i = 0; i < first->window.block_count; i++)
            free_extract_of(first->window.blocks[i]);
        free_window(first);
        first = next;
    }
}

void tdm_lanes_deinit(tdm_pipeline *pipeline)
{
    for (int i = 0; pipeline->lanes != NULL && i < pipeline->options.lanes; i++)
        free_windows_of(pipeline->lanes[i].first);
    free_windows_of(pipeline->free_windows);
    for (size_t i = 0; i < pipeline->free_extract_count; i++)
        free_extract_of(pipeline->free_extracts[i]);
    while (pipeline->free_jobs != NULL) {
        tdm_load_job *next = pipeline->free_jobs->next_free;
        tdm_free(pipeline->free_jobs);
        pipeline->free_jobs = next;
    }
    tdm_stream_reader *reader = &pipeline->reader;
    tdm_input_stream_close(reader->stream);
    for (int i = 0; reader->texts != NULL && i < reader->text_count; i++)
        tdm_block_text_deinit(&reader->texts[i]);
    tdm_free(reader->texts);
    tdm_free(reader->free_texts);
    for (int i = 0; pipeline->texts != NULL && i < tdm_pool_threads(pipeline->options.pool); i++)
        tdm_block_text_deinit(&pipeline->texts[i]);
    tdm_free(pipeline->texts);
    tdm_free(pipeline->orders[0].blocks);
    tdm_free(pipeline->orders[1].blocks);
    tdm_free(pipeline->free_extracts);
    tdm_free(pipeline->lanes);
}
