#include "core/memory.h"
#include "interchange/vocabulary_rows.h"
#include "tests/support/check_main.h"
#include "tests/support/tokenizer_rig.h"

#include <stdio.h>
#include <string.h>

/*                              0      1      2      3      4      5 6    7   8    9    10 */
#define OLD "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nab\nca\n##ca\n.\n"

/* The rows of a token of ours, "5 6". */
static const char *rows_of(const tdm_vocabulary_rows *rows, int64_t id)
{
    static char text[256];
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = rows->starts[id]; i < rows->starts[id + 1]; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", used > 0 ? " " : "",
                                 (long long)rows->rows[i]);
    return text;
}

static tdm_vocabulary_rows compare(const char *theirs_text, const char *ours_text)
{
    tdm_vocabulary_rows rows;
    tdm_tokenizer *theirs = tdm_test_tokenizer(theirs_text, NULL);
    tdm_tokenizer *ours = tdm_test_tokenizer(ours_text, NULL);
    ck_assert_ok(tdm_vocabulary_rows_create(theirs, ours, &rows));
    tdm_tokenizer_close(theirs);
    tdm_tokenizer_close(ours);
    return rows;
}

START_TEST(test_the_same)
{
    tdm_vocabulary_rows rows = compare(OLD, OLD);
    ck_assert(rows.are_same);
    ck_assert_int_eq(rows.count, 11);
    ck_assert_int_eq(rows.new_tokens, 0);
    ck_assert_int_eq(rows.left_out, 0);
    tdm_vocabulary_rows_free(&rows);
    /* Blank lines in the same places; fewer tokens at the end. */
    rows = compare("[UNK]\n\na\nb\n", "[UNK]\n\na\n");
    ck_assert(rows.are_same);
    ck_assert_int_eq(rows.left_out, 1);
    tdm_vocabulary_rows_free(&rows);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_another_order)
{
    tdm_vocabulary_rows rows = compare(OLD, "[UNK]\nab\n[PAD]\n##b\n");
    ck_assert(!rows.are_same);
    ck_assert_str_eq(rows_of(&rows, 0), "1");
    ck_assert_str_eq(rows_of(&rows, 1), "7");
    ck_assert_str_eq(rows_of(&rows, 2), "0");
    ck_assert_str_eq(rows_of(&rows, 3), "6");
    ck_assert_int_eq(rows.new_tokens, 0);
    ck_assert_int_eq(rows.left_out, 7);
    tdm_vocabulary_rows_free(&rows);
}
END_TEST

START_TEST(test_new_tokens)
{
    /*                               11      12     13      14      15     16     17    18 */
    tdm_vocabulary_rows rows = compare(OLD, OLD "abca\nABB\n##cab\n##abb\nxyz\n##xyz\na.ca\n[X]\n");
    ck_assert(!rows.are_same);
    ck_assert_int_eq(rows.new_tokens, 8);
    ck_assert_str_eq(rows_of(&rows, 7), "7");
    ck_assert_str_eq(rows_of(&rows, 11), "7 9");
    ck_assert_str_eq(rows_of(&rows, 12), "7 6"); /* as theirs normalises it */
    ck_assert_str_eq(rows_of(&rows, 13), "9 6"); /* ca, ##b: the first piece continues a word */
    ck_assert_str_eq(rows_of(&rows, 14), "7 6"); /* there is no ##ab */
    ck_assert_str_eq(rows_of(&rows, 15), "");
    ck_assert_str_eq(rows_of(&rows, 16), "");
    ck_assert_str_eq(rows_of(&rows, 17), "5 10 8");
    ck_assert_str_eq(rows_of(&rows, 18), ""); /* a special token is text to them */
    ck_assert_int_eq(rows.without_pieces, 3);
    tdm_vocabulary_rows_free(&rows);
}
END_TEST

START_TEST(test_out_of_memory)
{
    tdm_tokenizer *theirs = tdm_test_tokenizer(OLD, NULL);
    tdm_tokenizer *ours = tdm_test_tokenizer(OLD "abca\n##cab\n", NULL);
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status == TDM_E_NOMEM; n++) {
        tdm_vocabulary_rows rows;
        tdm_memory_fail_at(n, true);
        status = tdm_vocabulary_rows_create(theirs, ours, &rows);
        tdm_memory_fail_at(0, false);
        if (status == TDM_OK)
            tdm_vocabulary_rows_free(&rows);
        /* Tables of the tokenizers are made when they are first needed, and stay. */
        ck_assert_int_ge(tdm_memory_stats_get().live_bytes, live);
    }
    ck_assert_int_eq(status, TDM_OK);
    tdm_tokenizer_close(theirs);
    tdm_tokenizer_close(ours);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

TDM_CHECK_MAIN(test_the_same, test_another_order, test_new_tokens, test_out_of_memory)
