/* The records of a block of labelled text, as label_featurizer.h describes its columns. */
#ifndef TDM_TEXT_LABEL_BLOCK_H
#define TDM_TEXT_LABEL_BLOCK_H

#include "core/featurizer.h"
#include "text/label_spec.h"
#include "text/tokenizer.h"

/* Rows that a record's label takes in front of its tokens. */
int64_t tdm_label_head_rows(const tdm_label_spec *spec, const tdm_tokenizer *tokenizer);

/* Words of 32 bits that such a label has: none of predictions and of type tokens. */
int64_t tdm_label_head_words(const tdm_label_spec *spec);

/* Word `index` of the label that begins at row `head`. */
uint32_t tdm_label_word(const tdm_columns_layout *columns, const tdm_extract *block, int64_t head,
                        int64_t index);

/* Rows of a record. */
typedef struct tdm_label_record {
    int64_t head;   /* where its label begins */
    int64_t first;  /* where its text begins */
    int64_t second; /* where its second text begins; its end where there is none */
    int64_t end;
} tdm_label_record;

/* The record that begins at row `head`; false where that is the block's end. */
bool tdm_label_record_at(const tdm_extract *block, int64_t head, int64_t head_rows,
                         tdm_label_record *out);

/* Which record of the rows each of the block's records is, -1 for bad ones: rows[block->records].
 * Of a block all of whose records were extracted for predictions, with its bad records in it. */
void tdm_label_record_rows(const tdm_extract *block, int64_t *rows);

/* The column that a record's words stand in where labels are of tokens. */
int32_t tdm_label_text_column(const tdm_label_spec *spec);

/* Calls take() for the words of such a record in order, of a spec for predictions; `text` is the
 * cell of that column. */
void tdm_label_words(const tdm_label_spec *spec, const char *text, size_t bytes,
                     void (*take)(void *context, const char *word, size_t bytes), void *context);

#endif
