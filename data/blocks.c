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

/* A file being read into a block's text. */
typedef struct block_reader {
    const tdm_input *input;
    const tdm_input_file *file;
    tdm_block_text *text;
    int fd;
    int64_t offset; /* of the next byte of the file */
    int64_t have;   /* bytes in the text */
    int64_t line;   /* where the last line in the text begins */
} block_reader;

static bool line_ended(const block_reader *reader)
{
    return reader->text->text[reader->have - 1] == '\n';
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int32_t tdm_input_block_file(const tdm_input *input, int64_t block)
{
    int32_t low = 0, high = input->file_count - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (input->files[middle].first_block + input->files[middle].block_count > block)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Whether file `number` is whole in the block, which does not end before it. */
static bool has_whole_file(const tdm_input *input, int64_t block, int32_t number)
{
    const tdm_input_file *file = &input->files[number];
    return number < input->file_count && file->first_block == block && file->block_count == 1;
}

int64_t tdm_input_block_stored_bytes(const tdm_input *input, int64_t block)
{
    int32_t number = tdm_input_block_file(input, block);
    const tdm_input_file *file = &input->files[number];
    int64_t bytes = 0;
    for (; has_whole_file(input, block, number); number++)
        bytes += input->files[number].bytes;
    int64_t left = file->bytes - (block - file->first_block) * input->block_bytes;
    return file->block_count == 1 ? bytes : smaller(left, input->block_bytes);
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

/* Reads the next `bytes` bytes of the file to the end of the text. */
static tdm_status read_more(block_reader *reader, int64_t bytes)
{
    const char *path = reader->file->path;
    TDM_TRY(tdm_block_text_reserve(reader->text, (size_t)(reader->have + bytes)));
    char *begin = reader->text->text + reader->have;
    for (int64_t left = bytes; left > 0;) {
        char *to = begin + (bytes - left);
        ssize_t got = pread(reader->fd, to, (size_t)left, reader->offset);
        if (got < 0 && errno == EINTR)
            continue;
        TDM_FAIL_IF(got < 0, TDM_E_IO, "%s: %s", path, tdm_io_error_text(errno));
        TDM_FAIL_IF(got == 0, TDM_E_DATA, "%s: became shorter while it was being read", path);
        left -= got;
        reader->offset += got;
    }
    reader->have += bytes;
    const char *newline = memrchr(begin, '\n', (size_t)bytes);
    if (newline != NULL)
        reader->line = newline - reader->text->text + 1;
    return TDM_OK;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Reads on to the end of the last line, or to where it is too long for a record. */
static tdm_status end_line(block_reader *reader)
{
    int64_t longest = reader->input->max_record_bytes + 1; /* the last byte may be a CR */
    while (reader->offset < reader->file->bytes && reader->have - reader->line <= longest) {
        int64_t before = reader->have;
        TDM_TRY(read_more(reader, smaller(reader->file->bytes - reader->offset, TAIL_BYTES)));
        const char *newline =
            memchr(reader->text->text + before, '\n', (size_t)(reader->have - before));
        if (newline != NULL) {
            reader->have = newline - reader->text->text + 1;
            return TDM_OK;
        }
    }
    return TDM_OK;
}

/* Bytes before the first line that begins in the window; -1 where none does. */
static int64_t first_line(const block_reader *reader)
{
    const char *newline = memchr(reader->text->text, '\n', (size_t)(reader->have - 1));
    return newline == NULL ? -1 : newline - reader->text->text + 1;
}

/* ---- documents ------------------------------------------------------------------------------- */

/* The search for the line that a window's block begins with. */
typedef struct start_scan {
    int64_t at;    /* the text was looked at up to here */
    int64_t first; /* line that begins in the window; -1: none yet */
    int64_t blank; /* the last one, where it is blank so far; else -1 */
} start_scan;

static void begin_line(start_scan *scan, int64_t at)
{
    scan->at = at;
    scan->blank = at;
    if (scan->first < 0)
        scan->first = at;
}

/* Looks on, up to `have`. True where scan->blank is a blank line. */
static bool find_blank_line(start_scan *scan, const char *text, int64_t have)
{
    while (scan->at < have) {
        const char *at = text + scan->at;
        if (scan->blank < 0) {
            const char *newline = memchr(at, '\n', (size_t)(have - scan->at));
            if (newline == NULL)
                scan->at = have;
            else
                begin_line(scan, newline - text + 1);
        } else if (*at == '\n') {
            return true;
        } else if (tdm_text_is_blank(at, 1)) {
            scan->at++;
        } else {
            scan->blank = -1;
        }
    }
    return false;
}

/* Where the block begins, at the end of a window without a whole blank line; -1: nowhere. */
static int64_t end_window(const start_scan *scan, int64_t have, bool last)
{
    if (scan->blank >= 0 && scan->blank < have)
        return scan->blank;
    return !last && scan->first < have ? scan->first : -1;
}

static int64_t first_document(const block_reader *reader)
{
    start_scan scan = {.first = -1, .blank = -1};
    if (find_blank_line(&scan, reader->text->text, reader->have))
        return scan.blank;
    return end_window(&scan, reader->have, reader->offset == reader->file->bytes);
}

/* Reads windows behind the block's own until one has a block that begins in it, and ends the text
 * there. Of a line that is too long for a record as much is kept as shows it. */
static tdm_status end_document(block_reader *reader, int64_t index)
{
    int64_t bytes = reader->file->bytes;
    while (reader->offset < bytes) {
        index++;
        int64_t end = smaller((index + 1) * reader->input->block_bytes, bytes);
        start_scan scan = {.at = reader->have, .first = -1, .blank = -1};
        if (line_ended(reader))
            begin_line(&scan, reader->have);
        int64_t begin = -1;
        while (reader->offset < end && begin < 0) {
            int64_t longest = reader->line + reader->input->max_record_bytes + 2;
            if (scan.first < 0 && reader->have > longest)
                scan.at = reader->have = longest;
            TDM_TRY(read_more(reader, smaller(end - reader->offset, TAIL_BYTES)));
            if (find_blank_line(&scan, reader->text->text, reader->have))
                begin = scan.blank;
        }
        if (begin < 0)
            begin = end_window(&scan, reader->have, reader->offset == bytes);
        if (begin >= 0) {
            reader->have = begin;
            return TDM_OK;
        }
    }
    return TDM_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static tdm_status read_window(block_reader *reader, int64_t index)
{
    const tdm_input_file *file = reader->file;
    tdm_block_text *text = reader->text;
    bool documents = reader->input->format->documents == TDM_DOCUMENTS_BLANK_LINE;
    /* One byte more in front tells whether the window begins at a line start. */
    int64_t begin = index * reader->input->block_bytes;
    int64_t end = smaller(begin + reader->input->block_bytes, file->bytes);
    reader->offset = begin > 0 ? begin - 1 : 0;
    int64_t skip = file->mark_bytes;
    TDM_TRY(read_more(reader, (end < skip ? skip : end) - reader->offset));
    if (index > 0)
        skip = documents ? first_document(reader) : first_line(reader);
    if (skip < 0)
        return TDM_OK;
    if (reader->line < skip)
        reader->line = skip;
    if (documents)
        TDM_TRY(end_document(reader, index));
    else if (!line_ended(reader))
        TDM_TRY(end_line(reader));
    text->text += skip;
    text->size = (uint32_t)(reader->have - skip);
    return TDM_OK;
}

static tdm_status read_whole(block_reader *reader)
{
    reader->offset = reader->file->mark_bytes;
    TDM_TRY(read_more(reader, reader->file->bytes - reader->offset));
    reader->text->size = (uint32_t)reader->have;
    return TDM_OK;
}

/* Appends what the block holds of file `number`. */
static tdm_status read_part(const tdm_input *input, int64_t block, int32_t number,
                            tdm_block_text *text)
{
    const tdm_input_file *file = &input->files[number];
    int64_t index = block - file->first_block;
    block_reader reader = {
        .input = input, .file = file, .text = text, .have = text->size, .line = text->size};
    TDM_TRY(tdm_block_text_add_part(text, number, index == 0 ? 0 : -1));
    TDM_TRY(open_unchanged(file, &reader.fd));
    tdm_status status = file->block_count == 1 ? read_whole(&reader) : read_window(&reader, index);
    close(reader.fd);
    return status;
}

tdm_status tdm_input_reserve_block(const tdm_input *input, tdm_block_text *text)
{
    bool documents = input->format->documents == TDM_DOCUMENTS_BLANK_LINE;
    TDM_TRY(tdm_grow(&text->parts, &text->part_capacity, input->most_parts, sizeof *text->parts));
    return tdm_block_text_reserve(
        text, (size_t)(1 + (documents ? 2 : 1) * input->block_bytes + 2 * TAIL_BYTES));
}

tdm_status tdm_input_read_block(const tdm_input *input, int64_t block, tdm_block_text *text)
{
    int32_t number = tdm_input_block_file(input, block);
    TDM_TRY(tdm_block_text_begin(text, block));
    text->stored_bytes = tdm_input_block_stored_bytes(input, block);
    TDM_TRY(read_part(input, block, number, text));
    while (has_whole_file(input, block, ++number))
        TDM_TRY(read_part(input, block, number, text));
    tdm_block_text_pad(text);
    return TDM_OK;
}

/* ---- line numbers ---------------------------------------------------------------------------- */

void tdm_input_note_lines(tdm_input *input, int64_t block, int64_t lines)
{
    if (input->block_lines != NULL)
        atomic_store_explicit(&input->block_lines[block], (int32_t)lines, memory_order_relaxed);
}

tdm_status tdm_input_lines_before(tdm_input *input, int64_t block, int64_t *lines)
{
    tdm_block_text text = {0};
    tdm_status status = TDM_OK;
    *lines = 0;
    for (int64_t i = input->files[tdm_input_block_file(input, block)].first_block; i < block; i++) {
        int64_t known = atomic_load_explicit(&input->block_lines[i], memory_order_relaxed);
        if (known < 0) {
            TDM_TRY_GOTO(tdm_input_read_block(input, i, &text), out);
            known = tdm_line_count(text.text, text.size);
            tdm_input_note_lines(input, i, known);
        }
        *lines += known;
    }
out:
    tdm_block_text_deinit(&text);
    return status;
}
