/* The encoder from the inside. */
#ifndef TDM_TEXT_ENCODER_H
#define TDM_TEXT_ENCODER_H

#include "core/pool.h"
#include "text/char_index.h"
#include "text/normalize.h"
#include "text/tokenizer.h"
#include "text/word_ids.h"

/* The tokens of texts, one after another, with where they stand. */
typedef struct tdm_text_tokens {
    size_t count;
    uint32_t *ids;
    int32_t *words;        /* from 0 in each text */
    tdm_text_range *bytes; /* in the text; not filled where offsets are not wanted */
    tdm_text_range *chars;
    size_t ids_capacity, words_capacity, bytes_capacity, chars_capacity;
} tdm_text_tokens;

/* What one thread works with at a time. Lane 0 is the caller's: what needs no other thread uses it
 * alone. Which thread works with which lane differs from call to call; a lane keeps nothing that
 * results depend on. */
typedef struct tdm_encoder_lane {
    const tdm_tokenizer *tokenizer;
    tdm_word_ids *words; /* NULL until it is first used, */
    tdm_token_list ids;  /* and what it found last */
    tdm_normalized normalized;
    tdm_char_index chars;
    uint32_t *pieces; /* of a word */
    size_t pieces_capacity;
    tdm_text_tokens tokens;
    tdm_error error;
    int64_t failed_input; /* that *error is of */
} tdm_encoder_lane;

/* Where the tokens of an input lie: in a lane's list, those of the pair behind those of the
 * text. */
typedef struct tdm_encoded_input {
    int lane;
    size_t begin;
    size_t text_count, pair_count;
} tdm_encoded_input;

struct tdm_encoder {
    const tdm_tokenizer *tokenizer;
    tdm_pool *pool;
    tdm_encoder_lane *lanes; /* [lane_count]: one a thread */
    int lane_count;
    tdm_encoded_input *inputs; /* of the call */
    size_t inputs_capacity;
    tdm_text_range *windows[2]; /* see tdm_truncation_windows() */
    size_t windows_capacity[2];
};

/* Puts the tokens of a text as it stands into the lane's `ids`, anew. */
TDM_MUST_CHECK tdm_status tdm_encoder_lane_ids(tdm_encoder_lane *lane, const char *text,
                                               size_t bytes);

/* Appends the tokens of a text, of less than 2^31 bytes, to the lane's list; of the options
 * `specials` and `offsets` count. */
TDM_MUST_CHECK tdm_status tdm_encode_text(tdm_encoder_lane *lane, const char *text, size_t bytes,
                                          const tdm_encode_options *options);

#endif
