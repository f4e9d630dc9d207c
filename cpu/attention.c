/* The forward pass of attention (Dao et al., 2022, arXiv 2205.14135). */
#include "cpu/attention.h"

#include <math.h>

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

/* The queries of one head of a chunk. */
typedef struct forward_part {
    const tdm_attention_job *job;
    const tdm_attention_fwd_args *args;
    forward_buffers buffers;
    tdm_token_range queries, keys; /* in the sequence; keys of the chunk in work */
    tdm_attention_tile tile;
    int64_t index, head;
    const float *q, *k, *v; /* of the sequence's first token */
    tdm_dropout_row draws;
    tdm_fetch fetch;
} forward_part;

static void pack_keys(forward_part *part)
{
    const tdm_attention_job *job = part->job;
    forward_buffers *buffers = &part->buffers;
    int64_t stride = job->qkv.stride, count = part->keys.end - part->keys.begin;
    buffers->keys.units = tdm_cpu_tiles(job->dim, job->attention->unit);
    buffers->keys.columns = tdm_attention_pad(count);
    buffers->values.units = tdm_attention_pad(count) / job->attention->unit;
    buffers->values.columns = job->padded_dim;
    job->attention->pack_turned(job->dim, count, part->k + part->keys.begin * stride, stride,
                                &buffers->keys);
    job->attention->pack_panels(count, job->dim, part->v + part->keys.begin * stride, stride,
                                &buffers->values);
}

/* Adds what a block of queries gets from the chunk of keys in work. */
static void attend(forward_part *part, tdm_token_range queries)
{
    const tdm_attention_job *job = part->job;
    const forward_buffers *buffers = &part->buffers;
    int64_t stride = job->qkv.stride, unit = job->attention->unit;
    tdm_token_range seen = tdm_attention_seen(job, queries, part->keys);
    if (seen.begin >= seen.end)
        return;
    tdm_score_block block = tdm_attention_block(job, part->head, queries, seen, part->keys);
    block.draws = job->drops ? &part->draws : NULL;
    block.words = buffers->words;
    int64_t column = block.column - part->keys.begin, row = queries.begin - part->queries.begin;
    job->attention->pack_rows(block.rows, job->dim, part->q + queries.begin * stride, stride,
                              buffers->queries, job->units);
    job->attention->product(&(tdm_panel_product){.m = block.rows,
                                                 .n = block.columns,
                                                 .units = buffers->keys.units,
                                                 .a = buffers->queries,
                                                 .a_stride = job->units,
                                                 .b = buffers->keys,
                                                 .b_column = column,
                                                 .c = buffers->scores,
                                                 .c_stride = block.stride,
                                                 .fetch = &part->fetch});
    job->attention->softmax(&block, buffers->scores, buffers->weights, buffers->maxima + row,
                            buffers->sums + row, buffers->factors);
    bool first = part->keys.begin == 0 || queries.begin - job->window >= part->keys.begin;
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
                                                 .c_stride = job->padded_dim,
                                                 .fetch = &part->fetch});
}

static void finish(const forward_part *part)
{
    const tdm_attention_job *job = part->job;
    const forward_buffers *buffers = &part->buffers;
    const tdm_attention_fwd_args *args = part->args;
    for (int64_t i = 0; i < part->queries.end - part->queries.begin; i++) {
        int64_t token = part->tile.tokens.begin + part->queries.begin + i;
        job->kernels->scale(job->dim, job->draws.scale / buffers->sums[i],
                            buffers->out + i * job->padded_dim,
                            tdm_cpu_row(&args->out, token) + part->head * job->dim);
        if (args->log_sums != NULL)
            args->log_sums[token * job->heads + part->head] =
                buffers->maxima[i] + logf(buffers->sums[i]);
    }
}

static void want_head(const tdm_attention_job *job, const tdm_attention_tile *tile, int64_t head,
                      tdm_fetch *fetch)
{
    int64_t first = tile->tokens.begin, length = tile->tokens.end - first;
    tdm_token_range queries = tdm_attention_chunk(job, length, tile->chunk);
    int64_t begin = queries.begin > job->window ? queries.begin - job->window : 0;
    tdm_token_range keys = tdm_attention_keys(job, length, queries, begin / job->chunk);
    tdm_attention_want(job, &job->qkv, first, queries, 0, head, false, fetch);
    tdm_attention_want(job, &job->qkv, first, keys, 2, head, false, fetch);
    tdm_attention_want(job, &job->qkv, first, keys, 1, head, false, fetch);
}

/* Wants what comes behind chunk `k` of the keys: the next one, the next head, or the next tile. */
static void plan_fetch(forward_part *part, int64_t k)
{
    const tdm_attention_job *job = part->job;
    const tdm_attention_tile *tile = &part->tile;
    tdm_fetch *fetch = &part->fetch;
    int64_t first = tile->tokens.begin, length = tile->tokens.end - first;
    tdm_token_range keys = tdm_attention_keys(job, length, part->queries, k + 1);
    fetch->run_count = 0;
    if (keys.begin < keys.end) {
        tdm_attention_want(job, &job->qkv, first, keys, 2, part->head, false, fetch);
        tdm_attention_want(job, &job->qkv, first, keys, 1, part->head, false, fetch);
        return;
    }
    tdm_attention_want(job, &part->args->out, first, part->queries, 0, part->head, true, fetch);
    if (part->head + 1 < tile->head_end) {
        want_head(job, tile, part->head + 1, fetch);
    } else if (part->index + 1 < job->tiles) {
        tdm_attention_tile next = tdm_attention_tile_at(job, part->index + 1);
        want_head(job, &next, next.head, fetch);
    }
}

static void run_part(forward_part *part)
{
    const tdm_attention_job *job = part->job;
    int64_t length = part->tile.tokens.end - part->tile.tokens.begin;
    part->q = tdm_cpu_row(&job->qkv, part->tile.tokens.begin) + part->head * job->dim;
    part->k = part->q + job->heads * job->dim;
    part->v = part->k + job->heads * job->dim;
    for (int64_t i = 0; i < part->queries.end - part->queries.begin; i++) {
        part->buffers.maxima[i] = -INFINITY;
        part->buffers.sums[i] = 0.0f;
    }
    for (int64_t k = 0; k < job->chunks; k++) {
        part->keys = tdm_attention_keys(job, length, part->queries, k);
        if (part->keys.begin == part->keys.end)
            continue;
        pack_keys(part);
        plan_fetch(part, k);
        for (int64_t i = part->queries.begin; i < part->queries.end; i += job->rows)
            attend(part, (tdm_token_range){i, tdm_cpu_min(i + job->rows, part->queries.end)});
    }
    finish(part);
}

static void forward_tile(void *context, int64_t index)
{
    const forward_job *forward = context;
    const tdm_attention_job *job = &forward->shared;
    tdm_attention_tile tile = tdm_attention_tile_at(job, index);
    int64_t length = tile.tokens.end - tile.tokens.begin;
    forward_part part = {.job = job,
                         .args = forward->args,
                         .queries = tdm_attention_chunk(job, length, tile.chunk),
                         .tile = tile,
                         .index = index,
                         .draws = job->draws};
    if (part.queries.begin == part.queries.end)
        return;
    take_buffers(job, job->scratch + (size_t)tdm_pool_thread_index() * job->thread_bytes,
                 &part.buffers);
    if (job->drops)
        tdm_cpu_dropout_of(job->dropout, tile.sequence, &part.draws);
    for (part.head = tile.head; part.head < tile.head_end; part.head++)
        run_part(&part);
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
    tdm_pool_for(backend->pool, job->tiles, forward_tile, &forward);
    return TDM_OK;
}
