#include "data/bad_records.h"

#include "core/append_file.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

#define TOLD_IN_FULL 10
#define JUDGED_FROM  10000
#define REASONS_KEPT 64
#define FLUSHED_FROM ((size_t)1 << 18)

struct tdm_bad_record_log {
    tdm_bad_record_policy policy;
    tdm_share limit;
    char *quarantine_path;
    tdm_append_file *quarantine; /* opened at the first bad record */
    char *pending;               /* for the quarantine file, not written yet */
    size_t pending_bytes, pending_capacity;
    tdm_bad_record_counts counts;
    int told;
    tdm_bad_reason *reasons;
    size_t reason_count, reason_capacity;
    char first[TDM_ERROR_BYTES]; /* the first bad record, for the verdict */
};

static tdm_status flush(tdm_bad_record_log *log)
{
    size_t bytes = log->pending_bytes;
    log->pending_bytes = 0;
    return bytes == 0 ? TDM_OK : tdm_append_file_write(log->quarantine, log->pending, bytes);
}

tdm_status tdm_bad_record_log_create(tdm_bad_record_policy policy, tdm_share limit,
                                     const char *quarantine_path, tdm_bad_record_log **out)
{
    *out = NULL;
    tdm_bad_record_log *log;
    TDM_TRY(tdm_alloc(1, sizeof *log, &log));
    log->policy = policy;
    log->limit = limit;
    if (policy == TDM_BAD_RECORD_QUARANTINE && quarantine_path != NULL) {
        tdm_status status = tdm_strdup(quarantine_path, &log->quarantine_path);
        if (status != TDM_OK) {
            tdm_bad_record_log_destroy(log);
            return status;
        }
    }
    *out = log;
    return TDM_OK;
}

void tdm_bad_record_log_destroy(tdm_bad_record_log *log)
{
    if (log == NULL)
        return;
    if (flush(log) != TDM_OK)
        tdm_warn("%s", tdm_error_message());
    tdm_append_file_close(log->quarantine);
    tdm_free(log->pending);
    for (size_t i = 0; i < log->reason_count; i++) {
        tdm_free(log->reasons[i].column);
        tdm_free(log->reasons[i].reason);
        tdm_free(log->reasons[i].first);
    }
    tdm_free(log->reasons);
    tdm_free(log->quarantine_path);
    tdm_free(log);
}

static tdm_status count_reason(tdm_bad_record_log *log, const char *column, const char *reason,
                               const char *place)
{
    for (size_t i = 0; i < log->reason_count; i++) {
        if (strcmp(log->reasons[i].column, column) == 0 &&
            strcmp(log->reasons[i].reason, reason) == 0) {
            log->reasons[i].count++;
            return TDM_OK;
        }
    }
    /* Reasons with numbers in them could be many: the last entry takes what is left. */
    if (log->reason_count == REASONS_KEPT)
        reason = "other reasons";
    if (log->reason_count > REASONS_KEPT) {
        log->reasons[REASONS_KEPT].count++;
        return TDM_OK;
    }
    TDM_TRY(tdm_grow(&log->reasons, &log->reason_capacity, log->reason_count + 1,
                     sizeof *log->reasons));
    tdm_bad_reason *entry = &log->reasons[log->reason_count++];
    *entry = (tdm_bad_reason){.count = 1};
    TDM_TRY(tdm_strdup(log->reason_count > REASONS_KEPT ? "" : column, &entry->column));
    TDM_TRY(tdm_strdup(reason, &entry->reason));
    return tdm_strdup(place, &entry->first);
}

static tdm_status open_quarantine(tdm_bad_record_log *log)
{
    return log->quarantine != NULL ? TDM_OK
                                   : tdm_append_file_open(log->quarantine_path, &log->quarantine);
}

static tdm_status quarantine(tdm_bad_record_log *log, const char *what, const tdm_bad_record *bad)
{
    if (log->quarantine_path == NULL)
        return TDM_OK;
    TDM_TRY(open_quarantine(log));
    size_t head = strlen(what) + 3;
    size_t bytes = head + bad->text_bytes + 1;
    TDM_TRY(tdm_grow(&log->pending, &log->pending_capacity, log->pending_bytes + bytes, 1));
    char *entry = log->pending + log->pending_bytes;
    snprintf(entry, head + 1, "# %s\n", what);
    memcpy(entry + head, bad->text, bad->text_bytes);
    entry[bytes - 1] = '\n';
    log->pending_bytes += bytes;
    log->counts.quarantine_bytes += (int64_t)bytes;
    return log->pending_bytes < FLUSHED_FROM ? TDM_OK : flush(log);
}

static tdm_status add_record(tdm_bad_record_log *log, const tdm_input *input,
                             const tdm_bad_report *report, int64_t lines_before,
                             const tdm_bad_record *bad)
{
    const tdm_record_format *format = tdm_input_format(input);
    const char *path = tdm_input_file_get(input, bad->file)->path;
    const char *column = bad->column < 0 ? "" : format->columns[bad->column];
    char place[TDM_ERROR_BYTES / 2];
    char what[TDM_ERROR_BYTES];
    snprintf(place, sizeof place, "%s:%lld", strcmp(path, "-") == 0 ? "standard input" : path,
             (long long)((bad->file == report->file ? lines_before : 0) + bad->line + 1));
    snprintf(what, sizeof what, "%s: %s%s%s", place, column, column[0] == '\0' ? "" : ": ",
             bad->reason);
    bool judged = bad->kind == TDM_BAD_JUDGED;
    log->counts.bad += judged;
    log->counts.records++;
    if (judged && log->first[0] == '\0')
        memcpy(log->first, what, sizeof what);
    TDM_FAIL_IF(bad->kind == TDM_BAD_FATAL || (judged && log->policy == TDM_BAD_RECORD_FAIL),
                TDM_E_DATA, "%s", what);
    if (log->told++ < TOLD_IN_FULL)
        tdm_warn("%s", what);
    TDM_TRY(count_reason(log, column, bad->reason, place));
    return quarantine(log, what, bad);
}

tdm_status tdm_bad_record_log_add(tdm_bad_record_log *log, tdm_input *input,
                                  const tdm_bad_report *report)
{
    int64_t lines_before = report->first_line;
    log->counts.encoding_errors += report->encoding_errors;
    if (lines_before < 0 && report->count > 0)
        TDM_TRY(tdm_input_lines_before(input, report->block, &lines_before));
    for (size_t i = 0; i < report->count; i++)
        TDM_TRY(add_record(log, input, report, lines_before, &report->records[i]));
    return TDM_OK;
}

tdm_status tdm_bad_record_log_judge(tdm_bad_record_log *log, int64_t good, bool last)
{
    tdm_bad_record_counts *counts = &log->counts;
    counts->records += good;
    double bad = (double)counts->bad;
    double records = (double)counts->records;
    /* The process that met it may have been another one. */
    const char *told = log->first[0] == '\0' ? "" : "; the first: ";
    if (!log->limit.is_share) {
        TDM_FAIL_IF(bad > log->limit.value, TDM_E_DATA,
                    "%lld bad records, more than data.max_bad_records: %.0f%s%s",
                    (long long)counts->bad, log->limit.value, told, log->first);
        return TDM_OK;
    }
    if (counts->records < JUDGED_FROM && !last)
        return TDM_OK;
    TDM_FAIL_IF(bad > log->limit.value * records, TDM_E_DATA,
                "%lld of %lld records are bad (%.3g%%), more than data.max_bad_records: %.3g%%%s%s",
                (long long)counts->bad, (long long)counts->records, 100 * bad / records,
                100 * log->limit.value, told, log->first);
    return TDM_OK;
}

tdm_status tdm_bad_record_log_sync(tdm_bad_record_log *log, tdm_bad_record_counts *counts)
{
    TDM_TRY(flush(log));
    if (log->quarantine != NULL)
        TDM_TRY(tdm_append_file_sync(log->quarantine));
    *counts = log->counts;
    return TDM_OK;
}

tdm_status tdm_bad_record_log_restore(tdm_bad_record_log *log, const tdm_bad_record_counts *counts)
{
    log->counts = *counts;
    if (log->quarantine_path == NULL)
        return TDM_OK;
    /* Where somebody took the file, or a part of it, away, what follows goes behind what is
     * there. */
    log->counts.quarantine_bytes = 0;
    if (!tdm_file_exists(log->quarantine_path))
        return TDM_OK;
    TDM_TRY(open_quarantine(log));
    if (tdm_append_file_length(log->quarantine) > counts->quarantine_bytes)
        TDM_TRY(tdm_append_file_cut(log->quarantine, counts->quarantine_bytes));
    log->counts.quarantine_bytes = tdm_append_file_length(log->quarantine);
    return TDM_OK;
}

tdm_bad_record_counts tdm_bad_record_log_counts(const tdm_bad_record_log *log)
{
    return log->counts;
}

int tdm_bad_record_log_reasons(const tdm_bad_record_log *log, const tdm_bad_reason **reasons)
{
    *reasons = log->reasons;
    return (int)log->reason_count;
}
