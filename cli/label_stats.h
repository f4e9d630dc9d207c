/* What labelled records are like. */
#ifndef TDM_CLI_LABEL_STATS_H
#define TDM_CLI_LABEL_STATS_H

#include "core/json.h"
#include "text/label_block.h"

typedef struct tdm_label_stats {
    const tdm_label_spec *spec;
    const tdm_columns_layout *columns;
    int64_t head_rows;
    int64_t unknown_id;
    int64_t room; /* tokens that a sequence has room for, [CLS] and [SEP] apart */
    int64_t records;
    int64_t tokens;
    int64_t unknown;     /* [UNK] */
    int64_t longest;     /* tokens of a record */
    int64_t too_long;    /* records that will be cut */
    int64_t without;     /* records that have none of several classes */
    int64_t labels;      /* of words, or records, or classes of records */
    int64_t *counts;     /* [classes] */
    double sum, squares; /* of numbers */
    double least, most;
} tdm_label_stats;

/* The spec and the featurizer are borrowed. */
TDM_MUST_CHECK tdm_status tdm_label_stats_init(tdm_label_stats *stats, const tdm_label_spec *spec,
                                               const tdm_tokenizer *tokenizer,
                                               const tdm_featurizer *featurizer,
                                               int64_t max_length);
void tdm_label_stats_deinit(tdm_label_stats *stats);

void tdm_label_stats_add(tdm_label_stats *stats, const tdm_extract *block);

/* Appends a paragraph on the texts and a table of the labels. */
TDM_MUST_CHECK tdm_status tdm_label_stats_text(const tdm_label_stats *stats, tdm_text *text);

/* A new object. */
json_t *tdm_label_stats_json(const tdm_label_stats *stats);

#endif
