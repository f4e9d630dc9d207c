/* Sequences: what the tokens of a window become in an epoch. A pure function of (seed, epoch, the
 * window's blocks); nothing reaches beyond the window or is carried over.
 *
 * A sequence is [CLS], then segments of consecutive tokens, a [SEP] behind each. */
#ifndef TDM_TEXT_SEQUENCES_H
#define TDM_TEXT_SEQUENCES_H

#include "core/featurizer.h"

typedef enum tdm_sequence_mode {
    /* RoBERTa's FULL-SENTENCES: documents in random order, sentence after sentence, as many as fit.
     * A sentence that fits into a sequence stays whole; a longer one is broken between words, where
     * the sequence is full. Every token is used exactly once. */
    TDM_FULL_SENTENCES = 0,
    /* BERT's pairs, A and B, as create_pretraining_data.py of google-research/bert samples them. A
     * sentence that is longer than a pair is taken for several. What is too long for a pair is cut
     * off at random ends; other sentences may come a second time, as a random B. */
    TDM_SEGMENT_PAIRS = 1,
    /* A document is a sequence; a longer one is several, broken between words. */
    TDM_ONE_PER_RECORD = 2,
    /* A record of one or two texts is a sequence, or a pair, as it stands; what is too long is cut
     * off by the rule of longest_first (text/truncation.h). Every row is a record, and without
     * shuffling they come in order. */
    TDM_RECORD_TEXTS = 3,
} tdm_sequence_mode;

/* What B is, half of the time each. The label follows the truth. */
typedef enum tdm_pair_task {
    /* BERT: 0 what follows A, 1 the beginning of a random sentence of another document of the
     * window. Where the window has one document only, always what follows. */
    TDM_NEXT_SENTENCE = 0,
    /* ALBERT: 0 what follows A, 1 the two swapped. */
    TDM_SENTENCE_ORDER = 1,
} tdm_pair_task;

typedef struct tdm_sequence_options {
    int mode;                 /* tdm_sequence_mode */
    int pairs;                /* tdm_pair_task, of pairs */
    bool cross_documents;     /* full sentences: a sequence may hold the end of one document and the
                             beginning of the next */
    double short_probability; /* of a sequence that ends at a random length from 2 tokens on; with
                                 pairs, of a document all of whose pairs do */
    int64_t max_length;       /* [CLS] and [SEP] included */
    int64_t head; /* record texts: rows that a document begins with which are no tokens */
} tdm_sequence_options;

#define TDM_MIN_SEQUENCE_LENGTH 8 /* smallest max_length */

/* Tokens [first, first + count) of a block of the window. */
typedef struct tdm_segment {
    uint32_t block, first, count;
} tdm_segment;

/* A row of a window. Where it is a pair, it has two segments and the second is B. */
typedef struct tdm_sequence {
    uint32_t tokens; /* [CLS] and [SEP] included */
    uint32_t segment_count;
    uint32_t pair_label;         /* 0 where it is no pair */
    const tdm_segment *segments; /* in the window's memory */
} tdm_sequence;

/* What a thread needs to build sequences. */
typedef struct tdm_sequence_scratch tdm_sequence_scratch;
TDM_MUST_CHECK tdm_status tdm_sequence_scratch_create(tdm_sequence_scratch **out);
/* NULL is allowed. */
void tdm_sequence_scratch_destroy(tdm_sequence_scratch *scratch);

/* What a window was made of. */
typedef struct tdm_sequence_counts {
    int64_t documents;
    int64_t tokens;     /* of documents */
    int64_t cut_tokens; /* of these, left out */
} tdm_sequence_counts;

/* Sets window->rows, order, details and token_ends from its blocks, whose marks are u8 in column
 * `marks` (see text/masking.h). `shuffle` false: documents and sequences keep their order. */
TDM_MUST_CHECK tdm_status tdm_sequences_build(const tdm_sequence_options *options, int marks,
                                              uint64_t seed, bool shuffle, tdm_window *window,
                                              tdm_sequence_scratch *scratch,
                                              tdm_sequence_counts *counts);

tdm_sequence tdm_sequence_get(const tdm_window *window, int64_t row);

#endif
