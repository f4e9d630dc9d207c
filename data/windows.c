/* Windows: the memory that they live in, and the blocks that fill them, from text or from the
 * cache. */
#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "data/pipeline_internal.h"

#include <unistd.h>

/* ---- memory ---------------------------------------------------------------------------------- */

tdm_status tdm_window_create(tdm_pipeline *pipeline, int lane, int64_t epoch, int64_t number,
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

void tdm_extract_free(tdm_extract *extract)
{
    if (extract != NULL)
        tdm_extract_deinit(extract);
    tdm_free(extract);
}

static void free_window(tdm_loaded_window *window)
{
    tdm_free(window->window.blocks);
    tdm_window_deinit(&window->window);
    tdm_free(window);
}

void tdm_windows_free(tdm_loaded_window *first)
{
    while (first != NULL) {
        tdm_loaded_window *next = first->next;
        for (int i = 0; i < first->window.block_count; i++)
            tdm_extract_free(first->window.blocks[i]);
        free_window(first);
        first = next;
    }
}

/* ---- the cache ------------------------------------------------------------------------------- */

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
tdm_status tdm_pipeline_finish_cache(tdm_pipeline *pipeline)
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

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Makes the order of a window whose blocks are all there. Nobody else looks at it before `open`. */
tdm_status tdm_window_open(tdm_pipeline *pipeline, tdm_loaded_window *window)
{
    pthread_mutex_unlock(&pipeline->lock);
    tdm_status status = pipeline->featurizer->type->open_window(
        pipeline->featurizer, pipeline->options.seed, true, &window->window);
    pthread_mutex_lock(&pipeline->lock);
    window->open = status == TDM_OK;
    return status;
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

static tdm_status put_block(tdm_pipeline *pipeline, tdm_load_job *job, tdm_extract *extract)
{
    tdm_loaded_window *window = job->window;
    window->window.blocks[job->index] = extract;
    extract->occurrence = job->occurrence;
    if (cache_block(pipeline, extract) != TDM_OK)
        TDM_TRY(tdm_pipeline_go_uncached(pipeline));
    pipeline->stats.records += extract->records;
    pipeline->stats.stored_bytes += extract->stored_bytes;
    window->bytes += extract->stored_bytes;
    TDM_TRY(tdm_pipeline_finish_cache(pipeline));
    return --window->missing == 0 ? tdm_window_open(pipeline, window) : TDM_OK;
}

static void run_load(tdm_job *base)
{
    double start = tdm_clock_thread_seconds();
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
    tdm_pipeline_job_end(pipeline, status, start);
}

tdm_status tdm_window_load_block(tdm_pipeline *pipeline, tdm_loaded_window *window, int64_t block,
                                 int32_t occurrence, tdm_block_text *text)
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
                          .occurrence = occurrence,
                          .text = text};
    tdm_pipeline_submit(pipeline, TDM_PRIORITY_BACKGROUND, &job->job);
    return TDM_OK;
}
