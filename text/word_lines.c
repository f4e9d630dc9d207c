#include "text/word_lines.h"

#include "core/memory.h"
#include "data/source.h"
#include "data/utf8.h"
#include "text/word_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)256 << 10)
#define NUMBER_BYTES 24
#define LINE_BYTES   (NUMBER_BYTES + TDM_WORD_BYTES_MAX + 1)
#define END_LINE     "#end "

/* ---- writing --------------------------------------------------------------------------------- */

static tdm_status flush(tdm_word_writer *writer)
{
    size_t used = writer->used;
    writer->used = 0;
    return writer->write(writer->context, writer->buffer, used);
}

tdm_status tdm_word_writer_open(tdm_write_bytes *write, void *context, const char *settings,
                                tdm_word_writer *out)
{
    *out = (tdm_word_writer){.write = write, .context = context};
    TDM_TRY(tdm_alloc(BUFFER_BYTES, 1, &out->buffer));
    if (settings != NULL)
        out->used =
            (size_t)snprintf(out->buffer, BUFFER_BYTES, "%s%s\n", TDM_WORD_COUNTS_MAGIC, settings);
    return TDM_OK;
}

void tdm_word_writer_deinit(tdm_word_writer *writer)
{
    tdm_free(writer->buffer);
    *writer = (tdm_word_writer){0};
}

tdm_status tdm_word_writer_add(tdm_word_writer *writer, const tdm_word_entry *entry)
{
    if (writer->used + LINE_BYTES > BUFFER_BYTES)
        TDM_TRY(flush(writer));
    char *at = writer->buffer + writer->used;
    size_t digits = (size_t)snprintf(at, NUMBER_BYTES, "%" PRId64 "\t", entry->count);
    memcpy(at + digits, entry->word, entry->bytes);
    at[digits + entry->bytes] = '\n';
    writer->used += digits + entry->bytes + 1;
    writer->words++;
    writer->total += entry->count;
    return TDM_OK;
}

tdm_status tdm_word_writer_end(tdm_word_writer *writer, bool with_end)
{
    TDM_TRY(flush(writer));
    if (with_end)
        writer->used =
            (size_t)snprintf(writer->buffer, BUFFER_BYTES, END_LINE "%" PRId64 " %" PRId64 "\n",
                             writer->words, writer->total);
    return flush(writer);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct tdm_word_reader {
    char *path;
    tdm_source *source;
    bool has_end;
    bool ended;
    int64_t line;
    char *buffer; /* read and not yet used: buffer[begin, end) */
    size_t begin, end;
    char *last; /* the word before this one */
    size_t last_bytes;
    int64_t words, total;
};

static tdm_status damaged(const tdm_word_reader *reader, const char *why)
{
    return tdm_fail(TDM_E_DATA, "%s:%" PRId64 ": %s", reader->path, reader->line, why);
}

/* The next line without its end, or *line is NULL behind the last one. */
static tdm_status next_line(tdm_word_reader *reader, const char **line, size_t *bytes)
{
    char *newline = memchr(reader->buffer + reader->begin, '\n', reader->end - reader->begin);
    *line = NULL;
    if (newline == NULL) {
        memmove(reader->buffer, reader->buffer + reader->begin, reader->end - reader->begin);
        reader->end -= reader->begin;
        reader->begin = 0;
        size_t got;
        TDM_TRY(tdm_source_read(reader->source, reader->buffer + reader->end,
                                BUFFER_BYTES - reader->end, &got));
        newline = memchr(reader->buffer + reader->end, '\n', got);
        reader->end += got;
    }
    if (reader->end == reader->begin)
        return TDM_OK;
    reader->line++;
    if (newline == NULL)
        return damaged(reader, "the line is too long, or has no end");
    *line = reader->buffer + reader->begin;
    *bytes = (size_t)(newline - *line);
    reader->begin += *bytes + 1;
    return TDM_OK;
}

static tdm_status check_settings(tdm_word_reader *reader, const char *settings)
{
    const char *line;
    size_t bytes;
    size_t magic = strlen(TDM_WORD_COUNTS_MAGIC);
    tdm_status status = next_line(reader, &line, &bytes);
    if (status != TDM_OK && status != TDM_E_DATA)
        return status;
    TDM_FAIL_IF(status != TDM_OK || line == NULL || bytes < magic ||
                    memcmp(line, TDM_WORD_COUNTS_MAGIC, magic) != 0,
                TDM_E_DATA, "%s: is no file of word counts (of this version): give another name",
                reader->path);
    TDM_FAIL_IF(bytes - magic != strlen(settings) ||
                    memcmp(line + magic, settings, bytes - magic) != 0,
                TDM_E_DATA,
                "%s: its words were counted with \"%.*s\", and these are with \"%s\": give the "
                "same settings, or another file",
                reader->path, (int)(bytes - magic), line + magic, settings);
    return TDM_OK;
}

tdm_status tdm_word_reader_open(const char *path, const char *settings, tdm_word_reader **out)
{
    *out = NULL;
    tdm_word_reader *reader;
    TDM_TRY(tdm_alloc(1, sizeof *reader, &reader));
    reader->has_end = settings != NULL;
    tdm_status status;
    TDM_TRY_GOTO(tdm_strdup(path, &reader->path), fail);
    TDM_TRY_GOTO(tdm_alloc(BUFFER_BYTES, 1, &reader->buffer), fail);
    TDM_TRY_GOTO(tdm_alloc(TDM_WORD_BYTES_MAX, 1, &reader->last), fail);
    TDM_TRY_GOTO(tdm_source_open(path, NULL, &reader->source), fail);
    if (settings != NULL)
        TDM_TRY_GOTO(check_settings(reader, settings), fail);
    *out = reader;
    return TDM_OK;
fail:
    tdm_word_reader_close(reader);
    return status;
}

void tdm_word_reader_close(tdm_word_reader *reader)
{
    if (reader == NULL)
        return;
    tdm_source_close(reader->source);
    tdm_free(reader->path);
    tdm_free(reader->buffer);
    tdm_free(reader->last);
    tdm_free(reader);
}

static tdm_status parse_line(tdm_word_reader *reader, const char *line, size_t bytes,
                             tdm_word_entry *entry)
{
    int64_t count = 0;
    size_t at = 0;
    bool overflow = false;
    for (; at < bytes && line[at] >= '0' && line[at] <= '9'; at++)
        overflow = overflow || __builtin_mul_overflow(count, 10, &count) ||
                   __builtin_add_overflow(count, line[at] - '0', &count);
    overflow = overflow || __builtin_add_overflow(reader->total, count, &reader->total);
    if (overflow)
        return damaged(reader, "more words than can be counted");
    if (at == 0 || line[0] == '0' || at == bytes || line[at] != '\t')
        return damaged(reader, "expected a count, a tab and a word");
    *entry = (tdm_word_entry){line + at + 1, bytes - at - 1, count};
    if (entry->bytes == 0 || entry->bytes > TDM_WORD_BYTES_MAX ||
        !tdm_utf8_valid(entry->word, entry->bytes))
        return damaged(reader, "the word is empty, too long or not UTF-8");
    if (tdm_word_compare(reader->last, reader->last_bytes, entry->word, entry->bytes) >= 0)
        return damaged(reader, "the words are not in the order of their bytes");
    return TDM_OK;
}

static tdm_status check_end(tdm_word_reader *reader, const char *line, size_t bytes)
{
    char expected[2 * NUMBER_BYTES + sizeof END_LINE];
    int length = snprintf(expected, sizeof expected, END_LINE "%" PRId64 " %" PRId64, reader->words,
                          reader->total);
    if (line == NULL)
        return damaged(reader, "its last line is missing: the file is truncated");
    if (bytes != (size_t)length || memcmp(line, expected, bytes) != 0)
        return damaged(reader, "its last line does not fit the words before it");
    TDM_TRY(next_line(reader, &line, &bytes));
    return line == NULL ? TDM_OK : damaged(reader, "a line behind the last one");
}

tdm_status tdm_word_reader_next(tdm_word_reader *reader, tdm_word_entry *entry, bool *ended)
{
    const char *line;
    size_t bytes = 0;
    *ended = reader->ended;
    if (reader->ended)
        return TDM_OK;
    TDM_TRY(next_line(reader, &line, &bytes));
    if (line == NULL || (reader->has_end && bytes > 0 && line[0] == '#')) {
        reader->ended = *ended = true;
        return reader->has_end ? check_end(reader, line, bytes) : TDM_OK;
    }
    TDM_TRY(parse_line(reader, line, bytes, entry));
    memcpy(reader->last, entry->word, entry->bytes);
    reader->last_bytes = entry->bytes;
    reader->words++;
    return TDM_OK;
}
