#include "cpu/attention.h"

#include <string.h>

#define TILES 128 /* more than that, and they take several heads */

void *tdm_attention_take(unsigned char *base, size_t *used, int64_t count)
{
    void *taken = base == NULL ? NULL : base + *used;
    *used += (size_t)tdm_attention_pad(count) * sizeof(float);
    return taken;
}

/* Counts valid sequences, the chunks of the longest, and tiles. */
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
    int64_t parts = job->sequences * job->chunks, group = parts * job->heads / TILES;
    job->group = group < 1 ? 1 : tdm_cpu_min(group, job->heads);
    job->tiles = parts * tdm_cpu_tiles(job->heads, job->group);
}

tdm_status tdm_attention_prepare(tdm_backend *backend, tdm_dtype compute,
                                 const tdm_dropout_draws *dropout, tdm_attention_job *job)
{
    job->kernels = tdm_cpu(backend)->kernels;
    job->attention = job->kernels->attention;
    TDM_FAIL_IF(compute != TDM_F32 && compute != TDM_BF16, TDM_E_UNSUPPORTED,
                "the attention of the CPU does not compute in %s: use precision fp32",
                tdm_dtype_name(compute));
    if (compute == TDM_BF16) {
        TDM_TRY(tdm_cpu_need_bf16(backend));
        job->attention = tdm_attention_kernels_bf16();
    }
    job->dim = job->qkv.columns / (3 * job->heads);
    job->padded_dim = tdm_attention_pad(job->dim);
    job->units = tdm_attention_pad(tdm_cpu_tiles(job->dim, job->attention->unit));
    if (job->window < 0 || job->window > job->spans.max_length)
        job->window = job->spans.max_length;
    job->dropout = dropout;
    job->drops = dropout->rate > 0.0f;
    job->draws = tdm_cpu_dropout_row(dropout);
    int64_t longest = job->spans.max_length > 0 ? job->spans.max_length : 1;
    job->chunk = tdm_cpu_min(TDM_ATTENTION_CHUNK, tdm_attention_pad(longest));
    job->rows = tdm_cpu_min(TDM_ATTENTION_ROWS, job->chunk);
    measure_sequences(job);
    return TDM_OK;
}

tdm_attention_tile tdm_attention_tile_at(const tdm_attention_job *job, int64_t index)
{
    int64_t groups = tdm_cpu_tiles(job->heads, job->group);
    int64_t head = index / job->chunks % groups * job->group;
    tdm_attention_tile tile = {.sequence = index / job->chunks / groups,
                               .chunk = index % job->chunks,
                               .head = head,
                               .head_end = tdm_cpu_min(job->heads, head + job->group)};
    tile.tokens = tdm_attention_sequence(&job->spans, tile.sequence);
    return tile;
}

void tdm_attention_want(const tdm_attention_job *job, const tdm_matrix *matrix, int64_t first,
                        tdm_token_range range, int64_t part, int64_t head, bool write,
                        tdm_fetch *fetch)
{
    if (range.begin >= range.end)
        return;
    fetch->columns = job->dim;
    fetch->runs[fetch->run_count++] = (tdm_fetch_run){
        .row = tdm_cpu_row(matrix, first + range.begin) + (part * job->heads + head) * job->dim,
        .stride = matrix->stride,
        .count = range.end - range.begin,
        .write = write};
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
