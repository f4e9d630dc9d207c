/* LinMaxMatch against greedy longest match, and the edge cases of both. */
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "text/word_piece.h"

#include <string.h>

static void add(tdm_vocabulary *vocabulary, const char *token)
{
    ck_assert_ok(
        tdm_vocabulary_add(vocabulary, (uint32_t)vocabulary->size, token, strlen(token), NULL));
}

/* The definition: at each place the longest token that there is. */
static int64_t split_greedily(const tdm_vocabulary *vocabulary, const char *word, size_t bytes,
                              uint32_t *ids)
{
    char piece[256] = TDM_CONTINUATION;
    int64_t count = 0;
    for (size_t begin = 0; begin < bytes;) {
        size_t end = bytes;
        int64_t id = -1;
        for (; end > begin; end--) {
            memcpy(piece + TDM_CONTINUATION_BYTES, word + begin, end - begin);
            size_t skip = begin == 0 ? TDM_CONTINUATION_BYTES : 0;
            id = tdm_vocabulary_find(vocabulary, piece + skip,
                                     end - begin + TDM_CONTINUATION_BYTES - skip);
            if (id >= 0)
                break;
        }
        if (id < 0)
            return 0;
        ids[count++] = (uint32_t)id;
        begin = end;
    }
    return count;
}

static void check_split(const tdm_word_piece *pieces, const char *word, int64_t count,
                        const uint32_t *expected)
{
    uint32_t ids[256];
    ck_assert_int_eq(tdm_word_piece_split(pieces, word, strlen(word), ids), count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_uint_eq(ids[i], expected[i]);
}

START_TEST(test_the_longest_piece_comes_first)
{
    tdm_vocabulary vocabulary = {0};
    static const char *const tokens[] = {"a", "abcdx", "##b", "##c", "##cdy", "##dz"};
    for (size_t i = 0; i < 6; i++)
        add(&vocabulary, tokens[i]);
    tdm_word_piece *pieces;
    ck_assert_ok(tdm_word_piece_create(&vocabulary, 100, &pieces));
    check_split(pieces, "abcdx", 1, (const uint32_t[]){1});
    check_split(pieces, "abcdz", 4, (const uint32_t[]){0, 2, 3, 5});
    check_split(pieces, "abcdy", 3, (const uint32_t[]){0, 2, 4});
    check_split(pieces, "abcz", 0, NULL);
    check_split(pieces, "abcd", 0, NULL);
    check_split(pieces, "b", 0, NULL);
    check_split(pieces, "abc", 3, (const uint32_t[]){0, 2, 3});
    tdm_word_piece_destroy(pieces);
    tdm_vocabulary_deinit(&vocabulary);
}
END_TEST

START_TEST(test_long_words_are_unknown)
{
    tdm_vocabulary vocabulary = {0};
    add(&vocabulary, "a");
    add(&vocabulary, "##a");
    add(&vocabulary, "\xc3\xa9");
    add(&vocabulary, "##\xc3\xa9");
    tdm_word_piece *pieces;
    ck_assert_ok(tdm_word_piece_create(&vocabulary, 3, &pieces));
    check_split(pieces, "aaa", 3, (const uint32_t[]){0, 1, 1});
    check_split(pieces, "aaaa", 0, NULL);
    check_split(pieces, "\xc3\xa9\xc3\xa9\xc3\xa9", 3, (const uint32_t[]){2, 3, 3});
    check_split(pieces, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 0, NULL);
    tdm_word_piece_destroy(pieces);
    tdm_vocabulary_deinit(&vocabulary);
}
END_TEST

/* Ropes are no deeper than the stack is: a piece has its limit. */
START_TEST(test_very_long_pieces)
{
    static char token[4097];
    memset(token, 'a', sizeof token);
    for (size_t bytes = 4096; bytes <= 4097; bytes++) {
        tdm_vocabulary vocabulary = {0};
        add(&vocabulary, "a");
        add(&vocabulary, "##a");
        ck_assert_ok(tdm_vocabulary_add(&vocabulary, 2, token, bytes, NULL));
        tdm_word_piece *pieces;
        uint32_t ids[4096];
        ck_assert_ok(tdm_word_piece_create(&vocabulary, 100, &pieces));
        tdm_word_piece_destroy(pieces);
        if (bytes > 4096) {
            ck_assert_fails(tdm_word_piece_create(&vocabulary, 1 << 30, &pieces), TDM_E_UNSUPPORTED,
                            "id 2 has 4097 bytes");
        } else {
            ck_assert_ok(tdm_word_piece_create(&vocabulary, 1 << 30, &pieces));
            ck_assert_int_eq(tdm_word_piece_split(pieces, token, 4095, ids), 4095);
            ck_assert_int_eq(tdm_word_piece_split(pieces, token, 4096, ids), 1);
            tdm_word_piece_destroy(pieces);
        }
        tdm_vocabulary_deinit(&vocabulary);
    }
}
END_TEST

START_TEST(test_blank_and_replaced_tokens_match_nothing)
{
    tdm_vocabulary vocabulary = {0};
    int64_t taken;
    add(&vocabulary, "");
    add(&vocabulary, "x");
    ck_assert_ok(tdm_vocabulary_add(&vocabulary, 5, "x", 1, &taken));
    ck_assert_int_eq(taken, 1);
    ck_assert_int_eq(vocabulary.size, 6);
    ck_assert_int_eq(tdm_vocabulary_find(&vocabulary, "", 0), -1);
    tdm_word_piece *pieces;
    ck_assert_ok(tdm_word_piece_create(&vocabulary, 100, &pieces));
    check_split(pieces, "x", 1, (const uint32_t[]){5});
    check_split(pieces, "", 0, NULL);
    tdm_word_piece_destroy(pieces);
    tdm_vocabulary_deinit(&vocabulary);
}
END_TEST

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static size_t random_word(uint64_t *state, int letters, size_t longest, char *word)
{
    size_t bytes = 1 + next_random(state) % longest;
    for (size_t i = 0; i < bytes; i++)
        word[i] = (char)('a' + next_random(state) % (uint32_t)letters);
    return bytes;
}

/* Few letters and many tokens, so that failure links chain. */
START_TEST(test_random_vocabularies_match_greedily)
{
    uint64_t state = 1;
    for (int round = 0; round < 300; round++) {
        int letters = 1 + round % 3;
        tdm_vocabulary vocabulary = {0};
        for (int i = 0; i < 2 + round % 40; i++) {
            char token[32] = TDM_CONTINUATION;
            size_t bytes = random_word(&state, letters, 8, token + TDM_CONTINUATION_BYTES);
            size_t skip = next_random(&state) % 3 == 0 ? TDM_CONTINUATION_BYTES : 0;
            bytes += TDM_CONTINUATION_BYTES - skip;
            if (tdm_vocabulary_find(&vocabulary, token + skip, bytes) < 0)
                ck_assert_ok(tdm_vocabulary_add(&vocabulary, (uint32_t)vocabulary.size,
                                                token + skip, bytes, NULL));
        }
        tdm_word_piece *pieces;
        ck_assert_ok(tdm_word_piece_create(&vocabulary, 100, &pieces));
        for (int i = 0; i < 100; i++) {
            char word[32];
            uint32_t ids[32], expected[32];
            size_t bytes = random_word(&state, letters, 24, word);
            int64_t count = split_greedily(&vocabulary, word, bytes, expected);
            ck_assert_int_eq(tdm_word_piece_split(pieces, word, bytes, ids), count);
            ck_assert_mem_eq(ids, expected, (size_t)count * sizeof *ids);
        }
        tdm_word_piece_destroy(pieces);
        tdm_vocabulary_deinit(&vocabulary);
    }
}
END_TEST

START_TEST(test_no_memory_is_an_error)
{
    tdm_vocabulary vocabulary = {0};
    static const char *const tokens[] = {"a", "abcdx", "##b", "##c", "##cdy", "##dz"};
    for (size_t i = 0; i < 6; i++)
        add(&vocabulary, tokens[i]);
    for (int64_t n = 1;; n++) {
        tdm_word_piece *pieces;
        tdm_memory_fail_at(n, false);
        tdm_status status = tdm_word_piece_create(&vocabulary, 100, &pieces);
        tdm_memory_fail_at(0, false);
        if (status == TDM_OK) {
            tdm_word_piece_destroy(pieces);
            ck_assert_int_gt(n, 5);
            break;
        }
        ck_assert_int_eq(status, TDM_E_NOMEM);
        ck_assert_ptr_null(pieces);
    }
    tdm_vocabulary_deinit(&vocabulary);
}
END_TEST

TDM_CHECK_MAIN(test_the_longest_piece_comes_first, test_long_words_are_unknown,
               test_very_long_pieces, test_blank_and_replaced_tokens_match_nothing,
               test_random_vocabularies_match_greedily, test_no_memory_is_an_error)
