/* Which rows of a checkpoint's word table a vocabulary's tokens begin with. */
#ifndef TDM_INTERCHANGE_VOCABULARY_ROWS_H
#define TDM_INTERCHANGE_VOCABULARY_ROWS_H

#include "tandem/text.h"

/* Row `id` of ours is the mean of rows rows[starts[id]] … rows[starts[id + 1] - 1] of theirs: of
 * one where the token is known there, of its pieces where it is new, and where there are none of
 * all rows. */
typedef struct tdm_vocabulary_rows {
    int64_t count;   /* of ours */
    int64_t *starts; /* [count + 1] */
    int64_t *rows;
    size_t rows_capacity;
    bool are_same;          /* each row is that of the same id */
    int64_t new_tokens;     /* that are means */
    int64_t without_pieces; /* of them: of all rows */
    int64_t left_out;       /* tokens of theirs that ours lacks */
} tdm_vocabulary_rows;

/* Compares vocabularies token by token. A new token is split as `theirs` splits the same text;
 * one that continues a word ("##x") as x, with its first piece as a continuation where there is
 * such a one. Pieces that are [UNK] do not count. */
TDM_MUST_CHECK tdm_status tdm_vocabulary_rows_create(const tdm_tokenizer *theirs,
                                                     const tdm_tokenizer *ours,
                                                     tdm_vocabulary_rows *out);
void tdm_vocabulary_rows_free(tdm_vocabulary_rows *rows);

#endif
