#include "text/tokenizer.h"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

static void hash_number(XXH3_state_t *state, int64_t number)
{
    XXH3_64bits_update(state, &number, sizeof number);
}

uint64_t tdm_tokenizer_hash(const tdm_tokenizer *tokenizer)
{
    const tdm_tokenizer_settings *settings = &tokenizer->settings;
    const tdm_vocabulary *vocabulary = &tokenizer->vocabulary;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, "text", 4);
    XXH3_64bits_update(&state, tdm_unicode_version(), strlen(tdm_unicode_version()) + 1);
    hash_number(&state, settings->unicode);
    hash_number(&state, settings->form);
    hash_number(&state, settings->clean_text);
    hash_number(&state, settings->handle_chinese_chars);
    hash_number(&state, settings->lowercase);
    hash_number(&state, settings->strip_accents);
    hash_number(&state, settings->max_word_chars);
    hash_number(&state, tokenizer->specials[TDM_SPECIAL_UNK]);
    for (int64_t id = 0; id < vocabulary->size; id++) {
        hash_number(&state, vocabulary->bytes[id]);
        XXH3_64bits_update(&state, vocabulary->text + vocabulary->begins[id],
                           vocabulary->bytes[id]);
    }
    for (int64_t i = 0; i < tokenizer->added_count; i++) {
        if (tokenizer->added[i].beside)
            hash_number(&state, tokenizer->added[i].id);
    }
    return XXH3_64bits_digest(&state);
}
