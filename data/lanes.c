/* Lanes: which block belongs to which window of which lane, loading windows, giving out their rows.
 */
#include "core/memory.h"
#include "data/pipeline_internal.h"

#include <string.h>

/* ---- the order ------------------------------------------------------------------------------- */

/* Blocks of a lane in an epoch. */
static int64_t lane_blocks(const tdm_pipeline *pipeline, int lane, int64_t epoch)
{
    int64_t blocks = tdm_epoch_blocks(pipeline, epoch);
    return blocks > lane ? (blocks - lane - 1) / pipeline->options.lanes + 1 : 0;
}

/* Windows of a lane in an epoch; more than can be where the end of a stream is not known. */
int64_t tdm_lane_window_count(const tdm_pipeline *pipeline, int lane, int64_t epoch)
{
    if (pipeline->block_count < 0)
        return INT64_MAX;
    return (lane_blocks(pipeline, lane, epoch) + pipeline->options.window_blocks - 1) /
           pipeline->options.window_blocks;
}

bool tdm_epoch_is_trained(const tdm_pipeline *pipeline, int64_t epoch)
{
    return pipeline->options.epochs < 0 || epoch < pipeline->options.epochs;
}

/* ---- loading windows ------------------------------------------------------------------------- */

/* Moves the lane's load cursor over to the next epoch where this one has no window left. *can is
 * false where there is nothing to load, or not yet. */
static tdm_status can_load(tdm_pipeline *pipeline, tdm_lane *lane, int index, bool *can)
{
    *can = false;
    if (!tdm_epoch_is_trained(pipeline, lane->load_epoch))
        return TDM_OK;
    TDM_TRY(tdm_epoch_order_make(pipeline, lane->load_epoch));
    *can = lane->load_window < tdm_lane_window_count(pipeline, index, lane->load_epoch);
    /* While the cache is being written the next epoch waits for it; the one behind that waits in
     * any case. */
    if (*can || pipeline->writing || lane->load_epoch > lane->epoch)
        return TDM_OK;
    lane->load_epoch++;
    lane->load_window = 0;
    return can_load(pipeline, lane, index, can);
}

static tdm_status load_window(tdm_pipeline *pipeline, int index)
{
    tdm_lane *lane = &pipeline->lanes[index];
    int64_t window_blocks = pipeline->options.window_blocks;
    int64_t epoch = lane->load_epoch;
    tdm_loaded_window *window;
    TDM_TRY(tdm_window_create(pipeline, index, epoch, lane->load_window, &window));
    int64_t first = window->window.number * window_blocks;
    int64_t left = lane_blocks(pipeline, index, epoch) - first;
    int64_t count = left < window_blocks ? left : window_blocks;
    window->window.block_count = (int)count;
    window->missing = (int)count;
    for (int64_t i = 0; i < count; i++) {
        int64_t block;
        int32_t occurrence;
        tdm_epoch_block(pipeline, epoch, (first + i) * pipeline->options.lanes + index, &block,
                        &occurrence);
        TDM_TRY(tdm_window_load_block(pipeline, window, block, occurrence, NULL));
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
    bool can;
    TDM_TRY(can_load(pipeline, &pipeline->lanes[index], index, &can));
    return can && random_access(pipeline) ? load_window(pipeline, index) : TDM_OK;
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
        tdm_stream_reader_start(pipeline);
    return TDM_OK;
}

/* ---- giving out rows ------------------------------------------------------------------------- */

/* What a lane's part of a batch still takes. */
typedef struct lane_room {
    int64_t rows;
    int64_t tokens;
} lane_room;

#define NO_TOKEN_BUDGET (INT64_MAX / 2)

static lane_room whole_room(const tdm_batch_layout *batch, int lanes)
{
    return (lane_room){.rows = batch->batch_size / lanes,
                       .tokens =
                           batch->max_tokens > 0 ? batch->max_tokens / lanes : NO_TOKEN_BUDGET};
}

/* How many of the ascending ends[0, count) are at most `limit`. */
static int64_t count_within(const int64_t *ends, int64_t count, int64_t limit)
{
    int64_t low = 0;
    while (low < count) {
        int64_t middle = low + (count - low) / 2;
        if (ends[middle] <= limit)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* How many of the window's rows from `first` on fit; *tokens is what they have together. *room
 * shrinks by them, and to no rows where nothing more fits. */
static int64_t fit_rows(const tdm_window *window, int64_t first, lane_room *room, int64_t *tokens)
{
    int64_t left = window->rows - first;
    int64_t count = left < room->rows ? left : room->rows;
    *tokens = 0;
    if (window->token_ends != NULL && count > 0) {
        const int64_t *ends = window->token_ends + first;
        int64_t before = first > 0 ? ends[-1] : 0;
        int64_t fitting = count_within(ends, count, before + room->tokens);
        *tokens = fitting > 0 ? ends[fitting - 1] - before : 0;
        room->tokens -= *tokens;
        if (fitting < count || room->tokens == 0)
            room->rows = fitting;
        count = fitting;
    }
    room->rows -= count;
    return count;
}

double tdm_window_parts(const tdm_batch_layout *batch, int lanes, const tdm_window *window)
{
    int64_t full = 0, full_rows = 0, tokens;
    for (int64_t row = 0; row < window->rows;) {
        lane_room room = whole_room(batch, lanes);
        row += fit_rows(window, row, &room, &tokens);
        full += row < window->rows;
        full_rows = row < window->rows ? row : full_rows;
    }
    if (full > 0)
        return (double)window->rows * (double)full / (double)full_rows;
    lane_room room = whole_room(batch, lanes);
    double by_rows = (double)window->rows / (double)room.rows;
    bool has_tokens = window->token_ends != NULL && window->rows > 0;
    double by_tokens =
        has_tokens ? (double)window->token_ends[window->rows - 1] / (double)room.tokens : 0;
    return by_rows > by_tokens ? by_rows : by_tokens;
}

/* Whether the lane has its part of a batch loaded, or all that is left of its epoch. */
static bool has_part(const tdm_pipeline *pipeline, int index)
{
    const tdm_lane *lane = &pipeline->lanes[index];
    lane_room room = whole_room(&pipeline->featurizer->batch, pipeline->options.lanes);
    int64_t first = lane->position.row;
    for (const tdm_loaded_window *window = lane->first; window != NULL; window = window->next) {
        if (window->window.epoch != lane->epoch)
            return true;
        if (!window->open)
            return false;
        int64_t tokens;
        fit_rows(&window->window, first, &room, &tokens);
        if (room.rows == 0)
            return true;
        first = 0;
    }
    return lane->load_epoch > lane->epoch ||
           (lane->load_epoch == lane->epoch &&
            lane->load_window >= tdm_lane_window_count(pipeline, index, lane->epoch));
}

tdm_status tdm_lanes_have(tdm_pipeline *pipeline, bool *have)
{
    *have = true;
    for (int i = 0; i < pipeline->options.lanes; i++) {
        if (has_part(pipeline, i))
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
        tdm_stream_reader_start(pipeline);
    return TDM_OK;
}

/* Hands the window's bad records on, and counts the others, in the first epoch, once. */
static tdm_status report_window(tdm_loaded_window *window, tdm_delivery *delivery)
{
    delivery->windows++;
    for (int i = 0; window->window.epoch == 0 && i < window->window.block_count; i++) {
        tdm_extract *extract = window->window.blocks[i];
        if (extract->occurrence > 0)
            continue;
        delivery->good_records += tdm_good_records_of(extract);
        if (extract->bad_count == 0 && extract->encoding_errors == 0)
            continue;
        TDM_TRY(tdm_grow(&delivery->reports, &delivery->report_capacity, delivery->report_count + 1,
                         sizeof *delivery->reports));
        delivery->reports[delivery->report_count++] = tdm_bad_report_of(extract);
        extract->bad = NULL;
        extract->bad_count = extract->bad_capacity = 0;
        extract->encoding_errors = 0;
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

static tdm_status add_piece(tdm_batch_slot *slot, const tdm_piece *piece)
{
    TDM_TRY(tdm_grow(&slot->pieces, &slot->piece_capacity, slot->piece_count + 1,
                     sizeof *slot->pieces));
    slot->pieces[slot->piece_count++] = *piece;
    piece->window->references++;
    return TDM_OK;
}

tdm_status tdm_lane_take(tdm_pipeline *pipeline, int index, tdm_batch_slot *slot)
{
    tdm_lane *lane = &pipeline->lanes[index];
    tdm_batch *batch = &slot->delivery.batch;
    lane_room room = whole_room(batch->layout, pipeline->options.lanes);
    while (room.rows > 0 && lane->first != NULL && lane->first->window.epoch == lane->epoch) {
        tdm_loaded_window *window = lane->first;
        tdm_piece piece = {.window = window,
                           .first = lane->position.row,
                           .at = batch->rows,
                           .token = batch->tokens};
        int64_t left = window->window.rows - piece.first;
        int64_t tokens;
        piece.count = fit_rows(&window->window, piece.first, &room, &tokens);
        if (piece.count == 0 && left > 0)
            break;
        if (piece.first == 0)
            TDM_TRY(report_window(window, &slot->delivery));
        if (piece.count > 0)
            TDM_TRY(add_piece(slot, &piece));
        lane->position.row += piece.count;
        batch->rows += piece.count;
        batch->tokens += tokens;
        if (piece.count == left)
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

/* ---- beginning and end ----------------------------------------------------------------------- */

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
    return tdm_stream_reader_init(pipeline);
}

void tdm_lanes_deinit(tdm_pipeline *pipeline)
{
    for (int i = 0; pipeline->lanes != NULL && i < pipeline->options.lanes; i++)
        tdm_windows_free(pipeline->lanes[i].first);
    tdm_windows_free(pipeline->free_windows);
    for (size_t i = 0; i < pipeline->free_extract_count; i++)
        tdm_extract_free(pipeline->free_extracts[i]);
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
    tdm_epoch_orders_free(pipeline);
    tdm_free(pipeline->free_extracts);
    tdm_free(pipeline->lanes);
}
