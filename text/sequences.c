#include "text/sequences.h"

#include "core/memory.h"
#include "data/order.h"
#include "text/sequence_builder.h"

#include <string.h>

/* The words of a row in window->details: tokens, segments << 1 | pair label, then the segments. */
#define HEAD_WORDS    2
#define SEGMENT_WORDS 3

tdm_status tdm_sequence_scratch_create(tdm_sequence_scratch **out)
{
    TDM_TRY(tdm_alloc(1, sizeof **out, out));
    (*out)->loops = tdm_token_loops_choose(true);
    return TDM_OK;
}

void tdm_sequence_scratch_destroy(tdm_sequence_scratch *scratch)
{
    if (scratch == NULL)
        return;
    tdm_free(scratch->documents);
    tdm_free(scratch->order);
    tdm_free(scratch->sentences);
    tdm_free(scratch);
}

tdm_sequence tdm_sequence_get(const tdm_window *window, int64_t row)
{
    const uint32_t *words = window->details + window->order[row];
    return (tdm_sequence){.tokens = words[0],
                          .segment_count = words[1] >> 1,
                          .pair_label = words[1] & 1,
                          .segments = (const tdm_segment *)(words + HEAD_WORDS)};
}

/* ---- documents and sentences ----------------------------------------------------------------- */

const uint8_t *tdm_marks_of(const tdm_sequence_builder *builder, uint32_t block)
{
    return builder->window->blocks[block]->columns[builder->marks];
}

static tdm_status add_sentence_begin(tdm_sequence_builder *builder, uint32_t token)
{
    tdm_sequence_scratch *scratch = builder->scratch;
    if (scratch->sentence_count == scratch->sentence_capacity)
        TDM_TRY(tdm_grow(&scratch->sentences, &scratch->sentence_capacity,
                         scratch->sentence_count + 1, sizeof *scratch->sentences));
    scratch->sentences[scratch->sentence_count++] = token;
    scratch->documents[scratch->document_count - 1].sentence_count++;
    return TDM_OK;
}

static tdm_status begin_document(tdm_sequence_builder *builder, uint32_t block, uint32_t token)
{
    tdm_sequence_scratch *scratch = builder->scratch;
    TDM_TRY(tdm_grow(&scratch->documents, &scratch->document_capacity, scratch->document_count + 1,
                     sizeof *scratch->documents));
    scratch->documents[scratch->document_count++] =
        (tdm_document){.block = block, .first = token, .sentence = scratch->sentence_count};
    return TDM_OK;
}

uint32_t tdm_find_mark(const uint8_t *marks, uint32_t at, uint32_t end, uint8_t wanted)
{
    while (at < end && (marks[at] & wanted) == 0)
        at++;
    return at;
}

/* Where a sentence [first, end) that is too long for a pair is broken: two parts make a pair. */
static uint32_t end_of_part(const tdm_sequence_builder *builder, const uint8_t *marks,
                            uint32_t first, uint32_t end)
{
    uint32_t most = (uint32_t)builder->options->max_length - 3;
    if (builder->options->mode != TDM_SEGMENT_PAIRS || end - first <= most)
        return end;
    return tdm_find_mark(marks, first + (most + 1) / 2, first + most, TDM_MARK_WORD);
}

/* Sentence [first, end) of the last document, in its parts. */
static tdm_status add_sentence(tdm_sequence_builder *builder, const uint8_t *marks, uint32_t first,
                               uint32_t end)
{
    while (first < end) {
        TDM_TRY(add_sentence_begin(builder, first));
        first = end_of_part(builder, marks, first, end);
    }
    builder->scratch->documents[builder->scratch->document_count - 1].end = end;
    return TDM_OK;
}

#define LISTED 1024 /* tokens at a time */

static tdm_status scan_block(tdm_sequence_builder *builder, uint32_t index)
{
    const uint8_t *marks = tdm_marks_of(builder, index);
    static const uint8_t parts[] = {[TDM_FULL_SENTENCES] = TDM_MARK_SENTENCE,
                                    [TDM_SEGMENT_PAIRS] = TDM_MARK_SENTENCE,
                                    [TDM_ONE_PER_RECORD] = 0,
                                    [TDM_RECORD_TEXTS] = TDM_MARK_SECOND};
    uint8_t wanted = TDM_MARK_DOCUMENT | parts[builder->options->mode];
    uint32_t rows = (uint32_t)builder->window->blocks[index]->rows, first = 0;
    uint32_t found[LISTED];
    if (rows > 0)
        TDM_TRY(begin_document(builder, index, 0));
    for (int64_t at = 1; at < rows; at += LISTED) {
        int64_t end = at + LISTED < rows ? at + LISTED : rows;
        int64_t count = builder->scratch->loops->list(marks, at, end, wanted, found);
        for (int64_t i = 0; i < count; i++) {
            TDM_TRY(add_sentence(builder, marks, first, found[i]));
            first = found[i];
            if ((marks[first] & TDM_MARK_DOCUMENT) != 0)
                TDM_TRY(begin_document(builder, index, first));
        }
    }
    return rows > 0 ? add_sentence(builder, marks, first, rows) : TDM_OK;
}

uint32_t tdm_epoch_of(const tdm_sequence_builder *builder)
{
    return tdm_extract_counter(builder->window->blocks[0], builder->window->epoch);
}

static void shuffle(const tdm_sequence_builder *builder, uint32_t *items, int64_t count, int layer)
{
    tdm_philox_key key = tdm_philox_make_key(builder->seed, TDM_PURPOSE_ROW_ORDER, (uint32_t)layer);
    tdm_shuffle(items, count, key, (uint64_t)builder->window->blocks[0]->block,
                tdm_epoch_of(builder));
}

static tdm_status find_documents(tdm_sequence_builder *builder, bool shuffled)
{
    tdm_sequence_scratch *scratch = builder->scratch;
    scratch->document_count = scratch->sentence_count = 0;
    for (int b = 0; b < builder->window->block_count; b++)
        TDM_TRY(scan_block(builder, (uint32_t)b));
    TDM_TRY(tdm_grow(&scratch->order, &scratch->order_capacity, scratch->document_count,
                     sizeof *scratch->order));
    for (size_t d = 0; d < scratch->document_count; d++)
        scratch->order[d] = (uint32_t)d;
    if (shuffled)
        shuffle(builder, scratch->order, (int64_t)scratch->document_count, TDM_LAYER_DOCUMENTS);
    return TDM_OK;
}

uint32_t tdm_whole_words(const uint8_t *marks, int64_t room)
{
    while (room > 0 && (marks[room] & TDM_MARK_WORD) == 0)
        room--;
    return room > 0 ? (uint32_t)room : 0;
}

int64_t tdm_draw_length(const tdm_sequence_builder *builder, tdm_random_stream *stream,
                        int64_t most)
{
    double probability = builder->options->short_probability;
    if (probability <= 0 || (double)tdm_random_next(stream) >= probability * 0x1p32)
        return most;
    return 2 + (int64_t)tdm_random_below(tdm_random_next(stream), (uint32_t)(most - 1));
}

/* ---- rows ------------------------------------------------------------------------------------ */

static tdm_status reserve_words(tdm_sequence_builder *builder, size_t words)
{
    tdm_window *window = builder->window;
    if (builder->used + words <= window->details_capacity)
        return TDM_OK;
    return tdm_grow(&window->details, &window->details_capacity, builder->used + words,
                    sizeof *window->details);
}

tdm_status tdm_row_begin(tdm_sequence_builder *builder)
{
    tdm_window *window = builder->window;
    TDM_TRY(reserve_words(builder, HEAD_WORDS));
    TDM_TRY(tdm_grow(&window->order, &window->order_capacity, (size_t)window->rows + 1,
                     sizeof *window->order));
    builder->head = builder->used;
    window->order[window->rows] = (uint32_t)builder->head;
    builder->used += HEAD_WORDS;
    builder->segments = 0;
    return TDM_OK;
}

tdm_status tdm_row_add(tdm_sequence_builder *builder, const tdm_segment *segment)
{
    TDM_TRY(reserve_words(builder, SEGMENT_WORDS));
    memcpy(builder->window->details + builder->used, segment, sizeof *segment);
    builder->used += SEGMENT_WORDS;
    builder->segments++;
    return TDM_OK;
}

void tdm_row_extend(tdm_sequence_builder *builder, uint32_t count)
{
    builder->window->details[builder->used - 1] += count;
}

void tdm_row_end(tdm_sequence_builder *builder, int64_t tokens, uint32_t pair_label)
{
    uint32_t *head = builder->window->details + builder->head;
    head[0] = (uint32_t)tokens;
    head[1] = builder->segments << 1 | pair_label;
    builder->window->rows++;
    builder->segments = 0;
}

/* ---- the window ------------------------------------------------------------------------------ */

/* Twice what the largest needed where there is not a quarter more than that: then later windows,
 * whose sizes vary a little, ask for no memory. */
static tdm_status reserve_more(void *pointer, size_t *capacity, size_t most, size_t size)
{
    return *capacity >= most + most / 4 ? TDM_OK : tdm_grow(pointer, capacity, 2 * most, size);
}

static tdm_status reserve_window(tdm_sequence_builder *builder)
{
    tdm_window *window = builder->window;
    size_t words = builder->scratch->most_words, rows = builder->scratch->most_rows;
    TDM_TRY(
        reserve_more(&window->details, &window->details_capacity, words, sizeof *window->details));
    TDM_TRY(reserve_more(&window->order, &window->order_capacity, rows, sizeof *window->order));
    return reserve_more(&window->token_ends, &window->token_ends_capacity, rows,
                        sizeof *window->token_ends);
}

static void note_size(const tdm_sequence_builder *builder)
{
    tdm_sequence_scratch *scratch = builder->scratch;
    size_t rows = (size_t)builder->window->rows;
    scratch->most_words = builder->used > scratch->most_words ? builder->used : scratch->most_words;
    scratch->most_rows = rows > scratch->most_rows ? rows : scratch->most_rows;
}

static tdm_status sum_tokens(tdm_sequence_builder *builder)
{
    tdm_window *window = builder->window;
    TDM_TRY(tdm_grow(&window->token_ends, &window->token_ends_capacity, (size_t)window->rows,
                     sizeof *window->token_ends));
    int64_t tokens = 0;
    for (int64_t r = 0; r < window->rows; r++) {
        tokens += window->details[window->order[r]];
        window->token_ends[r] = tokens;
    }
    return TDM_OK;
}

static int64_t count_rows(const tdm_window *window)
{
    int64_t rows = 0;
    for (int b = 0; b < window->block_count; b++)
        rows += window->blocks[b]->rows;
    return rows;
}

tdm_status tdm_sequences_build(const tdm_sequence_options *options, int marks, uint64_t seed,
                               bool shuffled, tdm_window *window, tdm_sequence_scratch *scratch,
                               tdm_sequence_counts *counts)
{
    tdm_sequence_builder builder = {
        .options = options, .marks = marks, .seed = seed, .window = window, .scratch = scratch};
    window->rows = 0;
    TDM_TRY(reserve_window(&builder));
    TDM_TRY(find_documents(&builder, shuffled));
    TDM_TRY(options->mode == TDM_SEGMENT_PAIRS  ? tdm_pair_documents(&builder)
            : options->mode == TDM_RECORD_TEXTS ? tdm_take_records(&builder)
                                                : tdm_pack_documents(&builder));
    TDM_FAIL_IF(builder.used > UINT32_MAX, TDM_E_DATA,
                "a window has too many sequences: set data.window_blocks lower");
    note_size(&builder);
    if (shuffled)
        shuffle(&builder, window->order, window->rows, TDM_LAYER_ROWS);
    int64_t documents = (int64_t)scratch->document_count;
    *counts = (tdm_sequence_counts){.documents = documents,
                                    .tokens = count_rows(window) - documents * options->head,
                                    .cut_tokens = builder.cut};
    return sum_tokens(&builder);
}
