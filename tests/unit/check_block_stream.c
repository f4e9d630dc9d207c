/* Blocks in the order of the input: rows, kept cells, records' numbers, and errors behind them. */
#include "core/file.h"
#include "core/memory.h"
#include "data/block_stream.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROWS 1500

static char folder[TDM_FOLDER_BYTES];

/* What all blocks hold, as text: a line "record: id keys" or "record! line reason" for each record.
 */
static tdm_status describe(const tdm_data_rig_options *options, tdm_text *text, int64_t *records)
{
    tdm_data_rig rig;
    tdm_block_stream *stream;
    static const int32_t kept[] = {1, 2, 4};
    tdm_data_rig_open(options, &rig);
    ck_assert_ok(tdm_extractor_keep(rig.extractor, kept, 3));
    ck_assert_ok(tdm_block_stream_open(rig.extractor, rig.pool, &stream));
    *records = 0;
    tdm_status status = TDM_OK;
    for (int64_t block = 0;; block++) {
        tdm_extract *extract;
        status = tdm_block_stream_next(stream, &extract);
        if (status != TDM_OK || extract == NULL)
            break;
        ck_assert_int_eq(extract->block, block);
        int64_t row = 0;
        size_t bad = 0;
        for (int64_t r = 0; r < extract->records; r++) {
            if (row < extract->rows && extract->row_records[row] == r) {
                uint64_t begin = row == 0 ? 0 : extract->key_ends[row - 1];
                ck_assert_ok(tdm_text_printf(text, "%lld: %u %.*s\n", (long long)(*records + r),
                                             ((uint32_t *)extract->columns[1])[row * 4] - 4,
                                             (int)(extract->key_ends[row] - begin),
                                             extract->keys + begin));
                row++;
            } else if (bad < extract->bad_count && extract->bad[bad].record == r) {
                ck_assert_int_ge(extract->first_line, 0);
                ck_assert_ok(
                    tdm_text_printf(text, "%lld! %lld %s\n", (long long)(*records + r),
                                    (long long)(extract->first_line + extract->bad[bad].line + 1),
                                    extract->bad[bad].reason));
                bad++;
            }
        }
        ck_assert_int_eq(row, extract->rows);
        ck_assert_uint_eq(bad, extract->bad_count);
        *records += extract->records;
    }
    if (status != TDM_OK) {
        tdm_extract *extract;
        ck_assert_int_eq(tdm_block_stream_next(stream, &extract), status);
    }
    tdm_block_stream_close(stream);
    tdm_data_rig_close(&rig);
    return status;
}

/* What describe() must say of the files of tdm_data_rig_text(), their records numbered on. */
static void add_expected(const char *csv, tdm_text *text, int64_t *record)
{
    int64_t line = 1;
    for (const char *at = strchr(csv, '\n') + 1; *at != '\0'; at = strchr(at, '\n') + 1) {
        char cells[8][64];
        memset(cells, 0, sizeof cells);
        int count = 0;
        const char *end = strchr(at, '\n');
        for (const char *c = at; c <= end; count++) {
            const char *stop = c;
            while (stop < end && *stop != ',')
                stop++;
            ck_assert_int_lt(count, 8);
            memcpy(cells[count], c, (size_t)(stop - c));
            c = stop + 1;
        }
        const char *reason = NULL;
        if (count != 6)
            reason = "3 columns, expected 6";
        else if (cells[3][0] == '"')
            reason = "begins with a quote and ends in another line, which is not supported";
        else if (cells[0][0] == '2')
            reason = "the label is not 0 or 1";
        else if (strcmp(cells[4], "nan") == 0)
            reason = "nan and inf are not accepted; leave a missing value empty";
        else if (strcmp(cells[5], "two") == 0)
            reason = "not a number, or out of range";
        line++;
        if (reason != NULL)
            ck_assert_ok(tdm_text_printf(text, "%lld! %lld %s\n", (long long)(*record)++,
                                         (long long)line, reason));
        else
            ck_assert_ok(tdm_text_printf(text, "%lld: %s %s,%s,%s\n", (long long)(*record)++,
                                         cells[1], cells[1], cells[2], cells[4]));
    }
}

START_TEST(test_records_come_in_order)
{
    static const int64_t block_bytes[] = {10, 90, 1000, 1 << 20};
    static const char *const endings[] = {"", ".gz", ".zst"};
    tdm_new_folder(folder);
    char *first = tdm_data_rig_text(0, ROWS, 3), *second = tdm_data_rig_text(ROWS, 200, 0);
    tdm_text expected = {0};
    int64_t records = 0;
    add_expected(first, &expected, &records);
    add_expected(second, &expected, &records);
    for (size_t i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "a.csv%s", endings[i % 3]);
        char *a = tdm_data_rig_put_text(folder, name, first);
        char *b = tdm_data_rig_put_text(folder, "b.csv", second);
        tdm_data_rig_options options = {
            .files = {a, b}, .format = TDM_FORMAT_CSV, .block_bytes = block_bytes[i / 3]};
        for (options.threads = 1; options.threads <= 16; options.threads *= 4) {
            tdm_text got = {0};
            int64_t got_records;
            ck_assert_ok(describe(&options, &got, &got_records));
            ck_assert_int_eq(got_records, records);
            ck_assert_str_eq(got.bytes, expected.bytes);
            tdm_text_free(&got);
        }
        tdm_free(a);
        tdm_free(b);
    }
    tdm_free(first);
    tdm_free(second);
    tdm_text_free(&expected);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* A share of the records, the same in any file; both parts together are all. */
START_TEST(test_hold_out_is_by_record)
{
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, ROWS, 0);
    char *paths[2] = {tdm_data_rig_put_text(folder, "a.csv", text), NULL};
    tdm_text crlf = {0};
    for (const char *at = text; *at != '\0'; at++)
        ck_assert_ok(tdm_text_printf(&crlf, "%s%c", *at == '\n' ? "\r" : "", *at));
    paths[1] = tdm_data_rig_put_text(folder, "b.csv.gz", crlf.bytes);
    static unsigned char held_out[2][ROWS];
    for (int file = 0; file < 2; file++) {
        for (int part = 1; part <= 2; part++) {
            tdm_given_list list = {.seen_ids = ROWS};
            unsigned char seen[ROWS] = {0};
            list.seen = seen;
            tdm_data_rig_options options = {.files = {paths[file]},
                                            .format = TDM_FORMAT_CSV,
                                            .block_bytes = 300 + 100 * file,
                                            .hold_out = 0.1,
                                            .selection = (tdm_selection)part};
            tdm_data_rig_run(&options, &list);
            for (int i = 0; i < ROWS; i++) {
                if (part == 1)
                    held_out[file][i] = !seen[i];
                else
                    ck_assert_int_eq(seen[i], held_out[file][i]);
            }
            list.seen = NULL;
            tdm_given_list_free(&list);
        }
    }
    ck_assert_mem_eq(held_out[0], held_out[1], ROWS);
    int count = 0;
    for (int i = 0; i < ROWS; i++)
        count += held_out[0][i];
    ck_assert(count > ROWS * 0.07 && count < ROWS * 0.13);
    tdm_text_free(&crlf);
    tdm_free(paths[0]);
    tdm_free(paths[1]);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* Every block before the error is given, on any number of threads. */
START_TEST(test_errors_come_behind_the_blocks_before_them)
{
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, 20000, 0);
    char *path = tdm_data_rig_put_text(folder, "a.csv.gz", text);
    ck_assert_int_eq(truncate(path, 100000), 0);
    tdm_data_rig_options options = {.files = {path}, .format = TDM_FORMAT_CSV, .block_bytes = 3000};
    tdm_text first = {0};
    int64_t first_records, records;
    ck_assert_fails(describe(&options, &first, &first_records), TDM_E_DATA, "truncated");
    ck_assert_int_gt(first_records, 1000);
    for (int round = 0; round < 12; round++) {
        options.threads = 1 + round;
        tdm_text got = {0};
        ck_assert_fails(describe(&options, &got, &records), TDM_E_DATA, "truncated");
        ck_assert_int_eq(records, first_records);
        ck_assert_str_eq(got.bytes, first.bytes);
        tdm_text_free(&got);
    }
    tdm_text_free(&first);
    tdm_free(path);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* A block that takes long comes before one that fails at once. */
START_TEST(test_a_quick_error_waits_for_its_turn)
{
    tdm_new_folder(folder);
    char *text = tdm_data_rig_text(0, 20000, 0);
    char *slow = tdm_data_rig_put_text(folder, "a.csv", text);
    for (int round = 0; round < 30; round++) {
        char *lost = tdm_data_rig_put_text(folder, "b.csv", text);
        tdm_data_rig_options options = {.files = {slow, lost},
                                        .format = TDM_FORMAT_CSV,
                                        .block_bytes = (int64_t)strlen(text),
                                        .threads = 3};
        tdm_data_rig rig;
        tdm_block_stream *stream;
        tdm_extract *extract;
        tdm_data_rig_open(&options, &rig);
        ck_assert_ok(tdm_file_remove(lost));
        ck_assert_ok(tdm_block_stream_open(rig.extractor, rig.pool, &stream));
        ck_assert_ok(tdm_block_stream_next(stream, &extract));
        ck_assert_int_eq(extract->rows, 20000);
        ck_assert_fails(tdm_block_stream_next(stream, &extract), TDM_E_IO, lost);
        tdm_block_stream_close(stream);
        tdm_data_rig_close(&rig);
        tdm_free(lost);
    }
    tdm_free(slow);
    tdm_free(text);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_kept_cells_are_csv)
{
    tdm_new_folder(folder);
    char *path = tdm_data_rig_put_text(folder, "a.tsv",
                                       "label\tid\ta\tb\n1\tx\"y\tp,q\t\"\n0\t\t \xc3\xa4\t1\n");
    tdm_data_rig_options options = {
        .files = {path}, .format = TDM_FORMAT_TSV, .recipe = "features: {fields: [{column: b}]}"};
    tdm_data_rig rig;
    tdm_block_stream *stream;
    tdm_extract *extract;
    static const int32_t kept[] = {3, 1, 2};
    tdm_data_rig_open(&options, &rig);
    ck_assert_ok(tdm_extractor_keep(rig.extractor, kept, 3));
    ck_assert_ok(tdm_block_stream_open(rig.extractor, rig.pool, &stream));
    ck_assert_ok(tdm_block_stream_next(stream, &extract));
    ck_assert_int_eq(extract->rows, 2);
    const char *expected = "\"\"\"\",\"x\"\"y\",\"p,q\"1,, \xc3\xa4";
    ck_assert_uint_eq(extract->key_ends[1], strlen(expected));
    ck_assert_mem_eq(extract->keys, expected, strlen(expected));
    ck_assert_uint_eq(extract->key_ends[0], 17);
    tdm_block_stream_close(stream);
    tdm_data_rig_close(&rig);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

TDM_CHECK_MAIN(test_records_come_in_order, test_hold_out_is_by_record,
               test_errors_come_behind_the_blocks_before_them,
               test_a_quick_error_waits_for_its_turn, test_kept_cells_are_csv)
