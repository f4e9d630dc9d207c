#include "text/token_featurizer.h"

#include "core/memory.h"

#include <string.h>

/* ---- creation -------------------------------------------------------------------------------- */

bool tdm_has_wide_ids(const tdm_tokenizer *tokenizer)
{
    return tokenizer->vocabulary.size > UINT16_MAX + 1;
}

static tdm_status plan_batch(tdm_token_featurizer *tokens, int64_t batch_tokens, int lanes)
{
    int64_t length = tokens->sequences.max_length;
    int64_t lane_tokens = batch_tokens / lanes;
    TDM_FAIL_IF(lane_tokens < length, TDM_E_CONFIG,
                "train.batch_tokens %lld is %lld for each of data.lanes %d, less than "
                "text.max_length %lld: %lld would be enough",
                (long long)batch_tokens, (long long)lane_tokens, lanes, (long long)length,
                (long long)length * lanes);
    if (tokens->padded) {
        tokens->batch_rows = lane_tokens / length * lanes;
        tokens->batch_tokens = tokens->batch_rows * length;
    } else {
        tokens->batch_rows = lane_tokens / TDM_MIN_MEAN_LENGTH * lanes;
        tokens->batch_tokens = lane_tokens * lanes;
    }
    return TDM_OK;
}

tdm_status tdm_token_featurizer_init(tdm_token_featurizer *tokens, const tdm_text_options *options,
                                     const tdm_sequence_options *sequences,
                                     const tdm_tokenizer *tokenizer, tdm_pool *pool,
                                     int64_t batch_tokens, int lanes)
{
    tokens->tokenizer = tokenizer;
    tokens->loops = tdm_token_loops_choose(true);
    tokens->sequences = *sequences;
    tokens->padded = options->batch == TDM_TEXT_PADDED;
    tokens->wide_ids = tdm_has_wide_ids(tokenizer);
    tokens->cls = (uint32_t)tokenizer->specials[TDM_SPECIAL_CLS];
    tokens->sep = (uint32_t)tokenizer->specials[TDM_SPECIAL_SEP];
    tokens->pad = (uint32_t)tokenizer->specials[TDM_SPECIAL_PAD];
    tokens->threads = tdm_pool_threads(pool);
    tokens->base.spec_hash = tdm_tokenizer_hash(tokenizer);
    tokens->base.columns = (tdm_columns_layout){
        .count = TDM_COLUMN_COMMON,
        .rows_are_pieces = true,
        .columns = {[TDM_COLUMN_IDS] = {"ids", tokens->wide_ids ? TDM_U32 : TDM_U16, 1},
                    [TDM_COLUMN_MARKS] = {"marks", TDM_U8, 1}}};
    TDM_TRY(plan_batch(tokens, batch_tokens, lanes));
    TDM_TRY(tdm_alloc((size_t)tokens->threads, sizeof *tokens->scratch, &tokens->scratch));
    for (int i = 0; i < tokens->threads; i++)
        TDM_TRY(tdm_sequence_scratch_create(&tokens->scratch[i].sequences));
    return TDM_OK;
}

void tdm_token_featurizer_deinit(tdm_token_featurizer *tokens)
{
    for (int i = 0; tokens->scratch != NULL && i < tokens->threads; i++) {
        tdm_word_ids_destroy(tokens->scratch[i].words);
        tdm_token_list_deinit(&tokens->scratch[i].list);
        tdm_sequence_scratch_destroy(tokens->scratch[i].sequences);
    }
    tdm_free(tokens->scratch);
}

int tdm_add_vector(tdm_batch_layout *batch, const char *name, tdm_dtype dtype, int64_t count)
{
    return tdm_batch_layout_add(batch, name, dtype, (tdm_shape){1, {count}});
}

int tdm_add_token_tensor(tdm_token_featurizer *tokens, const char *name)
{
    tdm_batch_layout *batch = &tokens->base.batch;
    if (!tokens->padded)
        return tdm_add_vector(batch, name, TDM_U32, batch->max_tokens);
    tdm_shape shape = {2, {batch->batch_size, tokens->sequences.max_length}};
    return tdm_batch_layout_add(batch, name, TDM_U32, shape);
}

void tdm_token_tensors_add(tdm_token_featurizer *tokens)
{
    tdm_token_tensors *tensors = &tokens->tensors;
    tdm_batch_layout *batch = &tokens->base.batch;
    int64_t rows = tokens->batch_rows;
    tdm_batch_layout_init(batch, rows);
    batch->max_tokens = tokens->padded ? 0 : tokens->batch_tokens;
    tensors->ids = tdm_add_token_tensor(tokens, "ids");
    tensors->types = tdm_add_token_tensor(tokens, "types");
    tensors->positions = tdm_add_token_tensor(tokens, "positions");
    tensors->cu_seqlens = tensors->lengths = -1;
    if (tokens->padded)
        tensors->lengths = tdm_add_vector(batch, "lengths", TDM_I32, rows);
    else
        tensors->cu_seqlens = tdm_add_vector(batch, "cu_seqlens", TDM_I32, rows + 1);
    tensors->token_count = tdm_add_vector(batch, "token_count", TDM_I64, 1);
    tensors->max_seqlen = tdm_add_vector(batch, "max_seqlen", TDM_I64, 1);
    tokens->base.finish_parts = 1;
}

static tdm_token_scratch *scratch_of(const tdm_token_featurizer *tokens)
{
    return &tokens->scratch[tdm_pool_thread_index()];
}

tdm_status tdm_token_scratch_get(const tdm_token_featurizer *tokens, tdm_token_scratch **out)
{
    *out = scratch_of(tokens);
    return (*out)->words != NULL ? TDM_OK : tdm_word_ids_create(tokens->tokenizer, &(*out)->words);
}

/* ---- extract --------------------------------------------------------------------------------- */

tdm_status tdm_move_tokens(const tdm_token_featurizer *tokens, tdm_token_list *list,
                           tdm_extract *out, int64_t *rows)
{
    int64_t at = out->rows + *rows;
    size_t count = (size_t)list->count;
    if (count == 0)
        return TDM_OK;
    TDM_TRY(tdm_extract_reserve(&tokens->base.columns, out, (size_t)at + count));
    if (tokens->wide_ids) {
        memcpy((uint32_t *)out->columns[TDM_COLUMN_IDS] + at, list->ids, count * sizeof *list->ids);
    } else {
        tokens->loops->narrow(list->ids, list->count,
                              (uint16_t *)out->columns[TDM_COLUMN_IDS] + at);
    }
    memcpy((uint8_t *)out->columns[TDM_COLUMN_MARKS] + at, list->marks, count);
    *rows += list->count;
    list->count = 0;
    return TDM_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

tdm_status tdm_open_sequences(const tdm_featurizer *base, uint64_t seed, bool shuffle,
                              tdm_window *window)
{
    tdm_token_featurizer *tokens = (tdm_token_featurizer *)(uintptr_t)base;
    tdm_sequence_counts counts;
    window->seed = seed;
    TDM_TRY(tdm_sequences_build(&tokens->sequences, TDM_COLUMN_MARKS, seed, shuffle, window,
                                scratch_of(tokens)->sequences, &counts));
    atomic_fetch_add(&tokens->sequence_count, window->rows);
    atomic_fetch_add(&tokens->document_count, counts.documents);
    atomic_fetch_add(&tokens->token_count, counts.tokens);
    atomic_fetch_add(&tokens->cut_count, counts.cut_tokens);
    return TDM_OK;
}

tdm_text_counts tdm_text_featurizer_counts(const tdm_featurizer *base)
{
    tdm_token_featurizer *tokens = (tdm_token_featurizer *)(uintptr_t)base;
    return (tdm_text_counts){.sequences = atomic_load(&tokens->sequence_count),
                             .documents = atomic_load(&tokens->document_count),
                             .tokens = atomic_load(&tokens->token_count),
                             .cut_tokens = atomic_load(&tokens->cut_count),
                             .lost_predictions = atomic_load(&tokens->lost_count)};
}

/* ---- rows ------------------------------------------------------------------------------------ */

tdm_token_place tdm_token_place_at(const tdm_token_featurizer *tokens, const tdm_batch *batch,
                                   int64_t token)
{
    const tdm_token_tensors *tensors = &tokens->tensors;
    return (tdm_token_place){(uint32_t *)tdm_batch_data(batch, tensors->ids) + token,
                             (uint32_t *)tdm_batch_data(batch, tensors->types) + token,
                             (uint32_t *)tdm_batch_data(batch, tensors->positions) + token};
}

void tdm_fetch_row(const tdm_token_featurizer *tokens, bool marks, const tdm_window *window,
                   int64_t row)
{
    size_t id_bytes = tokens->wide_ids ? sizeof(uint32_t) : sizeof(uint16_t);
    if (row + 1 < window->rows)
        __builtin_prefetch(window->details + window->order[row + 1]);
    if (row >= window->rows)
        return;
    tdm_sequence sequence = tdm_sequence_get(window, row);
    const tdm_segment *segment = sequence.segments;
    const tdm_extract *block = window->blocks[segment->block];
    const char *ids = (const char *)block->columns[TDM_COLUMN_IDS] + segment->first * id_bytes;
    const uint8_t *begin = (const uint8_t *)block->columns[TDM_COLUMN_MARKS] + segment->first;
    for (size_t at = 0; at < segment->count * id_bytes; at += TDM_ALIGNMENT)
        __builtin_prefetch(ids + at);
    for (size_t at = 0; marks && at < segment->count; at += TDM_ALIGNMENT)
        __builtin_prefetch(begin + at);
}

int64_t tdm_write_row(const tdm_token_featurizer *tokens, const tdm_window *window,
                      int64_t window_row, const tdm_sequence *sequence, tdm_batch *batch,
                      int64_t row, int64_t token)
{
    float *weights = tdm_batch_data(batch, TDM_BATCH_WEIGHT);
    uint64_t *samples = tdm_batch_data(batch, TDM_BATCH_SAMPLE);
    uint32_t *occurrences = tdm_batch_data(batch, TDM_BATCH_OCCURRENCE);
    weights[row] = 1;
    samples[row] = (uint64_t)window->blocks[0]->block << 32 | (uint64_t)window_row;
    occurrences[row] = (uint32_t)window->blocks[0]->occurrence;
    if (!tokens->padded) {
        ((int32_t *)tdm_batch_data(batch, tokens->tensors.cu_seqlens))[row] = (int32_t)token;
        return token;
    }
    ((int32_t *)tdm_batch_data(batch, tokens->tensors.lengths))[row] = (int32_t)sequence->tokens;
    return row * tokens->sequences.max_length;
}

static void copy_ids(const tdm_token_featurizer *tokens, const tdm_extract *block,
                     const tdm_segment *segment, uint32_t *ids)
{
    const void *from = block->columns[TDM_COLUMN_IDS];
    if (tokens->wide_ids)
        memcpy(ids, (const uint32_t *)from + segment->first, segment->count * sizeof *ids);
    else
        tokens->loops->widen((const uint16_t *)from + segment->first, segment->count, ids);
}

void tdm_write_ids(const tdm_token_featurizer *tokens, const tdm_window *window,
                   const tdm_sequence *sequence, uint32_t *ids, uint8_t *marks)
{
    uint32_t at = 1;
    ids[0] = tokens->cls;
    if (marks != NULL)
        marks[0] = 0;
    for (uint32_t s = 0; s < sequence->segment_count; s++) {
        const tdm_segment *segment = &sequence->segments[s];
        const tdm_extract *block = window->blocks[segment->block];
        copy_ids(tokens, block, segment, ids + at);
        if (marks != NULL) {
            memcpy(marks + at, (const uint8_t *)block->columns[TDM_COLUMN_MARKS] + segment->first,
                   segment->count);
            marks[at + segment->count] = 0;
        }
        at += segment->count;
        ids[at++] = tokens->sep;
    }
    if (tokens->padded)
        tokens->loops->fill(ids + at, tokens->sequences.max_length - at, tokens->pad);
}

void tdm_write_places(const tdm_token_featurizer *tokens, const tdm_token_place *place,
                      int64_t second, int64_t length)
{
    const tdm_token_loops *loops = tokens->loops;
    int64_t room = tokens->padded ? tokens->sequences.max_length : length;
    loops->count_on(place->positions, room, 0);
    loops->fill(place->types, second, 0);
    loops->fill(place->types + second, length - second, 1);
    loops->fill(place->types + length, room - length, 0);
}

/* ---- batches --------------------------------------------------------------------------------- */

int64_t tdm_find_row(const tdm_token_featurizer *tokens, const tdm_batch *batch, int64_t row,
                     int64_t *length)
{
    if (tokens->padded) {
        *length = ((const int32_t *)tdm_batch_data(batch, tokens->tensors.lengths))[row];
        return row * tokens->sequences.max_length;
    }
    const int32_t *begins = tdm_batch_data(batch, tokens->tensors.cu_seqlens);
    *length = begins[row + 1] - begins[row];
    return begins[row];
}

void tdm_close_sequences(const tdm_token_featurizer *tokens, const tdm_batch *batch)
{
    const tdm_token_tensors *tensors = &tokens->tensors;
    int64_t longest = 0, count = 0;
    if (!tokens->padded) {
        int32_t *begins = tdm_batch_data(batch, tensors->cu_seqlens);
        for (int64_t r = batch->rows; r <= batch->layout->batch_size; r++)
            begins[r] = (int32_t)batch->tokens;
    }
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t length;
        tdm_find_row(tokens, batch, r, &length);
        longest = length > longest ? length : longest;
        count += length;
    }
    *(int64_t *)tdm_batch_data(batch, tensors->token_count) = count;
    *(int64_t *)tdm_batch_data(batch, tensors->max_seqlen) = longest;
}
