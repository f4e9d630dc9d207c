#include "text/encodings.h"

#include "core/memory.h"

tdm_status tdm_encodings_create(tdm_encodings **encodings)
{
    return tdm_alloc(1, sizeof **encodings, encodings);
}

void tdm_encodings_destroy(tdm_encodings *encodings)
{
    if (encodings == NULL)
        return;
    tdm_free(encodings->plans);
    tdm_free(encodings->ids);
    tdm_free(encodings->type_ids);
    tdm_free(encodings->attention);
    tdm_free(encodings->special);
    tdm_free(encodings->sequences);
    tdm_free(encodings->words);
    tdm_free(encodings->bytes);
    tdm_free(encodings->chars);
    tdm_free(encodings);
}

tdm_status tdm_encodings_reserve(tdm_encodings *encodings, size_t tokens)
{
    TDM_TRY(tdm_grow(&encodings->ids, &encodings->ids_capacity, tokens, sizeof *encodings->ids));
    TDM_TRY(tdm_grow(&encodings->type_ids, &encodings->type_ids_capacity, tokens, 1));
    TDM_TRY(tdm_grow(&encodings->attention, &encodings->attention_capacity, tokens, 1));
    TDM_TRY(tdm_grow(&encodings->special, &encodings->special_capacity, tokens, 1));
    TDM_TRY(tdm_grow(&encodings->sequences, &encodings->sequences_capacity, tokens, 1));
    TDM_TRY(
        tdm_grow(&encodings->words, &encodings->words_capacity, tokens, sizeof *encodings->words));
    if (!encodings->offsets)
        return TDM_OK;
    TDM_TRY(
        tdm_grow(&encodings->bytes, &encodings->bytes_capacity, tokens, sizeof *encodings->bytes));
    return tdm_grow(&encodings->chars, &encodings->chars_capacity, tokens,
                    sizeof *encodings->chars);
}

int64_t tdm_encodings_count(const tdm_encodings *encodings)
{
    return encodings->count;
}

tdm_encoding tdm_encodings_get(const tdm_encodings *encodings, int64_t index)
{
    const tdm_encoding_plan *plan = &encodings->plans[index];
    size_t begin = plan->begin;
    bool offsets = encodings->offsets;
    return (tdm_encoding){.input = plan->input,
                          .count = (int64_t)plan->count,
                          .ids = encodings->ids + begin,
                          .type_ids = encodings->type_ids + begin,
                          .attention = encodings->attention + begin,
                          .special = encodings->special + begin,
                          .sequences = encodings->sequences + begin,
                          .words = encodings->words + begin,
                          .byte_offsets = offsets ? encodings->bytes + begin : NULL,
                          .char_offsets = offsets ? encodings->chars + begin : NULL};
}
