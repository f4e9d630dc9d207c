/* tandem check: what is wrong with this data? A full pass without training. */
#include "cli/console.h"
#include "cli/field_stats.h"
#include "cli/label_stats.h"
#include "cli/progress.h"
#include "cli/reading.h"
#include "cli/text_stats.h"
#include "cli/verbs.h"
#include "data/bad_records.h"

typedef struct check_values {
    bool json;
} check_values;

typedef struct checking {
    tdm_reading reading;
    tdm_bad_record_log *log;
    tdm_field_stats *stats;       /* ctr */
    tdm_document_stats documents; /* mlm */
    tdm_label_stats labels;       /* classify */
    int64_t records;
} checking;

static int task_of(const checking *check)
{
    return check->reading.recipe->task;
}

/* Records that are of use: rows, or documents with a token. */
static int64_t good_rows(const checking *check)
{
    switch (task_of(check)) {
    case TDM_TASK_MLM:
        return check->documents.documents;
    case TDM_TASK_CLASSIFY:
        return check->labels.records;
    default:
        return tdm_field_stats_rows(check->stats);
    }
}

static tdm_status take_block(void *context, const tdm_extract *block)
{
    checking *check = context;
    check->records += block->records;
    const tdm_reading *reading = &check->reading;
    if (task_of(check) == TDM_TASK_MLM)
        tdm_document_stats_add(&check->documents, reading->featurizer, reading->tokenizer, block);
    else if (task_of(check) == TDM_TASK_CLASSIFY)
        tdm_label_stats_add(&check->labels, block);
    else
        tdm_field_stats_add(check->stats, reading->featurizer, block, block->rows);
    const tdm_bad_report report = tdm_bad_report_of(block);
    return tdm_bad_record_log_add(check->log, check->reading.input, &report);
}

/* ---- results --------------------------------------------------------------------------------- */

static int64_t bad_count(const checking *check)
{
    return tdm_bad_record_log_counts(check->log).bad;
}

static tdm_status append_reasons(const checking *check, tdm_text *text)
{
    const tdm_bad_reason *reasons;
    int count = tdm_bad_record_log_reasons(check->log, &reasons);
    if (count > 0)
        TDM_TRY(tdm_text_printf(text, "%10s  %-32s %s\n", "records", "first at", "reason"));
    for (int i = 0; i < count; i++)
        TDM_TRY(tdm_text_printf(text, "%10lld  %-32s %s%s%s\n", (long long)reasons[i].count,
                                reasons[i].first, reasons[i].column,
                                reasons[i].column[0] == '\0' ? "" : ": ", reasons[i].reason));
    return TDM_OK;
}

/* Nearly all documents are a sentence: pairs would nearly all have a random B. */
static tdm_status append_documents(const checking *check, tdm_text *text)
{
    const tdm_document_stats *stats = &check->documents;
    const tdm_recipe *recipe = check->reading.recipe;
    TDM_TRY(tdm_text_printf(
        text, "%lld records with bytes that are not UTF-8\n%lld records without a token\n\n",
        (long long)tdm_bad_record_log_counts(check->log).encoding_errors,
        (long long)(check->records - bad_count(check) - stats->documents)));
    TDM_TRY(tdm_document_stats_text(stats, text));
    if (recipe->text.sequences == TDM_SEGMENT_PAIRS && 10 * stats->alone > 9 * stats->documents)
        tdm_console_print("warning: a document is one sentence, so that pairs have no second one: "
                          "does a blank line stand behind each line?");
    return TDM_OK;
}

static tdm_status append_result(const checking *check, tdm_text *text)
{
    int64_t bad = bad_count(check);
    double records = (double)check->records;
    TDM_TRY(tdm_text_printf(text, "%lld records, %lld %s, %lld bad (%.3g%%)\n",
                            (long long)check->records, (long long)good_rows(check),
                            task_of(check) == TDM_TASK_MLM ? "documents" : "rows", (long long)bad,
                            check->records > 0 ? 100 * (double)bad / records : 0.0));
    int64_t errors = tdm_bad_record_log_counts(check->log).encoding_errors;
    if (errors > 0)
        TDM_TRY(tdm_text_printf(text, "%lld records hold bytes that are not UTF-8\n",
                                (long long)errors));
    TDM_TRY(append_reasons(check, text));
    if (good_rows(check) == 0)
        return TDM_OK;
    if (task_of(check) == TDM_TASK_MLM)
        return append_documents(check, text);
    if (task_of(check) == TDM_TASK_CLASSIFY)
        return tdm_label_stats_text(&check->labels, text);
    TDM_TRY(tdm_text_printf(text, "mean label %.5f\n\n", tdm_field_stats_label_mean(check->stats)));
    return tdm_field_stats_text(check->stats, text);
}

static tdm_status print_text(const checking *check)
{
    tdm_text text = {0};
    return tdm_console_text(append_result(check, &text), &text);
}

static json_t *reasons_json(const checking *check)
{
    const tdm_bad_reason *reasons;
    int count = tdm_bad_record_log_reasons(check->log, &reasons);
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I, s:s}", "column", reasons[i].column,
                                        "reason", reasons[i].reason, "records",
                                        (json_int_t)reasons[i].count, "first", reasons[i].first));
    return list;
}

static tdm_status print_json(const checking *check)
{
    json_t *json = json_pack("{s:I, s:I, s:I, s:o}", "records", (json_int_t)check->records,
                             "bad_records", (json_int_t)bad_count(check), "encoding_errors",
                             (json_int_t)tdm_bad_record_log_counts(check->log).encoding_errors,
                             "reasons", reasons_json(check));
    if (task_of(check) == TDM_TASK_MLM) {
        json_object_set_new(json, "text", tdm_document_stats_json(&check->documents));
    } else if (task_of(check) == TDM_TASK_CLASSIFY) {
        json_object_set_new(json, "labels", tdm_label_stats_json(&check->labels));
    } else {
        json_t *stats;
        tdm_status status = tdm_field_stats_json(check->stats, &stats);
        if (status != TDM_OK)
            json_decref(json);
        TDM_TRY(status);
        json_object_set_new(json, "rows", json_integer(tdm_field_stats_rows(check->stats)));
        json_object_set_new(json, "mean_label",
                            tdm_json_number(tdm_field_stats_label_mean(check->stats)));
        json_object_set_new(json, "features", stats);
    }
    return tdm_console_json(json);
}

/* The data is no good where training on all of it would stop. */
static tdm_status verdict(const checking *check)
{
    const tdm_data_options *data = &check->reading.recipe->data;
    tdm_share limit = data->max_bad_records;
    if (data->on_bad_record == TDM_BAD_RECORD_FAIL)
        limit = (tdm_share){0};
    double bad = (double)bad_count(check);
    double allowed = limit.is_share ? limit.value * (double)check->records : limit.value;
    TDM_FAIL_IF(bad > allowed, TDM_E_DATA,
                "%.0f bad records: training would stop (data.on_bad_record, data.max_bad_records)",
                bad);
    TDM_FAIL_IF(good_rows(check) == 0, TDM_E_DATA,
                task_of(check) == TDM_TASK_MLM ? "there is no document" : "there is no record");
    return TDM_OK;
}

static tdm_status run_check(const tdm_command *command, checking *check)
{
    const check_values *values = command->values;
    TDM_TRY(tdm_bad_record_log_create(
        TDM_BAD_RECORD_SKIP, (tdm_share){.value = 1, .is_share = true}, NULL, &check->log));
    const tdm_reading *reading = &check->reading;
    if (task_of(check) == TDM_TASK_CTR)
        TDM_TRY(tdm_field_stats_create(reading->spec, &check->stats));
    if (task_of(check) == TDM_TASK_CLASSIFY)
        TDM_TRY(tdm_label_stats_init(&check->labels, reading->labels, reading->tokenizer,
                                     reading->featurizer, reading->recipe->text.max_length));
    tdm_progress progress;
    tdm_progress_init(&progress, "checking", check->reading.recipe->train.log_every_seconds);
    TDM_TRY(tdm_reading_blocks(&check->reading, command->cancel, take_block, tdm_progress_rows,
                               &progress, check));
    tdm_progress_end(&progress);
    TDM_TRY(values->json ? print_json(check) : print_text(check));
    return verdict(check);
}

static tdm_status run(const tdm_command *command)
{
    checking check = {0};
    const tdm_recipe_arguments arguments = tdm_command_recipe_arguments(command);
    TDM_TRY(tdm_reading_open(command->plain[0], &arguments, -1, TDM_CTR_TRAINING, command->cancel,
                             &check.reading));
    tdm_status status = run_check(command, &check);
    tdm_bad_record_log_destroy(check.log);
    tdm_field_stats_destroy(check.stats);
    tdm_label_stats_deinit(&check.labels);
    tdm_reading_close(&check.reading);
    return status;
}

static const tdm_option options[] = {
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(check_values, json),
     .help = "print the result as one JSON object"},
    {0},
};

const tdm_verb tdm_verb_check = {
    .name = "check",
    .arguments = "RECIPE [FILE...] [key=value]...",
    .summary = "read all records without training: what is wrong, where, how often",
    .text =
        "Counts bad records by reason, with the first place of each, and looks at the features:\n"
        "what is missing, how full the tables get, what the labels' mean is; of text at "
        "documents,\n"
        "sentences, tokens and what the vocabulary lacks; of labelled text at the classes, and at\n"
        "how much will be cut. Exits with 3 where more records are bad than data.max_bad_records\n"
        "allows.\n"
        "\n"
        "  tandem check recipes/ctr/deepfm_criteo.yaml day_0.tsv.gz\n"
        "  tandem check recipes/ctr/deepfm_criteo.yaml 'day_*.tsv' --json\n"
        "  tandem check recipes/bert/bert_mini.yaml corpus.txt.gz text.tokenizer=vocab.txt",
    .options = options,
    .values_bytes = sizeof(check_values),
    .min_plain = 1,
    .max_plain = -1,
    .takes_overrides = true,
    .run = run,
};
