#include "cli/token_stats.h"

#include "cli/console.h"
#include "core/config.h"
#include "core/memory.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_UNKNOWN ((int64_t)1 << 20) /* different words that are counted one by one */
#define SHOWN        20
#define LONGEST      10

typedef struct long_word {
    char *text;
    size_t bytes;
    uint32_t chars;
    int64_t tokens;
    char *place; /* file:line */
} long_word;

struct tdm_token_stats {
    const tdm_tokenizer *tokenizer;
    int64_t lines, bytes, words, tokens, unknown;
    tdm_vocabulary unknown_words; /* as they stand in the text */
    int64_t *unknown_counts;      /* [size] */
    size_t unknown_capacity;
    long_word longest[LONGEST]; /* the longest one first */
    int longest_count;
};

/* A word of the text. */
typedef struct seen_word {
    const char *text;
    size_t bytes;
    uint32_t chars;
    int64_t tokens;
    bool is_unknown;
} seen_word;

tdm_status tdm_token_stats_create(const tdm_tokenizer *tokenizer, tdm_token_stats **out)
{
    TDM_TRY(tdm_alloc(1, sizeof **out, out));
    (*out)->tokenizer = tokenizer;
    return TDM_OK;
}

void tdm_token_stats_destroy(tdm_token_stats *stats)
{
    if (stats == NULL)
        return;
    for (int i = 0; i < stats->longest_count; i++) {
        tdm_free(stats->longest[i].text);
        tdm_free(stats->longest[i].place);
    }
    tdm_vocabulary_deinit(&stats->unknown_words);
    tdm_free(stats->unknown_counts);
    tdm_free(stats);
}

/* ---- taking in ------------------------------------------------------------------------------- */

static tdm_status add_unknown(tdm_token_stats *stats, const seen_word *word)
{
    tdm_vocabulary *words = &stats->unknown_words;
    int64_t id = tdm_vocabulary_find(words, word->text, word->bytes);
    stats->unknown++;
    if (word->bytes == 0)
        return TDM_OK;
    if (id < 0) {
        id = words->size;
        if (id >= MOST_UNKNOWN)
            return TDM_OK;
        TDM_TRY(tdm_grow(&stats->unknown_counts, &stats->unknown_capacity, (size_t)id + 1,
                         sizeof *stats->unknown_counts));
        TDM_TRY(tdm_vocabulary_add(words, (uint32_t)id, word->text, word->bytes, NULL));
        stats->unknown_counts[id] = 0;
    }
    stats->unknown_counts[id]++;
    return TDM_OK;
}

static bool is_listed(const tdm_token_stats *stats, const seen_word *word)
{
    for (int i = 0; i < stats->longest_count; i++) {
        const long_word *listed = &stats->longest[i];
        if (listed->bytes == word->bytes && memcmp(listed->text, word->text, word->bytes) == 0)
            return true;
    }
    return false;
}

static tdm_status add_longest(tdm_token_stats *stats, const seen_word *word, const char *name,
                              int64_t line)
{
    long_word made = {.bytes = word->bytes, .chars = word->chars, .tokens = word->tokens};
    if (stats->longest_count == LONGEST && word->chars <= stats->longest[LONGEST - 1].chars)
        return TDM_OK;
    if (is_listed(stats, word))
        return TDM_OK;
    TDM_TRY(tdm_strndup(word->text, word->bytes, &made.text));
    tdm_status status = tdm_format(&made.place, "%s:%lld", name, (long long)line);
    if (status != TDM_OK) {
        tdm_free(made.text);
        return status;
    }
    if (stats->longest_count == LONGEST) {
        stats->longest_count--;
        tdm_free(stats->longest[LONGEST - 1].text);
        tdm_free(stats->longest[LONGEST - 1].place);
    }
    int at = stats->longest_count++;
    for (; at > 0 && stats->longest[at - 1].chars < word->chars; at--)
        stats->longest[at] = stats->longest[at - 1];
    stats->longest[at] = made;
    return TDM_OK;
}

/* The word whose first token is `*at`, which becomes the one behind it. */
static seen_word next_word(const tdm_token_stats *stats, const tdm_text_input *input,
                           const tdm_encoding *encoding, int64_t *at)
{
    int64_t first = *at, last = first;
    while (last + 1 < encoding->count && encoding->words[last + 1] == encoding->words[first] &&
           encoding->sequences[last + 1] == encoding->sequences[first])
        last++;
    *at = last + 1;
    const char *text = encoding->sequences[first] == 0 ? input->text : input->pair;
    tdm_text_range from = encoding->byte_offsets[first], to = encoding->byte_offsets[last];
    return (seen_word){
        .text = text + from.begin,
        .bytes = to.end > from.begin ? to.end - from.begin : 0,
        .chars = encoding->char_offsets[last].end - encoding->char_offsets[first].begin,
        .tokens = *at - first,
        .is_unknown = encoding->ids[first] == stats->tokenizer->specials[TDM_SPECIAL_UNK]};
}

static tdm_status add_line(tdm_token_stats *stats, const tdm_line_batch *batch,
                           const tdm_text_input *input, const tdm_encoding *encoding)
{
    for (int64_t at = 0; at < encoding->count;) {
        if (encoding->sequences[at] < 0) {
            at++;
            continue;
        }
        seen_word word = next_word(stats, input, encoding, &at);
        stats->words++;
        stats->tokens += word.tokens;
        if (word.is_unknown)
            TDM_TRY(add_unknown(stats, &word));
        TDM_TRY(add_longest(stats, &word, batch->name, batch->first + encoding->input));
    }
    return TDM_OK;
}

tdm_status tdm_token_stats_add(tdm_token_stats *stats, const tdm_line_batch *batch,
                               const tdm_text_input *inputs, const tdm_encodings *encodings)
{
    stats->lines += batch->count;
    for (int64_t i = 0; i < batch->count; i++)
        stats->bytes += (int64_t)(inputs[i].bytes + inputs[i].pair_bytes);
    for (int64_t i = 0; i < tdm_encodings_count(encodings); i++) {
        tdm_encoding encoding = tdm_encodings_get(encodings, i);
        TDM_TRY(add_line(stats, batch, &inputs[encoding.input], &encoding));
    }
    return TDM_OK;
}

/* ---- the result ------------------------------------------------------------------------------ */

static int compare_counts(const void *left, const void *right, void *context)
{
    const tdm_token_stats *stats = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int64_t count_a = stats->unknown_counts[a], count_b = stats->unknown_counts[b];
    return count_a != count_b ? (count_a < count_b) - (count_a > count_b) : (a > b) - (a < b);
}

/* The unknown words, the most frequent ones first, as ids; freed with tdm_free(). */
static tdm_status sort_unknown(const tdm_token_stats *stats, uint32_t **order)
{
    size_t count = (size_t)stats->unknown_words.size;
    TDM_TRY(tdm_alloc(count + 1, sizeof **order, order));
    for (size_t i = 0; i < count; i++)
        (*order)[i] = (uint32_t)i;
    qsort_r(*order, count, sizeof **order, compare_counts, (void *)(uintptr_t)stats);
    return TDM_OK;
}

/* A word of any bytes, for people: U+FFFD stands for what is no UTF-8 and for control
 * characters. */
static tdm_status readable(const char *word, size_t bytes, char **out)
{
    TDM_TRY(tdm_alloc(3 * bytes + 1, 1, out));
    char *to = *out;
    for (size_t at = 0; at < bytes;) {
        uint32_t code_point;
        bool valid;
        at += (size_t)tdm_utf8_read(word, bytes, at, &code_point, &valid);
        bool is_control = code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
        to += tdm_utf8_write(is_control ? 0xfffd : code_point, to);
    }
    return TDM_OK;
}

static double ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static tdm_status unknown_json(const tdm_token_stats *stats, const uint32_t *order, json_t *list)
{
    const tdm_vocabulary *words = &stats->unknown_words;
    for (int64_t i = 0; i < words->size && i < SHOWN; i++) {
        char *word;
        TDM_TRY(readable(words->text + words->begins[order[i]], words->bytes[order[i]], &word));
        json_array_append_new(list, json_pack("{s:s, s:I}", "word", word, "count",
                                              (json_int_t)stats->unknown_counts[order[i]]));
        tdm_free(word);
    }
    return TDM_OK;
}

static tdm_status longest_json(const tdm_token_stats *stats, json_t *list)
{
    for (int i = 0; i < stats->longest_count; i++) {
        const long_word *listed = &stats->longest[i];
        char *word, *place;
        TDM_TRY(readable(listed->text, listed->bytes, &word));
        tdm_status status = readable(listed->place, strlen(listed->place), &place);
        if (status == TDM_OK)
            json_array_append_new(list, json_pack("{s:s, s:i, s:I, s:s}", "word", word,
                                                  "characters", (int)listed->chars, "tokens",
                                                  (json_int_t)listed->tokens, "place", place));
        tdm_free(word);
        tdm_free(place);
        TDM_TRY(status);
    }
    return TDM_OK;
}

static tdm_status print_json(const tdm_token_stats *stats, const uint32_t *order)
{
    json_t *unknown = json_array(), *longest = json_array();
    tdm_status status = unknown_json(stats, order, unknown);
    if (status == TDM_OK)
        status = longest_json(stats, longest);
    if (status != TDM_OK) {
        json_decref(unknown);
        json_decref(longest);
        return status;
    }
    return tdm_console_json(json_pack(
        "{s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:f, s:o, s:o}", "lines", (json_int_t)stats->lines,
        "bytes", (json_int_t)stats->bytes, "words", (json_int_t)stats->words, "tokens",
        (json_int_t)stats->tokens, "bytes_per_token", ratio(stats->bytes, stats->tokens),
        "tokens_per_word", ratio(stats->tokens, stats->words), "unknown",
        (json_int_t)stats->unknown, "unknown_rate", ratio(stats->unknown, stats->words),
        "unknown_words", unknown, "longest_words", longest));
}

static tdm_status print_unknown(const tdm_token_stats *stats, const uint32_t *order)
{
    const tdm_vocabulary *words = &stats->unknown_words;
    for (int64_t i = 0; i < words->size && i < SHOWN; i++) {
        char *word;
        TDM_TRY(readable(words->text + words->begins[order[i]], words->bytes[order[i]], &word));
        printf("%12lld  %s\n", (long long)stats->unknown_counts[order[i]], word);
        tdm_free(word);
    }
    if (words->size > SHOWN)
        printf("              and %lld%s other words\n", (long long)(words->size - SHOWN),
               words->size == MOST_UNKNOWN ? " or more" : "");
    return TDM_OK;
}

static tdm_status print_text(const tdm_token_stats *stats, const uint32_t *order)
{
    printf("lines        %lld, %lld bytes\n", (long long)stats->lines, (long long)stats->bytes);
    printf("tokens       %lld, %.4g bytes a token\n", (long long)stats->tokens,
           ratio(stats->bytes, stats->tokens));
    printf("words        %lld, %.4g tokens a word\n", (long long)stats->words,
           ratio(stats->tokens, stats->words));
    printf("[UNK]        %lld, %.3g %% of the words\n", (long long)stats->unknown,
           100 * ratio(stats->unknown, stats->words));
    TDM_TRY(print_unknown(stats, order));
    printf("longest words: characters, tokens, place\n");
    for (int i = 0; i < stats->longest_count; i++) {
        const long_word *listed = &stats->longest[i];
        char *word;
        TDM_TRY(readable(listed->text, listed->bytes, &word));
        printf("%12lu %6lld  %s  %s\n", (unsigned long)listed->chars, (long long)listed->tokens,
               listed->place, word);
        tdm_free(word);
    }
    return TDM_OK;
}

tdm_status tdm_token_stats_print(const tdm_token_stats *stats, bool json)
{
    uint32_t *order;
    TDM_TRY(sort_unknown(stats, &order));
    tdm_status status = json ? print_json(stats, order) : print_text(stats, order);
    tdm_free(order);
    return status;
}
