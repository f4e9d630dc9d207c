/* Records that are lines of cells with a separator between them; where the format has quotes, cells
 * may stand in them (RFC 4180): two quotes within stand for one, separators for themselves. A cell
 * ends in its line, since blocks of a file are cut at line ends. */
#include "core/memory.h"
#include "data/record_format.h"
#include "data/separator_scan.h"

#include <stdio.h>
#include <string.h>

/* The scan writes up to this many entries behind the room that it is given. */
#define SCAN_SLACK 80

/* A group in scratch ends where it has grown beyond this. */
#define GROUP_BYTES ((size_t)1 << 20)

/* One line, by its separators: the last position is the line's end. */
typedef struct line_cells {
    uint32_t begin, end; /* of the line, line end excluded */
    const uint32_t *separators;
    int64_t count;
    bool plain;
    bool cut_off; /* not all separators are there */
} line_cells;

static bool is_blank(const char *text, const line_cells *line)
{
    return line->end == line->begin || (line->end == line->begin + 1 && text[line->begin] == '\r');
}

static uint32_t text_end(const tdm_parse *parse, const line_cells *line)
{
    bool carriage_return = line->end > line->begin && parse->text[line->end - 1] == '\r';
    return line->end - carriage_return;
}

/* NULL where the line may be a record. */
static const char *why_refused(const tdm_parse *parse, const line_cells *line)
{
    size_t bytes = line->end - line->begin;
    const char *text = parse->text + line->begin;
    if ((int64_t)(text_end(parse, line) - line->begin) > parse->max_record_bytes)
        return TDM_RECORD_TOO_LONG;
    if (!line->plain) {
        if (memchr(text, 0, bytes) != NULL)
            return "holds a NUL byte";
        if (!tdm_utf8_valid(text, bytes))
            return "is not valid UTF-8";
    }
    return NULL;
}

static void refuse(tdm_parse *parse, const line_cells *line, int32_t column, const char *reason)
{
    const tdm_span span = {line->begin, line->end};
    parse->reject(parse->context, parse->line++, span, column, reason, TDM_BAD_JUDGED);
}

static bool has_count(tdm_parse *parse, const line_cells *line, int64_t count)
{
    char reason[128];
    if (count == parse->layout->physical_count)
        return true;
    snprintf(reason, sizeof reason, "%lld columns, expected %d", (long long)count,
             parse->layout->physical_count);
    refuse(parse, line, -1, reason);
    return false;
}

/* The line's cells, which are written already, are the next record. */
static void add_record(tdm_parse *parse, const line_cells *line)
{
    parse->record_spans[parse->count] = (tdm_span){line->begin, line->end};
    parse->record_lines[parse->count] = parse->line++;
    parse->count++;
}

/* ---- quotes ---------------------------------------------------------------------------------- */

/* Records of one call. Their cells lie in the text, or where the first has doubled quotes all in
 * scratch. */
typedef struct group {
    bool in_scratch;
    bool ends;
    size_t used; /* of scratch, padding left out */
} group;

/* A line that is cut into cells one after the other. */
typedef struct cutter {
    const char *text;
    uint32_t at, end;
    char separator;
    bool quotes;
    bool done; /* the last cell was cut off */
} cutter;

static void go_behind(cutter *line, uint32_t cell_end)
{
    line->done = cell_end == line->end;
    line->at = cell_end + 1;
}

/* The last line of a cell that was broken looks so. */
static bool closes_what_is_not_open(const char *text, tdm_span cell)
{
    if (cell.end == cell.begin || text[cell.end - 1] != '"')
        return false;
    int64_t quotes = 0;
    for (uint32_t i = cell.begin; i < cell.end; i++)
        quotes += text[i] == '"';
    return quotes % 2 == 1;
}

static const char *next_quoted_cell(cutter *line, tdm_span *cell, bool *doubled)
{
    const char *text = line->text;
    cell->begin = line->at + 1;
    for (uint32_t at = cell->begin;;) {
        const char *quote = memchr(text + at, '"', line->end - at);
        if (quote == NULL)
            return "begins with a quote and ends in another line, which is not supported";
        cell->end = (uint32_t)(quote - text);
        at = cell->end + 1;
        if (at == line->end || text[at] != '"')
            break;
        *doubled = true;
        at++;
    }
    uint32_t behind = cell->end + 1;
    if (behind < line->end && text[behind] != line->separator)
        return "text stands behind its closing quote";
    go_behind(line, behind);
    return NULL;
}

/* NULL, or why the line is refused. *doubled becomes true where the cell holds doubled quotes. */
static const char *next_cell(cutter *line, tdm_span *cell, bool *doubled)
{
    const char *text = line->text;
    if (line->quotes && line->at < line->end && text[line->at] == '"')
        return next_quoted_cell(line, cell, doubled);
    const char *separator = memchr(text + line->at, line->separator, line->end - line->at);
    *cell = (tdm_span){line->at, separator == NULL ? line->end : (uint32_t)(separator - text)};
    if (line->quotes && closes_what_is_not_open(text, *cell))
        return "ends with a quote that it does not begin with";
    go_behind(line, cell->end);
    return NULL;
}

/* Whether a cell begins or ends with a quote. */
static bool has_quotes(const tdm_parse *parse, const line_cells *line)
{
    const char *text = parse->text;
    uint32_t end = text_end(parse, line);
    if (line->cut_off)
        return memchr(text + line->begin, '"', end - line->begin) != NULL;
    if (end == line->begin)
        return false;
    bool found = (text[line->begin] == '"') | (text[end - 1] == '"');
    for (int64_t i = 0; i + 1 < line->count; i++) {
        const char *separator = text + line->separators[i];
        found |= (separator[-1] == '"') | (separator[1] == '"');
    }
    return found;
}

/* Writes the cells of the next record, as spans of the text. False where the line was refused. */
static bool cut_quoted(const tdm_record_format *format, tdm_parse *parse, const line_cells *line,
                       tdm_span *cells, bool *doubled)
{
    const tdm_file_layout *layout = parse->layout;
    cutter cut = {.text = parse->text,
                  .at = line->begin,
                  .end = text_end(parse, line),
                  .separator = format->separator,
                  .quotes = true};
    int64_t count = 0;
    memset(cells, 0, (size_t)format->column_count * sizeof *cells);
    for (; !cut.done; count++) {
        tdm_span cell;
        bool cell_doubled = false;
        const char *reason = next_cell(&cut, &cell, &cell_doubled);
        int32_t column = count < layout->physical_count ? layout->canonical[count] : -1;
        if (reason != NULL) {
            refuse(parse, line, column, reason);
            return false;
        }
        if (column < 0)
            continue;
        cells[column] = cell;
        *doubled = *doubled || cell_doubled;
    }
    return has_count(parse, line, count);
}

/* Copies the next record's cells to scratch, each doubled quote of those in quotes as one. */
static tdm_status copy_to_scratch(const tdm_record_format *format, tdm_parse *parse,
                                  const line_cells *line, group *in)
{
    tdm_scratch_text *scratch = parse->scratch;
    tdm_span *cells = parse->cells + parse->count * format->column_count;
    size_t room = in->used + (line->end - line->begin) + 2 * TDM_TEXT_PADDING;
    TDM_TRY(tdm_grow(&scratch->bytes, &scratch->capacity, room, 1));
    char *begin = scratch->bytes + TDM_TEXT_PADDING, *to = begin + in->used;
    for (int32_t c = 0; c < format->column_count; c++) {
        const char *from = parse->text + cells[c].begin, *end = parse->text + cells[c].end;
        bool quoted = cells[c].begin > line->begin && from[-1] == '"';
        cells[c].begin = (uint32_t)(to - begin);
        while (from < end) {
            *to++ = *from;
            from += quoted && *from == '"' ? 2 : 1;
        }
        cells[c].end = (uint32_t)(to - begin);
    }
    in->used = (size_t)(to - begin);
    in->ends = in->used >= GROUP_BYTES;
    return TDM_OK;
}

/* The text of the cells. */
static const char *finish_scratch(tdm_scratch_text *scratch, size_t used)
{
    memset(scratch->bytes, 0, TDM_TEXT_PADDING);
    memset(scratch->bytes + TDM_TEXT_PADDING + used, 0, TDM_TEXT_PADDING);
    return scratch->bytes + TDM_TEXT_PADDING;
}

/* Makes the group one in scratch where it has no record yet; else it ends before the line. */
static bool use_scratch(const tdm_parse *parse, group *in)
{
    in->in_scratch = in->in_scratch || parse->count == 0;
    in->ends = !in->in_scratch;
    return in->in_scratch;
}

/* ---- lines ----------------------------------------------------------------------------------- */

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

/* Writes the cells of the next record, as spans of the text. False where there is none: the line is
 * refused, or not for this group. */
static bool cut_line(const tdm_record_format *format, tdm_parse *parse, const line_cells *line,
                     group *in)
{
    tdm_span *cells = parse->cells + parse->count * format->column_count;
    const char *reason = why_refused(parse, line);
    bool doubled = false;
    if (reason != NULL) {
        refuse(parse, line, -1, reason);
        return false;
    }
    if (format->type->quotes && has_quotes(parse, line))
        return cut_quoted(format, parse, line, cells, &doubled) &&
               (!doubled || use_scratch(parse, in));
    if (!has_count(parse, line, line->count))
        return false;
    write_cells(format, parse, line, cells);
    return true;
}

/* Takes a line as a record, refuses it, or passes over it where it is blank, and goes on behind
 * it, unless the group ends before it. */
static tdm_status take_line(const tdm_record_format *format, tdm_parse *parse,
                            const line_cells *line, group *in)
{
    if (is_blank(parse->text, line)) {
        parse->line++;
    } else if (cut_line(format, parse, line, in)) {
        if (in->in_scratch)
            TDM_TRY(copy_to_scratch(format, parse, line, in));
        add_record(parse, line);
    } else if (in->ends) {
        return TDM_OK;
    }
    parse->cursor = line->end < parse->size ? line->end + 1 : parse->size;
    return TDM_OK;
}

static uint32_t line_end(const tdm_parse *parse, uint32_t from)
{
    const char *newline = memchr(parse->text + from, '\n', parse->size - from);
    return newline == NULL ? parse->size : (uint32_t)(newline - parse->text);
}

/* A line whose end the scan did not see: the last one of a file, or one with too many separators.
 */
static tdm_status take_unended_line(const tdm_record_format *format, tdm_parse *parse,
                                    const tdm_separator_scan *scan, group *in)
{
    line_cells line = {.begin = parse->cursor,
                       .end = line_end(parse, scan->end),
                       .separators = scan->positions,
                       .count = scan->count + 1,
                       .plain = scan->plain,
                       .cut_off = scan->end < parse->size};
    if (line.cut_off) {
        line.plain = false;
        for (uint32_t i = scan->end; i < line.end; i++)
            line.count += parse->text[i] == format->separator;
    }
    return take_line(format, parse, &line, in);
}

static tdm_status take_lines(const tdm_record_format *format, tdm_parse *parse,
                             const tdm_separator_scan *scan, uint32_t lines, group *in)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < lines && !in->ends; i++) {
        uint32_t last = scan->newlines[i];
        line_cells line = {.begin = parse->cursor,
                           .end = scan->positions[last],
                           .separators = scan->positions + first,
                           .count = (int64_t)last - first + 1,
                           .plain = scan->plain};
        TDM_TRY(take_line(format, parse, &line, in));
        first = last + 1;
    }
    return TDM_OK;
}

tdm_status tdm_parse_separated_lines(const tdm_record_format *format, tdm_parse *parse)
{
    uint32_t newline_room = (uint32_t)parse->capacity;
    uint32_t room = TDM_PARSE_SCRATCH - newline_room - 3 * SCAN_SLACK;
    tdm_separator_scan scan = {.positions = parse->separators,
                               .newlines = parse->separators + room + 2 * SCAN_SLACK};
    group in = {.ends = false};
    parse->count = 0;
    parse->cell_text = parse->text;
    while (!in.ends && parse->count == 0 && parse->cursor < parse->size) {
        tdm_scan_separators(parse->text, parse->cursor, parse->size, format->separator, room,
                            newline_room, &scan);
        uint32_t lines = scan.newline_count < newline_room ? scan.newline_count : newline_room;
        if (lines == 0)
            TDM_TRY(take_unended_line(format, parse, &scan, &in));
        else
            TDM_TRY(take_lines(format, parse, &scan, lines, &in));
    }
    if (in.in_scratch)
        parse->cell_text = finish_scratch(parse->scratch, in.used);
    return TDM_OK;
}

/* Where a name has doubled quotes, `reason` says so too. */
static const char *next_name(cutter *line, tdm_span *name)
{
    bool doubled = false;
    const char *reason = next_cell(line, name, &doubled);
    return reason == NULL && doubled ? "holds a quote" : reason;
}

tdm_status tdm_split_header(const tdm_record_format *format, const char *name, const char *line,
                            size_t bytes, tdm_span **cells, int32_t *count)
{
    *cells = NULL;
    TDM_FAIL_IF(memchr(line, 0, bytes) != NULL || !tdm_utf8_valid(line, bytes), TDM_E_DATA,
                "%s:1: the header is not text in UTF-8", name);
    const cutter begin = {.text = line,
                          .end = (uint32_t)bytes,
                          .separator = format->separator,
                          .quotes = format->type->quotes};
    int32_t cell_count = 0;
    tdm_span cell;
    for (cutter cut = begin; !cut.done; cell_count++) {
        const char *reason = next_name(&cut, &cell);
        TDM_FAIL_IF(reason != NULL, TDM_E_DATA, "%s:1: column %d of the header %s", name,
                    cell_count + 1, reason);
    }
    TDM_FAIL_IF(cell_count > TDM_MAX_RECORD_COLUMNS, TDM_E_DATA,
                "%s:1: the header names %d columns, more than %d", name, cell_count,
                TDM_MAX_RECORD_COLUMNS);
    TDM_TRY(tdm_alloc((size_t)cell_count, sizeof **cells, cells));
    cutter cut = begin;
    for (*count = 0; *count < cell_count; ++*count)
        (void)next_name(&cut, &(*cells)[*count]);
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
