/* The vocabulary trainer: hand-worked merges, what limits it, and a trainer that counts all pairs
 * anew for every merge. */
#include "core/memory.h"
#include "core/rng.h"
#include "tests/support/check_main.h"
#include "text/vocab_trainer.h"

#include <stdio.h>
#include <string.h>

/* ---- words and tokens ------------------------------------------------------------------------ */

/* "word count word count …", in the order of the words' bytes. */
static void make_words(const char *text, tdm_word_list *list)
{
    *list = (tdm_word_list){0};
    while (*text != '\0') {
        size_t bytes = strcspn(text, " ");
        char *end;
        long long count = strtoll(text + bytes, &end, 10);
        ck_assert_ok(tdm_word_list_add(list, text, bytes, count));
        text = end + strspn(end, " ");
    }
}

static char *vocabulary_text(const tdm_vocabulary *vocabulary)
{
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "%s", ""));
    for (int64_t id = 0; id < vocabulary->size; id++)
        ck_assert_ok(tdm_text_printf(&text, "%s%.*s", id == 0 ? "" : " ",
                                     (int)vocabulary->bytes[id],
                                     vocabulary->text + vocabulary->begins[id]));
    return text.bytes;
}

static char *unk[] = {"[UNK]"};
static const tdm_strings no_strings;

static tdm_vocab_options options_of(int64_t size)
{
    static const tdm_strings specials = {unk, 1};
    return (tdm_vocab_options){
        .size = size, .limit_alphabet = 1000, .specials = &specials, .initial = &no_strings};
}

static void check_options(const char *words, const tdm_vocab_options *options, const char *expected,
                          tdm_vocab_report *report)
{
    tdm_word_list list;
    make_words(words, &list);
    tdm_vocabulary vocabulary = {0};
    ck_assert_ok(tdm_vocab_train(&list, options, &vocabulary, report));
    char *text = vocabulary_text(&vocabulary);
    ck_assert_str_eq(text, expected);
    ck_assert_int_le(vocabulary.size, options->size);
    tdm_free(text);
    tdm_vocabulary_deinit(&vocabulary);
    tdm_word_list_deinit(&list);
}

static tdm_vocab_report check_vocab(const char *words, int64_t size, const char *expected)
{
    tdm_vocab_report report;
    const tdm_vocab_options options = options_of(size);
    check_options(words, &options, expected, &report);
    return report;
}

static void check_refused(const char *words, const tdm_vocab_options *options, tdm_status code,
                          const char *message)
{
    tdm_word_list list;
    make_words(words, &list);
    tdm_vocabulary vocabulary = {0};
    tdm_vocab_report report;
    ck_assert_fails(tdm_vocab_train(&list, options, &vocabulary, &report), code, message);
    ck_assert_int_eq(vocabulary.size, 0);
    tdm_vocabulary_deinit(&vocabulary);
    tdm_word_list_deinit(&list);
}

/* ---- by hand --------------------------------------------------------------------------------- */

#define ABC "[UNK] a b c ##a ##b ##c"

START_TEST(the_most_frequent_pair_comes_first)
{
    /* a ##b 5 + 2, ##b ##c 2, b ##c 3; then ab ##c 2. */
    tdm_vocab_report report = check_vocab("ab 5 abc 2 bc 3", 100, ABC " ab bc abc");
    ck_assert_int_eq(report.merges, 3);
    ck_assert_int_eq(report.last_count, 2);
    ck_assert_int_eq(report.characters, 3);
    ck_assert_int_eq(report.alphabet, 3);
    ck_assert_int_eq(report.unknown_words, 0);
}
END_TEST

START_TEST(words_count_as_often_as_they_came)
{
    check_vocab("ab 1 cb 3000000000", 9, ABC " cb ab");
    check_vocab("ab 4000000000 cb 3000000000", 8, ABC " ab");
}
END_TEST

START_TEST(ties_go_to_the_smaller_left_token_then_right)
{
    /* All once: "##" comes before letters. */
    check_vocab("cab 1", 100, ABC " ##ab cab");
    check_vocab("ab 1 ac 1", 100, ABC " ab ac");
    check_vocab("ac 1 ba 1", 100, ABC " ac ba");
}
END_TEST

START_TEST(a_pair_is_merged_from_left_to_right)
{
    /* a ##a and ##a ##a once each: "##" first. */
    check_vocab("aaa 1", 100, "[UNK] a ##a ##aa aaa");
    /* ##a ##a twice; then ##aa ##a before a ##aa. */
    check_vocab("aaaa 1", 100, "[UNK] a ##a ##aa ##aaa aaaa");
    check_vocab("baaaab 1", 100, "[UNK] a b ##a ##b ##aa ##aaaa ##aaaab baaaab");
    /* Pairs that follow on one another: ##ab ##ab ##ab holds ##ab ##ab twice. */
    check_vocab("cababab 3", 100, ABC " ##ab ##abab ##ababab cababab");
}
END_TEST

START_TEST(words_of_one_character_train_nothing)
{
    tdm_vocab_report report = check_vocab("a 7 b 8 c 9", 100, ABC);
    ck_assert_int_eq(report.merges, 0);
    ck_assert_int_eq(report.last_count, 0);
}
END_TEST

START_TEST(characters_are_code_points)
{
    check_vocab("\xc3\xa4\xe4\xb8\xad 2 \xf0\x9f\x98\x80z 1", 100,
                "[UNK] z \xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80 ##z ##\xc3\xa4 ##\xe4\xb8\xad "
                "##\xf0\x9f\x98\x80 \xc3\xa4\xe4\xb8\xad \xf0\x9f\x98\x80z");
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

START_TEST(seldom_pairs_become_no_tokens)
{
    tdm_vocab_options options = options_of(100);
    tdm_vocab_report report;
    options.min_frequency = 3;
    check_options("ab 5 abc 2 bc 3", &options, ABC " ab bc", &report);
    options.min_frequency = 4;
    check_options("ab 5 abc 2 bc 3", &options, ABC " ab", &report);
    /* Words below it count towards pairs. */
    check_options("ab 2 abc 2", &options, ABC " ab", &report);
    options.min_frequency = 0;
    check_options("ab 1", &options, "[UNK] a b ##a ##b ab", &report);
}
END_TEST

START_TEST(the_size_is_never_exceeded)
{
    tdm_vocab_options options = options_of(7);
    tdm_vocab_report report;
    check_options("ab 5 abc 2 bc 3", &options, ABC, &report);
    options.size = 9;
    check_options("ab 5 abc 2 bc 3", &options, ABC " ab bc", &report);
    options.size = 6;
    check_refused("ab 5 abc 2 bc 3", &options, TDM_E_ARG,
                  "a size of 6 is too small: 1 special tokens, 0 initial ones and two forms of 3 "
                  "characters need 7");
    options.size = 0;
    check_refused("ab 1", &options, TDM_E_ARG, "from 1 to 16777216 tokens, not 0");
    options.size = TDM_MAX_VOCABULARY + 1;
    check_refused("ab 1", &options, TDM_E_ARG, "from 1 to 16777216 tokens");
}
END_TEST

START_TEST(the_alphabet_keeps_the_most_frequent_characters)
{
    tdm_vocab_options options = options_of(100);
    tdm_vocab_report report;
    options.limit_alphabet = 2;
    /* a 2, b 7, c 9, each as often as its word. */
    check_options("a 2 b 7 c 9", &options, "[UNK] b c ##b ##c", &report);
    ck_assert_int_eq(report.characters, 3);
    ck_assert_int_eq(report.alphabet, 2);
    ck_assert_int_eq(report.unknown_words, 1);
    ck_assert_int_eq(report.unknown_total, 2);
    /* Twice in a word is twice; as frequent ones by code point. */
    check_options("aa 5 b 7 c 7 d 7", &options, "[UNK] a b ##a ##b aa", &report);
    ck_assert_int_eq(report.unknown_total, 14);
}
END_TEST

START_TEST(a_word_with_an_unknown_character_trains_nothing)
{
    tdm_vocab_options options = options_of(100);
    tdm_vocab_report report;
    options.limit_alphabet = 2;
    check_options("ab 2 acb 100", &options, "[UNK] a b ##a ##b ab", &report);
    ck_assert_int_eq(report.last_count, 2);
    ck_assert_int_eq(report.unknown_words, 1);
    ck_assert_int_eq(report.unknown_total, 100);
}
END_TEST

/* ---- tokens that are given ------------------------------------------------------------------- */

START_TEST(special_tokens_come_first)
{
    static char *items[] = {"[PAD]", "[UNK]", "[PAD]", "b"};
    static const tdm_strings specials = {items, 4};
    tdm_vocab_options options = options_of(100);
    tdm_vocab_report report;
    options.specials = &specials;
    check_options("ab 1", &options, "[PAD] [UNK] b a ##a ##b ab", &report);
}
END_TEST

START_TEST(initial_tokens_are_in_whatever_the_words)
{
    static char *items[] = {"abc", "##xyz", "z", "##q", "a"};
    static const tdm_strings initial = {items, 5};
    tdm_vocab_options options = options_of(100);
    tdm_vocab_report report;
    options.initial = &initial;
    /* abc keeps the id that it has. */
    check_options("ab 5 abc 2 abcb 1", &options,
                  "[UNK] abc ##xyz a b c q z ##a ##b ##c ##q ##z ab abcb", &report);
    ck_assert_int_eq(report.merges, 3);
    /* Characters among them count before all others, and may be more than the limit. */
    options.limit_alphabet = 2;
    check_options("ab 5 abc 2 abcb 1", &options, "[UNK] abc ##xyz a q z ##a ##q ##z", &report);
    options.limit_alphabet = 4;
    check_options("ab 5 abc 2", &options, "[UNK] abc ##xyz a b q z ##a ##b ##q ##z ab", &report);
}
END_TEST

START_TEST(tokens_that_no_line_can_hold_are_refused)
{
    static char *const wrong[] = {"", "a\nb", "a\r", "\xff"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *item = wrong[i];
        const tdm_strings tokens = {&item, 1};
        tdm_vocab_options options = options_of(100);
        options.specials = &tokens;
        check_refused("ab 1", &options, TDM_E_ARG, "cannot be a token");
        options = options_of(100);
        options.initial = &tokens;
        check_refused("ab 1", &options, TDM_E_ARG, "cannot be a token");
    }
}
END_TEST

START_TEST(no_words_are_refused)
{
    const tdm_vocab_options options = options_of(100);
    check_refused("", &options, TDM_E_DATA, "no word");
}
END_TEST

/* ---- against a literal trainer --------------------------------------------------------------- */

#define MAX_WORDS   40
#define MAX_LENGTH  24
#define MAX_TOKENS  200
#define TOKEN_BYTES 32

/* Words as sequences of tokens, all of which are strings. */
typedef struct literal_trainer {
    char words[MAX_WORDS][MAX_LENGTH][TOKEN_BYTES];
    int lengths[MAX_WORDS];
    int64_t counts[MAX_WORDS];
    int word_count;
    char tokens[MAX_TOKENS + 1][TOKEN_BYTES];
    int token_count;
} literal_trainer;

static void add_token(literal_trainer *trainer, const char *token)
{
    for (int i = 0; i < trainer->token_count; i++) {
        if (strcmp(trainer->tokens[i], token) == 0)
            return;
    }
    int bytes = snprintf(trainer->tokens[trainer->token_count++], TOKEN_BYTES, "%s", token);
    ck_assert_int_lt(bytes, TOKEN_BYTES);
}

static int64_t count_pair(const literal_trainer *trainer, const char *left, const char *right)
{
    int64_t count = 0;
    for (int w = 0; w < trainer->word_count; w++) {
        for (int i = 0; i + 1 < trainer->lengths[w]; i++) {
            if (strcmp(trainer->words[w][i], left) == 0 &&
                strcmp(trainer->words[w][i + 1], right) == 0)
                count += trainer->counts[w];
        }
    }
    return count;
}

/* Copies the pair that goes first; returns how often it occurs, 0 where there is none. */
static int64_t first_pair(const literal_trainer *trainer, char best_left[TOKEN_BYTES],
                          char best_right[TOKEN_BYTES])
{
    int64_t best = 0;
    for (int w = 0; w < trainer->word_count; w++) {
        for (int i = 0; i + 1 < trainer->lengths[w]; i++) {
            const char *left = trainer->words[w][i], *right = trainer->words[w][i + 1];
            int64_t count = count_pair(trainer, left, right);
            int order = best == 0 ? -1 : strcmp(left, best_left);
            if (best != 0 && order == 0)
                order = strcmp(right, best_right);
            if (count < best || (count == best && order >= 0))
                continue;
            best = count;
            snprintf(best_left, TOKEN_BYTES, "%s", left);
            snprintf(best_right, TOKEN_BYTES, "%s", right);
        }
    }
    return best;
}

static void merge_everywhere(literal_trainer *trainer, const char *left, const char *right,
                             const char *joined)
{
    for (int w = 0; w < trainer->word_count; w++) {
        int kept = 0;
        for (int i = 0; i < trainer->lengths[w]; i++) {
            char(*word)[TOKEN_BYTES] = trainer->words[w];
            bool is_pair = i + 1 < trainer->lengths[w] && strcmp(word[i], left) == 0 &&
                           strcmp(word[i + 1], right) == 0;
            memmove(word[kept], is_pair ? joined : word[i], TOKEN_BYTES);
            kept++;
            i += is_pair;
        }
        trainer->lengths[w] = kept;
    }
}

static void train_literally(literal_trainer *trainer, int64_t size, int64_t min_frequency)
{
    char left[TOKEN_BYTES], right[TOKEN_BYTES], joined[2 * TOKEN_BYTES];
    while (trainer->token_count < size) {
        int64_t count = first_pair(trainer, left, right);
        if (count == 0 || count < min_frequency)
            return;
        memset(joined, 0, sizeof joined);
        snprintf(joined, sizeof joined, "%s%s", left, right + 2);
        add_token(trainer, joined);
        merge_everywhere(trainer, left, right, joined);
    }
}

/* ---- random corpora -------------------------------------------------------------------------- */

typedef struct test_dice {
    tdm_philox_key key;
    uint32_t thrown;
} test_dice;

/* 0 .. below - 1 */
static int throw_dice(test_dice *dice, int below)
{
    return (int)(tdm_random(dice->key, 1, 0, dice->thrown++) % (uint32_t)below);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void random_corpus(test_dice *dice, int letters, literal_trainer *trainer,
                          tdm_word_list *list)
{
    char texts[MAX_WORDS][MAX_LENGTH + 1] = {{0}};
    int count = 1 + throw_dice(dice, MAX_WORDS);
    for (int w = 0; w < count; w++) {
        int length = 1 + throw_dice(dice, w % 2 == 0 ? 6 : MAX_LENGTH);
        for (int i = 0; i < length; i++)
            texts[w][i] = (char)('a' + throw_dice(dice, letters));
    }
    qsort(texts, (size_t)count, sizeof texts[0], compare_texts);
    for (int w = 0; w < count; w++) {
        if (w > 0 && strcmp(texts[w], texts[w - 1]) == 0)
            continue;
        int added = trainer->word_count++;
        trainer->lengths[added] = (int)strlen(texts[w]);
        trainer->counts[added] = 1 + throw_dice(dice, 4);
        for (int i = 0; i < trainer->lengths[added]; i++)
            snprintf(trainer->words[added][i], TOKEN_BYTES, "%s%c", i == 0 ? "" : "##",
                     texts[w][i]);
        ck_assert_ok(tdm_word_list_add(list, texts[w], strlen(texts[w]), trainer->counts[added]));
    }
    for (int form = 0; form < 2; form++) {
        for (char letter = 'a'; letter < 'a' + letters; letter++) {
            char token[4];
            bool used = false;
            for (int w = 0; w < count; w++)
                used = used || strchr(texts[w], letter) != NULL;
            snprintf(token, sizeof token, "%s%c", form == 0 ? "" : "##", letter);
            if (used)
                add_token(trainer, token);
        }
    }
}

static void check_random_corpus(uint64_t seed)
{
    test_dice dice = {.key = tdm_philox_make_key(seed, TDM_PURPOSE_SYNTH, 0)};
    static literal_trainer trainer;
    memset(&trainer, 0, sizeof trainer);
    tdm_word_list list = {0};
    static char *items[] = {"[UNK]", "abab", "##aab", "aaaa", "##bb"};
    const tdm_strings specials = {items, 1};
    const tdm_strings initial = {items + 1, throw_dice(&dice, 5)};
    for (int i = 0; i < 1 + initial.count; i++)
        add_token(&trainer, items[i]);
    random_corpus(&dice, 1 + throw_dice(&dice, 4), &trainer, &list);
    tdm_vocab_options options = options_of(trainer.token_count + throw_dice(&dice, 120));
    options.specials = &specials;
    options.initial = &initial;
    options.min_frequency = throw_dice(&dice, 4);
    train_literally(&trainer, options.size, options.min_frequency);
    tdm_vocabulary vocabulary = {0};
    tdm_vocab_report report;
    ck_assert_ok(tdm_vocab_train(&list, &options, &vocabulary, &report));
    ck_assert_msg(vocabulary.size == trainer.token_count, "corpus %llu: %lld tokens, expected %d",
                  (unsigned long long)seed, (long long)vocabulary.size, trainer.token_count);
    for (int id = 0; id < trainer.token_count; id++)
        ck_assert_msg(
            tdm_vocabulary_find(&vocabulary, trainer.tokens[id], strlen(trainer.tokens[id])) == id,
            "corpus %llu: token %d is not %s", (unsigned long long)seed, id, trainer.tokens[id]);
    tdm_vocabulary_deinit(&vocabulary);
    tdm_word_list_deinit(&list);
}

START_TEST(random_corpora_give_what_counting_anew_gives)
{
    for (uint64_t seed = 0; seed < 300; seed++)
        check_random_corpus(seed);
}
END_TEST

/* ---- larger ones ----------------------------------------------------------------------------- */

/* Distinct words in order. */
static void many_words(tdm_word_list *list)
{
    *list = (tdm_word_list){0};
    for (int i = 0; i < 8 * 8 * 8 * 8; i++) {
        char text[5] = {(char)('a' + (i >> 9)), (char)('a' + (i >> 6 & 7)),
                        (char)('a' + (i >> 3 & 7)), (char)('a' + (i & 7)), '\0'};
        ck_assert_ok(tdm_word_list_add(list, text, 4, 1 + i * 7919 % 101));
    }
}

static void note_tokens(void *context, int64_t tokens)
{
    int64_t *last = context;
    ck_assert_int_gt(tokens, *last);
    *last = tokens;
}

START_TEST(progress_is_told_and_training_can_be_stopped)
{
    tdm_word_list list;
    many_words(&list);
    atomic_bool cancel = false;
    int64_t last = 0;
    tdm_vocab_options options = options_of(2000);
    options.cancel = &cancel;
    options.progress = note_tokens;
    options.progress_context = &last;
    tdm_vocabulary vocabulary = {0};
    tdm_vocab_report report;
    ck_assert_ok(tdm_vocab_train(&list, &options, &vocabulary, &report));
    ck_assert_int_eq(vocabulary.size, 2000);
    ck_assert_int_gt(last, 0);
    tdm_vocabulary_deinit(&vocabulary);
    atomic_store(&cancel, true);
    ck_assert_fails(tdm_vocab_train(&list, &options, &vocabulary, &report), TDM_E_CANCELLED,
                    "stopped");
    ck_assert_int_eq(vocabulary.size, 0);
    tdm_word_list_deinit(&list);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    tdm_word_list list;
    many_words(&list);
    const tdm_vocab_options options = options_of(300);
    tdm_vocab_report report;
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status != TDM_OK; n++) {
        tdm_vocabulary vocabulary = {0};
        tdm_memory_fail_at(n, false);
        status = tdm_vocab_train(&list, &options, &vocabulary, &report);
        tdm_memory_fail_at(0, false);
        ck_assert(status == TDM_OK || status == TDM_E_NOMEM);
        ck_assert_int_eq(vocabulary.size, status == TDM_OK ? 300 : 0);
        tdm_vocabulary_deinit(&vocabulary);
    }
    tdm_word_list_deinit(&list);
}
END_TEST

TDM_CHECK_MAIN(the_most_frequent_pair_comes_first, words_count_as_often_as_they_came,
               ties_go_to_the_smaller_left_token_then_right, a_pair_is_merged_from_left_to_right,
               words_of_one_character_train_nothing, characters_are_code_points,
               seldom_pairs_become_no_tokens, the_size_is_never_exceeded,
               the_alphabet_keeps_the_most_frequent_characters,
               a_word_with_an_unknown_character_trains_nothing, special_tokens_come_first,
               initial_tokens_are_in_whatever_the_words, tokens_that_no_line_can_hold_are_refused,
               no_words_are_refused, random_corpora_give_what_counting_anew_gives,
               progress_is_told_and_training_can_be_stopped, every_allocation_may_fail)
