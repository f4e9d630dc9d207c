/* What happens to records that cannot be used: counted, told, kept in a file, judged. */
#ifndef TDM_DATA_BAD_RECORDS_H
#define TDM_DATA_BAD_RECORDS_H

#include "core/featurizer.h"
#include "data/input.h"
#include "data/options.h"

/* The bad records of a block, on their way to the log. */
typedef struct tdm_bad_report {
    int64_t block;
    int32_t file;
    int64_t first_line; /* -1: to be counted */
    tdm_bad_record *records;
    size_t count;
    int64_t encoding_errors;
} tdm_bad_report;

/* Borrows the block's records. */
static inline tdm_bad_report tdm_bad_report_of(const tdm_extract *block)
{
    tdm_bad_report report = {block->block, block->file,      block->first_line,
                             block->bad,   block->bad_count, block->encoding_errors};
    return report;
}

/* The block's other records, those that were held out among them. */
static inline int64_t tdm_good_records_of(const tdm_extract *block)
{
    return block->records - (int64_t)block->bad_count;
}

typedef struct tdm_bad_record_log tdm_bad_record_log;

/* A count for each reason, in the order in which reasons came up. */
typedef struct tdm_bad_reason {
    char *column; /* name, "" for the whole record */
    char *reason;
    int64_t count;
    char *first; /* "file:line" */
} tdm_bad_reason;

/* The first few are told through tdm_warn as "file:line: field: why". With the policy quarantine
 * and a path, each is appended to that file: a line "# file:line: field: why", then the record as
 * it stood. The file is created at the first bad record. */
TDM_MUST_CHECK tdm_status tdm_bad_record_log_create(tdm_bad_record_policy policy, tdm_share limit,
                                                    const char *quarantine_path,
                                                    tdm_bad_record_log **out);
/* NULL is allowed. */
void tdm_bad_record_log_destroy(tdm_bad_record_log *log);

/* Takes in a block's bad records. TDM_E_DATA for one that is judged with the policy fail, and for
 * one that is fatal. */
TDM_MUST_CHECK tdm_status tdm_bad_record_log_add(tdm_bad_record_log *log, tdm_input *input,
                                                 const tdm_bad_report *report);

/* Counts `good` records, of the same stretch of the input as the bad ones, and judges: TDM_E_DATA
 * where there are more bad ones than the limit allows; a share counts from 10,000 records on, or at
 * the end (`last`). */
TDM_MUST_CHECK tdm_status tdm_bad_record_log_judge(tdm_bad_record_log *log, int64_t good,
                                                   bool last);

/* State for checkpoints: the counts and the length of the quarantine file, which restore cuts it
 * to. */
typedef struct tdm_bad_record_counts {
    int64_t records;         /* good and bad */
    int64_t bad;             /* without those that are dropped and not judged */
    int64_t encoding_errors; /* records with bytes that are not UTF-8, used or dropped */
    int64_t quarantine_bytes;
} tdm_bad_record_counts;

TDM_MUST_CHECK tdm_status tdm_bad_record_log_sync(tdm_bad_record_log *log,
                                                  tdm_bad_record_counts *counts);
TDM_MUST_CHECK tdm_status tdm_bad_record_log_restore(tdm_bad_record_log *log,
                                                     const tdm_bad_record_counts *counts);
tdm_bad_record_counts tdm_bad_record_log_counts(const tdm_bad_record_log *log);

/* Since the log was created; borrowed until it changes. */
int tdm_bad_record_log_reasons(const tdm_bad_record_log *log, const tdm_bad_reason **reasons);

#endif
