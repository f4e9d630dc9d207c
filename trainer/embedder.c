#include "trainer/embedder.h"

#include "core/memory.h"
#include "text/tokenizer.h"
#include "text/word_ids.h"

#include <stdatomic.h>
#include <string.h>

/* What a job tokenizes: so much text at least, or the rest. */
#define CHUNK_BYTES ((size_t)32 << 10)

/* Texts [first, first + count) of a group on their way to ids. */
typedef struct text_chunk {
    tdm_job job;
    struct text_group *group;
    int64_t first, count;
    tdm_token_list list; /* of all of them */
    tdm_error error;
} text_chunk;

/* Texts that were added together. */
typedef struct text_group {
    struct tdm_embedder *embedder;
    char *text; /* one behind the other */
    size_t text_capacity;
    size_t *ends; /* [count]: bytes */
    size_t ends_capacity;
    int64_t *token_ends; /* [count]: in the list of their chunk */
    size_t token_ends_capacity;
    int64_t count;
    text_chunk **chunks; /* each in memory of its own: jobs point to them */
    int64_t chunk_count, chunks_made;
    size_t chunks_capacity;
    _Atomic int64_t left; /* chunks that are not done */
} text_group;

struct tdm_embedder {
    tdm_encoder_run *run;
    tdm_embedder_options options;
    uint32_t cls, sep;
    int threads;
    tdm_word_ids **words; /* [threads]: made when the thread first sees a text */
    text_group groups[2];
    int turn; /* the group that the next texts go to; the other one may hold some */
    float *vectors;
    size_t vectors_capacity;
    tdm_embedder_counts counts;
};

/* ---- creation -------------------------------------------------------------------------------- */

static tdm_status find_specials(tdm_embedder *embedder)
{
    const tdm_tokenizer *tokenizer = embedder->run->tokenizer;
    static const tdm_special needed[] = {TDM_SPECIAL_CLS, TDM_SPECIAL_SEP, TDM_SPECIAL_UNK};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        TDM_FAIL_IF(tokenizer->specials[needed[i]] < 0, TDM_E_CONFIG, "%s: has no token %s",
                    embedder->run->source.from.tokenizer_path, tdm_special_names[needed[i]]);
    embedder->cls = (uint32_t)tokenizer->specials[TDM_SPECIAL_CLS];
    embedder->sep = (uint32_t)tokenizer->specials[TDM_SPECIAL_SEP];
    return TDM_OK;
}

tdm_status tdm_embedder_create(tdm_encoder_run *run, const tdm_embedder_options *options,
                               tdm_embedder **out)
{
    tdm_embedder *embedder;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *embedder, &embedder));
    embedder->run = run;
    embedder->options = *options;
    embedder->threads = tdm_pool_threads(run->pool);
    for (int i = 0; i < 2; i++)
        embedder->groups[i].embedder = embedder;
    tdm_status status = find_specials(embedder);
    if (status == TDM_OK)
        status = tdm_alloc((size_t)embedder->threads, sizeof(tdm_word_ids *), &embedder->words);
    if (status == TDM_OK)
        *out = embedder;
    else
        tdm_embedder_destroy(embedder);
    tdm_sequence_batch_empty(&run->batch);
    return status;
}

static void free_group(text_group *group)
{
    for (int64_t c = 0; c < group->chunks_made; c++) {
        tdm_token_list_deinit(&group->chunks[c]->list);
        tdm_free(group->chunks[c]);
    }
    tdm_free(group->chunks);
    tdm_free(group->text);
    tdm_free(group->ends);
    tdm_free(group->token_ends);
}

static bool is_done(void *context)
{
    text_group *group = context;
    return atomic_load(&group->left) == 0;
}

void tdm_embedder_destroy(tdm_embedder *embedder)
{
    if (embedder == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        tdm_pool_help_until(embedder->run->pool, is_done, &embedder->groups[i]);
        free_group(&embedder->groups[i]);
    }
    for (int i = 0; embedder->words != NULL && i < embedder->threads; i++)
        tdm_word_ids_destroy(embedder->words[i]);
    tdm_free(embedder->words);
    tdm_free(embedder->vectors);
    tdm_free(embedder);
}

tdm_embedder_counts tdm_embedder_counts_get(const tdm_embedder *embedder)
{
    return embedder->counts;
}

/* ---- to ids, on the pool --------------------------------------------------------------------- */

static size_t text_begin(const text_group *group, int64_t index)
{
    return index == 0 ? 0 : group->ends[index - 1];
}

static tdm_status tokenize(const text_group *group, text_chunk *chunk)
{
    tdm_embedder *embedder = group->embedder;
    tdm_word_ids **words = &embedder->words[tdm_pool_thread_index()];
    chunk->list.count = 0;
    if (*words == NULL)
        TDM_TRY(tdm_word_ids_create(embedder->run->tokenizer, words));
    for (int64_t i = chunk->first; i < chunk->first + chunk->count; i++) {
        size_t begin = text_begin(group, i);
        TDM_TRY(
            tdm_word_ids_append(*words, group->text + begin, group->ends[i] - begin, &chunk->list));
        group->token_ends[i] = chunk->list.count;
    }
    return TDM_OK;
}

static void run_chunk(tdm_job *job)
{
    text_chunk *chunk = (text_chunk *)(void *)job;
    tdm_status status = tokenize(chunk->group, chunk);
    if (status != TDM_OK)
        tdm_error_keep(&chunk->error, status);
    atomic_fetch_sub(&chunk->group->left, 1);
}

static tdm_status add_chunk(text_group *group, int64_t first, int64_t count)
{
    if (group->chunk_count == group->chunks_made) {
        TDM_TRY(tdm_grow(&group->chunks, &group->chunks_capacity, (size_t)group->chunks_made + 1,
                         sizeof(text_chunk *)));
        TDM_TRY(tdm_alloc(1, sizeof(text_chunk), &group->chunks[group->chunks_made]));
        group->chunks_made++;
    }
    text_chunk *chunk = group->chunks[group->chunk_count++];
    chunk->job.run = run_chunk;
    chunk->group = group;
    chunk->first = first;
    chunk->count = count;
    chunk->error = (tdm_error){0};
    return TDM_OK;
}

static tdm_status cut_chunks(text_group *group)
{
    int64_t first = 0;
    group->chunk_count = 0;
    for (int64_t i = 0; i < group->count; i++) {
        bool is_full = group->ends[i] - text_begin(group, first) >= CHUNK_BYTES;
        if (!is_full && i + 1 < group->count)
            continue;
        TDM_TRY(add_chunk(group, first, i + 1 - first));
        first = i + 1;
    }
    return TDM_OK;
}

static tdm_status copy_texts(text_group *group, const tdm_text_input *texts, int64_t count)
{
    size_t bytes = 0;
    TDM_TRY(tdm_grow(&group->ends, &group->ends_capacity, (size_t)count, sizeof *group->ends));
    TDM_TRY(tdm_grow(&group->token_ends, &group->token_ends_capacity, (size_t)count,
                     sizeof *group->token_ends));
    for (int64_t i = 0; i < count; i++) {
        bytes += texts[i].bytes;
        group->ends[i] = bytes;
    }
    TDM_TRY(tdm_grow(&group->text, &group->text_capacity, bytes, 1));
    for (int64_t i = 0; i < count; i++) {
        if (texts[i].bytes > 0)
            memcpy(group->text + text_begin(group, i), texts[i].text, texts[i].bytes);
    }
    group->count = count;
    return cut_chunks(group);
}

static void start_group(const tdm_embedder *embedder, text_group *group)
{
    atomic_store(&group->left, group->chunk_count);
    for (int64_t c = 0; c < group->chunk_count; c++)
        tdm_pool_submit(embedder->run->pool, TDM_PRIORITY_BATCH, &group->chunks[c]->job);
}

/* ---- to vectors ------------------------------------------------------------------------------ */

static tdm_status run_batch(tdm_embedder *embedder)
{
    tdm_encoder_run *run = embedder->run;
    tdm_sequence_batch *batch = &run->batch;
    tdm_matrix hidden;
    if (batch->sequences == 0)
        return TDM_OK;
    TDM_TRY(tdm_grow(&embedder->vectors, &embedder->vectors_capacity,
                     (size_t)(batch->sequences * run->hidden), sizeof *embedder->vectors));
    TDM_TRY(tdm_encoder_run_forward(run));
    TDM_TRY(tdm_encoder_run_output(run, "hidden", batch->tokens, &hidden));
    const tdm_pooling_args args = {
        .pooling = embedder->options.pooling,
        .hidden = hidden.data,
        .columns = hidden.columns,
        .stride = hidden.stride,
        .begins = tdm_sequence_batch_begins(batch),
        .sequences = batch->sequences,
        .vectors = embedder->vectors,
    };
    tdm_pool_states(run->pool, &args);
    embedder->counts.texts += batch->sequences;
    embedder->counts.tokens += batch->tokens;
    tdm_status status =
        embedder->options.take(embedder->options.context, embedder->vectors, batch->sequences);
    tdm_sequence_batch_empty(batch);
    return status;
}

static tdm_status add_sequence(tdm_embedder *embedder, const uint32_t *ids, int64_t count)
{
    tdm_sequence_batch *batch = &embedder->run->batch;
    int64_t most = embedder->run->max_length - 2;
    embedder->counts.cut += count > most;
    count = count < most ? count : most;
    if (!tdm_sequence_batch_has_room(batch, count + 2, 0))
        TDM_TRY(run_batch(embedder));
    uint32_t *to = tdm_sequence_batch_add(batch, count + 2, count + 2);
    *to++ = embedder->cls;
    if (count > 0)
        memcpy(to, ids, (size_t)count * sizeof *ids);
    to[count] = embedder->sep;
    return TDM_OK;
}

static tdm_status take_chunk(tdm_embedder *embedder, const text_group *group,
                             const text_chunk *chunk)
{
    int64_t begin = 0;
    if (chunk->error.status != TDM_OK)
        return tdm_error_raise(&chunk->error);
    for (int64_t i = chunk->first; i < chunk->first + chunk->count; i++) {
        TDM_TRY(add_sequence(embedder, chunk->list.ids + begin, group->token_ends[i] - begin));
        begin = group->token_ends[i];
    }
    return TDM_OK;
}

/* Puts the texts of a group into batches, runs those that are full, and empties it. */
static tdm_status take_group(tdm_embedder *embedder, text_group *group)
{
    tdm_status status = TDM_OK;
    tdm_pool_help_until(embedder->run->pool, is_done, group);
    for (int64_t c = 0; c < group->chunk_count && status == TDM_OK; c++)
        status = take_chunk(embedder, group, group->chunks[c]);
    group->count = group->chunk_count = 0;
    return status;
}

tdm_status tdm_embedder_add(tdm_embedder *embedder, const tdm_text_input *texts, int64_t count)
{
    text_group *group = &embedder->groups[embedder->turn];
    TDM_TRY(copy_texts(group, texts, count));
    start_group(embedder, group);
    embedder->turn = 1 - embedder->turn;
    return take_group(embedder, &embedder->groups[embedder->turn]);
}

tdm_status tdm_embedder_finish(tdm_embedder *embedder)
{
    TDM_TRY(take_group(embedder, &embedder->groups[1 - embedder->turn]));
    return run_batch(embedder);
}
