/* All blocks of an input in order. */
#include "core/memory.h"
#include "data/input_internal.h"
#include "data/utf8.h"

#include <string.h>

#define READ_BYTES ((size_t)64 << 10)

struct tdm_input_stream {
    tdm_input *input;
    int32_t file;       /* being read, or the next one */
    tdm_source *source; /* NULL between files */
    bool source_ended;
    int64_t block;  /* the number of the next one */
    int64_t line;   /* lines of the file before it */
    int64_t stored; /* stored bytes of the file before it */
    char *carry;    /* bytes behind the last block, which begin the next */
    size_t carry_bytes;
    size_t carry_capacity;
};

/* What a block has of one file, while it is read. */
typedef struct stream_part {
    tdm_block_text *text;
    size_t begin;
    size_t have;     /* bytes in text->text */
    size_t line;     /* where the last line begins */
    size_t searched; /* no block ends at a line end before this */
} stream_part;

tdm_status tdm_input_stream_open(tdm_input *input, tdm_input_stream **out)
{
    *out = NULL;
    TDM_FAIL_IF(input->used, TDM_E_STATE,
                "standard input, or a pipe, can be read only once: a second pass needs the cache, "
                "or a file");
    input->used = input->reads_once;
    TDM_TRY(tdm_alloc(1, sizeof **out, out));
    (*out)->input = input;
    return TDM_OK;
}

void tdm_input_stream_close(tdm_input_stream *stream)
{
    if (stream == NULL)
        return;
    tdm_source_close(stream->source);
    tdm_free(stream->carry);
    tdm_free(stream);
}

static tdm_status keep(tdm_input_stream *stream, const char *bytes, size_t count)
{
    TDM_TRY(tdm_grow(&stream->carry, &stream->carry_capacity, count, 1));
    if (count > 0)
        memcpy(stream->carry, bytes, count);
    stream->carry_bytes = count;
    return TDM_OK;
}

static tdm_status open_next_file(tdm_input_stream *stream)
{
    tdm_input *input = stream->input;
    const tdm_input_file *file = &input->files[stream->file];
    stream->source_ended = false;
    stream->line = 0;
    stream->stored = 0;
    stream->carry_bytes = 0;
    tdm_once *once = &input->once[stream->file];
    if (once->source == NULL)
        return tdm_source_open(file->path, input->cancel, &stream->source);
    TDM_TRY(keep(stream, once->head, once->head_bytes));
    stream->source = once->source;
    once->source = NULL;
    tdm_free(once->head);
    once->head = NULL;
    return TDM_OK;
}

/* ---- where blocks end ------------------------------------------------------------------------ */

/* Bytes that a block has at least, unless the input ends. */
static size_t least_bytes(const tdm_input_stream *stream)
{
    return stream->input->eager ? 1 : (size_t)stream->input->block_bytes;
}

/* Whether a block may end behind the newline at `newline`. */
static bool may_end(const tdm_input_stream *stream, const stream_part *part, size_t newline)
{
    const char *text = part->text->text;
    if (stream->input->format->documents == TDM_DOCUMENTS_LINE ||
        newline + 1 >= 2 * (size_t)stream->input->block_bytes)
        return true;
    if (stream->input->format->documents == TDM_DOCUMENTS_FILE)
        return false;
    size_t begin = newline;
    while (begin > part->begin && text[begin - 1] != '\n' && tdm_text_is_blank(text + begin - 1, 1))
        begin--;
    return begin == part->begin || text[begin - 1] == '\n';
}

/* Where the block ends: at the first place that there is, or the last one of an eager stream. 0:
 * none yet. */
static size_t find_end(const tdm_input_stream *stream, stream_part *part)
{
    const char *text = part->text->text;
    size_t end = 0;
    while (part->searched < part->have && (end == 0 || stream->input->eager)) {
        const char *newline = memchr(text + part->searched, '\n', part->have - part->searched);
        if (newline == NULL) {
            part->searched = part->have;
            break;
        }
        size_t at = (size_t)(newline - text);
        part->searched = at + 1;
        if (may_end(stream, part, at))
            end = at + 1;
    }
    return end;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The part's last `bytes` bytes are new. */
static void note_line(stream_part *part, size_t bytes)
{
    const char *text = part->text->text;
    const char *newline = memrchr(text + part->have - bytes, '\n', bytes);
    if (newline != NULL)
        part->line = (size_t)(newline - text) + 1;
}

static tdm_status begin_part(tdm_input_stream *stream, tdm_block_text *text, stream_part *part)
{
    size_t size = text->size, have = stream->carry_bytes, least = least_bytes(stream);
    TDM_TRY(tdm_block_text_add_part(text, stream->file, stream->line));
    TDM_TRY(tdm_block_text_reserve(text, size + have > least ? size + have : least));
    if (have > 0)
        memcpy(text->text + size, stream->carry, have);
    *part = (stream_part){.text = text,
                          .begin = size,
                          .have = size + have,
                          .line = size,
                          .searched = size > least - 1 ? size : least - 1};
    stream->carry_bytes = 0;
    note_line(part, have);
    return TDM_OK;
}

static tdm_status read_more(tdm_input_stream *stream, stream_part *part)
{
    size_t least = least_bytes(stream);
    size_t wanted = part->have + READ_BYTES < least ? least - part->have : READ_BYTES;
    size_t got;
    TDM_TRY(tdm_block_text_reserve(part->text, part->have + wanted));
    TDM_TRY(tdm_source_read(stream->source, part->text->text + part->have, wanted, &got));
    part->have += got;
    stream->source_ended = got == 0;
    note_line(part, got);
    return TDM_OK;
}

static bool may_be_mark(const stream_part *part)
{
    size_t bytes = part->have - part->begin;
    return bytes < 3 && memcmp(part->text->text + part->begin, "\xef\xbb\xbf", bytes) == 0;
}

static tdm_status skip_mark(tdm_input_stream *stream, stream_part *part)
{
    while (may_be_mark(part) && !stream->source_ended)
        TDM_TRY(read_more(stream, part));
    char *begin = part->text->text + part->begin;
    size_t mark = tdm_byte_order_mark(begin, part->have - part->begin);
    memmove(begin, begin + mark, part->have - part->begin - mark);
    part->have -= mark;
    part->line -= part->line > part->begin ? mark : 0;
    return TDM_OK;
}

/* A line beyond the limit: keeps as much as shows it and drops what follows up to its end. */
static tdm_status drop_line(tdm_input_stream *stream, stream_part *part)
{
    char piece[4096];
    part->have = part->line + (size_t)stream->input->max_record_bytes + 2;
    while (!stream->source_ended) {
        size_t got;
        TDM_TRY(tdm_source_read(stream->source, piece, sizeof piece, &got));
        stream->source_ended = got == 0;
        const char *newline = memchr(piece, '\n', got);
        if (newline != NULL)
            return keep(stream, newline + 1, got - (size_t)(newline + 1 - piece));
    }
    return TDM_OK;
}

/* Fills the text up to its end, or to the end of the file. */
static tdm_status fill(tdm_input_stream *stream, stream_part *part, bool *whole)
{
    tdm_block_text *text = part->text;
    size_t longest = (size_t)stream->input->max_record_bytes + 1; /* the last byte may be a CR */
    for (;;) {
        size_t end = find_end(stream, part);
        *whole = true;
        if (end > 0) {
            text->size = (uint32_t)end;
            return keep(stream, text->text + end, part->have - end);
        }
        if (part->have - part->line > longest)
            TDM_TRY(drop_line(stream, part));
        else if (!stream->source_ended)
            *whole = false;
        else
            *whole = stream->input->eager || part->have >= least_bytes(stream);
        if (*whole || stream->source_ended) {
            text->size = (uint32_t)part->have;
            return TDM_OK;
        }
        TDM_TRY(read_more(stream, part));
    }
}

/* Appends what the block has of the file that is being read. */
static tdm_status read_part(tdm_input_stream *stream, tdm_block_text *text, bool *whole)
{
    stream_part part;
    TDM_TRY(begin_part(stream, text, &part));
    if (stream->line == 0)
        TDM_TRY(skip_mark(stream, &part));
    TDM_TRY(fill(stream, &part, whole));
    int64_t stored = tdm_source_stored_position(stream->source);
    text->stored_bytes += stored - stream->stored;
    stream->stored = stored;
    stream->line += tdm_line_count(text->text + part.begin, text->size - part.begin);
    if (stream->source_ended && stream->carry_bytes == 0) {
        tdm_source_close(stream->source);
        stream->source = NULL;
        stream->file++;
    }
    return TDM_OK;
}

/* Files of different weights share no block. */
static bool may_join(const tdm_input_stream *stream, const tdm_block_text *text)
{
    const tdm_input_file *files = stream->input->files;
    return text->part_count == 0 || files[text->parts[0].file].weight == files[stream->file].weight;
}

tdm_status tdm_input_stream_next(tdm_input_stream *stream, tdm_block_text *text, bool *ended)
{
    TDM_TRY(tdm_block_text_begin(text, stream->block));
    for (bool whole = false; !whole;) {
        if (stream->source == NULL) {
            if (stream->file == stream->input->file_count || !may_join(stream, text))
                break;
            TDM_TRY(open_next_file(stream));
        }
        TDM_TRY(read_part(stream, text, &whole));
    }
    *ended = text->part_count == 0;
    stream->block += !*ended;
    tdm_block_text_pad(text);
    return TDM_OK;
}
