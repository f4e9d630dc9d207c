/* JSON Lines (https://jsonlines.org): an object a line, of which one field holds the text; or with
 * columns, of which several are cells. */
#include "core/memory.h"
#include "core/number.h"
#include "data/record_format.h"
#include "data/utf8.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A group of records ends where their text has grown beyond this. */
#define GROUP_BYTES ((size_t)1 << 20)

static tdm_status create(const tdm_format_options *options, const char *file,
                         const char *first_line, size_t bytes, tdm_record_format *format)
{
    if (options->columns.count > 0)
        return tdm_format_copy_columns(&options->columns, format);
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
    *out = begin;
    *out_bytes = tdm_utf8_replace(text, bytes, begin);
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

/* Parses a line; *root is NULL where it is no object, with the reason. */
static tdm_status parse_object(const char *line, size_t bytes, json_t **root, char *reason,
                               size_t reason_bytes)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_error_t error;
    *root = json_loadb(line, bytes, flags, &error);
    if (*root == NULL && json_error_code(&error) == json_error_numeric_overflow)
        *root = json_loadb(line, bytes, flags | JSON_DECODE_INT_AS_REAL, &error);
    if (*root == NULL) {
        TDM_FAIL_IF(json_error_code(&error) == json_error_out_of_memory, TDM_E_NOMEM,
                    "out of memory while reading JSON");
        why_no_json(&error, reason, reason_bytes);
    } else if (!json_is_object(*root)) {
        snprintf(reason, reason_bytes, "is a JSON array, expected an object");
        json_decref(*root);
        *root = NULL;
    }
    return TDM_OK;
}

/* ---- one field ------------------------------------------------------------------------------- */

/* The text of an object, borrowed; NULL where it has none, with the reason. */
static const json_t *find_text(const tdm_record_format *format, const json_t *root, char *reason,
                               size_t reason_bytes)
{
    const json_t *value = json_object_get(root, format->field);
    if (json_is_string(value))
        return value;
    snprintf(reason, reason_bytes, "%s: is %s", format->field,
             value == NULL ? "missing" : "not a string");
    return NULL;
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

static tdm_status take_text(const tdm_record_format *format, tdm_parse *parse, const json_t *root,
                            size_t *used, bool *taken, char *reason, size_t reason_bytes)
{
    const json_t *text = find_text(format, root, reason, reason_bytes);
    *taken = text != NULL && !tdm_text_is_blank(json_string_value(text), json_string_length(text));
    return *taken ? keep_text(parse, text, used) : TDM_OK;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* The fewest digits that parse to the same number; whole ones without a point, and exactly where 64
 * bits hold them. */
static void number_text(const json_t *json, char text[32])
{
    if (json_is_integer(json)) {
        snprintf(text, 32, "%lld", (long long)json_integer_value(json));
        return;
    }
    double value = json_real_value(json), back = 0;
    if (fabs(value) < 0x1p53 && value == trunc(value)) {
        snprintf(text, 32, "%.0f", value);
        return;
    }
    for (size_t digits = 15; digits <= 17; digits++) {
        size_t length = json_dumpb(json, text, 31, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        text[length] = '\0';
        if (tdm_parse_number(text, length, &back) && back == value)
            return;
    }
}

/* Appends to scratch behind *used what a value is as a cell, or an item of a list; *good is false
 * where it can be none. A line feed ends each item, so that a cell that ends with one is a list:
 * one at the end of a text, or within an item, becomes a blank. */
static tdm_status append_value(tdm_parse *parse, const json_t *value, bool item, size_t *used,
                               bool *good)
{
    char number[32];
    const char *text = "";
    size_t bytes;
    if (json_is_string(value)) {
        text = json_string_value(value);
    } else if (json_is_number(value)) {
        number_text(value, number);
        text = number;
    } else if (json_is_boolean(value)) {
        text = json_is_true(value) ? "true" : "false";
    }
    bytes = json_is_string(value) ? json_string_length(value) : strlen(text);
    *good = value == NULL || json_is_null(value) || bytes > 0 || json_is_string(value);
    *good = *good && memchr(text, 0, bytes) == NULL;
    TDM_TRY(reserve(parse, *used + bytes + 1));
    char *to = parse->scratch->bytes + TDM_TEXT_PADDING + *used;
    memcpy(to, text, bytes);
    for (size_t i = item || bytes == 0 ? 0 : bytes - 1; i < bytes; i++)
        to[i] = to[i] == '\n' ? ' ' : to[i];
    if (item)
        to[bytes] = '\n';
    *used += bytes + item;
    return TDM_OK;
}

/* Makes the cells of an object's columns; *column is one that cannot be a cell, or -1. */
static tdm_status take_cells(const tdm_record_format *format, tdm_parse *parse, const json_t *root,
                             size_t *used, int32_t *column)
{
    tdm_span *cells = parse->cells + parse->count * format->column_count;
    bool good = true;
    for (*column = 0; *column < format->column_count; (*column)++) {
        const json_t *value = json_object_get(root, format->columns[*column]);
        cells[*column].begin = (uint32_t)*used;
        if (!json_is_array(value))
            TDM_TRY(append_value(parse, value, false, used, &good));
        for (size_t i = 0; good && i < json_array_size(value); i++)
            TDM_TRY(append_value(parse, json_array_get(value, i), true, used, &good));
        cells[*column].end = (uint32_t)*used;
        if (!good)
            return TDM_OK;
    }
    *column = -1;
    return TDM_OK;
}

/* ---- lines ----------------------------------------------------------------------------------- */

#define NO_CELL "expected a text, a number, true, false or a list of these, without NUL characters"

/* Makes a record of an object. */
static tdm_status take_object(const tdm_record_format *format, tdm_parse *parse, const json_t *root,
                              tdm_span span, uint32_t number, size_t *used)
{
    char reason[JSON_ERROR_TEXT_LENGTH + 64] = "";
    int32_t column = -1;
    size_t before = *used;
    bool taken = true;
    if (format->field != NULL)
        TDM_TRY(take_text(format, parse, root, used, &taken, reason, sizeof reason));
    else
        TDM_TRY(take_cells(format, parse, root, used, &column));
    if (column >= 0) {
        *used = before;
        parse->reject(parse->context, number, span, column, NO_CELL, TDM_BAD_JUDGED);
    } else if (reason[0] != '\0') {
        parse->reject(parse->context, number, span, -1, reason, TDM_BAD_JUDGED);
    } else if (taken) {
        parse->record_spans[parse->count] = span;
        parse->record_lines[parse->count++] = number;
    }
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
    char reason[JSON_ERROR_TEXT_LENGTH + 64];
    TDM_TRY(parse_object(line, bytes, &root, reason, sizeof reason));
    if (root == NULL) {
        parse->reject(parse->context, number, span, -1, reason, TDM_BAD_JUDGED);
        return TDM_OK;
    }
    tdm_status status = take_object(format, parse, root, span, number, used);
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
