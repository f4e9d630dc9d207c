/* Plain text whose records are documents: lines, runs of lines between blank lines, or files. */
#include "core/memory.h"
#include "data/record_format.h"

#include <stdio.h>
#include <string.h>

/* Lines of a document so far. */
typedef struct open_document {
    bool open;
    tdm_span span; /* its last line's end not counted */
    uint32_t line;
} open_document;

bool tdm_text_is_blank(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] != ' ' && (text[i] < '\t' || text[i] > '\r'))
            return false;
    }
    return true;
}

tdm_status tdm_text_column_create(const tdm_format_options *options, const char *file,
                                  const char *first_line, size_t bytes, tdm_record_format *format)
{
    (void)options;
    (void)file;
    (void)first_line;
    (void)bytes;
    TDM_TRY(tdm_alloc(1, sizeof *format->columns, &format->columns));
    format->column_count = 1;
    return tdm_strdup("text", &format->columns[0]);
}

tdm_status tdm_text_column_open_file(const tdm_record_format *format, const char *name,
                                     const char *line, size_t bytes, tdm_file_layout *out)
{
    (void)name;
    (void)line;
    (void)bytes;
    return tdm_file_layout_identity(format->column_count, 0, out);
}

/* "byte 17 of the line is not valid UTF-8", of the line that holds the byte. */
static void reject_at(tdm_parse *parse, tdm_span span, uint32_t line, size_t offset)
{
    const char *begin = parse->text + span.begin;
    const char *bad = begin + offset;
    for (const char *newline; (newline = memchr(begin, '\n', (size_t)(bad - begin))) != NULL;) {
        begin = newline + 1;
        line++;
    }
    char reason[64];
    snprintf(reason, sizeof reason, "byte %zu of the line is not valid UTF-8",
             (size_t)(bad - begin) + 1);
    parse->reject(parse->context, line, span, -1, reason, TDM_BAD_FATAL);
}

bool tdm_text_accept(const tdm_record_format *format, tdm_parse *parse, tdm_span span,
                     uint32_t line, bool *valid)
{
    size_t bytes = span.end - span.begin;
    size_t error = tdm_utf8_error(parse->text + span.begin, bytes);
    *valid = error == bytes;
    if (*valid)
        return true;
    parse->encoding_errors++;
    switch ((tdm_encoding_errors)format->encoding_errors) {
    case TDM_ENCODING_REPLACE:
        return true;
    case TDM_ENCODING_SKIP:
        parse->reject(parse->context, line, span, -1, "is not valid UTF-8", TDM_BAD_DROPPED);
        return false;
    case TDM_ENCODING_FAIL:
        break;
    }
    reject_at(parse, span, line, error);
    return false;
}

static tdm_status create(const tdm_format_options *options, const char *file,
                         const char *first_line, size_t bytes, tdm_record_format *format)
{
    format->documents = options->documents;
    return tdm_text_column_create(options, file, first_line, bytes, format);
}

static void end_document(const tdm_record_format *format, tdm_parse *parse, open_document *document)
{
    bool valid;
    if (!document->open)
        return;
    document->open = false;
    tdm_span span = document->span;
    if (!tdm_text_accept(format, parse, span, document->line, &valid))
        return;
    parse->record_spans[parse->count] = span;
    parse->record_lines[parse->count] = document->line;
    if (parse->text[span.end - 1] == '\r')
        span.end--;
    parse->cells[parse->count++] = span;
}

static void take_line(const tdm_record_format *format, tdm_parse *parse, open_document *document,
                      tdm_span line)
{
    const char *text = parse->text + line.begin;
    size_t bytes = line.end - line.begin;
    uint32_t number = parse->line++;
    if (tdm_text_is_blank(text, bytes)) {
        if (format->documents == TDM_DOCUMENTS_BLANK_LINE)
            end_document(format, parse, document);
        return;
    }
    /* What is left of the document on both sides of a line that is too long are two. */
    if ((int64_t)bytes - (text[bytes - 1] == '\r') > parse->max_record_bytes) {
        end_document(format, parse, document);
        parse->reject(parse->context, number, line, -1, TDM_RECORD_TOO_LONG, TDM_BAD_JUDGED);
        return;
    }
    if (!document->open) {
        document->open = true;
        document->span.begin = line.begin;
        document->line = number;
    }
    document->span.end = line.end;
    if (format->documents == TDM_DOCUMENTS_LINE)
        end_document(format, parse, document);
}

static tdm_status parse(const tdm_record_format *format, tdm_parse *parse)
{
    open_document document = {.open = false};
    parse->count = 0;
    while (parse->cursor < parse->size && (parse->count < parse->capacity)) {
        const char *begin = parse->text + parse->cursor;
        const char *newline = memchr(begin, '\n', parse->size - parse->cursor);
        tdm_span line = {.begin = parse->cursor, .end = parse->size};
        if (newline != NULL)
            line.end = (uint32_t)(newline - parse->text);
        parse->cursor = newline == NULL ? parse->size : line.end + 1;
        take_line(format, parse, &document, line);
    }
    end_document(format, parse, &document);
    return TDM_OK;
}

const tdm_record_format_type tdm_format_text = {
    .name = "text",
    .help = "documents, in one column called text; data.documents says how they are told apart",
    .create = create,
    .open_file = tdm_text_column_open_file,
    .parse = parse,
};
