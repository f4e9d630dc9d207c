/* Blocks of inputs, against a literal splitter of lines. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[TDM_FOLDER_BYTES];

typedef struct nasty_text {
    const char *bytes;
    size_t size;
} nasty_text;

#define NASTY(text)                                                                                \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

static const nasty_text nasty_texts[] = {
    NASTY("a"),
    NASTY("\n"),
    NASTY("\n\n\n\n\n\n\n"),
    NASTY("abc\n"),
    NASTY("abc\ndef"),
    NASTY("\xef\xbb\xbf"),
    NASTY("\xef\xbb\xbf\n"),
    NASTY("\xef\xbb\xbf"
          "a\nb\nc\n"),
    NASTY("\xef\xbb\xbf"
          "a long first line behind a mark\r\nx\r\n"),
    NASTY("\xef\xbb"),
    NASTY("a\r\n\r\nb\r\n\r\n\r\nc"),
    NASTY("\n\na\n\nbb\n\nccc\n\ndddd\n\neeeee\n\n"),
    NASTY("one line of more than forty bytes, which spans several of the blocks\n"),
    NASTY("one line of more than forty bytes, which spans several of the blocks"),
    NASTY("x\none line of more than forty bytes, which spans several of the blocks\ny\nz"),
    NASTY("a\0b\n\0\nc\0"),
    NASTY("1\n22\n333\n4444\n55555\n666666\n7777777\n88888888\n999999999\n1111111111\n2"),
};
#define NASTY_COUNT (sizeof nasty_texts / sizeof nasty_texts[0])

static tdm_status try_open(const char *const *paths, int count, int64_t block_bytes,
                           tdm_input **out)
{
    tdm_strings list = {.items = (char **)(uintptr_t)paths, .count = count};
    static const tdm_format_options format = {.type = TDM_FORMAT_CRITEO};
    tdm_input_options options = {.paths = &list,
                                 .format = &format,
                                 .block_bytes = block_bytes,
                                 .lanes = 1,
                                 .max_record_bytes = 1024};
    return tdm_input_open(&options, out);
}

static tdm_input *open_one(const char *path, int64_t block_bytes)
{
    tdm_input *input;
    ck_assert_ok(try_open(&path, 1, block_bytes, &input));
    return input;
}

/* Offset of the first byte of line `line` of the text, its mark taken off; `size` behind the last.
 */
static size_t line_begin(const nasty_text *text, int64_t line)
{
    size_t at = text->size >= 3 && memcmp(text->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (line > 0 && at < text->size) {
        const char *newline = memchr(text->bytes + at, '\n', text->size - at);
        at = newline == NULL ? text->size : (size_t)(newline - text->bytes) + 1;
        line--;
    }
    return at;
}

/* A block holds the lines that begin in it; the first line, behind a mark, is the first block's. */
static void check_blocks(const nasty_text *text, const char *path, int64_t block_bytes)
{
    tdm_input *input = open_one(path, block_bytes);
    ck_assert(tdm_input_seekable(input));
    int64_t blocks = tdm_input_block_count(input);
    ck_assert_int_eq(blocks, ((int64_t)text->size + block_bytes - 1) / block_bytes);
    tdm_block_text block = {0};
    int64_t line = 0, stored = 0;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t lines_before;
        ck_assert_ok(tdm_input_lines_before(input, b, &lines_before));
        /* A mark alone is no line, but nothing follows it that would be counted. */
        if (line_begin(text, 0) < text->size)
            ck_assert_int_eq(lines_before, line);
        size_t begin = line_begin(text, line), end = begin;
        while (end < text->size && ((int64_t)end < (b + 1) * block_bytes || line == 0))
            end = line_begin(text, ++line);
        ck_assert_ok(tdm_input_read_block(input, b, &block));
        ck_assert_int_eq(block.block, b);
        ck_assert_uint_eq(block.part_count, 1);
        ck_assert_int_eq(block.parts[0].first_line, b == 0 ? 0 : -1);
        ck_assert_uint_eq(block.size, end - begin);
        ck_assert(end == begin || memcmp(block.text, text->bytes + begin, end - begin) == 0);
        for (int i = 0; i < TDM_TEXT_PADDING; i++)
            ck_assert_int_eq(block.text[(int64_t)block.size + i], 0);
        stored += block.stored_bytes;
    }
    ck_assert_int_eq(stored, (int64_t)text->size);
    ck_assert_uint_eq(line_begin(text, line), text->size);
    tdm_block_text_deinit(&block);
    tdm_input_close(input);
}

START_TEST(test_blocks_hold_the_lines_that_begin_in_them)
{
    tdm_new_folder(folder);
    for (size_t i = 0; i < NASTY_COUNT; i++) {
        const nasty_text *text = &nasty_texts[i];
        char *path = tdm_data_rig_put(folder, "a.tsv", text->bytes, text->size);
        for (int64_t block_bytes = 1; block_bytes <= 40; block_bytes++)
            check_blocks(text, path, block_bytes);
        tdm_free(path);
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_lines_before_need_no_order)
{
    tdm_new_folder(folder);
    const nasty_text *text = &nasty_texts[NASTY_COUNT - 1];
    char *path = tdm_data_rig_put(folder, "a.tsv", text->bytes, text->size);
    for (int64_t block_bytes = 1; block_bytes <= 40; block_bytes++) {
        tdm_input *forward = open_one(path, block_bytes), *backward = open_one(path, block_bytes);
        int64_t blocks = tdm_input_block_count(forward);
        int64_t expected[100], lines;
        for (int64_t b = 0; b < blocks; b++)
            ck_assert_ok(tdm_input_lines_before(forward, b, &expected[b]));
        for (int64_t b = blocks - 1; b >= 0; b--) {
            ck_assert_ok(tdm_input_lines_before(backward, b, &lines));
            ck_assert_int_eq(lines, expected[b]);
        }
        tdm_input_close(forward);
        tdm_input_close(backward);
    }
    /* What was noted is not read again. */
    tdm_input *input = open_one(path, 10);
    int64_t lines;
    tdm_input_note_lines(input, 0, 77);
    ck_assert_ok(tdm_input_lines_before(input, 1, &lines));
    ck_assert_int_eq(lines, 77);
    tdm_input_close(input);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

static void check_stream(const nasty_text *text, const char *path, int64_t block_bytes)
{
    tdm_input *input = open_one(path, block_bytes);
    tdm_input_stream *stream;
    ck_assert_ok(tdm_input_stream_open(input, &stream));
    tdm_block_text block = {0};
    size_t at = line_begin(text, 0);
    int64_t line = 0;
    bool ended;
    for (int64_t b = 0;; b++) {
        ck_assert_ok(tdm_input_stream_next(stream, &block, &ended));
        if (ended)
            break;
        ck_assert_int_eq(block.block, b);
        ck_assert_uint_eq(block.part_count, 1);
        ck_assert_int_eq(block.parts[0].first_line, line);
        ck_assert_uint_le(at + block.size, text->size);
        ck_assert(block.size == 0 || memcmp(block.text, text->bytes + at, block.size) == 0);
        at += block.size;
        while (line_begin(text, line) < at)
            line++;
        /* It ends at a line's end and holds its bytes, but for the last one. */
        ck_assert_uint_eq(line_begin(text, line), at);
        ck_assert(at == text->size || (int64_t)block.size + 3 * (b == 0) >= block_bytes);
    }
    ck_assert_uint_eq(at, text->size);
    tdm_block_text_deinit(&block);
    tdm_input_stream_close(stream);
    tdm_input_close(input);
}

START_TEST(test_streams_cut_at_line_ends)
{
    static const char *const names[] = {"a.tsv.gz", "a.tsv.zst"};
    tdm_new_folder(folder);
    for (size_t i = 0; i < NASTY_COUNT; i++) {
        const nasty_text *text = &nasty_texts[i];
        for (int kind = 0; kind < 2; kind++) {
            char *path = tdm_data_rig_put(folder, names[kind], text->bytes, text->size);
            for (int64_t block_bytes = 1; block_bytes <= 40; block_bytes++)
                check_stream(text, path, block_bytes);
            tdm_free(path);
        }
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- records that are too long --------------------------------------------------------------- */

/* A line of `length` bytes and its end; only the label tells that it is a record. */
static void add_line(tdm_text *text, size_t length, const char *end)
{
    char line[3000];
    memset(line, 'x', sizeof line);
    memcpy(line, "1,", 2);
    ck_assert_ok(tdm_text_printf(text, "%.*s%s", (int)length, line, end));
}

/* The lines and reasons of all bad records, and the count of rows. */
static void read_bad(const tdm_data_rig_options *options, tdm_text *bad, int64_t *rows)
{
    tdm_data_rig rig;
    tdm_data_rig_options with_policy = *options;
    tdm_data_rig_open(&with_policy, &rig);
    tdm_data_rig_start(&rig);
    *rows = 0;
    int64_t lines[64];
    int64_t count = 0;
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        *rows += delivery->batch.rows;
        for (size_t i = 0; i < delivery->report_count; i++) {
            const tdm_bad_report *report = &delivery->reports[i];
            int64_t first = report->first_line;
            if (first < 0)
                ck_assert_ok(tdm_input_lines_before(rig.input, report->block, &first));
            for (size_t r = 0; r < report->count; r++) {
                ck_assert_str_eq(report->records[r].reason, "longer than data.max_record_bytes");
                ck_assert_uint_ge(report->records[r].text_bytes, 1025);
                ck_assert_mem_eq(report->records[r].text, "1,xxx", 5);
                lines[count++] = first + report->records[r].line + 1;
            }
        }
        last = delivery->last;
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    for (int64_t line = 0; line < 100; line++) {
        for (int64_t i = 0; i < count; i++) {
            if (lines[i] == line)
                ck_assert_ok(tdm_text_printf(bad, "%lld ", (long long)line));
        }
    }
    tdm_data_rig_close(&rig);
}

START_TEST(test_long_records_are_bad_wherever_blocks_are_cut)
{
    static const int64_t block_bytes[] = {1, 3, 100, 1023, 1024, 1025, 2000, 5000, 1 << 20};
    static const char *const names[] = {"a.csv", "a.csv.gz"};
    static const char *const ends[] = {"\n", "\r\n"};
    static const size_t lengths[] = {5, 1024, 1025, 10, 2900, 2900, 1024, 1026, 1025, 3};
    tdm_new_folder(folder);
    for (int kind = 0; kind < 4; kind++) {
        const char *end = ends[kind / 2];
        tdm_text text = {0};
        ck_assert_ok(tdm_text_printf(&text, "label,a%s", end));
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
            add_line(&text, lengths[i], end);
        add_line(&text, 1500, "");
        char *path = tdm_data_rig_put_text(folder, names[kind % 2], text.bytes);
        for (size_t b = 0; b < sizeof block_bytes / sizeof block_bytes[0]; b++) {
            tdm_data_rig_options options = {.files = {path},
                                            .format = TDM_FORMAT_CSV,
                                            .recipe = "features: {fields: [{column: a}]}",
                                            .block_bytes = block_bytes[b],
                                            .max_record_bytes = 1024};
            tdm_text bad = {0};
            int64_t rows;
            read_bad(&options, &bad, &rows);
            ck_assert_int_eq(rows, 5);
            ck_assert_str_eq(bad.bytes, "4 6 7 9 10 12 ");
            tdm_text_free(&bad);
        }
        tdm_free(path);
        tdm_text_free(&text);
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

static void check_fails(const char *const *paths, int count, tdm_status status, const char *text)
{
    tdm_input *input;
    ck_assert_fails(try_open(paths, count, 0, &input), status, text);
    ck_assert_ptr_null(input);
}

START_TEST(test_files_that_cannot_be_read)
{
    tdm_new_folder(folder);
    char *empty = tdm_data_rig_put_text(folder, "empty.tsv", "");
    char *also_empty = tdm_data_rig_put_text(folder, "also.tsv", "");
    const char *missing = "/nowhere/at/all.tsv";
    const char *no_match = "/nowhere/*.tsv";
    const char *stdin_twice[] = {"-", "-"};
    const char *folders[] = {folder};
    const char *all_empty[] = {empty, also_empty};
    check_fails(&missing, 1, TDM_E_IO, "/nowhere/at/all.tsv: no such file");
    check_fails(&no_match, 1, TDM_E_IO, "no file matches");
    check_fails(stdin_twice, 2, TDM_E_CONFIG, "named twice");
    check_fails(folders, 1, TDM_E_IO, "is a folder");
    check_fails(all_empty, 2, TDM_E_DATA, "is empty, and so are all other files");
    check_fails(all_empty, 1, TDM_E_DATA, "empty.tsv: is empty");
    check_fails(NULL, 0, TDM_E_CONFIG, "no input file is named");
    ck_assert_int_eq(chmod(empty, 0), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(65534), 0);
    check_fails(all_empty, 1, TDM_E_IO, "empty.tsv: ");
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    tdm_free(empty);
    tdm_free(also_empty);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* Checkpoints name the inputs in JSON, which such names do not fit into. */
START_TEST(test_names_are_utf8)
{
    tdm_new_folder(folder);
    char *good = tdm_data_rig_put_text(folder, "caf\xc3\xa9.tsv", "x\n");
    tdm_input_close(open_one(good, 0));
    char *bad = tdm_data_rig_put_text(folder, "caf\xe9.tsv", "x\n");
    char *pattern;
    ck_assert_ok(tdm_format(&pattern, "%s/*.tsv", folder));
    const char *paths[] = {bad, pattern};
    check_fails(&paths[0], 1, TDM_E_CONFIG, "/caf\\xe9.tsv: the name of the file is not UTF-8");
    check_fails(&paths[1], 1, TDM_E_CONFIG, "/caf\\xe9.tsv: the name of the file is not UTF-8");
    tdm_free(good);
    tdm_free(bad);
    tdm_free(pattern);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_globs_are_sorted)
{
    tdm_new_folder(folder);
    static const char *const names[] = {"b-2.tsv", "b-1.tsv", "a.tsv", "b-3.tsv"};
    for (int i = 0; i < 4; i++)
        tdm_free(tdm_data_rig_put_text(folder, names[i], "x\n"));
    char *pattern;
    ck_assert_ok(tdm_format(&pattern, "%s/b-[0-9]*.tsv", folder));
    tdm_input *input = open_one(pattern, 0);
    ck_assert_int_eq(tdm_input_file_count(input), 3);
    for (int32_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "/b-%d.tsv", i + 1);
        ck_assert_ptr_nonnull(strstr(tdm_input_file_get(input, i)->path, name));
    }
    ck_assert_int_eq(tdm_input_stored_bytes(input), 6);
    tdm_input_close(input);
    /* A file of that very name is itself. */
    char *literal = tdm_data_rig_put_text(folder, "c[1].tsv", "x\n");
    input = open_one(literal, 0);
    ck_assert_str_eq(tdm_input_file_get(input, 0)->path, literal);
    tdm_input_close(input);
    tdm_free(literal);
    tdm_free(pattern);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_block_bytes_follow_the_input)
{
    tdm_new_folder(folder);
    char *small = tdm_data_rig_put_text(folder, "small.tsv", "x\n");
    char *large;
    ck_assert_ok(tdm_format(&large, "%s/large.tsv", folder));
    static const struct {
        int64_t bytes, block_bytes;
    } sizes[] = {{16 << 20, 1 << 20}, {(int64_t)1 << 30, 4 << 20}, {300000, 18750}, {16, 16384}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int fd = open(large, O_RDWR | O_CREAT | O_TRUNC, 0666);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pwrite(fd, "\n", 1, 0), 1);
        ck_assert_int_eq(ftruncate(fd, sizes[i].bytes), 0);
        close(fd);
        tdm_input *input = open_one(large, 0);
        ck_assert_int_eq(tdm_input_block_bytes(input), sizes[i].block_bytes);
        tdm_input_close(input);
    }
    const char *both[] = {small, large};
    tdm_input *input;
    ck_assert_ok(try_open(both, 2, 5, &input));
    ck_assert_int_eq(tdm_input_block_count(input), 1 + 4);
    ck_assert_int_eq(tdm_input_file_get(input, 1)->first_block, 1);
    tdm_input_close(input);
    tdm_free(small);
    tdm_free(large);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_a_file_that_changes_is_refused)
{
    tdm_new_folder(folder);
    char *path = tdm_data_rig_put_text(folder, "a.tsv", "a\nb\nc\n");
    tdm_input *input = open_one(path, 2);
    tdm_block_text block = {0};
    ck_assert_ok(tdm_input_read_block(input, 1, &block));
    ck_assert_int_eq(truncate(path, 4), 0);
    ck_assert_fails(tdm_input_read_block(input, 1, &block), TDM_E_DATA, "its length changed");
    ck_assert_ok(tdm_file_remove(path));
    ck_assert_fails(tdm_input_read_block(input, 1, &block), TDM_E_IO, "a.tsv: no such file");
    tdm_block_text_deinit(&block);
    tdm_input_close(input);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- pipes ----------------------------------------------------------------------------------- */

typedef struct pipe_writer {
    const char *path;
    const char *text;
} pipe_writer;

static void *write_pipe(void *argument)
{
    const pipe_writer *writer = argument;
    int fd = open(writer->path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    size_t size = strlen(writer->text);
    for (size_t done = 0; done < size;) {
        ssize_t count = write(fd, writer->text + done, size - done);
        ck_assert_int_gt(count, 0);
        done += (size_t)count;
    }
    close(fd);
    return NULL;
}

START_TEST(test_a_pipe_is_read_once_and_whole)
{
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, 20000, 0);
    char *path;
    ck_assert_ok(tdm_format(&path, "%s/pipe", folder));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    pipe_writer writer = {path, text};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, write_pipe, &writer), 0);
    tdm_input *input = open_one(path, 1000);
    ck_assert(tdm_input_is_stdin(input) && !tdm_input_seekable(input));
    tdm_input_stream *stream, *again;
    ck_assert_ok(tdm_input_stream_open(input, &stream));
    ck_assert_fails(tdm_input_stream_open(input, &again), TDM_E_STATE, "only once");
    tdm_block_text block = {0};
    size_t at = 0;
    for (bool ended = false;;) {
        ck_assert_ok(tdm_input_stream_next(stream, &block, &ended));
        if (ended)
            break;
        ck_assert_mem_eq(block.text, text + at, block.size);
        at += block.size;
    }
    ck_assert_uint_eq(at, strlen(text));
    pthread_join(thread, NULL);
    tdm_block_text_deinit(&block);
    tdm_input_stream_close(stream);
    tdm_input_close(input);
    tdm_free(path);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* Whole lines come as soon as they are there. */
START_TEST(test_an_eager_stream_waits_for_nothing)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    const char *path = "-";
    tdm_strings list = {.items = (char **)(uintptr_t)&path, .count = 1};
    static const tdm_format_options format = {.type = TDM_FORMAT_CRITEO};
    tdm_input_options options = {
        .paths = &list, .format = &format, .lanes = 1, .max_record_bytes = 1024, .eager = true};
    ck_assert_int_eq(write(ends[1], "one line\ntwo lines\nthr", 22), 22);
    tdm_input *input;
    ck_assert_ok(tdm_input_open(&options, &input));
    tdm_input_stream *stream;
    ck_assert_ok(tdm_input_stream_open(input, &stream));
    tdm_block_text block = {0};
    bool ended;
    ck_assert_ok(tdm_input_stream_next(stream, &block, &ended));
    ck_assert_uint_eq(block.size, 19);
    ck_assert_mem_eq(block.text, "one line\ntwo lines\n", 19);
    ck_assert_int_eq(write(ends[1], "ee\n", 3), 3);
    ck_assert_ok(tdm_input_stream_next(stream, &block, &ended));
    ck_assert_uint_eq(block.size, 6);
    ck_assert_mem_eq(block.text, "three\n", 6);
    ck_assert_int_eq(block.parts[0].first_line, 2);
    ck_assert_int_eq(write(ends[1], "end", 3), 3);
    close(ends[1]);
    ck_assert_ok(tdm_input_stream_next(stream, &block, &ended));
    ck_assert_uint_eq(block.size, 3);
    ck_assert(!ended);
    ck_assert_ok(tdm_input_stream_next(stream, &block, &ended));
    ck_assert(ended);
    tdm_block_text_deinit(&block);
    tdm_input_stream_close(stream);
    tdm_input_close(input);
}
END_TEST

TDM_CHECK_MAIN(test_blocks_hold_the_lines_that_begin_in_them, test_lines_before_need_no_order,
               test_streams_cut_at_line_ends, test_long_records_are_bad_wherever_blocks_are_cut,
               test_files_that_cannot_be_read, test_names_are_utf8, test_globs_are_sorted,
               test_block_bytes_follow_the_input, test_a_file_that_changes_is_refused,
               test_a_pipe_is_read_once_and_whole, test_an_eager_stream_waits_for_nothing)
