#include "text/vocabulary_file.h"

#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "data/utf8.h"

#include <string.h>

/* ---- reading --------------------------------------------------------------------------------- */

/* TDM_E_DATA for the first line that cannot be a token: NUL bytes or no UTF-8. */
static tdm_status find_bad_line(const char *text, size_t bytes, const char *name)
{
    const char *end = text + bytes;
    long long number = 1;
    for (const char *line = text; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((stop != NULL ? stop : end) - line);
        TDM_FAIL_IF(memchr(line, 0, length) != NULL, TDM_E_DATA,
                    "%s:%lld: holds a NUL byte: a vocabulary is a text of one token a line", name,
                    number);
        TDM_FAIL_IF(!tdm_utf8_valid(line, length), TDM_E_DATA,
                    "%s:%lld: is not valid UTF-8: convert the vocabulary to UTF-8", name, number);
        line += length + 1;
    }
    return tdm_fail(TDM_E_DATA, "%s: is not valid UTF-8", name);
}

static tdm_status add_line(tdm_vocabulary *vocabulary, const char *name, const char *line,
                           size_t bytes)
{
    int64_t id = vocabulary->size, taken;
    TDM_FAIL_IF(id >= TDM_MAX_VOCABULARY, TDM_E_DATA,
                "%s: has more than %lld lines: that is no vocabulary", name,
                (long long)TDM_MAX_VOCABULARY);
    TDM_TRY(tdm_vocabulary_add(vocabulary, (uint32_t)id, line, bytes, &taken));
    TDM_FAIL_IF(taken >= 0, TDM_E_DATA,
                "%s:%lld: \"%.*s\" stands in line %lld already: remove one of the two lines, or "
                "put another token there to keep the ids",
                name, (long long)id + 1, bytes < 100 ? (int)bytes : 100, line,
                (long long)taken + 1);
    return TDM_OK;
}

static size_t count_lines(const char *text, size_t bytes)
{
    size_t count = 1;
    const char *end = text + bytes;
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

tdm_status tdm_vocabulary_parse(const char *text, size_t bytes, const char *name,
                                tdm_vocabulary *out)
{
    size_t mark = tdm_byte_order_mark(text, bytes);
    if (mark > 0)
        tdm_warn("%s: begins with a byte order mark, which is left out", name);
    text += mark;
    bytes -= mark;
    if (memchr(text, 0, bytes) != NULL || !tdm_utf8_valid(text, bytes))
        return find_bad_line(text, bytes, name);
    size_t lines = count_lines(text, bytes);
    if (lines <= TDM_MAX_VOCABULARY)
        TDM_TRY(tdm_vocabulary_reserve(out, lines, bytes));
    const char *end = text + bytes;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((stop != NULL ? stop : end) - line);
        bool has_return = stop != NULL && length > 0 && line[length - 1] == '\r';
        TDM_TRY(add_line(out, name, line, length - has_return));
        line += length + 1;
    }
    return TDM_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static tdm_status check_token(const char *token, size_t bytes, int64_t id, const char *path)
{
    const char *why = NULL;
    if (memchr(token, '\n', bytes) != NULL)
        why = "a line feed";
    else if (token[bytes - 1] == '\r')
        why = "a carriage return at its end";
    else if (id == 0 && tdm_byte_order_mark(token, bytes) > 0)
        why = "a byte order mark at its front";
    TDM_FAIL_IF(why != NULL, TDM_E_ARG,
                "%s: the token of id %lld has %s, which a line of a vocabulary cannot hold: save "
                "as tokenizer.json",
                path, (long long)id, why);
    return TDM_OK;
}

tdm_status tdm_vocabulary_save(const tdm_vocabulary *vocabulary, const char *path)
{
    char *text;
    TDM_TRY(tdm_alloc(vocabulary->text_bytes + (size_t)vocabulary->size + 1, 1, &text));
    tdm_status status = TDM_OK;
    char *to = text;
    for (int64_t id = 0; id < vocabulary->size; id++) {
        size_t bytes = vocabulary->bytes[id];
        if (bytes > 0) {
            const char *token = vocabulary->text + vocabulary->begins[id];
            TDM_TRY_GOTO(check_token(token, bytes, id, path), done);
            memcpy(to, token, bytes);
            to += bytes;
        }
        *to++ = '\n';
    }
    status = tdm_file_put(path, text, (size_t)(to - text), NULL);
done:
    tdm_free(text);
    return status;
}
