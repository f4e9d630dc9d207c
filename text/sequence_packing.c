/* Documents one after another into sequences: full_sentences and one_per_record. */
#include "text/sequence_builder.h"

#define NO_DOCUMENT UINT32_MAX

/* The sequence that is being filled; there is one where the builder's row has segments. */
typedef struct packing {
    tdm_sequence_builder *builder;
    uint32_t document; /* of its last segment */
    int64_t tokens;    /* [CLS] and [SEP] included */
    int64_t target;    /* it ends when it has so many tokens of text */
    int64_t max_length;
    tdm_random_stream lengths;
} packing;

static void end_sequence(packing *pack)
{
    if (pack->builder->segments > 0)
        tdm_row_end(pack->builder, pack->tokens, 0);
    pack->document = NO_DOCUMENT;
}

/* Tokens of a document that the sequence still takes. */
static int64_t room_for(const packing *pack, uint32_t document)
{
    if (pack->builder->segments == 0)
        return pack->max_length - 2;
    return pack->max_length - pack->tokens - (pack->document == document ? 0 : 1);
}

static tdm_status add_tokens(packing *pack, uint32_t document, uint32_t first, uint32_t count)
{
    tdm_sequence_builder *builder = pack->builder;
    if (builder->segments == 0) {
        TDM_TRY(tdm_row_begin(builder));
        pack->tokens = 1;
        pack->target = tdm_draw_length(builder, &pack->lengths, pack->max_length - 2);
    }
    if (pack->document == document) {
        tdm_row_extend(builder, count);
    } else {
        const tdm_segment segment = {builder->scratch->documents[document].block, first, count};
        TDM_TRY(tdm_row_add(builder, &segment));
        pack->tokens++;
        pack->document = document;
    }
    pack->tokens += count;
    if (pack->tokens - 1 - builder->segments >= pack->target)
        end_sequence(pack);
    return TDM_OK;
}

static tdm_status add_long_sentence(packing *pack, uint32_t document, uint32_t first, uint32_t end)
{
    tdm_sequence_builder *builder = pack->builder;
    const uint8_t *marks = tdm_marks_of(builder, builder->scratch->documents[document].block);
    while (first < end) {
        int64_t room = room_for(pack, document);
        uint32_t count = end - first;
        if (count > room)
            count = tdm_whole_words(marks + first, room);
        if (count == 0 && builder->segments > 0) {
            end_sequence(pack);
            continue;
        }
        /* A word that is longer than a sequence. */
        if (count == 0)
            count = (uint32_t)room;
        TDM_TRY(add_tokens(pack, document, first, count));
        first += count;
        if (first < end)
            end_sequence(pack);
    }
    return TDM_OK;
}

static tdm_status add_document(packing *pack, uint32_t index)
{
    tdm_sequence_builder *builder = pack->builder;
    const tdm_document *document = &builder->scratch->documents[index];
    uint32_t first, end = document->first;
    for (uint32_t s = 0; s < document->sentence_count; s++) {
        first = end;
        end = tdm_sentence_begin(builder, document, s + 1);
        if (end - first > pack->max_length - 2) {
            TDM_TRY(add_long_sentence(pack, index, first, end));
            continue;
        }
        if (end - first > room_for(pack, index))
            end_sequence(pack);
        TDM_TRY(add_tokens(pack, index, first, end - first));
    }
    return TDM_OK;
}

tdm_status tdm_pack_documents(tdm_sequence_builder *builder)
{
    const tdm_sequence_options *options = builder->options;
    const tdm_sequence_scratch *scratch = builder->scratch;
    bool cross = options->mode == TDM_FULL_SENTENCES && options->cross_documents;
    packing pack = {.builder = builder, .document = NO_DOCUMENT, .max_length = options->max_length};
    pack.lengths = (tdm_random_stream){
        .key = tdm_philox_make_key(builder->seed, TDM_PURPOSE_SEQUENCES, TDM_LAYER_LENGTHS),
        .sample = (uint64_t)builder->window->blocks[0]->block,
        .epoch = tdm_epoch_of(builder)};
    for (size_t i = 0; i < scratch->document_count; i++) {
        TDM_TRY(add_document(&pack, scratch->order[i]));
        if (!cross)
            end_sequence(&pack);
    }
    end_sequence(&pack);
    return TDM_OK;
}
