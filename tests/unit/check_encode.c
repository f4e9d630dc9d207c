/* Encodings against Hugging Face's (tests/golden/text/encodings.json, and files of the test data),
 * and what they do not settle. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/tokenizer_rig.h"
#include "text/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, &error);
    ck_assert_msg(json != NULL, "%s:%d: %s", path, error.line, error.text);
    return json;
}

static json_t *load_test_data(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/golden/%s", tdm_test_data(), name);
    return load(path);
}

static tdm_text_input input_of(const json_t *text, const json_t *pair)
{
    return (tdm_text_input){.text = json_string_value(text),
                            .bytes = json_string_length(text),
                            .pair = json_string_value(pair),
                            .pair_bytes = json_string_length(pair)};
}

static tdm_text_input plain_input(const char *text)
{
    return (tdm_text_input){.text = text, .bytes = strlen(text)};
}

static bool is_set(const json_t *options, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(options, key));
    return text != NULL && strcmp(text, value) == 0;
}

/* ---- one encoding against another's ---------------------------------------------------------- */

static void assert_array(const json_t *expected, const char *key, int64_t i, int64_t got,
                         const char *what)
{
    const json_t *array = json_object_get(expected, key);
    json_int_t value = json_integer_value(json_array_get(array, (size_t)i));
    ck_assert_msg(value == got, "%s: %s[%lld] is %lld, expected %lld", what, key, (long long)i,
                  (long long)got, (long long)value);
}

static uint32_t chars_before(const char *text, size_t bytes, size_t end)
{
    uint32_t count = 0, code_point;
    bool valid;
    for (size_t at = 0; at < end; count++)
        at += (size_t)tdm_utf8_read(text, bytes, at, &code_point, &valid);
    return count;
}

/* Bytes are the same places as code points. */
static void assert_offsets(const tdm_encoding *got, const tdm_text_input *input, int64_t i,
                           const char *what)
{
    tdm_text_range bytes = got->byte_offsets[i], chars = got->char_offsets[i];
    if (got->sequences[i] < 0)
        return;
    const char *text = got->sequences[i] == 0 ? input->text : input->pair;
    size_t size = got->sequences[i] == 0 ? input->bytes : input->pair_bytes;
    ck_assert_msg(bytes.begin <= bytes.end && bytes.end <= size, "%s: bytes %u,%u of %zu", what,
                  bytes.begin, bytes.end, size);
    ck_assert_msg(chars_before(text, size, bytes.begin) == chars.begin &&
                      chars_before(text, size, bytes.end) == chars.end,
                  "%s: token %lld: bytes %u,%u are not chars %u,%u", what, (long long)i,
                  bytes.begin, bytes.end, chars.begin, chars.end);
}

static void assert_encoding(const json_t *expected, const tdm_encoding *got,
                            const tdm_text_input *input, const char *what)
{
    ck_assert_msg((size_t)got->count == json_array_size(json_object_get(expected, "ids")),
                  "%s: %lld tokens, expected %zu", what, (long long)got->count,
                  json_array_size(json_object_get(expected, "ids")));
    for (int64_t i = 0; i < got->count; i++) {
        assert_array(expected, "ids", i, got->ids[i], what);
        assert_array(expected, "types", i, got->type_ids[i], what);
        assert_array(expected, "attention", i, got->attention[i], what);
        assert_array(expected, "special", i, got->special[i], what);
        assert_array(expected, "sequences", i, got->sequences[i], what);
        assert_array(expected, "words", i, got->words[i], what);
        if (got->char_offsets == NULL)
            continue;
        assert_offsets(got, input, i, what);
        if (json_object_get(expected, "offsets") == NULL)
            continue;
        const json_t *offsets = json_array_get(json_object_get(expected, "offsets"), (size_t)i);
        json_int_t begin = json_integer_value(json_array_get(offsets, 0));
        json_int_t end = json_integer_value(json_array_get(offsets, 1));
        ck_assert_msg(begin == got->char_offsets[i].begin && end == got->char_offsets[i].end,
                      "%s: token %lld: chars %u,%u, expected %lld,%lld", what, (long long)i,
                      got->char_offsets[i].begin, got->char_offsets[i].end, (long long)begin,
                      (long long)end);
    }
}

/* ---- cases of our own golden file ------------------------------------------------------------ */

#define MOST_INPUTS     8
#define MOST_TOKENIZERS 8

typedef struct golden {
    json_t *json;
    tdm_tokenizer *tokenizers[MOST_TOKENIZERS];
    size_t count;
} golden;

static void open_golden(golden *out)
{
    out->json = load(TDM_SOURCE_DIR "/tests/golden/text/encodings.json");
    const json_t *files = json_object_get(out->json, "tokenizers");
    out->count = json_array_size(files);
    ck_assert_uint_le(out->count, MOST_TOKENIZERS);
    for (size_t i = 0; i < out->count; i++) {
        char *text = json_dumps(json_array_get(files, i), 0);
        const char *path = tdm_test_write("tokenizer.json", text, strlen(text));
        ck_assert_ok(tdm_tokenizer_open(path, NULL, &out->tokenizers[i]));
        free(text);
    }
}

static void close_golden(golden *file)
{
    for (size_t i = 0; i < file->count; i++)
        tdm_tokenizer_close(file->tokenizers[i]);
    json_decref(file->json);
}

static tdm_encode_options golden_options(const json_t *json)
{
    tdm_encode_options options = tdm_encode_default_options();
    options.add_special_tokens = json_is_true(json_object_get(json, "special"));
    if (json_is_true(json_object_get(json, "plain")))
        options.specials = TDM_SPECIALS_PLAIN;
    if (json_object_get(json, "max_length") != NULL) {
        options.max_length = json_integer_value(json_object_get(json, "max_length"));
        options.stride = json_integer_value(json_object_get(json, "stride"));
        options.overflow = true;
        options.truncate_left = is_set(json, "direction", "left");
        if (is_set(json, "strategy", "only_first"))
            options.truncation = TDM_TRUNCATE_ONLY_FIRST;
        if (is_set(json, "strategy", "only_second"))
            options.truncation = TDM_TRUNCATE_ONLY_SECOND;
    }
    const json_t *length = json_object_get(json, "pad_length");
    if (length != NULL)
        options.padding = json_is_null(length) ? TDM_PADDING_LONGEST : TDM_PADDING_FIXED;
    options.pad_length = json_integer_value(length);
    options.pad_left = is_set(json, "pad_direction", "left");
    options.pad_multiple = json_integer_value(json_object_get(json, "multiple"));
    return options;
}

static void check_golden_case(const golden *file, size_t number, tdm_encoder *const *encoders,
                              bool offsets)
{
    const json_t *json = json_array_get(json_object_get(file->json, "cases"), number);
    const json_t *inputs_json = json_object_get(json, "inputs");
    const json_t *expected = json_object_get(json, "expected");
    size_t count = json_array_size(inputs_json);
    tdm_text_input inputs[MOST_INPUTS];
    ck_assert_uint_le(count, MOST_INPUTS);
    for (size_t i = 0; i < count; i++) {
        const json_t *input = json_array_get(inputs_json, i);
        inputs[i] = input_of(json_array_get(input, 0), json_array_get(input, 1));
    }
    tdm_encode_options options = golden_options(json_object_get(json, "options"));
    options.offsets = offsets;
    tdm_encodings *encodings;
    ck_assert_ok(tdm_encodings_create(&encodings));
    size_t which = (size_t)json_integer_value(json_object_get(json, "tokenizer"));
    tdm_status status =
        tdm_encoder_encode(encoders[which], inputs, (int64_t)count, &options, encodings);
    if (json_is_string(expected)) {
        ck_assert_msg(status != TDM_OK, "case %zu: expected %s", number,
                      json_string_value(expected));
    } else {
        ck_assert_msg(status == TDM_OK, "case %zu: %s", number, tdm_error_message());
        int64_t at = 0;
        for (size_t i = 0; i < count; i++) {
            const json_t *parts = json_array_get(expected, i);
            for (size_t p = 0; p < json_array_size(parts); p++, at++) {
                char what[64];
                snprintf(what, sizeof what, "case %zu, input %zu, part %zu", number, i, p);
                ck_assert_msg(at < tdm_encodings_count(encodings), "%s is missing", what);
                tdm_encoding got = tdm_encodings_get(encodings, at);
                ck_assert_msg(got.input == (int64_t)i, "%s is of input %lld", what,
                              (long long)got.input);
                assert_encoding(json_array_get(parts, p), &got, &inputs[i], what);
            }
        }
        ck_assert_int_eq(at, tdm_encodings_count(encodings));
    }
    tdm_encodings_destroy(encodings);
}

static void check_golden_cases(bool offsets)
{
    golden file;
    open_golden(&file);
    tdm_encoder *encoders[MOST_TOKENIZERS];
    for (size_t i = 0; i < file.count; i++)
        ck_assert_ok(tdm_encoder_create(file.tokenizers[i], i == 1 ? 2 : 1, &encoders[i]));
    size_t count = json_array_size(json_object_get(file.json, "cases"));
    ck_assert_uint_gt(count, 100);
    for (size_t i = 0; i < count; i++)
        check_golden_case(&file, i, encoders, offsets);
    for (size_t i = 0; i < file.count; i++)
        tdm_encoder_destroy(encoders[i]);
    close_golden(&file);
}

START_TEST(encodings_are_those_of_hugging_face)
{
    check_golden_cases(true);
}
END_TEST

START_TEST(encodings_without_offsets_are_the_same)
{
    check_golden_cases(false);
}
END_TEST

START_TEST(files_of_hugging_face_are_written_as_they_are)
{
    golden file;
    open_golden(&file);
    for (size_t i = 0; i < file.count; i++) {
        const char *path = tdm_test_path(tdm_test_folder(), "saved.json");
        ck_assert_ok(tdm_tokenizer_save(file.tokenizers[i], path));
        json_t *saved = load(path);
        ck_assert_msg(
            json_equal(saved, json_array_get(json_object_get(file.json, "tokenizers"), i)),
            "tokenizer %zu", i);
        json_decref(saved);
    }
    close_golden(&file);
}
END_TEST

START_TEST(decoded_texts_are_those_of_hugging_face)
{
    golden file;
    open_golden(&file);
    const json_t *cases = json_object_get(file.json, "decoded");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *json = json_array_get(cases, i);
        const json_t *list = json_object_get(json, "ids");
        size_t which = (size_t)json_integer_value(json_object_get(json, "tokenizer"));
        uint32_t ids[64];
        char *text;
        for (size_t k = 0; k < json_array_size(list); k++)
            ids[k] = (uint32_t)json_integer_value(json_array_get(list, k));
        ck_assert_ok(tdm_tokenizer_decode(file.tokenizers[which], ids,
                                          (int64_t)json_array_size(list),
                                          json_is_true(json_object_get(json, "skip")), &text));
        ck_assert_str_eq(text, json_string_value(json_object_get(json, "text")));
        tdm_string_free(text);
    }
    close_golden(&file);
}
END_TEST

/* ---- golden files of the test data ----------------------------------------------------------- */

typedef struct bench_tokenizer {
    char name[64];
    bool lowercase;
    tdm_tokenizer *tokenizer;
    tdm_encoder *encoder;
} bench_tokenizer;

static bench_tokenizer *tokenizer_of(bench_tokenizer *list, const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "vocab"));
    bool lowercase = json_is_true(json_object_get(json, "do_lower_case"));
    bench_tokenizer *entry = list;
    while (entry->tokenizer != NULL &&
           (strcmp(entry->name, name) != 0 || entry->lowercase != lowercase))
        entry++;
    if (entry->tokenizer == NULL) {
        snprintf(entry->name, sizeof entry->name, "%s", name);
        entry->lowercase = lowercase;
        entry->tokenizer = tdm_test_bert(name, lowercase);
        ck_assert_ok(tdm_encoder_create(entry->tokenizer, 1, &entry->encoder));
    }
    return entry;
}

static void close_list(bench_tokenizer *list)
{
    for (; list->tokenizer != NULL; list++) {
        tdm_encoder_destroy(list->encoder);
        tdm_tokenizer_close(list->tokenizer);
    }
}

static void assert_ids(const json_t *expected, const tdm_encodings *encodings, const char *what)
{
    tdm_encoding got = tdm_encodings_get(encodings, 0);
    ck_assert_msg((size_t)got.count == json_array_size(expected), "%s: %lld ids, not %zu", what,
                  (long long)got.count, json_array_size(expected));
    for (int64_t i = 0; i < got.count; i++)
        ck_assert_msg(json_integer_value(json_array_get(expected, (size_t)i)) == got.ids[i],
                      "%s: id %lld", what, (long long)i);
}

static void check_test_data(const char *name, const json_t *cases, bool special,
                            const json_t *defaults)
{
    bench_tokenizer list[16] = {{.name = ""}};
    tdm_encodings *encodings;
    ck_assert_ok(tdm_encodings_create(&encodings));
    tdm_encode_options options = tdm_encode_default_options();
    options.add_special_tokens = special;
    ck_assert_uint_gt(json_array_size(cases), 0);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *json = json_array_get(cases, i);
        bench_tokenizer *entry = tokenizer_of(list, defaults != NULL ? defaults : json);
        tdm_text_input input =
            input_of(json_object_get(json, "text"), json_object_get(json, "text_pair"));
        if (input.pair == NULL)
            input = input_of(json_object_get(json, "text"), json_object_get(json, "pair"));
        char what[128];
        snprintf(what, sizeof what, "%s, case %zu", name, i);
        ck_assert_ok(tdm_encoder_encode(entry->encoder, &input, 1, &options, encodings));
        assert_ids(json_object_get(json, "ids"), encodings, what);
    }
    tdm_encodings_destroy(encodings);
    close_list(list);
}

START_TEST(ids_are_those_of_transformers_js)
{
    if (tdm_test_data() == NULL) {
        tdm_test_skip("golden files of the test data");
        return;
    }
    json_t *json = load_test_data("transformers_js_bert_cases.json");
    check_test_data("transformers.js", json_object_get(json, "cases"), true, NULL);
    json_decref(json);
}
END_TEST

START_TEST(ids_are_those_of_llama_cpp)
{
    if (tdm_test_data() == NULL) {
        tdm_test_skip("golden files of the test data");
        return;
    }
    json_t *json = load_test_data("llama_cpp_bert_bge.json");
    check_test_data("llama.cpp", json_object_get(json, "cases"), false, json);
    json_decref(json);
}
END_TEST

/* Joined by blanks. */
static const char *joined(const json_t *tokens)
{
    static char text[4096];
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, json_string_value(json_array_get(tokens, i)));
    }
    return text;
}

static const char *joined_offsets(const json_t *offsets)
{
    static char text[4096];
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(offsets); i++) {
        const json_t *pair = json_array_get(offsets, i);
        at += (size_t)sprintf(text + at, "%s%d,%d", i > 0 ? " " : "",
                              (int)json_integer_value(json_array_get(pair, 0)),
                              (int)json_integer_value(json_array_get(pair, 1)));
    }
    return text;
}

START_TEST(offsets_and_pairs_are_those_of_transformers)
{
    if (tdm_test_data() == NULL) {
        tdm_test_skip("golden files of the test data");
        return;
    }
    json_t *json = load_test_data("bert_unit_cases.json");
    const json_t *cases = json_object_get(json, "encode_with_offsets");
    bench_tokenizer list[16] = {{.name = ""}};
    tdm_encodings *encodings;
    ck_assert_ok(tdm_encodings_create(&encodings));
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *entry = json_array_get(cases, i);
        bench_tokenizer *with = tokenizer_of(list, entry);
        tdm_encode_options options = tdm_encode_default_options();
        options.add_special_tokens = json_is_true(json_object_get(entry, "add_special_tokens"));
        tdm_text_input input =
            input_of(json_object_get(entry, "text"), json_object_get(entry, "text_pair"));
        ck_assert_ok(tdm_encoder_encode(with->encoder, &input, 1, &options, encodings));
        ck_assert_str_eq(tdm_test_tokens(with->tokenizer, encodings, 0),
                         joined(json_object_get(entry, "tokens")));
        ck_assert_str_eq(tdm_test_offsets(encodings, 0, false),
                         joined_offsets(json_object_get(entry, "char_offsets")));
        const json_t *types = json_object_get(entry, "type_ids");
        for (size_t t = 0; t < json_array_size(types); t++)
            ck_assert_int_eq(json_integer_value(json_array_get(types, t)),
                             tdm_encodings_get(encodings, 0).type_ids[t]);
    }
    tdm_encodings_destroy(encodings);
    close_list(list);
    json_decref(json);
}
END_TEST

/* Vocabularies that stand in the file itself. */
START_TEST(words_and_pieces_are_those_of_google)
{
    if (tdm_test_data() == NULL) {
        tdm_test_skip("golden files of the test data");
        return;
    }
    json_t *json = load_test_data("bert_unit_cases.json");
    static const char *const kinds[] = {"full_tokenizer", "wordpiece"};
    tdm_encodings *encodings;
    ck_assert_ok(tdm_encodings_create(&encodings));
    for (size_t k = 0; k < 2; k++) {
        const json_t *cases = json_object_get(json, kinds[k]);
        for (size_t i = 0; i < json_array_size(cases); i++) {
            const json_t *entry = json_array_get(cases, i);
            const json_t *tokens = json_object_get(entry, "vocab");
            char vocabulary[1024] = "";
            for (size_t t = 0; t < json_array_size(tokens); t++) {
                strcat(vocabulary, json_string_value(json_array_get(tokens, t)));
                strcat(vocabulary, "\n");
            }
            tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
            settings.lowercase = k == 0;
            tdm_tokenizer *tokenizer = tdm_test_tokenizer(vocabulary, &settings);
            tdm_encoder *encoder;
            ck_assert_ok(tdm_encoder_create(tokenizer, 1, &encoder));
            tdm_encode_options options = tdm_encode_default_options();
            options.add_special_tokens = false;
            tdm_text_input input = input_of(json_object_get(entry, "text"), NULL);
            ck_assert_ok(tdm_encoder_encode(encoder, &input, 1, &options, encodings));
            ck_assert_str_eq(tdm_test_tokens(tokenizer, encodings, 0),
                             joined(json_object_get(entry, "tokens")));
            tdm_encoder_destroy(encoder);
            tdm_tokenizer_close(tokenizer);
        }
    }
    tdm_encodings_destroy(encodings);
    json_decref(json);
}
END_TEST

/* ---- strings that others got wrong ----------------------------------------------------------- */

typedef struct tricky {
    const char *text, *tokens, *offsets; /* offsets: NULL: any */
} tricky;

/* rust-tokenizers' tests of bert-base-uncased, and transformers'. */
START_TEST(tricky_strings)
{
    static const tricky cases[] = {
        {"This is a sample sentence to be toke\xcc\x81nized",
         "this is a sample sentence to be token ##ized",
         "0,4 5,7 8,9 10,16 17,25 26,28 29,31 32,38 38,42"},
        {"tokenized \xf0\x9f\xa4\x94 ?", "token ##ized [UNK] ?", "0,5 5,9 10,11 12,13"},
        {"\xc4\xb0s th!s \xf0\xa9\xb8\xbd \xcf\xba \xc5\xa0\xc5\x93 Uglj\xc5\xa1i\xc4\x87 "
         "d\xe1\xba\xa5u n\xe1\xba\xb7ng",
         "is th ! s [UNK] [UNK] s ##\xc5\x93 u ##gl ##js ##ic da ##u nan ##g",
         "0,2 3,5 5,6 6,7 8,9 10,11 12,13 13,14 15,16 16,18 18,20 20,22 23,25 25,26 27,30 30,31"},
        {"Uglj[SEP]\xc5\xa1i\xc4\x87", "u ##gl ##j [SEP] sic", "0,1 1,3 3,4 4,9 9,12"},
        {"unaffable [MASK]", "una ##ffa ##ble [MASK]", "0,3 3,6 6,9 10,16"},
        {"foo[MASK]bar", "foo [MASK] bar", "0,3 3,9 9,12"},
        {"[mask]", "[ mask ]", "0,1 1,5 5,6"},
        {"[unused1]", "[ unused ##1 ]", "0,1 1,7 7,8 8,9"},
        {"##ing", "# # ing", "0,1 1,2 2,5"},
        {"[MASK]\xcc\x81x", "[MASK] x", "0,6 7,8"},
        {"1\xef\xbf\xbd"
         "2\xef\xbf\xbd"
         "3",
         "123", "0,5"},
        {" \t\n", "", ""},
        {"\xc2\xad", "", ""},
        {"a\xe2\x89\xa0"
         "b",
         "a = b", "0,1 1,2 2,3"},
        {"\xe4\xb8\xad\xe6\x96\x87", "\xe4\xb8\xad \xe6\x96\x87", "0,1 1,2"},
        {"a\xff\xfe"
         "b\xc3",
         "ab", "0,4"},
    };
    tdm_tokenizer *tokenizer = tdm_test_bert("bert-base-uncased", true);
    if (tokenizer == NULL)
        return;
    tdm_encoder *encoder;
    tdm_encodings *encodings;
    ck_assert_ok(tdm_encoder_create(tokenizer, 1, &encoder));
    ck_assert_ok(tdm_encodings_create(&encodings));
    tdm_encode_options options = tdm_encode_default_options();
    options.add_special_tokens = false;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_text_input input = plain_input(cases[i].text);
        ck_assert_ok(tdm_encoder_encode(encoder, &input, 1, &options, encodings));
        ck_assert_str_eq(tdm_test_tokens(tokenizer, encodings, 0), cases[i].tokens);
        ck_assert_str_eq(tdm_test_offsets(encodings, 0, false), cases[i].offsets);
    }
    tdm_encodings_destroy(encodings);
    tdm_encoder_destroy(encoder);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

/* ---- a small vocabulary ---------------------------------------------------------------------- */

static const char small[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n##a\n##b\n##c\n##d\n[\n"
    "]\nmask\n";

typedef struct rig {
    tdm_tokenizer *tokenizer;
    tdm_encoder *encoder;
    tdm_encodings *encodings;
    tdm_encode_options options;
} rig;

static rig open_rig(const char *vocabulary, int threads)
{
    rig out = {.tokenizer = tdm_test_tokenizer(vocabulary, NULL),
               .options = tdm_encode_default_options()};
    ck_assert_ok(tdm_encoder_create(out.tokenizer, threads, &out.encoder));
    ck_assert_ok(tdm_encodings_create(&out.encodings));
    return out;
}

static void close_rig(rig *with)
{
    tdm_encodings_destroy(with->encodings);
    tdm_encoder_destroy(with->encoder);
    tdm_tokenizer_close(with->tokenizer);
}

static tdm_status encode(rig *with, const char *text, const char *pair)
{
    tdm_text_input input = {.text = text,
                            .bytes = strlen(text),
                            .pair = pair,
                            .pair_bytes = pair != NULL ? strlen(pair) : 0};
    return tdm_encoder_encode(with->encoder, &input, 1, &with->options, with->encodings);
}

static void assert_tokens(rig *with, const char *text, const char *tokens)
{
    ck_assert_ok(encode(with, text, NULL));
    ck_assert_int_eq(tdm_encodings_count(with->encodings), 1);
    ck_assert_str_eq(tdm_test_tokens(with->tokenizer, with->encodings, 0), tokens);
}

START_TEST(special_tokens_in_a_text)
{
    rig with = open_rig(small, 1);
    assert_tokens(&with, "a [MASK]b", "[CLS] a [MASK] b [SEP]");
    ck_assert_int_eq(tdm_encodings_get(with.encodings, 0).special[2], 0);
    with.options.specials = TDM_SPECIALS_PLAIN;
    assert_tokens(&with, "a [MASK]b", "[CLS] a [ mask ] b [SEP]");
    with.options.offsets = false;
    assert_tokens(&with, "a [MASK]b", "[CLS] a [ mask ] b [SEP]");
    ck_assert_ptr_null(tdm_encodings_get(with.encodings, 0).byte_offsets);
    with.options.specials = TDM_SPECIALS_ERROR;
    ck_assert_fails(encode(&with, "a [MASK]b", NULL), TDM_E_DATA,
                    "the text holds the special token \"[MASK]\" at byte 2");
    ck_assert_int_eq(tdm_encodings_count(with.encodings), 0);
    assert_tokens(&with, "a [mask]", "[CLS] a [ mask ] [SEP]");
    close_rig(&with);
}
END_TEST

/* "ab" is only looked for as it is written: the word of a text in capitals is made of pieces. */
START_TEST(added_tokens_are_no_pieces_of_words)
{
    static const char *const vocabulary[] = {"[PAD]", "[UNK]", "a", "##b", "ab"};
    tdm_tokenizer parts = {.settings = tdm_tokenizer_default_settings()};
    for (uint32_t id = 0; id < 4; id++)
        ck_assert_ok(tdm_vocabulary_add(&parts.vocabulary, id, vocabulary[id],
                                        strlen(vocabulary[id]), NULL));
    tdm_added_token *added;
    ck_assert_ok(tdm_tokenizer_add_token(&parts, 4, vocabulary[4], 2, &added));
    added->beside = true;
    rig with = {.options = tdm_encode_default_options()};
    ck_assert_ok(tdm_tokenizer_create(&parts, &with.tokenizer));
    ck_assert_ok(tdm_encoder_create(with.tokenizer, 1, &with.encoder));
    ck_assert_ok(tdm_encodings_create(&with.encodings));
    with.options.add_special_tokens = false;
    for (int offsets = 0; offsets < 2; offsets++) {
        with.options.offsets = offsets == 1;
        assert_tokens(&with, "ab AB cab", "ab a ##b [UNK] ab");
    }
    const uint32_t *ids;
    int64_t count;
    ck_assert_ok(tdm_encoder_ids(with.encoder, "ab", 2, &ids, &count));
    ck_assert_int_eq(count, 2);
    close_rig(&with);
}
END_TEST

START_TEST(ids_of_a_text_as_it_stands)
{
    rig with = open_rig(small, 2);
    const uint32_t *ids;
    int64_t count;
    ck_assert_ok(tdm_encoder_ids(with.encoder, "ab [MASK]", 9, &ids, &count));
    static const uint32_t expected[] = {5, 10, 13, 15, 14};
    ck_assert_int_eq(count, 5);
    ck_assert_mem_eq(ids, expected, sizeof expected);
    ck_assert_ok(tdm_encoder_ids(with.encoder, "", 0, &ids, &count));
    ck_assert_int_eq(count, 0);
    close_rig(&with);
}
END_TEST

START_TEST(options_that_cannot_be_are_errors)
{
    rig with = open_rig(small, 1);
    const tdm_encode_options defaults = with.options;
    with.options.max_length = 1;
    ck_assert_fails(encode(&with, "a", NULL), TDM_E_ARG,
                    "max_length is 1, but 2 special tokens are added");
    with.options.max_length = 2;
    ck_assert_fails(encode(&with, "a", "b"), TDM_E_ARG, "but 3 special tokens are added");
    ck_assert_ok(encode(&with, "a", NULL));
    with.options.max_length = -2;
    ck_assert_fails(encode(&with, "a", NULL), TDM_E_ARG, "max_length is -2");
    with.options = defaults;
    with.options.stride = -1;
    ck_assert_fails(encode(&with, "a", NULL), TDM_E_ARG, "stride is -1");
    with.options.stride = 3;
    with.options.overflow = true;
    with.options.max_length = 5;
    ck_assert_fails(encode(&with, "a", NULL), TDM_E_ARG,
                    "stride is 3, but a sequence holds only 3 tokens");
    with.options.max_length = 8;
    ck_assert_fails(encode(&with, "a b c d", "a b c d"), TDM_E_ARG,
                    "stride is 3, but 2 tokens are left of the first text");
    with.options = defaults;
    with.options.padding = (tdm_padding)7;
    ck_assert_fails(encode(&with, "a", NULL), TDM_E_ARG, "has no such value");
    with.options = defaults;
    with.options.padding = TDM_PADDING_FIXED;
    with.options.pad_length = -1;
    ck_assert_fails(encode(&with, "a", NULL), TDM_E_ARG, "pad_length");
    with.options = defaults;
    tdm_text_input large = {.text = "a", .bytes = (size_t)1 << 31};
    ck_assert_fails(tdm_encoder_encode(with.encoder, &large, 1, NULL, with.encodings), TDM_E_ARG,
                    "a text of 2 GiB or more");
    close_rig(&with);
}
END_TEST

START_TEST(one_text_that_is_too_short_to_truncate)
{
    rig with = open_rig(small, 1);
    with.options.max_length = 5;
    with.options.truncation = TDM_TRUNCATE_ONLY_SECOND;
    ck_assert_fails(encode(&with, "a b c d", NULL), TDM_E_DATA, "there is no second text");
    ck_assert_fails(encode(&with, "a b c d", "a b"), TDM_E_DATA,
                    "the second text has 2 tokens, of which 4 must go");
    with.options.truncation = TDM_TRUNCATE_ONLY_FIRST;
    ck_assert_fails(encode(&with, "a b", "a b c d"), TDM_E_DATA, "the first text has 2 tokens");
    ck_assert_ok(encode(&with, "a b c d", NULL));
    ck_assert_str_eq(tdm_test_tokens(with.tokenizer, with.encodings, 0), "[CLS] a b c [SEP]");
    close_rig(&with);
}
END_TEST

START_TEST(no_room_puts_all_into_what_overflows)
{
    rig with = open_rig(small, 1);
    with.options.max_length = 2;
    with.options.overflow = true;
    ck_assert_ok(encode(&with, "a b c", NULL));
    ck_assert_int_eq(tdm_encodings_count(with.encodings), 2);
    ck_assert_str_eq(tdm_test_tokens(with.tokenizer, with.encodings, 0), "[CLS] [SEP]");
    ck_assert_str_eq(tdm_test_tokens(with.tokenizer, with.encodings, 1), "[CLS] a b c [SEP]");
    with.options.overflow = false;
    ck_assert_ok(encode(&with, "a b c", NULL));
    ck_assert_int_eq(tdm_encodings_count(with.encodings), 1);
    close_rig(&with);
}
END_TEST

START_TEST(parts_of_both_texts_have_a_limit)
{
    enum { TOKENS = 5000 };
    rig with = open_rig(small, 1);
    char text[2 * TOKENS + 1];
    for (int i = 0; i < TOKENS; i++)
        memcpy(text + 2 * i, "a ", 3);
    with.options.max_length = 5;
    with.options.overflow = true;
    ck_assert_fails(encode(&with, text, text), TDM_E_ARG, "5000 parts of the first text with 5000");
    with.options.overflow = false;
    ck_assert_ok(encode(&with, text, text));
    close_rig(&with);
}
END_TEST

START_TEST(vocabularies_that_lack_special_tokens)
{
    rig with = open_rig("[UNK]\na\n[CLS]\n", 1);
    ck_assert_fails(encode(&with, "a", NULL), TDM_E_ARG, "has no [SEP], which would be added");
    with.options.add_special_tokens = false;
    assert_tokens(&with, "a b", "a [UNK]");
    with.options.padding = TDM_PADDING_LONGEST;
    ck_assert_fails(encode(&with, "a", NULL), TDM_E_ARG, "has no [PAD] to pad with");
    close_rig(&with);
}
END_TEST

START_TEST(empty_inputs)
{
    rig with = open_rig(small, 1);
    assert_tokens(&with, "", "[CLS] [SEP]");
    ck_assert_ok(encode(&with, "", ""));
    ck_assert_str_eq(tdm_test_tokens(with.tokenizer, with.encodings, 0), "[CLS] [SEP] [SEP]");
    tdm_text_input nothing = {0};
    ck_assert_ok(tdm_encoder_encode(with.encoder, &nothing, 1, NULL, with.encodings));
    ck_assert_int_eq(tdm_encodings_get(with.encodings, 0).count, 2);
    ck_assert_ok(tdm_encoder_encode(with.encoder, NULL, 0, NULL, with.encodings));
    ck_assert_int_eq(tdm_encodings_count(with.encodings), 0);
    close_rig(&with);
}
END_TEST

/* ---- long inputs and many ------------------------------------------------------------------- */

START_TEST(long_texts_have_the_offsets_of_their_words)
{
    enum { WORDS = 60000 };
    rig with = open_rig(small, 1);
    char *text;
    ck_assert_ok(tdm_alloc(4 * WORDS + 1, 1, &text));
    for (int i = 0; i < WORDS; i++)
        memcpy(text + 4 * i, i % 3 == 0 ? "\xc3\xa1 b" : "cd\n ", 4);
    with.options.add_special_tokens = false;
    ck_assert_ok(encode(&with, text, NULL));
    tdm_encoding got = tdm_encodings_get(with.encodings, 0);
    /* "á bcd\n cd\n á": three words in twelve bytes and eleven characters, "b" goes on as "bcd". */
    uint32_t last_byte = 0, last_char = 0;
    for (int64_t i = 0; i < got.count; i++) {
        tdm_text_range bytes = got.byte_offsets[i], chars = got.char_offsets[i];
        ck_assert_uint_ge(bytes.begin, last_byte);
        ck_assert_uint_ge(chars.begin, last_char);
        ck_assert_uint_eq(chars.begin, bytes.begin - (bytes.begin + 11) / 12);
        last_byte = bytes.end;
        last_char = chars.end;
    }
    ck_assert_int_eq(got.count, WORDS / 3 * 6);
    ck_assert_int_eq(got.words[got.count - 1], WORDS - 1);
    tdm_free(text);
    close_rig(&with);
}
END_TEST

/* Rather than by time, this fails by the test's time limit where matching is not linear. */
START_TEST(a_megabyte_of_brackets_and_of_one_word)
{
    enum { BYTES = 1 << 20 };
    rig with = open_rig(small, 1);
    char *text;
    ck_assert_ok(tdm_alloc(BYTES + 1, 1, &text));
    memset(text, '[', BYTES);
    ck_assert_ok(encode(&with, text, NULL));
    ck_assert_int_eq(tdm_encodings_get(with.encodings, 0).count, BYTES + 2);
    memset(text, 'a', BYTES);
    assert_tokens(&with, text, "[CLS] [UNK] [SEP]");
    ck_assert_uint_eq(tdm_encodings_get(with.encodings, 0).byte_offsets[1].end, BYTES);
    memset(text, ' ', BYTES);
    assert_tokens(&with, text, "[CLS] [SEP]");
    tdm_free(text);
    close_rig(&with);
}
END_TEST

static void assert_same(const tdm_encodings *left, const tdm_encodings *right)
{
    ck_assert_int_eq(tdm_encodings_count(left), tdm_encodings_count(right));
    for (int64_t i = 0; i < tdm_encodings_count(left); i++) {
        tdm_encoding a = tdm_encodings_get(left, i), b = tdm_encodings_get(right, i);
        ck_assert_int_eq(a.count, b.count);
        ck_assert_int_eq(a.input, b.input);
        ck_assert_mem_eq(a.ids, b.ids, (size_t)a.count * sizeof *a.ids);
        ck_assert_mem_eq(a.words, b.words, (size_t)a.count * sizeof *a.words);
        ck_assert_mem_eq(a.byte_offsets, b.byte_offsets, (size_t)a.count * sizeof *a.byte_offsets);
    }
}

START_TEST(any_number_of_threads_gives_the_same)
{
    enum { INPUTS = 500 };
    static char texts[INPUTS][64];
    static tdm_text_input inputs[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        snprintf(texts[i], sizeof texts[i], "%.*s", 1 + i * 7 % 60,
                 "ab cd [MASK] \xc3\xa1 d c b a abcd dd a b c d ab dcba ab a a a a a a");
        inputs[i] = plain_input(texts[i]);
        if (i % 3 == 0) {
            inputs[i].pair = texts[i / 2];
            inputs[i].pair_bytes = strlen(texts[i / 2]);
        }
    }
    rig one = open_rig(small, 1);
    one.options.max_length = 9;
    one.options.overflow = true;
    one.options.padding = TDM_PADDING_LONGEST;
    ck_assert_ok(tdm_encoder_encode(one.encoder, inputs, INPUTS, &one.options, one.encodings));
    for (int threads = 0; threads <= 4; threads++) {
        rig many = open_rig(small, threads);
        for (int again = 0; again < 2; again++) {
            ck_assert_ok(
                tdm_encoder_encode(many.encoder, inputs, INPUTS, &one.options, many.encodings));
            assert_same(one.encodings, many.encodings);
        }
        close_rig(&many);
    }
    close_rig(&one);
}
END_TEST

/* Whichever thread meets which of them first. */
START_TEST(the_first_bad_input_is_named)
{
    enum { INPUTS = 300 };
    static tdm_text_input inputs[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        inputs[i] = plain_input(i >= 77 && i % 7 == 0 ? "a [SEP]" : "a b");
    for (int threads = 1; threads <= 4; threads++) {
        rig with = open_rig(small, threads);
        with.options.specials = TDM_SPECIALS_ERROR;
        ck_assert_fails(
            tdm_encoder_encode(with.encoder, inputs, INPUTS, &with.options, with.encodings),
            TDM_E_DATA, "input 77: the text holds");
        close_rig(&with);
    }
}
END_TEST

START_TEST(encoding_survives_every_failed_allocation)
{
    rig with = open_rig(small, 1);
    close_rig(&with);
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status != TDM_OK; n++) {
        with = (rig){.tokenizer = tdm_test_tokenizer(small, NULL)};
        with.options = tdm_encode_default_options();
        with.options.overflow = true;
        with.options.max_length = 5;
        tdm_memory_fail_at(n, true);
        status = tdm_encoder_create(with.tokenizer, 1, &with.encoder);
        if (status == TDM_OK)
            status = tdm_encodings_create(&with.encodings);
        if (status == TDM_OK)
            status = encode(&with, "ab cd [MASK] \xc3\xa1 d", "a b c d");
        char *text = NULL;
        static const uint32_t ids[] = {5, 9};
        if (status == TDM_OK)
            status = tdm_tokenizer_decode(with.tokenizer, ids, 2, true, &text);
        tdm_memory_fail_at(0, false);
        ck_assert(status == TDM_OK || status == TDM_E_NOMEM);
        tdm_string_free(text);
        close_rig(&with);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
        ck_assert_int_lt(n, 1000);
    }
}
END_TEST

START_TEST(threads_are_checked)
{
    tdm_tokenizer *tokenizer = tdm_test_tokenizer(small, NULL);
    tdm_encoder *encoder;
    ck_assert_fails(tdm_encoder_create(tokenizer, -1, &encoder), TDM_E_ARG, "threads is -1");
    ck_assert_ptr_null(encoder);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

TDM_CHECK_MAIN(encodings_are_those_of_hugging_face, encodings_without_offsets_are_the_same,
               files_of_hugging_face_are_written_as_they_are,
               decoded_texts_are_those_of_hugging_face, ids_are_those_of_transformers_js,
               ids_are_those_of_llama_cpp, offsets_and_pairs_are_those_of_transformers,
               words_and_pieces_are_those_of_google, tricky_strings, special_tokens_in_a_text,
               ids_of_a_text_as_it_stands, added_tokens_are_no_pieces_of_words,
               options_that_cannot_be_are_errors, one_text_that_is_too_short_to_truncate,
               no_room_puts_all_into_what_overflows, parts_of_both_texts_have_a_limit,
               vocabularies_that_lack_special_tokens, empty_inputs,
               long_texts_have_the_offsets_of_their_words, a_megabyte_of_brackets_and_of_one_word,
               any_number_of_threads_gives_the_same, the_first_bad_input_is_named,
               encoding_survives_every_failed_allocation, threads_are_checked)
