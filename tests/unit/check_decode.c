/* Tokens back to text: the rules one by one. Against Hugging Face's decoder see check_encode.c. */
#include "tests/support/check_main.h"
#include "tests/support/tokenizer_rig.h"

#include <string.h>

/* The ids of some tokens that "|" divides. */
static int64_t find_all(const tdm_tokenizer *tokenizer, const char *tokens, uint32_t *ids)
{
    int64_t count = 0;
    while (*tokens != '\0') {
        size_t bytes = strcspn(tokens, "|");
        int64_t id = tdm_tokenizer_find(tokenizer, tokens, bytes);
        ck_assert_msg(id >= 0, "no token %.*s", (int)bytes, tokens);
        ids[count++] = (uint32_t)id;
        tokens += bytes + (tokens[bytes] != '\0');
    }
    return count;
}

static void assert_text(const tdm_tokenizer *tokenizer, const char *tokens, bool skip,
                        const char *expected)
{
    uint32_t ids[32];
    char *text;
    int64_t count = find_all(tokenizer, tokens, ids);
    ck_assert_ok(tdm_tokenizer_decode(tokenizer, ids, count, skip, &text));
    ck_assert_str_eq(text, expected);
    tdm_string_free(text);
}

static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n\nara\n##\xc3\xba\n##o\n"
                                 "##uelo\nno\n.\n?\n!\n,\n'\nn't\n'm\n's\n've\n're\ndo not\n"
                                 "x . y\n ' \n;\n##\n#\n";

START_TEST(pieces_are_glued_to_what_they_continue)
{
    tdm_tokenizer *tokenizer = tdm_test_tokenizer(vocabulary, NULL);
    assert_text(tokenizer, "ara|##\xc3\xba|##o|no|##o", false, "ara\xc3\xbao noo");
    assert_text(tokenizer, "##uelo|ara", false, "##uelo ara");
    assert_text(tokenizer, "ara|##|#", false, "ara #");
    assert_text(tokenizer, "", false, "");
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(special_tokens_are_skipped_where_that_is_wanted)
{
    tdm_tokenizer *tokenizer = tdm_test_tokenizer(vocabulary, NULL);
    assert_text(tokenizer, "[CLS]|ara|[MASK]|[SEP]|[PAD]", true, "ara");
    assert_text(tokenizer, "[CLS]|ara|[UNK]|[SEP]", false, "[CLS] ara [UNK] [SEP]");
    assert_text(tokenizer, "[CLS]|##o|no", true, "##o no");
    assert_text(tokenizer, "[CLS]|##o|no", false, "[CLS]o no");
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(blanks_before_punctuation_go)
{
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    tdm_tokenizer *tokenizer = tdm_test_tokenizer(vocabulary, &settings);
    assert_text(tokenizer, "no|.|?|!|,|;", false, "no.?!, ;");
    assert_text(tokenizer, "no|'|no", false, "no ' no");
    assert_text(tokenizer, "no|n't|'m|'s|'ve|'re", false, "non't'm's've're");
    assert_text(tokenizer, "no|do not", false, "no don't");
    assert_text(tokenizer, "do not", false, "do not");
    assert_text(tokenizer, "x . y", false, "x. y");
    assert_text(tokenizer, "no| ' |no", false, "no ' no");
    tdm_tokenizer_close(tokenizer);
    settings.cleanup = false;
    tokenizer = tdm_test_tokenizer(vocabulary, &settings);
    assert_text(tokenizer, "no|.|n't|x . y", false, "no . n't x . y");
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(ids_without_tokens)
{
    tdm_tokenizer *tokenizer = tdm_test_tokenizer(vocabulary, NULL);
    static const uint32_t blank[] = {5, 6, 5, 8};
    static const uint32_t large[] = {6, 100000};
    char *text;
    ck_assert_ok(tdm_tokenizer_decode(tokenizer, blank, 4, false, &text));
    ck_assert_str_eq(text, "arao");
    tdm_string_free(text);
    ck_assert_fails(tdm_tokenizer_decode(tokenizer, large, 2, false, &text), TDM_E_ARG,
                    "id 100000 at place 1 is not in the vocabulary, which ends at 26");
    ck_assert_ptr_null(text);
    tdm_string_free(NULL);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

TDM_CHECK_MAIN(pieces_are_glued_to_what_they_continue,
               special_tokens_are_skipped_where_that_is_wanted, blanks_before_punctuation_go,
               ids_without_tokens)
