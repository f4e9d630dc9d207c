#include "text/word_splitter.h"

#include "core/memory.h"
#include "text/ascii_scan.h"
#include "text/normalize.h"

#include <stdatomic.h>
#include <string.h>

/* Bytes of text between two looks at the room, and words that are enough for one call. */
#define STEP_BYTES   4096
#define ENOUGH_WORDS 768

struct tdm_word_splitter {
    tdm_normalizer *normalizer;
    const char *text;
    size_t bytes;
    size_t at;           /* of what is left */
    size_t hard_at;      /* as in scan, in the whole text: words are given out up to there */
    tdm_ascii_scan scan; /* the words of this call */
    size_t out_capacity, begins_capacity, ends_capacity, lines_capacity;
    tdm_normalized literal;
};

tdm_status tdm_word_splitter_create(tdm_normalizer *normalizer, tdm_word_splitter **out)
{
    TDM_TRY(tdm_alloc(1, sizeof **out, out));
    (*out)->normalizer = normalizer;
    return TDM_OK;
}

void tdm_word_splitter_destroy(tdm_word_splitter *splitter)
{
    if (splitter == NULL)
        return;
    tdm_free(splitter->scan.out);
    tdm_free(splitter->scan.begins);
    tdm_free(splitter->scan.ends);
    tdm_free(splitter->scan.lines);
    tdm_normalized_deinit(&splitter->literal);
    tdm_free(splitter);
}

void tdm_word_splitter_start(tdm_word_splitter *splitter, const char *text, size_t bytes)
{
    splitter->text = text;
    splitter->bytes = bytes;
    splitter->at = 0;
}

/* Room for `bytes` more bytes of text as words. */
static tdm_status make_room(tdm_word_splitter *splitter, size_t bytes)
{
    tdm_ascii_scan *scan = &splitter->scan;
    size_t out = scan->out_at + bytes + TDM_ASCII_SCAN_ROOM + TDM_WORD_PADDING;
    size_t words = scan->begin_count + bytes + TDM_ASCII_SCAN_ROOM;
    size_t lines = scan->line_count + bytes + TDM_ASCII_SCAN_ROOM;
    if (out <= splitter->out_capacity && words <= splitter->begins_capacity &&
        words <= splitter->ends_capacity && lines <= splitter->lines_capacity)
        return TDM_OK;
    TDM_FAIL_IF(out > INT32_MAX, TDM_E_DATA, "more than 2 GiB of text without white space");
    TDM_TRY(tdm_grow(&scan->out, &splitter->out_capacity, out, 1));
    TDM_TRY(tdm_grow(&scan->begins, &splitter->begins_capacity, words, sizeof *scan->begins));
    TDM_TRY(tdm_grow(&scan->ends, &splitter->ends_capacity, words, sizeof *scan->ends));
    return tdm_grow(&scan->lines, &splitter->lines_capacity, lines, sizeof *scan->lines);
}

/* ---- characters that are no plain ASCII ------------------------------------------------------ */

static void end_word(tdm_ascii_scan *scan)
{
    if (scan->open != TDM_OPEN_NONE)
        scan->ends[scan->end_count++] = scan->out_at;
    scan->open = TDM_OPEN_NONE;
}

/* Whatever comes behind `at` no longer changes the words before it. */
static void set_hard(tdm_word_splitter *splitter, size_t at)
{
    splitter->hard_at = at;
    splitter->scan.hard_words = splitter->scan.begin_count;
}

static inline int read_char(const char *text, size_t bytes, size_t at, uint32_t *code_point)
{
    const unsigned char *from = (const unsigned char *)text + at;
    if (*from < 0x80) {
        *code_point = *from;
        return 1;
    }
    if (bytes - at >= 3 && from[0] > 0xe0 && from[0] < 0xed && (from[1] & 0xc0) == 0x80 &&
        (from[2] & 0xc0) == 0x80) {
        *code_point = (from[0] & 0xfu) << 12 | (from[1] & 0x3fu) << 6 | (from[2] & 0x3fu);
        return 3;
    }
    if (bytes - at >= 2 && from[0] >= 0xc2 && from[0] < 0xe0 && (from[1] & 0xc0) == 0x80) {
        *code_point = (from[0] & 0x1fu) << 6 | (from[1] & 0x3fu);
        return 2;
    }
    bool valid;
    return tdm_utf8_read(text, bytes, at, code_point, &valid);
}

static inline tdm_status find_rule(tdm_normalizer *normalizer, uint32_t code_point,
                                   const tdm_char_rule **rule)
{
    const tdm_char_rule *page =
        atomic_load_explicit(&normalizer->pages[code_point / TDM_RULE_PAGE], memory_order_acquire);
    if (page == NULL)
        TDM_TRY(tdm_normalizer_page(normalizer, code_point, &page));
    *rule = &page[code_point % TDM_RULE_PAGE];
    return TDM_OK;
}

/* The end of what a character in need of context, at `at`, may have to do with. */
static tdm_status find_hard_end(tdm_word_splitter *splitter, size_t at, size_t *end)
{
    while (at < splitter->bytes) {
        uint32_t code_point;
        const tdm_char_rule *rule;
        int length = read_char(splitter->text, splitter->bytes, at, &code_point);
        TDM_TRY(find_rule(splitter->normalizer, code_point, &rule));
        if (rule->kind == TDM_CHAR_SPACE || rule->kind == TDM_CHAR_IDEOGRAPH)
            break;
        at += (size_t)length;
    }
    *end = at;
    return TDM_OK;
}

/* Takes the words behind the last hard place back and lets tdm_normalize() find them. */
static tdm_status split_literally(tdm_word_splitter *splitter)
{
    tdm_ascii_scan *scan = &splitter->scan;
    size_t from = splitter->hard_at, end;
    TDM_TRY(find_hard_end(splitter, splitter->at, &end));
    scan->begin_count = scan->end_count = scan->hard_words;
    scan->out_at = scan->hard_words == 0 ? 0 : scan->ends[scan->hard_words - 1];
    scan->open = TDM_OPEN_NONE;
    tdm_normalized *literal = &splitter->literal;
    TDM_FAIL_IF(end - from > INT32_MAX, TDM_E_DATA, "more than 2 GiB of text without white space");
    TDM_TRY(
        tdm_normalize(&splitter->normalizer->settings, splitter->text + from, end - from, literal));
    TDM_TRY(make_room(splitter, literal->bytes + (size_t)literal->word_count));
    uint32_t base = scan->out_at;
    if (literal->bytes > 0)
        memcpy(scan->out + base, literal->text, literal->bytes);
    for (int64_t i = 0; i < literal->word_count; i++) {
        scan->begins[scan->begin_count++] = base + literal->words[i].begin;
        scan->ends[scan->end_count++] = base + literal->words[i].end;
    }
    scan->out_at += (uint32_t)literal->bytes;
    splitter->at = end;
    set_hard(splitter, end);
    return TDM_OK;
}

static void put_char(tdm_ascii_scan *scan, const tdm_char_rule *rule)
{
    memcpy(scan->out + scan->out_at, rule->text, sizeof rule->text);
    scan->out_at += rule->bytes;
}

static bool eight_are_ascii(const tdm_word_splitter *splitter)
{
    uint64_t eight;
    if (splitter->bytes - splitter->at < sizeof eight)
        return false;
    memcpy(&eight, splitter->text + splitter->at, sizeof eight);
    return (eight & 0x8080808080808080u) == 0;
}

/* Characters one by one, at least one, until plain ASCII comes or there are enough. */
static tdm_status split_chars(tdm_word_splitter *splitter)
{
    tdm_ascii_scan *scan = &splitter->scan;
    size_t stop =
        splitter->bytes - splitter->at < STEP_BYTES ? splitter->bytes : splitter->at + STEP_BYTES;
    TDM_TRY(make_room(splitter, STEP_BYTES * TDM_CHAR_RULE_BYTES));
    if (scan->open == TDM_OPEN_PUNCTUATION)
        end_word(scan);
    do {
        uint32_t code_point;
        const tdm_char_rule *rule;
        int length = read_char(splitter->text, splitter->bytes, splitter->at, &code_point);
        TDM_TRY(find_rule(splitter->normalizer, code_point, &rule));
        if (rule->kind == TDM_CHAR_CONTEXT)
            return split_literally(splitter);
        splitter->at += (size_t)length;
        if (rule->kind == TDM_CHAR_WORD) {
            if (rule->bytes == 0)
                continue;
            if (scan->open == TDM_OPEN_NONE)
                scan->begins[scan->begin_count++] = scan->out_at;
            scan->open = TDM_OPEN_WORD;
            put_char(scan, rule);
            continue;
        }
        end_word(scan);
        if (rule->kind != TDM_CHAR_SPACE) {
            scan->begins[scan->begin_count++] = scan->out_at;
            put_char(scan, rule);
            scan->ends[scan->end_count++] = scan->out_at;
        }
        if (code_point == '\n')
            scan->lines[scan->line_count++] = scan->begin_count;
        if (rule->kind != TDM_CHAR_APART)
            set_hard(splitter, splitter->at);
    } while (splitter->at < stop && !eight_are_ascii(splitter));
    return TDM_OK;
}

/* ---- words ----------------------------------------------------------------------------------- */

tdm_status tdm_word_splitter_next(tdm_word_splitter *splitter, tdm_words *words)
{
    tdm_ascii_scan *scan = &splitter->scan;
    scan->out_at = scan->begin_count = scan->end_count = scan->line_count = 0;
    scan->open = TDM_OPEN_NONE;
    set_hard(splitter, splitter->at);
    bool enough = false;
    while (splitter->at < splitter->bytes && !enough) {
        size_t left = splitter->bytes - splitter->at;
        size_t step = left < STEP_BYTES ? left : STEP_BYTES;
        TDM_TRY(make_room(splitter, step));
        scan->hard_at = SIZE_MAX;
        size_t done = tdm_ascii_scan_text(splitter->text + splitter->at, step,
                                          splitter->normalizer->settings.lowercase, scan);
        if (scan->hard_at != SIZE_MAX)
            splitter->hard_at = splitter->at + scan->hard_at;
        splitter->at += done;
        if (done < step)
            TDM_TRY(split_chars(splitter));
        enough = scan->hard_words >= ENOUGH_WORDS;
    }
    words->text = scan->out;
    words->begins = scan->begins;
    words->ends = scan->ends;
    words->lines = scan->lines;
    words->line_count = scan->line_count;
    if (enough && splitter->at < splitter->bytes) {
        splitter->at = splitter->hard_at;
        words->count = scan->hard_words;
    } else {
        end_word(scan);
        words->count = scan->begin_count;
    }
    return TDM_OK;
}
