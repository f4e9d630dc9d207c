/* The metrics of masked pretraining, over a training window (progressive: each sequence is guessed
 * before it is trained on) or over an evaluation, whose masks are always the same:
 *
 *   loss             the sum of the two below that there are, in nats: what training lowers
 *   masked_loss, masked_accuracy    of the tokens that were masked, or stand for being guessed
 *   pair_loss, pair_accuracy        of the pairs of texts; only where there are any
 *   perplexity       e to the masked_loss: of tokens, given the others that were not masked. That
 * is not the pseudo-perplexity of a text, whose tokens are masked one by one tokens, predictions
 * how many there were, special tokens included unknown_share    of the tokens, which the vocabulary
 * lacks fill             tokens as a share of those that the batches had room for
 *
 * An accumulator belongs to one thread at a time; it is used through metrics.h but for adding. */
#ifndef TDM_TRAINER_TEXT_METRICS_H
#define TDM_TRAINER_TEXT_METRICS_H

#include "core/ops.h"

/* What a step tells: a batch, and what came of it. */
typedef struct tdm_text_counts_step {
    int64_t rows;                        /* sequences */
    int64_t tokens;                      /* of them, without padding */
    int64_t unknown;                     /* of these, [UNK] */
    int64_t capacity;                    /* tokens that the batch has room for */
    tdm_loss_scalars losses[TDM_LOSSES]; /* 0: of masked tokens; 1: of pairs. A weight is a
                                            prediction */
} tdm_text_counts_step;

/* Sums over steps. */
typedef struct tdm_text_metrics {
    int64_t rows;
    int64_t tokens, unknown, capacity;
    tdm_loss_scalars losses[TDM_LOSSES];
} tdm_text_metrics;

/* A loss that is NaN makes all that it enters NaN. */
void tdm_text_metrics_add(tdm_text_metrics *metrics, const tdm_text_counts_step *step);

#endif
