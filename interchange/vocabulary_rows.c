#include "interchange/vocabulary_rows.h"

#include "core/memory.h"
#include "text/tokenizer.h"

#include <string.h>

/* Rows while they are listed. */
typedef struct listing {
    const tdm_tokenizer *theirs;
    tdm_encoder *encoder; /* of theirs */
    tdm_vocabulary_rows *rows;
    int64_t row_count;
} listing;

static tdm_status add_row(listing *to, int64_t row)
{
    tdm_vocabulary_rows *rows = to->rows;
    TDM_TRY(
        tdm_grow(&rows->rows, &rows->rows_capacity, (size_t)to->row_count + 1, sizeof *rows->rows));
    rows->rows[to->row_count++] = row;
    return TDM_OK;
}

/* The id of "##piece" where there is such a token, else `id`. */
static tdm_status continuation(const tdm_tokenizer *theirs, int64_t id, int64_t *out)
{
    size_t bytes;
    char *text;
    const char *piece = tdm_tokenizer_token(theirs, (uint32_t)id, &bytes);
    TDM_TRY(tdm_format(&text, TDM_CONTINUATION "%.*s", (int)bytes, piece));
    *out = tdm_tokenizer_find(theirs, text, bytes + TDM_CONTINUATION_BYTES);
    tdm_free(text);
    if (*out < 0)
        *out = id;
    return TDM_OK;
}

static tdm_status add_pieces(listing *to, const char *token, size_t bytes)
{
    bool is_continuation = bytes > TDM_CONTINUATION_BYTES &&
                           memcmp(token, TDM_CONTINUATION, TDM_CONTINUATION_BYTES) == 0;
    size_t skip = is_continuation ? TDM_CONTINUATION_BYTES : 0;
    const uint32_t *ids;
    int64_t count, before = to->row_count;
    TDM_TRY(tdm_encoder_ids(to->encoder, token + skip, bytes - skip, &ids, &count));
    for (int64_t i = 0; i < count; i++) {
        int64_t id = ids[i];
        if (id == to->theirs->specials[TDM_SPECIAL_UNK])
            continue;
        if (i == 0 && is_continuation)
            TDM_TRY(continuation(to->theirs, id, &id));
        TDM_TRY(add_row(to, id));
    }
    to->rows->new_tokens++;
    to->rows->without_pieces += to->row_count == before;
    return TDM_OK;
}

static tdm_status add_token(listing *to, const tdm_tokenizer *ours, int64_t id)
{
    size_t bytes, their_bytes;
    const char *token = tdm_tokenizer_token(ours, (uint32_t)id, &bytes);
    /* An id without token is nothing in both, or stands for all. */
    bool is_blank = token == NULL && id < tdm_tokenizer_size(to->theirs) &&
                    tdm_tokenizer_token(to->theirs, (uint32_t)id, &their_bytes) == NULL;
    int64_t row = is_blank ? id : -1;
    if (token != NULL)
        row = tdm_tokenizer_find(to->theirs, token, bytes);
    to->rows->are_same = to->rows->are_same && row == id;
    if (row >= 0)
        return add_row(to, row);
    return token != NULL ? add_pieces(to, token, bytes) : TDM_OK;
}

static int64_t count_left_out(const tdm_tokenizer *theirs, const tdm_tokenizer *ours)
{
    int64_t count = 0;
    for (int64_t id = 0; id < tdm_tokenizer_size(theirs); id++) {
        size_t bytes;
        const char *token = tdm_tokenizer_token(theirs, (uint32_t)id, &bytes);
        count += token != NULL && tdm_tokenizer_find(ours, token, bytes) < 0;
    }
    return count;
}

tdm_status tdm_vocabulary_rows_create(const tdm_tokenizer *theirs, const tdm_tokenizer *ours,
                                      tdm_vocabulary_rows *out)
{
    *out = (tdm_vocabulary_rows){.count = tdm_tokenizer_size(ours), .are_same = true};
    listing to = {.theirs = theirs, .rows = out};
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)out->count + 1, sizeof *out->starts, &out->starts), fail);
    TDM_TRY_GOTO(tdm_encoder_create(theirs, 1, &to.encoder), fail);
    for (int64_t id = 0; id < out->count; id++) {
        TDM_TRY_GOTO(add_token(&to, ours, id), fail);
        out->starts[id + 1] = to.row_count;
    }
    out->left_out = count_left_out(theirs, ours);
    tdm_encoder_destroy(to.encoder);
    return TDM_OK;
fail:
    tdm_encoder_destroy(to.encoder);
    tdm_vocabulary_rows_free(out);
    return status;
}

void tdm_vocabulary_rows_free(tdm_vocabulary_rows *rows)
{
    tdm_free(rows->starts);
    tdm_free(rows->rows);
    *rows = (tdm_vocabulary_rows){0};
}
