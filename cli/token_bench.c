#include "cli/token_bench.h"

#include "core/memory.h"
#include "data/source.h"

#include <string.h>

/* Lines that one job tokenizes. */
#define PART_BYTES ((size_t)256 << 10)

tdm_status tdm_token_bench_init(tdm_token_bench *bench, tdm_pool *pool)
{
    *bench = (tdm_token_bench){.pool = pool};
    return tdm_alloc((size_t)tdm_pool_threads(pool), sizeof *bench->lanes, &bench->lanes);
}

void tdm_token_bench_deinit(tdm_token_bench *bench)
{
    tdm_token_bench_close(bench);
    tdm_free(bench->lanes);
    tdm_free(bench->parts);
    tdm_free(bench->text);
    *bench = (tdm_token_bench){0};
}

/* ---- the text -------------------------------------------------------------------------------- */

tdm_status tdm_token_bench_read(tdm_token_bench *bench, const char *path, const atomic_bool *cancel)
{
    tdm_source *source;
    TDM_TRY(tdm_source_open(path, cancel, &source));
    tdm_status status = TDM_OK;
    size_t got = 1;
    while (status == TDM_OK && got > 0) {
        status = tdm_grow(&bench->text, &bench->capacity, bench->bytes + ((size_t)1 << 20), 1);
        if (status == TDM_OK)
            status = tdm_source_read(source, bench->text + bench->bytes,
                                     bench->capacity - bench->bytes, &got);
        bench->bytes += status == TDM_OK ? got : 0;
    }
    tdm_source_close(source);
    return status;
}

static size_t line_end(const tdm_token_bench *bench, size_t from)
{
    const char *end =
        from < bench->bytes ? memchr(bench->text + from, '\n', bench->bytes - from) : NULL;
    return end == NULL ? bench->bytes : (size_t)(end - bench->text);
}

tdm_status tdm_token_bench_cut(tdm_token_bench *bench)
{
    for (size_t at = 0; at < bench->bytes;) {
        TDM_TRY(tdm_grow(&bench->parts, &bench->parts_capacity, bench->part_count + 2,
                         sizeof *bench->parts));
        bench->parts[bench->part_count++] = at;
        at = line_end(bench, at + PART_BYTES - 1) + 1;
        bench->parts[bench->part_count] = at < bench->bytes ? at : bench->bytes;
    }
    for (size_t at = 0; at < bench->bytes; at = line_end(bench, at) + 1)
        bench->lines++;
    return TDM_OK;
}

/* ---- passes ---------------------------------------------------------------------------------- */

tdm_status tdm_token_bench_open(tdm_token_bench *bench, const tdm_tokenizer *tokenizer, int first,
                                int end)
{
    for (int i = first; i < end; i++)
        TDM_TRY(tdm_word_ids_create(tokenizer, &bench->lanes[i].words));
    return TDM_OK;
}

void tdm_token_bench_close(tdm_token_bench *bench)
{
    for (int i = 0; bench->lanes != NULL && i < tdm_pool_threads(bench->pool); i++) {
        tdm_word_ids_destroy(bench->lanes[i].words);
        tdm_token_list_deinit(&bench->lanes[i].tokens);
        bench->lanes[i].words = NULL;
    }
}

static void run_part(void *context, int64_t index)
{
    tdm_token_bench *bench = context;
    tdm_token_bench_lane *lane = &bench->lanes[tdm_pool_thread_index()];
    tdm_status status = TDM_OK;
    for (size_t at = bench->parts[index]; at < bench->parts[index + 1] && status == TDM_OK;) {
        size_t end = line_end(bench, at);
        status = tdm_word_ids_append(lane->words, bench->text + at, end - at, &lane->tokens);
        at = end + 1;
    }
    if (status != TDM_OK)
        tdm_error_keep(&lane->error, status);
}

tdm_status tdm_token_bench_pass(void *context)
{
    tdm_token_bench *bench = context;
    int threads = tdm_pool_threads(bench->pool);
    for (int i = 0; i < threads; i++)
        bench->lanes[i].tokens.count = 0;
    tdm_pool_for(bench->pool, (int64_t)bench->part_count, run_part, bench);
    for (int i = 0; i < threads; i++)
        TDM_TRY(tdm_error_raise(&bench->lanes[i].error));
    return TDM_OK;
}

int64_t tdm_token_bench_tokens(const tdm_token_bench *bench)
{
    int64_t count = 0;
    for (int i = 0; i < tdm_pool_threads(bench->pool); i++)
        count += bench->lanes[i].tokens.count;
    return count;
}
