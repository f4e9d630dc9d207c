#include "data/input_memory.h"

#include "core/memory.h"
#include "data/input_internal.h"

#include <string.h>

struct tdm_memory_input {
    tdm_input input;
    const char *text;
    size_t bytes;
    size_t cursor;
    int64_t block;
    int64_t line;
};

tdm_status tdm_memory_input_create(tdm_record_format *format, int64_t max_record_bytes,
                                   tdm_memory_input **out)
{
    *out = NULL;
    tdm_memory_input *memory;
    TDM_TRY(tdm_alloc(1, sizeof *memory, &memory));
    tdm_input *input = &memory->input;
    input->format = format;
    input->max_record_bytes = max_record_bytes;
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc(1, sizeof *input->files, &input->files), fail);
    input->file_count = 1;
    TDM_TRY_GOTO(tdm_strdup("text", &input->files[0].path), fail);
    *out = memory;
    return TDM_OK;
fail:
    tdm_memory_input_destroy(memory);
    return status;
}

void tdm_memory_input_destroy(tdm_memory_input *memory)
{
    if (memory == NULL)
        return;
    if (memory->input.files != NULL) {
        tdm_free(memory->input.files[0].path);
        tdm_file_layout_deinit(&memory->input.files[0].layout);
    }
    tdm_free(memory->input.files);
    tdm_free(memory);
}

tdm_input *tdm_memory_input_get(tdm_memory_input *memory)
{
    return &memory->input;
}

tdm_status tdm_memory_input_begin(tdm_memory_input *memory, const char *text, size_t bytes)
{
    memory->text = text;
    memory->bytes = bytes;
    memory->cursor = 0;
    memory->block = 0;
    memory->line = 0;
    const char *newline = bytes > 0 ? memchr(text, '\n', bytes) : NULL;
    size_t length = newline == NULL ? bytes : (size_t)(newline - text);
    if (length > 0 && text[length - 1] == '\r')
        length--;
    tdm_record_format bare = *memory->input.format;
    bare.header = TDM_HEADER_NO;
    tdm_input_file *file = &memory->input.files[0];
    tdm_file_layout_deinit(&file->layout);
    return bare.type->open_file(&bare, file->path, text, length, &file->layout);
}

/* The end of the whole lines of text[begin, …), about a block of them. */
static size_t cut(const tdm_memory_input *memory)
{
    const char *begin = memory->text + memory->cursor;
    size_t left = memory->bytes - memory->cursor;
    if (left <= (size_t)TDM_BLOCK_BYTES_MAX)
        return left;
    size_t most = (size_t)TDM_BLOCK_BYTES_MAX;
    const char *newline = memrchr(begin, '\n', most);
    if (newline == NULL)
        newline = memchr(begin + most, '\n', left - most);
    return newline == NULL ? left : (size_t)(newline - begin) + 1;
}

tdm_status tdm_memory_input_next(tdm_memory_input *memory, tdm_block_text *text, bool *ended)
{
    *ended = memory->cursor == memory->bytes;
    if (*ended)
        return TDM_OK;
    const char *begin = memory->text + memory->cursor;
    size_t bytes = cut(memory);
    TDM_FAIL_IF(bytes > UINT32_MAX - 2 * TDM_TEXT_PADDING, TDM_E_DATA,
                "text:%lld: the line is too long", (long long)memory->line + 1);
    TDM_TRY(tdm_block_text_begin(text, memory->block++));
    TDM_TRY(tdm_block_text_add_part(text, 0, memory->line));
    TDM_TRY(tdm_block_text_reserve(text, bytes));
    memcpy(text->text, begin, bytes);
    text->size = (uint32_t)bytes;
    text->stored_bytes = (int64_t)bytes;
    tdm_block_text_pad(text);
    memory->line += tdm_line_count(begin, bytes);
    memory->cursor += bytes;
    return TDM_OK;
}
