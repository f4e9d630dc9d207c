#include "tests/support/text_spec.h"

#include <stdlib.h>
#include <string.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utf8.h>

/* ---- arrays ---------------------------------------------------------------------------------- */

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL)
        abort();
    return memory;
}

/* Gives `text` the `count` characters `chars` instead of its own. */
static void replace(tdm_spec_text *text, tdm_spec_char *chars, size_t count)
{
    free(text->chars);
    text->chars = chars;
    text->count = count;
}

static tdm_spec_char char_of(uint32_t code_point, const tdm_spec_char *source)
{
    return (tdm_spec_char){code_point, source->from, source->to, 0};
}

void tdm_spec_text_free(tdm_spec_text *text)
{
    free(text->chars);
    free(text->words);
    *text = (tdm_spec_text){0};
}

/* ---- UTF-8 and UTF-16 ------------------------------------------------------------------------ */

static tdm_spec_text read_text(const char *text, size_t bytes)
{
    tdm_spec_text out = {.chars = allocate(bytes, sizeof *out.chars)};
    for (size_t at = 0; at < bytes; out.count++) {
        size_t end = at;
        int32_t code_point;
        U8_NEXT((const uint8_t *)text, end, bytes, code_point);
        if (code_point < 0) {
            code_point = 0xfffd;
            end = at + 1;
        }
        out.chars[out.count] =
            (tdm_spec_char){(uint32_t)code_point, (uint32_t)at, (uint32_t)end, 0};
        at = end;
    }
    return out;
}

static int32_t write_utf8(uint32_t code_point, char out[4])
{
    int32_t length = 0;
    U8_APPEND_UNSAFE((uint8_t *)out, length, code_point);
    return length;
}

typedef int32_t convert(UChar *to, int32_t capacity, const UChar *from, int32_t length,
                        const void *context);

/* Puts the characters [begin, end) through a function of ICU on UTF-16; returns the code points. */
static uint32_t *through_utf16(const tdm_spec_char *chars, size_t begin, size_t end,
                               convert *function, const void *context, size_t *count)
{
    int32_t capacity = (int32_t)(32 * (end - begin)), units = 0, length;
    UChar *from = allocate((size_t)capacity, sizeof *from);
    UChar *to = allocate((size_t)capacity, sizeof *to);
    uint32_t *out = allocate((size_t)capacity, sizeof *out);
    UErrorCode error = U_ZERO_ERROR;
    for (size_t i = begin; i < end; i++)
        U16_APPEND_UNSAFE(from, units, (UChar32)chars[i].code_point);
    units = function(to, capacity, from, units, context);
    u_strToUTF32((UChar32 *)out, capacity, &length, to, units, &error);
    if (U_FAILURE(error))
        abort();
    free(from);
    free(to);
    *count = (size_t)length;
    return out;
}

static int32_t normalize_utf16(UChar *to, int32_t capacity, const UChar *from, int32_t length,
                               const void *context)
{
    UErrorCode error = U_ZERO_ERROR;
    int32_t units = unorm2_normalize(context, from, length, to, capacity, &error);
    if (U_FAILURE(error))
        abort();
    return units;
}

static int32_t lowercase_utf16(UChar *to, int32_t capacity, const UChar *from, int32_t length,
                               const void *context)
{
    (void)context;
    UErrorCode error = U_ZERO_ERROR;
    int32_t units = u_strToLower(to, capacity, from, length, "", &error);
    if (U_FAILURE(error))
        abort();
    return units;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* NFC or NFKC between boundaries; what changes comes of the whole of it. */
static void compose(tdm_spec_text *text, tdm_unicode_form form)
{
    UErrorCode error = U_ZERO_ERROR;
    const UNormalizer2 *normalizer =
        form == TDM_FORM_NFC ? unorm2_getNFCInstance(&error) : unorm2_getNFKCInstance(&error);
    tdm_spec_char *out = allocate(18 * text->count, sizeof *out);
    size_t made = 0;
    for (size_t begin = 0, end; begin < text->count; begin = end) {
        end = begin + 1;
        while (end < text->count &&
               !unorm2_hasBoundaryBefore(normalizer, (UChar32)text->chars[end].code_point) &&
               !unorm2_hasBoundaryAfter(normalizer, (UChar32)text->chars[end - 1].code_point))
            end++;
        size_t count;
        uint32_t *composed =
            through_utf16(text->chars, begin, end, normalize_utf16, normalizer, &count);
        bool same = count == end - begin;
        for (size_t i = 0; i < count && same; i++)
            same = composed[i] == text->chars[begin + i].code_point;
        for (size_t i = 0; i < count; i++, made++) {
            out[made] = char_of(composed[i], &text->chars[same ? begin + i : begin]);
            out[made].to = text->chars[same ? begin + i : end - 1].to;
        }
        free(composed);
    }
    replace(text, out, made);
}

static void delete_controls(tdm_spec_text *text, tdm_unicode_mode mode)
{
    tdm_spec_char *out = allocate(text->count, sizeof *out);
    size_t made = 0;
    for (size_t i = 0; i < text->count; i++)
        if (!tdm_unicode_is_control(mode, text->chars[i].code_point))
            out[made++] = text->chars[i];
    replace(text, out, made);
}

static void blank_spaces(tdm_spec_text *text, tdm_unicode_mode mode)
{
    for (size_t i = 0; i < text->count; i++)
        if (tdm_unicode_is_space(mode, text->chars[i].code_point))
            text->chars[i].code_point = ' ';
}

static void space_chinese(tdm_spec_text *text, tdm_unicode_mode mode)
{
    tdm_spec_char *out = allocate(3 * text->count, sizeof *out);
    size_t made = 0;
    for (size_t i = 0; i < text->count; i++) {
        bool chinese = tdm_unicode_is_chinese(mode, text->chars[i].code_point);
        if (chinese)
            out[made++] = char_of(' ', &text->chars[i]);
        out[made++] = text->chars[i];
        if (chinese)
            out[made++] = char_of(' ', &text->chars[i]);
    }
    replace(text, out, made);
}

static void decompose(tdm_spec_text *text, tdm_unicode_mode mode)
{
    tdm_spec_char *out = allocate(TDM_MAX_DECOMPOSITION * text->count, sizeof *out);
    size_t made = 0;
    for (size_t i = 0; i < text->count; i++) {
        uint32_t parts[TDM_MAX_DECOMPOSITION];
        int count = tdm_unicode_decompose(mode, text->chars[i].code_point, parts);
        for (int j = 0; j < count; j++)
            out[made++] = (tdm_spec_char){parts[j], 0, 0, j > 0};
    }
    for (size_t i = 0; i < made; i++) {
        for (size_t j = i; j > 0; j--) {
            uint8_t before = tdm_unicode_combining_class(mode, out[j - 1].code_point);
            uint8_t behind = tdm_unicode_combining_class(mode, out[j].code_point);
            if (behind == 0 || before <= behind)
                break;
            tdm_spec_char moved = out[j];
            out[j] = out[j - 1];
            out[j - 1] = moved;
        }
    }
    for (size_t i = 0, source = 0; i < made; i++)
        out[i] = char_of(out[i].code_point, out[i].added ? &out[i - 1] : &text->chars[source++]);
    replace(text, out, made);
}

static void delete_marks(tdm_spec_text *text, tdm_unicode_mode mode)
{
    tdm_spec_char *out = allocate(text->count, sizeof *out);
    size_t made = 0;
    for (size_t i = 0; i < text->count; i++)
        if (!tdm_unicode_is_mark(mode, text->chars[i].code_point))
            out[made++] = text->chars[i];
    replace(text, out, made);
}

static void lowercase_chars(tdm_spec_text *text, tdm_unicode_mode mode)
{
    tdm_spec_char *out = allocate(TDM_MAX_LOWERCASE * text->count, sizeof *out);
    size_t made = 0;
    for (size_t i = 0; i < text->count; i++) {
        uint32_t lower[TDM_MAX_LOWERCASE];
        int count = tdm_unicode_lowercase(mode, text->chars[i].code_point, lower);
        for (int j = 0; j < count; j++)
            out[made++] = char_of(lower[j], &text->chars[i]);
    }
    replace(text, out, made);
}

/* As tokenization.py: word after word between white space, each lowercased with its context. */
static void lowercase_words(tdm_spec_text *text)
{
    tdm_spec_char *out = allocate(TDM_MAX_LOWERCASE * text->count, sizeof *out);
    size_t made = 0;
    for (size_t begin = 0, end; begin < text->count; begin = end) {
        end = begin;
        while (end < text->count &&
               !tdm_unicode_is_space(TDM_UNICODE_GOOGLE, text->chars[end].code_point))
            end++;
        if (end == begin) {
            out[made++] = text->chars[end++];
            continue;
        }
        size_t count, next = 0;
        uint32_t *lower = through_utf16(text->chars, begin, end, lowercase_utf16, NULL, &count);
        for (size_t i = begin; i < end; i++) {
            out[made++] = char_of(lower[next++], &text->chars[i]);
            if (text->chars[i].code_point == 0x130)
                out[made++] = char_of(lower[next++], &text->chars[i]);
        }
        if (next != count)
            abort();
        free(lower);
    }
    replace(text, out, made);
}

static void split_words(tdm_spec_text *text, tdm_unicode_mode mode)
{
    text->words = allocate(text->count, sizeof *text->words);
    bool inside = false;
    for (uint32_t i = 0; i < text->count; i++) {
        bool space = tdm_unicode_is_space(mode, text->chars[i].code_point);
        bool alone = tdm_unicode_is_punctuation(mode, text->chars[i].code_point);
        if (!space) {
            if (alone || !inside)
                text->words[text->word_count++] = (tdm_span){i, i};
            text->words[text->word_count - 1].end = i + 1;
        }
        inside = !space && !alone;
    }
}

tdm_spec_text tdm_spec_normalize(const tdm_tokenizer_settings *settings, const char *text,
                                 size_t bytes)
{
    tdm_unicode_mode mode = settings->unicode;
    tdm_spec_text out = read_text(text, bytes);
    bool strip =
        settings->strip_accents == 1 || (settings->strip_accents == -1 && settings->lowercase);
    if (settings->form != TDM_FORM_NONE)
        compose(&out, settings->form);
    if (settings->clean_text) {
        delete_controls(&out, mode);
        blank_spaces(&out, mode);
    }
    if (settings->handle_chinese_chars)
        space_chinese(&out, mode);
    if (settings->lowercase && mode == TDM_UNICODE_GOOGLE)
        lowercase_words(&out);
    if (strip) {
        decompose(&out, mode);
        delete_marks(&out, mode);
    }
    if (settings->lowercase && mode != TDM_UNICODE_GOOGLE)
        lowercase_chars(&out, mode);
    split_words(&out, mode);
    return out;
}

tdm_tokenizer_settings tdm_spec_settings(const uint8_t bytes[TDM_SPEC_SETTINGS_BYTES])
{
    return (tdm_tokenizer_settings){.unicode = (tdm_unicode_mode)(bytes[0] % 3),
                                    .form = (tdm_unicode_form)(bytes[0] / 3 % 3),
                                    .strip_accents = bytes[0] / 9 % 3 - 1,
                                    .clean_text = (bytes[1] & 1) != 0,
                                    .handle_chinese_chars = (bytes[1] & 2) != 0,
                                    .lowercase = (bytes[1] & 4) != 0};
}

/* ---- comparing ------------------------------------------------------------------------------- */

const char *tdm_spec_difference(const tdm_spec_text *text, const tdm_normalized *normalized)
{
    size_t at = 0, word = 0;
    for (uint32_t i = 0; i < text->count; i++) {
        char bytes[4];
        int32_t length = write_utf8(text->chars[i].code_point, bytes);
        if (at + (size_t)length > normalized->bytes)
            return "the text is too short";
        if (memcmp(normalized->text + at, bytes, (size_t)length) != 0)
            return "another text";
        for (int32_t j = 0; j < length; j++)
            if (normalized->from[at + (size_t)j] != text->chars[i].from ||
                normalized->to[at + (size_t)j] != text->chars[i].to)
                return "another place in the original";
        if (word < text->word_count && text->words[word].begin == i &&
            (word >= (size_t)normalized->word_count || normalized->words[word].begin != at))
            return "a word begins elsewhere";
        at += (size_t)length;
        if (word < text->word_count && text->words[word].end == i + 1 &&
            normalized->words[word++].end != at)
            return "a word ends elsewhere";
    }
    if (at != normalized->bytes)
        return "the text is too long";
    return word == (size_t)normalized->word_count ? NULL : "too many words";
}

/* ---- WordPiece ------------------------------------------------------------------------------- */

/* The id of "##" (behind the beginning) and chars[begin, end), or -1. */
static int64_t find_piece(const tdm_spec_char *chars, size_t begin, size_t end, bool continues,
                          const tdm_vocabulary *vocabulary)
{
    char *piece = allocate(4 * (end - begin) + TDM_CONTINUATION_BYTES, 1);
    size_t bytes = 0;
    if (continues) {
        memcpy(piece, TDM_CONTINUATION, TDM_CONTINUATION_BYTES);
        bytes = TDM_CONTINUATION_BYTES;
    }
    for (size_t i = begin; i < end; i++)
        bytes += (size_t)write_utf8(chars[i].code_point, piece + bytes);
    int64_t id = tdm_vocabulary_find(vocabulary, piece, bytes);
    free(piece);
    return id;
}

static size_t tokenize_word(const tdm_spec_text *text, size_t word,
                            const tdm_vocabulary *vocabulary, uint32_t unknown, int max_word_chars,
                            tdm_spec_token *tokens)
{
    const tdm_spec_char *chars = text->chars;
    size_t begin = text->words[word].begin, end = text->words[word].end;
    size_t count = 0, start = begin;
    while (start < end && end - begin <= (size_t)max_word_chars) {
        size_t stop = end;
        int64_t id = -1;
        while (stop > start && (id = find_piece(chars, start, stop, start > begin, vocabulary)) < 0)
            stop--;
        if (stop == start)
            break;
        tokens[count++] =
            (tdm_spec_token){(uint32_t)id, (uint32_t)word, chars[start].from, chars[stop - 1].to};
        start = stop;
    }
    if (start == end)
        return count;
    tokens[0] = (tdm_spec_token){unknown, (uint32_t)word, chars[begin].from, chars[end - 1].to};
    return 1;
}

size_t tdm_spec_tokenize(const tdm_spec_text *text, const tdm_vocabulary *vocabulary,
                         uint32_t unknown, int max_word_chars, tdm_spec_token **tokens)
{
    *tokens = allocate(text->count, sizeof **tokens);
    size_t count = 0;
    for (size_t i = 0; i < text->word_count; i++)
        count += tokenize_word(text, i, vocabulary, unknown, max_word_chars, *tokens + count);
    return count;
}
