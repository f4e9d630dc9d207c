/* Small files that share blocks: the records of each are the same as alone, and messages name its
 * own lines. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/record_reader.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static char folder[TDM_FOLDER_BYTES];

/* ---- lists of files -------------------------------------------------------------------------- */

#define MOST_FILES 64

typedef struct file_list {
    char *paths[MOST_FILES];
    int count;
} file_list;

/* Writes texts as files; every `packed`-th (0: none) is compressed. */
static void write_files(const char *const *texts, int count, int packed, file_list *list)
{
    list->count = count;
    for (int i = 0; i < count; i++) {
        char name[32];
        bool packs = packed > 0 && i % packed == 0;
        snprintf(name, sizeof name, "%02d.txt%s", i, packs ? ".gz" : "");
        list->paths[i] = tdm_data_rig_put_text(folder, name, texts[i]);
    }
}

static void free_files(file_list *list)
{
    for (int i = 0; i < list->count; i++)
        tdm_free(list->paths[i]);
}

static tdm_reading_options reading(const file_list *list, const tdm_format_options *format,
                                   int64_t block_bytes)
{
    return (tdm_reading_options){.files = (const char *const *)list->paths,
                                 .file_count = list->count,
                                 .format = *format,
                                 .block_bytes = block_bytes,
                                 .max_record_bytes = 1024};
}

/* What all files give, one after another, each read alone and whole. */
static void read_alone(const file_list *list, const tdm_format_options *format, tdm_text *records,
                       tdm_text *bad, int64_t *rows)
{
    *rows = 0;
    ck_assert_ok(tdm_text_printf(records, "%s", ""));
    ck_assert_ok(tdm_text_printf(bad, "%s", ""));
    for (int i = 0; i < list->count; i++) {
        tdm_reading_options options = reading(list, format, 1 << 20);
        options.files += i;
        options.file_count = 1;
        tdm_records_read read;
        tdm_status status = tdm_records_try_read(&options, &read);
        ck_assert(status == TDM_OK ||
                  (status == TDM_E_DATA && strstr(tdm_error_message(), "is empty") != NULL));
        ck_assert_ok(tdm_text_printf(records, "%s", read.records.bytes));
        ck_assert_ok(tdm_text_printf(bad, "%s", read.bad.bytes));
        *rows += read.rows;
        tdm_records_free(&read);
    }
}

/* Blocks of more bytes than the longest file has give the same as the files alone. */
static void check_list(const char *const *texts, int count, const tdm_format_options *format)
{
    size_t longest = 0, all = 0;
    for (int i = 0; i < count; i++) {
        size_t bytes = strlen(texts[i]);
        longest = bytes > longest ? bytes : longest;
        all += bytes;
    }
    for (int packed = 0; packed < 4; packed++) {
        tdm_text records = {0}, bad = {0};
        file_list list;
        int64_t rows;
        tdm_new_folder(folder);
        write_files(texts, count, packed, &list);
        read_alone(&list, format, &records, &bad, &rows);
        for (size_t block_bytes = longest; block_bytes <= all + 1; block_bytes += 1 + all / 20) {
            tdm_reading_options options = reading(&list, format, (int64_t)block_bytes);
            tdm_records_read read;
            tdm_records_read_all(&options, &read);
            ck_assert_str_eq(read.records.bytes, records.bytes);
            ck_assert_str_eq(read.bad.bytes, bad.bytes);
            ck_assert_int_eq(read.rows, rows);
            if (block_bytes >= all && packed == 0)
                ck_assert_int_eq(read.blocks, 1);
            tdm_records_free(&read);
        }
        tdm_text_free(&records);
        tdm_text_free(&bad);
        free_files(&list);
        ck_assert_ok(tdm_folder_remove(folder));
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

static const char *const texts[] = {
    "a\nb\n\nc\n",
    "no end",
    "",
    "\n\n\nblank lines first\n",
    "\357\273\277a mark\nand a line\n",
    "\xef\xbb\xbf",
    " \t\n \n",
    "blank lines last\n\n\n\n",
    "\n",
    "windows\r\n\r\nlines\r\n",
    "x",
    "",
    "y\nz",
};
#define TEXT_COUNT ((int)(sizeof texts / sizeof texts[0]))

START_TEST(test_documents_never_span_files)
{
    tdm_format_options format = {.type = TDM_FORMAT_TEXT};
    for (int documents = TDM_DOCUMENTS_LINE; documents <= TDM_DOCUMENTS_FILE; documents++) {
        format.documents = documents;
        check_list(texts, TEXT_COUNT, &format);
    }
}
END_TEST

START_TEST(test_errors_name_their_own_lines)
{
    static const char *const lines[] = {
        "{\"text\":\"a\"}\n{\"text\":\"b\"}\n",
        "{\"text\":1}\n{\"text\":\"c\"}\n\n{}",
        "",
        "{\"text\":\"d\"}",
        "\n\n[]\n",
        "{\"text\":\"e\"}\nno\n{\"text\":\"f\"}\n{\"text\":\"\xff\"}\n",
        "{\"text\":\"g\"}",
        "{\"text\":\"\xff\"}",
    };
    tdm_format_options format = {.type = TDM_FORMAT_JSONL};
    for (int policy = TDM_ENCODING_REPLACE; policy <= TDM_ENCODING_FAIL; policy++) {
        format.encoding_errors = policy;
        check_list(lines, 8, &format);
    }
    /* Literally, so that both ways cannot be wrong together. */
    file_list list;
    tdm_records_read read;
    tdm_new_folder(folder);
    write_files(lines, 8, 0, &list);
    format.encoding_errors = TDM_ENCODING_FAIL;
    tdm_reading_options options = reading(&list, &format, 1 << 20);
    tdm_records_read_all(&options, &read);
    ck_assert_int_eq(read.blocks, 1);
    ck_assert_str_eq(read.records.bytes, "<a><b><c><d><e><f><g>");
    ck_assert_str_eq(read.bad.bytes, "01.txt:1: text: is not a string\n"
                                     "01.txt:4: text: is missing\n"
                                     "04.txt:3: is a JSON array, expected an object\n"
                                     "05.txt:2: is not JSON: '[' or '{' expected\n"
                                     "fatal 05.txt:4: byte 10 of the line is not valid UTF-8\n"
                                     "fatal 07.txt:1: byte 10 of the line is not valid UTF-8\n");
    tdm_records_free(&read);
    free_files(&list);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* Each file has a header, and columns in its own order. */
START_TEST(test_headers_are_each_file_s_own)
{
    static const char *const tables[] = {"a,b\n1,x\n2\n", "b,a\ny,3\n", "a,b", "c,a\n-,4\n",
                                         "b,a\n1,2,3\nw,6"};
    const tdm_format_options format = {.type = TDM_FORMAT_CSV};
    file_list list;
    tdm_records_read read;
    tdm_new_folder(folder);
    for (int packed = 0; packed < 2; packed++) {
        write_files(tables, 5, packed, &list);
        tdm_reading_options options = reading(&list, &format, 1 << 20);
        tdm_records_read_all(&options, &read);
        ck_assert_int_eq(read.blocks, 1);
        ck_assert_str_eq(read.records.bytes, "<1><3><4><6>");
        const char *ending = packed == 1 ? ".gz" : "";
        char bad[200];
        snprintf(bad, sizeof bad,
                 "00.txt%s:3: 1 columns, expected 2\n04.txt%s:2: 3 columns, expected 2\n", ending,
                 ending);
        ck_assert_str_eq(read.bad.bytes, bad);
        tdm_records_free(&read);
        free_files(&list);
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- blocks ---------------------------------------------------------------------------------- */

static tdm_input *open_list(const file_list *list, const double *weights, int64_t block_bytes)
{
    const tdm_strings paths = {.items = (char **)(uintptr_t)list->paths, .count = list->count};
    static const tdm_format_options format = {.type = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_BLANK_LINE};
    const tdm_input_options options = {.paths = &paths,
                                       .weights = weights,
                                       .format = &format,
                                       .block_bytes = block_bytes,
                                       .lanes = 1,
                                       .max_record_bytes = 1024};
    tdm_input *input;
    ck_assert_ok(tdm_input_open(&options, &input));
    return input;
}

START_TEST(test_files_share_blocks_while_there_is_room)
{
    static const char *const sized[] = {"", "4444", "55555",       "",   "a", "4444", "88888888",
                                        "", "",     "elevenbytes", "22", "",  "4444"};
    static const int64_t expected[][2] = {{0, 0}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {1, 1}, {2, 1},
                                          {2, 1}, {2, 1}, {3, 2}, {5, 1}, {5, 1}, {5, 1}};
    static const int64_t stored[] = {10, 4, 8, 10, 1, 6};
    file_list list;
    tdm_block_text text = {0};
    tdm_new_folder(folder);
    write_files(sized, 13, 0, &list);
    tdm_input *input = open_list(&list, NULL, 10);
    ck_assert_int_eq(tdm_input_block_count(input), 6);
    for (int32_t f = 0; f < 13; f++) {
        ck_assert_int_eq(tdm_input_file_get(input, f)->first_block, expected[f][0]);
        ck_assert_int_eq(tdm_input_file_get(input, f)->block_count, expected[f][1]);
    }
    for (int64_t b = 0; b < 6; b++) {
        ck_assert_ok(tdm_input_read_block(input, b, &text));
        ck_assert_int_eq(text.stored_bytes, stored[b]);
        ck_assert_int_eq(tdm_input_block_stored_bytes(input, b), stored[b]);
        ck_assert_int_eq(tdm_input_block_file(input, b), text.parts[0].file);
        for (size_t p = 0; p < text.part_count; p++) {
            const char *file = sized[text.parts[p].file];
            uint32_t begin = text.parts[p].begin;
            if (b == 4)
                file = "";
            ck_assert_uint_eq(tdm_block_part_end(&text, p) - begin, strlen(file));
            ck_assert_mem_eq(text.text + begin, file, strlen(file));
        }
    }
    tdm_input_close(input);
    /* Weights part them. */
    double weights[13];
    for (int i = 0; i < 13; i++)
        weights[i] = i < 2 ? 1 : 2;
    input = open_list(&list, weights, 1 << 20);
    ck_assert_int_eq(tdm_input_block_count(input), 2);
    ck_assert_int_eq(tdm_input_file_get(input, 2)->first_block, 1);
    ck_assert_int_eq(tdm_input_epoch_bytes(input), 4 + 2 * 35);
    tdm_input_close(input);
    tdm_block_text_deinit(&text);
    free_files(&list);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_a_shared_file_that_changes_is_refused)
{
    static const char *const three[] = {"aaa\n", "bbb\n", "ccc\n"};
    file_list list;
    tdm_block_text text = {0};
    tdm_new_folder(folder);
    write_files(three, 3, 0, &list);
    tdm_input *input = open_list(&list, NULL, 100);
    tdm_free(tdm_data_rig_put_text(folder, "01.txt", "longer than it was\n"));
    ck_assert_fails(tdm_input_read_block(input, 0, &text), TDM_E_DATA,
                    "01.txt: its length changed while it was being read");
    ck_assert_ok(tdm_file_remove(list.paths[1]));
    ck_assert_fails(tdm_input_read_block(input, 0, &text), TDM_E_IO, "01.txt: no such file");
    tdm_block_text_deinit(&text);
    tdm_input_close(input);
    free_files(&list);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- very many ------------------------------------------------------------------------------- */

/* More files than a process may have open. */
START_TEST(test_files_are_not_kept_open)
{
    enum { FEW = 24, COUNT = 400 };
    static const char *const endings[] = {"", ".gz", ".zst"};
    const struct rlimit few = {FEW, FEW};
    tdm_new_folder(folder);
    for (int kind = 0; kind < 3; kind++) {
        for (int i = 0; i < COUNT; i++) {
            char name[32], text[64];
            snprintf(name, sizeof name, "%d-%04d.txt%s", kind, i, endings[kind]);
            snprintf(text, sizeof text, "document %d\nof two lines", i);
            tdm_free(tdm_data_rig_put_text(folder, name, text));
        }
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int kind = 0; kind < 3; kind++) {
        char *pattern;
        ck_assert_ok(tdm_format(&pattern, "%s/%d-*.txt*", folder, kind));
        const tdm_reading_options options = {
            .files = (const char *const *)&pattern,
            .file_count = 1,
            .format = {.type = TDM_FORMAT_TEXT, .documents = TDM_DOCUMENTS_FILE},
            .block_bytes = 1000};
        tdm_records_read read;
        tdm_records_read_all(&options, &read);
        ck_assert_int_eq(read.rows, COUNT);
        ck_assert_int_lt(read.blocks, COUNT / 20);
        tdm_text expected = {0};
        for (int i = 0; i < COUNT; i++)
            ck_assert_ok(tdm_text_printf(&expected, "<document %d\nof two lines>", i));
        ck_assert_str_eq(read.records.bytes, expected.bytes);
        tdm_text_free(&expected);
        tdm_records_free(&read);
        tdm_free(pattern);
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* Side by side: the same files, and the same error, that of the first one. */
START_TEST(test_files_are_opened_side_by_side)
{
    enum { COUNT = 700 };
    tdm_new_folder(folder);
    for (int i = 0; i < COUNT; i++) {
        char name[32], text[64];
        snprintf(name, sizeof name, "%04d.csv", i);
        snprintf(text, sizeof text, "%s\n%d,%d\n", i % 2 == 0 ? "a,b" : "b,a", i, i);
        tdm_free(tdm_data_rig_put_text(folder, name, text));
    }
    char *pattern;
    ck_assert_ok(tdm_format(&pattern, "%s/*.csv", folder));
    const tdm_strings paths = {.items = &pattern, .count = 1};
    static const tdm_format_options format = {.type = TDM_FORMAT_CSV};
    for (int threads = 1; threads <= 5; threads += 2) {
        tdm_input_options options = {
            .paths = &paths, .format = &format, .lanes = 1, .max_record_bytes = 1024};
        tdm_input *input;
        ck_assert_ok(tdm_pool_create(threads, &options.pool));
        ck_assert_ok(tdm_input_open(&options, &input));
        ck_assert_int_eq(tdm_input_file_count(input), COUNT);
        for (int32_t i = 1; i < COUNT; i++)
            ck_assert_int_eq(tdm_input_file_get(input, i)->layout.identity, i % 2 == 0);
        tdm_input_close(input);
        tdm_free(tdm_data_rig_put_text(folder, "0300.csv", "c,d\n"));
        tdm_free(tdm_data_rig_put_text(folder, "0301.csv", "a,a\n"));
        tdm_free(tdm_data_rig_put_text(folder, "0600.csv", "c,d\n"));
        ck_assert_fails(tdm_input_open(&options, &input), TDM_E_DATA,
                        "0300.csv:1: the first line names none of the columns");
        tdm_free(tdm_data_rig_put_text(folder, "0300.csv", "a,b\n"));
        tdm_free(tdm_data_rig_put_text(folder, "0301.csv", "b,a\n"));
        tdm_free(tdm_data_rig_put_text(folder, "0600.csv", "a,b\n"));
        tdm_pool_destroy(options.pool);
    }
    tdm_free(pattern);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- memory that runs out -------------------------------------------------------------------- */

static tdm_status read_quietly(tdm_extractor *extractor)
{
    tdm_input *input = tdm_extractor_input(extractor);
    tdm_input_stream *stream = NULL;
    tdm_block_text text = {0};
    tdm_extract extract = {0};
    tdm_status status = TDM_OK;
    bool ended = false;
    if (!tdm_input_seekable(input))
        TDM_TRY(tdm_input_stream_open(input, &stream));
    for (int64_t b = 0; !ended && status == TDM_OK; b++) {
        if (stream != NULL)
            status = tdm_input_stream_next(stream, &text, &ended);
        else if (b == tdm_input_block_count(input))
            ended = true;
        else
            status = tdm_input_read_block(input, b, &text);
        if (status == TDM_OK && !ended)
            status = tdm_extract_block(extractor, &text, &extract);
    }
    tdm_input_stream_close(stream);
    tdm_block_text_deinit(&text);
    tdm_extract_deinit(&extract);
    return status;
}

static tdm_status open_and_read(const file_list *list, int format, tdm_pool *pool)
{
    const tdm_strings paths = {.items = (char **)(uintptr_t)list->paths, .count = list->count};
    const tdm_format_options format_options = {.type = format,
                                               .documents = TDM_DOCUMENTS_BLANK_LINE,
                                               .encoding_errors = TDM_ENCODING_REPLACE};
    const tdm_input_options options = {.paths = &paths,
                                       .format = &format_options,
                                       .block_bytes = 60,
                                       .lanes = 1,
                                       .max_record_bytes = 1024,
                                       .pool = pool};
    tdm_input *input;
    tdm_extractor *extractor = NULL;
    TDM_TRY(tdm_input_open(&options, &input));
    tdm_status status =
        tdm_extractor_create(&tdm_row_featurizer, input, pool, TDM_SELECT_ALL, 0, &extractor);
    if (status == TDM_OK)
        status = read_quietly(extractor);
    tdm_extractor_destroy(extractor);
    tdm_input_close(input);
    return status;
}

/* Whichever allocation fails, that is said, and nothing is lost. */
START_TEST(test_memory_that_runs_out)
{
    static const char *const lines[] = {
        "{\"text\":\"a\"}\n{\"text\":\"\xff\"}\n\nno json\n", "{\"text\":\"b\"}",
        "{\"text\":\"a long text that fills a block, and more than a block, by itself\"}\n\n[]"};
    for (int packed = 0; packed < 2; packed++) {
        file_list list;
        tdm_pool *pool;
        tdm_new_folder(folder);
        write_files(lines, 3, packed, &list);
        ck_assert_ok(tdm_pool_create(1, &pool));
        for (int format = TDM_FORMAT_TEXT; format <= TDM_FORMAT_JSONL; format++) {
            int64_t live = tdm_memory_stats_get().live_bytes;
            tdm_status status = TDM_E_NOMEM;
            int n;
            for (n = 1; status != TDM_OK; n++) {
                tdm_memory_fail_at(n, false);
                status = open_and_read(&list, format, pool);
                tdm_memory_fail_at(0, false);
                ck_assert(status == TDM_OK || status == TDM_E_NOMEM);
                ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
            }
            ck_assert_int_gt(n, 20);
        }
        tdm_pool_destroy(pool);
        free_files(&list);
        ck_assert_ok(tdm_folder_remove(folder));
    }
}
END_TEST

/* ---- in the pipeline ------------------------------------------------------------------------- */

/* Reports name the files, from text and from the cache. */
START_TEST(test_reports_of_shared_blocks)
{
    tdm_new_folder(folder);
    tdm_data_rig_options options = {
        .format = TDM_FORMAT_CSV, .block_bytes = 1 << 20, .epochs = 2, .lanes = 2};
    char *cache;
    ck_assert_ok(tdm_format(&cache, "%s/a.cache", folder));
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.csv", i);
        char *text = tdm_data_rig_text((int64_t)i * 20, 20, 7);
        options.files[i] = tdm_data_rig_put_text(folder, name, text);
        tdm_free(text);
    }
    tdm_given_list text = {0}, written = {0}, cached = {0};
    tdm_data_rig_run(&options, &text);
    options.cache_path = cache;
    tdm_data_rig_run(&options, &written);
    tdm_data_rig_run(&options, &cached);
    tdm_given_same(&text, 0, &written, true);
    tdm_given_same(&text, 0, &cached, true);
    ck_assert_int_eq(text.items[0].bad, 14);
    for (int i = 0; i < 5; i++)
        tdm_free((char *)(uintptr_t)options.files[i]);
    tdm_given_list_free(&text);
    tdm_given_list_free(&written);
    tdm_given_list_free(&cached);
    tdm_free(cache);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

TDM_CHECK_MAIN(test_documents_never_span_files, test_errors_name_their_own_lines,
               test_headers_are_each_file_s_own, test_files_share_blocks_while_there_is_room,
               test_a_shared_file_that_changes_is_refused, test_files_are_not_kept_open,
               test_files_are_opened_side_by_side, test_memory_that_runs_out,
               test_reports_of_shared_blocks)
