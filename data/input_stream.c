/* All blocks of an input in order. */
#include "core/memory.h"
#include "data/input_internal.h"

#include <string.h>

struct tdm_input_stream {
    tdm_input *input;
    int32_t file;       /* being read, or the next one */
    tdm_source *source; /* NULL between files */
    int64_t block;      /* the number of the next one */
    int64_t line;       /* lines of the file before it */
    int64_t stored;     /* stored bytes of the file before it */
    bool first_of_file;
    bool source_ended;
    char *carry; /* bytes behind the last block, which begin the next */
    size_t carry_bytes;
    size_t carry_capacity;
};

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
    stream->first_of_file = true;
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

/* Reads on until text->text[0, have) holds a line end at or behind `least`, or the source ends. */
static tdm_status fill(tdm_input_stream *stream, tdm_block_text *text, size_t least, size_t *have,
                       const char **newline)
{
    size_t searched = least > 0 ? least - 1 : 0;
    size_t limit = (size_t)stream->input->max_record_bytes + 1 + least;
    for (;;) {
        *newline = *have > searched ? memchr(text->text + searched, '\n', *have - searched) : NULL;
        if (*newline != NULL || stream->source_ended || *have > limit)
            return TDM_OK;
        if (*have > searched)
            searched = *have;
        size_t wanted = *have + ((size_t)64 << 10) < least ? least - *have : (size_t)64 << 10;
        TDM_TRY(tdm_block_text_reserve(text, *have + wanted));
        size_t got;
        TDM_TRY(tdm_source_read(stream->source, text->text + *have, wanted, &got));
        *have += got;
        stream->source_ended = got == 0;
    }
}

/* A record beyond the limit: keeps its beginning for the report and drops bytes up to its end. */
static tdm_status drop_record(tdm_input_stream *stream, tdm_block_text *text, size_t have)
{
    const char *last = memrchr(text->text, '\n', have);
    size_t begin = last == NULL ? 0 : (size_t)(last - text->text) + 1;
    text->size = (uint32_t)begin;
    text->cut_bytes = (uint32_t)tdm_cut_bytes((int64_t)(have - begin));
    char piece[4096];
    stream->carry_bytes = 0;
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

static tdm_status cut_block(tdm_input_stream *stream, tdm_block_text *text)
{
    size_t least = stream->input->eager ? 1 : (size_t)stream->input->block_bytes;
    size_t have = stream->carry_bytes;
    TDM_TRY(tdm_block_text_reserve(text, have > least ? have : least));
    if (have > 0)
        memcpy(text->text, stream->carry, have);
    const char *newline;
    TDM_TRY(fill(stream, text, least, &have, &newline));
    if (stream->first_of_file) {
        size_t mark = tdm_byte_order_mark(text->text, have);
        memmove(text->text, text->text + mark, have - mark);
        have -= mark;
        newline = newline == NULL ? NULL : newline - mark;
    }
    text->cut_bytes = 0;
    if (newline != NULL && stream->input->eager)
        newline = memrchr(text->text, '\n', have); /* all whole lines that are there */
    if (newline != NULL) {
        text->size = (uint32_t)(newline - text->text) + 1;
        return keep(stream, text->text + text->size, have - text->size);
    }
    if (stream->source_ended) {
        text->size = (uint32_t)have;
        stream->carry_bytes = 0;
        return TDM_OK;
    }
    return drop_record(stream, text, have);
}

tdm_status tdm_input_stream_next(tdm_input_stream *stream, tdm_block_text *text, bool *ended)
{
    *ended = false;
    for (;;) {
        if (stream->source == NULL) {
            if (stream->file == stream->input->file_count) {
                *ended = true;
                return TDM_OK;
            }
            TDM_TRY(open_next_file(stream));
        }
        if (!stream->source_ended || stream->carry_bytes > 0)
            break;
        tdm_source_close(stream->source);
        stream->source = NULL;
        stream->file++;
    }
    TDM_TRY(cut_block(stream, text));
    int64_t stored = tdm_source_stored_position(stream->source);
    text->block = stream->block++;
    text->file = stream->file;
    text->first_of_file = stream->first_of_file;
    text->stored_bytes = stored - stream->stored;
    text->first_line = stream->line;
    stream->stored = stored;
    stream->line += tdm_line_count(text->text, text->size) + (text->cut_bytes > 0);
    stream->first_of_file = false;
    tdm_block_text_pad(text);
    return TDM_OK;
}
