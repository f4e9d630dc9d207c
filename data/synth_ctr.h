/* A click log with known answers: rows in the shape of Criteo's, drawn from a planted model whose
 * own AUC says how well a trained model can do at best. Integer arithmetic alone decides every
 * byte, so a seed gives the same log on any machine and any number of threads. */
#ifndef TDM_DATA_SYNTH_CTR_H
#define TDM_DATA_SYNTH_CTR_H

#include "core/pool.h"

typedef struct tdm_synth_ctr_options {
    int64_t rows;
    uint64_t seed; /* of the planted model and of the rows; folded to 32 bits as in core/rng.h */
    bool labels;   /* false: lines start at I1, as in Criteo's test.txt */
} tdm_synth_ctr_options;

#define TDM_SYNTH_CTR_DEFAULTS ((tdm_synth_ctr_options){.seed = 1, .labels = true})

/* The planted model on the rows that were made, with or without labels in the log. */
typedef struct tdm_synth_result {
    int64_t rows;
    int64_t positives;
    double auc; /* exact, ties counted half: one bin for each possible logit (2^20); NaN where the
                   rows are all of one class */
    double logloss; /* in nats; NaN where there are no rows */
} tdm_synth_result;

/* Takes the next `size` bytes of the log. They end on a line's end and are valid during the call.
 * An error ends the log: tdm_synth_ctr() returns it with its message. */
typedef tdm_status (*tdm_synth_write)(void *context, const char *bytes, size_t size);

/* `rows` have been written so far. */
typedef void (*tdm_synth_progress)(void *context, int64_t rows);

/* Makes options->rows lines `label\tI1..I13\tC1..C26\n`: decimal integers, strings of 8 hex digits,
 * a missing value empty. The first n lines do not depend on how many follow.
 *
 * The planted logit is a bias, an effect of each column's value, and products of latent vectors of
 * columns in the same group (a factorization machine: Rendle, ICDM 2010). Only values that are
 * frequent in any long log have effects, so that two million rows are enough to learn them. About
 * one row in four is positive.
 *
 * `write` and `progress` are called in order, one call at a time, from any of the pool's threads,
 * with `context`; `progress` may be NULL. Memory does not grow with the rows. TDM_E_ARG for
 * negative rows, TDM_E_NOMEM, or what `write` returned. */
TDM_MUST_CHECK tdm_status tdm_synth_ctr(tdm_pool *pool, const tdm_synth_ctr_options *options,
                                        tdm_synth_write write, tdm_synth_progress progress,
                                        void *context, tdm_synth_result *result);

#endif
