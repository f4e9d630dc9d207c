#include "text/text_featurizer.h"

#include "core/memory.h"
#include "text/token_loops.h"
#include "text/word_ids.h"

#include <stdatomic.h>
#include <string.h>

/* Tokens of documents are moved to the block's columns when there are so many. */
#define MOVED_TOKENS 4096

enum {
    COLUMN_IDS = 0,
    COLUMN_MARKS = 1,
};

/* Behind the common ones. */
typedef struct text_tensors {
    int ids, types, positions;
    int cu_seqlens, lengths; /* one of them is -1 */
    int mask_positions, mask_labels;
    int pair_labels; /* -1 without pairs */
    int token_count, mask_count, max_seqlen;
} text_tensors;

typedef struct thread_scratch {
    tdm_word_ids *words; /* made when the thread first sees a text */
    tdm_token_list list;
    tdm_sequence_scratch *sequences;
    tdm_mask_scratch *masks;
    uint8_t *marks;              /* [max_length] */
    tdm_prediction *predictions; /* [max_length] */
} thread_scratch;

typedef struct text_featurizer {
    tdm_featurizer base;
    const tdm_tokenizer *tokenizer;
    const tdm_token_loops *loops;
    tdm_sequence_options sequences;
    tdm_masker *masker;
    bool padded;
    bool wants_marks; /* to mask by */
    bool wide_ids;
    uint32_t cls, sep, pad;
    text_tensors tensors;
    thread_scratch *scratch; /* [threads] */
    int threads;
    _Atomic int64_t lost_count; /* predictions that had no room in their batch */
    _Atomic int64_t sequence_count, document_count, token_count, cut_count;
} text_featurizer;

static thread_scratch *scratch_of(const text_featurizer *featurizer)
{
    return &featurizer->scratch[tdm_pool_thread_index()];
}

/* ---- extract --------------------------------------------------------------------------------- */

/* Appends the tokens of a document, whose lines are its sentences. */
static tdm_status tokenize(thread_scratch *scratch, const char *text, size_t bytes)
{
    tdm_token_list *list = &scratch->list;
    int64_t first = list->count;
    TDM_TRY(tdm_word_ids_append(scratch->words, text, bytes, list));
    if (list->count > first)
        list->marks[first] |= TDM_MARK_DOCUMENT;
    return TDM_OK;
}

static tdm_status move_tokens(const text_featurizer *featurizer, tdm_token_list *list,
                              tdm_extract *out, int64_t *rows)
{
    int64_t at = out->rows + *rows;
    size_t count = (size_t)list->count;
    TDM_TRY(tdm_extract_reserve(&featurizer->base.columns, out, (size_t)at + count));
    if (featurizer->wide_ids) {
        memcpy((uint32_t *)out->columns[COLUMN_IDS] + at, list->ids, count * sizeof *list->ids);
    } else {
        featurizer->loops->narrow(list->ids, list->count,
                                  (uint16_t *)out->columns[COLUMN_IDS] + at);
    }
    memcpy((uint8_t *)out->columns[COLUMN_MARKS] + at, list->marks, count);
    *rows += list->count;
    list->count = 0;
    return TDM_OK;
}

static tdm_status extract(const tdm_featurizer *base, const tdm_records *records, tdm_extract *out,
                          uint32_t *row_records, int64_t *rows,
                          void (*reject)(void *context, int64_t record, int32_t column,
                                         const char *reason),
                          void *context)
{
    (void)row_records;
    (void)reject;
    (void)context;
    const text_featurizer *featurizer = (const text_featurizer *)base;
    thread_scratch *scratch = scratch_of(featurizer);
    if (scratch->words == NULL)
        TDM_TRY(tdm_word_ids_create(featurizer->tokenizer, &scratch->words));
    scratch->list.count = 0;
    *rows = 0;
    for (int64_t i = 0; i < records->count; i++) {
        tdm_span cell = records->cells[i * records->columns];
        TDM_TRY(tokenize(scratch, records->text + cell.begin, cell.end - cell.begin));
        bool last = i + 1 == records->count;
        if ((last || scratch->list.count >= MOVED_TOKENS) && scratch->list.count > 0)
            TDM_TRY(move_tokens(featurizer, &scratch->list, out, rows));
    }
    return TDM_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

static tdm_status open_window(const tdm_featurizer *base, uint64_t seed, bool shuffle,
                              tdm_window *window)
{
    text_featurizer *featurizer = (text_featurizer *)(uintptr_t)base;
    tdm_sequence_counts counts;
    int64_t tokens = 0;
    window->seed = seed;
    TDM_TRY(tdm_sequences_build(&featurizer->sequences, COLUMN_MARKS, seed, shuffle, window,
                                scratch_of(featurizer)->sequences, &counts));
    for (int b = 0; b < window->block_count; b++)
        tokens += window->blocks[b]->rows;
    atomic_fetch_add(&featurizer->sequence_count, window->rows);
    atomic_fetch_add(&featurizer->document_count, counts.documents);
    atomic_fetch_add(&featurizer->token_count, tokens);
    atomic_fetch_add(&featurizer->cut_count, counts.cut_tokens);
    return TDM_OK;
}

tdm_text_counts tdm_text_featurizer_counts(const tdm_featurizer *base)
{
    text_featurizer *featurizer = (text_featurizer *)(uintptr_t)base;
    return (tdm_text_counts){.sequences = atomic_load(&featurizer->sequence_count),
                             .documents = atomic_load(&featurizer->document_count),
                             .tokens = atomic_load(&featurizer->token_count),
                             .cut_tokens = atomic_load(&featurizer->cut_count),
                             .lost_predictions = atomic_load(&featurizer->lost_count)};
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Where a row's tokens go. Until the batch is finished its predictions wait there: positions[0] is
 * their count, positions and labels lie behind positions[0] and types[0], and types[0] is where the
 * second segment of a pair begins. [CLS] and [SEP] are never predicted, so that there is room. */
typedef struct token_place {
    uint32_t *ids, *types, *positions;
} token_place;

static token_place place_at(const text_featurizer *featurizer, const tdm_batch *batch,
                            int64_t token)
{
    const text_tensors *tensors = &featurizer->tensors;
    return (token_place){(uint32_t *)tdm_batch_data(batch, tensors->ids) + token,
                         (uint32_t *)tdm_batch_data(batch, tensors->types) + token,
                         (uint32_t *)tdm_batch_data(batch, tensors->positions) + token};
}

static void copy_ids(const text_featurizer *featurizer, const tdm_extract *block,
                     const tdm_segment *segment, uint32_t *ids)
{
    const void *from = block->columns[COLUMN_IDS];
    if (featurizer->wide_ids)
        memcpy(ids, (const uint32_t *)from + segment->first, segment->count * sizeof *ids);
    else
        featurizer->loops->widen((const uint16_t *)from + segment->first, segment->count, ids);
}

static void write_tokens(const text_featurizer *featurizer, const tdm_window *window,
                         const tdm_sequence *sequence, const token_place *place, uint8_t *marks)
{
    uint32_t at = 1;
    place->ids[0] = featurizer->cls;
    place->types[0] = sequence->tokens;
    marks[0] = 0;
    for (uint32_t s = 0; s < sequence->segment_count; s++) {
        const tdm_segment *segment = &sequence->segments[s];
        const tdm_extract *block = window->blocks[segment->block];
        copy_ids(featurizer, block, segment, place->ids + at);
        if (featurizer->wants_marks)
            memcpy(marks + at, (const uint8_t *)block->columns[COLUMN_MARKS] + segment->first,
                   segment->count);
        if (s == 1 && featurizer->sequences.mode == TDM_SEGMENT_PAIRS)
            place->types[0] = at;
        at += segment->count;
        place->ids[at] = featurizer->sep;
        marks[at++] = 0;
    }
}

static void mask_tokens(const text_featurizer *featurizer, const tdm_window *window,
                        uint64_t sample, const tdm_sequence *sequence, const token_place *place,
                        thread_scratch *scratch)
{
    uint32_t epoch = tdm_extract_counter(window->blocks[0], window->epoch);
    int64_t count =
        tdm_mask_sequence(featurizer->masker, window->seed, sample, epoch, place->ids,
                          scratch->marks, sequence->tokens, scratch->masks, scratch->predictions);
    place->positions[0] = (uint32_t)count;
    for (int64_t i = 0; i < count; i++) {
        place->positions[1 + i] = scratch->predictions[i].position;
        place->types[1 + i] = scratch->predictions[i].label;
    }
}

/* Rows lie in random order in the window's memory. */
static void fetch_row(const text_featurizer *featurizer, const tdm_window *window, int64_t row)
{
    size_t id_bytes = tdm_dtype_size(featurizer->base.columns.columns[COLUMN_IDS].dtype);
    if (row + 1 < window->rows)
        __builtin_prefetch(window->details + window->order[row + 1]);
    if (row >= window->rows)
        return;
    tdm_sequence sequence = tdm_sequence_get(window, row);
    const tdm_segment *segment = sequence.segments;
    const tdm_extract *block = window->blocks[segment->block];
    const char *ids = (const char *)block->columns[COLUMN_IDS] + segment->first * id_bytes;
    const uint8_t *marks = (const uint8_t *)block->columns[COLUMN_MARKS] + segment->first;
    for (size_t at = 0; at < segment->count * id_bytes; at += TDM_ALIGNMENT)
        __builtin_prefetch(ids + at);
    for (size_t at = 0; featurizer->wants_marks && at < segment->count; at += TDM_ALIGNMENT)
        __builtin_prefetch(marks + at);
}

static void assemble(const tdm_featurizer *base, const tdm_window *window, int64_t first,
                     int64_t count, tdm_batch *batch, int64_t at, int64_t token)
{
    const text_featurizer *featurizer = (const text_featurizer *)base;
    const text_tensors *tensors = &featurizer->tensors;
    thread_scratch *scratch = scratch_of(featurizer);
    float *weights = tdm_batch_data(batch, TDM_BATCH_WEIGHT);
    uint64_t *samples = tdm_batch_data(batch, TDM_BATCH_SAMPLE);
    uint64_t window_sample = (uint64_t)window->blocks[0]->block << 32;
    for (int64_t i = 0; i < count; i++) {
        tdm_sequence sequence = tdm_sequence_get(window, first + i);
        int64_t row = at + i;
        fetch_row(featurizer, window, first + i + 1);
        if (featurizer->padded)
            token = row * featurizer->sequences.max_length;
        token_place place = place_at(featurizer, batch, token);
        weights[row] = 1;
        samples[row] = window_sample | (uint64_t)(first + i);
        write_tokens(featurizer, window, &sequence, &place, scratch->marks);
        mask_tokens(featurizer, window, samples[row], &sequence, &place, scratch);
        if (featurizer->padded)
            featurizer->loops->fill(place.ids + sequence.tokens,
                                    featurizer->sequences.max_length - sequence.tokens,
                                    featurizer->pad);
        int32_t *lengths =
            tdm_batch_data(batch, featurizer->padded ? tensors->lengths : tensors->cu_seqlens);
        lengths[row] = featurizer->padded ? (int32_t)sequence.tokens : (int32_t)token;
        if (tensors->pair_labels >= 0)
            ((uint32_t *)tdm_batch_data(batch, tensors->pair_labels))[row] = sequence.pair_label;
        token += sequence.tokens;
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

/* The predictions of a batch, being collected in the order of the tokens. */
typedef struct collecting {
    int32_t *mask_positions;
    uint32_t *mask_labels;
    int64_t count, most; /* what is beyond that is left out, */
    int64_t lost;        /* and counted */
} collecting;

/* Takes those of a row of `length` tokens from token `begin` on, and puts its positions and types
 * there, for `room` tokens. */
static void finish_row(const text_featurizer *featurizer, const token_place *place, int64_t begin,
                       int64_t length, int64_t room, collecting *all)
{
    const tdm_token_loops *loops = featurizer->loops;
    int64_t count = place->positions[0], second = place->types[0];
    if (count > all->most - all->count) {
        all->lost += count - (all->most - all->count);
        count = all->most - all->count;
    }
    for (int64_t i = 0; i < count; i++)
        all->mask_positions[all->count + i] = (int32_t)(begin + place->positions[1 + i]);
    memcpy(all->mask_labels + all->count, place->types + 1,
           (size_t)count * sizeof *all->mask_labels);
    all->count += count;
    loops->count_on(place->positions, room, 0);
    loops->fill(place->types, second, 0);
    loops->fill(place->types + second, length - second, 1);
    loops->fill(place->types + length, room - length, 0);
}

/* cu_seqlens of the rows that are not there: they are empty. Returns the longest of the others. */
static int64_t close_lengths(const text_featurizer *featurizer, const tdm_batch *batch)
{
    int64_t longest = 0;
    if (featurizer->padded) {
        const int32_t *lengths = tdm_batch_data(batch, featurizer->tensors.lengths);
        for (int64_t r = 0; r < batch->rows; r++)
            longest = lengths[r] > longest ? lengths[r] : longest;
        return longest;
    }
    int32_t *begins = tdm_batch_data(batch, featurizer->tensors.cu_seqlens);
    for (int64_t r = batch->rows; r <= batch->layout->batch_size; r++)
        begins[r] = (int32_t)batch->tokens;
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t length = begins[r + 1] - begins[r];
        longest = length > longest ? length : longest;
    }
    return longest;
}

static void finish(const tdm_featurizer *base, tdm_batch *batch, int part)
{
    (void)part;
    const text_featurizer *featurizer = (const text_featurizer *)base;
    const text_tensors *tensors = &featurizer->tensors;
    collecting all = {.mask_positions = tdm_batch_data(batch, tensors->mask_positions),
                      .mask_labels = tdm_batch_data(batch, tensors->mask_labels),
                      .most = batch->layout->tensors[tensors->mask_positions].shape.sizes[0]};
    int64_t longest = close_lengths(featurizer, batch);
    const int32_t *lengths =
        tdm_batch_data(batch, featurizer->padded ? tensors->lengths : tensors->cu_seqlens);
    int64_t max_length = featurizer->sequences.max_length, tokens = 0;
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t begin = featurizer->padded ? r * max_length : lengths[r];
        int64_t length = featurizer->padded ? lengths[r] : lengths[r + 1] - lengths[r];
        token_place place = place_at(featurizer, batch, begin);
        finish_row(featurizer, &place, begin, length, featurizer->padded ? max_length : length,
                   &all);
        tokens += length;
    }
    if (all.lost > 0)
        atomic_fetch_add(&((text_featurizer *)(uintptr_t)base)->lost_count, all.lost);
    *(int64_t *)tdm_batch_data(batch, tensors->token_count) = tokens;
    *(int64_t *)tdm_batch_data(batch, tensors->mask_count) = all.count;
    *(int64_t *)tdm_batch_data(batch, tensors->max_seqlen) = longest;
}

/* ---- creation -------------------------------------------------------------------------------- */

static void destroy(tdm_featurizer *base)
{
    text_featurizer *featurizer = (text_featurizer *)base;
    for (int i = 0; featurizer->scratch != NULL && i < featurizer->threads; i++) {
        thread_scratch *scratch = &featurizer->scratch[i];
        tdm_word_ids_destroy(scratch->words);
        tdm_token_list_deinit(&scratch->list);
        tdm_sequence_scratch_destroy(scratch->sequences);
        tdm_mask_scratch_destroy(scratch->masks);
        tdm_free(scratch->marks);
        tdm_free(scratch->predictions);
    }
    tdm_free(featurizer->scratch);
    tdm_masker_destroy(featurizer->masker);
    tdm_free(featurizer);
}

static const tdm_featurizer_type text_type = {
    .name = "text",
    .extract = extract,
    .open_window = open_window,
    .assemble = assemble,
    .finish = finish,
    .destroy = destroy,
};

static tdm_status make_scratch(text_featurizer *featurizer)
{
    size_t length = (size_t)featurizer->sequences.max_length;
    TDM_TRY(
        tdm_alloc((size_t)featurizer->threads, sizeof *featurizer->scratch, &featurizer->scratch));
    for (int i = 0; i < featurizer->threads; i++) {
        thread_scratch *scratch = &featurizer->scratch[i];
        TDM_TRY(tdm_sequence_scratch_create(&scratch->sequences));
        TDM_TRY(tdm_mask_scratch_create(featurizer->sequences.max_length, &scratch->masks));
        TDM_TRY(tdm_alloc(length, sizeof *scratch->marks, &scratch->marks));
        TDM_TRY(tdm_alloc(length, sizeof *scratch->predictions, &scratch->predictions));
    }
    return TDM_OK;
}

static int add_tensor(tdm_batch_layout *batch, const char *name, tdm_dtype dtype, int64_t count)
{
    return tdm_batch_layout_add(batch, name, dtype, (tdm_shape){1, {count}});
}

static int add_tokens(const text_featurizer *featurizer, tdm_batch_layout *batch, const char *name)
{
    if (!featurizer->padded)
        return add_tensor(batch, name, TDM_U32, batch->max_tokens);
    tdm_shape shape = {2, {batch->batch_size, featurizer->sequences.max_length}};
    return tdm_batch_layout_add(batch, name, TDM_U32, shape);
}

static void add_tensors(text_featurizer *featurizer, int64_t rows, int64_t tokens)
{
    text_tensors *tensors = &featurizer->tensors;
    tdm_batch_layout *batch = &featurizer->base.batch;
    int64_t predictions = tdm_masker_most(featurizer->masker, rows, tokens);
    tdm_batch_layout_init(batch, rows);
    batch->max_tokens = featurizer->padded ? 0 : tokens;
    tensors->ids = add_tokens(featurizer, batch, "ids");
    tensors->types = add_tokens(featurizer, batch, "types");
    tensors->positions = add_tokens(featurizer, batch, "positions");
    tensors->cu_seqlens = tensors->lengths = tensors->pair_labels = -1;
    if (featurizer->padded)
        tensors->lengths = add_tensor(batch, "lengths", TDM_I32, rows);
    else
        tensors->cu_seqlens = add_tensor(batch, "cu_seqlens", TDM_I32, rows + 1);
    tensors->mask_positions = add_tensor(batch, "mask_positions", TDM_I32, predictions);
    tensors->mask_labels = add_tensor(batch, "mask_labels", TDM_U32, predictions);
    if (featurizer->sequences.mode == TDM_SEGMENT_PAIRS)
        tensors->pair_labels = add_tensor(batch, "pair_labels", TDM_U32, rows);
    tensors->token_count = add_tensor(batch, "token_count", TDM_I64, 1);
    tensors->mask_count = add_tensor(batch, "mask_count", TDM_I64, 1);
    tensors->max_seqlen = add_tensor(batch, "max_seqlen", TDM_I64, 1);
    featurizer->base.finish_parts = 1;
}

static tdm_status lay_out(text_featurizer *featurizer, int64_t batch_tokens, int lanes)
{
    tdm_columns_layout *columns = &featurizer->base.columns;
    int64_t length = featurizer->sequences.max_length;
    int64_t lane_tokens = batch_tokens / lanes;
    TDM_FAIL_IF(lane_tokens < length, TDM_E_CONFIG,
                "train.batch_tokens %lld is %lld for each of data.lanes %d, less than "
                "text.max_length %lld: %lld would be enough",
                (long long)batch_tokens, (long long)lane_tokens, lanes, (long long)length,
                (long long)length * lanes);
    featurizer->wide_ids = featurizer->tokenizer->vocabulary.size > UINT16_MAX + 1;
    *columns = (tdm_columns_layout){
        .count = 2,
        .rows_are_pieces = true,
        .columns = {[COLUMN_IDS] = {"ids", featurizer->wide_ids ? TDM_U32 : TDM_U16, 1},
                    [COLUMN_MARKS] = {"marks", TDM_U8, 1}}};
    if (featurizer->padded)
        add_tensors(featurizer, lane_tokens / length * lanes,
                    lane_tokens / length * lanes * length);
    else
        add_tensors(featurizer, lane_tokens / TDM_MIN_MEAN_LENGTH * lanes, lane_tokens * lanes);
    return TDM_OK;
}

tdm_status tdm_text_featurizer_create(const tdm_text_options *options,
                                      const tdm_tokenizer *tokenizer, tdm_pool *pool,
                                      int64_t batch_tokens, int lanes, tdm_featurizer **out)
{
    *out = NULL;
    text_featurizer *featurizer;
    TDM_TRY(tdm_alloc(1, sizeof *featurizer, &featurizer));
    featurizer->base.type = &text_type;
    featurizer->tokenizer = tokenizer;
    featurizer->loops = tdm_token_loops_choose(true);
    featurizer->sequences = tdm_text_sequence_options(options);
    featurizer->padded = options->batch == TDM_TEXT_PADDED;
    featurizer->wants_marks = options->masking.unit != TDM_MASK_TOKEN;
    featurizer->cls = (uint32_t)tokenizer->specials[TDM_SPECIAL_CLS];
    featurizer->sep = (uint32_t)tokenizer->specials[TDM_SPECIAL_SEP];
    featurizer->pad = (uint32_t)tokenizer->specials[TDM_SPECIAL_PAD];
    featurizer->threads = tdm_pool_threads(pool);
    const tdm_masking_options masking = tdm_text_masking_options(options);
    tdm_status status;
    TDM_TRY_GOTO(tdm_masker_create(&masking, tokenizer, options->max_length, &featurizer->masker),
                 fail);
    TDM_TRY_GOTO(make_scratch(featurizer), fail);
    TDM_TRY_GOTO(lay_out(featurizer, batch_tokens, lanes), fail);
    featurizer->base.spec_hash = tdm_tokenizer_hash(tokenizer);
    *out = &featurizer->base;
    return TDM_OK;
fail:
    destroy(&featurizer->base);
    return status;
}
