/* Any bytes as tokenizer.json. What opens is JSON with that vocabulary to jansson too, is saved and
 * opens again as the same, and encodes a text with its own truncation and padding. */
#include "core/memory.h"
#include "text/tokenizer_json.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_same(const tdm_tokenizer *a, const tdm_tokenizer *b)
{
    require(a->settings.unicode == b->settings.unicode && a->settings.form == b->settings.form);
    require(a->settings.clean_text == b->settings.clean_text &&
            a->settings.handle_chinese_chars == b->settings.handle_chinese_chars &&
            a->settings.lowercase == b->settings.lowercase &&
            a->settings.strip_accents == b->settings.strip_accents &&
            a->settings.max_word_chars == b->settings.max_word_chars &&
            a->settings.cleanup == b->settings.cleanup);
    require(a->added_count == b->added_count);
    require(a->options.max_length == b->options.max_length);
    for (int64_t id = 0; id < a->vocabulary.size; id++) {
        size_t bytes;
        const char *token = tdm_tokenizer_token(a, (uint32_t)id, &bytes);
        require(token == NULL || tdm_tokenizer_find(b, token, bytes) == id);
    }
}

/* The vocabulary is read without jansson where it can be. */
static void check_vocabulary(const tdm_tokenizer *tokenizer, const char *text, size_t bytes)
{
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL), *id;
    require(root != NULL);
    const char *token;
    json_object_foreach(json_object_get(json_object_get(root, "model"), "vocab"), token, id)
    {
        int64_t found = tdm_tokenizer_find(tokenizer, token, strlen(token));
        require(token[0] == '\0' || found == json_integer_value(id));
    }
    json_decref(root);
}

static void check_saved(const tdm_tokenizer *tokenizer)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/fuzz-tokenizer-%d.json", (int)getpid());
    tdm_tokenizer *again;
    require(tdm_tokenizer_save(tokenizer, path) == TDM_OK);
    require(tdm_tokenizer_open(path, NULL, &again) == TDM_OK);
    check_same(tokenizer, again);
    tdm_tokenizer_close(again);
    unlink(path);
}

static void check_text(const tdm_tokenizer *tokenizer)
{
    static const char text[] = "a [MASK]b ab  <x> \xc3\xa1\xe4\xb8\xad, [CLS] aa\xff.";
    const tdm_text_input input = {
        .text = text, .bytes = sizeof text - 1, .pair = text, .pair_bytes = sizeof text - 1};
    tdm_encoder *encoder;
    tdm_encodings *encodings;
    require(tdm_encoder_create(tokenizer, 1, &encoder) == TDM_OK);
    require(tdm_encodings_create(&encodings) == TDM_OK);
    tdm_encode_options options = tokenizer->options;
    options.overflow = true;
    if (options.pad_length < 1000 && options.pad_multiple < 1000) {
        tdm_status status = tdm_encoder_encode(encoder, &input, 1, &options, encodings);
        require(status == TDM_OK || status == TDM_E_ARG || status == TDM_E_DATA);
    }
    tdm_encodings_destroy(encodings);
    tdm_encoder_destroy(encoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_tokenizer *tokenizer;
    tdm_status status = tdm_tokenizer_json_parse((const char *)data, size, "f.json", &tokenizer);
    require((status == TDM_OK) == (tokenizer != NULL));
    if (tokenizer != NULL) {
        check_vocabulary(tokenizer, (const char *)data, size);
        check_saved(tokenizer);
        check_text(tokenizer);
    }
    tdm_tokenizer_close(tokenizer);
    require(tdm_memory_stats_get().live_bytes == live);
    return 0;
}
