#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/text_data.h"
#include "text/normalize.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Hugging Face's uncased and cased models, the same with the other rules, and nothing at all. */
static const tdm_tokenizer_settings uncased = {
    .clean_text = true, .handle_chinese_chars = true, .lowercase = true, .strip_accents = -1};
static const tdm_tokenizer_settings cased = {
    .clean_text = true, .handle_chinese_chars = true, .strip_accents = -1};
static const tdm_tokenizer_settings google = {.unicode = TDM_UNICODE_GOOGLE,
                                              .clean_text = true,
                                              .handle_chinese_chars = true,
                                              .lowercase = true,
                                              .strip_accents = -1};
static const tdm_tokenizer_settings current = {.unicode = TDM_UNICODE_CURRENT,
                                               .clean_text = true,
                                               .handle_chinese_chars = true,
                                               .lowercase = true,
                                               .strip_accents = -1};
static const tdm_tokenizer_settings nothing = {.unicode = TDM_UNICODE_HUGGINGFACE};

static tdm_normalized normalized;

static void normalize(const tdm_tokenizer_settings *settings, const char *text, size_t bytes)
{
    ck_assert_ok(tdm_normalize(settings, text, bytes, &normalized));
}

static void expect_bytes(const tdm_tokenizer_settings *settings, const char *text, size_t bytes,
                         const char *expected)
{
    normalize(settings, text, bytes);
    ck_assert_msg(
        normalized.bytes == strlen(expected) &&
            (normalized.bytes == 0 || memcmp(normalized.text, expected, normalized.bytes) == 0),
        "%s became \"%.*s\", not \"%s\"", text, (int)normalized.bytes, normalized.text, expected);
}

static void expect(const tdm_tokenizer_settings *settings, const char *text, const char *expected)
{
    expect_bytes(settings, text, strlen(text), expected);
}

/* `expected`: the words, each with a blank behind it. */
static void expect_words(const tdm_tokenizer_settings *settings, const char *text,
                         const char *expected)
{
    char words[4096] = "";
    size_t length = 0;
    normalize(settings, text, strlen(text));
    for (int64_t i = 0; i < normalized.word_count; i++) {
        tdm_span word = normalized.words[i];
        ck_assert_uint_lt(word.begin, word.end);
        length += (size_t)snprintf(words + length, sizeof words - length, "%.*s ",
                                   (int)(word.end - word.begin), normalized.text + word.begin);
    }
    ck_assert_str_eq(words, expected);
}

/* `expected`: for each byte of the normalised text, from and to in the original. */
static void expect_places(const tdm_tokenizer_settings *settings, const char *text,
                          const char *normal, const uint32_t (*expected)[2])
{
    expect(settings, text, normal);
    for (size_t i = 0; i < normalized.bytes; i++)
        ck_assert_msg(normalized.from[i] == expected[i][0] && normalized.to[i] == expected[i][1],
                      "%s, byte %zu: %u to %u", text, i, normalized.from[i], normalized.to[i]);
}

/* ---- text ------------------------------------------------------------------------------------ */

START_TEST(test_clean_text)
{
    expect_bytes(&uncased, "H\u00e9llo\0\tW\u00f6rld \u4e2d\u6587", 22,
                 "hello world  \u4e2d  \u6587 ");
    expect(&cased, "a\u200bb", "ab");
    expect(&cased, "x\x0by\x0cz", "xyz");
    expect(&cased,
           "1\ufffd2\ufeff3\u00ad4\x7f"
           "5",
           "12345");
    expect(&cased, "\t\r\n\u00a0\u2003\u2028\u3000", "       ");
    expect(&cased,
           "a\xc2\x85"
           "b\x1f"
           "c",
           "abc");
    expect(&cased, "a\ue000b\U0010fffdc", "abc");
    expect(&google, "a\ue000b", "a\ue000b");
    /* Not yet a format control in Unicode 8. */
    expect(&cased, "a\u08e2", "a\u08e2");
    expect(&current, "a\u08e2", "a");
}
END_TEST

START_TEST(test_clean_text_off)
{
    static const char odd[10] = "a\0\t\ufffd\x0b\u200b";
    normalize(&nothing, odd, sizeof odd);
    ck_assert_uint_eq(normalized.bytes, sizeof odd);
    ck_assert_mem_eq(normalized.text, odd, sizeof odd);
    expect(&nothing, "\xffx\xc3", "\ufffdx\ufffd");
    expect_words(&nothing,
                 "a\tb\x0b"
                 "c\xc2\x85"
                 "d\u2028e\x1c"
                 "f",
                 "a b c d e\x1c"
                 "f ");
    tdm_tokenizer_settings python = {.unicode = TDM_UNICODE_GOOGLE};
    expect_words(&python,
                 "e\x1c"
                 "f\x1fg",
                 "e f g ");
}
END_TEST

START_TEST(test_chinese)
{
    expect(&uncased, "ah\u535a\u63a8zz", "ah \u535a  \u63a8 zz");
    expect_words(&uncased, "ah\u535a\u63a8zz", "ah \u535a \u63a8 zz ");
    tdm_tokenizer_settings python = google;
    python.strip_accents = 0;
    expect_words(&python, "\u9999\u6e2f\u3067\u306f\uff14\u65e5",
                 "\u9999 \u6e2f \u3067\u306f\uff14 \u65e5 ");
    expect(&nothing, "\u535a\u63a8", "\u535a\u63a8");
    expect_words(&nothing, "\u535a\u63a8", "\u535a\u63a8 ");
    /* Set apart first, then decomposed to what they stand for. */
    expect(&uncased, "\uf900", " \u8c48 ");
    expect(&cased, "\uf900", " \uf900 ");
    expect(&cased, "a\U0002b820b", "a\U0002b820b");
    expect(&cased, "a\U0002b920b", "a \U0002b920 b");
    expect(&google, "a\U0002b820b", "a \U0002b820 b");
}
END_TEST

START_TEST(test_accents)
{
    tdm_tokenizer_settings lower = uncased, strip = cased;
    lower.strip_accents = 0;
    strip.strip_accents = 1;
    expect(&uncased, "H\u00c4LLo fianc\u00e9e", "hallo fiancee");
    expect(&lower, "H\u00c4LLo", "h\u00e4llo");
    expect(&strip, "H\u00c4LLo", "HALLo");
    expect(&cased, "a\u0301", "a\u0301");
    expect(&uncased, "\u0301", "");
    expect(&uncased, "\u30ac", "\u30ab");
    expect(&uncased, "\ud55c", "\u1112\u1161\u11ab");
    /* Spacing marks stay, and come behind what canonical order moves before them. */
    expect(&uncased, "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u093f\u0928\u0926\u0940");
    expect(&uncased, "a\u302e\U0001d165b", "a\U0001d165\u302eb");
    /* Marks of Unicode 14. */
    expect(&uncased, "a\u0898", "a\u0898");
    expect(&google, "a\u0898", "a");
}
END_TEST

START_TEST(test_lowercase)
{
    tdm_tokenizer_settings lower = uncased, python = google, folded = current;
    lower.strip_accents = python.strip_accents = folded.strip_accents = 0;
    expect(&uncased, "\u0130STANBUL", "istanbul");
    expect(&lower, "\u0130", "i\u0307");
    expect(&python, "\u0130", "i\u0307");
    expect(&lower, "stra\u00dfe \u1e9e", "stra\u00dfe \u00df");
    expect(&python, "stra\u00dfe \u1e9e", "stra\u00dfe \u00df");
    expect(&folded, "stra\u00dfe \u1e9e \ufb01", "strasse ss fi");
    expect(&lower, "\u212a", "k");
    expect(&lower, "\U00016ea0", "\U00016ebb");
    expect(&folded, "\u0390", "\u03b9\u0308\u0301");
}
END_TEST

START_TEST(test_final_sigma)
{
    expect(&uncased, "\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c3");
    expect(&google, "\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2");
    expect(&current, "\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c3");
    expect(&google, "\u03a3", "\u03c3");
    expect(&google, "A\u03a3 B", "a\u03c2 b");
    expect(&google, "A \u03a3", "a \u03c3");
    expect(&google, "A\u03a3B", "a\u03c3b");
    expect(&google, "A\u03a31", "a\u03c21");
    /* What case ignores is looked through, before and behind. */
    expect(&google, "A'\u03a3", "a'\u03c2");
    expect(&google, "A\u03a3'b", "a\u03c3'b");
    expect(&google, "A\u03a3'", "a\u03c2'");
    expect(&google, "\u0301\u03a3", "\u03c3");
    expect(&google, "A\u0301\u03a3\u0301", "a\u03c2");
    expect(&google, "A\u03a3\u00a0B", "a\u03c2 b");
}
END_TEST

START_TEST(test_words)
{
    expect_words(&uncased, " \tHeLLo!how  \n Are yoU?  ", "hello ! how are you ? ");
    expect_words(&cased, " \tHeLLo!how  \n Are yoU?  ", "HeLLo ! how Are yoU ? ");
    expect_words(&uncased, "a\n'll !!to?'d of, can't.", "a ' ll ! ! to ? ' d of , can ' t . ");
    expect_words(&uncased, "", "");
    expect_words(&uncased, " \t\n", "");
    expect_words(&uncased, "\u200e\u200f", "");
    expect_words(&uncased, "$1.00 #3 \u20ac4 \u00a35", "$ 1 . 00 # 3 \u20ac4 \u00a35 ");
    expect_words(&uncased, "don\u2019t en\u2013dash", "don \u2019 t en \u2013 dash ");
    /* What becomes punctuation only by decomposition. */
    expect_words(&uncased, "a\u2260b \u037e", "a = b ; ");
    expect_words(&cased, "a\u2260b", "a\u2260b ");
    expect_words(&uncased, "a\u3000b\u2028c\u00a0d", "a b c d ");
    expect_words(&uncased, "[unused1] ##ing", "[ unused1 ] # # ing ");
}
END_TEST

START_TEST(test_forms)
{
    tdm_tokenizer_settings nfc = cased, nfkc = cased;
    nfc.form = TDM_FORM_NFC;
    nfkc.form = TDM_FORM_NFKC;
    expect(&nfc, "a\u0301e\u0302\u0323 \u1100\u1161\u11a8", "\u00e1\u1ec7 \uac01");
    expect(&nfc, "\ufb01\u212b\u0958", "\ufb01\u00c5\u0915\u093c");
    expect(&nfkc, "\ufb01\u2460\uff21\u00bd", "fi1A1\u20442");
    /* Compatibility characters can become white space and controls' neighbours. */
    expect_words(&nfkc, "a\u00a8b", "a \u0308b ");
}
END_TEST

/* ---- places ---------------------------------------------------------------------------------- */

START_TEST(test_places)
{
    static const uint32_t plain[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}};
    expect_places(&uncased, "Ab\t.c", "ab .c", plain);
    /* Deleted characters belong to nothing; U+1E9E folds to two. */
    static const uint32_t folded[][2] = {{0, 1}, {4, 7}, {4, 7}, {7, 8}};
    expect_places(&current,
                  "a\u200b\u1e9e"
                  "b",
                  "assb", folded);
    static const uint32_t accents[][2] = {{0, 2}, {4, 5}, {5, 6}};
    expect_places(&uncased, "\u00e9\u0301xy", "exy", accents);
    static const uint32_t jamo[][2] = {{0, 3}, {0, 3}, {0, 3}, {0, 3}, {0, 3}, {0, 3}, {3, 4}};
    expect_places(&uncased, "\uac00x", "\u1100\u1161x", jamo);
    static const uint32_t chinese[][2] = {{0, 1}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {4, 5}};
    expect_places(&uncased,
                  "a\u4e2d"
                  "b",
                  "a \u4e2d b", chinese);
    static const uint32_t invalid[][2] = {{0, 1}, {1, 2}, {1, 2}, {1, 2},
                                          {2, 3}, {2, 3}, {2, 3}, {3, 4}};
    expect_places(&nothing,
                  "a\xe4\xb8"
                  "b",
                  "a\ufffd\ufffdb", invalid);
    static const uint32_t cleaned[][2] = {{0, 1}, {3, 4}};
    expect_places(&uncased,
                  "a\xe4\xb8"
                  "b",
                  "ab", cleaned);
}
END_TEST

/* As Hugging Face has it: places stay in order where marks do not. */
START_TEST(test_places_of_moved_marks)
{
    static const uint32_t swapped[][2] = {{0, 1}, {1, 3}, {1, 3}, {1, 3}, {6, 7}};
    expect_places(&uncased, "a\u0301\u302eb", "a\u302eb", swapped);
    static const uint32_t composed[][2] = {{0, 2}, {2, 5}, {2, 5}, {2, 5}, {5, 6}};
    expect_places(&uncased, "\u00e9\u302eb", "e\u302eb", composed);
    static const uint32_t first[][2] = {{3, 5}, {3, 5}, {3, 5}, {7, 8}};
    expect_places(&uncased, "\u302e\u0301\u0334a", "\u302ea", first);
}
END_TEST

START_TEST(test_places_of_forms)
{
    tdm_tokenizer_settings nfc = cased, nfkc = cased;
    nfc.form = TDM_FORM_NFC;
    nfkc.form = TDM_FORM_NFKC;
    static const uint32_t composed[][2] = {{0, 1}, {1, 4}, {1, 4}, {4, 5}};
    expect_places(&nfc, "ba\u0301c", "b\u00e1c", composed);
    /* q takes no acute, so nothing changes, and each keeps its own. */
    static const uint32_t kept[][2] = {{0, 1}, {1, 3}, {1, 3}};
    expect_places(&nfc, "q\u0301", "q\u0301", kept);
    static const uint32_t moved[][2] = {{0, 1}, {1, 5}, {1, 5}, {1, 5}, {1, 5}};
    expect_places(&nfc, "q\u0301\u0323", "q\u0323\u0301", moved);
    static const uint32_t ligature[][2] = {{0, 1}, {1, 4}, {1, 4}, {4, 5}};
    expect_places(&nfkc,
                  "a\ufb01"
                  "b",
                  "afib", ligature);
}
END_TEST

/* ---- the golden cases of others -------------------------------------------------------------- */

static bool bool_of(const json_t *item, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(item, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static const char *text_of(const json_t *item)
{
    return json_string_value(json_object_get(item, "text"));
}

static void join(const json_t *words, char *out, size_t size)
{
    size_t i, length = 0;
    json_t *word;
    out[0] = '\0';
    json_array_foreach(words, i, word)
    {
        length += (size_t)snprintf(
            out + length, size - length, "%s ",
            json_string_value(json_is_array(word) ? json_array_get(word, 0) : word));
    }
}

static void check_basic_tokenizer(const json_t *cases)
{
    size_t i;
    json_t *item;
    json_array_foreach(cases, i, item)
    {
        char expected[4096];
        tdm_tokenizer_settings settings = cased;
        settings.lowercase = bool_of(item, "do_lower_case", true);
        const json_t *strip = json_object_get(item, "strip_accents");
        settings.strip_accents = json_is_boolean(strip) ? json_is_true(strip) : -1;
        if (json_object_get(item, "never_split") != NULL)
            continue;
        join(json_object_get(item, "tokens"), expected, sizeof expected);
        for (int mode = 0; mode < 3; mode++) {
            settings.unicode = (tdm_unicode_mode)mode;
            expect_words(&settings, text_of(item), expected);
        }
    }
}

static void check_normalizer(const json_t *cases)
{
    size_t i;
    json_t *item;
    json_array_foreach(cases, i, item)
    {
        tdm_tokenizer_settings settings = {.clean_text = bool_of(item, "clean_text", true),
                                           .handle_chinese_chars =
                                               bool_of(item, "handle_chinese_chars", true),
                                           .lowercase = bool_of(item, "lowercase", true),
                                           .strip_accents = bool_of(item, "strip_accents", true)};
        expect(&settings, text_of(item), json_string_value(json_object_get(item, "out")));
    }
}

static void check_pre_tokenizer(const json_t *cases)
{
    size_t i, j;
    json_t *item, *piece;
    json_array_foreach(cases, i, item)
    {
        char expected[4096];
        const json_t *pieces = json_object_get(item, "pieces");
        tdm_tokenizer_settings settings = {.handle_chinese_chars = true};
        join(pieces, expected, sizeof expected);
        expect_words(&settings, text_of(item), expected);
        json_array_foreach(pieces, j, piece)
        {
            const json_t *offsets = json_array_get(piece, 1);
            tdm_span word = normalized.words[j];
            ck_assert_int_eq(normalized.from[word.begin],
                             json_integer_value(json_array_get(offsets, 0)));
            ck_assert_int_eq(normalized.to[word.end - 1],
                             json_integer_value(json_array_get(offsets, 1)));
        }
    }
}

static void check_class(const json_t *cases, bool (*is)(tdm_unicode_mode, uint32_t))
{
    for (int answer = 0; answer < 2; answer++) {
        size_t i;
        json_t *item;
        json_array_foreach(json_object_get(cases, answer ? "true" : "false"), i, item)
        {
            uint32_t code_point;
            bool valid;
            tdm_utf8_read(json_string_value(item), json_string_length(item), 0, &code_point,
                          &valid);
            for (int mode = 0; mode < 3; mode++)
                ck_assert_int_eq(is((tdm_unicode_mode)mode, code_point), answer);
        }
    }
}

START_TEST(test_unit_cases)
{
    size_t bytes;
    char *text = tdm_text_data("golden/bert_unit_cases.json", &bytes);
    if (text == NULL)
        return;
    json_t *cases = json_loadb(text, bytes, 0, NULL);
    ck_assert_ptr_nonnull(cases);
    check_basic_tokenizer(json_object_get(cases, "basic_tokenizer"));
    check_normalizer(json_object_get(cases, "normalizer"));
    check_pre_tokenizer(json_object_get(cases, "pre_tokenizer_byte_offsets"));
    check_class(json_object_get(cases, "is_whitespace"), tdm_unicode_is_space);
    check_class(json_object_get(cases, "is_control"), tdm_unicode_is_control);
    check_class(json_object_get(cases, "is_punctuation"), tdm_unicode_is_punctuation);
    json_decref(cases);
    tdm_free(text);
}
END_TEST

/* ---- extremes -------------------------------------------------------------------------------- */

START_TEST(test_too_long)
{
    ck_assert_fails(tdm_normalize(&uncased, "", (size_t)1 << 31, &normalized), TDM_E_ARG,
                    "2147483648 bytes");
}
END_TEST

/* In time that grows with the square, this would not end. */
START_TEST(test_many_marks)
{
    enum { MARKS = 1 << 20 };
    char *text = malloc(1 + 2 * MARKS);
    ck_assert_ptr_nonnull(text);
    text[0] = 'a';
    for (size_t i = 0; i < MARKS; i++)
        memcpy(text + 1 + 2 * i, i % 2 == 0 ? "\u0301" : "\u0323", 2);
    tdm_tokenizer_settings settings = cased;
    settings.form = TDM_FORM_NFKC;
    normalize(&settings, text, 1 + 2 * MARKS);
    /* a with dot below, then the others below, then all above. */
    ck_assert_uint_eq(normalized.bytes, 3 + 2 * (MARKS - 1));
    ck_assert_mem_eq(normalized.text, "\u1ea1\u0323", 5);
    ck_assert_mem_eq(normalized.text + normalized.bytes - 2, "\u0301", 2);
    normalize(&uncased, text, 1 + 2 * MARKS);
    ck_assert_uint_eq(normalized.bytes, 1);
    ck_assert_uint_eq(normalized.to[0], 1);
    free(text);
}
END_TEST

START_TEST(test_long_word)
{
    enum { CHARS = 1 << 22 };
    char *text = malloc(CHARS);
    ck_assert_ptr_nonnull(text);
    memset(text, 'A', CHARS);
    normalize(&uncased, text, CHARS);
    ck_assert_int_eq(normalized.word_count, 1);
    text[CHARS / 2] = '\x01';
    normalize(&uncased, text, CHARS);
    ck_assert_int_eq(normalized.word_count, 1);
    ck_assert_uint_eq(normalized.words[0].end, CHARS - 1);
    ck_assert_uint_eq(normalized.from[CHARS / 2], CHARS / 2 + 1);
    free(text);
}
END_TEST

START_TEST(test_memory)
{
    static const char text[] = "Plain \u00e9\u4e2d\u0301\u302e\u03a3 \uff21 text";
    tdm_tokenizer_settings settings = google;
    settings.form = TDM_FORM_NFKC;
    tdm_normalized fresh = {0};
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status != TDM_OK; n++) {
        tdm_memory_fail_at(n, false);
        status = tdm_normalize(&settings, text, sizeof text - 1, &fresh);
        tdm_memory_fail_at(0, false);
        ck_assert(status == TDM_OK || status == TDM_E_NOMEM);
        tdm_normalized_deinit(&fresh);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
        ck_assert_int_lt(n, 1000);
    }
    /* Buffers that have grown are used again. */
    ck_assert_ok(tdm_normalize(&settings, text, sizeof text - 1, &fresh));
    int64_t allocations = tdm_memory_stats_get().allocations;
    ck_assert_ok(tdm_normalize(&settings, text, sizeof text - 1, &fresh));
    ck_assert_int_eq(tdm_memory_stats_get().allocations, allocations);
    tdm_normalized_deinit(&fresh);
}
END_TEST

TDM_CHECK_MAIN(test_clean_text, test_clean_text_off, test_chinese, test_accents, test_lowercase,
               test_final_sigma, test_words, test_forms, test_places, test_places_of_moved_marks,
               test_places_of_forms, test_unit_cases, test_too_long, test_many_marks,
               test_long_word, test_memory)
