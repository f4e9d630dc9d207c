/* Pairs of segments, A and B. */
#include "text/sequence_builder.h"

/* Sentences [from, to) of a document. */
static tdm_segment segment_of(const tdm_sequence_builder *builder, const tdm_document *document,
                              uint32_t from, uint32_t to)
{
    uint32_t first = tdm_sentence_begin(builder, document, from);
    return (tdm_segment){document->block, first, tdm_sentence_begin(builder, document, to) - first};
}

/* Takes single tokens off the longer one, from either end. */
static void truncate_pair(tdm_sequence_builder *builder, tdm_segment *a, tdm_segment *b,
                          tdm_random_stream *stream)
{
    int64_t most = builder->options->max_length - 3;
    uint32_t bits = 0;
    for (int drawn = 0; (int64_t)a->count + b->count > most; drawn++, bits >>= 1) {
        if (drawn % 32 == 0)
            bits = tdm_random_next(stream);
        tdm_segment *longer = a->count > b->count ? a : b;
        longer->first += bits & 1;
        longer->count--;
        builder->cut++;
    }
}

static tdm_status add_pair(tdm_sequence_builder *builder, tdm_segment a, tdm_segment b,
                           uint32_t label, tdm_random_stream *stream)
{
    truncate_pair(builder, &a, &b, stream);
    TDM_TRY(tdm_row_begin(builder));
    TDM_TRY(tdm_row_add(builder, &a));
    TDM_TRY(tdm_row_add(builder, &b));
    tdm_row_end(builder, (int64_t)a.count + b.count + 3, label);
    return TDM_OK;
}

static bool flip(tdm_random_stream *stream)
{
    return tdm_random_next(stream) < UINT32_C(1) << 31;
}

/* An epoch may have a block twice, in one window too. */
static bool is_same_document(const tdm_sequence_builder *builder, uint32_t left, uint32_t right)
{
    const tdm_document *documents = builder->scratch->documents;
    tdm_extract *const *blocks = builder->window->blocks;
    return documents[left].first == documents[right].first &&
           blocks[documents[left].block]->block == blocks[documents[right].block]->block;
}

/* Whether a random next sentence is wanted, and there is a document to take it from. */
static bool has_others(const tdm_sequence_builder *builder, uint32_t index)
{
    uint32_t other = 0;
    if (builder->options->pairs != TDM_NEXT_SENTENCE)
        return false;
    while (other < builder->scratch->document_count && is_same_document(builder, other, index))
        other++;
    return other < builder->scratch->document_count;
}

/* Sentences of another document from a random one on, of at least `wanted` tokens together where it
 * has as many. */
static tdm_segment draw_other(const tdm_sequence_builder *builder, uint32_t index, int64_t wanted,
                              tdm_random_stream *stream)
{
    const tdm_sequence_scratch *scratch = builder->scratch;
    uint32_t other =
        tdm_random_below(tdm_random_next(stream), (uint32_t)scratch->document_count - 1);
    other += other >= index;
    while (is_same_document(builder, other, index))
        other = other + 1 < scratch->document_count ? other + 1 : 0;
    const tdm_document *document = &scratch->documents[other];
    uint32_t from = tdm_random_below(tdm_random_next(stream), document->sentence_count), to = from;
    tdm_segment segment = {0};
    do
        segment = segment_of(builder, document, from, ++to);
    while (segment.count < wanted && to < document->sentence_count);
    return segment;
}

/* A and what follows it, or, where that is what is learnt, swapped. */
static tdm_status add_consecutive(tdm_sequence_builder *builder, tdm_segment a, tdm_segment b,
                                  tdm_random_stream *stream)
{
    bool swapped = builder->options->pairs == TDM_SENTENCE_ORDER && flip(stream);
    return swapped ? add_pair(builder, b, a, 1, stream) : add_pair(builder, a, b, 0, stream);
}

/* The one sentence that is left of a document, and nothing else to pair it with. */
static tdm_status add_halves(tdm_sequence_builder *builder, tdm_segment whole,
                             tdm_random_stream *stream)
{
    const uint8_t *marks = tdm_marks_of(builder, whole.block);
    if (whole.count < 2) {
        builder->cut += whole.count;
        return TDM_OK;
    }
    uint32_t middle = whole.first + whole.count / 2;
    uint32_t end = whole.first + whole.count;
    uint32_t at = tdm_find_mark(marks, middle, end, TDM_MARK_WORD);
    if (at == end)
        at = whole.first + tdm_whole_words(marks + whole.first, middle - whole.first);
    if (at == whole.first)
        at = middle;
    const tdm_segment a = {whole.block, whole.first, at - whole.first};
    const tdm_segment b = {whole.block, at, end - at};
    return add_consecutive(builder, a, b, stream);
}

/* Makes a pair of sentences [from, to); *used is how many of them went into it. */
static tdm_status pair_sentences(tdm_sequence_builder *builder, uint32_t index, uint32_t from,
                                 uint32_t to, int64_t target, tdm_random_stream *stream,
                                 uint32_t *used)
{
    const tdm_document *document = &builder->scratch->documents[index];
    bool others = has_others(builder, index);
    uint32_t count = to - from;
    *used = count;
    if (count == 1 && !others)
        return add_halves(builder, segment_of(builder, document, from, to), stream);
    uint32_t in_a = 1;
    if (count > 1)
        in_a += tdm_random_below(tdm_random_next(stream), count - 1);
    tdm_segment a = segment_of(builder, document, from, from + in_a);
    if (count > 1 && !(others && flip(stream)))
        return add_consecutive(builder, a, segment_of(builder, document, from + in_a, to), stream);
    *used = in_a;
    return add_pair(builder, a, draw_other(builder, index, target - a.count, stream), 1, stream);
}

static tdm_status pair_document(tdm_sequence_builder *builder, uint32_t index)
{
    const tdm_document *document = &builder->scratch->documents[index];
    const tdm_extract *block = builder->window->blocks[document->block];
    tdm_random_stream stream = {
        .key = tdm_philox_make_key(builder->seed, TDM_PURPOSE_SEQUENCES, TDM_LAYER_PAIRS),
        .sample = (uint64_t)block->block << 32 | document->first,
        .epoch = tdm_extract_counter(block, builder->window->epoch)};
    int64_t target = tdm_draw_length(builder, &stream, builder->options->max_length - 3);
    bool alone = has_others(builder, index);
    uint32_t from = 0;
    for (uint32_t to = 1; to <= document->sentence_count; to++) {
        int64_t tokens = segment_of(builder, document, from, to).count;
        bool enough = tokens >= target && (alone || to - from > 1);
        if (!enough && to < document->sentence_count)
            continue;
        uint32_t used;
        TDM_TRY(pair_sentences(builder, index, from, to, target, &stream, &used));
        from += used;
        to = from;
    }
    return TDM_OK;
}

tdm_status tdm_pair_documents(tdm_sequence_builder *builder)
{
    for (size_t i = 0; i < builder->scratch->document_count; i++)
        TDM_TRY(pair_document(builder, builder->scratch->order[i]));
    return TDM_OK;
}
