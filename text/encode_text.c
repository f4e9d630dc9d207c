#include "core/memory.h"
#include "text/added_tokens.h"
#include "text/encoder.h"

#include <string.h>

/* Longer texts are normalised in pieces of about so many bytes, which stay in the cache. */
#define CHUNK_BYTES ((size_t)32 << 10)

/* A text on its way. */
typedef struct encoding_text {
    tdm_encoder_lane *lane;
    const tdm_tokenizer *tokenizer;
    const tdm_encode_options *options;
    int32_t word; /* the next one's number */
} encoding_text;

/* ---- tokens ---------------------------------------------------------------------------------- */

static tdm_status reserve(tdm_text_tokens *list, size_t more, bool offsets)
{
    size_t needed = list->count + more;
    TDM_TRY(tdm_grow(&list->ids, &list->ids_capacity, needed, sizeof *list->ids));
    TDM_TRY(tdm_grow(&list->words, &list->words_capacity, needed, sizeof *list->words));
    if (!offsets)
        return TDM_OK;
    TDM_TRY(tdm_grow(&list->bytes, &list->bytes_capacity, needed, sizeof *list->bytes));
    return tdm_grow(&list->chars, &list->chars_capacity, needed, sizeof *list->chars);
}

/* Into reserved room. */
static void put_token(encoding_text *encode, uint32_t id, size_t begin, size_t end)
{
    tdm_text_tokens *list = &encode->lane->tokens;
    list->ids[list->count] = id;
    list->words[list->count] = encode->word;
    if (encode->options->offsets) {
        const tdm_char_index *chars = &encode->lane->chars;
        list->bytes[list->count] = (tdm_text_range){(uint32_t)begin, (uint32_t)end};
        list->chars[list->count] = (tdm_text_range){tdm_char_index_before(chars, begin),
                                                    tdm_char_index_before(chars, end)};
    }
    list->count++;
}

static tdm_status put_added(encoding_text *encode, uint32_t id, size_t begin, size_t end)
{
    TDM_TRY(reserve(&encode->lane->tokens, 1, encode->options->offsets));
    put_token(encode, id, begin, end);
    encode->word++;
    return TDM_OK;
}

/* The ids of a word in the lane's `pieces`; an unknown word is one piece. */
static tdm_status split_word(encoding_text *encode, const char *word, size_t bytes, size_t *count)
{
    tdm_encoder_lane *lane = encode->lane;
    const tdm_tokenizer *tokenizer = encode->tokenizer;
    TDM_TRY(tdm_grow(&lane->pieces, &lane->pieces_capacity, bytes, sizeof *lane->pieces));
    *count = (size_t)tdm_word_piece_split(tokenizer->word_piece, word, bytes, lane->pieces);
    if (*count == 0)
        lane->pieces[(*count)++] = (uint32_t)tokenizer->specials[TDM_SPECIAL_UNK];
    return reserve(&lane->tokens, *count, encode->options->offsets);
}

/* Bytes [begin, end) of the normalised text, which begins at byte `base` of the original. */
static tdm_status put_word(encoding_text *encode, size_t base, size_t begin, size_t end)
{
    const tdm_normalized *normalized = &encode->lane->normalized;
    const tdm_vocabulary *vocabulary = &encode->tokenizer->vocabulary;
    size_t count;
    TDM_TRY(split_word(encode, normalized->text + begin, end - begin, &count));
    for (size_t i = 0; i < count; i++) {
        uint32_t id = encode->lane->pieces[i];
        size_t stop = end;
        if (i + 1 < count)
            stop = begin + vocabulary->bytes[id] - (i > 0 ? TDM_CONTINUATION_BYTES : 0);
        put_token(encode, id, base + normalized->from[begin], base + normalized->to[stop - 1]);
        begin = stop;
    }
    encode->word++;
    return TDM_OK;
}

/* ---- normalised text ------------------------------------------------------------------------- */

/* The words, or what of them lies in [*next, ...] and before byte `end`, in normalised text; *next
 * is the first word that is not done, *at where it begins. */
static tdm_status put_words_before(encoding_text *encode, size_t base, size_t end, int64_t *next,
                                   size_t at)
{
    const tdm_normalized *normalized = &encode->lane->normalized;
    while (*next < normalized->word_count && normalized->words[*next].begin < end) {
        tdm_span word = normalized->words[*next];
        size_t begin = word.begin < at ? at : word.begin;
        size_t stop = word.end > end ? end : word.end;
        if (begin < stop)
            TDM_TRY(put_word(encode, base, begin, stop));
        if (word.end > end)
            break;
        (*next)++;
    }
    return TDM_OK;
}

/* The added tokens of normalised text, and the words between them, which they cut. */
static tdm_status put_normalized(encoding_text *encode, size_t base)
{
    const tdm_normalized *normalized = &encode->lane->normalized;
    tdm_added_search search = {.matcher = encode->tokenizer->normalized_matcher,
                               .text = normalized->text,
                               .bytes = normalized->bytes,
                               .specials = encode->options->specials};
    int64_t next = 0;
    size_t at = 0;
    bool found = search.matcher != NULL;
    while (found) {
        tdm_added_match match;
        TDM_TRY(tdm_added_search_next(&search, &match, &found));
        if (!found)
            break;
        TDM_TRY(put_words_before(encode, base, match.begin, &next, at));
        TDM_TRY(put_added(encode, match.token->id, base + normalized->from[match.begin],
                          base + normalized->to[match.end - 1]));
        at = match.end;
    }
    return put_words_before(encode, base, normalized->bytes, &next, at);
}

/* ---- the text -------------------------------------------------------------------------------- */

/* Where a piece of text[begin, end) may end: behind white space, some way on. */
static size_t chunk_end(const char *text, size_t begin, size_t end)
{
    if (end - begin <= CHUNK_BYTES)
        return end;
    size_t at = begin + CHUNK_BYTES;
    while (at < end && text[at] != ' ' && text[at] != '\n')
        at++;
    return at < end ? at + 1 : end;
}

/* Without offsets: the fast way. */
static tdm_status put_ids(encoding_text *encode, const char *text, size_t bytes)
{
    const tdm_token_list *found = &encode->lane->ids;
    TDM_TRY(tdm_encoder_lane_ids(encode->lane, text, bytes));
    TDM_TRY(reserve(&encode->lane->tokens, (size_t)found->count, false));
    encode->word--;
    for (int64_t i = 0; i < found->count; i++) {
        encode->word += (found->marks[i] & TDM_MARK_WORD) != 0;
        put_token(encode, found->ids[i], 0, 0);
    }
    encode->word++;
    return TDM_OK;
}

static tdm_status put_segment(encoding_text *encode, const char *text, size_t begin, size_t end)
{
    bool whole = encode->tokenizer->normalized_matcher != NULL;
    if (!encode->options->offsets && !whole)
        return put_ids(encode, text + begin, end - begin);
    while (begin < end) {
        size_t stop = whole ? end : chunk_end(text, begin, end);
        TDM_TRY(tdm_normalize(&encode->tokenizer->settings, text + begin, stop - begin,
                              &encode->lane->normalized));
        TDM_TRY(put_normalized(encode, begin));
        begin = stop;
    }
    return TDM_OK;
}

tdm_status tdm_encode_text(tdm_encoder_lane *lane, const char *text, size_t bytes,
                           const tdm_encode_options *options)
{
    encoding_text encode = {.lane = lane, .tokenizer = lane->tokenizer, .options = options};
    if (options->offsets)
        TDM_TRY(tdm_char_index_fill(&lane->chars, text, bytes));
    tdm_added_search search = {.matcher = lane->tokenizer->raw_matcher,
                               .text = text,
                               .bytes = bytes,
                               .specials = options->specials};
    size_t at = 0;
    bool found = search.matcher != NULL;
    while (found) {
        tdm_added_match match;
        TDM_TRY(tdm_added_search_next(&search, &match, &found));
        if (!found)
            break;
        TDM_TRY(put_segment(&encode, text, at, match.begin));
        TDM_TRY(put_added(&encode, match.token->id, match.begin, match.end));
        at = match.end;
    }
    return put_segment(&encode, text, at, bytes);
}
