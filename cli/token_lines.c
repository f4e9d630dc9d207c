#include "cli/token_lines.h"

#include "core/memory.h"

#include <string.h>

/* ---- bytes ----------------------------------------------------------------------------------- */

static tdm_status put(tdm_token_lines *lines, const char *text, size_t bytes)
{
    TDM_TRY(tdm_grow(&lines->text, &lines->capacity, lines->bytes + bytes, 1));
    memcpy(lines->text + lines->bytes, text, bytes);
    lines->bytes += bytes;
    return TDM_OK;
}

static tdm_status put_text(tdm_token_lines *lines, const char *text)
{
    return put(lines, text, strlen(text));
}

static tdm_status put_number(tdm_token_lines *lines, uint32_t number)
{
    char digits[10];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return put(lines, digits + at, sizeof digits - at);
}

/* A token is valid UTF-8. */
static tdm_status put_json_text(tdm_token_lines *lines, const char *text, size_t bytes)
{
    static const char hex[] = "0123456789abcdef";
    TDM_TRY(put(lines, "\"", 1));
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)text[i];
        char escaped[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
        if (byte < 0x20)
            TDM_TRY(put(lines, escaped, sizeof escaped));
        else if (byte == '"' || byte == '\\')
            TDM_TRY(put(lines, (const char[]){'\\', (char)byte}, 2));
        else
            TDM_TRY(put(lines, text + i, 1));
    }
    return put(lines, "\"", 1);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static tdm_status put_token(tdm_token_lines *lines, const tdm_tokenizer *tokenizer, uint32_t id,
                            bool json)
{
    size_t bytes;
    const char *token = tdm_tokenizer_token(tokenizer, id, &bytes);
    return json ? put_json_text(lines, token, bytes) : put(lines, token, bytes);
}

static tdm_status put_plain(tdm_token_lines *lines, const tdm_token_format *format,
                            const tdm_tokenizer *tokenizer, const tdm_encoding *encoding)
{
    for (int64_t i = 0; i < encoding->count; i++) {
        if (i > 0)
            TDM_TRY(put(lines, " ", 1));
        if (format->tokens)
            TDM_TRY(put_token(lines, tokenizer, encoding->ids[i], false));
        else
            TDM_TRY(put_number(lines, encoding->ids[i]));
        if (!format->offsets)
            continue;
        tdm_text_range range =
            format->bytes ? encoding->byte_offsets[i] : encoding->char_offsets[i];
        TDM_TRY(put(lines, ":", 1));
        TDM_TRY(put_number(lines, range.begin));
        TDM_TRY(put(lines, ":", 1));
        TDM_TRY(put_number(lines, range.end));
    }
    return TDM_OK;
}

typedef enum list_kind {
    LIST_IDS,
    LIST_TOKENS,
    LIST_OFFSETS,
    LIST_BYTE_OFFSETS,
    LIST_TYPES,
    LIST_ATTENTION,
    LIST_SPECIAL,
    LIST_WORDS,
    LIST_SEQUENCES,
} list_kind;

static tdm_status put_range(tdm_token_lines *lines, tdm_text_range range)
{
    TDM_TRY(put(lines, "[", 1));
    TDM_TRY(put_number(lines, range.begin));
    TDM_TRY(put(lines, ",", 1));
    TDM_TRY(put_number(lines, range.end));
    return put(lines, "]", 1);
}

static tdm_status put_or_null(tdm_token_lines *lines, int32_t number)
{
    return number < 0 ? put_text(lines, "null") : put_number(lines, (uint32_t)number);
}

static tdm_status put_item(tdm_token_lines *lines, const tdm_tokenizer *tokenizer,
                           const tdm_encoding *encoding, list_kind kind, int64_t i)
{
    switch (kind) {
    case LIST_IDS:
        return put_number(lines, encoding->ids[i]);
    case LIST_TOKENS:
        return put_token(lines, tokenizer, encoding->ids[i], true);
    case LIST_OFFSETS:
        return put_range(lines, encoding->char_offsets[i]);
    case LIST_BYTE_OFFSETS:
        return put_range(lines, encoding->byte_offsets[i]);
    case LIST_TYPES:
        return put_number(lines, encoding->type_ids[i]);
    case LIST_ATTENTION:
        return put_number(lines, encoding->attention[i]);
    case LIST_SPECIAL:
        return put_number(lines, encoding->special[i]);
    case LIST_WORDS:
        return put_or_null(lines, encoding->words[i]);
    case LIST_SEQUENCES:
        return put_or_null(lines, encoding->sequences[i]);
    }
    return TDM_OK;
}

/* An object without its closing brace. */
static tdm_status put_object(tdm_token_lines *lines, const tdm_tokenizer *tokenizer,
                             const tdm_encoding *encoding)
{
    static const char *const names[] = {
        "{\"ids\":[",
        ",\"tokens\":[",
        ",\"offsets\":[",
        ",\"byte_offsets\":[",
        ",\"type_ids\":[",
        ",\"attention_mask\":[",
        ",\"special_tokens_mask\":[",
        ",\"word_ids\":[",
        ",\"sequence_ids\":[",
    };
    for (int kind = LIST_IDS; kind <= LIST_SEQUENCES; kind++) {
        TDM_TRY(put_text(lines, names[kind]));
        for (int64_t i = 0; i < encoding->count; i++) {
            if (i > 0)
                TDM_TRY(put(lines, ",", 1));
            TDM_TRY(put_item(lines, tokenizer, encoding, (list_kind)kind, i));
        }
        TDM_TRY(put(lines, "]", 1));
    }
    return TDM_OK;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* `part` of an input: 0 the encoding itself, from 1 what overflowed. */
static tdm_status put_part(tdm_token_lines *lines, const tdm_token_format *format,
                           const tdm_tokenizer *tokenizer, const tdm_encoding *encoding,
                           int64_t part)
{
    if (!format->json) {
        if (part > 0)
            TDM_TRY(put(lines, "\t", 1));
        return put_plain(lines, format, tokenizer, encoding);
    }
    if (part > 0)
        TDM_TRY(put_text(lines, part == 1 ? ",\"overflow\":[" : ","));
    TDM_TRY(put_object(lines, tokenizer, encoding));
    return part > 0 ? put(lines, "}", 1) : TDM_OK;
}

tdm_status tdm_token_lines_write(tdm_token_lines *lines, const tdm_token_format *format,
                                 const tdm_tokenizer *tokenizer, const tdm_encodings *encodings,
                                 tdm_output *output)
{
    int64_t count = tdm_encodings_count(encodings);
    lines->bytes = 0;
    for (int64_t i = 0, part = 0; i < count; i++) {
        tdm_encoding encoding = tdm_encodings_get(encodings, i);
        TDM_TRY(put_part(lines, format, tokenizer, &encoding, part++));
        if (i + 1 < count && tdm_encodings_get(encodings, i + 1).input == encoding.input)
            continue;
        if (format->json)
            TDM_TRY(put_text(lines, part > 1 ? "]}" : "}"));
        TDM_TRY(put(lines, "\n", 1));
        part = 0;
    }
    return lines->bytes > 0 ? tdm_output_write(output, lines->text, lines->bytes) : TDM_OK;
}

void tdm_token_lines_deinit(tdm_token_lines *lines)
{
    tdm_free(lines->text);
    *lines = (tdm_token_lines){0};
}
