/* Against Hugging Face's tokenizers 0.23.3, by the files that tests/golden/make_text_golden.py
 * made: what a hash is of, and what a row, stands there. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/random_text.h"
#include "tests/support/text_data.h"
#include "text/char_index.h"
#include "text/normalize.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Sanitizers see it all in every so many rows. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROW_STEP 16
#else
#define ROW_STEP 1
#endif

/* ---- what is compared ------------------------------------------------------------------------ */

typedef struct numbers {
    uint32_t *items;
    size_t count, capacity;
} numbers;

static void push(numbers *list, uint32_t number)
{
    if (list->count == list->capacity)
        ck_assert_ok(tdm_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items));
    list->items[list->count++] = number;
}

static uint64_t hash_of(const numbers *list)
{
    return XXH3_64bits(list->items, list->count * sizeof *list->items);
}

/* What is hashed of some records. */
typedef struct records {
    numbers ids, offsets;
    int64_t tokens;
} records;

static void records_clear(records *out)
{
    out->ids.count = out->offsets.count = 0;
    out->tokens = 0;
}

static void records_deinit(records *out)
{
    tdm_free(out->ids.items);
    tdm_free(out->offsets.items);
    *out = (records){0};
}

/* The next cell of a line of a .tsv file, ended by a zero byte. */
static char *next_cell(char **line)
{
    char *cell = *line, *end = cell + strcspn(cell, "\t\n");
    *line = *end == '\t' ? end + 1 : end;
    *end = '\0';
    return cell;
}

/* Whether the row that *line begins with is left out; then *line is at its end. */
static bool is_left_out(char **line, size_t row)
{
    if (row % ROW_STEP == 0)
        return false;
    *line += strcspn(*line, "\n");
    return true;
}

__attribute__((noinline)) static char *golden(const char *name)
{
    char path[512], *text;
    size_t bytes;
    snprintf(path, sizeof path, "%s/tests/golden/text/%s", TDM_SOURCE_DIR, name);
    ck_assert_ok(tdm_file_get(path, 1 << 24, &text, &bytes));
    return text;
}

/* ---- the tokenizers -------------------------------------------------------------------------- */

static const struct {
    const char *name, *file;
    bool lowercase;
} vocabularies[] = {
    {"uncased", "bert-base-uncased-vocab.txt", true},
    {"cased", "bert-base-cased-vocab.txt", false},
    {"multilingual_uncased", "bert-base-multilingual-uncased-vocab.txt.gz", true},
    {"multilingual_cased", "bert-base-multilingual-cased-vocab.txt.gz", false},
    {"chinese", "bert-base-chinese-vocab.txt", true},
    {"japanese", "bert-base-japanese-vocab.txt", false},
};
#define VOCABULARIES (sizeof vocabularies / sizeof vocabularies[0])

typedef struct rig {
    tdm_tokenizer *tokenizer;
    tdm_encoder *encoder;
    tdm_encodings *encodings;
} rig;

static void rig_open(rig *out, const char *name)
{
    size_t i = 0;
    char path[512];
    while (strcmp(vocabularies[i].name, name) != 0)
        ck_assert_uint_lt(++i, VOCABULARIES);
    snprintf(path, sizeof path, "%s/vocab/%s", tdm_test_data(), vocabularies[i].file);
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    settings.lowercase = vocabularies[i].lowercase;
    ck_assert_ok(tdm_tokenizer_open(path, &settings, &out->tokenizer));
    ck_assert_ok(tdm_encoder_create(out->tokenizer, 1, &out->encoder));
    ck_assert_ok(tdm_encodings_create(&out->encodings));
}

static void rig_close(rig *out)
{
    tdm_encodings_destroy(out->encodings);
    tdm_encoder_destroy(out->encoder);
    tdm_tokenizer_close(out->tokenizer);
}

/* Adds the ids of each input, from the fast way. */
static void add_ids(rig *this, const tdm_text_input *inputs, int64_t count, records *out)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t *ids;
        int64_t tokens;
        if (tdm_encoder_ids(this->encoder, inputs[i].text, inputs[i].bytes, &ids, &tokens) !=
            TDM_OK)
            ck_abort_msg("record %lld: %s", (long long)i, tdm_error_message());
        push(&out->ids, (uint32_t)tokens);
        for (int64_t j = 0; j < tokens; j++)
            push(&out->ids, ids[j]);
        out->tokens += tokens;
    }
}

/* Adds the offsets of each input, and compares its ids with those of the fast way, which are in
 * out->ids from *at on. */
static void add_offsets(rig *this, const tdm_text_input *inputs, int64_t count, records *out)
{
    tdm_encode_options options = tdm_encode_default_options();
    options.add_special_tokens = false;
    options.specials = TDM_SPECIALS_PLAIN;
    ck_assert_ok(tdm_encoder_encode(this->encoder, inputs, count, &options, this->encodings));
    ck_assert_int_eq(tdm_encodings_count(this->encodings), count);
    const uint32_t *fast = out->ids.items;
    for (int64_t i = 0; i < count; i++) {
        tdm_encoding encoding = tdm_encodings_get(this->encodings, i);
        if (*fast++ != encoding.count ||
            memcmp(fast, encoding.ids, (size_t)encoding.count * sizeof *fast) != 0)
            ck_abort_msg("record %lld: ids of the fast way are others", (long long)i);
        fast += encoding.count;
        push(&out->offsets, (uint32_t)encoding.count);
        for (int64_t j = 0; j < encoding.count; j++) {
            push(&out->offsets, encoding.char_offsets[j].begin);
            push(&out->offsets, encoding.char_offsets[j].end);
        }
    }
}

/* The offsets in bytes are at the same places as those in code points. */
static void check_byte_offsets(rig *this, const tdm_text_input *inputs, int64_t count)
{
    tdm_char_index chars = {0};
    for (int64_t i = 0; i < count; i++) {
        tdm_encoding encoding = tdm_encodings_get(this->encodings, i);
        ck_assert_ok(tdm_char_index_fill(&chars, inputs[i].text, inputs[i].bytes));
        for (int64_t j = 0; j < encoding.count; j++) {
            tdm_text_range byte = encoding.byte_offsets[j], in_chars = encoding.char_offsets[j];
            if (tdm_char_index_before(&chars, byte.begin) != in_chars.begin ||
                tdm_char_index_before(&chars, byte.end) != in_chars.end)
                ck_abort_msg("record %lld, token %lld: bytes %u to %u", (long long)i, (long long)j,
                             byte.begin, byte.end);
        }
    }
    tdm_char_index_deinit(&chars);
}

/* A cell "tokens:ids:offsets". */
static void expect(const char *cell, const records *made, const char *what)
{
    long long tokens;
    unsigned long long ids, offsets;
    ck_assert_int_eq(sscanf(cell, "%lld:%llx:%llx", &tokens, &ids, &offsets), 3);
    ck_assert_msg(made->tokens == tokens, "%s: %lld tokens, not %lld", what,
                  (long long)made->tokens, tokens);
    ck_assert_msg(hash_of(&made->ids) == ids, "%s: other ids", what);
    ck_assert_msg(hash_of(&made->offsets) == offsets, "%s: other offsets", what);
}

/* ---- the normaliser -------------------------------------------------------------------------- */

static tdm_normalized normalized;

/* Adds a record: the words' offsets in code points of the text that was normalised. */
static void add_words(const char *text, size_t bytes, records *out)
{
    tdm_char_index chars = {0};
    ck_assert_ok(tdm_char_index_fill(&chars, text, bytes));
    push(&out->offsets, (uint32_t)normalized.word_count);
    for (int64_t i = 0; i < normalized.word_count; i++) {
        tdm_span word = normalized.words[i];
        push(&out->offsets, tdm_char_index_before(&chars, normalized.from[word.begin]));
        push(&out->offsets, tdm_char_index_before(&chars, normalized.to[word.end - 1]));
    }
    tdm_char_index_deinit(&chars);
}

/* In the order of the columns. */
static const tdm_tokenizer_settings single[] = {
    {.clean_text = false},
    {.clean_text = true},
    {.handle_chinese_chars = true},
    {.strip_accents = 1},
    {.lowercase = true},
    {.clean_text = true, .handle_chinese_chars = true, .strip_accents = -1, .lowercase = true},
};

#define BLOCK 0x1000

static size_t block_text(uint32_t first, char *text)
{
    size_t bytes = 0;
    for (uint32_t i = first; i < first + BLOCK; i++) {
        if (i >= 0xd800 && i <= 0xdfff)
            continue;
        text[bytes++] = 'a';
        bytes += (size_t)tdm_utf8_write(i, text + bytes);
        text[bytes++] = 'b';
        text[bytes++] = ' ';
    }
    return bytes;
}

START_TEST(test_code_points)
{
    static char text[7 * BLOCK];
    records made = {0};
    char *rows = golden("code_points.tsv"), *line = strchr(rows, '\n') + 1;
    uint32_t first = 0;
    for (; first < 0x110000; first += BLOCK, line++) {
        if (is_left_out(&line, first / BLOCK))
            continue;
        size_t bytes = block_text(first, text);
        ck_assert_uint_eq(strtoul(next_cell(&line), NULL, 16), first);
        for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) {
            unsigned long long normal, words;
            ck_assert_int_eq(sscanf(next_cell(&line), "%llx:%llx", &normal, &words), 2);
            ck_assert_ok(tdm_normalize(&single[i], text, bytes, &normalized));
            records_clear(&made);
            add_words(text, bytes, &made);
            ck_assert_msg(XXH3_64bits(normalized.text, normalized.bytes) == normal,
                          "text from U+%04X, column %zu", first, i);
            ck_assert_msg(hash_of(&made.offsets) == words, "words from U+%04X, column %zu", first,
                          i);
        }
    }
    ck_assert(*line == '\0');
    tdm_free(rows);
    records_deinit(&made);
}
END_TEST

static void check_normalization(const json_t *text, const json_t *result, int settings)
{
    tdm_tokenizer_settings set = {.clean_text = (settings & 8) != 0,
                                  .handle_chinese_chars = (settings & 4) != 0,
                                  .strip_accents = (settings & 2) != 0,
                                  .lowercase = (settings & 1) != 0};
    const char *from = json_string_value(text);
    size_t bytes = json_string_length(text);
    const json_t *normal = json_object_get(result, "normalized");
    const json_t *words = json_object_get(result, "words");
    records made = {0};
    ck_assert_ok(tdm_normalize(&set, from, bytes, &normalized));
    add_words(from, bytes, &made);
    ck_assert_msg(normalized.bytes == json_string_length(normal) &&
                      (normalized.bytes == 0 ||
                       memcmp(normalized.text, json_string_value(normal), normalized.bytes) == 0),
                  "\"%s\" with settings %d is \"%.*s\", not \"%s\"", from, settings,
                  (int)normalized.bytes, normalized.text, json_string_value(normal));
    ck_assert_uint_eq(made.offsets.count, 1 + json_array_size(words));
    for (size_t i = 0; i + 1 < made.offsets.count; i++)
        ck_assert_msg(made.offsets.items[i + 1] == json_integer_value(json_array_get(words, i)),
                      "\"%s\" with settings %d: offset %zu is %u", from, settings, i,
                      made.offsets.items[i + 1]);
    records_deinit(&made);
}

START_TEST(test_normalizations)
{
    json_error_t error;
    json_t *cases = json_load_file(TDM_SOURCE_DIR "/tests/golden/text/normalizations.json",
                                   JSON_ALLOW_NUL, &error);
    ck_assert_msg(cases != NULL, "%s", error.text);
    size_t i, j, k, checked = 0;
    json_t *item, *result, *settings;
    json_array_foreach(cases, i, item)
    {
        json_array_foreach(json_object_get(item, "results"), j, result)
        {
            json_array_foreach(json_object_get(result, "settings"), k, settings)
            {
                check_normalization(json_object_get(item, "text"), result,
                                    (int)json_integer_value(settings));
                checked++;
            }
        }
    }
    ck_assert_uint_eq(checked, 16 * json_array_size(cases));
    json_decref(cases);
}
END_TEST

/* ---- the test data's texts ------------------------------------------------------------------- */

typedef struct lines {
    tdm_text_input *items;
    size_t count, capacity;
} lines;

static void split_lines(const char *text, size_t bytes, lines *out)
{
    size_t at = 0, line_bytes;
    out->count = 0;
    for (const char *line; (line = tdm_next_line(text, bytes, &at, &line_bytes)) != NULL;) {
        ck_assert_ok(tdm_grow(&out->items, &out->capacity, out->count + 1, sizeof *out->items));
        out->items[out->count++] = (tdm_text_input){.text = line, .bytes = line_bytes};
    }
}

/* "name", or "archive:member" with the archive kept in *archive. */
static char *read_text(const char *name, char **archive, size_t *archive_bytes, size_t *bytes)
{
    char path[256];
    const char *colon = strchr(name, ':');
    if (colon == NULL) {
        snprintf(path, sizeof path, "text/%s", name);
        return tdm_text_data(path, bytes);
    }
    if (*archive == NULL) {
        snprintf(path, sizeof path, "text/%.*s", (int)(colon - name), name);
        *archive = tdm_text_data(path, archive_bytes);
    }
    return tdm_zip_member(*archive, *archive_bytes, colon + 1, bytes);
}

START_TEST(test_corpora)
{
    if (tdm_test_data() == NULL) {
        tdm_test_skip("TANDEM_TEST_DATA is not set: texts and vocabularies");
        return;
    }
    rig rigs[VOCABULARIES];
    char *rows = golden("corpora.tsv"), *line = strchr(rows, '\n') + 1, *archive = NULL;
    size_t archive_bytes = 0;
    records made = {0};
    lines inputs = {0};
    size_t files = 0;
    for (size_t i = 0; i < VOCABULARIES; i++)
        rig_open(&rigs[i], vocabularies[i].name);
    for (; *line != '\0'; line++, files++) {
        if (is_left_out(&line, files))
            continue;
        size_t bytes;
        const char *name = next_cell(&line);
        char *text = read_text(name, &archive, &archive_bytes, &bytes);
        split_lines(text, bytes, &inputs);
        ck_assert_int_eq(strtoll(next_cell(&line), NULL, 10), (long long)inputs.count);
        for (size_t i = 0; i < VOCABULARIES; i++) {
            char what[256];
            snprintf(what, sizeof what, "%s, %s", name, vocabularies[i].name);
            records_clear(&made);
            add_ids(&rigs[i], inputs.items, (int64_t)inputs.count, &made);
            add_offsets(&rigs[i], inputs.items, (int64_t)inputs.count, &made);
            if (i == 0)
                check_byte_offsets(&rigs[i], inputs.items, (int64_t)inputs.count);
            expect(next_cell(&line), &made, what);
        }
        tdm_free(text);
    }
    ck_assert_uint_gt(files, 400);
    for (size_t i = 0; i < VOCABULARIES; i++)
        rig_close(&rigs[i]);
    tdm_free(rows);
    tdm_free(archive);
    tdm_free(inputs.items);
    records_deinit(&made);
}
END_TEST

/* ---- a million random texts ------------------------------------------------------------------ */

#define RANDOM_SEED  2018
#define RANDOM_BLOCK 10000

static void make_block(uint64_t first, char *text, tdm_text_input *inputs)
{
    for (uint64_t i = 0; i < RANDOM_BLOCK; i++) {
        inputs[i] = (tdm_text_input){.text = text};
        inputs[i].bytes = tdm_random_text(RANDOM_SEED, first + i, text);
        text += inputs[i].bytes;
    }
}

START_TEST(test_random_texts)
{
    static const char *const names[] = {"uncased", "cased", "multilingual_cased"};
    static char text[RANDOM_BLOCK * TDM_RANDOM_TEXT_BYTES];
    static tdm_text_input inputs[RANDOM_BLOCK];
    if (tdm_test_data() == NULL) {
        tdm_test_skip("TANDEM_TEST_DATA is not set: texts and vocabularies");
        return;
    }
    rig rigs[3];
    for (int i = 0; i < 3; i++)
        rig_open(&rigs[i], names[i]);
    records made = {0};
    uint64_t first = 0;
    char *rows = golden("random.tsv"), *line = strchr(rows, '\n') + 1;
    for (; *line != '\0'; line++, first += RANDOM_BLOCK) {
        if (is_left_out(&line, first / RANDOM_BLOCK))
            continue;
        ck_assert_uint_eq(strtoull(next_cell(&line), NULL, 10), first);
        make_block(first, text, inputs);
        for (int i = 0; i < 3; i++) {
            char what[64];
            snprintf(what, sizeof what, "texts from %llu, %s", (unsigned long long)first, names[i]);
            records_clear(&made);
            add_ids(&rigs[i], inputs, RANDOM_BLOCK, &made);
            add_offsets(&rigs[i], inputs, RANDOM_BLOCK, &made);
            expect(next_cell(&line), &made, what);
        }
    }
    ck_assert_uint_eq(first, 1000000);
    for (int i = 0; i < 3; i++)
        rig_close(&rigs[i]);
    tdm_free(rows);
    records_deinit(&made);
}
END_TEST

TDM_CHECK_MAIN(test_code_points, test_normalizations, test_corpora, test_random_texts)
