#include "cli/masked_rows.h"

#include "cli/console.h"
#include "cli/label_rows.h"
#include "cli/progress.h"
#include "cli/text_stats.h"
#include "text/masked_batch.h"

#include <math.h>
#include <string.h>

#define LINE_WIDTH 96

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct showing {
    const tdm_reading *reading;
    int64_t rows, shown;
    tdm_text text;
    size_t line;  /* where the line that is being written begins in text */
    json_t *json; /* NULL for text */
} showing;

typedef struct token_name {
    const char *text;
    int bytes;
} token_name;

static token_name name_of(const showing *show, uint32_t id)
{
    size_t bytes;
    const char *text = tdm_tokenizer_token(show->reading->tokenizer, id, &bytes);
    return text == NULL ? (token_name){"?", 1} : (token_name){text, (int)bytes};
}

static const char *pair_meaning(const tdm_text_options *options, uint32_t label)
{
    if (options->pairs == TDM_NEXT_SENTENCE)
        return label == 0 ? "B follows A" : "B is of another document";
    return label == 0 ? "in order" : "swapped";
}

static bool is_masked(const tdm_masked_batch *batch, int64_t token, int64_t prediction)
{
    return prediction < batch->mask_count && batch->mask_positions[prediction] == token;
}

/* What is to be predicted at a token: what stood there, or the class of a word; without bytes where
 * it is nothing. */
static token_name label_of(const showing *show, const tdm_masked_batch *batch, int64_t token,
                           int64_t prediction)
{
    const tdm_label_spec *labels = show->reading->labels;
    if (labels != NULL) {
        size_t bytes;
        const char *name = tdm_label_token_class(labels, batch, token, &bytes);
        return (token_name){name, (int)bytes};
    }
    return is_masked(batch, token, prediction) ? name_of(show, batch->mask_labels[prediction])
                                               : (token_name){0};
}

/* A blank or a new line, and the token; behind it what is to be predicted there. */
static tdm_status show_token(showing *show, const tdm_masked_batch *batch, int64_t token,
                             int64_t prediction)
{
    token_name seen = name_of(show, batch->ids[token]);
    token_name label = label_of(show, batch, token, prediction);
    size_t width = show->text.length - show->line + (size_t)(seen.bytes + label.bytes) + 3;
    if (width > LINE_WIDTH) {
        TDM_TRY(tdm_text_printf(&show->text, "\n "));
        show->line = show->text.length;
    }
    TDM_TRY(tdm_text_printf(&show->text, " %.*s", seen.bytes, seen.text));
    return label.bytes > 0 ? tdm_text_printf(&show->text, "<%.*s>", label.bytes, label.text)
                           : TDM_OK;
}

static json_t *token_json(const showing *show, const tdm_masked_batch *batch, int64_t token,
                          int64_t prediction)
{
    token_name seen = name_of(show, batch->ids[token]);
    token_name label = label_of(show, batch, token, prediction);
    json_t *json =
        json_pack("{s:s%, s:I, s:I}", "token", seen.text, (size_t)seen.bytes, "id",
                  (json_int_t)batch->ids[token], "type", (json_int_t)batch->types[token]);
    if (label.bytes > 0)
        json_object_set_new(json, "label", json_stringn(label.text, (size_t)label.bytes));
    if (is_masked(batch, token, prediction))
        json_object_set_new(json, "label_id",
                            json_integer((json_int_t)batch->mask_labels[prediction]));
    return json;
}

/* What is told of a whole row, but for its tokens. */
typedef struct row_head {
    int64_t row, length, predictions;
} row_head;

static tdm_status show_head(showing *show, const tdm_masked_batch *batch, const row_head *head)
{
    const tdm_recipe *recipe = show->reading->recipe;
    tdm_text *text = &show->text;
    TDM_TRY(tdm_text_printf(text, "sequence %lld, %lld tokens", (long long)show->shown + 1,
                            (long long)head->length));
    if (show->reading->labels != NULL)
        TDM_TRY(tdm_label_row_text(show->reading->labels, batch, head->row, text));
    else
        TDM_TRY(tdm_text_printf(text, ", %lld to predict", (long long)head->predictions));
    if (batch->pair_labels != NULL)
        TDM_TRY(tdm_text_printf(text, ", label %u: %s", batch->pair_labels[head->row],
                                pair_meaning(&recipe->text, batch->pair_labels[head->row])));
    TDM_TRY(tdm_text_printf(text, "\n "));
    show->line = text->length;
    return TDM_OK;
}

/* The object of a row, with its list of tokens. */
static json_t *head_json(const showing *show, const tdm_masked_batch *batch, const row_head *head,
                         json_t *tokens)
{
    json_t *json = json_pack("{s:I, s:I, s:o}", "sequence", (json_int_t)show->shown + 1, "length",
                             (json_int_t)head->length, "tokens", tokens);
    if (show->reading->labels != NULL)
        tdm_label_row_json(show->reading->labels, batch, head->row, json);
    else
        json_object_set_new(json, "predictions", json_integer(head->predictions));
    if (batch->pair_labels != NULL)
        json_object_set_new(json, "pair_label", json_integer(batch->pair_labels[head->row]));
    return json;
}

static tdm_status show_row(showing *show, const tdm_masked_batch *batch, int64_t row)
{
    tdm_token_range tokens = tdm_masked_batch_row(batch, row);
    int64_t first = tdm_masked_batch_find(batch, 0, tokens.begin);
    int64_t end = tdm_masked_batch_find(batch, first, tokens.end);
    const row_head head = {row, tokens.end - tokens.begin, end - first};
    json_t *list = show->json == NULL ? NULL : json_array();
    if (list != NULL)
        json_array_append_new(show->json, head_json(show, batch, &head, list));
    else
        TDM_TRY(show_head(show, batch, &head));
    for (int64_t t = tokens.begin; t < tokens.end; t++) {
        first = tdm_masked_batch_find(batch, first, t);
        if (list != NULL)
            json_array_append_new(list, token_json(show, batch, t, first));
        else
            TDM_TRY(show_token(show, batch, t, first));
    }
    return list != NULL ? TDM_OK : tdm_text_printf(&show->text, "\n\n");
}

static void tell_bad_records(const tdm_delivery *delivery)
{
    for (size_t i = 0; i < delivery->report_count && i < 3; i++) {
        const tdm_bad_report *report = &delivery->reports[i];
        if (report->count > 0)
            tdm_console_print("%zu bad record(s) in block %lld: %s", report->count,
                              (long long)report->block, report->records[0].reason);
    }
}

static tdm_status show_batch(void *context, const tdm_delivery *delivery, bool *stop)
{
    showing *show = context;
    tell_bad_records(delivery);
    if (delivery->epoch_end)
        return TDM_OK;
    tdm_masked_batch batch = tdm_masked_batch_of(&delivery->batch);
    for (int64_t r = 0; r < batch.rows && show->shown < show->rows; r++) {
        TDM_TRY(show_row(show, &batch, r));
        show->shown++;
    }
    *stop = show->shown == show->rows;
    return TDM_OK;
}

static tdm_status no_row(const tdm_reading *reading)
{
    return tdm_fail(TDM_E_DATA, reading->labels != NULL ? "there is no good record"
                                                        : "there is no document with a word in it");
}

tdm_status tdm_masked_rows_show(tdm_reading *reading, int64_t rows, bool json,
                                const atomic_bool *cancel)
{
    showing show = {.reading = reading, .rows = rows, .json = json ? json_array() : NULL};
    const tdm_batch_run run = {.epochs = 1, .cancel = cancel, .take = show_batch, .context = &show};
    tdm_status status = tdm_reading_batches(reading, &run);
    if (status == TDM_OK && show.shown == 0)
        status = no_row(reading);
    if (json) {
        if (status == TDM_OK)
            status = tdm_console_json(json_pack("{s:O}", "rows", show.json));
        json_decref(show.json);
        return status;
    }
    return tdm_console_text(status, &show.text);
}

/* ---- all rows -------------------------------------------------------------------------------- */

typedef struct summing {
    const tdm_reading *reading;
    tdm_sequence_stats stats;
    tdm_progress progress;
} summing;

static tdm_status add_batch(void *context, const tdm_delivery *delivery, bool *stop)
{
    summing *sum = context;
    (void)stop;
    if (delivery->epoch_end)
        return TDM_OK;
    tdm_progress_rows(&sum->progress, sum->stats.sequences, delivery->batch.share);
    tdm_sequence_stats_add(&sum->stats, sum->reading->tokenizer, &delivery->batch);
    return TDM_OK;
}

static tdm_status print_stats(const summing *sum, bool json)
{
    const tdm_text_options *options = &sum->reading->recipe->text;
    tdm_text_counts counts = tdm_text_featurizer_counts(sum->reading->featurizer);
    bool labelled = sum->reading->labels != NULL;
    if (json)
        return tdm_console_json(tdm_sequence_stats_json(&sum->stats, options, &counts, labelled));
    tdm_text text = {0};
    tdm_status status = tdm_sequence_stats_text(&sum->stats, options, &counts, labelled, &text);
    return tdm_console_text(status, &text);
}

tdm_status tdm_masked_rows_stats(tdm_reading *reading, bool json, const atomic_bool *cancel)
{
    summing sum = {.reading = reading};
    const tdm_batch_run run = {.epochs = 1, .cancel = cancel, .take = add_batch, .context = &sum};
    tdm_progress_init(&sum.progress, "reading", reading->recipe->train.log_every_seconds);
    tdm_status status = tdm_reading_batches(reading, &run);
    tdm_progress_end(&sum.progress);
    if (status == TDM_OK && sum.stats.sequences == 0)
        status = no_row(reading);
    return status == TDM_OK ? print_stats(&sum, json) : status;
}
