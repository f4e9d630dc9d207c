/* The backward of attention. Scores are made again. With P the weights, D = rowsum(dO ∘ O):
 *
 *   dV = (P ∘ keep / (1 - r))^T dO     dS = P ∘ (keep / (1 - r) ∘ dO V^T - D)
 *   dQ = scale · dS K                  dK = scale · dS^T Q
 *
 * A tile adds to the gradients of a chunk of queries and of a chunk of keys. In pass p, chunk c of
 * the keys meets chunk (c + p) mod chunks of the queries: no two tiles of a pass share a gradient,
 * and each gradient is added up in one order. */
#include "cpu/attention.h"

#include <string.h>

typedef struct backward_job {
    tdm_attention_job shared;
    const tdm_attention_bwd_args *args;
    int64_t pass;
} backward_job;

/* A thread's scratch. */
typedef struct backward_buffers {
    tdm_panels keys_turned, values_turned, keys;        /* of the chunk of keys */
    void *queries, *d_out;                              /* of a block, as rows */
    tdm_panels query_panels, d_out_panels;              /* of a block */
    float *scores, *d_weights;                          /* [rows, chunk] */
    void *weights, *score_gradients, *gradients_turned; /* of float: the two above */
    float *dq;                                          /* of a block */
    float *dk, *dv;                                     /* of the chunk of keys */
    float *log_sums, *dots;                             /* of a block */
    uint32_t *words;
} backward_buffers;

static size_t take_buffers(const tdm_attention_job *job, unsigned char *base, backward_buffers *out)
{
    size_t used = 0;
    int64_t chunk = job->chunk, rows = job->rows, dim = job->padded_dim;
    int64_t unit = job->attention->unit, row_units = tdm_cpu_tiles(rows, unit);
#define TAKE(count) tdm_attention_take(base, &used, (count))
    *out = (backward_buffers){
        .keys_turned = {.data = TAKE(job->units * chunk)},
        .values_turned = {.data = TAKE(job->units * chunk)},
        .keys = {.data = TAKE(chunk / unit * dim)},
        .queries = TAKE(rows * job->units),
        .d_out = TAKE(rows * job->units),
        .query_panels = {.data = TAKE(row_units * dim)},
        .d_out_panels = {.data = TAKE(row_units * dim)},
        .scores = TAKE(rows * chunk),
        .d_weights = TAKE(rows * chunk),
        .dq = TAKE(rows * dim),
        .dk = TAKE(chunk * dim),
        .dv = TAKE(chunk * dim),
        .log_sums = TAKE(rows),
        .dots = TAKE(rows),
        .words = TAKE(2 * (chunk + TDM_ATTENTION_WORDS)),
    };
    out->weights = unit == 1 ? out->scores : TAKE(row_units * chunk);
    out->score_gradients = unit == 1 ? out->d_weights : TAKE(rows * chunk / unit);
    out->gradients_turned = unit == 1 ? out->d_weights : TAKE(row_units * chunk);
#undef TAKE
    return used;
}

/* A chunk of queries and one of keys, of one head. */
typedef struct backward_part {
    const tdm_attention_job *job;
    const tdm_attention_bwd_args *args;
    backward_buffers buffers;
    tdm_token_range queries, keys; /* in the sequence */
    tdm_attention_tile tile;
    int64_t index, pass, head;
    const float *q, *k, *v; /* of the sequence's first token */
    const float *out, *d_out;
    float *dq, *dk, *dv;
    tdm_dropout_row draws;
    tdm_fetch fetch;
} backward_part;

/* What a tile works on in a pass; false where that is nothing. */
static bool find_ranges(const tdm_attention_job *job, const tdm_attention_tile *tile, int64_t pass,
                        tdm_token_range *queries, tdm_token_range *keys)
{
    int64_t length = tile->tokens.end - tile->tokens.begin;
    int64_t chunks = tdm_cpu_tiles(length, job->chunk);
    if (tile->chunk >= chunks || pass >= chunks)
        return false;
    *queries = tdm_attention_chunk(job, length, (tile->chunk + pass) % chunks);
    *keys = tdm_attention_keys(job, length, *queries, tile->chunk);
    return keys->begin < keys->end;
}

static void pack_keys(backward_part *part)
{
    const tdm_attention_job *job = part->job;
    backward_buffers *buffers = &part->buffers;
    int64_t stride = job->qkv.stride, count = part->keys.end - part->keys.begin;
    const float *k = part->k + part->keys.begin * stride;
    const float *v = part->v + part->keys.begin * stride;
    int64_t unit = job->attention->unit, columns = tdm_attention_pad(count);
    buffers->keys_turned.units = buffers->values_turned.units = tdm_cpu_tiles(job->dim, unit);
    buffers->keys_turned.columns = buffers->values_turned.columns = columns;
    buffers->keys.units = columns / unit;
    buffers->keys.columns = job->padded_dim;
    job->attention->pack_turned(job->dim, count, k, stride, &buffers->keys_turned);
    job->attention->pack_turned(job->dim, count, v, stride, &buffers->values_turned);
    job->attention->pack_panels(count, job->dim, k, stride, &buffers->keys);
}

static void pack_queries(backward_part *part, tdm_token_range queries)
{
    const tdm_attention_job *job = part->job;
    const tdm_attention_bwd_args *args = part->args;
    backward_buffers *buffers = &part->buffers;
    int64_t count = queries.end - queries.begin;
    const float *q = part->q + queries.begin * job->qkv.stride;
    const float *out = part->out + queries.begin * args->out.stride;
    const float *d_out = part->d_out + queries.begin * args->dout.stride;
    const tdm_attention_kernels *attention = job->attention;
    buffers->query_panels.units = buffers->d_out_panels.units =
        tdm_cpu_tiles(count, attention->unit);
    buffers->query_panels.columns = buffers->d_out_panels.columns = job->padded_dim;
    attention->pack_rows(count, job->dim, q, job->qkv.stride, buffers->queries, job->units);
    attention->pack_rows(count, job->dim, d_out, args->dout.stride, buffers->d_out, job->units);
    attention->pack_panels(count, job->dim, q, job->qkv.stride, &buffers->query_panels);
    attention->pack_panels(count, job->dim, d_out, args->dout.stride, &buffers->d_out_panels);
    for (int64_t i = 0; i < count; i++) {
        buffers->dots[i] =
            job->kernels->dot(job->dim, out + i * args->out.stride, d_out + i * args->dout.stride);
        buffers->log_sums[i] =
            args->log_sums[(part->tile.tokens.begin + queries.begin + i) * job->heads + part->head];
    }
}

/* x as rows of units times keys or values, turned: what is like scores. */
static void make_scores(backward_part *part, const tdm_score_block *block, const void *x,
                        const tdm_panels *turned, float *to)
{
    const tdm_attention_job *job = part->job;
    job->attention->product(&(tdm_panel_product){.m = block->rows,
                                                 .n = block->columns,
                                                 .units = turned->units,
                                                 .a = x,
                                                 .a_stride = job->units,
                                                 .b = *turned,
                                                 .b_column = block->column - part->keys.begin,
                                                 .c = to,
                                                 .c_stride = block->stride,
                                                 .fetch = &part->fetch});
}

/* Adds x^T · panels, x [rows, columns] being like scores, to rows of dk or dv. */
static void add_turned(backward_part *part, const tdm_score_block *block, const void *x,
                       const tdm_panels *panels, float *to)
{
    const tdm_attention_job *job = part->job;
    int64_t column = block->column - part->keys.begin;
    job->attention->product(&(tdm_panel_product){.m = block->columns,
                                                 .n = job->padded_dim,
                                                 .units = panels->units,
                                                 .a = x,
                                                 .a_stride = block->stride,
                                                 .a_turned = true,
                                                 .b = *panels,
                                                 .accumulate = true,
                                                 .c = to + column * job->padded_dim,
                                                 .c_stride = job->padded_dim,
                                                 .fetch = &part->fetch});
}

/* to (+)= factor · from, of rows of dim. */
static void put_rows(const backward_part *part, int64_t count, float factor, const float *from,
                     float *to)
{
    const tdm_attention_job *job = part->job;
    for (int64_t i = 0; i < count; i++, from += job->padded_dim, to += part->args->dqkv.stride) {
        if (part->pass == 0)
            job->kernels->scale(job->dim, factor, from, to);
        else
            job->kernels->add_scaled(job->dim, factor, from, to);
    }
}

/* The gradients that come from a block of queries and the chunk of keys. */
static void attend_back(backward_part *part, tdm_token_range queries)
{
    const tdm_attention_job *job = part->job;
    const backward_buffers *buffers = &part->buffers;
    int64_t unit = job->attention->unit;
    tdm_token_range seen = tdm_attention_seen(job, queries, part->keys);
    if (seen.begin >= seen.end)
        return;
    tdm_score_block block = tdm_attention_block(job, part->head, queries, seen, part->keys);
    block.draws = job->drops ? &part->draws : NULL;
    block.words = buffers->words;
    pack_queries(part, queries);
    make_scores(part, &block, buffers->queries, &buffers->keys_turned, buffers->scores);
    make_scores(part, &block, buffers->d_out, &buffers->values_turned, buffers->d_weights);
    job->attention->softmax_bwd(&block, buffers->scores, buffers->d_weights, buffers->log_sums,
                                buffers->dots, buffers->weights, buffers->score_gradients,
                                buffers->gradients_turned);
    job->attention->product(&(tdm_panel_product){.m = block.rows,
                                                 .n = job->padded_dim,
                                                 .units = block.columns / unit,
                                                 .a = buffers->score_gradients,
                                                 .a_stride = block.stride / unit,
                                                 .b = buffers->keys,
                                                 .b_unit = (block.column - part->keys.begin) / unit,
                                                 .c = buffers->dq,
                                                 .c_stride = job->padded_dim,
                                                 .fetch = &part->fetch});
    put_rows(part, block.rows, job->scale, buffers->dq,
             part->dq + queries.begin * part->args->dqkv.stride);
    add_turned(part, &block, buffers->weights, &buffers->d_out_panels, buffers->dv);
    add_turned(part, &block, buffers->gradients_turned, &buffers->query_panels, buffers->dk);
}

static void want_head(const backward_part *part, const tdm_attention_tile *tile, int64_t head,
                      tdm_fetch *fetch)
{
    const tdm_attention_job *job = part->job;
    const tdm_attention_bwd_args *args = part->args;
    int64_t first = tile->tokens.begin;
    tdm_token_range queries, keys;
    if (!find_ranges(job, tile, part->pass, &queries, &keys))
        return;
    tdm_attention_want(job, &args->out, first, queries, 0, head, false, fetch);
    tdm_attention_want(job, &args->dout, first, queries, 0, head, false, fetch);
    tdm_attention_want(job, &job->qkv, first, queries, 0, head, false, fetch);
    tdm_attention_want(job, &job->qkv, first, keys, 2, head, false, fetch);
    tdm_attention_want(job, &job->qkv, first, keys, 1, head, false, fetch);
}

/* Wants what the next head needs, or the next tile. */
static void plan_fetch(backward_part *part)
{
    const tdm_attention_job *job = part->job;
    const tdm_attention_tile *tile = &part->tile;
    const tdm_matrix *gradients = &part->args->dqkv;
    int64_t first = tile->tokens.begin;
    part->fetch.run_count = 0;
    tdm_attention_want(job, gradients, first, part->keys, 2, part->head, true, &part->fetch);
    tdm_attention_want(job, gradients, first, part->keys, 1, part->head, true, &part->fetch);
    if (part->head + 1 < tile->head_end) {
        want_head(part, tile, part->head + 1, &part->fetch);
    } else if (part->index + 1 < job->tiles) {
        tdm_attention_tile next = tdm_attention_tile_at(job, part->index + 1);
        want_head(part, &next, next.head, &part->fetch);
    }
    tdm_attention_want(job, gradients, first, part->queries, 0, part->head, true, &part->fetch);
}

static void run_part(backward_part *part)
{
    const tdm_attention_job *job = part->job;
    const tdm_attention_bwd_args *args = part->args;
    const backward_buffers *buffers = &part->buffers;
    int64_t first = part->tile.tokens.begin, column = part->head * job->dim;
    int64_t width = job->heads * job->dim;
    part->q = tdm_cpu_row(&job->qkv, first) + column;
    part->k = part->q + width;
    part->v = part->k + width;
    part->out = tdm_cpu_row(&args->out, first) + column;
    part->d_out = tdm_cpu_row(&args->dout, first) + column;
    part->dq = tdm_cpu_row(&args->dqkv, first) + column;
    part->dk = part->dq + width;
    part->dv = part->dk + width;
    int64_t count = part->keys.end - part->keys.begin;
    size_t bytes = (size_t)(tdm_attention_pad(count) * job->padded_dim) * sizeof(float);
    pack_keys(part);
    plan_fetch(part);
    memset(buffers->dk, 0, bytes);
    memset(buffers->dv, 0, bytes);
    for (int64_t i = part->queries.begin; i < part->queries.end; i += job->rows)
        attend_back(part, (tdm_token_range){i, tdm_cpu_min(i + job->rows, part->queries.end)});
    int64_t stride = args->dqkv.stride;
    put_rows(part, count, job->scale, buffers->dk, part->dk + part->keys.begin * stride);
    put_rows(part, count, job->draws.scale, buffers->dv, part->dv + part->keys.begin * stride);
}

static void backward_tile(void *context, int64_t index)
{
    const backward_job *backward = context;
    const tdm_attention_job *job = &backward->shared;
    backward_part part = {.job = job,
                          .args = backward->args,
                          .tile = tdm_attention_tile_at(job, index),
                          .index = index,
                          .pass = backward->pass,
                          .draws = job->draws};
    if (!find_ranges(job, &part.tile, part.pass, &part.queries, &part.keys))
        return;
    take_buffers(job, job->scratch + (size_t)tdm_pool_thread_index() * job->thread_bytes,
                 &part.buffers);
    if (job->drops)
        tdm_cpu_dropout_of(job->dropout, part.tile.sequence, &part.draws);
    for (part.head = part.tile.head; part.head < part.tile.head_end; part.head++)
        run_part(&part);
}

tdm_status tdm_cpu_attention_bwd(tdm_backend *backend, const tdm_attention_bwd_args *args,
                                 tdm_stream *stream)
{
    (void)stream;
    TDM_CPU_NEED_F32("attention_bwd", args->qkv, args->out, args->dout, args->dqkv);
    backward_job backward = {.args = args,
                             .shared = {.qkv = args->qkv,
                                        .heads = args->heads,
                                        .window = args->window,
                                        .scale = args->scale,
                                        .spans = args->spans}};
    tdm_attention_job *job = &backward.shared;
    TDM_TRY(tdm_attention_prepare(backend, args->compute, &args->dropout, job));
    backward_buffers none;
    job->thread_bytes = take_buffers(job, NULL, &none);
    TDM_TRY(tdm_cpu_scratch(tdm_cpu(backend),
                            (size_t)tdm_pool_threads(backend->pool) * job->thread_bytes,
                            &job->scratch));
    tdm_attention_clear_gaps(backend, &args->spans, &args->dqkv);
    for (backward.pass = 0; backward.pass < job->chunks; backward.pass++)
        tdm_pool_for(backend->pool, job->tiles, backward_tile, &backward);
    return TDM_OK;
}
