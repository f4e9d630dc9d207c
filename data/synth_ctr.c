/* Blocks of rows are made on the pool. They lie in two batches: while one is being made, a tile of
 * the same loop writes the other. */
#include "data/synth_ctr.h"

#include "core/memory.h"
#include "data/synth_ctr_model.h"

#include <math.h>

#define BLOCK_ROWS        512
#define BLOCKS_PER_THREAD 8 /* in a batch */

/* One for each logit and label: see score_of(). */
#define SCORES ((size_t)4 * TDM_SYNTH_LOGIT_LIMIT)

typedef struct synth_block {
    char *text;
    size_t bytes;
    int32_t rows;
    uint32_t scores[BLOCK_ROWS];
} synth_block;

typedef struct synth_batch {
    synth_block *blocks;
    int64_t first_row;
    int64_t used; /* blocks */
} synth_batch;

typedef struct synth_run {
    const tdm_synth_ctr_options *options;
    tdm_synth_write write;
    tdm_synth_progress progress;
    void *context;
    tdm_synth_model *model;
    char *text;
    synth_block *blocks;
    synth_batch batches[2];
    int64_t batch_blocks; /* most in a batch */
    synth_batch *making;
    synth_batch *writing;
    int64_t written;    /* rows */
    int64_t *histogram; /* rows of each score */
    tdm_error error;    /* of the write callback */
} synth_run;

static uint32_t score_of(int32_t logit, bool positive)
{
    return (uint32_t)(logit + TDM_SYNTH_LOGIT_LIMIT) << 1 | positive;
}

static void make_block(synth_run *run, int64_t index)
{
    synth_block *block = &run->making->blocks[index];
    int64_t first = run->making->first_row + index * BLOCK_ROWS;
    int64_t left = run->options->rows - first;
    block->rows = left < BLOCK_ROWS ? (int32_t)left : BLOCK_ROWS;
    block->bytes = 0;
    for (int32_t r = 0; r < block->rows; r++) {
        int32_t logit;
        bool positive;
        block->bytes += tdm_synth_row(run->model, (uint64_t)(first + r), run->options->labels,
                                      block->text + block->bytes, &logit, &positive);
        block->scores[r] = score_of(logit, positive);
    }
}

static tdm_status write_batch(synth_run *run)
{
    for (int64_t b = 0; b < run->writing->used; b++) {
        const synth_block *block = &run->writing->blocks[b];
        TDM_TRY(run->write(run->context, block->text, block->bytes));
        for (int32_t r = 0; r < block->rows; r++)
            run->histogram[block->scores[r]]++;
        run->written += block->rows;
    }
    if (run->progress != NULL && run->writing->used > 0)
        run->progress(run->context, run->written);
    return TDM_OK;
}

static void run_tile(void *context, int64_t index)
{
    synth_run *run = context;
    if (index > 0) {
        make_block(run, index - 1);
        return;
    }
    tdm_status status = write_batch(run);
    if (status != TDM_OK)
        tdm_error_keep(&run->error, status);
}

static int64_t blocks_for(int64_t rows)
{
    return rows / BLOCK_ROWS + (rows % BLOCK_ROWS != 0);
}

static tdm_status make_log(synth_run *run, tdm_pool *pool)
{
    int64_t made = 0; /* blocks */
    const int64_t blocks = blocks_for(run->options->rows);
    do {
        int64_t left = blocks - made;
        run->making->first_row = made * BLOCK_ROWS;
        run->making->used = left < run->batch_blocks ? left : run->batch_blocks;
        tdm_pool_for(pool, 1 + run->making->used, run_tile, run);
        if (run->error.status != TDM_OK)
            return tdm_error_raise(&run->error);
        made += run->making->used;
        synth_batch *made_batch = run->making;
        run->making = run->writing;
        run->writing = made_batch;
    } while (run->writing->used > 0);
    return TDM_OK;
}

static void run_deinit(synth_run *run)
{
    tdm_free(run->model);
    tdm_free(run->text);
    tdm_free(run->blocks);
    tdm_free(run->histogram);
}

static tdm_status run_init(synth_run *run, int threads)
{
    int64_t blocks = blocks_for(run->options->rows);
    run->batch_blocks = (int64_t)threads * BLOCKS_PER_THREAD;
    if (run->batch_blocks > blocks)
        run->batch_blocks = blocks;
    size_t count = (size_t)run->batch_blocks * 2;
    TDM_TRY(tdm_synth_model_create(run->options->seed, &run->model));
    TDM_TRY(tdm_alloc(count, BLOCK_ROWS * TDM_SYNTH_ROW_BYTES, &run->text));
    TDM_TRY(tdm_alloc(count, sizeof *run->blocks, &run->blocks));
    TDM_TRY(tdm_alloc(SCORES, sizeof *run->histogram, &run->histogram));
    for (size_t b = 0; b < count; b++)
        run->blocks[b].text = run->text + b * BLOCK_ROWS * TDM_SYNTH_ROW_BYTES;
    run->batches[0].blocks = run->blocks;
    run->batches[1].blocks = run->blocks + run->batch_blocks;
    run->making = &run->batches[0];
    run->writing = &run->batches[1];
    return TDM_OK;
}

static tdm_synth_result summarise(const synth_run *run)
{
    double negatives_below = 0, ordered_pairs = 0, loss = 0;
    tdm_synth_result result = {.rows = run->options->rows};
    for (int32_t logit = -TDM_SYNTH_LOGIT_LIMIT; logit < TDM_SYNTH_LOGIT_LIMIT; logit++) {
        int64_t negatives = run->histogram[score_of(logit, false)];
        int64_t positives = run->histogram[score_of(logit, true)];
        if (negatives + positives == 0)
            continue;
        double probability = tdm_synth_probability(run->model, logit) * 0x1p-32;
        ordered_pairs += (double)positives * (negatives_below + 0.5 * (double)negatives);
        negatives_below += (double)negatives;
        loss -= (double)positives * log(probability) + (double)negatives * log1p(-probability);
        result.positives += positives;
    }
    result.auc = ordered_pairs / ((double)result.positives * negatives_below);
    result.logloss = loss / (double)result.rows;
    return result;
}

tdm_status tdm_synth_ctr(tdm_pool *pool, const tdm_synth_ctr_options *options,
                         tdm_synth_write write, tdm_synth_progress progress, void *context,
                         tdm_synth_result *result)
{
    TDM_FAIL_IF(options->rows < 0, TDM_E_ARG, "%lld rows: give 0 or more",
                (long long)options->rows);
    synth_run run = {.options = options, .write = write, .progress = progress, .context = context};
    tdm_status status;
    TDM_TRY_GOTO(run_init(&run, tdm_pool_threads(pool)), done);
    TDM_TRY_GOTO(make_log(&run, pool), done);
    *result = summarise(&run);
done:
    run_deinit(&run);
    return status;
}
