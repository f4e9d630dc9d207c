/* What `tandem predict` can be asked for, a file each. */
#ifndef TDM_CLI_PREDICT_H
#define TDM_CLI_PREDICT_H

#include "cli/options.h"

typedef struct tdm_predict_values {
    const char *with;
    const char *fill_mask;
    int64_t top;
    bool embed;
    const char *pooling;
    const char *precision;
    int64_t batch_tokens;
    int64_t max_length;
    const char *output;
    const char *checkpoint;
    int64_t threads;
    bool json;
    bool force;
} tdm_predict_values;

/* What --pooling says: a tdm_pooling; and --precision: a tdm_precision, or `fallback`. */
TDM_MUST_CHECK tdm_status tdm_predict_pooling(const tdm_predict_values *values, int *out);
TDM_MUST_CHECK tdm_status tdm_predict_precision(const tdm_predict_values *values, int fallback,
                                                int *out);

/* A line for each record, or with --embed a vector. */
TDM_MUST_CHECK tdm_status tdm_predict_records(const tdm_command *command);

/* Guesses for the masks of texts. */
TDM_MUST_CHECK tdm_status tdm_predict_masks(const tdm_command *command);

/* A vector for each line, or where the run has records for each of those. */
TDM_MUST_CHECK tdm_status tdm_predict_vectors(const tdm_command *command);

#endif
