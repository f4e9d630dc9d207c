#include "text/normalize.h"

#include "core/memory.h"

#include <unicode/uchar.h>

#define CAPITAL_SIGMA 0x3a3
#define SMALL_SIGMA   0x3c3
#define FINAL_SIGMA   0x3c2

typedef struct pass {
    const tdm_tokenizer_settings *settings;
    bool strip_accents;
    tdm_normalized *out;
    tdm_characters *now, *next; /* of out->work: what a step reads, and what it makes */
} pass;

static void step_done(pass *p)
{
    tdm_characters *made = p->next;
    p->next = p->now;
    p->now = made;
}

/* ---- steps on code points -------------------------------------------------------------------- */

static tdm_status read_characters(pass *p, const char *text, size_t begin, size_t end)
{
    p->now->count = 0;
    for (size_t at = begin; at < end;) {
        uint32_t code_point;
        bool valid;
        size_t length = (size_t)tdm_utf8_read(text, end, at, &code_point, &valid);
        TDM_TRY(tdm_characters_push(p->now, code_point, (uint32_t)at, (uint32_t)(at + length)));
        at += length;
    }
    return TDM_OK;
}

static void clean(pass *p)
{
    tdm_unicode_mode mode = p->settings->unicode;
    size_t count = 0;
    for (size_t i = 0; i < p->now->count; i++) {
        tdm_character character = p->now->items[i];
        if (tdm_unicode_is_control(mode, character.code_point))
            continue;
        if (tdm_unicode_is_space(mode, character.code_point))
            character.code_point = ' ';
        p->now->items[count++] = character;
    }
    p->now->count = count;
}

static tdm_status set_chinese_apart(pass *p)
{
    p->next->count = 0;
    for (size_t i = 0; i < p->now->count; i++) {
        tdm_character character = p->now->items[i];
        bool apart = tdm_unicode_is_chinese(p->settings->unicode, character.code_point);
        if (apart)
            TDM_TRY(tdm_characters_push(p->next, ' ', character.from, character.to));
        TDM_TRY(tdm_characters_push(p->next, character.code_point, character.from, character.to));
        if (apart)
            TDM_TRY(tdm_characters_push(p->next, ' ', character.from, character.to));
    }
    step_done(p);
    return TDM_OK;
}

static tdm_status strip_accents(pass *p)
{
    TDM_TRY(tdm_characters_decompose(p->settings->unicode, p->now, p->next));
    step_done(p);
    size_t count = 0;
    for (size_t i = 0; i < p->now->count; i++)
        if (!tdm_unicode_is_mark(p->settings->unicode, p->now->items[i].code_point))
            p->now->items[count++] = p->now->items[i];
    p->now->count = count;
    return TDM_OK;
}

static bool is_ignored_by_case(const tdm_character *character)
{
    return u_hasBinaryProperty((UChar32)character->code_point, UCHAR_CASE_IGNORABLE);
}

static bool is_cased(const tdm_character *character)
{
    return u_hasBinaryProperty((UChar32)character->code_point, UCHAR_CASED);
}

/* The condition Final_Sigma (Unicode, table 3-17): behind a cased letter and not before one. White
 * space is neither cased nor ignored, so that words end it. */
static bool is_final_sigma(const tdm_characters *characters, size_t at)
{
    const tdm_character *items = characters->items;
    size_t before = at, behind = at + 1;
    while (before > 0 && is_ignored_by_case(&items[before - 1]))
        before--;
    while (behind < characters->count && is_ignored_by_case(&items[behind]))
        behind++;
    return before > 0 && is_cased(&items[before - 1]) &&
           !(behind < characters->count && is_cased(&items[behind]));
}

static tdm_status lowercase(pass *p)
{
    tdm_unicode_mode mode = p->settings->unicode;
    p->next->count = 0;
    for (size_t i = 0; i < p->now->count; i++) {
        uint32_t lower[TDM_MAX_LOWERCASE];
        tdm_character character = p->now->items[i];
        int count = tdm_unicode_lowercase(mode, character.code_point, lower);
        if (mode == TDM_UNICODE_GOOGLE && character.code_point == CAPITAL_SIGMA)
            lower[0] = is_final_sigma(p->now, i) ? FINAL_SIGMA : SMALL_SIGMA;
        for (int j = 0; j < count; j++)
            TDM_TRY(tdm_characters_push(p->next, lower[j], character.from, character.to));
    }
    step_done(p);
    return TDM_OK;
}

static tdm_status run_steps(pass *p)
{
    const tdm_tokenizer_settings *settings = p->settings;
    bool lowercase_first = settings->unicode == TDM_UNICODE_GOOGLE;
    if (settings->form != TDM_FORM_NONE) {
        TDM_TRY(tdm_characters_compose(settings->form, p->now, p->next));
        step_done(p);
    }
    if (settings->clean_text)
        clean(p);
    if (settings->handle_chinese_chars)
        TDM_TRY(set_chinese_apart(p));
    if (settings->lowercase && lowercase_first)
        TDM_TRY(lowercase(p));
    if (p->strip_accents)
        TDM_TRY(strip_accents(p));
    if (settings->lowercase && !lowercase_first)
        TDM_TRY(lowercase(p));
    return TDM_OK;
}

/* ---- text and words -------------------------------------------------------------------------- */

static tdm_status reserve(tdm_normalized *out, size_t bytes, size_t words)
{
    size_t needed = out->bytes + bytes;
    TDM_FAIL_IF(needed > UINT32_MAX, TDM_E_ARG,
                "the text is too long: normalised it has 4 GiB or more; cut it at white space");
    TDM_TRY(tdm_grow(&out->text, &out->capacity, needed, sizeof *out->text));
    TDM_TRY(tdm_grow(&out->from, &out->from_capacity, needed, sizeof *out->from));
    TDM_TRY(tdm_grow(&out->to, &out->to_capacity, needed, sizeof *out->to));
    return tdm_grow(&out->words, &out->words_capacity, (size_t)out->word_count + words,
                    sizeof *out->words);
}

static void put_byte(tdm_normalized *out, char byte, size_t from, size_t to)
{
    out->text[out->bytes] = byte;
    out->from[out->bytes] = (uint32_t)from;
    out->to[out->bytes++] = (uint32_t)to;
}

/* Ends the word that goes from *begin to `end`, if there is one; the next begins at `next`. */
static void end_word(tdm_normalized *out, size_t *begin, size_t end, size_t next)
{
    if (end > *begin)
        out->words[out->word_count++] = (tdm_span){(uint32_t)*begin, (uint32_t)end};
    *begin = next;
}

static tdm_status put_characters(pass *p)
{
    tdm_normalized *out = p->out;
    tdm_unicode_mode mode = p->settings->unicode;
    TDM_TRY(reserve(out, 4 * p->now->count, p->now->count));
    size_t begin = out->bytes;
    for (size_t i = 0; i < p->now->count; i++) {
        const tdm_character *character = &p->now->items[i];
        char bytes[4];
        int length = tdm_utf8_write(character->code_point, bytes);
        size_t at = out->bytes;
        for (int j = 0; j < length; j++)
            put_byte(out, bytes[j], character->from, character->to);
        if (tdm_unicode_is_space(mode, character->code_point)) {
            end_word(out, &begin, at, out->bytes);
        } else if (tdm_unicode_is_punctuation(mode, character->code_point)) {
            end_word(out, &begin, at, at);
            end_word(out, &begin, out->bytes, out->bytes);
        }
    }
    end_word(out, &begin, out->bytes, out->bytes);
    return TDM_OK;
}

static bool is_plain_ascii(const char *text, size_t begin, size_t end)
{
    for (size_t at = begin; at < end; at++)
        if (text[at] < 0x21 || text[at] > 0x7e)
            return false;
    return true;
}

/* What the steps come to where there is nothing but visible ASCII. */
static tdm_status put_plain_ascii(pass *p, const char *text, size_t text_begin, size_t text_end)
{
    tdm_normalized *out = p->out;
    tdm_unicode_mode mode = p->settings->unicode;
    TDM_TRY(reserve(out, text_end - text_begin, text_end - text_begin));
    size_t begin = out->bytes;
    for (size_t at = text_begin; at < text_end; at++) {
        char byte = text[at];
        if (p->settings->lowercase && byte >= 'A' && byte <= 'Z')
            byte = (char)(byte - 'A' + 'a');
        size_t place = out->bytes;
        put_byte(out, byte, at, at + 1);
        if (tdm_unicode_is_punctuation(mode, (unsigned char)byte)) {
            end_word(out, &begin, place, place);
            end_word(out, &begin, out->bytes, out->bytes);
        }
    }
    end_word(out, &begin, out->bytes, out->bytes);
    return TDM_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool is_ascii_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

tdm_status tdm_normalize(const tdm_tokenizer_settings *settings, const char *text, size_t bytes,
                         tdm_normalized *out)
{
    TDM_FAIL_IF(bytes > INT32_MAX, TDM_E_ARG,
                "the text has %zu bytes; at most %d can be normalised at once", bytes, INT32_MAX);
    pass p = {.settings = settings, .out = out, .now = &out->work[0], .next = &out->work[1]};
    p.strip_accents =
        settings->strip_accents < 0 ? settings->lowercase : settings->strip_accents != 0;
    out->bytes = 0;
    out->word_count = 0;
    for (size_t at = 0, end; at < bytes; at = end) {
        for (end = at; end < bytes && is_ascii_space(text[end]); end++) {
            TDM_TRY(reserve(out, 1, 0));
            put_byte(out, settings->clean_text ? ' ' : text[end], end, end + 1);
        }
        size_t begin = end;
        while (end < bytes && !is_ascii_space(text[end]))
            end++;
        if (is_plain_ascii(text, begin, end)) {
            TDM_TRY(put_plain_ascii(&p, text, begin, end));
        } else {
            TDM_TRY(read_characters(&p, text, begin, end));
            TDM_TRY(run_steps(&p));
            TDM_TRY(put_characters(&p));
        }
    }
    return TDM_OK;
}

void tdm_normalized_deinit(tdm_normalized *normalized)
{
    tdm_free(normalized->text);
    tdm_free(normalized->from);
    tdm_free(normalized->to);
    tdm_free(normalized->words);
    tdm_characters_deinit(&normalized->work[0]);
    tdm_characters_deinit(&normalized->work[1]);
    *normalized = (tdm_normalized){0};
}
