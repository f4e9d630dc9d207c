/* A cache that is made before the first epoch: where blocks have weights, no epoch has each of them
 * once. */
#include "data/block_stream.h"
#include "data/pipeline_internal.h"

static tdm_status add_blocks(tdm_pipeline *pipeline, tdm_block_stream *stream, int64_t *blocks,
                             bool *failed)
{
    for (;;) {
        tdm_extract *block;
        TDM_FAIL_IF(tdm_input_cancelled(pipeline->input), TDM_E_CANCELLED,
                    "stopped while the cache was made");
        TDM_TRY(tdm_block_stream_next(stream, &block));
        if (block == NULL)
            return TDM_OK;
        tdm_status status = tdm_cache_writer_add(pipeline->writer, block);
        *failed = status != TDM_OK;
        TDM_TRY(status);
        (*blocks)++;
    }
}

tdm_status tdm_pipeline_fill_cache(tdm_pipeline *pipeline, bool *failed)
{
    const tdm_columns_layout *layout = &pipeline->featurizer->columns;
    tdm_block_stream *stream;
    int64_t blocks = 0;
    *failed = false;
    TDM_TRY(tdm_block_stream_open(pipeline->options.extractor, pipeline->options.pool, &stream));
    tdm_status status = add_blocks(pipeline, stream, &blocks, failed);
    tdm_block_stream_close(stream);
    TDM_TRY(status);
    *failed = true;
    TDM_TRY(tdm_cache_writer_commit(pipeline->writer, blocks));
    TDM_TRY(tdm_cache_open(pipeline->cache_path, layout, &pipeline->cache));
    *failed = false;
    return TDM_OK;
}
