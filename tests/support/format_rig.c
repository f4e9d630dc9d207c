#include "tests/support/format_rig.h"

#include "core/memory.h"
#include "tests/support/check_main.h"

#include <string.h>

static void note_refusal(void *context, uint32_t line, tdm_span span, int32_t column,
                         const char *reason, tdm_bad_kind kind)
{
    tdm_parser *p = context;
    ck_assert_int_eq(kind, TDM_BAD_JUDGED);
    ck_assert_uint_lt(line, TDM_PARSER_LINES);
    ck_assert_uint_le(span.begin, span.end);
    ck_assert_ptr_null(p->refused[line]);
    ck_assert_ok(tdm_format(&p->refused[line], "%d: %s", column, reason));
}

static void note_records(tdm_parser *p, const tdm_parse *parse)
{
    for (int64_t r = 0; r < parse->count; r++) {
        tdm_text text = {0};
        for (int32_t c = 0; c < p->format->column_count; c++) {
            tdm_span cell = parse->cells[r * p->format->column_count + c];
            ck_assert(cell.begin <= cell.end && cell.end <= parse->size);
            ck_assert_ok(tdm_text_printf(&text, "%s%.*s", c == 0 ? "" : "|",
                                         (int)(cell.end - cell.begin),
                                         parse->cell_text + cell.begin));
        }
        uint32_t line = parse->record_lines[r];
        ck_assert_ptr_null(p->records[line]);
        p->records[line] = text.bytes;
    }
}

void tdm_parser_parse(tdm_parser *p, const char *text, size_t size)
{
    static uint32_t separators[TDM_PARSE_SCRATCH];
    tdm_span spans[TDM_PARSE_RECORDS];
    uint32_t lines[TDM_PARSE_RECORDS];
    char *buffer;
    tdm_span *cells;
    tdm_scratch_text scratch = {0};
    ck_assert_ok(tdm_alloc(size + 2 * TDM_TEXT_PADDING, 1, &buffer));
    ck_assert_ok(tdm_alloc((size_t)TDM_PARSE_RECORDS * (size_t)p->format->column_count,
                           sizeof *cells, &cells));
    memcpy(buffer + TDM_TEXT_PADDING, text, size);
    tdm_parse parse = {.text = buffer + TDM_TEXT_PADDING,
                       .size = (uint32_t)size,
                       .layout = &p->layout,
                       .max_record_bytes = p->max_record_bytes,
                       .cells = cells,
                       .record_spans = spans,
                       .record_lines = lines,
                       .capacity = TDM_PARSE_RECORDS,
                       .separators = separators,
                       .scratch = &scratch,
                       .reject = note_refusal,
                       .context = p};
    if (p->layout.header) {
        parse.cursor = (uint32_t)(strchr(text, '\n') - text) + 1;
        parse.line = 1;
    }
    do {
        ck_assert_ok(p->format->type->parse(p->format, &parse));
        note_records(p, &parse);
    } while (parse.cursor < parse.size);
    tdm_free(scratch.bytes);
    tdm_free(buffer);
    tdm_free(cells);
}

tdm_status tdm_parser_try_open(tdm_parser *p, const tdm_format_options *options,
                               const char *first_line)
{
    memset(p, 0, sizeof *p);
    p->max_record_bytes = 1 << 20;
    size_t bytes = strcspn(first_line, "\r\n");
    TDM_TRY(tdm_record_format_create(options, "f.csv", first_line, bytes, &p->format));
    return p->format->type->open_file(p->format, "f.csv", first_line, bytes, &p->layout);
}

void tdm_parser_close(tdm_parser *p)
{
    for (int i = 0; i < TDM_PARSER_LINES; i++) {
        tdm_free(p->refused[i]);
        tdm_free(p->records[i]);
    }
    tdm_file_layout_deinit(&p->layout);
    tdm_record_format_destroy(p->format);
}

void tdm_parser_check(const tdm_parser *p, const char *expected)
{
    tdm_text all = {0};
    ck_assert_ok(tdm_text_printf(&all, "%s", ""));
    for (int i = 0; i < TDM_PARSER_LINES; i++) {
        ck_assert(p->refused[i] == NULL || p->records[i] == NULL);
        if (p->refused[i] != NULL)
            ck_assert_ok(tdm_text_printf(&all, "%d! %s\n", i, p->refused[i]));
        if (p->records[i] != NULL)
            ck_assert_ok(tdm_text_printf(&all, "%d: %s\n", i, p->records[i]));
    }
    ck_assert_str_eq(all.bytes, expected);
    tdm_text_free(&all);
}

void tdm_check_parsed(const tdm_format_options *options, const char *text, const char *expected)
{
    tdm_parser p;
    ck_assert_ok(tdm_parser_try_open(&p, options, text));
    tdm_parser_parse(&p, text, strlen(text));
    tdm_parser_check(&p, expected);
    tdm_parser_close(&p);
}
