/* Batches: planning them from the lanes' rows, filling them on the pool, handing them over in
 * order. */
#include "core/clock.h"
#include "core/memory.h"
#include "data/input_sample.h"
#include "data/pipeline_internal.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- jobs ------------------------------------------------------------------------------------ */

void tdm_pipeline_submit(tdm_pipeline *pipeline, tdm_priority priority, tdm_job *job)
{
    pipeline->active++;
    tdm_pool_submit(pipeline->options.pool, priority, job);
}

void tdm_pipeline_job_end(tdm_pipeline *pipeline, tdm_status status, double start)
{
    if (status != TDM_OK && !pipeline->closing)
        tdm_error_keep(&pipeline->error, status);
    pipeline->active--;
    tdm_pipeline_pump(pipeline);
    pipeline->stats.work_seconds += tdm_clock_thread_seconds() - start;
    pthread_mutex_unlock(&pipeline->lock);
}

/* ---- filling a batch ------------------------------------------------------------------------- */

static void run_finish(tdm_job *base);

static void clear_reports(tdm_delivery *delivery)
{
    for (size_t i = 0; i < delivery->report_count; i++) {
        tdm_bad_records_free(delivery->reports[i].records, delivery->reports[i].count);
        tdm_free(delivery->reports[i].records);
    }
    delivery->report_count = 0;
}

/* Submits `count` jobs that work on the slot side by side. */
static void start_phase(tdm_batch_slot *slot, int count, void (*run)(tdm_job *job))
{
    slot->pending = count;
    for (int i = 0; i < count; i++) {
        slot->jobs[i] = (tdm_batch_job){.job.run = run, .slot = slot, .index = i};
        tdm_pipeline_submit(slot->pipeline, TDM_PRIORITY_BATCH, &slot->jobs[i].job);
    }
}

static int phase_jobs(int64_t parts)
{
    return parts < TDM_BATCH_JOBS ? (int)parts : TDM_BATCH_JOBS;
}

static void run_assemble(tdm_job *base)
{
    double start = tdm_clock_thread_seconds();
    tdm_batch_job *job = (tdm_batch_job *)base;
    tdm_batch_slot *slot = job->slot;
    tdm_pipeline *pipeline = slot->pipeline;
    int jobs = phase_jobs((int64_t)slot->piece_count);
    for (size_t i = (size_t)job->index; i < slot->piece_count; i += (size_t)jobs) {
        const tdm_piece *piece = &slot->pieces[i];
        pipeline->featurizer->type->assemble(pipeline->featurizer, &piece->window->window,
                                             piece->first, piece->count, &slot->delivery.batch,
                                             piece->at, piece->token);
    }
    pthread_mutex_lock(&pipeline->lock);
    if (--slot->pending == 0) {
        for (size_t i = 0; i < slot->piece_count; i++)
            tdm_window_release(pipeline, slot->pieces[i].window);
        slot->piece_count = 0;
        if (pipeline->featurizer->finish_parts == 0)
            slot->state = TDM_SLOT_READY;
        else
            start_phase(slot, phase_jobs(pipeline->featurizer->finish_parts), run_finish);
    }
    tdm_pipeline_job_end(pipeline, TDM_OK, start);
}

static void run_finish(tdm_job *base)
{
    double start = tdm_clock_thread_seconds();
    tdm_batch_job *job = (tdm_batch_job *)base;
    tdm_batch_slot *slot = job->slot;
    tdm_pipeline *pipeline = slot->pipeline;
    const tdm_featurizer *featurizer = pipeline->featurizer;
    int jobs = phase_jobs(featurizer->finish_parts);
    for (int part = job->index; part < featurizer->finish_parts; part += jobs)
        featurizer->type->finish(featurizer, &slot->delivery.batch, part);
    pthread_mutex_lock(&pipeline->lock);
    if (--slot->pending == 0)
        slot->state = TDM_SLOT_READY;
    tdm_pipeline_job_end(pipeline, TDM_OK, start);
}

/* ---- planning -------------------------------------------------------------------------------- */

static double share_consumed(const tdm_pipeline *pipeline)
{
    double total = (double)tdm_epoch_stored_bytes(pipeline, pipeline->lanes[0].epoch);
    double bytes = 0;
    for (int i = 0; i < pipeline->options.lanes; i++) {
        const tdm_lane *lane = &pipeline->lanes[i];
        bytes += (double)lane->position.bytes;
        if (lane->position.row > 0)
            bytes += (double)lane->first->bytes * (double)lane->position.row /
                     (double)lane->first->window.rows;
    }
    return total <= 0 || bytes <= 0 ? 0 : bytes >= total ? 1 : bytes / total;
}

static void note_position(tdm_pipeline *pipeline, tdm_batch *batch)
{
    batch->after.epoch = pipeline->lanes[0].epoch;
    batch->after.batches = pipeline->batches;
    for (int i = 0; i < pipeline->options.lanes; i++)
        batch->after.lanes[i] = pipeline->lanes[i].position;
    batch->share = share_consumed(pipeline);
}

static void end_epoch(tdm_pipeline *pipeline, tdm_batch_slot *slot)
{
    tdm_delivery *delivery = &slot->delivery;
    delivery->epoch_end = true;
    delivery->last = delivery->epoch + 1 == pipeline->options.epochs;
    pipeline->ended = delivery->last;
    tdm_lanes_next_epoch(pipeline);
    pipeline->batches = 0;
    note_position(pipeline, &delivery->batch);
    slot->state = TDM_SLOT_READY;
}

static void start_batch(tdm_pipeline *pipeline, tdm_batch_slot *slot)
{
    tdm_batch *batch = &slot->delivery.batch;
    pipeline->batches++;
    note_position(pipeline, batch);
    *(int64_t *)tdm_batch_data(batch, TDM_BATCH_ROWS) = batch->rows;
    float *weights = tdm_batch_data(batch, TDM_BATCH_WEIGHT);
    memset(weights + batch->rows, 0,
           (size_t)(batch->layout->batch_size - batch->rows) * sizeof *weights);
    slot->state = TDM_SLOT_MAKING;
    start_phase(slot, phase_jobs((int64_t)slot->piece_count), run_assemble);
}

/* Plans the next batch where a slot is free and the lanes have its rows. */
static tdm_status plan_batch(tdm_pipeline *pipeline, bool *planned)
{
    *planned = false;
    tdm_batch_slot *slot = &pipeline->slots[pipeline->made % pipeline->options.depth];
    bool have;
    if (pipeline->ended || slot->state != TDM_SLOT_FREE)
        return TDM_OK;
    TDM_TRY(tdm_lanes_have(pipeline, &have));
    if (!have)
        return TDM_OK;
    tdm_delivery *delivery = &slot->delivery;
    delivery->batch.rows = delivery->batch.tokens = 0;
    delivery->windows = delivery->good_records = 0;
    delivery->epoch = pipeline->lanes[0].epoch;
    delivery->epoch_end = delivery->last = false;
    for (int i = 0; i < pipeline->options.lanes; i++)
        TDM_TRY(tdm_lane_take(pipeline, i, slot));
    if (delivery->batch.rows == 0)
        end_epoch(pipeline, slot);
    else
        start_batch(pipeline, slot);
    pipeline->made++;
    *planned = true;
    return TDM_OK;
}

void tdm_pipeline_pump(tdm_pipeline *pipeline)
{
    bool planned = true;
    tdm_status status = TDM_OK;
    while (planned && status == TDM_OK && !pipeline->closing && pipeline->error.status == TDM_OK) {
        status = tdm_lanes_load(pipeline);
        if (status == TDM_OK)
            status = plan_batch(pipeline, &planned);
    }
    if (status != TDM_OK)
        tdm_error_keep(&pipeline->error, status);
}

/* ---- the public face ------------------------------------------------------------------------- */

static tdm_status init_slots(tdm_pipeline *pipeline)
{
    const tdm_pipeline_options *options = &pipeline->options;
    TDM_TRY(tdm_alloc((size_t)options->depth, sizeof *pipeline->slots, &pipeline->slots));
    for (int i = 0; i < options->depth; i++) {
        tdm_batch_slot *slot = &pipeline->slots[i];
        slot->pipeline = pipeline;
        slot->delivery.batch.layout = &pipeline->featurizer->batch;
        /* A batch takes rows of one or two windows of each lane, unless windows are small. */
        TDM_TRY(tdm_grow(&slot->pieces, &slot->piece_capacity, 2 * (size_t)options->lanes,
                         sizeof *slot->pieces));
        TDM_TRY(options->backend->type->host_alloc(
            options->backend, pipeline->featurizer->batch.bytes, &slot->delivery.batch.data));
    }
    return TDM_OK;
}

static bool at_epoch_start(const tdm_position *start, int lanes)
{
    for (int i = 0; start != NULL && i < lanes; i++) {
        if (start->lanes[i].window > 0 || start->lanes[i].row > 0)
            return false;
    }
    return true;
}

/* Opens the cache that is there, or begins one where the whole of an epoch will be read. */
static tdm_status open_cache(tdm_pipeline *pipeline)
{
    const tdm_pipeline_options *options = &pipeline->options;
    const tdm_columns_layout *layout = &pipeline->featurizer->columns;
    /* What another run read from standard input says nothing of what this one will read. */
    if (tdm_input_is_stdin(pipeline->input) && options->start == NULL)
        unlink(pipeline->cache_path);
    TDM_TRY(tdm_cache_open(pipeline->cache_path, layout, &pipeline->cache));
    if (pipeline->cache != NULL || !options->write_cache ||
        (!pipeline->weighted && !at_epoch_start(options->start, options->lanes)))
        return TDM_OK;
    TDM_TRY(tdm_cache_writer_create(pipeline->cache_path, layout, &pipeline->writer));
    pipeline->writing = !pipeline->weighted;
    return TDM_OK;
}

/* Weights need blocks in any order, and more often than once: of files that are read in order, the
 * cache has them. */
static tdm_status open_weighted(tdm_pipeline *pipeline)
{
    bool failed = false;
    tdm_status status = TDM_OK;
    if (pipeline->writer != NULL)
        status = tdm_pipeline_fill_cache(pipeline, &failed);
    if (failed && tdm_input_seekable(pipeline->input))
        return tdm_pipeline_go_uncached(pipeline);
    TDM_TRY(status);
    if (tdm_input_seekable(pipeline->input) || pipeline->cache != NULL)
        return TDM_OK;
    int32_t file = 0;
    while (tdm_input_file_get(pipeline->input, file)->seekable)
        file++;
    return tdm_fail(TDM_E_CONFIG,
                    "data.train: weights need files that can be read in any order, and %s is read "
                    "from its beginning: set data.cache=on, so that all files are read into the "
                    "cache first, or decompress it",
                    tdm_input_file_get(pipeline->input, file)->path);
}

/* So that naming the line of a bad record reads no text. */
static void note_cached_lines(tdm_pipeline *pipeline)
{
    int64_t blocks = tdm_cache_block_count(pipeline->cache);
    int64_t known = tdm_input_block_count(pipeline->input);
    for (int64_t block = 0; block < blocks && block < known; block++)
        tdm_input_note_lines(pipeline->input, block, tdm_cache_lines(pipeline->cache, block));
}

static tdm_status init_cache(tdm_pipeline *pipeline)
{
    const tdm_pipeline_options *options = &pipeline->options;
    if (options->cache_path != NULL) {
        TDM_TRY(tdm_strdup(options->cache_path, &pipeline->cache_path));
        if (open_cache(pipeline) != TDM_OK)
            TDM_TRY(tdm_pipeline_go_uncached(pipeline));
        if (pipeline->cache != NULL && tdm_input_seekable(pipeline->input))
            note_cached_lines(pipeline);
    }
    if (pipeline->weighted)
        TDM_TRY(open_weighted(pipeline));
    int64_t first = options->start == NULL ? 0 : options->start->epoch;
    bool again = options->epochs < 0 || options->epochs - first > 1;
    TDM_FAIL_IF(tdm_input_is_stdin(pipeline->input) && again && pipeline->cache == NULL &&
                    !pipeline->writing,
                TDM_E_CONFIG,
                "standard input, or a pipe, can be read only once: set train.epochs=1 or "
                "data.cache=on");
    return TDM_OK;
}

static tdm_status check_options(const tdm_pipeline_options *options,
                                const tdm_featurizer *featurizer)
{
    TDM_FAIL_IF(featurizer->batch.batch_size % options->lanes != 0, TDM_E_CONFIG,
                "train.batch_size %lld is not a multiple of data.lanes %d",
                (long long)featurizer->batch.batch_size, options->lanes);
    TDM_FAIL_IF(options->depth < 2, TDM_E_ARG, "a ring of %d batches is too short", options->depth);
    return TDM_OK;
}

tdm_status tdm_pipeline_create(const tdm_pipeline_options *options, tdm_pipeline **out)
{
    *out = NULL;
    const tdm_featurizer *featurizer = tdm_extractor_featurizer(options->extractor);
    TDM_TRY(check_options(options, featurizer));
    tdm_pipeline *pipeline;
    TDM_TRY(tdm_alloc(1, sizeof *pipeline, &pipeline));
    pipeline->options = *options;
    pipeline->featurizer = featurizer;
    pipeline->input = tdm_extractor_input(options->extractor);
    pipeline->weighted = tdm_input_weighted(pipeline->input);
    pipeline->batches = options->start != NULL ? options->start->batches : 0;
    pipeline->ended = options->epochs == 0 ||
                      (options->start != NULL && options->start->epoch == options->epochs);
    pthread_mutex_init(&pipeline->lock, NULL);
    tdm_status status;
    TDM_TRY_GOTO(init_cache(pipeline), fail);
    TDM_TRY_GOTO(tdm_lanes_init(pipeline), fail);
    TDM_TRY_GOTO(init_slots(pipeline), fail);
    pipeline->options.start = NULL; /* the caller's */
    *out = pipeline;
    pthread_mutex_lock(&pipeline->lock);
    tdm_pipeline_pump(pipeline);
    pthread_mutex_unlock(&pipeline->lock);
    return TDM_OK;
fail:
    tdm_pipeline_destroy(pipeline);
    return status;
}

static bool is_idle(void *context)
{
    tdm_pipeline *pipeline = context;
    pthread_mutex_lock(&pipeline->lock);
    bool idle = pipeline->active == 0;
    pthread_mutex_unlock(&pipeline->lock);
    return idle;
}

void tdm_pipeline_destroy(tdm_pipeline *pipeline)
{
    if (pipeline == NULL)
        return;
    pthread_mutex_lock(&pipeline->lock);
    pipeline->closing = true;
    pthread_mutex_unlock(&pipeline->lock);
    tdm_pool_help_until(pipeline->options.pool, is_idle, pipeline);
    for (int i = 0; pipeline->slots != NULL && i < pipeline->options.depth; i++) {
        tdm_batch_slot *slot = &pipeline->slots[i];
        for (size_t p = 0; p < slot->piece_count; p++)
            tdm_window_release(pipeline, slot->pieces[p].window);
        clear_reports(&slot->delivery);
        tdm_free(slot->delivery.reports);
        tdm_free(slot->pieces);
        pipeline->options.backend->type->host_free(pipeline->options.backend,
                                                   slot->delivery.batch.data);
    }
    tdm_lanes_deinit(pipeline);
    tdm_cache_close(pipeline->cache);
    tdm_cache_writer_close(pipeline->writer);
    pthread_mutex_destroy(&pipeline->lock);
    tdm_free(pipeline->cache_path);
    tdm_free(pipeline->slots);
    tdm_free(pipeline);
}

static bool is_next_known(void *context)
{
    tdm_pipeline *pipeline = context;
    const tdm_batch_slot *slot = &pipeline->slots[pipeline->taken % pipeline->options.depth];
    pthread_mutex_lock(&pipeline->lock);
    bool known = slot->state == TDM_SLOT_READY || pipeline->error.status != TDM_OK ||
                 (pipeline->ended && pipeline->taken == pipeline->made);
    pthread_mutex_unlock(&pipeline->lock);
    return known;
}

tdm_status tdm_pipeline_next(tdm_pipeline *pipeline, tdm_delivery **out)
{
    *out = NULL;
    if (!is_next_known(pipeline)) {
        double start = tdm_clock_seconds();
        tdm_pool_help_until(pipeline->options.pool, is_next_known, pipeline);
        pipeline->stats.wait_seconds += tdm_clock_seconds() - start;
    }
    tdm_batch_slot *slot = &pipeline->slots[pipeline->taken % pipeline->options.depth];
    pthread_mutex_lock(&pipeline->lock);
    tdm_status status = TDM_OK;
    if (slot->state == TDM_SLOT_READY) {
        slot->state = TDM_SLOT_HELD;
        pipeline->taken++;
        *out = &slot->delivery;
    } else if (pipeline->error.status != TDM_OK) {
        status = tdm_error_raise(&pipeline->error);
    } else {
        status = tdm_fail(TDM_E_STATE, "the input has been read to its end");
    }
    pthread_mutex_unlock(&pipeline->lock);
    return status;
}

void tdm_pipeline_release(tdm_pipeline *pipeline, tdm_delivery *delivery)
{
    tdm_batch_slot *slot = (tdm_batch_slot *)delivery;
    double start = tdm_clock_thread_seconds();
    clear_reports(delivery);
    pthread_mutex_lock(&pipeline->lock);
    slot->state = TDM_SLOT_FREE;
    tdm_pipeline_pump(pipeline);
    pipeline->stats.work_seconds += tdm_clock_thread_seconds() - start;
    pthread_mutex_unlock(&pipeline->lock);
}

tdm_pipeline_stats tdm_pipeline_stats_get(tdm_pipeline *pipeline)
{
    pthread_mutex_lock(&pipeline->lock);
    tdm_pipeline_stats stats = pipeline->stats;
    stats.depth = pipeline->options.depth;
    stats.cached = pipeline->cache != NULL;
    for (int i = 0; i < pipeline->options.depth; i++)
        stats.batches_ready += pipeline->slots[i].state == TDM_SLOT_READY;
    pthread_mutex_unlock(&pipeline->lock);
    return stats;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Of what cannot be looked at, a cell of six bytes, or a token of four. */
static tdm_input_sample guess(const tdm_featurizer *featurizer, const tdm_input *input)
{
    double record = 6.0 * tdm_input_format(input)->column_count;
    double row = featurizer->columns.rows_are_pieces ? 4 : record;
    return (tdm_input_sample){.extract_bytes =
                                  (double)tdm_extract_row_bytes(&featurizer->columns) / row};
}

static void plan_epoch(const tdm_pipeline_options *options, const tdm_input_sample *sample,
                       tdm_pipeline_plan *plan)
{
    const tdm_input *input = tdm_extractor_input(options->extractor);
    double text = sample->text * (double)tdm_input_epoch_bytes(input);
    double blocks = ceil(text / (double)tdm_input_block_bytes(input));
    double longest_lane = ceil(blocks / options->lanes) / blocks;
    plan->rows = llround(text * sample->rows);
    plan->tokens = llround(text * sample->tokens);
    plan->batches = (int64_t)ceil(text * longest_lane * sample->parts);
}

static int64_t plan_bytes(const tdm_pipeline_options *options, const tdm_input_sample *sample)
{
    const tdm_featurizer *featurizer = tdm_extractor_featurizer(options->extractor);
    const tdm_input *input = tdm_extractor_input(options->extractor);
    double block_bytes = (double)tdm_input_block_bytes(input);
    double blocks = (double)TDM_LANE_WINDOWS * options->lanes * options->window_blocks;
    double all = ceil(sample->text * (double)tdm_input_epoch_bytes(input) / block_bytes);
    all *= options->epochs == 1 ? 1 : 2;
    if (all > 0 && all < blocks)
        blocks = all;
    int texts = tdm_pool_threads(options->pool) + (tdm_input_seekable(input) ? 0 : 2);
    double extracts = blocks * block_bytes * (sample->extract_bytes + sample->window_bytes);
    return (int64_t)(extracts + texts * block_bytes) +
           options->depth * (int64_t)featurizer->batch.bytes;
}

tdm_status tdm_pipeline_plan_make(const tdm_pipeline_options *options, tdm_pipeline_plan *out)
{
    tdm_input_sample sample;
    *out = (tdm_pipeline_plan){.rows = -1, .batches = -1};
    TDM_TRY(
        tdm_input_sample_take(options->extractor, options->window_blocks, options->lanes, &sample));
    if (sample.text > 0)
        plan_epoch(options, &sample, out);
    else
        sample = guess(tdm_extractor_featurizer(options->extractor),
                       tdm_extractor_input(options->extractor));
    out->bytes = plan_bytes(options, &sample);
    return TDM_OK;
}
