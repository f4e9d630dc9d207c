#include "core/memory.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

typedef struct decoding {
    char *text;
    size_t bytes, capacity;
} decoding;

/* ---- clean-up -------------------------------------------------------------------------------- */

/* Replaces every `from` in text[begin, ...) by `to`, which is not longer. */
static void replace(decoding *decode, size_t begin, const char *from, const char *to)
{
    size_t from_bytes = strlen(from), to_bytes = strlen(to);
    size_t write = begin;
    for (size_t read = begin; read < decode->bytes;) {
        bool found = decode->bytes - read >= from_bytes &&
                     memcmp(decode->text + read, from, from_bytes) == 0;
        if (found) {
            memcpy(decode->text + write, to, to_bytes);
            write += to_bytes;
            read += from_bytes;
        } else {
            decode->text[write++] = decode->text[read++];
        }
    }
    decode->bytes = write;
}

/* Of one token, with the blank before it: what Hugging Face's decoder does, in its order. */
static void clean_up(decoding *decode, size_t begin)
{
    static const char *const replacements[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof replacements / sizeof replacements[0]; i++)
        replace(decode, begin, replacements[i][0], replacements[i][1]);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* The special tokens' ids, in order. */
typedef struct id_set {
    uint32_t *ids;
    size_t count;
} id_set;

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static bool contains(const id_set *set, uint32_t id)
{
    return set->count > 0 && bsearch(&id, set->ids, set->count, sizeof *set->ids, compare) != NULL;
}

static tdm_status find_special(const tdm_tokenizer *tokenizer, id_set *set)
{
    TDM_TRY(tdm_alloc((size_t)tokenizer->added_count + 1, sizeof *set->ids, &set->ids));
    for (int64_t i = 0; i < tokenizer->added_count; i++) {
        if (tokenizer->added[i].special)
            set->ids[set->count++] = tokenizer->added[i].id;
    }
    qsort(set->ids, set->count, sizeof *set->ids, compare);
    return TDM_OK;
}

static tdm_status put_token(decoding *decode, const char *token, size_t bytes, bool is_first,
                            bool cleanup)
{
    TDM_TRY(tdm_grow(&decode->text, &decode->capacity, decode->bytes + bytes + 2, 1));
    size_t begin = decode->bytes;
    bool continues = !is_first && bytes >= TDM_CONTINUATION_BYTES &&
                     memcmp(token, TDM_CONTINUATION, TDM_CONTINUATION_BYTES) == 0;
    size_t skipped = continues ? TDM_CONTINUATION_BYTES : 0;
    if (!is_first && !continues)
        decode->text[decode->bytes++] = ' ';
    memcpy(decode->text + decode->bytes, token + skipped, bytes - skipped);
    decode->bytes += bytes - skipped;
    if (cleanup)
        clean_up(decode, begin);
    return TDM_OK;
}

static tdm_status put_tokens(decoding *decode, const tdm_tokenizer *tokenizer, const uint32_t *ids,
                             int64_t count, const id_set *skipped)
{
    bool is_first = true;
    for (int64_t i = 0; i < count; i++) {
        TDM_FAIL_IF(ids[i] >= tokenizer->vocabulary.size, TDM_E_ARG,
                    "id %lu at place %lld is not in the vocabulary, which ends at %lld",
                    (unsigned long)ids[i], (long long)i, (long long)tokenizer->vocabulary.size - 1);
        size_t bytes;
        const char *token = tdm_tokenizer_token(tokenizer, ids[i], &bytes);
        if (token == NULL || contains(skipped, ids[i]))
            continue;
        TDM_TRY(put_token(decode, token, bytes, is_first, tokenizer->settings.cleanup));
        is_first = false;
    }
    TDM_TRY(tdm_grow(&decode->text, &decode->capacity, decode->bytes + 1, 1));
    decode->text[decode->bytes] = '\0';
    return TDM_OK;
}

tdm_status tdm_tokenizer_decode(const tdm_tokenizer *tokenizer, const uint32_t *ids, int64_t count,
                                bool skip_special_tokens, char **text)
{
    decoding decode = {0};
    id_set skipped = {0};
    *text = NULL;
    tdm_status status = TDM_OK;
    if (skip_special_tokens)
        status = find_special(tokenizer, &skipped);
    if (status == TDM_OK)
        status = put_tokens(&decode, tokenizer, ids, count, &skipped);
    tdm_free(skipped.ids);
    if (status == TDM_OK)
        *text = decode.text;
    else
        tdm_free(decode.text);
    return status;
}

void tdm_string_free(char *text)
{
    tdm_free(text);
}
