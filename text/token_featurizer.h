/* What the featurizers of text share: columns whose rows are tokens, windows of sequences, and the
 * tensors of batches that hold these. Not for other folders. */
#ifndef TDM_TEXT_TOKEN_FEATURIZER_H
#define TDM_TEXT_TOKEN_FEATURIZER_H

#include "core/pool.h"
#include "text/text_counts.h"
#include "text/text_options.h"
#include "text/token_loops.h"
#include "text/word_ids.h"

#include <stdatomic.h>

/* The columns that each of them begins with. */
enum {
    TDM_COLUMN_IDS = 0,   /* u16 [1], u32 where the vocabulary has more than 65,536 ids */
    TDM_COLUMN_MARKS = 1, /* u8 [1], of token_marks.h */
    TDM_COLUMN_COMMON = 2,
};

/* Where the tensors of tokens are in a batch; one of cu_seqlens and lengths is -1. */
typedef struct tdm_token_tensors {
    int ids, types, positions;
    int cu_seqlens, lengths;
    int token_count, max_seqlen;
} tdm_token_tensors;

/* Whether ids of its vocabulary need more than 16 bits. */
bool tdm_has_wide_ids(const tdm_tokenizer *tokenizer);

/* A thread's. */
typedef struct tdm_token_scratch {
    tdm_word_ids *words; /* made when the thread first sees a text */
    tdm_token_list list;
    tdm_sequence_scratch *sequences;
} tdm_token_scratch;

/* The first member of their structs. */
typedef struct tdm_token_featurizer {
    tdm_featurizer base;
    const tdm_tokenizer *tokenizer; /* borrowed */
    const tdm_token_loops *loops;
    tdm_sequence_options sequences;
    bool padded;
    bool wide_ids;
    uint32_t cls, sep, pad;
    tdm_token_tensors tensors;
    tdm_token_scratch *scratch; /* [threads] */
    int threads;
    int64_t batch_rows, batch_tokens; /* the most of a batch */
    _Atomic(int64_t) sequence_count, document_count, token_count, cut_count;
    _Atomic(int64_t) lost_count; /* predictions that had no room in their batch */
} tdm_token_featurizer;

/* Sets all but base.type, base.columns behind the common ones and base.batch; what is in `tokens`
 * has to be zero. TDM_E_CONFIG where a lane's part of `batch_tokens` holds no sequence. After a
 * failure too it is freed by deinit. */
TDM_MUST_CHECK tdm_status tdm_token_featurizer_init(tdm_token_featurizer *tokens,
                                                    const tdm_text_options *options,
                                                    const tdm_sequence_options *sequences,
                                                    const tdm_tokenizer *tokenizer, tdm_pool *pool,
                                                    int64_t batch_tokens, int lanes);
void tdm_token_featurizer_deinit(tdm_token_featurizer *tokens);

/* Begins base.batch: the common tensors, those of tokens and those that tell their lengths. */
void tdm_token_tensors_add(tdm_token_featurizer *tokens);

/* A tensor of `count` elements; one of u32 for each token of a batch: [tokens] or, padded,
 * [rows, max_length]. */
int tdm_add_vector(tdm_batch_layout *batch, const char *name, tdm_dtype dtype, int64_t count);
int tdm_add_token_tensor(tdm_token_featurizer *tokens, const char *name);

/* This thread's, with `words`. */
TDM_MUST_CHECK tdm_status tdm_token_scratch_get(const tdm_token_featurizer *tokens,
                                                tdm_token_scratch **out);

/* ---- extract --------------------------------------------------------------------------------- */

/* Tokens of documents are moved to the block's columns when there are so many. */
#define TDM_MOVED_TOKENS 4096

/* Moves the list's tokens to the common columns, behind out->rows + *rows, and empties it. */
TDM_MUST_CHECK tdm_status tdm_move_tokens(const tdm_token_featurizer *tokens, tdm_token_list *list,
                                          tdm_extract *out, int64_t *rows);

/* ---- windows and batches --------------------------------------------------------------------- */

/* Is open_window, and counts. */
TDM_MUST_CHECK tdm_status tdm_open_sequences(const tdm_featurizer *base, uint64_t seed,
                                             bool shuffle, tdm_window *window);

/* Where a row's tokens go. */
typedef struct tdm_token_place {
    uint32_t *ids, *types, *positions;
} tdm_token_place;

tdm_token_place tdm_token_place_at(const tdm_token_featurizer *tokens, const tdm_batch *batch,
                                   int64_t token);

/* Fetches what a row of the window is made of, where there is such a row: rows lie in random order
 * in the window's memory. */
void tdm_fetch_row(const tdm_token_featurizer *tokens, bool marks, const tdm_window *window,
                   int64_t row);

/* Writes what tells where row `row` of a batch lies, with weight 1, and returns where that is:
 * `token`, or its own place where batches are padded. */
int64_t tdm_write_row(const tdm_token_featurizer *tokens, const tdm_window *window,
                      int64_t window_row, const tdm_sequence *sequence, tdm_batch *batch,
                      int64_t row, int64_t token);

/* Writes the ids of a sequence, [CLS] and [SEP] included, and [PAD] behind them where batches are
 * padded. `marks`: theirs, 0 for special tokens; NULL: not wanted. */
void tdm_write_ids(const tdm_token_featurizer *tokens, const tdm_window *window,
                   const tdm_sequence *sequence, uint32_t *ids, uint8_t *marks);

/* Writes the types and positions of a sequence of `length` tokens whose second segment, for types,
 * begins at `second`, and of the padding behind it. */
void tdm_write_places(const tdm_token_featurizer *tokens, const tdm_token_place *place,
                      int64_t second, int64_t length);

/* Writes cu_seqlens of the rows that are not there, which are empty, and the counts; for finish. */
void tdm_close_sequences(const tdm_token_featurizer *tokens, const tdm_batch *batch);

/* Where a row of a closed batch begins, and its length. */
int64_t tdm_find_row(const tdm_token_featurizer *tokens, const tdm_batch *batch, int64_t row,
                     int64_t *length);

#endif
