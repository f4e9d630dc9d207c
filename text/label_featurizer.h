/* The featurizer of labelled texts: records to tokens and labels, and those to batches. */
#ifndef TDM_TEXT_LABEL_FEATURIZER_H
#define TDM_TEXT_LABEL_FEATURIZER_H

#include "core/featurizer.h"
#include "core/pool.h"
#include "text/label_spec.h"
#include "text/text_counts.h"
#include "text/text_options.h"

/* Columns of a block; a row is a token:
 *   ids     u16 [1], u32 where the vocabulary has more than 65,536 ids
 *   marks   u8 [1]: TDM_MARK_DOCUMENT begins a record, TDM_MARK_SECOND its second text
 *   labels  u32 [1], of type tokens: the class of the word that begins there, TDM_NO_LABEL where
 * none does; for predictions its number within the record A record of another type begins with its
 * label, for training: rows in front of its tokens whose ids are 16 or 32 bits of it each, the low
 * ones first (label_block.h). The label is the class, a bit for each class, or the bits of a float.
 *
 * A record without a word is a bad one, as is one whose label is none; so that for predictions a
 * block's rows in a window that is not shuffled are its records in order, bad ones left out
 * (tdm_label_record_rows).
 *
 * Tensors of a batch, behind the common ones; a row is a record. S is batch_size, the most records,
 * T max_tokens, L text.max_length: ids         u32 [T]      [CLS] A [SEP], or [CLS] A [SEP] B
 * [SEP], cut to L as longest_first says types       u32 [T]      1 for the second text and its
 * [SEP] positions   u32 [T]      within the sequence cu_seqlens  i32 [S + 1]  where sequence i
 * begins; cu_seqlens[rows] is the count of tokens token_count i64 [1] max_seqlen  i64 [1]      the
 * longest sequence's tokens labels      for training: u32 [S] of classes, f32 [S, classes] of
 * multiple (0 or 1), f32 [S] of regression, u32 [T] of tokens: TDM_NO_LABEL for special tokens and
 * for pieces that continue a word words       for predictions, of type tokens: u32 [T], likewise,
 * the words' numbers within their records, from 0 Padded batches have [S, L] instead of [T], and
 * lengths i32 [S] in place of cu_seqlens.
 *
 * The sample of a row is the window's first block << 32 | the row of the window. */

/* `batch_tokens` is shared out over `lanes`; TDM_E_CONFIG where a lane's part holds no sequence.
 * The spec, whose classes are known, and the tokenizer are borrowed; `options` are looked at only
 * here. `format` is that of the records. */
TDM_MUST_CHECK tdm_status tdm_label_featurizer_create(const tdm_label_spec *spec,
                                                      const tdm_record_format *format,
                                                      const tdm_text_options *options,
                                                      const tdm_tokenizer *tokenizer,
                                                      tdm_pool *pool, int64_t batch_tokens,
                                                      int lanes, tdm_featurizer **out);

#endif
