/* Records as they stand, each a sequence of one text or two. */
#include "text/sequence_builder.h"
#include "text/truncation.h"

static tdm_status take_record(tdm_sequence_builder *builder, const tdm_document *document)
{
    uint32_t texts = document->sentence_count;
    uint32_t first = document->first + (uint32_t)builder->options->head;
    uint32_t second = tdm_sentence_begin(builder, document, 1);
    const int64_t counts[2] = {second - first, document->end - second};
    int64_t lengths[2];
    TDM_TRY(tdm_truncation_lengths(TDM_TRUNCATE_LONGEST_FIRST,
                                   builder->options->max_length - 1 - texts, texts == 2, counts,
                                   lengths));
    builder->cut += counts[0] + counts[1] - lengths[0] - lengths[1];
    TDM_TRY(tdm_row_begin(builder));
    const tdm_segment segments[2] = {{document->block, first, (uint32_t)lengths[0]},
                                     {document->block, second, (uint32_t)lengths[1]}};
    for (uint32_t t = 0; t < texts; t++)
        TDM_TRY(tdm_row_add(builder, &segments[t]));
    tdm_row_end(builder, 1 + texts + lengths[0] + lengths[1], 0);
    return TDM_OK;
}

tdm_status tdm_take_records(tdm_sequence_builder *builder)
{
    const tdm_sequence_scratch *scratch = builder->scratch;
    for (size_t i = 0; i < scratch->document_count; i++)
        TDM_TRY(take_record(builder, &scratch->documents[scratch->order[i]]));
    return TDM_OK;
}
