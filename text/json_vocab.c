#include "text/json_vocab.h"

#include "core/memory.h"
#include "data/utf8.h"
#include "text/unicode.h"

#include <string.h>

/* A place in the text. Functions that return bool leave it anywhere when they return false. */
typedef struct cursor {
    const char *text;
    size_t bytes, at;
} cursor;

static char peek(const cursor *json)
{
    return json->at < json->bytes ? json->text[json->at] : '\0';
}

static void skip_space(cursor *json)
{
    while (peek(json) == ' ' || peek(json) == '\n' || peek(json) == '\r' || peek(json) == '\t')
        json->at++;
}

/* Skips one character, with the white space before it. */
static bool skip_char(cursor *json, char c)
{
    skip_space(json);
    if (peek(json) != c)
        return false;
    json->at++;
    return true;
}

/* ---- finding the object ---------------------------------------------------------------------- */

/* From the opening quote to behind the closing one; [*begin, *end) lies between. */
static bool skip_string(cursor *json, size_t *begin, size_t *end, bool *escaped)
{
    *escaped = false;
    if (!skip_char(json, '"'))
        return false;
    for (*begin = json->at; json->at < json->bytes; json->at++) {
        unsigned char byte = (unsigned char)json->text[json->at];
        if (byte == '"') {
            *end = json->at++;
            return true;
        }
        if (byte < 0x20)
            return false;
        if (byte == '\\') {
            *escaped = true;
            json->at++;
        }
    }
    return false;
}

/* Behind a value, of which only strings and nesting are looked at. */
static bool skip_value(cursor *json)
{
    size_t depth = 0, begin, end;
    bool escaped;
    do {
        skip_space(json);
        char c = peek(json);
        if (c == '"') {
            if (!skip_string(json, &begin, &end, &escaped))
                return false;
            continue;
        }
        if (c == '\0' || (depth == 0 && (c == ',' || c == '}' || c == ']')))
            return false;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        json->at++;
        bool is_scalar = strchr("{}[],:", c) == NULL;
        while (is_scalar && json->at < json->bytes &&
               strchr("{}[],:\" \t\r\n", json->text[json->at]) == NULL)
            json->at++;
    } while (depth > 0);
    return true;
}

/* From the opening brace of an object to the value of a key. */
static bool find_member(cursor *json, const char *key)
{
    size_t begin, end;
    bool escaped;
    if (!skip_char(json, '{'))
        return false;
    do {
        if (!skip_string(json, &begin, &end, &escaped) || !skip_char(json, ':'))
            return false;
        if (end - begin == strlen(key) && memcmp(json->text + begin, key, end - begin) == 0) {
            skip_space(json);
            return peek(json) == '{';
        }
    } while (skip_value(json) && skip_char(json, ','));
    return false;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool read_hex(const char *digits, size_t bytes, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = i < bytes ? digits[i] : '\0';
        uint32_t value;
        if (c >= '0' && c <= '9')
            value = (uint32_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            value = (uint32_t)((c | 0x20) - 'a' + 10);
        else
            return false;
        *out = *out << 4 | value;
    }
    return true;
}

/* The code point of text[*at, ...), behind "\u"; a pair of surrogates is one. */
static bool read_code_point(const char *text, size_t bytes, size_t *at, uint32_t *out)
{
    uint32_t low;
    if (!read_hex(text + *at, bytes - *at, out))
        return false;
    *at += 4;
    if (*out < 0xd800 || *out > 0xdfff)
        return *out != 0;
    if (*out > 0xdbff || bytes - *at < 6 || text[*at] != '\\' || text[*at + 1] != 'u' ||
        !read_hex(text + *at + 2, bytes - *at - 2, &low) || low < 0xdc00 || low > 0xdfff)
        return false;
    *at += 6;
    *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Undoes the escapes of a string in `out`, which has room for `bytes`. */
static bool unescape(const char *text, size_t bytes, char *out, size_t *out_bytes)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char *end = out;
    for (size_t at = 0; at < bytes;) {
        char c = text[at++];
        if (c != '\\') {
            *end++ = c;
            continue;
        }
        c = at < bytes ? text[at++] : '\0';
        const char *simple = c != '\0' ? strchr(from, c) : NULL;
        uint32_t code_point;
        if (simple != NULL)
            *end++ = to[simple - from];
        else if (c == 'u' && read_code_point(text, bytes, &at, &code_point))
            end += tdm_utf8_write(code_point, end);
        else
            return false;
    }
    *out_bytes = (size_t)(end - out);
    return true;
}

static bool read_id(cursor *json, uint32_t *id)
{
    uint64_t value = 0;
    skip_space(json);
    size_t begin = json->at;
    while (peek(json) >= '0' && peek(json) <= '9' && json->at - begin < 9)
        value = 10 * value + (uint64_t)(json->text[json->at++] - '0');
    size_t digits = json->at - begin;
    *id = (uint32_t)value;
    return digits > 0 && (digits == 1 || json->text[begin] != '0') && value < TDM_MAX_VOCABULARY;
}

typedef struct token_buffer {
    char *text;
    size_t capacity;
} token_buffer;

static tdm_status read_entry(cursor *json, tdm_vocabulary *vocabulary, token_buffer *buffer,
                             bool *taken)
{
    size_t begin, end;
    bool escaped;
    uint32_t id;
    *taken = false;
    if (!skip_string(json, &begin, &end, &escaped) || !skip_char(json, ':') || !read_id(json, &id))
        return TDM_OK;
    const char *token = json->text + begin;
    size_t bytes = end - begin;
    if (escaped) {
        TDM_TRY(tdm_grow(&buffer->text, &buffer->capacity, bytes, 1));
        if (!unescape(token, bytes, buffer->text, &bytes))
            return TDM_OK;
        token = buffer->text;
    }
    if (bytes == 0 || (id < vocabulary->size && vocabulary->bytes[id] > 0))
        return TDM_OK;
    int64_t before;
    TDM_TRY(tdm_vocabulary_add(vocabulary, id, token, bytes, &before));
    *taken = before < 0;
    return TDM_OK;
}

static tdm_status read_entries(cursor *json, tdm_vocabulary *vocabulary, bool *taken)
{
    token_buffer buffer = {0};
    tdm_status status = TDM_OK;
    bool more = true;
    *taken = skip_char(json, '{');
    while (status == TDM_OK && *taken && more) {
        status = read_entry(json, vocabulary, &buffer, taken);
        more = skip_char(json, ',');
    }
    *taken = *taken && skip_char(json, '}');
    tdm_free(buffer.text);
    return status;
}

tdm_status tdm_json_vocab_take(const char *text, size_t bytes, tdm_vocabulary *vocabulary,
                               size_t *begin, size_t *end, bool *taken)
{
    cursor json = {.text = text, .bytes = bytes};
    *taken = false;
    if (!find_member(&json, "model") || !find_member(&json, "vocab") ||
        !tdm_utf8_valid(text, bytes))
        return TDM_OK;
    *begin = json.at;
    tdm_status status = read_entries(&json, vocabulary, taken);
    *end = json.at;
    if (status != TDM_OK || !*taken)
        tdm_vocabulary_deinit(vocabulary);
    return status;
}
