/* The vector loop over ASCII, with every instruction set that this machine has, against a plain
 * one.
 */
#include "tests/support/check_main.h"
#include "text/ascii_scan.h"

#include <ctype.h>
#include <string.h>

#define MOST 1024

typedef struct words {
    char out[MOST + TDM_ASCII_SCAN_ROOM];
    uint32_t begins[MOST + TDM_ASCII_SCAN_ROOM], ends[MOST + TDM_ASCII_SCAN_ROOM];
    uint32_t lines[MOST + TDM_ASCII_SCAN_ROOM];
    tdm_ascii_scan scan;
} words;

static void start(words *begun)
{
    begun->scan = (tdm_ascii_scan){.out = begun->out,
                                   .begins = begun->begins,
                                   .ends = begun->ends,
                                   .lines = begun->lines,
                                   .hard_at = SIZE_MAX};
}

static bool is_blank(unsigned char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static void end_word(tdm_ascii_scan *scan)
{
    if (scan->open != TDM_OPEN_NONE)
        scan->ends[scan->end_count++] = scan->out_at;
    scan->open = TDM_OPEN_NONE;
}

static size_t scan_plainly(const char *text, size_t bytes, bool lowercase, tdm_ascii_scan *scan)
{
    size_t at = 0;
    for (; at < bytes; at++) {
        unsigned char byte = (unsigned char)text[at];
        if (!is_blank(byte) && (byte < 0x20 || byte > 0x7e))
            break;
        bool letter = isalnum(byte) != 0;
        if (scan->open == TDM_OPEN_PUNCTUATION || !letter)
            end_word(scan);
        if (!is_blank(byte) && scan->open == TDM_OPEN_NONE) {
            scan->begins[scan->begin_count++] = scan->out_at;
            scan->open = letter ? TDM_OPEN_WORD : TDM_OPEN_PUNCTUATION;
        }
        scan->out[scan->out_at++] = (char)(lowercase ? tolower(byte) : byte);
        if (byte == '\n')
            scan->lines[scan->line_count++] = scan->begin_count;
        if (is_blank(byte)) {
            scan->hard_at = at + 1;
            scan->hard_words = scan->begin_count;
        }
    }
    return at;
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void check_scan(const char *text, size_t bytes, bool lowercase, words *actual,
                       words *expected)
{
    actual->scan.hard_at = expected->scan.hard_at = SIZE_MAX;
    size_t done = tdm_ascii_scan_text(text, bytes, lowercase, &actual->scan);
    ck_assert_uint_eq(done, scan_plainly(text, bytes, lowercase, &expected->scan));
    const tdm_ascii_scan *a = &actual->scan, *e = &expected->scan;
    ck_assert_uint_eq(a->out_at, e->out_at);
    ck_assert_mem_eq(actual->out, expected->out, e->out_at);
    ck_assert_uint_eq(a->begin_count, e->begin_count);
    ck_assert_uint_eq(a->end_count, e->end_count);
    ck_assert_mem_eq(a->begins, e->begins, e->begin_count * sizeof(uint32_t));
    ck_assert_mem_eq(a->ends, e->ends, e->end_count * sizeof(uint32_t));
    ck_assert_uint_eq(a->line_count, e->line_count);
    ck_assert_mem_eq(a->lines, e->lines, e->line_count * sizeof(uint32_t));
    ck_assert_int_eq(a->open, e->open);
    ck_assert_uint_eq(a->hard_at, e->hard_at);
    ck_assert_uint_eq(a->hard_words, e->hard_words);
}

/* Texts in pieces of all lengths, so that every kind of word runs over every border. */
static void check_level(int level)
{
    static const char alphabet[] = "abzAZ09 \t\r\n.,-[]{}@`^~!/:;<=>\x01\x7f\x80\xff";
    static words actual, expected;
    uint64_t state = 7;
    if (!tdm_ascii_scan_force(level))
        return;
    for (int round = 0; round < 4000; round++) {
        char text[300];
        size_t bytes = next_random(&state) % sizeof text;
        uint32_t letters = round % 3 == 0 ? 6 : round % 3 == 1 ? 28 : (uint32_t)sizeof alphabet - 1;
        for (size_t i = 0; i < bytes; i++)
            text[i] = alphabet[next_random(&state) % letters];
        start(&actual);
        start(&expected);
        size_t cut = bytes == 0 ? 0 : next_random(&state) % bytes;
        check_scan(text, cut, round % 2 == 0, &actual, &expected);
        check_scan(text + cut, bytes - cut, round % 2 == 0, &actual, &expected);
    }
    for (int byte = 0; byte < 256; byte++) {
        char text[1] = {(char)byte};
        start(&actual);
        start(&expected);
        check_scan(text, 1, true, &actual, &expected);
        check_scan(text, 1, false, &actual, &expected);
    }
    tdm_ascii_scan_force(-1);
}

START_TEST(test_every_level_finds_the_same_words)
{
    for (int level = 0; level <= 2; level++)
        check_level(level);
}
END_TEST

TDM_CHECK_MAIN(test_every_level_finds_the_same_words)
