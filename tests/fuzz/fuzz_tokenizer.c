/* Any bytes as settings (the first two), a limit of words (the third) and a text: the fast way to
 * ids, and the encoder's ids and offsets, are those of the literal specification. */
#include "tests/support/text_spec.h"
#include "text/tokenizer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Words of one and of many pieces, greedy matches that fail behind a good beginning, scripts. */
static const char *const tokens[] = {"[PAD]",      "[UNK]",
                                     "[CLS]",      "[SEP]",
                                     "[MASK]",     "a",
                                     "##a",        "b",
                                     "##b",        "c",
                                     "##c",        "ab",
                                     "##ab",       "abc",
                                     "##bc",       "abcd",
                                     "##cab",      "aaaa",
                                     "##aaa",      "##cb",
                                     "the",        "##s",
                                     "t",          "##t",
                                     "##h",        "##e",
                                     "word",       "##word",
                                     "0",          "##0",
                                     "01",         "##10",
                                     "A",          "##A",
                                     "B",          "Ab",
                                     ".",          "##.",
                                     "#",          "##",
                                     "##-",        "-",
                                     "'",          "[",
                                     "]",          "=",
                                     "\u00e9",     "##\u00e9",
                                     "e",          "##\u0301",
                                     "s",          "ss",
                                     "##ss",       "i",
                                     "##\u00df",   "\u03c3",
                                     "##\u03c3",   "##\u03c2",
                                     "\u03b1",     "\u4e2d",
                                     "##\u4e2d",   "\u6587",
                                     "\u30ab",     "##\u30ad",
                                     "##\u3099",   "\u1100",
                                     "##\u1161",   "##\u11a8",
                                     "\uac00",     "\u302e",
                                     "##\u302e",   "\u0627",
                                     "##\u0628",   "\u0939",
                                     "##\u093f",   "\u2014",
                                     "\U0001f600", "\ufffd",
                                     "##\ufffd",   "\u00a3",
                                     "##5",        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
#define TOKENS (sizeof tokens / sizeof tokens[0])

#define UNKNOWN 1

static const int word_limits[] = {3, 8, 40, 100};

/* Made when it is first asked for, and kept: most of the time would go into its pages of rules. */
static const tdm_tokenizer *tokenizer_of(const uint8_t *data)
{
    static tdm_tokenizer *made[27][8][4];
    tdm_tokenizer **place = &made[data[0] % 27][data[1] % 8][data[2] % 4];
    if (*place != NULL)
        return *place;
    tdm_tokenizer parts = {.settings = tdm_spec_settings(data)};
    parts.settings.max_word_chars = word_limits[data[2] % 4];
    for (uint32_t i = 0; i < TOKENS; i++)
        require(tdm_vocabulary_add(&parts.vocabulary, i, tokens[i], strlen(tokens[i]), NULL) ==
                TDM_OK);
    require(tdm_tokenizer_create(&parts, place) == TDM_OK);
    return *place;
}

static void check_ids(const tdm_tokenizer *tokenizer, const char *text, size_t bytes,
                      const tdm_spec_token *expected, size_t count)
{
    tdm_encoder *encoder;
    tdm_encodings *encodings;
    const uint32_t *ids;
    int64_t id_count;
    require(tdm_encoder_create(tokenizer, 1, &encoder) == TDM_OK);
    require(tdm_encodings_create(&encodings) == TDM_OK);
    require(tdm_encoder_ids(encoder, text, bytes, &ids, &id_count) == TDM_OK);
    require((size_t)id_count == count);
    for (size_t i = 0; i < count; i++)
        require(ids[i] == expected[i].id);
    tdm_encode_options options = tdm_encode_default_options();
    options.add_special_tokens = false;
    options.specials = TDM_SPECIALS_PLAIN;
    tdm_text_input input = {.text = text, .bytes = bytes};
    require(tdm_encoder_encode(encoder, &input, 1, &options, encodings) == TDM_OK);
    tdm_encoding encoding = tdm_encodings_get(encodings, 0);
    require((size_t)encoding.count == count);
    for (size_t i = 0; i < count; i++)
        require(encoding.ids[i] == expected[i].id &&
                encoding.words[i] == (int32_t)expected[i].word &&
                encoding.byte_offsets[i].begin == expected[i].from &&
                encoding.byte_offsets[i].end == expected[i].to);
    tdm_encodings_destroy(encodings);
    tdm_encoder_destroy(encoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < TDM_SPEC_SETTINGS_BYTES + 1)
        return 0;
    const tdm_tokenizer *tokenizer = tokenizer_of(data);
    const char *text = (const char *)data + TDM_SPEC_SETTINGS_BYTES + 1;
    size_t bytes = size - TDM_SPEC_SETTINGS_BYTES - 1;
    tdm_spec_token *expected;
    tdm_spec_text spec = tdm_spec_normalize(&tokenizer->settings, text, bytes);
    size_t count = tdm_spec_tokenize(&spec, &tokenizer->vocabulary, UNKNOWN,
                                     tokenizer->settings.max_word_chars, &expected);
    check_ids(tokenizer, text, bytes, expected, count);
    free(expected);
    tdm_spec_text_free(&spec);
    return 0;
}
