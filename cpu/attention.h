/* What attention's forward and backward share: where the tiles of a batch lie.
 *
 * The tokens of a sequence are cut into chunks. The forward goes, for a chunk of queries and a
 * head, through the chunks of keys with a running softmax; the backward takes a chunk of queries
 * and one of keys at a time. So working memory does not grow with the length. A tile is a chunk and
 * some heads: while it computes for one, what the next one needs is fetched. */
#ifndef TDM_CPU_ATTENTION_H
#define TDM_CPU_ATTENTION_H

#include "cpu/backend_cpu.h"
#include "cpu/kernels_attention.h"

#define TDM_ATTENTION_CHUNK 512 /* tokens; a multiple of TDM_ATTENTION_PANEL */
#define TDM_ATTENTION_ROWS  64  /* queries of a block of scores */

typedef struct tdm_attention_job {
    const tdm_kernels *kernels;
    const tdm_attention_kernels *attention;
    tdm_matrix qkv;
    int64_t heads, dim, padded_dim;
    int64_t units; /* of a row of dim, padded */
    int64_t window;
    float scale;
    bool drops;
    const tdm_dropout_draws *dropout;
    tdm_dropout_row draws; /* but for what a sequence has; scale 1 where nothing is dropped */
    tdm_sequence_spans spans;
    int64_t sequences, chunks; /* valid sequences; chunks of the longest */
    int64_t chunk, rows;       /* most tokens of a chunk, most queries of a block */
    int64_t group, tiles;      /* heads of a tile */
    unsigned char *scratch;    /* of the threads, one after the other */
    size_t thread_bytes;
} tdm_attention_job;

/* Tokens [begin, end) of a batch. */
typedef struct tdm_token_range {
    int64_t begin, end;
} tdm_token_range;

static inline tdm_token_range tdm_attention_sequence(const tdm_sequence_spans *spans, int64_t i)
{
    if (spans->cu_seqlens != NULL)
        return (tdm_token_range){spans->cu_seqlens[i], spans->cu_seqlens[i + 1]};
    return (tdm_token_range){i * spans->stride, i * spans->stride + spans->lengths[i]};
}

/* What tile `index` works on. */
typedef struct tdm_attention_tile {
    int64_t sequence, chunk;
    int64_t head, head_end;
    tdm_token_range tokens; /* of the sequence, in the batch */
} tdm_attention_tile;
tdm_attention_tile tdm_attention_tile_at(const tdm_attention_job *job, int64_t index);

/* Chunk `chunk` of a sequence of so many tokens, empty behind the last. */
static inline tdm_token_range tdm_attention_chunk(const tdm_attention_job *job, int64_t length,
                                                  int64_t chunk)
{
    return (tdm_token_range){tdm_cpu_min(length, chunk * job->chunk),
                             tdm_cpu_min(length, (chunk + 1) * job->chunk)};
}

/* The keys of `keys` that the queries of `queries` see, both within their sequence. */
static inline tdm_token_range tdm_attention_seen(const tdm_attention_job *job,
                                                 tdm_token_range queries, tdm_token_range keys)
{
    tdm_token_range seen = {queries.begin - job->window, queries.end + job->window};
    if (seen.begin < keys.begin)
        seen.begin = keys.begin;
    seen.end = tdm_cpu_min(seen.end, keys.end);
    return seen;
}

/* Those of chunk `chunk` of the keys, from where a panel begins; empty where the queries see
 * none. */
static inline tdm_token_range tdm_attention_keys(const tdm_attention_job *job, int64_t length,
                                                 tdm_token_range queries, int64_t chunk)
{
    tdm_token_range keys = tdm_attention_chunk(job, length, chunk);
    tdm_token_range seen = tdm_attention_seen(job, queries, keys);
    if (seen.begin >= seen.end)
        return (tdm_token_range){0, 0};
    seen.begin = seen.begin / TDM_ATTENTION_PANEL * TDM_ATTENTION_PANEL;
    return seen;
}

static inline int64_t tdm_attention_pad(int64_t count)
{
    return tdm_cpu_tiles(count, TDM_ATTENTION_PAD) * TDM_ATTENTION_PAD;
}

/* Wants tokens [range.begin, range.end) of a sequence, that begins at token `first`, of one head in
 * part `part` of the columns of a matrix: 0 the queries, 1 the keys, 2 the values. What is wanted
 * last is fetched first. */
void tdm_attention_want(const tdm_attention_job *job, const tdm_matrix *matrix, int64_t first,
                        tdm_token_range range, int64_t part, int64_t head, bool write,
                        tdm_fetch *fetch);

/* Takes `count` words, aligned, from a thread's scratch; NULL where base is NULL, to find the
 * size. */
void *tdm_attention_take(unsigned char *base, size_t *used, int64_t count);

/* What is not of args' own follows from qkv and spans. TDM_E_UNSUPPORTED where `compute` is. */
TDM_MUST_CHECK tdm_status tdm_attention_prepare(tdm_backend *backend, tdm_dtype compute,
                                                const tdm_dropout_draws *dropout,
                                                tdm_attention_job *job);

/* Zeros in the rows of `matrix` that are tokens of no sequence. */
void tdm_attention_clear_gaps(tdm_backend *backend, const tdm_sequence_spans *spans,
                              const tdm_matrix *matrix);

/* The block of `queries` and, of the keys in work, those that they see, its columns widened to
 * where panels begin. */
tdm_score_block tdm_attention_block(const tdm_attention_job *job, int64_t head,
                                    tdm_token_range queries, tdm_token_range seen,
                                    tdm_token_range keys);

#endif
