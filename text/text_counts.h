/* What the featurizers of text count, and how they plan batches. */
#ifndef TDM_TEXT_TEXT_COUNTS_H
#define TDM_TEXT_TEXT_COUNTS_H

#include "core/featurizer.h"

/* What was made of text so far, all epochs together. */
typedef struct tdm_text_counts {
    int64_t sequences;
    int64_t documents;
    int64_t tokens;           /* of documents */
    int64_t cut_tokens;       /* of these, left out by pairs, or of a record that is too long */
    int64_t lost_predictions; /* tokens that were masked, and had no room among their batch's */
} tdm_text_counts;

/* Of windows that a featurizer of text or of labelled text has opened. */
tdm_text_counts tdm_text_featurizer_counts(const tdm_featurizer *featurizer);

/* Sequences of a batch have so many tokens in the mean, or a batch is not filled. */
#define TDM_MIN_MEAN_LENGTH 8

#endif
