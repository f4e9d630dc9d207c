/* tdm_normalize() against the literal specification and Unicode's test of normal forms. */
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/random_text.h"
#include "tests/support/text_data.h"
#include "tests/support/text_spec.h"

#include <stdio.h>
#include <string.h>

static tdm_normalized normalized;

/* ---- random texts ---------------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEXTS 30000
#else
#define TEXTS 300000
#endif

static tdm_tokenizer_settings random_settings(uint64_t draw)
{
    return tdm_spec_settings(
        (const uint8_t[TDM_SPEC_SETTINGS_BYTES]){(uint8_t)draw, (uint8_t)(draw >> 8)});
}

static void compare(const tdm_tokenizer_settings *settings, const char *text, size_t bytes,
                    uint64_t index)
{
    tdm_spec_text spec = tdm_spec_normalize(settings, text, bytes);
    if (tdm_normalize(settings, text, bytes, &normalized) != TDM_OK)
        ck_abort_msg("%s", tdm_error_message());
    const char *difference = tdm_spec_difference(&spec, &normalized);
    if (difference != NULL)
        ck_abort_msg("text %llu (mode %d, form %d, clean %d, chinese %d, lower %d, strip %d): %s",
                     (unsigned long long)index, settings->unicode, settings->form,
                     settings->clean_text, settings->handle_chinese_chars, settings->lowercase,
                     settings->strip_accents, difference);
    tdm_spec_text_free(&spec);
}

START_TEST(test_random_texts)
{
    for (uint64_t i = 0; i < TEXTS; i++) {
        char text[TDM_RANDOM_TEXT_BYTES];
        tdm_tokenizer_settings settings = random_settings(tdm_random_number(1, i));
        size_t bytes = i % 4 == 0 ? tdm_random_bytes(2, i, text) : tdm_random_text(2, i, text);
        compare(&settings, text, bytes, i);
    }
}
END_TEST

/* Few kinds of characters, so that rules meet: marks that move, sigma's context, jamo. */
START_TEST(test_random_close_texts)
{
    static const uint32_t alphabet[] = {
        'a',    'B',    ' ',    '\t',   '.',    '\'',    0x3a3,   0x300,  0x301,   0x323,   0x334,
        0x302e, 0x344,  0x340,  0xf73,  0xf71,  0xf72,   0xe9,    0x1ed7, 0x1d16e, 0x1d165, 0x1100,
        0x1161, 0x11a8, 0xac00, 0x4e2d, 0xf900, 0xad,    0x2028,  0x130,  0xfb03,  0xfdfa,  0x345,
        0x2b0,  0x1c,   0x1fbe, 0x9c7,  0x9be,  0x110ba, 0x110a5, 0x1ab0, 0xa0};
    enum { CHARS = 24 };
    for (uint64_t i = 0; i < TEXTS; i++) {
        char text[4 * CHARS];
        size_t bytes = 0;
        tdm_tokenizer_settings settings = random_settings(tdm_random_number(3, i));
        uint64_t count = tdm_random_number(4, i) % CHARS;
        for (uint64_t j = 0; j < count; j++) {
            uint64_t draw = tdm_random_number(5, CHARS * i + j);
            bytes += (size_t)tdm_utf8_write(alphabet[draw % (sizeof alphabet / sizeof alphabet[0])],
                                            text + bytes);
        }
        compare(&settings, text, bytes, i);
    }
}
END_TEST

START_TEST(test_real_texts)
{
    static const char *const names[] = {"text/bert_sample_text.txt", "text/udhr/vie.txt",
                                        "text/udhr/kor.txt", "text/udhr/ell_polytonic.txt",
                                        "text/fortune_zh_song100.txt"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes;
        char *text = tdm_text_data(names[i], &bytes);
        if (text == NULL)
            return;
        for (uint64_t j = 0; j < 27; j++) {
            tdm_tokenizer_settings settings = random_settings(tdm_random_number(6, j));
            compare(&settings, text, bytes, i);
        }
        tdm_free(text);
    }
}
END_TEST

/* ---- NormalizationTest.txt ------------------------------------------------------------------- */

typedef struct columns {
    char text[5][128];
    size_t bytes[5];
} columns;

static void read_columns(const char *line, columns *out)
{
    for (int i = 0; i < 5; i++) {
        out->bytes[i] = 0;
        while (*line != ';') {
            char *end;
            uint32_t code_point = (uint32_t)strtoul(line, &end, 16);
            out->bytes[i] += (size_t)tdm_utf8_write(code_point, out->text[i] + out->bytes[i]);
            line = end + strspn(end, " ");
        }
        line++;
    }
}

static bool becomes(const tdm_tokenizer_settings *settings, const columns *row, int from, int to)
{
    return tdm_normalize(settings, row->text[from], row->bytes[from], &normalized) == TDM_OK &&
           normalized.bytes == row->bytes[to] &&
           memcmp(normalized.text, row->text[to], row->bytes[to]) == 0;
}

static const tdm_tokenizer_settings nfc = {.unicode = TDM_UNICODE_CURRENT, .form = TDM_FORM_NFC};
static const tdm_tokenizer_settings nfkc = {.unicode = TDM_UNICODE_CURRENT, .form = TDM_FORM_NFKC};
static const tdm_tokenizer_settings nfd = {.unicode = TDM_UNICODE_CURRENT, .strip_accents = 1};

/* Accents are stripped from NFD, so that NFD without its marks shows. */
static void strip_marks(columns *row, int column)
{
    size_t kept = 0;
    for (size_t at = 0; at < row->bytes[column];) {
        uint32_t code_point;
        bool valid;
        int length = tdm_utf8_read(row->text[column], row->bytes[column], at, &code_point, &valid);
        if (!tdm_unicode_is_mark(TDM_UNICODE_CURRENT, code_point)) {
            memmove(row->text[column] + kept, row->text[column] + at, (size_t)length);
            kept += (size_t)length;
        }
        at += (size_t)length;
    }
    row->bytes[column] = kept;
}

static void check_row(columns *row, const char *line, size_t line_bytes)
{
    bool good = true;
    for (int i = 0; i < 5; i++) {
        good = good && becomes(&nfkc, row, i, 3);
        good = good && becomes(&nfc, row, i, i < 3 ? 1 : 3);
    }
    strip_marks(row, 2);
    strip_marks(row, 4);
    for (int i = 0; i < 5; i++)
        good = good && becomes(&nfd, row, i, i < 3 ? 2 : 4);
    if (!good)
        ck_abort_msg("%.*s", (int)line_bytes, line);
}

START_TEST(test_normal_forms)
{
    static bool listed[0x110000];
    size_t bytes, at = 0, line_bytes;
    int part = 0, rows = 0;
    char *text = tdm_text_data("unicode/NormalizationTest.txt.gz", &bytes);
    if (text == NULL)
        return;
    for (const char *line; (line = tdm_next_line(text, bytes, &at, &line_bytes)) != NULL;) {
        columns row;
        if (line_bytes == 0 || line[0] == '#')
            continue;
        if (line[0] == '@') {
            part = line[5] - '0';
            continue;
        }
        read_columns(line, &row);
        if (part == 1)
            listed[strtoul(line, NULL, 16)] = true;
        check_row(&row, line, line_bytes);
        rows++;
    }
    tdm_free(text);
    ck_assert_int_eq(rows, 19074);
    /* What part 1 does not list is the same in every form. */
    for (uint32_t i = 0; i < 0x110000; i++) {
        columns row = {0};
        if (listed[i] || (i >= 0xd800 && i <= 0xdfff))
            continue;
        row.bytes[0] = (size_t)tdm_utf8_write(i, row.text[0]);
        if (!becomes(&nfc, &row, 0, 0) || !becomes(&nfkc, &row, 0, 0))
            ck_abort_msg("U+%04X", i);
    }
}
END_TEST

TDM_CHECK_MAIN(test_random_texts, test_random_close_texts, test_real_texts, test_normal_forms)
