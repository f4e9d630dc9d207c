/* Prediction: a probability for each record, in the order of the input. */
#ifndef TDM_TRAINER_PREDICTOR_H
#define TDM_TRAINER_PREDICTOR_H

#include "data/bad_records.h"
#include "data/extract.h"
#include "trainer/run_model.h"

/* Probabilities of a block's rows, in a buffer that is kept and reused. */
typedef struct tdm_block_scores {
    float *probabilities; /* [rows of the block] */
    size_t capacity;
} tdm_block_scores;

/* Runs the model on all rows of the block. */
TDM_MUST_CHECK tdm_status tdm_score_block(tdm_scorer *scorer, tdm_extract *block,
                                          tdm_block_scores *scores);
void tdm_block_scores_deinit(tdm_block_scores *scores);

/* For each of the block's records, good and bad: rows[r] gets the row that record r became, -1 for
 * a bad one. `rows` has room for block->records. */
void tdm_block_record_rows(const tdm_extract *block, int64_t *rows);

typedef struct tdm_predict_options {
    const char *const *columns; /* whose cells are kept in the blocks' keys, as CSV */
    int column_count;
    bool eager;              /* answer what has been read of a stream without waiting for more */
    const atomic_bool *stop; /* NULL: never; true: TDM_E_CANCELLED */
    tdm_bad_record_log *bad_records; /* takes them in and judges nothing; NULL: only counted */

    /* A block's records and the probabilities of its rows; valid for the call. */
    tdm_status (*answer)(void *context, const tdm_extract *block, const float *probabilities);
    /* After each block; `share` of the stored bytes, NaN where that is not known. NULL: not called.
     */
    void (*progress)(void *context, int64_t rows, double share);
    void *context; /* of answer */
    void *progress_context;
} tdm_predict_options;

typedef struct tdm_prediction_counts {
    int64_t records; /* good and bad */
    int64_t bad_records;
} tdm_prediction_counts;

/* Predicts files (globs, "-") with a run that was opened for TDM_USE_PREDICTION. TDM_E_ARG for a
 * column that the records lack. */
TDM_MUST_CHECK tdm_status tdm_predict_run(tdm_run *run, const tdm_strings *files,
                                          const tdm_predict_options *options,
                                          tdm_prediction_counts *out);

#endif
