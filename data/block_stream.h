/* Extracted blocks in the order of the input: what eval, predict, check and the benchmarks read.
 * Blocks are parsed ahead on the pool. */
#ifndef TDM_DATA_BLOCK_STREAM_H
#define TDM_DATA_BLOCK_STREAM_H

#include "data/extract.h"

typedef struct tdm_block_stream tdm_block_stream;

/* Blocks that a stream holds at most, the one that was given included. */
int tdm_block_stream_depth(const tdm_pool *pool);

/* `extractor` and `pool` are borrowed. */
TDM_MUST_CHECK tdm_status tdm_block_stream_open(tdm_extractor *extractor, tdm_pool *pool,
                                                tdm_block_stream **out);

/* The next block, or NULL behind the last one; it is valid until the next call. extract->first_line
 * is known where there are bad records. An error comes behind all blocks before it, and again with
 * every later call. Works on the pool while it waits. */
TDM_MUST_CHECK tdm_status tdm_block_stream_next(tdm_block_stream *stream, tdm_extract **out);

/* NULL is allowed. */
void tdm_block_stream_close(tdm_block_stream *stream);

#endif
