/* JSON Lines (https://jsonlines.org): an object a line, of which one field holds the text. */
#include "core/memory.h"
#include "data/record_format.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* A group of records ends where their text has grown beyond this. */
#define GROUP_BYTES ((size_t)1 << 20)

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

static tdm_status create(const tdm_format_options *options, const char *file,
                         const char *first_line, size_t bytes, tdm_record_format *format)
{
    const char *field = options->field == NULL ? "text" : options->field;
    TDM_FAIL_IF(field[0] == '\0', TDM_E_CONFIG, "data.field: names no field");
    TDM_TRY(tdm_strdup(field, &format->field));
    return tdm_text_column_create(options, file, first_line, bytes, format);
}

static tdm_status reserve(tdm_parse *parse, size_t bytes)
{
    return tdm_grow(&parse->scratch->bytes, &parse->scratch->capacity, bytes + 2 * TDM_TEXT_PADDING,
                    1);
}

/* Copies a text to scratch behind `used`, with U+FFFD for each byte that begins no character. */
static tdm_status replace_errors(tdm_parse *parse, size_t used, const char *text, size_t bytes,
                                 const char **out, size_t *out_bytes)
{
    TDM_TRY(reserve(parse, used + 3 * bytes));
    char *begin = parse->scratch->bytes + TDM_TEXT_PADDING + used;
    char *to = begin;
    for (size_t at = 0; at < bytes;) {
        size_t valid = tdm_utf8_error(text + at, bytes - at);
        memcpy(to, text + at, valid);
        to += valid;
        at += valid;
        if (at == bytes)
            break;
        memcpy(to, replacement, 3);
        to += 3;
        at++;
    }
    *out = begin;
    *out_bytes = (size_t)(to - begin);
    return TDM_OK;
}

/* The reason without the place, which differs from record to record. */
static void why_no_json(json_error_t *error, char *reason, size_t bytes)
{
    char *near = strstr(error->text, " near '");
    if (near != NULL)
        *near = '\0';
    snprintf(reason, bytes, "is not JSON: %s", error->text);
}

/* The text of a line's object, borrowed from *root; NULL where it has none, with the reason. */
static tdm_status find_text(const tdm_record_format *format, const char *line, size_t bytes,
                            json_t **root, const json_t **text, char *reason, size_t reason_bytes)
{
    json_error_t error;
    *text = NULL;
    *root = json_loadb(line, bytes,
                       JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    if (*root == NULL) {
        TDM_FAIL_IF(json_error_code(&error) == json_error_out_of_memory, TDM_E_NOMEM,
                    "out of memory while reading JSON");
        why_no_json(&error, reason, reason_bytes);
        return TDM_OK;
    }
    const json_t *value = json_object_get(*root, format->field);
    if (!json_is_object(*root))
        snprintf(reason, reason_bytes, "is a JSON array, expected an object");
    else if (value == NULL)
        snprintf(reason, reason_bytes, "%s: is missing", format->field);
    else if (!json_is_string(value))
        snprintf(reason, reason_bytes, "%s: is not a string", format->field);
    else
        *text = value;
    return TDM_OK;
}

/* Keeps a record's text in scratch behind `*used`. */
static tdm_status keep_text(tdm_parse *parse, const json_t *text, size_t *used)
{
    size_t bytes = json_string_length(text);
    TDM_TRY(reserve(parse, *used + bytes));
    memcpy(parse->scratch->bytes + TDM_TEXT_PADDING + *used, json_string_value(text), bytes);
    parse->cells[parse->count] = (tdm_span){(uint32_t)*used, (uint32_t)(*used + bytes)};
    *used += bytes;
    return TDM_OK;
}

static tdm_status take_line(const tdm_record_format *format, tdm_parse *parse, tdm_span span,
                            size_t *used)
{
    const char *line = parse->text + span.begin;
    size_t bytes = span.end - span.begin;
    uint32_t number = parse->line++;
    bool valid;
    if (tdm_text_is_blank(line, bytes))
        return TDM_OK;
    if ((int64_t)bytes - (line[bytes - 1] == '\r') > parse->max_record_bytes) {
        parse->reject(parse->context, number, span, -1, TDM_RECORD_TOO_LONG, TDM_BAD_JUDGED);
        return TDM_OK;
    }
    if (!tdm_text_accept(format, parse, span, number, &valid))
        return TDM_OK;
    if (!valid)
        TDM_TRY(replace_errors(parse, *used, line, bytes, &line, &bytes));
    json_t *root;
    const json_t *text;
    char reason[JSON_ERROR_TEXT_LENGTH + 64];
    TDM_TRY(find_text(format, line, bytes, &root, &text, reason, sizeof reason));
    tdm_status status = TDM_OK;
    if (text == NULL) {
        parse->reject(parse->context, number, span, -1, reason, TDM_BAD_JUDGED);
    } else if (!tdm_text_is_blank(json_string_value(text), json_string_length(text))) {
        status = keep_text(parse, text, used);
        parse->record_spans[parse->count] = span;
        parse->record_lines[parse->count++] = number;
    }
    json_decref(root);
    return status;
}

static tdm_status parse(const tdm_record_format *format, tdm_parse *parse)
{
    size_t used = 0;
    parse->count = 0;
    while (parse->cursor < parse->size && parse->count < parse->capacity && used < GROUP_BYTES) {
        const char *begin = parse->text + parse->cursor;
        const char *newline = memchr(begin, '\n', parse->size - parse->cursor);
        tdm_span line = {.begin = parse->cursor, .end = parse->size};
        if (newline != NULL)
            line.end = (uint32_t)(newline - parse->text);
        parse->cursor = newline == NULL ? parse->size : line.end + 1;
        TDM_TRY(take_line(format, parse, line, &used));
    }
    TDM_TRY(reserve(parse, used));
    memset(parse->scratch->bytes, 0, TDM_TEXT_PADDING);
    memset(parse->scratch->bytes + TDM_TEXT_PADDING + used, 0, TDM_TEXT_PADDING);
    parse->cell_text = parse->scratch->bytes + TDM_TEXT_PADDING;
    return TDM_OK;
}

const tdm_record_format_type tdm_format_jsonl = {
    .name = "jsonl",
    .help = "a JSON object a line; data.field names the string that is the text",
    .create = create,
    .open_file = tdm_text_column_open_file,
    .parse = parse,
};
