/* Dynamic masking: which tokens of a sequence the model must guess, and what it sees in their
 * place.
 *
 * Drawn anew each epoch by counter-based random numbers: a sequence's masks are a pure function of
 * (seed, sample, epoch) and of its tokens, whatever batch, thread or neighbours it has.
 *
 * Never selected, by id: [CLS], [SEP], [PAD], [MASK], and [UNK] unless mask_unk. Words are told by
 * the marks that tokenizing made, never by "##". */
#ifndef TDM_TEXT_MASKING_H
#define TDM_TEXT_MASKING_H

#include "core/rng.h"
#include "text/token_marks.h"
#include "text/tokenizer.h"

/* What is selected as a whole. */
typedef enum tdm_mask_unit {
    TDM_MASK_TOKEN = 0,
    TDM_MASK_WHOLE_WORD = 1,
    TDM_MASK_SPAN =
        2, /* SpanBERT: 1 to 10 words, P(l) = p (1 - p)^(l - 1) / (1 - (1 - p)^10), p 0.2 */
} tdm_mask_unit;

typedef enum tdm_mask_count {
    /* As many tokens as fit in min(max_predictions, max(1, rate * length rounded half to even)),
     * [CLS] and [SEP] counted in length; a word that would exceed it is passed over. Without
     * at_least_one the inner maximum is left out. */
    TDM_MASK_EXACT = 0,
    /* Each unit by itself with probability `rate`; then at most max_predictions tokens of them. Not
     * for spans. */
    TDM_MASK_BERNOULLI = 1,
} tdm_mask_count;

/* What stands in the place of a selected token. */
typedef enum tdm_mask_kind {
    TDM_MASK_BY_MASK = 0,
    TDM_MASK_BY_RANDOM = 1, /* any token but special ones and [unusedN]; also the token itself */
    TDM_MASK_KEPT = 2,
} tdm_mask_kind;
#define TDM_MASK_KINDS 3

typedef struct tdm_masking_options {
    double rate; /* 0 .. 1 */
    int unit;    /* tdm_mask_unit */
    int count;   /* tdm_mask_count */
    /* Of tdm_mask_kind, in its order: 0 .. 1 each, 1 together. Drawn for each token, with spans for
     * each span. */
    double replace[TDM_MASK_KINDS];
    int64_t max_predictions; /* of a sequence; 0: no limit */
    bool mask_unk;
    bool at_least_one; /* of a sequence that has a token to select. Where every word is longer than
                          fits, the shortest is taken all the same. */
} tdm_masking_options;

#define TDM_MAX_SEQUENCE_LENGTH 32768

/* Never changes: any number of threads may use it. */
typedef struct tdm_masker tdm_masker;

/* For sequences of at most `max_length` tokens. The tokenizer may go afterwards. TDM_E_CONFIG where
 * it lacks [MASK], or has nothing to draw random tokens from. */
TDM_MUST_CHECK tdm_status tdm_masker_create(const tdm_masking_options *options,
                                            const tdm_tokenizer *tokenizer, int64_t max_length,
                                            tdm_masker **out);
/* NULL is allowed. */
void tdm_masker_destroy(tdm_masker *masker);

/* The most tokens that an exact count selects in a sequence of `length`, where words fit. */
int64_t tdm_masker_count(const tdm_masker *masker, int64_t length);

/* The most tokens that are selected in `sequences` sequences of `tokens` tokens together. Certain
 * with exact counts and short words; else up to eight standard deviations, and what would exceed it
 * must be left out. */
int64_t tdm_masker_most(const tdm_masker *masker, int64_t sequences, int64_t tokens);

/* What a thread needs beside the masker. */
typedef struct tdm_mask_scratch tdm_mask_scratch;
TDM_MUST_CHECK tdm_status tdm_mask_scratch_create(int64_t max_length, tdm_mask_scratch **out);
/* NULL is allowed. */
void tdm_mask_scratch_destroy(tdm_mask_scratch *scratch);

/* A token to guess. */
typedef struct tdm_prediction {
    uint32_t position; /* in the sequence */
    uint32_t label;    /* the id that stood there */
} tdm_prediction;

/* Masks ids[0, length), which become what the model sees, and writes what was selected to
 * `predictions`, which has room for `length`, by position. Returns how many. `marks` [length] are
 * not looked at where units are tokens. */
int64_t tdm_mask_sequence(const tdm_masker *masker, uint64_t seed, uint64_t sample, uint32_t epoch,
                          uint32_t *ids, const uint8_t *marks, int64_t length,
                          tdm_mask_scratch *scratch, tdm_prediction *predictions);

#endif
