#include "cli/text_stats.h"

#include "text/masked_batch.h"

/* ---- documents ------------------------------------------------------------------------------- */

static uint32_t id_at(const tdm_featurizer *featurizer, const tdm_extract *block, int64_t row)
{
    int column = tdm_columns_find(&featurizer->columns, "ids");
    const void *ids = block->columns[column];
    return featurizer->columns.columns[column].dtype == TDM_U32 ? ((const uint32_t *)ids)[row]
                                                                : ((const uint16_t *)ids)[row];
}

void tdm_document_stats_add(tdm_document_stats *stats, const tdm_featurizer *featurizer,
                            const tdm_tokenizer *tokenizer, const tdm_extract *block)
{
    const uint8_t *marks = block->columns[tdm_columns_find(&featurizer->columns, "marks")];
    int64_t unknown = tokenizer->specials[TDM_SPECIAL_UNK];
    int64_t sentences = 0, tokens = 0;
    for (int64_t row = 0; row < block->rows; row++) {
        if ((marks[row] & TDM_MARK_DOCUMENT) != 0)
            sentences = tokens = 0;
        stats->documents += (marks[row] & TDM_MARK_DOCUMENT) != 0;
        stats->sentences += (marks[row] & TDM_MARK_SENTENCE) != 0;
        stats->unknown += id_at(featurizer, block, row) == unknown;
        sentences += (marks[row] & TDM_MARK_SENTENCE) != 0;
        tokens++;
        stats->longest = tokens > stats->longest ? tokens : stats->longest;
        bool ends = row + 1 == block->rows || (marks[row + 1] & TDM_MARK_DOCUMENT) != 0;
        stats->alone += ends && sentences == 1;
    }
    stats->tokens += block->rows;
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

tdm_status tdm_document_stats_text(const tdm_document_stats *stats, tdm_text *text)
{
    return tdm_text_printf(
        text,
        "%lld documents, %lld sentences, %lld tokens, %.3g%% of them [UNK]\n"
        "%.4g sentences and %.4g tokens a document, the longest has %lld; %.3g%% have one "
        "sentence\n",
        (long long)stats->documents, (long long)stats->sentences, (long long)stats->tokens,
        100 * share_of(stats->unknown, stats->tokens), share_of(stats->sentences, stats->documents),
        share_of(stats->tokens, stats->documents), (long long)stats->longest,
        100 * share_of(stats->alone, stats->documents));
}

json_t *tdm_document_stats_json(const tdm_document_stats *stats)
{
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:I}", "documents", (json_int_t)stats->documents,
                     "sentences", (json_int_t)stats->sentences, "tokens", (json_int_t)stats->tokens,
                     "unknown_share", share_of(stats->unknown, stats->tokens), "one_sentence_share",
                     share_of(stats->alone, stats->documents), "longest_document",
                     (json_int_t)stats->longest);
}

/* ---- sequences ------------------------------------------------------------------------------- */

static void count_tokens(tdm_sequence_stats *stats, const tdm_tokenizer *tokenizer,
                         const tdm_masked_batch *batch)
{
    const int64_t *specials = tokenizer->specials;
    for (int64_t r = 0; r < batch->rows; r++) {
        tdm_token_range row = tdm_masked_batch_row(batch, r);
        for (int64_t t = row.begin; t < row.end; t++) {
            stats->special += batch->ids[t] == specials[TDM_SPECIAL_CLS] ||
                              batch->ids[t] == specials[TDM_SPECIAL_SEP];
            stats->unknown += batch->ids[t] == specials[TDM_SPECIAL_UNK];
        }
        stats->pair_labels += batch->pair_labels != NULL && batch->pair_labels[r] == 1;
    }
}

static void count_predictions(tdm_sequence_stats *stats, const tdm_tokenizer *tokenizer,
                              const tdm_masked_batch *batch)
{
    const int64_t *specials = tokenizer->specials;
    for (int64_t i = 0; i < batch->mask_count; i++) {
        uint32_t id = batch->ids[batch->mask_positions[i]];
        uint32_t label = batch->mask_labels[i];
        stats->kinds[id == specials[TDM_SPECIAL_MASK] ? TDM_MASK_BY_MASK
                     : id == label                    ? TDM_MASK_KEPT
                                                      : TDM_MASK_BY_RANDOM]++;
        /* One that is masked was not seen among the tokens. */
        stats->unknown += label == specials[TDM_SPECIAL_UNK] && id != label;
    }
}

void tdm_sequence_stats_add(tdm_sequence_stats *stats, const tdm_tokenizer *tokenizer,
                            const tdm_batch *batch)
{
    tdm_masked_batch view = tdm_masked_batch_of(batch);
    stats->batches++;
    stats->sequences += view.rows;
    stats->tokens += view.tokens;
    stats->capacity += view.row_stride > 0 ? batch->layout->batch_size * view.row_stride
                                           : batch->layout->max_tokens;
    stats->longest = view.max_seqlen > stats->longest ? view.max_seqlen : stats->longest;
    count_tokens(stats, tokenizer, &view);
    count_predictions(stats, tokenizer, &view);
}

static int64_t predictions_of(const tdm_sequence_stats *stats)
{
    int64_t count = 0;
    for (int i = 0; i < TDM_MASK_KINDS; i++)
        count += stats->kinds[i];
    return count;
}

static tdm_status append_masks(const tdm_sequence_stats *stats, const tdm_text_options *options,
                               const tdm_text_counts *counts, tdm_text *text)
{
    int64_t predictions = predictions_of(stats);
    if (options->sequences == TDM_SEGMENT_PAIRS)
        TDM_TRY(tdm_text_printf(text, "pairs: %.1f%% have label 1; %.1f%% of the tokens cut off\n",
                                100 * share_of(stats->pair_labels, stats->sequences),
                                100 * share_of(counts->cut_tokens, counts->tokens)));
    TDM_TRY(tdm_text_printf(
        text, "%lld tokens to predict, %.2f%% of all: %.1f%% [MASK], %.1f%% random, %.1f%% kept\n",
        (long long)predictions, 100 * share_of(predictions, stats->tokens),
        100 * share_of(stats->kinds[TDM_MASK_BY_MASK], predictions),
        100 * share_of(stats->kinds[TDM_MASK_BY_RANDOM], predictions),
        100 * share_of(stats->kinds[TDM_MASK_KEPT], predictions)));
    if (counts->lost_predictions > 0)
        TDM_TRY(tdm_text_printf(text, "%lld more were masked and had no room in their batch\n",
                                (long long)counts->lost_predictions));
    return TDM_OK;
}

tdm_status tdm_sequence_stats_text(const tdm_sequence_stats *stats, const tdm_text_options *options,
                                   const tdm_text_counts *counts, bool labelled, tdm_text *text)
{
    int64_t words = stats->tokens - stats->special;
    TDM_TRY(tdm_text_printf(text, "%lld %s, %lld tokens, %.3g%% of them [UNK]\n",
                            (long long)counts->documents, labelled ? "records" : "documents",
                            (long long)counts->tokens, 100 * share_of(stats->unknown, words)));
    TDM_TRY(tdm_text_printf(
        text, "%lld sequences of %.4g tokens in the mean, the longest has %lld: %.1f%% of %lld\n",
        (long long)stats->sequences, share_of(stats->tokens, stats->sequences),
        (long long)stats->longest,
        100 * share_of(stats->tokens, stats->sequences * options->max_length),
        (long long)options->max_length));
    TDM_TRY(labelled ? tdm_text_printf(text, "%.3g%% of the tokens cut off\n",
                                       100 * share_of(counts->cut_tokens, counts->tokens))
                     : append_masks(stats, options, counts, text));
    return tdm_text_printf(text, "%lld batches, %.1f%% full\n", (long long)stats->batches,
                           100 * share_of(stats->tokens, stats->capacity));
}

static void set_masks(const tdm_sequence_stats *stats, const tdm_text_counts *counts, json_t *json)
{
    int64_t predictions = predictions_of(stats);
    json_t *masks =
        json_pack("{s:f, s:f, s:f, s:f, s:I}", "mask_share", share_of(predictions, stats->tokens),
                  "by_mask", share_of(stats->kinds[TDM_MASK_BY_MASK], predictions), "by_random",
                  share_of(stats->kinds[TDM_MASK_BY_RANDOM], predictions), "kept",
                  share_of(stats->kinds[TDM_MASK_KEPT], predictions), "lost_predictions",
                  (json_int_t)counts->lost_predictions);
    json_object_update_missing(json, masks);
    json_decref(masks);
}

json_t *tdm_sequence_stats_json(const tdm_sequence_stats *stats, const tdm_text_options *options,
                                const tdm_text_counts *counts, bool labelled)
{
    json_t *json = json_pack(
        "{s:I, s:I, s:f, s:I, s:I, s:I, s:f, s:I, s:f}", labelled ? "records" : "documents",
        (json_int_t)counts->documents, "tokens", (json_int_t)counts->tokens, "unknown_share",
        share_of(stats->unknown, stats->tokens - stats->special), "sequences",
        (json_int_t)stats->sequences, "sequence_tokens", (json_int_t)stats->tokens,
        "longest_sequence", (json_int_t)stats->longest, "sequence_fill",
        share_of(stats->tokens, stats->sequences * options->max_length), "batches",
        (json_int_t)stats->batches, "batch_fill", share_of(stats->tokens, stats->capacity));
    bool pairs = !labelled && options->sequences == TDM_SEGMENT_PAIRS;
    if (!labelled)
        set_masks(stats, counts, json);
    if (pairs)
        json_object_set_new(json, "pair_label_share",
                            json_real(share_of(stats->pair_labels, stats->sequences)));
    if (pairs || labelled)
        json_object_set_new(json, "cut_share",
                            json_real(share_of(counts->cut_tokens, counts->tokens)));
    return json;
}
