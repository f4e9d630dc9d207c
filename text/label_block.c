#include "text/label_block.h"

#include "text/label_cells.h"
#include "text/token_featurizer.h"

int64_t tdm_label_head_words(const tdm_label_spec *spec)
{
    if (spec->use == TDM_LABEL_PREDICTION || spec->type == TDM_LABEL_TOKENS)
        return 0;
    return spec->type == TDM_LABEL_MULTIPLE ? (spec->classes.size + 31) / 32 : 1;
}

int64_t tdm_label_head_rows(const tdm_label_spec *spec, const tdm_tokenizer *tokenizer)
{
    return tdm_label_head_words(spec) * (tdm_has_wide_ids(tokenizer) ? 1 : 2);
}

uint32_t tdm_label_word(const tdm_columns_layout *columns, const tdm_extract *block, int64_t head,
                        int64_t index)
{
    const void *ids = block->columns[TDM_COLUMN_IDS];
    if (columns->columns[TDM_COLUMN_IDS].dtype == TDM_U32)
        return ((const uint32_t *)ids)[head + index];
    const uint16_t *halves = (const uint16_t *)ids + head + 2 * index;
    return halves[0] | (uint32_t)halves[1] << 16;
}

bool tdm_label_record_at(const tdm_extract *block, int64_t head, int64_t head_rows,
                         tdm_label_record *out)
{
    const uint8_t *marks = block->columns[TDM_COLUMN_MARKS];
    *out = (tdm_label_record){.head = head, .first = head + head_rows, .second = -1};
    int64_t at = out->first;
    if (head >= block->rows)
        return false;
    for (; at < block->rows && (at == head || (marks[at] & TDM_MARK_DOCUMENT) == 0); at++) {
        if ((marks[at] & TDM_MARK_SECOND) != 0)
            out->second = at;
    }
    out->end = at;
    out->second = out->second < 0 ? at : out->second;
    return true;
}

void tdm_label_record_rows(const tdm_extract *block, int64_t *rows)
{
    int64_t row = 0;
    size_t bad = 0;
    for (int64_t r = 0; r < block->records; r++) {
        bool is_bad = bad < block->bad_count && block->bad[bad].record == r;
        rows[r] = is_bad ? -1 : row++;
        bad += is_bad;
    }
}

int32_t tdm_label_text_column(const tdm_label_spec *spec)
{
    return spec->lines ? 0 : spec->text;
}

void tdm_label_words(const tdm_label_spec *spec, const char *text, size_t bytes,
                     void (*take)(void *context, const char *word, size_t bytes), void *context)
{
    const tdm_span cell = {0, (uint32_t)bytes};
    const tdm_records records = {
        .struct_size = sizeof records, .columns = 1, .count = 1, .text = text, .cells = &cell};
    tdm_label_spec of_cell = *spec;
    tdm_slice word, label;
    tdm_label_reason reason;
    if (!spec->lines)
        of_cell.text = 0;
    tdm_labelled_words words = tdm_words_of(&of_cell, &records, 0);
    while (tdm_next_word(&words, &word, &label, &reason))
        take(context, word.text, word.bytes);
}
