/* The fast way to words and ids against the literal one. */
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "text/normalize.h"
#include "text/word_ids.h"
#include "text/word_splitter.h"

#include <string.h>

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* Code points that rules meet: accents, marks of several classes, ideographs, Hangul, controls,
 * special cases, unassigned ones; between letters, marks and blanks of ASCII. */
static const uint32_t odd_chars[] = {
    0xe9,   0xc4,   0x130,  0x131,  0xdf,   0x1e9e,  0x3a3,   0x3c3,   0x391,   0x301,   0x323,
    0x338,  0x345,  0x1dc0, 0x302a, 0x302e, 0x3099,  0x304c,  0x30ac,  0x4e2d,  0x6587,  0x9fff,
    0xf900, 0x3400, 0xac00, 0x1100, 0x1161, 0x11a8,  0x200b,  0x200d,  0xfeff,  0xad,    0x85,
    0xa0,   0x3000, 0x2028, 0x2002, 0x2014, 0x2019,  0x3002,  0xff5e,  0x2260,  0x226e,  0x37e,
    0x212a, 0xfb01, 0xff21, 0x93f,  0x94d,  0x915,   0xe01,   0xe31,   0x5d0,   0x5b0,   0x627,
    0x64e,  0x378,  0xe000, 0xfffd, 0xfffe, 0x1f600, 0x1d160, 0x1d165, 0x20000, 0x2b820, 0x10ffff,
};

static size_t random_text(uint64_t *state, char *text, size_t most)
{
    static const char ascii[] = "aaaabcdeXYZ019    \t\r\n.,-'![]=<>\x01\x0b\x7f";
    size_t bytes = 0, wanted = next_random(state) % (uint32_t)(most - 8);
    uint32_t odd = 1 + next_random(state) % 12;
    while (bytes < wanted) {
        uint32_t kind = next_random(state) % 16;
        if (kind == 15 && odd > 8)
            text[bytes++] = (char)(0x80 + next_random(state) % 128);
        else if (kind < odd)
            bytes += (size_t)tdm_utf8_write(
                odd_chars[next_random(state) % (sizeof odd_chars / sizeof *odd_chars)],
                text + bytes);
        else
            text[bytes++] = ascii[next_random(state) % (sizeof ascii - 1)];
    }
    return bytes;
}

static void check_same_words(tdm_word_splitter *splitter, const tdm_tokenizer_settings *settings,
                             const char *text, size_t bytes, tdm_normalized *expected)
{
    ck_assert_ok(tdm_normalize(settings, text, bytes, expected));
    tdm_word_splitter_start(splitter, text, bytes);
    int64_t at = 0;
    tdm_words words;
    do {
        ck_assert_ok(tdm_word_splitter_next(splitter, &words));
        for (int64_t i = 0; i < words.count; i++, at++) {
            size_t length = words.ends[i] - words.begins[i];
            if (at >= expected->word_count ||
                length != expected->words[at].end - expected->words[at].begin ||
                memcmp(words.text + words.begins[i], expected->text + expected->words[at].begin,
                       length) != 0)
                ck_abort_msg("word %lld of \"%.*s\" differs", (long long)at, (int)bytes, text);
        }
    } while (words.count > 0);
    ck_assert_int_eq(at, expected->word_count);
}

static void check_settings(const tdm_tokenizer_settings *settings, int rounds)
{
    tdm_normalizer *normalizer;
    tdm_word_splitter *splitter;
    tdm_normalized expected = {0};
    uint64_t state = 11;
    ck_assert_ok(tdm_normalizer_create(settings, &normalizer));
    ck_assert_ok(tdm_word_splitter_create(normalizer, &splitter));
    for (int round = 0; round < rounds; round++) {
        char text[400];
        size_t bytes = random_text(&state, text, sizeof text);
        check_same_words(splitter, settings, text, bytes, &expected);
    }
    tdm_normalized_deinit(&expected);
    tdm_word_splitter_destroy(splitter);
    tdm_normalizer_destroy(normalizer);
}

START_TEST(test_words_are_the_literal_ones)
{
    for (int bits = 0; bits < 16; bits++) {
        for (int unicode = 0; unicode < 3; unicode++) {
            tdm_tokenizer_settings settings = {.unicode = (tdm_unicode_mode)unicode,
                                               .form = (tdm_unicode_form)((bits + unicode) % 3),
                                               .clean_text = (bits & 1) != 0,
                                               .handle_chinese_chars = (bits & 2) != 0,
                                               .lowercase = (bits & 4) != 0,
                                               .strip_accents = (bits & 8) != 0,
                                               .max_word_chars = 100};
            check_settings(&settings, 60);
        }
    }
}
END_TEST

static tdm_tokenizer_settings uncased(void)
{
    return (tdm_tokenizer_settings){.clean_text = true,
                                    .handle_chinese_chars = true,
                                    .lowercase = true,
                                    .strip_accents = 1,
                                    .max_word_chars = 100};
}

/* Each code point alone between two letters, so that every rule of the table is compared. */
START_TEST(test_every_code_point_is_the_literal_one)
{
    tdm_tokenizer_settings settings = uncased();
    tdm_normalizer *normalizer;
    tdm_word_splitter *splitter;
    tdm_normalized expected = {0};
    ck_assert_ok(tdm_normalizer_create(&settings, &normalizer));
    ck_assert_ok(tdm_word_splitter_create(normalizer, &splitter));
    for (uint32_t page = 0; page < 0x110000; page += 256) {
        char text[256 * 10];
        size_t bytes = 0;
        for (uint32_t i = 0; i < 256; i++) {
            if (page + i >= 0xd800 && page + i <= 0xdfff)
                continue;
            text[bytes++] = 'X';
            bytes += (size_t)tdm_utf8_write(page + i, text + bytes);
            text[bytes++] = 'y';
            text[bytes++] = ' ';
        }
        check_same_words(splitter, &settings, text, bytes, &expected);
    }
    tdm_normalized_deinit(&expected);
    tdm_word_splitter_destroy(splitter);
    tdm_normalizer_destroy(normalizer);
}
END_TEST

/* Words are given out in groups, and one may be longer than a group. */
START_TEST(test_long_texts_and_long_words)
{
    static const struct {
        const char *unit;
        size_t times;
    } texts[] = {{"a", 300000},           {"word ", 50000},
                 {".", 100000},           {"\xc3\xa9t\xc3\xa9 ", 20000},
                 {"\xe4\xb8\xad", 50000}, {"\xc3\xa9", 50000},
                 {" ", 100000},           {"a.\xe2\x80\x94", 20000},
                 {"\x01", 10000},         {"=\xcc\xb8", 20000},
                 {"a\xe3\x80\xae", 20000}};
    tdm_tokenizer_settings settings = uncased();
    for (int strip = 0; strip < 2; strip++) {
        settings.strip_accents = strip;
        settings.form = strip ? TDM_FORM_NONE : TDM_FORM_NFC;
        tdm_normalizer *normalizer;
        tdm_word_splitter *splitter;
        tdm_normalized expected = {0};
        ck_assert_ok(tdm_normalizer_create(&settings, &normalizer));
        ck_assert_ok(tdm_word_splitter_create(normalizer, &splitter));
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            size_t unit = strlen(texts[i].unit);
            char *text;
            ck_assert_ok(tdm_alloc(unit * texts[i].times, 1, &text));
            for (size_t k = 0; k < texts[i].times; k++)
                memcpy(text + k * unit, texts[i].unit, unit);
            check_same_words(splitter, &settings, text, unit * texts[i].times, &expected);
            tdm_free(text);
        }
        tdm_normalized_deinit(&expected);
        tdm_word_splitter_destroy(splitter);
        tdm_normalizer_destroy(normalizer);
    }
}
END_TEST

/* ---- ids ------------------------------------------------------------------------------------- */

static void make_tokenizer(tdm_tokenizer *tokenizer)
{
    static const char *const tokens[] = {"[UNK]",    "a",         "##a", "b",   "##b",
                                         "ab",       "##ab",      "abc", "##c", "c",
                                         ".",        "-",         "'",   "!",   "[",
                                         "]",        "=",         "<",   ">",   ",",
                                         "0",        "##0",       "1",   "##1", "\xe4\xb8\xad",
                                         "##d",      "##e",       "d",   "e",   "aaaaaaaaaaaaaaaa",
                                         "\xce\xb1", "##\xcf\x83"};
    tokenizer->settings = uncased();
    tokenizer->settings.max_word_chars = 40;
    for (uint32_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        ck_assert_ok(
            tdm_vocabulary_add(&tokenizer->vocabulary, i, tokens[i], strlen(tokens[i]), NULL));
    ck_assert_ok(tdm_normalizer_create(&tokenizer->settings, &tokenizer->normalizer));
    ck_assert_ok(tdm_word_piece_create(&tokenizer->vocabulary, 40, &tokenizer->word_piece));
    tokenizer->specials[TDM_SPECIAL_UNK] = 0;
}

static void free_tokenizer(tdm_tokenizer *tokenizer)
{
    tdm_vocabulary_deinit(&tokenizer->vocabulary);
    tdm_normalizer_destroy(tokenizer->normalizer);
    tdm_word_piece_destroy(tokenizer->word_piece);
}

static bool has_line_feed(const char *text, size_t from, size_t to)
{
    return to > from && memchr(text + from, '\n', to - from) != NULL;
}

static void check_ids(const tdm_tokenizer *tokenizer, const char *text,
                      const tdm_normalized *expected, const tdm_token_list *list)
{
    int64_t at = 0;
    size_t before = 0;
    uint32_t pieces[4096];
    for (int64_t w = 0; w < expected->word_count; w++) {
        tdm_span word = expected->words[w];
        int64_t count = tdm_word_piece_split(tokenizer->word_piece, expected->text + word.begin,
                                             word.end - word.begin, pieces);
        if (count == 0)
            pieces[count++] = 0;
        uint32_t mark = TDM_MARK_WORD;
        if (w == 0 || has_line_feed(text, before, expected->from[word.begin]))
            mark |= TDM_MARK_SENTENCE;
        before = expected->to[word.end - 1];
        for (int64_t i = 0; i < count; i++, at++) {
            if (at >= list->count || list->ids[at] != pieces[i] ||
                list->marks[at] != (i == 0 ? mark : 0))
                ck_abort_msg("token %lld of word %lld differs", (long long)at, (long long)w);
        }
    }
    ck_assert_int_eq(at, list->count);
}

/* Many different words, so that slots are replaced and the table of long ones is emptied. */
START_TEST(test_ids_are_those_of_the_words)
{
    tdm_tokenizer tokenizer = {0};
    make_tokenizer(&tokenizer);
    tdm_word_ids *words;
    tdm_token_list list = {0};
    tdm_normalized expected = {0};
    uint64_t state = 5;
    ck_assert_ok(tdm_word_ids_create(&tokenizer, &words));
    for (int round = 0; round < 1500; round++) {
        static const char letters[] = "aabbccde01";
        char text[2000];
        size_t bytes = 0, length = 1 + next_random(&state) % 30;
        if (round % 2 == 0) {
            bytes = random_text(&state, text, 400);
        } else {
            for (; bytes < sizeof text; bytes++)
                text[bytes] = next_random(&state) % length == 0
                                  ? ' '
                                  : letters[next_random(&state) % (sizeof letters - 1)];
        }
        list.count = 0;
        ck_assert_ok(tdm_word_ids_append(words, text, bytes, &list));
        ck_assert_ok(tdm_normalize(&tokenizer.settings, text, bytes, &expected));
        check_ids(&tokenizer, text, &expected, &list);
    }
    tdm_normalized_deinit(&expected);
    tdm_token_list_deinit(&list);
    tdm_word_ids_destroy(words);
    free_tokenizer(&tokenizer);
}
END_TEST

START_TEST(test_no_memory_is_an_error)
{
    static const char text[] = "ab caab aaaaaaaaaaaaaaaaaaaaab \xc3\xa9 \xe4\xb8\xad x = \xcc\xb8";
    for (int64_t n = 1;; n++) {
        tdm_tokenizer tokenizer = {0};
        make_tokenizer(&tokenizer);
        tdm_word_ids *words = NULL;
        tdm_token_list list = {0};
        tdm_memory_fail_at(n, false);
        tdm_status status = tdm_word_ids_create(&tokenizer, &words);
        if (status == TDM_OK)
            status = tdm_word_ids_append(words, text, sizeof text - 1, &list);
        tdm_memory_fail_at(0, false);
        tdm_word_ids_destroy(words);
        tdm_token_list_deinit(&list);
        free_tokenizer(&tokenizer);
        if (status == TDM_OK) {
            ck_assert_int_gt(n, 10);
            break;
        }
        ck_assert_int_eq(status, TDM_E_NOMEM);
    }
}
END_TEST

TDM_CHECK_MAIN(test_words_are_the_literal_ones, test_every_code_point_is_the_literal_one,
               test_long_texts_and_long_words, test_ids_are_those_of_the_words,
               test_no_memory_is_an_error)
