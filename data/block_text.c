/* The buffer of a block's text. */
#include "core/memory.h"
#include "data/input_internal.h"

#include <string.h>

tdm_status tdm_block_text_reserve(tdm_block_text *text, size_t bytes)
{
    TDM_TRY(tdm_grow(&text->buffer, &text->capacity, bytes + 2 * TDM_TEXT_PADDING, 1));
    text->text = text->buffer + TDM_TEXT_PADDING;
    return TDM_OK;
}

tdm_status tdm_block_text_begin(tdm_block_text *text, int64_t block)
{
    text->block = block;
    text->size = 0;
    text->stored_bytes = 0;
    text->part_count = 0;
    return tdm_block_text_reserve(text, 0);
}

tdm_status tdm_block_text_add_part(tdm_block_text *text, int32_t file, int64_t first_line)
{
    TDM_TRY(
        tdm_grow(&text->parts, &text->part_capacity, text->part_count + 1, sizeof *text->parts));
    text->parts[text->part_count++] =
        (tdm_block_part){.file = file, .begin = text->size, .first_line = first_line};
    return TDM_OK;
}

void tdm_block_text_pad(tdm_block_text *text)
{
    memset(text->buffer, 0, TDM_TEXT_PADDING);
    memset(text->text + text->size, 0, TDM_TEXT_PADDING);
}

uint32_t tdm_block_part_end(const tdm_block_text *text, size_t part)
{
    return part + 1 < text->part_count ? text->parts[part + 1].begin : text->size;
}

void tdm_block_text_deinit(tdm_block_text *text)
{
    tdm_free(text->buffer);
    tdm_free(text->parts);
    *text = (tdm_block_text){0};
}

int64_t tdm_line_count(const char *text, size_t bytes)
{
    int64_t lines = 0;
    for (const char *end = text + bytes; text < end; lines++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        text = newline == NULL ? end : newline + 1;
    }
    return lines;
}
