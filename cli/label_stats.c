#include "cli/label_stats.h"

#include "core/memory.h"
#include "core/ops.h"

#include <math.h>
#include <string.h>

tdm_status tdm_label_stats_init(tdm_label_stats *stats, const tdm_label_spec *spec,
                                const tdm_tokenizer *tokenizer, const tdm_featurizer *featurizer,
                                int64_t max_length)
{
    *stats = (tdm_label_stats){.spec = spec,
                               .columns = &featurizer->columns,
                               .head_rows = tdm_label_head_rows(spec, tokenizer),
                               .unknown_id = tokenizer->specials[TDM_SPECIAL_UNK],
                               .room = max_length - (spec->pair >= 0 ? 3 : 2),
                               .least = INFINITY,
                               .most = -INFINITY};
    return tdm_alloc((size_t)spec->classes.size, sizeof *stats->counts, &stats->counts);
}

void tdm_label_stats_deinit(tdm_label_stats *stats)
{
    tdm_free(stats->counts);
    *stats = (tdm_label_stats){0};
}

/* ---- adding ---------------------------------------------------------------------------------- */

static void add_number(tdm_label_stats *stats, uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    double value = (double)number;
    stats->sum += value;
    stats->squares += value * value;
    stats->least = value < stats->least ? value : stats->least;
    stats->most = value > stats->most ? value : stats->most;
    stats->labels++;
}

static void add_classes(tdm_label_stats *stats, const tdm_extract *block, int64_t head)
{
    int64_t before = stats->labels;
    for (int64_t c = 0; c < stats->spec->classes.size; c++) {
        bool has = (tdm_label_word(stats->columns, block, head, c / 32) >> c % 32 & 1) != 0;
        stats->counts[c] += has;
        stats->labels += has;
    }
    stats->without += stats->labels == before;
}

static void add_words(tdm_label_stats *stats, const tdm_extract *block,
                      const tdm_label_record *record)
{
    const uint32_t *labels = block->columns[tdm_columns_find(stats->columns, "labels")];
    for (int64_t t = record->first; t < record->end; t++) {
        if (labels[t] == TDM_NO_LABEL)
            continue;
        stats->counts[labels[t]]++;
        stats->labels++;
    }
}

static void add_label(tdm_label_stats *stats, const tdm_extract *block,
                      const tdm_label_record *record)
{
    switch (stats->spec->type) {
    case TDM_LABEL_CLASSES:
        stats->counts[tdm_label_word(stats->columns, block, record->head, 0)]++;
        stats->labels++;
        return;
    case TDM_LABEL_MULTIPLE:
        add_classes(stats, block, record->head);
        return;
    case TDM_LABEL_REGRESSION:
        add_number(stats, tdm_label_word(stats->columns, block, record->head, 0));
        return;
    case TDM_LABEL_TOKENS:
        add_words(stats, block, record);
        return;
    }
}

void tdm_label_stats_add(tdm_label_stats *stats, const tdm_extract *block)
{
    int ids = tdm_columns_find(stats->columns, "ids");
    bool wide = stats->columns->columns[ids].dtype == TDM_U32;
    const void *column = block->columns[ids];
    tdm_label_record record;
    for (int64_t row = 0; tdm_label_record_at(block, row, stats->head_rows, &record);
         row = record.end) {
        int64_t tokens = record.end - record.first;
        stats->records++;
        stats->tokens += tokens;
        stats->longest = tokens > stats->longest ? tokens : stats->longest;
        stats->too_long += tokens > stats->room;
        for (int64_t t = record.first; t < record.end; t++)
            stats->unknown += (wide ? ((const uint32_t *)column)[t]
                                    : ((const uint16_t *)column)[t]) == stats->unknown_id;
        add_label(stats, block, &record);
    }
}

/* ---- results --------------------------------------------------------------------------------- */

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static double deviation(const tdm_label_stats *stats)
{
    double mean = stats->sum / (double)stats->labels;
    double variance = stats->squares / (double)stats->labels - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

/* As many classes are shown as a screen holds. */
#define SHOWN_CLASSES 40

static tdm_status append_classes(const tdm_label_stats *stats, tdm_text *text)
{
    int64_t whole = stats->spec->type == TDM_LABEL_MULTIPLE ? stats->records : stats->labels;
    int64_t classes = stats->spec->classes.size;
    TDM_TRY(tdm_text_printf(text, "%10s %9s  %s\n",
                            stats->spec->type == TDM_LABEL_TOKENS ? "words" : "records", "share",
                            "class"));
    for (int64_t c = 0; c < classes && c < SHOWN_CLASSES; c++) {
        size_t bytes;
        const char *name = tdm_class_name(stats->spec, c, &bytes);
        TDM_TRY(tdm_text_printf(text, "%10lld %8.2f%%  %.*s\n", (long long)stats->counts[c],
                                100 * share_of(stats->counts[c], whole), (int)bytes, name));
    }
    if (classes > SHOWN_CLASSES)
        TDM_TRY(tdm_text_printf(text, "and %lld more\n", (long long)classes - SHOWN_CLASSES));
    if (stats->spec->type != TDM_LABEL_MULTIPLE)
        return TDM_OK;
    return tdm_text_printf(text, "%lld records have none, %.3g in the mean\n",
                           (long long)stats->without, share_of(stats->labels, stats->records));
}

tdm_status tdm_label_stats_text(const tdm_label_stats *stats, tdm_text *text)
{
    TDM_TRY(
        tdm_text_printf(text,
                        "%lld tokens, %.3g%% of them [UNK]; %.4g a record, the longest has %lld\n"
                        "%.3g%% of the records are longer than text.max_length and will be cut\n\n",
                        (long long)stats->tokens, 100 * share_of(stats->unknown, stats->tokens),
                        share_of(stats->tokens, stats->records), (long long)stats->longest,
                        100 * share_of(stats->too_long, stats->records)));
    if (stats->spec->type != TDM_LABEL_REGRESSION)
        return append_classes(stats, text);
    return tdm_text_printf(text, "labels from %.6g to %.6g, mean %.6g, standard deviation %.6g\n",
                           stats->least, stats->most, stats->sum / (double)stats->labels,
                           deviation(stats));
}

static json_t *classes_json(const tdm_label_stats *stats)
{
    json_t *list = json_array();
    for (int64_t c = 0; c < stats->spec->classes.size; c++) {
        size_t bytes;
        const char *name = tdm_class_name(stats->spec, c, &bytes);
        json_array_append_new(list, json_pack("{s:s%, s:I}", "class", name, bytes, "count",
                                              (json_int_t)stats->counts[c]));
    }
    return list;
}

json_t *tdm_label_stats_json(const tdm_label_stats *stats)
{
    json_t *json = json_pack("{s:I, s:I, s:f, s:I, s:f}", "records", (json_int_t)stats->records,
                             "tokens", (json_int_t)stats->tokens, "unknown_share",
                             share_of(stats->unknown, stats->tokens), "longest_record",
                             (json_int_t)stats->longest, "cut_records_share",
                             share_of(stats->too_long, stats->records));
    if (stats->spec->type != TDM_LABEL_REGRESSION) {
        json_object_set_new(json, "classes", classes_json(stats));
        return json;
    }
    json_object_set_new(json, "least", tdm_json_number(stats->least));
    json_object_set_new(json, "most", tdm_json_number(stats->most));
    json_object_set_new(json, "mean", tdm_json_number(stats->sum / (double)stats->labels));
    json_object_set_new(json, "standard_deviation", tdm_json_number(deviation(stats)));
    return json;
}
