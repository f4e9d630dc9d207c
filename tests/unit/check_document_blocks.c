/* Blocks that keep documents together, against a literal splitter, for every place of a border. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/record_reader.h"

#include <stdio.h>
#include <string.h>

static char folder[TDM_FOLDER_BYTES];

/* ---- the literal splitter -------------------------------------------------------------------- */

typedef struct document {
    size_t begin, end; /* of its lines, the last one's end not counted */
    size_t bytes;      /* with that */
} document;

#define MOST_DOCUMENTS 4096

static bool is_blank(const char *text, size_t begin, size_t end)
{
    for (; begin < end; begin++) {
        if (strchr(" \t\r\v\f", text[begin]) == NULL)
            return false;
    }
    return true;
}

/* Documents of a text without mark and without NUL. */
static int split(const char *text, size_t size, document documents[MOST_DOCUMENTS])
{
    int count = 0;
    bool open = false;
    for (size_t begin = 0; begin < size;) {
        const char *newline = memchr(text + begin, '\n', size - begin);
        size_t end = newline == NULL ? size : (size_t)(newline - text);
        size_t next = newline == NULL ? size : end + 1;
        if (is_blank(text, begin, end)) {
            open = false;
        } else {
            if (!open)
                documents[count++].begin = begin;
            open = true;
            documents[count - 1].end = end;
            documents[count - 1].bytes = next - documents[count - 1].begin;
        }
        begin = next;
    }
    return count;
}

/* The records are the documents; those of more than `block_bytes` may be cut at line ends. */
static void check_records(const char *text, size_t size, int64_t block_bytes, const char *records)
{
    static document documents[MOST_DOCUMENTS];
    int count = split(text, size, documents);
    const char *at = records;
    for (int i = 0; i < count; i++) {
        size_t from = documents[i].begin;
        while (from < documents[i].end) {
            ck_assert_int_eq(*at++, '<');
            size_t bytes = strcspn(at, ">");
            ck_assert_uint_le(from + bytes, documents[i].end);
            ck_assert_msg(memcmp(at, text + from, bytes) == 0, "B %lld: %.*s is not %.*s",
                          (long long)block_bytes, (int)bytes, at, (int)bytes, text + from);
            at += bytes + 1;
            from += bytes;
            from += from < documents[i].end && text[from] == '\r';
            ck_assert_msg(from == documents[i].end || (int64_t)documents[i].bytes > block_bytes,
                          "B %lld cuts a document of %zu bytes in \"%s\"", (long long)block_bytes,
                          documents[i].bytes, text);
            if (from < documents[i].end)
                ck_assert_int_eq(text[from++], '\n');
        }
    }
    ck_assert_int_eq(*at, '\0');
}

/* ---- reading --------------------------------------------------------------------------------- */

static tdm_input *open_text(const char *path, int64_t block_bytes)
{
    const tdm_strings paths = {.items = (char **)(uintptr_t)&path, .count = 1};
    static const tdm_format_options format = {.type = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_BLANK_LINE};
    const tdm_input_options options = {.paths = &paths,
                                       .format = &format,
                                       .block_bytes = block_bytes,
                                       .lanes = 1,
                                       .max_record_bytes = 1024};
    tdm_input *input;
    ck_assert_ok(tdm_input_open(&options, &input));
    return input;
}

static size_t longest_line(const char *text, size_t size)
{
    size_t longest = 0;
    for (size_t at = 0, line; at < size; at += line) {
        const char *newline = memchr(text + at, '\n', size - at);
        line = newline == NULL ? size - at : (size_t)(newline - text) + 1 - at;
        longest = line > longest ? line : longest;
    }
    return longest;
}

/* Blocks read backwards: together they are the text, and none is much larger than asked for. */
static void check_blocks(const char *path, const char *text, size_t size, int64_t block_bytes)
{
    tdm_input *input = open_text(path, block_bytes);
    tdm_block_text block = {0};
    size_t longest = longest_line(text, size), end = size;
    for (int64_t b = tdm_input_block_count(input) - 1; b >= 0; b--) {
        int64_t before, lines = 0;
        ck_assert_ok(tdm_input_lines_before(input, b, &before));
        ck_assert_ok(tdm_input_read_block(input, b, &block));
        ck_assert_uint_le(block.size, end);
        ck_assert_uint_le(block.size, 2 * (size_t)block_bytes + 2 * longest);
        end -= block.size;
        ck_assert(block.size == 0 || memcmp(block.text, text + end, block.size) == 0);
        ck_assert(block.size == 0 || end == 0 || text[end - 1] == '\n');
        for (size_t i = 0; i < end; i++)
            lines += text[i] == '\n';
        if (block.size > 0)
            ck_assert_int_eq(before, lines);
    }
    ck_assert_uint_eq(end, 0);
    tdm_block_text_deinit(&block);
    tdm_input_close(input);
}

static void check_text(const char *text, size_t size, int64_t most_block_bytes)
{
    static const char *const names[] = {"a.txt", "a.txt.zst"};
    if (size == 0)
        return;
    for (int kind = 0; kind < 3; kind++) {
        char *path = tdm_data_rig_put(folder, names[kind == 1], text, size);
        for (int64_t block_bytes = 1; block_bytes <= most_block_bytes;
             block_bytes += block_bytes < 30 ? 1 : 7) {
            const tdm_reading_options options = {
                .files = (const char *const *)&path,
                .file_count = 1,
                .format = {.type = TDM_FORMAT_TEXT, .documents = TDM_DOCUMENTS_BLANK_LINE},
                .block_bytes = block_bytes,
                .in_order = kind == 2};
            tdm_records_read read;
            tdm_records_read_all(&options, &read);
            ck_assert_str_eq(read.bad.bytes, "");
            check_records(text, size, block_bytes, read.records.bytes);
            tdm_records_free(&read);
            if (kind == 0)
                check_blocks(path, text, size, block_bytes);
        }
        tdm_free(path);
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

START_TEST(test_every_small_text)
{
    static const char letters[] = "a\n ";
    tdm_new_folder(folder);
    for (int size = 1; size <= 6; size++) {
        int texts = 1;
        for (int i = 0; i < size; i++)
            texts *= 3;
        for (int number = 0; number < texts; number++) {
            char text[8] = {0};
            for (int i = 0, rest = number; i < size; i++, rest /= 3)
                text[i] = letters[rest % 3];
            check_text(text, (size_t)size, size);
        }
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_borders_everywhere)
{
    static const char *const texts[] = {
        "a\n\nbb\nbb\n\nccc\nccc\nccc\n\nd\n",
        "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
        "\n\n\n\n\n\n\n\na\n\n\n\n\n\n\n\n\nb\n\n\n\n\n\n\n",
        "one line of some forty bytes without an end",
        "a\r\nb\r\n\r\nc\r\n \r\nd\r\ne\r\n\t\v\f\r\nf",
        "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n\nn\no\n",
        "x\n       y\n        \n     z\n    \n   \n q\n  r\n",
        "aaaaaaaaaa\nb\n\n\n\n\n\n\n\n\n\n\n\nccccccccccccccccccc\n\nd\nd\nd\nd\n\n",
        "                                 \n                      a",
    };
    tdm_new_folder(folder);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_text(texts[i], strlen(texts[i]), 50);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

START_TEST(test_random_texts)
{
    tdm_new_folder(folder);
    uint64_t state = 7;
    for (int round = 0; round < 30; round++) {
        tdm_text text = {0};
        uint32_t lines = 1 + next_random(&state) % 60, blank = 1 + next_random(&state) % 8;
        for (uint32_t line = 0; line < lines; line++) {
            char letters[64];
            memset(letters, 'a' + (int)(line % 26), sizeof letters);
            int length = next_random(&state) % blank == 0 ? 0 : (int)(next_random(&state) % 40);
            ck_assert_ok(tdm_text_printf(&text, "%.*s%s", length, letters,
                                         next_random(&state) % 5 == 0 ? "\r\n" : "\n"));
        }
        check_text(text.bytes, text.length, 90);
        tdm_text_free(&text);
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* A mark is no part of the first document, however small blocks are. */
START_TEST(test_a_mark_is_skipped)
{
    static const char text[] = "\xef\xbb\xbf"
                               "a\nb\n\nc\n";
    static const char *const names[] = {"a.txt", "a.txt.gz"};
    tdm_new_folder(folder);
    for (int64_t block_bytes = 1; block_bytes < 15; block_bytes++) {
        for (int kind = 0; kind < 2; kind++) {
            const tdm_reading_options options = {
                .format = {.type = TDM_FORMAT_TEXT, .documents = TDM_DOCUMENTS_BLANK_LINE},
                .block_bytes = block_bytes};
            tdm_records_read read;
            tdm_records_of_bytes(&options, folder, names[kind], text, sizeof text - 1, &read);
            check_records(text + 3, sizeof text - 4, block_bytes, read.records.bytes);
            tdm_records_free(&read);
        }
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- long lines ------------------------------------------------------------------------------ */

static void add_line(tdm_text *text, size_t length, const char *end)
{
    char line[6000];
    memset(line, 'x', sizeof line);
    ck_assert_ok(tdm_text_printf(text, "%.*s%s", (int)length, line, end));
}

/* Whatever blocks are, the same lines are bad, and what is around them stays. */
START_TEST(test_lines_that_are_too_long)
{
    static const int64_t block_bytes[] = {1, 3, 100, 1023, 1024, 1025, 2000, 5000, 1 << 20};
    static const char *const names[] = {"a.txt", "a.txt.gz"};
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "a\nb\n"));
    add_line(&text, 1025, "\n");
    ck_assert_ok(tdm_text_printf(&text, "c\n\nd\n"));
    add_line(&text, 1024, "\r\n");
    add_line(&text, 5900, "\n\n");
    add_line(&text, 3000, "\r\ne\n");
    add_line(&text, 5900, "\n");
    add_line(&text, 5900, "\nf\n\n\ng\n");
    add_line(&text, 2000, "");
    tdm_new_folder(folder);
    for (size_t i = 0; i < 2 * sizeof block_bytes / sizeof block_bytes[0]; i++) {
        const char *name = names[i % 2];
        const tdm_reading_options options = {
            .format = {.type = TDM_FORMAT_TEXT, .documents = TDM_DOCUMENTS_BLANK_LINE},
            .block_bytes = block_bytes[i / 2],
            .max_record_bytes = 1024};
        tdm_records_read read;
        tdm_text bad = {0};
        tdm_records_of_bytes(&options, folder, name, text.bytes, text.length, &read);
        static const int lines[] = {3, 8, 10, 12, 13, 18};
        for (size_t l = 0; l < 6; l++)
            ck_assert_ok(tdm_text_printf(&bad, "%s:%d: longer than data.max_record_bytes\n", name,
                                         lines[l]));
        ck_assert_str_eq(read.bad.bytes, bad.bytes);
        const char *rest = read.records.bytes;
        for (const char *at = "abcdefg"; *at != '\0'; at++) {
            rest = strchr(rest, *at);
            ck_assert_ptr_nonnull(rest);
        }
        ck_assert_uint_ge(strspn(strchr(read.records.bytes, 'x'), "x"), 1024);
        tdm_text_free(&bad);
        tdm_records_free(&read);
    }
    tdm_text_free(&text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- files as documents ---------------------------------------------------------------------- */

START_TEST(test_files_are_cut_at_line_ends_only)
{
    static const char text[] = "a b c\nd\n\ne f\n\n\ng\nh i j k l m n o p q\nr\n";
    static const char *const names[] = {"a.txt", "a.txt.gz"};
    tdm_new_folder(folder);
    for (int64_t i = 2; i < 100; i++) {
        const tdm_reading_options options = {
            .format = {.type = TDM_FORMAT_TEXT, .documents = TDM_DOCUMENTS_FILE},
            .block_bytes = i / 2};
        tdm_records_read read;
        tdm_records_of_bytes(&options, folder, names[i % 2], text, sizeof text - 1, &read);
        if (i / 2 >= (int64_t)sizeof text - 1)
            ck_assert_int_eq(read.rows, 1);
        /* What is left of the text behind blank lines' and chunks' borders. */
        const char *at = text;
        for (const char *record = read.records.bytes; *record != '\0'; record++) {
            if (*record == '<' || *record == '>')
                continue;
            at += *record == '\n' ? 0 : strspn(at, "\n");
            ck_assert_int_eq(*record, *at);
            ck_assert(record[1] != '>' || at[1] == '\n');
            at++;
        }
        ck_assert_uint_eq(strspn(at, "\n"), strlen(at));
        tdm_records_free(&read);
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

TDM_CHECK_MAIN(test_every_small_text, test_borders_everywhere, test_random_texts,
               test_a_mark_is_skipped, test_lines_that_are_too_long,
               test_files_are_cut_at_line_ends_only)
