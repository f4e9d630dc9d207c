/* What is counted, told, kept and judged of bad records. */
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "data/bad_records.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[TDM_FOLDER_BYTES];
static char *path;       /* of the input */
static char *quarantine; /* quarantine.txt */
static tdm_data_rig rig;
static const tdm_share no_limit = {1, true};

static void open_input(const char *text)
{
    tdm_new_folder(folder);
    path = tdm_data_rig_put_text(folder, "a.csv", text);
    ck_assert_ok(tdm_format(&quarantine, "%s/quarantine.txt", folder));
    tdm_data_rig_options options = {.files = {path}, .format = TDM_FORMAT_CSV, .block_bytes = 20};
    tdm_data_rig_open(&options, &rig);
}

static void close_input(void)
{
    tdm_data_rig_close(&rig);
    tdm_free(quarantine);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}

/* Adds all bad records of the input, block by block, and counts its rows. */
static tdm_status add_all(tdm_bad_record_log *log)
{
    tdm_block_text text = {0};
    tdm_extract extract = {0};
    tdm_status status = TDM_OK;
    for (int64_t b = 0; b < tdm_input_block_count(rig.input) && status == TDM_OK; b++) {
        ck_assert_ok(tdm_input_read_block(rig.input, b, &text));
        ck_assert_ok(tdm_extract_block(rig.extractor, &text, &extract));
        tdm_bad_report report = {.block = b,
                                 .file = extract.file,
                                 .first_line = extract.first_line,
                                 .records = extract.bad,
                                 .count = extract.bad_count};
        status = tdm_bad_record_log_add(log, rig.input, &report);
        if (status == TDM_OK)
            status = tdm_bad_record_log_judge(log, extract.rows, false);
    }
    tdm_block_text_deinit(&text);
    tdm_extract_deinit(&extract);
    return status;
}

static const char bad_text[] = "label,id,a,b,n,m\n" /* line 1 */
                               "1,1,x,y,1,2\n"
                               "1,2,x\n" /* 3 */
                               "1,3,x,y,1,2\n"
                               "7,4,x,y,1,2\n" /* 5 */
                               "1,5,x,y,inf,2\n"
                               "1,6,x,y,1,2\n"
                               "1,7,x,y,1,zz\n" /* 8 */
                               "2,8,x,y,1,2\n"
                               "0,9,x,y,1,2\n";

static void check_file(const char *expected)
{
    char *text;
    size_t bytes;
    ck_assert_ok(tdm_file_get(quarantine, 1 << 20, &text, &bytes));
    ck_assert_str_eq(text, expected);
    tdm_free(text);
}

static char *expected_file(void)
{
    char *text;
    ck_assert_ok(tdm_format(&text,
                            "# %s:3: 3 columns, expected 6\n1,2,x\n"
                            "# %s:5: label: the label is not 0 or 1\n7,4,x,y,1,2\n"
                            "# %s:6: n: nan and inf are not accepted; leave a missing value empty\n"
                            "1,5,x,y,inf,2\n"
                            "# %s:8: m: not a number, or out of range\n1,7,x,y,1,zz\n"
                            "# %s:9: label: the label is not 0 or 1\n2,8,x,y,1,2\n",
                            path, path, path, path, path));
    return text;
}

START_TEST(test_quarantine_tells_where_and_why)
{
    open_input(bad_text);
    tdm_bad_record_log *log;
    ck_assert_ok(tdm_bad_record_log_create(TDM_BAD_RECORD_QUARANTINE, no_limit, quarantine, &log));
    ck_assert(!tdm_file_exists(quarantine));
    tdm_warnings_expect("a.csv:5: label: the label is not 0 or 1");
    ck_assert_ok(add_all(log));
    ck_assert_int_eq(tdm_warnings_seen(), 1);
    tdm_bad_record_counts counts;
    ck_assert_ok(tdm_bad_record_log_sync(log, &counts));
    ck_assert_int_eq(counts.records, 9);
    ck_assert_int_eq(counts.bad, 5);
    char *expected = expected_file();
    ck_assert_int_eq(counts.quarantine_bytes, (int64_t)strlen(expected));
    check_file(expected);

    const tdm_bad_reason *reasons;
    ck_assert_int_eq(tdm_bad_record_log_reasons(log, &reasons), 4);
    ck_assert_str_eq(reasons[1].column, "label");
    ck_assert_str_eq(reasons[1].reason, "the label is not 0 or 1");
    ck_assert_int_eq(reasons[1].count, 2);
    ck_assert_ptr_nonnull(strstr(reasons[1].first, "a.csv:5"));
    ck_assert_str_eq(reasons[0].column, "");
    ck_assert_int_eq(reasons[0].count, 1);
    tdm_bad_record_log_destroy(log);
    tdm_free(expected);
    close_input();
}
END_TEST

/* Two of five records are of one kind, the others judged. */
static tdm_status add_kinds(tdm_bad_record_log *log, tdm_bad_kind kind)
{
    char reason[] = "why", text[] = "x";
    tdm_bad_record records[3];
    for (int i = 0; i < 3; i++)
        records[i] = (tdm_bad_record){.line = i,
                                      .record = i,
                                      .column = -1,
                                      .kind = i < 2 ? kind : TDM_BAD_JUDGED,
                                      .reason = reason,
                                      .text = text,
                                      .text_bytes = 1};
    const tdm_bad_report report = {
        .first_line = 10, .records = records, .count = 3, .encoding_errors = 7};
    TDM_TRY(tdm_bad_record_log_add(log, rig.input, &report));
    return tdm_bad_record_log_judge(log, 2, true);
}

START_TEST(test_dropped_records_are_told_and_not_judged)
{
    open_input(bad_text);
    tdm_bad_record_log *log;
    const tdm_share one = {.value = 1};
    ck_assert_ok(tdm_bad_record_log_create(TDM_BAD_RECORD_QUARANTINE, one, quarantine, &log));
    tdm_warnings_expect("a.csv:1");
    ck_assert_ok(add_kinds(log, TDM_BAD_DROPPED));
    ck_assert_int_eq(tdm_warnings_seen(), 3);
    tdm_bad_record_counts counts;
    ck_assert_ok(tdm_bad_record_log_sync(log, &counts));
    ck_assert_int_eq(counts.bad, 1);
    ck_assert_int_eq(counts.records, 5);
    ck_assert_int_eq(counts.encoding_errors, 7);
    char *expected;
    ck_assert_ok(tdm_format(&expected, "# %s:11: why\nx\n# %s:12: why\nx\n# %s:13: why\nx\n", path,
                            path, path));
    check_file(expected);
    tdm_free(expected);
    ck_assert_fails(add_kinds(log, TDM_BAD_DROPPED), TDM_E_DATA,
                    "2 bad records, more than data.max_bad_records: 1; the first: ");
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "a.csv:13: why"));
    tdm_bad_record_log_destroy(log);
    ck_assert_ok(tdm_bad_record_log_create(TDM_BAD_RECORD_FAIL, no_limit, NULL, &log));
    ck_assert_fails(add_kinds(log, TDM_BAD_DROPPED), TDM_E_DATA, "a.csv:13: why");
    tdm_bad_record_log_destroy(log);
    close_input();
}
END_TEST

START_TEST(test_fatal_records_end_the_run)
{
    open_input(bad_text);
    tdm_bad_record_log *log;
    ck_assert_ok(tdm_bad_record_log_create(TDM_BAD_RECORD_SKIP, no_limit, NULL, &log));
    ck_assert_fails(add_kinds(log, TDM_BAD_FATAL), TDM_E_DATA, "a.csv:11: why");
    tdm_bad_record_log_destroy(log);
    close_input();
}
END_TEST

START_TEST(test_skip_keeps_no_file)
{
    open_input(bad_text);
    tdm_bad_record_log *log;
    ck_assert_ok(tdm_bad_record_log_create(TDM_BAD_RECORD_SKIP, no_limit, quarantine, &log));
    tdm_warnings_expect("a.csv:");
    ck_assert_ok(add_all(log));
    ck_assert_int_eq(tdm_warnings_seen(), 5);
    ck_assert_int_eq(tdm_bad_record_log_counts(log).bad, 5);
    ck_assert_int_eq(tdm_bad_record_log_counts(log).quarantine_bytes, 0);
    tdm_bad_record_log_destroy(log);
    ck_assert(!tdm_file_exists(quarantine));
    close_input();
}
END_TEST

START_TEST(test_fail_stops_at_the_first)
{
    open_input(bad_text);
    tdm_bad_record_log *log;
    ck_assert_ok(tdm_bad_record_log_create(TDM_BAD_RECORD_FAIL, no_limit, quarantine, &log));
    ck_assert_fails(add_all(log), TDM_E_DATA, "a.csv:3: 3 columns, expected 6");
    tdm_bad_record_log_destroy(log);
    ck_assert(!tdm_file_exists(quarantine));
    close_input();
}
END_TEST

/* A run that is killed behind any record and goes on leaves the file of an undisturbed one. */
START_TEST(test_restore_cuts_the_file)
{
    open_input(bad_text);
    char *expected = expected_file();
    tdm_bad_record_log *log;
    tdm_bad_record_counts counts;
    for (int taken = 0; taken < 4; taken++) {
        ck_assert_ok(tdm_file_remove(quarantine));
        ck_assert_ok(
            tdm_bad_record_log_create(TDM_BAD_RECORD_QUARANTINE, no_limit, quarantine, &log));
        ck_assert_ok(tdm_bad_record_log_sync(log, &counts));
        if (taken > 0)
            ck_assert_ok(add_all(log));
        if (taken > 1)
            ck_assert_ok(tdm_bad_record_log_sync(log, &counts));
        if (taken > 2)
            ck_assert_ok(add_all(log));
        tdm_bad_record_log_destroy(log);

        ck_assert_ok(
            tdm_bad_record_log_create(TDM_BAD_RECORD_QUARANTINE, no_limit, quarantine, &log));
        ck_assert_ok(tdm_bad_record_log_restore(log, &counts));
        ck_assert_int_eq(tdm_bad_record_log_counts(log).bad, taken > 1 ? 5 : 0);
        if (taken < 2)
            ck_assert_ok(add_all(log));
        tdm_bad_record_log_destroy(log);
        check_file(expected);
    }
    tdm_free(expected);
    close_input();
}
END_TEST

START_TEST(test_a_file_that_was_taken_away)
{
    open_input(bad_text);
    char *expected = expected_file();
    tdm_bad_record_log *log;
    tdm_bad_record_counts counts = {.records = 100, .bad = 9, .quarantine_bytes = 1234};
    for (int left = 0; left < 2; left++) {
        ck_assert_ok(tdm_file_remove(quarantine));
        if (left > 0)
            tdm_free(tdm_data_rig_put_text(folder, "quarantine.txt", "left\n"));
        ck_assert_ok(
            tdm_bad_record_log_create(TDM_BAD_RECORD_QUARANTINE, no_limit, quarantine, &log));
        ck_assert_ok(tdm_bad_record_log_restore(log, &counts));
        ck_assert_ok(add_all(log));
        tdm_bad_record_counts now;
        ck_assert_ok(tdm_bad_record_log_sync(log, &now));
        ck_assert_int_eq(now.bad, 14);
        ck_assert_int_eq(now.quarantine_bytes, (int64_t)strlen(expected) + 5 * left);
        tdm_bad_record_log_destroy(log);
        struct stat info;
        ck_assert_int_eq(stat(quarantine, &info), 0);
        ck_assert_int_eq(info.st_size, now.quarantine_bytes);
    }
    tdm_free(expected);
    close_input();
}
END_TEST

START_TEST(test_a_file_that_cannot_be_written)
{
    open_input(bad_text);
    tdm_bad_record_log *log;
    tdm_bad_record_counts counts;
    ck_assert_ok(tdm_bad_record_log_create(TDM_BAD_RECORD_QUARANTINE, no_limit, folder, &log));
    ck_assert_fails(add_all(log), TDM_E_IO, folder);
    tdm_bad_record_log_destroy(log);
    if (tdm_file_exists("/dev/full")) {
        ck_assert_ok(
            tdm_bad_record_log_create(TDM_BAD_RECORD_QUARANTINE, no_limit, "/dev/full", &log));
        ck_assert_ok(add_all(log));
        ck_assert_fails(tdm_bad_record_log_sync(log, &counts), TDM_E_IO, "/dev/full: ");
        tdm_bad_record_log_destroy(log);
    }
    close_input();
}
END_TEST

/* ---- judging --------------------------------------------------------------------------------- */

/* Adds `count` bad records, each with a reason of its own where `many`. */
static void add_bad(tdm_bad_record_log *log, int count, bool many)
{
    for (int i = 0; i < count; i++) {
        char reason[32];
        snprintf(reason, sizeof reason, "reason %d", many ? i : 0);
        char record[] = "a\0b";
        tdm_bad_record bad = {
            .line = i, .column = 2, .reason = reason, .text = record, .text_bytes = 3};
        tdm_bad_report report = {.first_line = 0, .records = &bad, .count = 1};
        ck_assert_ok(tdm_bad_record_log_add(log, rig.input, &report));
    }
}

static tdm_status judge(tdm_share limit, int bad, int64_t rows, bool last)
{
    tdm_bad_record_log *log;
    ck_assert_ok(tdm_bad_record_log_create(TDM_BAD_RECORD_SKIP, limit, NULL, &log));
    add_bad(log, bad, false);
    tdm_status status = tdm_bad_record_log_judge(log, rows, last);
    tdm_bad_record_log_destroy(log);
    return status;
}

START_TEST(test_limits)
{
    open_input(bad_text);
    const tdm_share none = {0, false}, three = {3, false}, percent = {0.01, true};
    ck_assert_ok(judge(none, 0, 10, true));
    ck_assert_fails(judge(none, 1, 10, false), TDM_E_DATA,
                    "1 bad records, more than data.max_bad_records: 0; the first: ");
    ck_assert_ok(judge(three, 3, 0, true));
    ck_assert_fails(judge(three, 4, 1000000, false), TDM_E_DATA, "4 bad records, more than");
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "a.csv:1: a: reason 0"));
    /* A share counts from 10,000 records on, or at the end. */
    ck_assert_ok(judge(percent, 101, 9898, false));
    ck_assert_fails(judge(percent, 101, 9899, false), TDM_E_DATA,
                    "101 of 10000 records are bad (1.01%), more than data.max_bad_records: 1%");
    ck_assert_ok(judge(percent, 100, 9900, false));
    ck_assert_ok(judge(percent, 1, 99, true));
    ck_assert_fails(judge(percent, 1, 98, true), TDM_E_DATA, "1 of 99 records");
    ck_assert_ok(judge(no_limit, 50, 0, true));
    ck_assert_ok(judge(percent, 0, 0, true));
    close_input();
}
END_TEST

START_TEST(test_reasons_and_warnings_are_bounded)
{
    open_input(bad_text);
    tdm_bad_record_log *log;
    tdm_warnings_expect(NULL);
    ck_assert_ok(tdm_bad_record_log_create(TDM_BAD_RECORD_QUARANTINE, no_limit, quarantine, &log));
    add_bad(log, 500, true);
    ck_assert_int_eq(tdm_warnings_seen(), 10);
    const tdm_bad_reason *reasons;
    ck_assert_int_eq(tdm_bad_record_log_reasons(log, &reasons), 65);
    ck_assert_str_eq(reasons[64].reason, "other reasons");
    ck_assert_int_eq(reasons[64].count, 500 - 64);
    ck_assert_int_eq(reasons[63].count, 1);
    tdm_bad_record_counts counts;
    ck_assert_ok(tdm_bad_record_log_sync(log, &counts));
    ck_assert_int_eq(counts.bad, 500);
    tdm_bad_record_log_destroy(log);
    /* Records stand in the file as they were, NUL bytes too. */
    char *text;
    size_t bytes;
    ck_assert_ok(tdm_file_get(quarantine, 1 << 20, &text, &bytes));
    ck_assert_int_eq((int64_t)bytes, counts.quarantine_bytes);
    const char *line = strchr(text, '\n') + 1;
    ck_assert_mem_eq(line, "a\0b\n# ", 6);
    tdm_free(text);
    close_input();
}
END_TEST

TDM_CHECK_MAIN(test_quarantine_tells_where_and_why, test_dropped_records_are_told_and_not_judged,
               test_fatal_records_end_the_run, test_skip_keeps_no_file,
               test_fail_stops_at_the_first, test_restore_cuts_the_file,
               test_a_file_that_was_taken_away, test_a_file_that_cannot_be_written, test_limits,
               test_reasons_and_warnings_are_bounded)
