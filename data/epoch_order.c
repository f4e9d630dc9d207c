/* The list of blocks of an epoch: a pure function of (seed, epoch, blocks and their weights). */
#include "core/memory.h"
#include "data/order.h"
#include "data/pipeline_internal.h"

#include <math.h>
#include <string.h>

/* Of a block that has no number of its own by arithmetic, the cache tells the file. */
static double block_weight(const tdm_pipeline *pipeline, int64_t block, int64_t *bytes)
{
    int32_t file;
    if (tdm_input_seekable(pipeline->input)) {
        file = tdm_input_block_file(pipeline->input, block);
        *bytes = tdm_input_block_stored_bytes(pipeline->input, block);
    } else {
        file = tdm_cache_file(pipeline->cache, block);
        *bytes = tdm_cache_stored_bytes(pipeline->cache, block);
    }
    return tdm_input_file_get(pipeline->input, file)->weight;
}

static bool draw(tdm_philox_key key, int64_t block, int64_t epoch, double probability)
{
    return tdm_random(key, (uint64_t)block, (uint32_t)epoch, 0) < probability * 0x1p32;
}

static tdm_status list_weighted(const tdm_pipeline *pipeline, int64_t epoch, tdm_epoch_order *order)
{
    tdm_philox_key key = tdm_philox_make_key(pipeline->options.seed, TDM_PURPOSE_BLOCK_ORDER, 1);
    order->count = 0;
    order->stored_bytes = 0;
    for (int64_t block = 0; block < pipeline->block_count; block++) {
        int64_t bytes;
        double weight = block_weight(pipeline, block, &bytes);
        double whole = floor(weight);
        int64_t times = (int64_t)whole + draw(key, block, epoch, weight - whole);
        TDM_TRY(tdm_grow(&order->blocks, &order->capacity, (size_t)(order->count + times),
                         sizeof *order->blocks));
        for (int64_t i = 0; i < times; i++)
            order->blocks[order->count++] = (uint32_t)block;
        order->stored_bytes += times * bytes;
    }
    return TDM_OK;
}

/* Numbers the places of each block in their order. */
static tdm_status number_occurrences(const tdm_pipeline *pipeline, tdm_epoch_order *order)
{
    uint16_t *seen;
    TDM_TRY(tdm_alloc((size_t)pipeline->block_count, sizeof *seen, &seen));
    tdm_status status = tdm_grow(&order->occurrences, &order->occurrence_capacity,
                                 (size_t)order->count, sizeof *order->occurrences);
    for (int64_t i = 0; status == TDM_OK && i < order->count; i++)
        order->occurrences[i] = seen[order->blocks[i]]++;
    tdm_free(seen);
    return status;
}

static tdm_status list_all(const tdm_pipeline *pipeline, tdm_epoch_order *order)
{
    order->count = pipeline->block_count;
    TDM_TRY(
        tdm_grow(&order->blocks, &order->capacity, (size_t)order->count, sizeof *order->blocks));
    for (int64_t i = 0; i < order->count; i++)
        order->blocks[i] = (uint32_t)i;
    return TDM_OK;
}

tdm_status tdm_epoch_order_make(tdm_pipeline *pipeline, int64_t epoch)
{
    tdm_epoch_order *order = &pipeline->orders[epoch & 1];
    bool listed = pipeline->weighted || tdm_input_seekable(pipeline->input);
    if (!listed || order->epoch == epoch)
        return TDM_OK;
    order->epoch = -1;
    TDM_TRY(pipeline->weighted ? list_weighted(pipeline, epoch, order) : list_all(pipeline, order));
    tdm_philox_key key = tdm_philox_make_key(pipeline->options.seed, TDM_PURPOSE_BLOCK_ORDER, 0);
    tdm_shuffle(order->blocks, order->count, key, 0, (uint32_t)epoch);
    if (pipeline->weighted)
        TDM_TRY(number_occurrences(pipeline, order));
    order->epoch = epoch;
    return TDM_OK;
}

int64_t tdm_epoch_blocks(const tdm_pipeline *pipeline, int64_t epoch)
{
    return pipeline->weighted ? pipeline->orders[epoch & 1].count : pipeline->block_count;
}

int64_t tdm_epoch_stored_bytes(const tdm_pipeline *pipeline, int64_t epoch)
{
    return pipeline->weighted ? pipeline->orders[epoch & 1].stored_bytes
                              : tdm_input_stored_bytes(pipeline->input);
}

void tdm_epoch_block(const tdm_pipeline *pipeline, int64_t epoch, int64_t position, int64_t *block,
                     int32_t *occurrence)
{
    const tdm_epoch_order *order = &pipeline->orders[epoch & 1];
    *block = order->epoch == epoch ? order->blocks[position] : position;
    *occurrence = pipeline->weighted ? order->occurrences[position] : 0;
}

void tdm_epoch_orders_free(tdm_pipeline *pipeline)
{
    for (int i = 0; i < 2; i++) {
        tdm_free(pipeline->orders[i].blocks);
        tdm_free(pipeline->orders[i].occurrences);
    }
}
