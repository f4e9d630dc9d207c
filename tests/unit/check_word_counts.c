/* Counting words: the same for any threads, files and memory; what is saved and added to; what is
 * left out and told. */
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "text/word_counts.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char folder[TDM_FOLDER_BYTES];

typedef struct count_case {
    const char *files[4]; /* names in the folder, ended by NULL */
    const char *counts;   /* likewise */
    int threads;          /* 0: 1 */
    size_t map_bytes;     /* 0: plenty */
    size_t list_bytes;    /* 0: plenty */
    bool cased;
    int max_word_chars; /* 0: 100 */
    bool keep_controls;
    const atomic_bool *cancel;
} count_case;

static void set_up(void)
{
    tdm_new_folder(folder);
    ck_assert_int_eq(setenv("TMPDIR", folder, 1), 0);
}

static void put(const char *name, const char *text)
{
    tdm_free(tdm_data_rig_put_text(folder, name, text));
}

static const char *path_of(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static tdm_status try_count(const count_case *wanted, tdm_word_list *list,
                            tdm_word_count_report *report)
{
    char *items[4];
    tdm_strings names = {items, 0};
    while (names.count < 4 && wanted->files[names.count] != NULL) {
        items[names.count] = (char *)(uintptr_t)path_of(wanted->files[names.count]);
        names.count++;
    }
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    settings.lowercase = !wanted->cased;
    settings.clean_text = !wanted->keep_controls;
    settings.max_word_chars = wanted->max_word_chars == 0 ? 100 : wanted->max_word_chars;
    tdm_word_count_options options = {
        .names = &names,
        .settings = &settings,
        .counts_path = wanted->counts == NULL ? NULL : path_of(wanted->counts),
        .map_bytes = wanted->map_bytes == 0 ? (size_t)1 << 30 : wanted->map_bytes,
        .list_bytes = wanted->list_bytes == 0 ? (size_t)1 << 30 : wanted->list_bytes,
        .cancel = wanted->cancel,
    };
    tdm_file_writer *counts;
    TDM_TRY(tdm_pool_create(wanted->threads == 0 ? 1 : wanted->threads, &options.pool));
    tdm_status status = tdm_word_counts(&options, &counts, list, report);
    tdm_pool_destroy(options.pool);
    if (status != TDM_OK)
        return status;
    ck_assert((counts != NULL) == (wanted->counts != NULL));
    if (counts != NULL)
        status = tdm_file_writer_commit(counts, NULL, NULL);
    tdm_file_writer_close(counts);
    return status;
}

/* "word count word count …" */
static char *list_text(const tdm_word_list *list)
{
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "%s", ""));
    for (int64_t i = 0; i < list->count; i++)
        ck_assert_ok(tdm_text_printf(&text, "%s%.*s %" PRId64, i == 0 ? "" : " ",
                                     (int)(list->begins[i + 1] - list->begins[i]),
                                     list->text + list->begins[i], list->counts[i]));
    return text.bytes;
}

static char *count_text(const count_case *wanted, tdm_word_count_report *report)
{
    tdm_word_list list;
    tdm_word_count_report unused;
    ck_assert_ok(try_count(wanted, &list, report == NULL ? &unused : report));
    int64_t total = 0;
    for (int64_t i = 0; i < list.count; i++)
        total += list.counts[i];
    ck_assert_int_eq(total, list.total);
    char *text = list_text(&list);
    tdm_word_list_deinit(&list);
    return text;
}

static tdm_word_count_report check_counts(const count_case *wanted, const char *expected)
{
    tdm_word_count_report report;
    char *text = count_text(wanted, &report);
    ck_assert_str_eq(text, expected);
    tdm_free(text);
    return report;
}

static void check_fails(const count_case *wanted, tdm_status code, const char *message)
{
    tdm_word_list list;
    tdm_word_count_report report;
    ck_assert_fails(try_count(wanted, &list, &report), code, message);
    ck_assert_int_eq(list.count, 0);
}

/* No temporary file is left. */
static void check_folder_holds(int files)
{
    DIR *open_folder = opendir(folder);
    ck_assert_ptr_nonnull(open_folder);
    int found = 0;
    for (struct dirent *entry; (entry = readdir(open_folder)) != NULL;)
        found += entry->d_name[0] != '.';
    closedir(open_folder);
    ck_assert_int_eq(found, files);
}

/* ---- words ----------------------------------------------------------------------------------- */

START_TEST(words_are_normalised_and_counted)
{
    set_up();
    put("a.txt", "The cat, the dog.\nTHE caf\xc3\xa9\t\xe4\xb8\xad\xe6\x96\x87!\r\n");
    tdm_word_count_report report =
        check_counts(&(count_case){.files = {"a.txt"}},
                     "! 1 , 1 . 1 cafe 1 cat 1 dog 1 the 3 \xe4\xb8\xad 1 \xe6\x96\x87 1");
    ck_assert_int_eq(report.files, 1);
    ck_assert_int_eq(report.text_bytes, 37);
    ck_assert_int_eq(report.words, 11);
    ck_assert_int_eq(report.total, 11);
    ck_assert_int_eq(report.distinct, 9);
    ck_assert_int_eq(report.spilled, 0);
    ck_assert_int_eq(report.invalid_bytes, 0);
    check_counts(&(count_case){.files = {"a.txt"}, .cased = true},
                 "! 1 , 1 . 1 THE 1 The 1 caf\xc3\xa9 1 cat 1 dog 1 the 1 \xe4\xb8\xad 1 "
                 "\xe6\x96\x87 1");
}
END_TEST

/* Words of 15, 16, 17 bytes and more lie in different places; a word may begin another. */
START_TEST(words_of_all_lengths_are_told_apart)
{
    set_up();
    tdm_text text = {0}, expected = {0};
    for (int length = 1; length <= 40; length++) {
        for (int i = 0; i < 2; i++)
            ck_assert_ok(tdm_text_printf(&text, "%.*s ", length,
                                         "abcdefghabcdefghabcdefghabcdefghabcdefgh"));
        ck_assert_ok(tdm_text_printf(&text, "%.*sz ", length - 1,
                                     "abcdefghabcdefghabcdefghabcdefghabcdefgh"));
    }
    /* In order: a beginning, what it begins, and at its depth the one that ends with z. */
    for (int length = 1; length <= 40; length++)
        ck_assert_ok(tdm_text_printf(&expected, "%s%.*s 2", length == 1 ? "" : " ", length,
                                     "abcdefghabcdefghabcdefghabcdefghabcdefgh"));
    for (int length = 40; length >= 1; length--)
        ck_assert_ok(tdm_text_printf(&expected, " %.*sz 1", length - 1,
                                     "abcdefghabcdefghabcdefghabcdefghabcdefgh"));
    put("a.txt", text.bytes);
    check_counts(&(count_case){.files = {"a.txt"}}, expected.bytes);
    tdm_free(text.bytes);
    tdm_free(expected.bytes);
}
END_TEST

/* Zeros are characters like others where controls are kept. */
START_TEST(zeros_are_no_padding)
{
    set_up();
    tdm_free(tdm_data_rig_put(folder, "a.txt", "a a\0 a", 6));
    tdm_word_list list;
    tdm_word_count_report report;
    ck_assert_ok(
        try_count(&(count_case){.files = {"a.txt"}, .keep_controls = true}, &list, &report));
    ck_assert_int_eq(list.count, 2);
    ck_assert_int_eq(list.counts[0], 2);
    ck_assert_uint_eq(list.begins[1], 1);
    ck_assert_uint_eq(list.begins[2], 3);
    ck_assert_mem_eq(list.text, "aa\0", 3);
    tdm_word_list_deinit(&list);
}
END_TEST

START_TEST(bytes_that_are_not_utf8_are_told)
{
    set_up();
    put("a.txt", "a\xff"
                 "b \xc3 plain \xed\xa0\x80 words behind it \xe4\xb8\xad");
    tdm_word_count_report report = check_counts(
        &(count_case){.files = {"a.txt"}}, "ab 1 behind 1 it 1 plain 1 words 1 \xe4\xb8\xad 1");
    ck_assert_int_eq(report.invalid_bytes, 5);
}
END_TEST

START_TEST(words_beyond_the_limit_are_left_out)
{
    set_up();
    put("a.txt", "abcd abcde \xe4\xba\x94\xe4\xba\x94 \xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6 "
                 "\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6 abcde");
    tdm_word_count_report report =
        check_counts(&(count_case){.files = {"a.txt"}, .max_word_chars = 4},
                     "abcd 1 \xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6 1 \xe4\xba\x94 2");
    ck_assert_int_eq(report.too_long, 3);
    ck_assert_int_eq(report.words, 4);
    check_fails(&(count_case){.files = {"a.txt"}, .max_word_chars = -1}, TDM_E_ARG,
                "words of at most -1 characters");
    check_fails(&(count_case){.files = {"a.txt"}, .max_word_chars = 20000}, TDM_E_ARG,
                "from 1 to 16383");
}
END_TEST

START_TEST(no_text_is_no_words)
{
    set_up();
    put("a.txt", "");
    put("b.txt", " \n\t\r\n");
    tdm_word_count_report report = check_counts(&(count_case){.files = {"a.txt", "b.txt"}}, "");
    ck_assert_int_eq(report.files, 2);
    ck_assert_int_eq(report.words, 0);
}
END_TEST

/* ---- the same result ------------------------------------------------------------------------- */

/* Words of which many are seldom, and of all lengths. */
static void put_corpus(const char *name, int first, int count)
{
    char *text;
    size_t at = 0;
    ck_assert_ok(tdm_alloc((size_t)count, 64, &text));
    for (int i = first; i < first + count; i++)
        at += (size_t)sprintf(text + at, "w%d the %.*s%c", i * 7919 % 20011, 1 + i % 29,
                              "longlonglonglonglonglonglonglong", i % 11 == 0 ? '\n' : ' ');
    put(name, text);
    tdm_free(text);
}

/* More temporary files than may be open at the same time. */
#define FILES_MAX 84

START_TEST(threads_order_and_memory_do_not_matter)
{
    set_up();
    const struct rlimit limit = {FILES_MAX, FILES_MAX};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    put_corpus("a.txt", 0, 20000);
    put_corpus("b.txt.gz", 10000, 20000);
    put_corpus("c.txt.zst", 30000, 3);
    char *expected = count_text(&(count_case){.files = {"a.txt", "b.txt.gz", "c.txt.zst"}}, NULL);
    ck_assert_uint_gt(strlen(expected), 20000 * 7);
    const count_case cases[] = {
        {.files = {"c.txt.zst", "b.txt.gz", "a.txt"}},
        {.files = {"*.txt*"}, .threads = 2},
        {.files = {"b.txt.gz", "a.txt", "c.txt.zst"}, .threads = 4},
        {.files = {"a.txt", "c.txt.zst", "b.txt.gz"}, .threads = 2, .map_bytes = 200000},
        {.files = {"a.txt", "b.txt.gz", "c.txt.zst"}, .threads = 4, .map_bytes = 1},
        {.files = {"a.txt", "b.txt.gz", "c.txt.zst"}, .map_bytes = 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_word_count_report report;
        char *text = count_text(&cases[i], &report);
        ck_assert_msg(strcmp(text, expected) == 0, "case %zu differs", i);
        ck_assert_int_eq(report.total, 3 * 40003);
        ck_assert((report.spilled > 0) == (cases[i].map_bytes > 0));
        ck_assert(cases[i].map_bytes != 1 || report.spilled > FILES_MAX);
        tdm_free(text);
    }
    tdm_free(expected);
    check_folder_holds(3);
}
END_TEST

/* ---- counts that are saved ------------------------------------------------------------------- */

#define HEADER                                                                                     \
    "#tandem-word-counts 1 unicode=huggingface form=none clean_text=1 handle_chinese_chars=1 "     \
    "lowercase=1 strip_accents=1 max_word_chars=100\n"

static void check_file(const char *name, const char *expected)
{
    char *text;
    size_t bytes;
    ck_assert_ok(tdm_file_get(path_of(name), 1 << 20, &text, &bytes));
    ck_assert_str_eq(text, expected);
    tdm_free(text);
}

START_TEST(counts_are_saved_and_added_to)
{
    set_up();
    put("a.txt", "b a b");
    put("b.txt", "c b");
    check_counts(&(count_case){.files = {"a.txt"}, .counts = "counts"}, "a 1 b 2");
    check_file("counts", HEADER "1\ta\n2\tb\n#end 2 3\n");
    tdm_word_count_report report =
        check_counts(&(count_case){.files = {"b.txt"}, .counts = "counts"}, "a 1 b 3 c 1");
    ck_assert_int_eq(report.words, 2);
    ck_assert_int_eq(report.total, 5);
    check_file("counts", HEADER "1\ta\n3\tb\n1\tc\n#end 3 5\n");
    /* Nothing new. */
    report = check_counts(&(count_case){.counts = "counts"}, "a 1 b 3 c 1");
    ck_assert_int_eq(report.files, 0);
    check_file("counts", HEADER "1\ta\n3\tb\n1\tc\n#end 3 5\n");
}
END_TEST

START_TEST(saved_counts_equal_one_count)
{
    set_up();
    put_corpus("a.txt", 0, 6000);
    put_corpus("b.txt", 3000, 6000);
    check_folder_holds(2);
    char *together = count_text(&(count_case){.files = {"a.txt", "b.txt"}, .counts = "both"}, NULL);
    tdm_free(count_text(&(count_case){.files = {"b.txt"}, .counts = "grown"}, NULL));
    char *grown = count_text(
        &(count_case){.files = {"a.txt"}, .counts = "grown", .map_bytes = 1, .threads = 2}, NULL);
    ck_assert_str_eq(together, grown);
    tdm_free(together);
    tdm_free(grown);
    uint64_t hashes[2];
    int64_t bytes;
    ck_assert_ok(tdm_file_hash(path_of("both"), &hashes[0], &bytes));
    ck_assert_ok(tdm_file_hash(path_of("grown"), &hashes[1], &bytes));
    ck_assert_uint_eq(hashes[0], hashes[1]);
}
END_TEST

START_TEST(other_settings_are_refused)
{
    set_up();
    put("a.txt", "b a b");
    check_counts(&(count_case){.files = {"a.txt"}, .counts = "counts"}, "a 1 b 2");
    check_fails(&(count_case){.files = {"a.txt"}, .counts = "counts", .cased = true}, TDM_E_DATA,
                "lowercase=0 strip_accents=0");
    check_file("counts", HEADER "1\ta\n2\tb\n#end 2 3\n");
    check_fails(&(count_case){.files = {"a.txt"}, .counts = "a.txt"}, TDM_E_DATA,
                "is no file of word counts");
    check_file("a.txt", "b a b");
    check_fails(&(count_case){.files = {"a.txt"}, .counts = "counts.gz"}, TDM_E_ARG,
                "counts.gz: word counts are written as plain text: leave out the .gz");
    check_folder_holds(2);
}
END_TEST

START_TEST(damaged_counts_are_refused_with_their_line)
{
    static const struct {
        const char *lines, *message;
    } cases[] = {
        {"", ":1: its last line is missing"},
        {"1\ta\n2\tb\n", ":3: its last line is missing"},
        {"1\ta\n#end 1 2\n", ":3: its last line does not fit"},
        {"1\ta\n#end 2 1\n", ":3: its last line does not fit"},
        {"1\ta\n#end 1 1\n1\tb\n", ":4: a line behind the last one"},
        {"1\ta\n#end 1 1", ":3: the line is too long, or has no end"},
        {"1 a\n#end 1 1\n", ":2: expected a count, a tab and a word"},
        {"\n#end 0 0\n", ":2: expected a count, a tab and a word"},
        {"0\ta\n#end 1 0\n", ":2: expected a count, a tab and a word"},
        {"01\ta\n#end 1 1\n", ":2: expected a count, a tab and a word"},
        {"\ta\n#end 1 0\n", ":2: expected a count, a tab and a word"},
        {"-1\ta\n#end 1 0\n", ":2: expected a count, a tab and a word"},
        {"1\ta\n1\t\n#end 1 1\n", ":3: the word is empty"},
        {"1\ta\xff\n#end 1 1\n", ":2: the word is empty, too long or not UTF-8"},
        {"1\tb\n1\ta\n#end 2 2\n", ":3: the words are not in the order"},
        {"1\ta\n1\ta\n#end 2 2\n", ":3: the words are not in the order"},
        {"99999999999999999999\ta\n#end 1 1\n", ":2: more words than can be counted"},
        {"9223372036854775807\ta\n1\tb\n#end 1 1\n", "cannot be counted"},
        {"9223372036854775807\ta\n#end 1 9223372036854775807\n", "cannot be counted"},
    };
    set_up();
    put("a.txt", "a b");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text;
        ck_assert_ok(tdm_format(&text, "%s%s", HEADER, cases[i].lines));
        put("counts", text);
        check_fails(&(count_case){.counts = "counts"}, TDM_E_DATA, cases[i].message);
        check_fails(&(count_case){.files = {"a.txt"}, .counts = "counts"}, TDM_E_DATA, "");
        check_file("counts", text);
        tdm_free(text);
    }
    check_folder_holds(2);
}
END_TEST

/* ---- limits and failures --------------------------------------------------------------------- */

START_TEST(rare_words_go_where_memory_does_not_suffice)
{
    set_up();
    put("a.txt", "aa aa aa aa bb cc cc dd dd dd ee ee");
    size_t bytes = 5 * TDM_TRAINING_BYTES(2);
    tdm_warnings_expect("left out");
    tdm_word_count_report report = check_counts(
        &(count_case){.files = {"a.txt"}, .list_bytes = bytes}, "aa 4 bb 1 cc 2 dd 3 ee 2");
    ck_assert_int_eq(report.pruned, 0);
    ck_assert_int_eq(report.pruned_below, 1);
    ck_assert_int_eq(tdm_warnings_seen(), 0);
    tdm_warnings_expect("the 3 that came less than 3 times, 41.7 % of the text's words");
    report =
        check_counts(&(count_case){.files = {"a.txt"}, .list_bytes = bytes - 1, .counts = "counts"},
                     "aa 4 dd 3");
    ck_assert_int_eq(report.pruned, 3);
    ck_assert_int_eq(report.pruned_total, 5);
    ck_assert_int_eq(report.pruned_below, 3);
    ck_assert_int_eq(report.distinct, 5);
    ck_assert_int_eq(report.total, 12);
    ck_assert_int_eq(tdm_warnings_seen(), 1);
    check_file("counts", HEADER "4\taa\n1\tbb\n2\tcc\n3\tdd\n2\tee\n#end 5 12\n");
}
END_TEST

START_TEST(failures_leave_nothing_behind)
{
    set_up();
    put_corpus("a.txt", 0, 6000);
    put("broken.txt", "\x1f\x8b no gzip");
    check_fails(&(count_case){.files = {"missing.txt"}, .counts = "counts"}, TDM_E_IO,
                "missing.txt");
    check_fails(
        &(count_case){
            .files = {"a.txt", "broken.txt"}, .threads = 4, .map_bytes = 1, .counts = "counts"},
        TDM_E_DATA, "broken.txt");
    check_fails(&(count_case){.files = {"a.txt"}, .counts = "no/counts"}, TDM_E_IO, "no/counts");
    const atomic_bool cancel = true;
    check_fails(&(count_case){.files = {"a.txt"}, .map_bytes = 1, .cancel = &cancel},
                TDM_E_CANCELLED, "stopped");
    check_folder_holds(2);
    ck_assert_int_eq(setenv("TMPDIR", path_of("nowhere"), 1), 0);
    check_fails(&(count_case){.files = {"a.txt"}, .map_bytes = 1}, TDM_E_IO, "TMPDIR");
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    set_up();
    put_corpus("a.txt", 0, 1000);
    put("counts", HEADER "1\ta\n3\tb\n1\tc\n#end 3 5\n");
    const count_case wanted = {.files = {"a.txt"}, .counts = "counts", .map_bytes = 1};
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status != TDM_OK; n++) {
        tdm_word_list list = {0};
        tdm_word_count_report report;
        tdm_memory_fail_at(n, false);
        status = try_count(&wanted, &list, &report);
        tdm_memory_fail_at(0, false);
        ck_assert_msg(status == TDM_OK || status == TDM_E_NOMEM, "%lld: %s", (long long)n,
                      tdm_error_message());
        tdm_word_list_deinit(&list);
    }
}
END_TEST

TDM_CHECK_MAIN(words_are_normalised_and_counted, words_of_all_lengths_are_told_apart,
               zeros_are_no_padding, bytes_that_are_not_utf8_are_told,
               words_beyond_the_limit_are_left_out, no_text_is_no_words,
               threads_order_and_memory_do_not_matter, counts_are_saved_and_added_to,
               saved_counts_equal_one_count, other_settings_are_refused,
               damaged_counts_are_refused_with_their_line,
               rare_words_go_where_memory_does_not_suffice, failures_leave_nothing_behind,
               every_allocation_may_fail)
