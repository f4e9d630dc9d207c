/* Any bytes as a vocabulary, and behind the last NUL byte a text. What opens is saved and opens
 * again as the same, and the text can be encoded and decoded with it. */
#include "core/file.h"
#include "core/memory.h"
#include "text/tokenizer.h"

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

static tdm_tokenizer *open_bytes(const char *path, const void *bytes, size_t size)
{
    tdm_tokenizer *tokenizer;
    require(tdm_file_put(path, bytes, size, NULL) == TDM_OK);
    tdm_status status = tdm_tokenizer_open(path, NULL, &tokenizer);
    require((status == TDM_OK) == (tokenizer != NULL));
    return tokenizer;
}

static void check_saved(const tdm_tokenizer *tokenizer, const char *path)
{
    if (tdm_tokenizer_save(tokenizer, path) != TDM_OK)
        return;
    tdm_tokenizer *again;
    require(tdm_tokenizer_open(path, NULL, &again) == TDM_OK);
    const tdm_vocabulary *a = &tokenizer->vocabulary, *b = &again->vocabulary;
    require(a->size == b->size);
    for (int64_t id = 0; id < a->size; id++) {
        require(a->bytes[id] == b->bytes[id]);
        require(a->bytes[id] == 0 ||
                memcmp(a->text + a->begins[id], b->text + b->begins[id], a->bytes[id]) == 0);
    }
    tdm_tokenizer_close(again);
}

static void check_text(const tdm_tokenizer *tokenizer, const char *text, size_t bytes)
{
    tdm_encoder *encoder;
    tdm_encodings *encodings = NULL;
    const tdm_text_input input = {.text = text, .bytes = bytes};
    tdm_encode_options options = tdm_encode_default_options();
    options.add_special_tokens = false;
    require(tdm_encoder_create(tokenizer, 1, &encoder) == TDM_OK);
    require(tdm_encodings_create(&encodings) == TDM_OK);
    require(tdm_encoder_encode(encoder, &input, 1, &options, encodings) == TDM_OK);
    tdm_encoding got = tdm_encodings_get(encodings, 0);
    for (int64_t i = 0; i < got.count; i++) {
        require(got.ids[i] < tokenizer->vocabulary.size);
        require(got.byte_offsets[i].end <= bytes);
        require(got.char_offsets[i].end <= got.byte_offsets[i].end);
    }
    char *decoded;
    require(tdm_tokenizer_decode(tokenizer, got.ids, got.count, true, &decoded) == TDM_OK);
    tdm_string_free(decoded);
    tdm_encodings_destroy(encodings);
    tdm_encoder_destroy(encoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], saved[64];
    snprintf(path, sizeof path, "/dev/shm/fuzz-vocabulary-%d", (int)getpid());
    snprintf(saved, sizeof saved, "/dev/shm/fuzz-vocabulary-%d.txt", (int)getpid());
    size_t vocabulary = size;
    while (vocabulary > 0 && data[vocabulary - 1] != 0)
        vocabulary--;
    size_t text = vocabulary;
    vocabulary = vocabulary > 0 ? vocabulary - 1 : size;
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_tokenizer *tokenizer = open_bytes(path, data, vocabulary);
    if (tokenizer != NULL) {
        check_saved(tokenizer, saved);
        check_text(tokenizer, (const char *)data + text, size - text);
    }
    tdm_tokenizer_close(tokenizer);
    require(tdm_file_remove(path) == TDM_OK && tdm_file_remove(saved) == TDM_OK);
    require(tdm_memory_stats_get().live_bytes == live);
    return 0;
}
