/* Attention: tiles, and the forward pass (Dao et al., 2022, arXiv 2205.14135). */
#include "cpu/attention.h"

#include <math.h>
#include <string.h>

/* ---- what forward and backward share --------------------------------------------------------- */

void *tdm_attention_take(unsigned char *base, size_t *used, int64_t count)
{
    void *taken = base == NULL ? NULL : base + *used;
    *used += (size_t)tdm_attention_pad(count) * sizeof(float);
    return taken;
}

/* Counts valid sequences and the chunks of the longest. */
static void measure_sequences(tdm_attention_job *job)
{
    const tdm_sequence_spans *spans = &job->spans;
    int64_t longest = 0;
    job->sequences = tdm_cpu_rows(spans->rows, spans->batch);
    for (int64_t i = 0; i < job->sequences; i++) {
        tdm_token_range tokens = tdm_attention_sequence(spans, i);
        longest = tokens.end - tokens.begin > longest ? tokens.end - tokens.begin : longest;
    }
    job->chunks = tdm_cpu_tiles(longest, job->chunk);
}

tdm_status tdm_attention_prepare(tdm_backend *backend, tdm_dtype compute,
                                 const tdm_dropout_draws *dropout, tdm_attention_job *job)
{
    job->kernels = tdm_cpu(backend)->kernels;
    job->attention = compute == TDM_BF16 ? tdm_attention_kernels_bf16() : job->kernels->attention;
    TDM_FAIL_IF(job->attention == NULL || (compute != TDM_F32 && compute != TDM_BF16),
                TDM_E_UNSUPPORTED,
                "this CPU has no products of %s for attention: use precision fp32",
                tdm_dtype_name(compute));
    job->dim = job->qkv.columns / (3 * job->heads);
    job->padded_dim = tdm_attention_pad(job->dim);
    job->units = tdm_attention_pad(tdm_cpu_tiles(job->dim, job->attention->unit));
    if (job->window < 0 || job->window > job->spans.max_length)
        job->window = job->spans.max_length;
    job->drops = dropout->rate > 0.0f;
    job->draws = job->drops ? tdm_cpu_dropout_row(dropout) : (tdm_dropout_row){.scale = 1.0f};
    job->samples = dropout->samples;
    job->chunk = tdm_cpu_min(TDM_ATTENTION_CHUNK, tdm_attention_pad(job->spans.max_length));
    job->rows = tdm_cpu_min(TDM_ATTENTION_ROWS, job->chunk);
    measure_sequences(job);
    return TDM_OK;
}

typedef struct clear_job {
    const tdm_sequence_spans *spans;
    const tdm_matrix *matrix;
    int64_t sequences;
} clear_job;

/* What lies before sequence `index` and behind the one before it. */
static void clear_tile(void *context, int64_t index)
{
    const clear_job *job = context;
    int64_t begin = index == 0 ? 0 : tdm_attention_sequence(job->spans, index - 1).end;
    int64_t end = index == job->sequences ? job->matrix->rows
                                          : tdm_attention_sequence(job->spans, index).begin;
    for (int64_t r = begin; r < end; r++)
        memset(tdm_cpu_row(job->matrix, r), 0, (size_t)job->matrix->columns * sizeof(float));
}

void tdm_attention_clear_gaps(tdm_backend *backend, const tdm_sequence_spans *spans,
                              const tdm_matrix *matrix)
{
    clear_job job = {spans, matrix, tdm_cpu_rows(spans->rows, spans->batch)};
    tdm_pool_for(backend->pool, job.sequences + 1, clear_tile, &job);
}

tdm_score_block tdm_attention_block(const tdm_attention_job *job, int64_t head,
                                    tdm_token_range queries, tdm_token_range seen,
                                    tdm_token_range keys)
{
    int64_t begin = (seen.begin - keys.begin) / TDM_ATTENTION_PANEL * TDM_ATTENTION_PANEL;
    int64_t end = tdm_cpu_tiles(seen.end - keys.begin, TDM_ATTENTION_PANEL) * TDM_ATTENTION_PANEL;
    int64_t length = job->spans.max_length;
    end = tdm_cpu_min(end, tdm_attention_pad(keys.end - keys.begin));
    return (tdm_score_block){.rows = queries.end - queries.begin,
                             .columns = end - begin,
                             .stride = job->chunk,
                             .row = queries.begin,
                             .column = keys.begin + begin,
                             .keys = keys.end,
                             .window = job->window,
                             .scale = job->scale,
                             .first_draw = head * length * length,
                             .draw_stride = length};
}

/* ---- forward --------------------------------------------------------------------------------- */

typedef struct forward_job {
    tdm_attention_job shared;
    const tdm_attention_fwd_args *args;
} forward_job;

/* A thread's scratch. */
typedef struct forward_buffers {
    void *queries;     /* of a block */
    tdm_panels keys;   /* of a chunk, turned */
    tdm_panels values; /* of a chunk */
    float *scores;     /* [rows, chunk] */
    void *weights;     /* of float: the scores */
    float *out;        /* of the tile's queries, not divided by the sums */
    float *maxima, *sums, *factors;
    uint32_t *words;
} forward_buffers;

static size_t take_buffers(const tdm_attention_job *job, unsigned char *base, forward_buffers *out)
{
    size_t used = 0;
    int64_t chunk = job->chunk, rows = job->rows, unit = job->attention->unit;
    *out = (forward_buffers){
        .queries = tdm_attention_take(base, &used, rows * job->units),
        .keys = {.data = tdm_attention_take(base, &used, job->units * chunk)},
        .values = {.data = tdm_attention_take(base, &used, chunk / unit * job->padded_dim)},
        .scores = tdm_attention_take(base, &used, rows * chunk),
        .out = tdm_attention_take(base, &used, chunk * job->padded_dim),
        .maxima = tdm_attention_take(base, &used, chunk),
        .sums = tdm_attention_take(base, &used, chunk),
        .factors = tdm_attention_take(base, &used, rows),
        .words = tdm_attention_take(base, &used, 2 * (chunk + TDM_ATTENTION_WORDS)),
    };
    out->weights = unit == 1 ? out->scores : tdm_attention_take(base, &used, rows * chunk / unit);
    return used;
}

/* One tile: queries of one head of a sequence. */
typedef struct forward_tile {
    const tdm_attention_job *job;
    forward_buffers buffers;
    tdm_token_range queries, keys; /* in the sequence; keys of the chunk in work */
    int64_t head;
    const float *q, *k, *v; /* of the sequence's first token */
    tdm_dropout_row draws;
} forward_tile;

static void pack_keys(forward_tile *tile)
{
    const tdm_attention_job *job = tile->job;
    forward_buffers *buffers = &tile->buffers;
    int64_t stride = job->qkv.stride, count = tile->keys.end - tile->keys.begin;
    buffers->keys.units = tdm_cpu_tiles(job->dim, job->attention->unit);
    buffers->keys.columns = tdm_attention_pad(count);
    buffers->values.units = tdm_attention_pad(count) / job->attention->unit;
    buffers->values.columns = job->padded_dim;
    job->attention->pack_turned(job->dim, count, tile->k + tile->keys.begin * stride, stride,
                                &buffers->keys);
    job->attention->pack_panels(count, job->dim, tile->v + tile->keys.begin * stride, stride,
                                &buffers->values);
}

/* Adds what a block of queries gets from the chunk of keys in work. */
static void attend(forward_tile *tile, tdm_token_range queries)
{
    const tdm_attention_job *job = tile->job;
    const forward_buffers *buffers = &tile->buffers;
    int64_t stride = job->qkv.stride, unit = job->attention->unit;
    tdm_token_range seen = tdm_attention_seen(job, queries, tile->keys);
    if (seen.begin >= seen.end)
        return;
    tdm_score_block block = tdm_attention_block(job, tile->head, queries, seen, tile->keys);
    block.draws = job->drops ? &tile->draws : NULL;
    block.words = buffers->words;
    int64_t column = block.column - tile->keys.begin, row = queries.begin - tile->queries.begin;
    job->attention->pack_rows(block.rows, job->dim, tile->q + queries.begin * stride, stride,
                              buffers->queries, job->units);
    job->attention->product(&(tdm_panel_product){.m = block.rows,
                                                 .n = block.columns,
                                                 .units = buffers->keys.units,
                                                 .a = buffers->queries,
                                                 .a_stride = job->units,
                                                 .b = buffers->keys,
                                                 .b_column = column,
                                                 .c = buffers->scores,
                                                 .c_stride = block.stride});
    job->attention->softmax(&block, buffers->scores, buffers->weights, buffers->maxima + row,
                            buffers->sums + row, buffers->factors);
    bool first = tile->keys.begin == 0 || queries.begin - job->window >= tile->keys.begin;
    job->attention->product(&(tdm_panel_product){.m = block.rows,
                                                 .n = job->padded_dim,
                                                 .units = block.columns / unit,
                                                 .a = buffers->weights,
                                                 .a_stride = block.stride / unit,
                                                 .b = buffers->values,
                                                 .b_unit = column / unit,
                                                 .accumulate = !first,
                                                 .factors = buffers->factors,
                                                 .c = buffers->out + row * job->padded_dim,
                                                 .c_stride = job->padded_dim});
}

static void finish(const forward_tile *tile, const tdm_attention_fwd_args *args, int64_t begin)
{
    const tdm_attention_job *job = tile->job;
    const forward_buffers *buffers = &tile->buffers;
    for (int64_t i = 0; i < tile->queries.end - tile->queries.begin; i++) {
        int64_t token = begin + tile->queries.begin + i;
        job->kernels->scale(job->dim, job->draws.scale / buffers->sums[i],
                            buffers->out + i * job->padded_dim,
                            tdm_cpu_row(&args->out, token) + tile->head * job->dim);
        if (args->log_sums != NULL)
            args->log_sums[token * job->heads + tile->head] =
                buffers->maxima[i] + logf(buffers->sums[i]);
    }
}

static void forward_part(void *context, int64_t index)
{
    const forward_job *forward = context;
    const tdm_attention_job *job = &forward->shared;
    int64_t chunk = index % job->chunks, sequence = index / job->chunks / job->heads;
    tdm_token_range tokens = tdm_attention_sequence(&job->spans, sequence);
    int64_t length = tokens.end - tokens.begin;
    forward_tile tile = {.job = job,
                         .queries = tdm_attention_chunk(job, length, chunk),
                         .head = index / job->chunks % job->heads,
                         .draws = job->draws};
    if (tile.queries.begin == tile.queries.end)
        return;
    take_buffers(job, job->scratch + (size_t)tdm_pool_thread_index() * job->thread_bytes,
                 &tile.buffers);
    tile.q = tdm_cpu_row(&job->qkv, tokens.begin) + tile.head * job->dim;
    tile.k = tile.q + job->heads * job->dim;
    tile.v = tile.k + job->heads * job->dim;
    if (job->drops)
        tile.draws.sample = job->samples[sequence];
    for (int64_t i = 0; i < tile.queries.end - tile.queries.begin; i++) {
        tile.buffers.maxima[i] = -INFINITY;
        tile.buffers.sums[i] = 0.0f;
    }
    for (int64_t k = 0; k < job->chunks; k++) {
        tile.keys = tdm_attention_chunk(job, length, k);
        tdm_token_range seen = tdm_attention_seen(job, tile.queries, tile.keys);
        if (seen.begin >= seen.end)
            continue;
        pack_keys(&tile);
        for (int64_t i = tile.queries.begin; i < tile.queries.end; i += job->rows)
            attend(&tile, (tdm_token_range){i, tdm_cpu_min(i + job->rows, tile.queries.end)});
    }
    finish(&tile, forward->args, tokens.begin);
}

tdm_status tdm_cpu_attention_fwd(tdm_backend *backend, const tdm_attention_fwd_args *args,
                                 tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("attention_fwd", args->qkv, args->out);
    forward_job forward = {.args = args,
                           .shared = {.qkv = args->qkv,
                                      .heads = args->heads,
                                      .window = args->window,
                                      .scale = args->scale,
                                      .spans = args->spans}};
    tdm_attention_job *job = &forward.shared;
    TDM_TRY(tdm_attention_prepare(backend, args->compute, &args->dropout, job));
    forward_buffers none;
    job->thread_bytes = take_buffers(job, NULL, &none);
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend),
                            (size_t)tdm_pool_threads(backend->pool) * job->thread_bytes,
                            &job->scratch));
    tdm_attention_clear_gaps(backend, &args->spans, &args->out);
    tdm_pool_for(backend->pool, job->sequences * job->heads * job->chunks, forward_part, &forward);
    return TDM_OK;
}
