/* The featurizer of text tasks: records to tokens, windows of tokens to sequences, and those to
 * masked batches. */
#ifndef TDM_TEXT_TEXT_FEATURIZER_H
#define TDM_TEXT_TEXT_FEATURIZER_H

#include "core/featurizer.h"
#include "core/pool.h"
#include "text/text_counts.h"
#include "text/text_options.h"

/* Columns of a block; a row is a token:
 *   ids    u16 [1], u32 where the vocabulary has more than 65,536 ids
 *   marks  u8 [1]: TDM_MARK_WORD, TDM_MARK_SENTENCE, TDM_MARK_DOCUMENT
 * A record is a document, in column 0, and its lines are its sentences; one without tokens is
 * dropped.
 *
 * Tensors of a batch, behind the common ones; a row is a sequence. S is batch_size, the most
 * sequences, T max_tokens, P the most predictions, and L text.max_length:
 *   ids             u32 [T]      what the model sees
 *   types           u32 [T]      1 for the second segment of a pair and its [SEP]
 *   positions       u32 [T]      within the sequence
 *   cu_seqlens      i32 [S + 1]  where sequence i begins; cu_seqlens[rows] is the count of tokens
 *   mask_positions  i32 [P]      the tokens to predict, of the batch, ascending
 *   mask_labels     u32 [P]      the ids that stood there
 *   pair_labels     u32 [S]      where text.sequences is segment_pairs
 *   token_count     i64 [1]
 *   mask_count      i64 [1]      predictions that are valid
 *   max_seqlen      i64 [1]      the longest sequence's tokens
 * Padded batches have [S, L] instead of [T], filled up with [PAD] of type 0, positions going on; in
 * place of cu_seqlens lengths i32 [S]; and predictions point into [S, L].
 *
 * The sample of a row is the window's first block << 32 | the row of the window; it is the counter
 * of its masks. */

/* `batch_tokens` is shared out over `lanes`; TDM_E_CONFIG where a lane's part holds no sequence.
 * The tokenizer is borrowed; `options` are looked at only here. */
TDM_MUST_CHECK tdm_status tdm_text_featurizer_create(const tdm_text_options *options,
                                                     const tdm_tokenizer *tokenizer, tdm_pool *pool,
                                                     int64_t batch_tokens, int lanes,
                                                     tdm_featurizer **out);

#endif
