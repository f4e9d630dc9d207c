#include "text/vocab_trainer.h"

#include "data/utf8.h"
#include "text/vocab_alphabet.h"
#include "text/vocab_merges.h"

#include <string.h>

static tdm_status check_token(const char *token)
{
    TDM_FAIL_IF(
        token[0] == '\0' || !tdm_utf8_valid(token, strlen(token)) || strpbrk(token, "\r\n") != NULL,
        TDM_E_ARG, "\"%s\" cannot be a token: it is empty, not UTF-8 or more than a line", token);
    return TDM_OK;
}

static tdm_status add_specials(const tdm_strings *specials, tdm_vocabulary *vocabulary)
{
    for (int64_t i = 0; i < specials->count; i++) {
        uint32_t id;
        const char *token = specials->items[i];
        TDM_TRY(check_token(token));
        TDM_TRY(tdm_vocabulary_intern(vocabulary, token, strlen(token), &id));
    }
    return TDM_OK;
}

/* Whether a token is one character, bare or behind "##". */
static bool is_letter(const char *token, uint32_t *code_point)
{
    size_t bytes = strlen(token), at = 0;
    if (bytes > TDM_CONTINUATION_BYTES &&
        memcmp(token, TDM_CONTINUATION, TDM_CONTINUATION_BYTES) == 0)
        at = TDM_CONTINUATION_BYTES;
    *code_point = tdm_alphabet_read(token, bytes, &at);
    return at == bytes;
}

static tdm_status add_initial(const tdm_strings *initial, tdm_alphabet *alphabet,
                              tdm_vocabulary *vocabulary)
{
    for (int64_t i = 0; i < initial->count; i++) {
        uint32_t id, code_point;
        const char *token = initial->items[i];
        TDM_TRY(check_token(token));
        if (is_letter(token, &code_point))
            TDM_TRY(tdm_alphabet_require(alphabet, code_point));
        else
            TDM_TRY(tdm_vocabulary_intern(vocabulary, token, strlen(token), &id));
    }
    return TDM_OK;
}

static tdm_status train(const tdm_word_list *words, const tdm_vocab_options *options,
                        tdm_alphabet *alphabet, tdm_vocabulary *vocabulary,
                        tdm_vocab_report *report)
{
    TDM_TRY(add_specials(options->specials, vocabulary));
    int64_t specials = vocabulary->size;
    TDM_TRY(add_initial(options->initial, alphabet, vocabulary));
    int64_t initial = vocabulary->size - specials;
    TDM_TRY(tdm_alphabet_count(alphabet, words));
    report->characters = alphabet->used;
    TDM_TRY(tdm_alphabet_choose(alphabet, options->limit_alphabet, vocabulary, &report->alphabet));
    TDM_FAIL_IF(vocabulary->size > options->size, TDM_E_ARG,
                "a size of %lld is too small: %lld special tokens, %lld initial ones and two forms "
                "of %lld characters need %lld; raise it, or limit the alphabet",
                (long long)options->size, (long long)specials, (long long)initial,
                (long long)report->alphabet, (long long)vocabulary->size);
    return tdm_vocab_merge(words, alphabet, options, vocabulary, report);
}

tdm_status tdm_vocab_train(const tdm_word_list *words, const tdm_vocab_options *options,
                           tdm_vocabulary *vocabulary, tdm_vocab_report *report)
{
    *report = (tdm_vocab_report){0};
    TDM_FAIL_IF(options->size < 1 || options->size > TDM_MAX_VOCABULARY, TDM_E_ARG,
                "a vocabulary has from 1 to %lld tokens, not %lld", (long long)TDM_MAX_VOCABULARY,
                (long long)options->size);
    TDM_FAIL_IF(options->limit_alphabet < 0, TDM_E_ARG,
                "an alphabet has 0 characters or more, not %lld",
                (long long)options->limit_alphabet);
    TDM_FAIL_IF(words->count == 0, TDM_E_DATA, "there is no word to train on");
    tdm_alphabet alphabet = {0};
    tdm_status status = train(words, options, &alphabet, vocabulary, report);
    tdm_alphabet_deinit(&alphabet);
    if (status != TDM_OK)
        tdm_vocabulary_deinit(vocabulary);
    return status;
}
