/* Vocabularies and tokenizer.json: what they mean, what is refused, and that they are written as
 * they are read. */
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/tokenizer_rig.h"
#include "text/json_vocab.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

static char warning[TDM_ERROR_BYTES];

static void keep_warning(void *context, tdm_log_level level, const char *message)
{
    (void)context;
    if (level == TDM_LOG_WARNING)
        snprintf(warning, sizeof warning, "%s", message);
}

static void expect_warnings(void)
{
    warning[0] = '\0';
    tdm_log_set_sink(keep_warning, NULL);
}

static int64_t find(const tdm_tokenizer *tokenizer, const char *token)
{
    return tdm_tokenizer_find(tokenizer, token, strlen(token));
}

/* ---- vocabularies ---------------------------------------------------------------------------- */

static tdm_status open_bytes(const char *text, size_t bytes)
{
    tdm_tokenizer *tokenizer;
    tdm_status status =
        tdm_tokenizer_open(tdm_test_write("vocab.txt", text, bytes), NULL, &tokenizer);
    ck_assert(status == TDM_OK || tokenizer == NULL);
    tdm_tokenizer_close(tokenizer);
    return status;
}

static tdm_status open_text(const char *text)
{
    return open_bytes(text, strlen(text));
}

START_TEST(a_line_is_a_token)
{
    tdm_tokenizer *tokenizer =
        tdm_test_tokenizer("[UNK]\r\n a b \n\n##x\xe2\x80\xa8y\ra\nlast", NULL);
    ck_assert_int_eq(tdm_tokenizer_size(tokenizer), 5);
    ck_assert_int_eq(find(tokenizer, "[UNK]"), 0);
    ck_assert_int_eq(find(tokenizer, " a b "), 1);
    ck_assert_int_eq(find(tokenizer, ""), -1);
    ck_assert_int_eq(find(tokenizer, "##x\xe2\x80\xa8y\ra"), 3);
    ck_assert_int_eq(find(tokenizer, "last"), 4);
    ck_assert_int_eq(find(tokenizer, "y"), -1);
    size_t bytes;
    ck_assert_ptr_null(tdm_tokenizer_token(tokenizer, 2, &bytes));
    ck_assert_ptr_null(tdm_tokenizer_token(tokenizer, 5, &bytes));
    const char *token = tdm_tokenizer_token(tokenizer, 4, &bytes);
    ck_assert_uint_eq(bytes, 4);
    ck_assert_int_eq(memcmp(token, "last", 4), 0);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(line_feeds_at_the_end)
{
    static const struct {
        const char *text;
        int64_t size;
    } cases[] = {{"[UNK]", 1}, {"[UNK]\n", 1}, {"[UNK]\n\n", 2}, {"[UNK]\n\n\n", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_tokenizer *tokenizer = tdm_test_tokenizer(cases[i].text, NULL);
        ck_assert_int_eq(tdm_tokenizer_size(tokenizer), cases[i].size);
        tdm_tokenizer_close(tokenizer);
    }
}
END_TEST

START_TEST(a_byte_order_mark_is_dropped_and_told)
{
    expect_warnings();
    tdm_tokenizer *tokenizer = tdm_test_tokenizer("\xef\xbb\xbf[PAD]\n[UNK]\n\xef\xbb\xbf", NULL);
    ck_assert_ptr_nonnull(strstr(warning, "vocab.txt: begins with a byte order mark"));
    ck_assert_int_eq(find(tokenizer, "[PAD]"), 0);
    ck_assert_int_eq(find(tokenizer, "\xef\xbb\xbf"), 2);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(bad_vocabularies_name_the_line)
{
    ck_assert_fails(open_text("[UNK]\na\nb\na\n"), TDM_E_DATA,
                    "vocab.txt:4: \"a\" stands in line 2 already");
    ck_assert_fails(open_text("[UNK]\na\xc3\n"), TDM_E_DATA, "vocab.txt:2: is not valid UTF-8");
    ck_assert_fails(open_text("[UNK]\na\n\xed\xa0\x80"), TDM_E_DATA,
                    "vocab.txt:3: is not valid UTF-8");
    ck_assert_fails(open_bytes("[UNK]\na\0b\n", 10), TDM_E_DATA, "vocab.txt:2: holds a NUL byte");
    ck_assert_fails(open_text("[PAD]\na\n"), TDM_E_DATA,
                    "vocab.txt: the vocabulary of 2 tokens has no [UNK]");
    ck_assert_fails(open_text(""), TDM_E_DATA, "vocab.txt: the vocabulary of 0 tokens has no");
    ck_assert_fails(open_text("\n\n\n"), TDM_E_DATA, "of 3 tokens has no [UNK]");
    tdm_tokenizer *tokenizer;
    ck_assert_fails(tdm_tokenizer_open("nowhere.txt", NULL, &tokenizer), TDM_E_IO,
                    "nowhere.txt: no such file");
    ck_assert_fails(tdm_tokenizer_open(".", NULL, &tokenizer), TDM_E_IO, "is a folder");
}
END_TEST

START_TEST(settings_are_checked)
{
    const char *path = tdm_test_write("vocab.txt", "[UNK]\n", 6);
    tdm_tokenizer *tokenizer;
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    settings.max_word_chars = 0;
    ck_assert_fails(tdm_tokenizer_open(path, &settings, &tokenizer), TDM_E_ARG,
                    "max_word_chars is 0");
    settings = tdm_tokenizer_default_settings();
    settings.strip_accents = 2;
    ck_assert_fails(tdm_tokenizer_open(path, &settings, &tokenizer), TDM_E_ARG, "strip_accents");
    settings.strip_accents = -1;
    settings.lowercase = false;
    ck_assert_ok(tdm_tokenizer_open(path, &settings, &tokenizer));
    ck_assert_int_eq(tdm_tokenizer_get_settings(tokenizer).strip_accents, 0);
    tdm_tokenizer_close(tokenizer);
    ck_assert_ok(tdm_tokenizer_open(path, NULL, &tokenizer));
    ck_assert_int_eq(tdm_tokenizer_get_settings(tokenizer).strip_accents, 1);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(a_compressed_vocabulary_is_read)
{
    const char *path = tdm_test_path(tdm_test_folder(), "vocab.txt.gz");
    gzFile file = gzopen(path, "wb");
    ck_assert_int_eq(gzputs(file, "[UNK]\nword\n"), 11);
    gzclose(file);
    tdm_tokenizer *tokenizer;
    ck_assert_ok(tdm_tokenizer_open(path, NULL, &tokenizer));
    ck_assert_int_eq(find(tokenizer, "word"), 1);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

static void assert_saved(const tdm_tokenizer *tokenizer, const char *text, size_t bytes)
{
    char *saved;
    size_t saved_bytes;
    const char *path = tdm_test_path(tdm_test_folder(), "saved.txt");
    ck_assert_ok(tdm_tokenizer_save(tokenizer, path));
    ck_assert_ok(tdm_file_get(path, (size_t)1 << 24, &saved, &saved_bytes));
    ck_assert_uint_eq(saved_bytes, bytes);
    ck_assert_mem_eq(saved, text, bytes);
    tdm_free(saved);
}

START_TEST(a_vocabulary_is_written_as_it_was)
{
    static const char text[] = "[UNK]\n a \n\n##\xe2\x80\xa8\n\xef\xbb\xbf\n\n";
    tdm_tokenizer *tokenizer = tdm_test_tokenizer(text, NULL);
    assert_saved(tokenizer, text, sizeof text - 1);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(real_vocabularies_come_back_as_they_are)
{
    static const struct {
        const char *name;
        int64_t size, pad, unk, mask;
    } cases[] = {{"bert-base-uncased", 30522, 0, 100, 103},
                 {"bert-base-cased", 28996, 0, 100, 103},
                 {"bert-base-chinese", 21128, 0, 100, 103},
                 {"bert-base-japanese", 32000, 0, 1, 4},
                 {"bert-base-multilingual-uncased", 105879, 0, 100, 103}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_tokenizer *tokenizer = tdm_test_bert(cases[i].name, true);
        if (tokenizer == NULL)
            return;
        ck_assert_int_eq(tdm_tokenizer_size(tokenizer), cases[i].size);
        ck_assert_int_eq(find(tokenizer, "[PAD]"), cases[i].pad);
        ck_assert_int_eq(find(tokenizer, "[UNK]"), cases[i].unk);
        ck_assert_int_eq(find(tokenizer, "[MASK]"), cases[i].mask);
        char path[1024], *text;
        size_t bytes;
        snprintf(path, sizeof path, "%s/vocab/%s-vocab.txt", tdm_test_data(), cases[i].name);
        if (tdm_file_exists(path)) {
            ck_assert_ok(tdm_file_get(path, (size_t)1 << 24, &text, &bytes));
            assert_saved(tokenizer, text, bytes);
            tdm_free(text);
        }
        tdm_tokenizer_close(tokenizer);
    }
}
END_TEST

START_TEST(the_empty_token_of_the_japanese_vocabulary_keeps_its_id)
{
    tdm_tokenizer *tokenizer = tdm_test_bert("bert-base-japanese", false);
    if (tokenizer == NULL)
        return;
    size_t bytes;
    ck_assert_ptr_null(tdm_tokenizer_token(tokenizer, 28443, &bytes));
    ck_assert_ptr_nonnull(tdm_tokenizer_token(tokenizer, 28442, &bytes));
    ck_assert_ptr_nonnull(tdm_tokenizer_token(tokenizer, 28444, &bytes));
    tdm_tokenizer_close(tokenizer);
}
END_TEST

/* ---- tokenizer.json -------------------------------------------------------------------------- */

#define FLAGS                                                                                      \
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"                \
    "\"special\":true"
#define NORMALIZER                                                                                 \
    "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"              \
    "\"strip_accents\":null,\"lowercase\":true}"
#define TEMPLATE                                                                                   \
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\","            \
    "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":"       \
    "\"[SEP]\",\"type_id\":0}}],\"pair\":[{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":0}},"    \
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":" \
    "0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}},{\"SpecialToken\":{\"id\":\"[SEP]\","         \
    "\"type_id\":1}}],\"special_tokens\":{\"[CLS]\":{\"id\":\"[CLS]\",\"ids\":[2],\"tokens\":["    \
    "\"[CLS]\"]},\"[SEP]\":{\"id\":\"[SEP]\",\"ids\":[3],\"tokens\":[\"[SEP]\"]}}}"
#define JSON                                                                                       \
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["                 \
    "{\"id\":1,\"content\":\"[UNK]\"," FLAGS "}],\"normalizer\":" NORMALIZER                       \
    ",\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":" TEMPLATE              \
    ",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},\"model\":{"         \
    "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","         \
    "\"max_input_chars_per_word\":100,\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3," \
    "\"[MASK]\":4,\"a\":5,\"##b\":6}}}"

/* JSON with the first `from` replaced by `to`, opened. */
static tdm_status open_changed(const char *from, const char *to, tdm_tokenizer **out)
{
    static char text[16384];
    const char *at = strstr(JSON, from);
    ck_assert_msg(at != NULL, "the file has no %s", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - JSON), JSON, to, at + strlen(from));
    return tdm_tokenizer_open(tdm_test_write("tokenizer.json", text, strlen(text)), NULL, out);
}

static tdm_tokenizer *changed(const char *from, const char *to)
{
    tdm_tokenizer *tokenizer;
    ck_assert_ok(open_changed(from, to, &tokenizer));
    return tokenizer;
}

/* Saved as JSON and opened again. */
static tdm_tokenizer *saved_again(tdm_tokenizer *tokenizer)
{
    const char *path = tdm_test_path(tdm_test_folder(), "again.json");
    ck_assert_ok(tdm_tokenizer_save(tokenizer, path));
    tdm_tokenizer_close(tokenizer);
    ck_assert_ok(tdm_tokenizer_open(path, NULL, &tokenizer));
    return tokenizer;
}

START_TEST(the_fields_of_a_tokenizer_json_hold)
{
    tdm_tokenizer *tokenizer = changed("\"[MASK]\":4", "\"\\ud83d\\ude00\\u2028\":4");
    tdm_tokenizer_settings settings = tdm_tokenizer_get_settings(tokenizer);
    tdm_tokenizer_settings expected = tdm_tokenizer_default_settings();
    expected.strip_accents = 1;
    ck_assert_int_eq(settings.unicode, expected.unicode);
    ck_assert_int_eq(settings.form, TDM_FORM_NONE);
    ck_assert(settings.clean_text && settings.handle_chinese_chars && settings.lowercase);
    ck_assert_int_eq(settings.strip_accents, 1);
    ck_assert_int_eq(settings.max_word_chars, 100);
    ck_assert(settings.cleanup);
    ck_assert_int_eq(tdm_tokenizer_size(tokenizer), 7);
    ck_assert_int_eq(find(tokenizer, "\xf0\x9f\x98\x80\xe2\x80\xa8"), 4);
    ck_assert_int_eq(tokenizer->specials[TDM_SPECIAL_CLS], 2);
    ck_assert_int_eq(tokenizer->specials[TDM_SPECIAL_SEP], 3);
    ck_assert_int_eq(tokenizer->specials[TDM_SPECIAL_MASK], -1);
    ck_assert_int_eq(tokenizer->added_count, 1);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

typedef struct change {
    const char *from, *to;
    tdm_tokenizer_settings settings;
} change;

START_TEST(settings_come_from_the_file_and_go_into_it)
{
    static const change changes[] = {
        {"\"clean_text\":true", "\"clean_text\":false", {0, 0, false, true, true, 1, 100, true}},
        {"_chars\":true", "_chars\":false", {0, 0, true, false, true, 1, 100, true}},
        {"\"lowercase\":true", "\"lowercase\":false", {0, 0, true, true, false, 0, 100, true}},
        {"_accents\":null", "_accents\":false", {0, 0, true, true, true, 0, 100, true}},
        {"_accents\":null,\"lowercase\":true",
         "_accents\":true,\"lowercase\":false",
         {0, 0, true, true, false, 1, 100, true}},
        {"_word\":100", "_word\":7", {0, 0, true, true, true, 1, 7, true}},
        {"\"cleanup\":true", "\"cleanup\":false", {0, 0, true, true, true, 1, 100, false}},
        {"\"lowercase\":true",
         "\"lowercase\":true,\"tandem\":{\"unicode\":\"google\"}",
         {TDM_UNICODE_GOOGLE, 0, true, true, true, 1, 100, true}},
        {"\"lowercase\":true",
         "\"lowercase\":true,\"tandem\":{\"unicode\":\"unicode\"}",
         {TDM_UNICODE_CURRENT, 0, true, true, true, 1, 100, true}},
        {NORMALIZER, "null", {0, 0, false, false, false, 0, 100, true}},
        {NORMALIZER,
         "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"}," NORMALIZER "]}",
         {0, TDM_FORM_NFKC, true, true, true, 1, 100, true}},
        {NORMALIZER,
         "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}," NORMALIZER "]}",
         {0, TDM_FORM_NFC, true, true, true, 1, 100, true}},
        {NORMALIZER,
         "{\"type\":\"Sequence\",\"normalizers\":[" NORMALIZER "]}",
         {0, 0, true, true, true, 1, 100, true}},
        {"\"max_input_chars_per_word\":100,", "", {0, 0, true, true, true, 1, 100, true}},
        {"\"type\":\"WordPiece\",\"unk", "\"unk", {0, 0, true, true, true, 1, 100, true}},
        {"\"version\":\"1.0\"", "\"unknown\":[{}]", {0, 0, true, true, true, 1, 100, true}},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tdm_tokenizer *tokenizer = changed(changes[i].from, changes[i].to);
        for (int again = 0; again < 2; again++) {
            tdm_tokenizer_settings got = tdm_tokenizer_get_settings(tokenizer);
            const tdm_tokenizer_settings *wanted = &changes[i].settings;
            ck_assert_msg(got.unicode == wanted->unicode && got.form == wanted->form &&
                              got.clean_text == wanted->clean_text &&
                              got.handle_chinese_chars == wanted->handle_chinese_chars &&
                              got.lowercase == wanted->lowercase &&
                              got.strip_accents == wanted->strip_accents &&
                              got.max_word_chars == wanted->max_word_chars &&
                              got.cleanup == wanted->cleanup,
                          "change %zu to %s, read %d times", i, changes[i].to, again + 1);
            tokenizer = saved_again(tokenizer);
        }
        tdm_tokenizer_close(tokenizer);
    }
}
END_TEST

static void assert_refused(const char *from, const char *to, tdm_status code, const char *message)
{
    tdm_tokenizer *tokenizer;
    ck_assert_fails(open_changed(from, to, &tokenizer), code, message);
    ck_assert_ptr_null(tokenizer);
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "tokenizer.json:"));
}

START_TEST(other_kinds_of_tokenizer_are_refused_by_name)
{
    static const char *const cases[][3] = {
        {"\"type\":\"WordPiece\",\"unk", "\"type\":\"BPE\",\"unk", "the model is BPE"},
        {"\"type\":\"WordPiece\",\"unk", "\"type\":\"WordLevel\",\"unk", "the model is WordLevel"},
        {"\"type\":\"WordPiece\",\"unk", "\"merges\":[],\"unk", "the model is BPE"},
        {"\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
         "\"max_input_chars_per_word\":100,\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,"
         "\"[SEP]\":3,\"[MASK]\":4,\"a\":5,\"##b\":6}",
         "\"vocab\":[[\"a\",0.5]]", "the model is Unigram"},
        {"\"continuing_subword_prefix\":\"##\"", "\"continuing_subword_prefix\":\"@@\"",
         "model.continuing_subword_prefix is @@"},
        {NORMALIZER, "{\"type\":\"Lowercase\"}", "normalizer is Lowercase"},
        {NORMALIZER, "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"}," NORMALIZER "]}",
         "normalizer is another sequence"},
        {NORMALIZER,
         "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Strip\"}]}",
         "a normalizer of the sequence is Strip"},
        {"{\"type\":\"BertPreTokenizer\"}", "{\"type\":\"ByteLevel\"}",
         "pre_tokenizer is ByteLevel"},
        {"{\"type\":\"BertPreTokenizer\"}", "null", "pre_tokenizer is nothing"},
        {TEMPLATE, "{\"type\":\"RobertaProcessing\"}", "post_processor is RobertaProcessing"},
        {"\"id\":\"B\",\"type_id\":1", "\"id\":\"B\",\"type_id\":0",
         "the template of post_processor is another one"},
        {"{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},", "", "the template of post_processor"},
        {"\"ids\":[2],\"tokens\":[\"[CLS]\"]", "\"ids\":[2,5],\"tokens\":[\"[CLS]\",\"a\"]",
         "of several tokens"},
        {"{\"type\":\"WordPiece\",\"prefix\"", "{\"type\":\"ByteLevel\",\"prefix\"",
         "decoder is ByteLevel"},
        {"\"prefix\":\"##\"", "\"prefix\":\"_\"", "decoder.prefix is _"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i][0], cases[i][1], TDM_E_FORMAT, cases[i][2]);
    assert_refused("\"1.0\"", "\"2.0\"", TDM_E_VERSION, "version is 2.0");
    assert_refused("\"1.0\"", "1", TDM_E_VERSION, "version is no text");
}
END_TEST

START_TEST(damaged_fields_are_named)
{
    static const char *const cases[][3] = {
        {"\"unk_token\":\"[UNK]\",", "", "model.unk_token is missing"},
        {"\"vocab\":{", "\"words\":{", "model.vocab is missing"},
        {"\"model\":", "\"models\":", "model is missing"},
        {"\"a\":5", "\"a\":5.5", "the id of \"a\" in model.vocab"},
        {"\"a\":5", "\"a\":-5", "the id of \"a\" in model.vocab"},
        {"\"a\":5", "\"a\":4294967296", "the id of \"a\" in model.vocab"},
        {"\"a\":5", "\"a\":4", "gives id 4 to \"[MASK]\" and to \"a\""},
        {"\"a\":5", "\"##b\":5", "duplicate object key"},
        {"\"a\":5", "\"a\\u0000\":5", "NUL byte"},
        {"_word\":100", "_word\":\"all\"", "model.max_input_chars_per_word is not a whole number"},
        {"\"clean_text\":true,", "", "normalizer.clean_text is not true or false"},
        {"\"strip_accents\":null", "\"strip_accents\":1", "normalizer.strip_accents is not"},
        {"\"lowercase\":true", "\"lowercase\":true,\"tandem\":{\"unicode\":\"x\"}",
         "normalizer.tandem.unicode is not"},
        {"\"content\":\"[UNK]\",", "", "added_tokens has an entry without content"},
        {"{\"id\":1,\"content\"", "{\"content\"", "an id of added_tokens"},
        {"\"ids\":[2]", "\"ids\":[5]", "\"[CLS]\" with id 5, the vocabulary with id 2"},
        {"\"cleanup\":true", "\"cleanup\":0", "decoder.cleanup is not true or false"},
        {"\"truncation\":null", "\"truncation\":{}", "truncation.max_length is not"},
        {"\"truncation\":null", "\"truncation\":{\"max_length\":8,\"stride\":0,\"strategy\":\"x\"}",
         "truncation.strategy is not"},
        {"\"padding\":null", "\"padding\":{}", "padding.strategy is not"},
        {"\"padding\":null",
         "\"padding\":{\"strategy\":\"BatchLongest\",\"direction\":\"Right\",\"pad_id\":5,"
         "\"pad_type_id\":0,\"pad_token\":\"[PAD]\"}",
         "\"[PAD]\" with id 5"},
        {"\"unk_token\":\"[UNK]\"", "\"unk_token\":\"z\"", "the vocabulary of 7 tokens has no z"},
        {"_word\":100", "_word\":0", "max_word_chars is 0"},
        {"\"a\":5,", "\"a\":5,,", "is not JSON"},
    };
    tdm_tokenizer *tokenizer;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_status status = open_changed(cases[i][0], cases[i][1], &tokenizer);
        ck_assert_msg(status != TDM_OK && strstr(tdm_error_message(), cases[i][2]) != NULL,
                      "%s: status %d: %s", cases[i][1], (int)status, tdm_error_message());
        ck_assert_ptr_nonnull(strstr(tdm_error_message(), "tokenizer.json:"));
    }
}
END_TEST

static bool take(const char *json, tdm_vocabulary *vocabulary, size_t *begin, size_t *end)
{
    bool taken;
    ck_assert_ok(tdm_json_vocab_take(json, strlen(json), vocabulary, begin, end, &taken));
    return taken;
}

/* The shortcut for the vocabulary takes what is in order, and leaves the rest to jansson. */
START_TEST(a_vocabulary_is_read_by_itself)
{
    static const char json[] =
        "{ \"a\" : [{\"model\":{\"vocab\":{\"no\":0}}}, \"}\", -1.5e3, true] ,\n\"\\\"model\":{},"
        "\"model\" : {\"x\":\"\\\\\",\"vocab\"\t: {\"\\u00e9\\/\\n\\ud83d\\ude00\\\"\\\\\":0 ,\n"
        "\"b\" :1, \"\xc3\xa9\":12}},\"z\":0}";
    tdm_vocabulary vocabulary = {0};
    size_t begin, end;
    ck_assert(take(json, &vocabulary, &begin, &end));
    ck_assert_int_eq(vocabulary.size, 13);
    static const char odd[] = "\xc3\xa9/\n\xf0\x9f\x98\x80\"\\";
    ck_assert_int_eq(tdm_vocabulary_find(&vocabulary, odd, sizeof odd - 1), 0);
    ck_assert_int_eq(tdm_vocabulary_find(&vocabulary, "\xc3\xa9", 2), 12);
    ck_assert_int_eq(json[begin], '{');
    ck_assert_str_eq(json + end, "},\"z\":0}");
    tdm_vocabulary_deinit(&vocabulary);
    static const char *const others[] = {
        "\"a\":01",        "\"a\":1.0",
        "\"a\":-1",        "\"a\":16777216",
        "\"a\":null",      "\"\":1",
        "\"a\":1,\"a\":2", "\"a\":1,\"b\":1",
        "\"a\":1,",        "\"a\" 1",
        "\"\\u0000\":1",   "\"\\ud83d\":1",
        "\"\\ude00\":1",   "\"\\ud83d\\n\":1",
        "\"\\x\":1",       "\"\\u12g4\":1",
        "\"\n\":1",        "\"\xff\":1",
        "\"a\":1 \"b\":2", "",
        "\"a\":1,\"b\"",   "\"a\":99999999999999999999",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"model\":{\"vocab\":{%s}}}", others[i]);
        ck_assert_msg(!take(text, &vocabulary, &begin, &end), "%s", text);
        ck_assert_int_eq(vocabulary.size, 0);
        ck_assert_ptr_null(vocabulary.text);
    }
    for (size_t bytes = 0; bytes < sizeof json - 12; bytes++) {
        bool taken;
        ck_assert_ok(tdm_json_vocab_take(json, bytes, &vocabulary, &begin, &end, &taken));
        ck_assert(!taken);
    }
}
END_TEST

START_TEST(settings_of_the_caller_do_not_go_with_a_tokenizer_json)
{
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    tdm_tokenizer *tokenizer;
    const char *path = tdm_test_write("tokenizer.json", JSON, strlen(JSON));
    ck_assert_fails(tdm_tokenizer_open(path, &settings, &tokenizer), TDM_E_ARG,
                    "has settings of its own");
}
END_TEST

START_TEST(every_part_of_a_file_is_an_error)
{
    for (size_t bytes = 1; bytes < strlen(JSON); bytes++) {
        tdm_tokenizer *tokenizer;
        char name[] = "tokenizer.json";
        const char *path = tdm_test_write(name, JSON, bytes);
        ck_assert_int_ne(tdm_tokenizer_open(path, NULL, &tokenizer), TDM_OK);
        ck_assert_ptr_null(tokenizer);
        bytes += bytes / 50;
    }
}
END_TEST

START_TEST(deep_nesting_is_an_error)
{
    enum { DEPTH = 100000 };
    static char text[2 * DEPTH + 32];
    strcpy(text, "{\"version\":\"1.0\",\"x\":");
    memset(text + strlen(text), '[', DEPTH);
    tdm_tokenizer *tokenizer;
    const char *path = tdm_test_write("tokenizer.json", text, strlen(text));
    ck_assert_fails(tdm_tokenizer_open(path, NULL, &tokenizer), TDM_E_FORMAT,
                    "maximum parsing depth");
}
END_TEST

/* ---- added tokens, post-processor, truncation and padding ------------------------------------ */

static const tdm_added_token *added_token(const tdm_tokenizer *tokenizer, const char *content)
{
    for (int64_t i = 0; i < tokenizer->added_count; i++) {
        if (strcmp(tokenizer->added[i].content, content) == 0)
            return &tokenizer->added[i];
    }
    ck_abort_msg("no added token %s", content);
}

START_TEST(added_tokens_keep_flags_and_ids)
{
    expect_warnings();
    tdm_tokenizer *tokenizer =
        changed("\"added_tokens\":[",
                "\"added_tokens\":[{\"id\":9,\"content\":\"<x>\",\"single_word\":true,"
                "\"lstrip\":true,\"rstrip\":true,\"normalized\":true,\"special\":false},"
                "{\"id\":7,\"content\":\"a\",\"special\":true},{\"id\":8,\"content\":\"new\"},");
    ck_assert_ptr_nonnull(strstr(warning, "the added token \"a\" has id 5 in the model"));
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(tdm_tokenizer_size(tokenizer), 10);
        const tdm_added_token *x = added_token(tokenizer, "<x>");
        ck_assert(x->single_word && x->lstrip && x->rstrip && x->normalized && !x->special);
        ck_assert(x->beside && x->id == 9);
        const tdm_added_token *a = added_token(tokenizer, "a");
        ck_assert(a->special && !a->normalized && !a->beside && a->id == 5);
        const tdm_added_token *new_token = added_token(tokenizer, "new");
        ck_assert(!new_token->special && new_token->normalized && new_token->id == 8);
        ck_assert_int_eq(find(tokenizer, "<x>"), 9);
        tokenizer = saved_again(tokenizer);
    }
    tdm_tokenizer_close(tokenizer);
    assert_refused("\"added_tokens\":[", "\"added_tokens\":[{\"id\":5,\"content\":\"y\"},",
                   TDM_E_FORMAT, "the added token \"y\" has id 5, which is that of \"a\"");
    assert_refused("\"added_tokens\":[",
                   "\"added_tokens\":[{\"id\":8,\"content\":\"y\"},{\"id\":8,\"content\":\"z\"},",
                   TDM_E_FORMAT, "\"z\" or its id 8 twice");
    assert_refused("\"added_tokens\":[",
                   "\"added_tokens\":[{\"id\":8,\"content\":\"y\"},{\"id\":9,\"content\":\"y\"},",
                   TDM_E_FORMAT, "\"y\" or its id 9 twice");
}
END_TEST

START_TEST(special_tokens_come_from_the_post_processor)
{
    tdm_tokenizer *tokenizer =
        changed(TEMPLATE, "{\"type\":\"BertProcessing\",\"sep\":[\"##b\",6],\"cls\":[\"a\",5]}");
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(tokenizer->specials[TDM_SPECIAL_CLS], 5);
        ck_assert_int_eq(tokenizer->specials[TDM_SPECIAL_SEP], 6);
        ck_assert_int_eq(tokenizer->specials[TDM_SPECIAL_UNK], 1);
        ck_assert(!tokenizer->no_template);
        tokenizer = saved_again(tokenizer);
    }
    tdm_tokenizer_close(tokenizer);
    tokenizer = changed(TEMPLATE, "null");
    for (int again = 0; again < 2; again++) {
        ck_assert(tokenizer->no_template);
        ck_assert_int_eq(tokenizer->specials[TDM_SPECIAL_CLS], 2);
        tokenizer = saved_again(tokenizer);
    }
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(truncation_and_padding_are_kept)
{
    tdm_tokenizer *tokenizer = changed(
        "\"truncation\":null,\"padding\":null",
        "\"truncation\":{\"direction\":\"Left\",\"max_length\":12,\"strategy\":\"OnlySecond\","
        "\"stride\":3},\"padding\":{\"strategy\":{\"Fixed\":9},\"direction\":\"Left\","
        "\"pad_to_multiple_of\":4,\"pad_id\":5,\"pad_type_id\":1,\"pad_token\":\"a\"}");
    for (int again = 0; again < 2; again++) {
        const tdm_encode_options *options = &tokenizer->options;
        ck_assert(options->truncate_left && options->pad_left);
        ck_assert_int_eq(options->max_length, 12);
        ck_assert_int_eq(options->stride, 3);
        ck_assert_int_eq(options->truncation, TDM_TRUNCATE_ONLY_SECOND);
        ck_assert_int_eq(options->padding, TDM_PADDING_FIXED);
        ck_assert_int_eq(options->pad_length, 9);
        ck_assert_int_eq(options->pad_multiple, 4);
        ck_assert_int_eq(tokenizer->specials[TDM_SPECIAL_PAD], 5);
        ck_assert_int_eq(tokenizer->pad_type, 1);
        tokenizer = saved_again(tokenizer);
    }
    tdm_tokenizer_close(tokenizer);
    tokenizer = changed("\"padding\":null",
                        "\"padding\":{\"strategy\":\"BatchLongest\",\"direction\":\"Right\","
                        "\"pad_to_multiple_of\":null,\"pad_id\":0,\"pad_type_id\":0,"
                        "\"pad_token\":\"[PAD]\"}");
    tokenizer = saved_again(tokenizer);
    ck_assert_int_eq(tokenizer->options.padding, TDM_PADDING_LONGEST);
    ck_assert_int_eq(tokenizer->options.max_length, -1);
    ck_assert(!tokenizer->options.pad_left);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

/* ---- from one form to the other -------------------------------------------------------------- */

START_TEST(the_file_of_hugging_face_has_the_same_vocabulary)
{
    tdm_tokenizer *plain = tdm_test_bert("bert-base-uncased", true);
    if (plain == NULL)
        return;
    char path[1024];
    snprintf(path, sizeof path, "%s/vocab/bert-base-uncased-tokenizer.json.gz", tdm_test_data());
    tdm_tokenizer *tokenizer;
    ck_assert_ok(tdm_tokenizer_open(path, NULL, &tokenizer));
    tokenizer = saved_again(tokenizer);
    char *text;
    size_t bytes;
    snprintf(path, sizeof path, "%s/vocab/bert-base-uncased-vocab.txt", tdm_test_data());
    ck_assert_ok(tdm_file_get(path, (size_t)1 << 24, &text, &bytes));
    assert_saved(tokenizer, text, bytes);
    ck_assert_mem_eq(tokenizer->specials, plain->specials, sizeof plain->specials);
    ck_assert_int_eq(tokenizer->added_count, 5);
    tdm_free(text);
    tdm_tokenizer_close(plain);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(tokens_that_a_line_cannot_hold_are_not_written)
{
    static const char *const cases[][2] = {{"a\\nb", "a line feed"},
                                           {"a\\r", "a carriage return at its end"}};
    for (size_t i = 0; i < 2; i++) {
        char token[32];
        snprintf(token, sizeof token, "\"%s\":5", cases[i][0]);
        tdm_tokenizer *tokenizer = changed("\"a\":5", token);
        const char *path = tdm_test_path(tdm_test_folder(), "vocab.txt");
        ck_assert_fails(tdm_tokenizer_save(tokenizer, path), TDM_E_ARG, cases[i][1]);
        ck_assert(!tdm_file_exists(path));
        tokenizer = saved_again(tokenizer);
        ck_assert_int_eq(tdm_tokenizer_size(tokenizer), 7);
        tdm_tokenizer_close(tokenizer);
    }
    tdm_tokenizer *tokenizer = changed("\"[PAD]\":0", "\"\\ufeff\":0");
    ck_assert_fails(tdm_tokenizer_save(tokenizer, tdm_test_path(tdm_test_folder(), "v.txt")),
                    TDM_E_ARG, "a byte order mark at its front");
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(opening_survives_every_failed_allocation)
{
    static const char *const names[] = {"tokenizer.json", "vocab.txt"};
    static const char *const texts[] = {JSON, "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n"};
    for (int which = 0; which < 2; which++) {
        const char *path = tdm_test_write(names[which], texts[which], strlen(texts[which]));
        int64_t live = tdm_memory_stats_get().live_bytes;
        tdm_status status = TDM_E_NOMEM;
        for (int64_t n = 1; status != TDM_OK; n++) {
            tdm_tokenizer *tokenizer;
            tdm_memory_fail_at(n, true);
            status = tdm_tokenizer_open(path, NULL, &tokenizer);
            tdm_memory_fail_at(0, false);
            ck_assert(status == TDM_OK || status == TDM_E_NOMEM);
            tdm_tokenizer_close(tokenizer);
            ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
            ck_assert_int_lt(n, 1000);
        }
    }
}
END_TEST

TDM_CHECK_MAIN(a_line_is_a_token, line_feeds_at_the_end, a_byte_order_mark_is_dropped_and_told,
               bad_vocabularies_name_the_line, settings_are_checked,
               a_compressed_vocabulary_is_read, a_vocabulary_is_written_as_it_was,
               real_vocabularies_come_back_as_they_are,
               the_empty_token_of_the_japanese_vocabulary_keeps_its_id,
               the_fields_of_a_tokenizer_json_hold, settings_come_from_the_file_and_go_into_it,
               other_kinds_of_tokenizer_are_refused_by_name, damaged_fields_are_named,
               a_vocabulary_is_read_by_itself,
               settings_of_the_caller_do_not_go_with_a_tokenizer_json,
               every_part_of_a_file_is_an_error, deep_nesting_is_an_error,
               added_tokens_keep_flags_and_ids, special_tokens_come_from_the_post_processor,
               truncation_and_padding_are_kept, the_file_of_hugging_face_has_the_same_vocabulary,
               tokens_that_a_line_cannot_hold_are_not_written,
               opening_survives_every_failed_allocation)
