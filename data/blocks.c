/* Blocks of plain files, by arithmetic. */
#include "core/file.h"
#include "core/memory.h"
#include "data/input_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAIL_BYTES ((int64_t)64 << 10)

int64_t tdm_cut_bytes(int64_t bytes)
{
    return bytes < TDM_CUT_RECORD_BYTES ? bytes : TDM_CUT_RECORD_BYTES;
}

tdm_status tdm_block_text_reserve(tdm_block_text *text, size_t bytes)
{
    TDM_TRY(tdm_grow(&text->buffer, &text->capacity, bytes + 2 * TDM_TEXT_PADDING, 1));
    text->text = text->buffer + TDM_TEXT_PADDING;
    return TDM_OK;
}

void tdm_block_text_pad(tdm_block_text *text)
{
    memset(text->buffer, 0, TDM_TEXT_PADDING);
    memset(text->text + text->size + text->cut_bytes, 0, TDM_TEXT_PADDING);
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

void tdm_block_text_deinit(tdm_block_text *text)
{
    tdm_free(text->buffer);
    *text = (tdm_block_text){0};
}

static int32_t file_of_block(const tdm_input *input, int64_t block)
{
    int32_t low = 0, high = input->file_count - 1;
    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;
        if (input->files[middle].first_block <= block)
            low = middle;
        else
            high = middle - 1;
    }
    /* Empty files share their first block with the next one. */
    while (input->files[low].block_count == 0)
        low--;
    return low;
}

static tdm_status read_at(int fd, const tdm_input_file *file, char *buffer, int64_t bytes,
                          int64_t offset)
{
    while (bytes > 0) {
        ssize_t got = pread(fd, buffer, (size_t)bytes, offset);
        if (got < 0 && errno == EINTR)
            continue;
        TDM_FAIL_IF(got < 0, TDM_E_IO, "%s: %s", file->path, tdm_io_error_text(errno));
        TDM_FAIL_IF(got == 0, TDM_E_DATA, "%s: became shorter while it was being read", file->path);
        buffer += got;
        bytes -= got;
        offset += got;
    }
    return TDM_OK;
}

static tdm_status open_unchanged(const tdm_input_file *file, int *fd)
{
    *fd = open(file->path, O_RDONLY | O_CLOEXEC);
    TDM_FAIL_IF(*fd < 0, TDM_E_IO, "%s: %s", file->path, tdm_io_error_text(errno));
    struct stat info;
    if (fstat(*fd, &info) != 0 || info.st_size != file->bytes) {
        close(*fd);
        return tdm_fail(TDM_E_DATA, "%s: its length changed while it was being read", file->path);
    }
    return TDM_OK;
}

/* The last line of a block goes on behind the block: reads up to its end, or cuts the record. On
 * entry text->text holds `have` bytes from `offset`, the last line beginning at `line`. */
static tdm_status read_tail(int fd, const tdm_input *input, const tdm_input_file *file,
                            tdm_block_text *text, int64_t offset, int64_t have, int64_t line)
{
    for (;;) {
        int64_t left = file->bytes - (offset + have);
        if (left == 0) {
            text->size = (uint32_t)have;
            return TDM_OK;
        }
        /* One byte more may be a carriage return. */
        if (have - line > input->max_record_bytes + 1) {
            text->size = (uint32_t)line;
            text->cut_bytes = (uint32_t)tdm_cut_bytes(have - line);
            return TDM_OK;
        }
        int64_t more = left < TAIL_BYTES ? left : TAIL_BYTES;
        TDM_TRY(tdm_block_text_reserve(text, (size_t)(have + more)));
        TDM_TRY(read_at(fd, file, text->text + have, more, offset + have));
        const char *newline = memchr(text->text + have, '\n', (size_t)more);
        if (newline != NULL) {
            text->size = (uint32_t)(newline - text->text) + 1;
            return TDM_OK;
        }
        have += more;
    }
}

/* Bytes before the first line that begins in the block; -1 where none does. */
static int64_t bytes_to_skip(const tdm_input_file *file, int64_t index, const char *bytes,
                             int64_t count)
{
    if (index == 0)
        return file->mark_bytes;
    const char *newline = memchr(bytes, '\n', (size_t)(count - 1));
    return newline == NULL ? -1 : newline - bytes + 1;
}

static tdm_status read_lines(int fd, const tdm_input *input, const tdm_input_file *file,
                             int64_t index, tdm_block_text *text)
{
    /* One byte more in front tells whether the block begins at a line start. */
    int64_t begin = index * input->block_bytes;
    int64_t offset = begin > 0 ? begin - 1 : 0;
    int64_t end =
        begin + input->block_bytes < file->bytes ? begin + input->block_bytes : file->bytes;
    if (end < file->mark_bytes)
        end = file->mark_bytes;
    int64_t bytes = end - offset;
    TDM_TRY(tdm_block_text_reserve(text, (size_t)bytes));
    TDM_TRY(read_at(fd, file, text->text, bytes, offset));
    int64_t skip = bytes_to_skip(file, index, text->text, bytes);
    if (skip < 0)
        return TDM_OK;
    const char *last = memrchr(text->text + skip, '\n', (size_t)(bytes - skip));
    int64_t line = last == NULL ? skip : last - text->text + 1;
    if (line < bytes || (index == 0 && last == NULL))
        TDM_TRY(read_tail(fd, input, file, text, offset, bytes, line));
    else
        text->size = (uint32_t)bytes;
    text->text += skip;
    text->size -= (uint32_t)skip;
    return TDM_OK;
}

tdm_status tdm_input_reserve_block(const tdm_input *input, tdm_block_text *text)
{
    return tdm_block_text_reserve(text, (size_t)(1 + input->block_bytes + 2 * TAIL_BYTES));
}

tdm_status tdm_input_read_block(const tdm_input *input, int64_t block, tdm_block_text *text)
{
    text->file = file_of_block(input, block);
    const tdm_input_file *file = &input->files[text->file];
    int64_t index = block - file->first_block;
    int64_t left = file->bytes - index * input->block_bytes;
    text->block = block;
    text->size = 0;
    text->cut_bytes = 0;
    text->first_of_file = index == 0;
    text->stored_bytes = left < input->block_bytes ? left : input->block_bytes;
    text->first_line = -1;
    int fd;
    TDM_TRY(open_unchanged(file, &fd));
    tdm_status status = read_lines(fd, input, file, index, text);
    close(fd);
    if (status == TDM_OK)
        tdm_block_text_pad(text);
    return status;
}

void tdm_input_note_lines(tdm_input *input, int64_t block, int64_t lines)
{
    if (input->block_lines != NULL)
        atomic_store_explicit(&input->block_lines[block], (int32_t)lines, memory_order_relaxed);
}

static int64_t count_newlines(const char *text, int64_t bytes)
{
    int64_t count = 0;
    const char *end = text + bytes;
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

/* Lines that begin in the block: its newlines, those at its very end counting for the next block,
 * and the one that ends just before it counting here. */
static tdm_status count_lines(const tdm_input *input, const tdm_input_file *file, int64_t index,
                              int32_t *lines)
{
    int64_t begin = index * input->block_bytes;
    int64_t end =
        begin + input->block_bytes < file->bytes ? begin + input->block_bytes : file->bytes;
    int64_t offset = begin > 0 ? begin - 1 : 0;
    int64_t bytes = end - 1 - offset;
    char *buffer = NULL;
    int fd;
    TDM_TRY(open_unchanged(file, &fd));
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)bytes + 1, 1, &buffer), out);
    TDM_TRY_GOTO(read_at(fd, file, buffer, bytes, offset), out);
    *lines = (int32_t)count_newlines(buffer, bytes) + (begin == 0);
out:
    tdm_free(buffer);
    close(fd);
    return status;
}

tdm_status tdm_input_lines_before(tdm_input *input, int64_t block, int64_t *lines)
{
    const tdm_input_file *file = &input->files[file_of_block(input, block)];
    *lines = 0;
    for (int64_t i = file->first_block; i < block; i++) {
        int32_t known = atomic_load_explicit(&input->block_lines[i], memory_order_relaxed);
        if (known < 0) {
            TDM_TRY(count_lines(input, file, i - file->first_block, &known));
            tdm_input_note_lines(input, i, known);
        }
        *lines += known;
    }
    return TDM_OK;
}
