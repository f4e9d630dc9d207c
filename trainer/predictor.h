/* Prediction: what a run's model says of records, in the order of the input. */
#ifndef TDM_TRAINER_PREDICTOR_H
#define TDM_TRAINER_PREDICTOR_H

#include "data/bad_records.h"
#include "data/extract.h"
#include "trainer/embedder.h"
#include "trainer/run_model.h"

/* The answers to a block's good records, in order, in buffers that are kept and reused. An answer
 * is ctr                            the probability of a click classify, classes, multiple    the
 * probability of each class classify, regression           the number classify, tokens of each word
 * that has a class the probability of each class; words that were cut off, and those without a
 * token, have none TDM_USE_VECTORS                the vector */
typedef struct tdm_block_answers {
    int64_t records;    /* good ones */
    int64_t columns;    /* numbers of an answer, of tokens of a word's */
    float *numbers;     /* [records, columns], of tokens [words, columns] */
    int64_t *word_ends; /* of tokens [records]: words of the records before, and its own */
    uint32_t *words;    /* [words]: which word of its record it is, from 0 */
    size_t numbers_capacity, word_ends_capacity, words_capacity;
    tdm_pooling pooling; /* of vectors */
} tdm_block_answers;

/* Runs the model of a run that was opened for TDM_USE_PREDICTION or TDM_USE_VECTORS on all records
 * of the block. */
TDM_MUST_CHECK tdm_status tdm_answer_block(tdm_run *run, tdm_extract *block,
                                           tdm_block_answers *answers);
void tdm_block_answers_deinit(tdm_block_answers *answers);

/* For each of the block's records, good and bad: rows[r] gets which of the good ones it is, -1 for
 * a bad one. `rows` has room for block->records. */
void tdm_block_record_rows(const tdm_task *task, const tdm_extract *block, int64_t *rows);

typedef struct tdm_predict_options {
    const char *const *columns; /* whose cells are kept in the blocks' keys, as CSV; of tokens none,
                                   for there the keys are the texts */
    int column_count;
    tdm_pooling pooling;     /* of vectors */
    bool eager;              /* answer what has been read of a stream without waiting for more */
    const atomic_bool *stop; /* NULL: never; true: TDM_E_CANCELLED */
    tdm_bad_record_log *bad_records; /* takes them in and judges nothing; NULL: only counted */

    /* A block's records and the answers to them; valid for the call. */
    tdm_status (*answer)(void *context, const tdm_extract *block, const tdm_block_answers *answers);
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

/* Predicts files (globs, "-") with such a run. TDM_E_ARG for a column that the records lack, and
 * for columns where labels are of tokens. */
TDM_MUST_CHECK tdm_status tdm_predict_run(tdm_run *run, const tdm_strings *files,
                                          const tdm_predict_options *options,
                                          tdm_prediction_counts *out);

#endif
