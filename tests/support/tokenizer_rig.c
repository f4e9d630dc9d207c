#include "tests/support/tokenizer_rig.h"

#include "core/file.h"
#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)1 << 20)

const char *tdm_test_write(const char *name, const void *data, size_t bytes)
{
    const char *path = tdm_test_path(tdm_test_folder(), name);
    ck_assert_ok(tdm_file_put(path, data, bytes, NULL));
    return path;
}

tdm_tokenizer *tdm_test_tokenizer(const char *vocabulary, const tdm_tokenizer_settings *settings)
{
    tdm_tokenizer *tokenizer;
    const char *path = tdm_test_write("vocab.txt", vocabulary, strlen(vocabulary));
    ck_assert_ok(tdm_tokenizer_open(path, settings, &tokenizer));
    return tokenizer;
}

tdm_tokenizer *tdm_test_bert(const char *name, bool lowercase)
{
    if (tdm_test_data() == NULL) {
        tdm_test_skip("a vocabulary of the test data");
        return NULL;
    }
    char path[1024];
    snprintf(path, sizeof path, "%s/vocab/%s-vocab.txt", tdm_test_data(), name);
    if (!tdm_file_exists(path))
        strcat(path, ".gz");
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    settings.lowercase = lowercase;
    tdm_tokenizer *tokenizer;
    ck_assert_ok(tdm_tokenizer_open(path, &settings, &tokenizer));
    return tokenizer;
}

const char *tdm_test_tokens(const tdm_tokenizer *tokenizer, const tdm_encodings *encodings,
                            int64_t index)
{
    static char text[BUFFER_BYTES];
    size_t at = 0;
    tdm_encoding encoding = tdm_encodings_get(encodings, index);
    text[0] = '\0';
    for (int64_t i = 0; i < encoding.count; i++) {
        size_t bytes;
        const char *token = tdm_tokenizer_token(tokenizer, encoding.ids[i], &bytes);
        ck_assert_uint_lt(at + bytes + 3, sizeof text);
        at += (size_t)sprintf(text + at, "%s%.*s", i > 0 ? " " : "", token != NULL ? (int)bytes : 1,
                              token != NULL ? token : "-");
    }
    return text;
}

const char *tdm_test_offsets(const tdm_encodings *encodings, int64_t index, bool bytes)
{
    static char text[BUFFER_BYTES];
    size_t at = 0;
    tdm_encoding encoding = tdm_encodings_get(encodings, index);
    text[0] = '\0';
    for (int64_t i = 0; i < encoding.count; i++) {
        tdm_text_range range = bytes ? encoding.byte_offsets[i] : encoding.char_offsets[i];
        ck_assert_uint_lt(at + 24, sizeof text);
        at += (size_t)sprintf(text + at, "%s%u,%u", i > 0 ? " " : "", range.begin, range.end);
    }
    return text;
}
