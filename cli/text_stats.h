/* What the documents of a corpus, and the batches made of them, are like. */
#ifndef TDM_CLI_TEXT_STATS_H
#define TDM_CLI_TEXT_STATS_H

#include "core/config.h"
#include "core/json.h"
#include "text/text_featurizer.h"

/* Of extracted blocks. */
typedef struct tdm_document_stats {
    int64_t documents; /* with a token at least */
    int64_t sentences;
    int64_t tokens;
    int64_t unknown; /* [UNK] */
    int64_t alone;   /* documents of one sentence */
    int64_t longest; /* tokens of a document */
} tdm_document_stats;

void tdm_document_stats_add(tdm_document_stats *stats, const tdm_featurizer *featurizer,
                            const tdm_tokenizer *tokenizer, const tdm_extract *block);

/* Appends a paragraph. */
TDM_MUST_CHECK tdm_status tdm_document_stats_text(const tdm_document_stats *stats, tdm_text *text);

/* A new object. */
json_t *tdm_document_stats_json(const tdm_document_stats *stats);

/* Of batches. */
typedef struct tdm_sequence_stats {
    int64_t batches;
    int64_t sequences;
    int64_t tokens, capacity; /* of sequences; that batches had room for */
    int64_t special, unknown; /* [CLS] and [SEP]; [UNK] */
    int64_t longest;
    int64_t kinds[TDM_MASK_KINDS]; /* predictions by what stands there */
    int64_t pair_labels;           /* of 1 */
} tdm_sequence_stats;

void tdm_sequence_stats_add(tdm_sequence_stats *stats, const tdm_tokenizer *tokenizer,
                            const tdm_batch *batch);

/* `counts` are those of the featurizer that made the batches; `labelled` text has no masks. */
TDM_MUST_CHECK tdm_status tdm_sequence_stats_text(const tdm_sequence_stats *stats,
                                                  const tdm_text_options *options,
                                                  const tdm_text_counts *counts, bool labelled,
                                                  tdm_text *text);
json_t *tdm_sequence_stats_json(const tdm_sequence_stats *stats, const tdm_text_options *options,
                                const tdm_text_counts *counts, bool labelled);

#endif
