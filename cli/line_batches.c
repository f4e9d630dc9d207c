#include "cli/line_batches.h"

#include "core/memory.h"
#include "data/paths.h"
#include "data/source.h"
#include "data/utf8.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define READ_BYTES    ((size_t)1 << 20)
#define LINES_AT_ONCE ((int64_t)8192)

struct tdm_line_reader {
    tdm_strings paths;
    int64_t next_path;
    const atomic_bool *cancel;
    tdm_source *source; /* NULL between files */
    const char *name;
    bool eager;
    int64_t line;           /* the next one's number */
    char *text;             /* [begin, end): read and not given out */
    size_t begin, searched; /* no line ends in [begin, searched) */
    size_t end, capacity;
    tdm_line *lines;
    size_t lines_capacity;
    int64_t stored_total, stored_before; /* bytes of all files, -1: not known; of those behind us */
};

static void add_stored_bytes(tdm_line_reader *reader, const char *path)
{
    struct stat info;
    if (strcmp(path, "-") == 0 || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        reader->stored_total = -1;
    else if (reader->stored_total >= 0)
        reader->stored_total += info.st_size;
}

tdm_status tdm_line_reader_create(const tdm_strings *names, const atomic_bool *cancel,
                                  tdm_line_reader **out)
{
    tdm_line_reader *reader;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *reader, &reader));
    reader->cancel = cancel;
    tdm_status status = tdm_paths_expand(names, &reader->paths, NULL);
    if (status != TDM_OK) {
        tdm_line_reader_destroy(reader);
        return status;
    }
    for (int64_t i = 0; i < reader->paths.count; i++)
        add_stored_bytes(reader, reader->paths.items[i]);
    *out = reader;
    return TDM_OK;
}

void tdm_line_reader_destroy(tdm_line_reader *reader)
{
    if (reader == NULL)
        return;
    tdm_source_close(reader->source);
    tdm_strings_free(&reader->paths);
    tdm_free(reader->text);
    tdm_free(reader->lines);
    tdm_free(reader);
}

static tdm_status open_next(tdm_line_reader *reader)
{
    const char *path = reader->paths.items[reader->next_path++];
    TDM_TRY(tdm_source_open(path, reader->cancel, &reader->source));
    bool is_stdin = strcmp(path, "-") == 0;
    reader->name = is_stdin ? "standard input" : path;
    reader->eager = reader->eager || is_stdin;
    if (is_stdin)
        tdm_source_set_eager(reader->source);
    reader->line = 1;
    return TDM_OK;
}

static void close_file(tdm_line_reader *reader)
{
    reader->stored_before += tdm_source_stored_position(reader->source);
    tdm_source_close(reader->source);
    reader->source = NULL;
}

static tdm_status read_more(tdm_line_reader *reader, bool *ended)
{
    size_t kept = reader->end - reader->begin, got;
    if (reader->begin > 0)
        memmove(reader->text, reader->text + reader->begin, kept);
    reader->searched -= reader->begin;
    reader->begin = 0;
    reader->end = kept;
    TDM_TRY(tdm_grow(&reader->text, &reader->capacity, kept + READ_BYTES, 1));
    TDM_TRY(tdm_source_read(reader->source, reader->text + kept, READ_BYTES, &got));
    reader->end += got;
    *ended = got == 0;
    return TDM_OK;
}

/* At the front of a file's first line. */
static void skip_byte_order_mark(const tdm_line_reader *reader, tdm_line *line)
{
    size_t mark = reader->line == 1 ? tdm_byte_order_mark(line->text, line->bytes) : 0;
    line->text += mark;
    line->bytes -= mark;
}

static tdm_status add_line(tdm_line_reader *reader, int64_t count, size_t end)
{
    TDM_TRY(tdm_grow(&reader->lines, &reader->lines_capacity, (size_t)count + 1,
                     sizeof *reader->lines));
    reader->lines[count] =
        (tdm_line){.text = reader->text + reader->begin, .bytes = end - reader->begin};
    if (count == 0)
        skip_byte_order_mark(reader, &reader->lines[0]);
    return TDM_OK;
}

/* Lines of what has been read; the rest of a file that has ended is one, too. */
static tdm_status take_lines(tdm_line_reader *reader, bool ended, int64_t *count)
{
    *count = 0;
    while (*count < LINES_AT_ONCE && reader->searched < reader->end) {
        const char *stop =
            memchr(reader->text + reader->searched, '\n', reader->end - reader->searched);
        if (stop == NULL && !ended) {
            reader->searched = reader->end;
            return TDM_OK;
        }
        size_t end = stop != NULL ? (size_t)(stop - reader->text) : reader->end;
        TDM_TRY(add_line(reader, (*count)++, end));
        reader->begin = reader->searched = end + (stop != NULL);
    }
    return TDM_OK;
}

tdm_status tdm_line_reader_next(tdm_line_reader *reader, tdm_line_batch *batch)
{
    *batch = (tdm_line_batch){0};
    while (batch->count == 0 &&
           (reader->source != NULL || reader->next_path < reader->paths.count)) {
        bool ended = false;
        if (reader->source == NULL)
            TDM_TRY(open_next(reader));
        TDM_TRY(take_lines(reader, false, &batch->count));
        if (batch->count == 0)
            TDM_TRY(read_more(reader, &ended));
        if (ended) {
            reader->searched = reader->begin;
            TDM_TRY(take_lines(reader, true, &batch->count));
            close_file(reader);
        }
    }
    batch->name = reader->name;
    batch->first = reader->line;
    batch->lines = reader->lines;
    reader->line += batch->count;
    return TDM_OK;
}

bool tdm_line_reader_is_eager(const tdm_line_reader *reader)
{
    return reader->eager;
}

double tdm_line_reader_share(const tdm_line_reader *reader)
{
    int64_t done = reader->stored_before;
    if (reader->source != NULL)
        done += tdm_source_stored_position(reader->source);
    return reader->stored_total > 0 ? (double)done / (double)reader->stored_total : NAN;
}
