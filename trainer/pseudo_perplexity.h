/* The pseudo-perplexity of texts under an encoder of masked tokens (Salazar et al., 2020, arXiv
 * 1910.14659): each token of a sequence is masked alone and guessed by all the others. A sequence
 * of n tokens is run n times. */
#ifndef TDM_TRAINER_PSEUDO_PERPLEXITY_H
#define TDM_TRAINER_PSEUDO_PERPLEXITY_H

#include "trainer/encoder_run.h"
#include "trainer/evaluate.h"

typedef struct tdm_pseudo_perplexity {
    int64_t sequences;
    int64_t tokens;    /* that were masked: all but [CLS], [SEP] and padding */
    double loss;       /* mean of -ln p; NaN without tokens */
    double perplexity; /* e to that */
    double accuracy;   /* share of tokens that were the likeliest */
    int64_t records;   /* good and bad */
    int64_t bad_records;
    double seconds;
} tdm_pseudo_perplexity;

/* Reads files (globs, "-") as a run of task mlm reads its own; sequences are made of them as for
 * its training, in order. `run` has TDM_HEAD_MASKED and is a run's; its batch is used. Progress
 * tells tokens. TDM_E_CONFIG for any other run. */
TDM_MUST_CHECK tdm_status tdm_measure_pseudo_perplexity(tdm_encoder_run *run,
                                                        const tdm_strings *files,
                                                        const tdm_evaluate_options *options,
                                                        tdm_pseudo_perplexity *out);

#endif
