/* Records that are lines of cells with a separator between them and no quoting. */
#include "core/memory.h"
#include "data/record_format.h"
#include "data/separator_scan.h"

#include <stdio.h>
#include <string.h>

/* The scan writes up to this many entries behind the room that it is given. */
#define SCAN_SLACK 80

/* One line, by its separators: the last position is the line's end. */
typedef struct line_cells {
    uint32_t begin, end; /* of the line, line end excluded */
    const uint32_t *separators;
    int64_t count;
    bool plain;
} line_cells;

static bool is_blank(const char *text, const line_cells *line)
{
    return line->end == line->begin || (line->end == line->begin + 1 && text[line->begin] == '\r');
}

/* NULL where the line is a good record. */
static const char *why_refused(const tdm_parse *parse, const line_cells *line, char buffer[128])
{
    size_t bytes = line->end - line->begin;
    const char *text = parse->text + line->begin;
    bool carriage_return = bytes > 0 && text[bytes - 1] == '\r';
    if ((int64_t)bytes - carriage_return > parse->max_record_bytes)
        return TDM_RECORD_TOO_LONG;
    if (!line->plain) {
        if (memchr(text, 0, bytes) != NULL)
            return "holds a NUL byte";
        if (!tdm_utf8_valid(text, bytes))
            return "is not valid UTF-8";
    }
    if (line->count == parse->layout->physical_count)
        return NULL;
    snprintf(buffer, 128, "%lld columns, expected %d", (long long)line->count,
             parse->layout->physical_count);
    return buffer;
}

static void write_cells(const tdm_record_format *format, const tdm_parse *parse,
                        const line_cells *line, tdm_span *cells)
{
    const tdm_file_layout *layout = parse->layout;
    uint32_t end = line->end;
    if (end > line->begin && parse->text[end - 1] == '\r')
        end--;
    if (layout->identity) {
        int32_t last = layout->physical_count - 1;
        cells[0].begin = line->begin;
        for (int32_t i = 0; i < last; i++) {
            cells[i].end = line->separators[i];
            cells[i + 1].begin = line->separators[i] + 1;
        }
        cells[last].end = end;
        return;
    }
    memset(cells, 0, (size_t)format->column_count * sizeof *cells);
    uint32_t begin = line->begin;
    for (int32_t i = 0; i < layout->physical_count; i++) {
        uint32_t cell_end = i + 1 < layout->physical_count ? line->separators[i] : end;
        if (layout->canonical[i] >= 0)
            cells[layout->canonical[i]] = (tdm_span){begin, cell_end};
        begin = cell_end + 1;
    }
}

/* Takes a line as a record, refuses it, or passes over it where it is blank. */
static void take_line(const tdm_record_format *format, tdm_parse *parse, const line_cells *line)
{
    uint32_t number = parse->line++;
    if (is_blank(parse->text, line))
        return;
    char buffer[128];
    tdm_span span = {line->begin, line->end};
    const char *reason = why_refused(parse, line, buffer);
    if (reason != NULL) {
        parse->reject(parse->context, number, span, -1, reason, TDM_BAD_JUDGED);
        return;
    }
    write_cells(format, parse, line, parse->cells + parse->count * format->column_count);
    parse->record_spans[parse->count] = span;
    parse->record_lines[parse->count] = number;
    parse->count++;
}

static uint32_t line_end(const tdm_parse *parse, uint32_t from)
{
    const char *newline = memchr(parse->text + from, '\n', parse->size - from);
    return newline == NULL ? parse->size : (uint32_t)(newline - parse->text);
}

/* A line whose end the scan did not see: the last one of a file, or one with too many separators.
 */
static void take_unended_line(const tdm_record_format *format, tdm_parse *parse,
                              const tdm_separator_scan *scan)
{
    line_cells line = {.begin = parse->cursor,
                       .end = line_end(parse, scan->end),
                       .separators = scan->positions,
                       .count = scan->count + 1,
                       .plain = scan->plain};
    if (scan->end < parse->size) {
        line.plain = false;
        for (uint32_t i = scan->end; i < line.end; i++)
            line.count += parse->text[i] == format->separator;
    }
    take_line(format, parse, &line);
    parse->cursor = line.end < parse->size ? line.end + 1 : parse->size;
}

tdm_status tdm_parse_separated_lines(const tdm_record_format *format, tdm_parse *parse)
{
    uint32_t newline_room = (uint32_t)parse->capacity;
    uint32_t room = TDM_PARSE_SCRATCH - newline_room - 3 * SCAN_SLACK;
    tdm_separator_scan scan = {.positions = parse->separators,
                               .newlines = parse->separators + room + 2 * SCAN_SLACK};
    parse->count = 0;
    while (parse->count == 0 && parse->cursor < parse->size) {
        tdm_scan_separators(parse->text, parse->cursor, parse->size, format->separator, room,
                            newline_room, &scan);
        if (scan.newline_count == 0) {
            take_unended_line(format, parse, &scan);
            continue;
        }
        uint32_t lines = scan.newline_count < newline_room ? scan.newline_count : newline_room;
        uint32_t first = 0;
        for (uint32_t i = 0; i < lines; i++) {
            uint32_t last = scan.newlines[i];
            line_cells line = {.begin = parse->cursor,
                               .end = scan.positions[last],
                               .separators = scan.positions + first,
                               .count = (int64_t)last - first + 1,
                               .plain = scan.plain};
            take_line(format, parse, &line);
            parse->cursor = line.end + 1;
            first = last + 1;
        }
    }
    return TDM_OK;
}

tdm_status tdm_split_header(const char *name, const char *line, size_t bytes, char separator,
                            tdm_span **cells, int32_t *count)
{
    *cells = NULL;
    TDM_FAIL_IF(memchr(line, 0, bytes) != NULL || !tdm_utf8_valid(line, bytes), TDM_E_DATA,
                "%s:1: the header is not text in UTF-8", name);
    int32_t cell_count = 1;
    for (size_t i = 0; i < bytes; i++)
        cell_count += line[i] == separator;
    TDM_FAIL_IF(cell_count > TDM_MAX_RECORD_COLUMNS, TDM_E_DATA,
                "%s:1: the header names %d columns, more than %d", name, cell_count,
                TDM_MAX_RECORD_COLUMNS);
    TDM_TRY(tdm_alloc((size_t)cell_count, sizeof **cells, cells));
    *count = cell_count;
    uint32_t begin = 0;
    int32_t cell = 0;
    for (size_t i = 0; i <= bytes; i++) {
        if (i == bytes || line[i] == separator) {
            (*cells)[cell++] = (tdm_span){begin, (uint32_t)i};
            begin = (uint32_t)i + 1;
        }
    }
    return TDM_OK;
}

tdm_status tdm_file_layout_identity(int32_t physical_count, int32_t first, tdm_file_layout *out)
{
    *out = (tdm_file_layout){.physical_count = physical_count, .identity = first == 0};
    TDM_TRY(tdm_alloc((size_t)physical_count, sizeof *out->canonical, &out->canonical));
    for (int32_t i = 0; i < physical_count; i++)
        out->canonical[i] = first + i;
    return TDM_OK;
}

void tdm_file_layout_deinit(tdm_file_layout *layout)
{
    tdm_free(layout->canonical);
    *layout = (tdm_file_layout){0};
}
