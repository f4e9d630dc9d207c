/* A merge visits only the words that its pair is in. While it does, it sums up by symbol what comes
 * before and behind the pair, so that each pair that changes is looked up once a merge, not once a
 * word. */
#include "text/vocab_merges.h"

#include "core/memory.h"
#include "text/merge_queue.h"

#include <string.h>

#define PROGRESS_MERGES 256

/* A word as symbols, which are ids of tokens. */
typedef struct symbol_word {
    int64_t count;
    uint32_t length;
    uint32_t symbols[];
} symbol_word;

/* Words lie one behind the other; a word is named by where it begins. */
#define WORD_UNIT sizeof(uint64_t)

/* A neighbour on one side of the pair that is being merged. */
typedef struct merge_neighbour {
    int64_t count;   /* occurrences, each as often as its word */
    uint64_t places; /* how many; then where the next one goes */
} merge_neighbour;

typedef struct neighbour_place {
    uint32_t symbol, word;
} neighbour_place;

typedef struct merge_side {
    merge_neighbour *neighbours; /* [size], by symbol */
    uint32_t *touched;           /* [size] */
    int64_t touched_count;
    neighbour_place *places;
    size_t place_count, place_capacity;
} merge_side;

typedef struct merge_state {
    const tdm_vocab_options *options;
    tdm_vocabulary *vocabulary;
    uint64_t *words; /* [word_units] */
    size_t word_units;
    tdm_pair_table pairs;
    tdm_merge_queue queue;
    int64_t min_count;
    uint32_t left, right, merged; /* the pair that is being merged, and what it becomes */
    merge_side before, behind;
    int64_t repeated; /* pairs that follow on one another: "abab" */
    uint32_t *repeated_places;
    size_t repeated_count, repeated_capacity;
    char *token;
    size_t token_capacity;
} merge_state;

/* ---- words ----------------------------------------------------------------------------------- */

static size_t word_units(size_t length)
{
    return (offsetof(symbol_word, symbols) + length * sizeof(uint32_t) + WORD_UNIT - 1) / WORD_UNIT;
}

static symbol_word *get_word(const merge_state *merge, size_t at)
{
    return (symbol_word *)(void *)(merge->words + at);
}

/* Writes the symbols of text[at, end) to `out`; false where a character has none. */
static bool spell(const tdm_alphabet *alphabet, const char *text, size_t at, size_t end,
                  symbol_word *out)
{
    out->length = 0;
    while (at < end) {
        const tdm_letter *letter = tdm_alphabet_find(alphabet, tdm_alphabet_read(text, end, &at));
        uint32_t symbol = out->length == 0 ? letter->bare : letter->continued;
        if (symbol == TDM_NO_TOKEN)
            return false;
        out->symbols[out->length++] = symbol;
    }
    return true;
}

static tdm_status spell_words(merge_state *merge, const tdm_word_list *words,
                              const tdm_alphabet *alphabet, tdm_vocab_report *report)
{
    size_t units = 0;
    for (int64_t i = 0; i < words->count; i++)
        units += word_units(words->begins[i + 1] - words->begins[i]);
    TDM_FAIL_IF(
        units > UINT32_MAX, TDM_E_NOMEM,
        "%lld distinct words are too many: let fewer memory be used, so that rare words are "
        "left out",
        (long long)words->count);
    TDM_TRY(tdm_alloc(units, WORD_UNIT, &merge->words));
    for (int64_t i = 0; i < words->count; i++) {
        symbol_word *out = get_word(merge, merge->word_units);
        if (!spell(alphabet, words->text, words->begins[i], words->begins[i + 1], out)) {
            report->unknown_words++;
            report->unknown_total += words->counts[i];
        } else if (out->length > 1) {
            out->count = words->counts[i];
            merge->word_units += word_units(out->length);
        }
    }
    return TDM_OK;
}

/* ---- the first pairs ------------------------------------------------------------------------- */

static tdm_status count_pairs(merge_state *merge, uint32_t **pairs, size_t *pair_count)
{
    size_t capacity = 0;
    for (size_t at = 0; at < merge->word_units;) {
        const symbol_word *w = get_word(merge, at);
        TDM_TRY(tdm_grow(pairs, &capacity, *pair_count + w->length, sizeof **pairs));
        for (uint32_t i = 0; i + 1 < w->length; i++) {
            uint32_t number;
            TDM_TRY(
                tdm_pair_table_intern(&merge->pairs, w->symbols[i], w->symbols[i + 1], &number));
            merge->pairs.pairs[number].count += w->count;
            merge->pairs.pairs[number].place_count++;
            (*pairs)[(*pair_count)++] = number;
        }
        at += word_units(w->length);
    }
    return TDM_OK;
}

/* `pairs` are the pairs of all words in order. */
static tdm_status place_pairs(merge_state *merge, const uint32_t *pairs, size_t pair_count)
{
    tdm_pair_table *table = &merge->pairs;
    TDM_TRY(tdm_grow(&table->places, &table->place_capacity, pair_count, sizeof *table->places));
    for (size_t i = 0; i < table->pair_count; i++) {
        table->pairs[i].first_place = table->place_count;
        table->place_count += table->pairs[i].place_count;
        table->pairs[i].place_count = 0;
    }
    for (size_t at = 0; at < merge->word_units;) {
        const symbol_word *w = get_word(merge, at);
        for (uint32_t i = 0; i + 1 < w->length; i++) {
            tdm_pair *pair = &table->pairs[*pairs++];
            table->places[pair->first_place + pair->place_count++] = (uint32_t)at;
        }
        at += word_units(w->length);
    }
    return TDM_OK;
}

static tdm_status push_pair(merge_state *merge, uint32_t pair)
{
    if (merge->pairs.pairs[pair].count < merge->min_count)
        return TDM_OK;
    return tdm_merge_queue_push(&merge->queue, pair);
}

static tdm_status find_pairs(merge_state *merge)
{
    uint32_t *pairs = NULL;
    size_t pair_count = 0;
    tdm_status status = count_pairs(merge, &pairs, &pair_count);
    if (status == TDM_OK)
        status = place_pairs(merge, pairs, pair_count);
    tdm_free(pairs);
    for (size_t i = 0; i < merge->pairs.pair_count && status == TDM_OK; i++)
        status = push_pair(merge, (uint32_t)i);
    return status;
}

/* ---- one merge ------------------------------------------------------------------------------- */

/* There is room for it. */
static void note_neighbour(merge_side *side, uint32_t symbol, uint32_t word, int64_t count)
{
    merge_neighbour *neighbour = &side->neighbours[symbol];
    if (neighbour->places++ == 0)
        side->touched[side->touched_count++] = symbol;
    neighbour->count += count;
    side->places[side->place_count++] = (neighbour_place){symbol, word};
}

static tdm_status reserve_places(merge_state *merge, size_t count)
{
    TDM_TRY(tdm_grow(&merge->before.places, &merge->before.place_capacity,
                     merge->before.place_count + count, sizeof *merge->before.places));
    TDM_TRY(tdm_grow(&merge->behind.places, &merge->behind.place_capacity,
                     merge->behind.place_count + count, sizeof *merge->behind.places));
    return tdm_grow(&merge->repeated_places, &merge->repeated_capacity,
                    merge->repeated_count + count, sizeof *merge->repeated_places);
}

/* Merges the pair wherever it is in a word, from left to right, and notes its neighbours. */
static tdm_status merge_word(merge_state *merge, uint32_t at)
{
    symbol_word *w = get_word(merge, at);
    uint32_t *symbols = w->symbols;
    uint32_t length = w->length, kept = 0, last = 0; /* last: the symbol before, as it was */
    bool after_pair = false;
    TDM_TRY(reserve_places(merge, length));
    for (uint32_t i = 0; i < length; i++) {
        uint32_t symbol = symbols[i];
        bool is_pair = symbol == merge->left && i + 1 < length && symbols[i + 1] == merge->right;
        if (is_pair && after_pair) {
            merge->repeated += w->count;
            merge->repeated_places[merge->repeated_count++] = at;
        } else if (is_pair && i > 0) {
            note_neighbour(&merge->before, last, at, w->count);
        } else if (after_pair) {
            note_neighbour(&merge->behind, symbol, at, w->count);
        }
        symbols[kept++] = is_pair ? merge->merged : symbol;
        i += is_pair;
        last = symbol;
        after_pair = is_pair;
    }
    w->length = kept;
    return TDM_OK;
}

/* A pair occurs so much more often, in `places` further words, which are to be written at
 * *first. */
static tdm_status add_to_pair(merge_state *merge, uint32_t left, uint32_t right, int64_t count,
                              uint64_t places, uint64_t *first)
{
    uint32_t number;
    TDM_TRY(tdm_pair_table_intern(&merge->pairs, left, right, &number));
    merge->pairs.pairs[number].count += count;
    TDM_TRY(tdm_pair_table_extend(&merge->pairs, number, (uint32_t)places, first));
    return push_pair(merge, number);
}

static void take_from_pair(merge_state *merge, uint32_t left, uint32_t right, int64_t count)
{
    uint32_t number = tdm_pair_table_find(&merge->pairs, left, right);
    merge->pairs.pairs[number].count -= count;
}

/* The pairs with what comes before, or behind, the merged one. */
static tdm_status settle_side(merge_state *merge, merge_side *side, bool before)
{
    for (int64_t i = 0; i < side->touched_count; i++) {
        uint32_t symbol = side->touched[i];
        merge_neighbour *neighbour = &side->neighbours[symbol];
        if (before) {
            take_from_pair(merge, symbol, merge->left, neighbour->count);
            TDM_TRY(add_to_pair(merge, symbol, merge->merged, neighbour->count, neighbour->places,
                                &neighbour->places));
        } else {
            take_from_pair(merge, merge->right, symbol, neighbour->count);
            TDM_TRY(add_to_pair(merge, merge->merged, symbol, neighbour->count, neighbour->places,
                                &neighbour->places));
        }
    }
    for (size_t i = 0; i < side->place_count; i++) {
        const neighbour_place *place = &side->places[i];
        merge->pairs.places[side->neighbours[place->symbol].places++] = place->word;
    }
    for (int64_t i = 0; i < side->touched_count; i++)
        side->neighbours[side->touched[i]] = (merge_neighbour){0};
    side->touched_count = 0;
    side->place_count = 0;
    return TDM_OK;
}

static tdm_status settle_repeated(merge_state *merge)
{
    if (merge->repeated_count == 0)
        return TDM_OK;
    uint64_t first;
    take_from_pair(merge, merge->right, merge->left, merge->repeated);
    TDM_TRY(add_to_pair(merge, merge->merged, merge->merged, merge->repeated, merge->repeated_count,
                        &first));
    memcpy(merge->pairs.places + first, merge->repeated_places,
           merge->repeated_count * sizeof *merge->repeated_places);
    merge->repeated = 0;
    merge->repeated_count = 0;
    return TDM_OK;
}

/* The token that a pair becomes: left, and right without its "##". */
static tdm_status join_tokens(merge_state *merge, uint32_t left, uint32_t right, uint32_t *id)
{
    const tdm_vocabulary *vocabulary = merge->vocabulary;
    size_t left_bytes = vocabulary->bytes[left];
    size_t right_bytes = vocabulary->bytes[right] - TDM_CONTINUATION_BYTES;
    TDM_TRY(tdm_grow(&merge->token, &merge->token_capacity, left_bytes + right_bytes, 1));
    memcpy(merge->token, vocabulary->text + vocabulary->begins[left], left_bytes);
    memcpy(merge->token + left_bytes,
           vocabulary->text + vocabulary->begins[right] + TDM_CONTINUATION_BYTES, right_bytes);
    return tdm_vocabulary_intern(merge->vocabulary, merge->token, left_bytes + right_bytes, id);
}

static tdm_status merge_pair(merge_state *merge, uint32_t number)
{
    const tdm_pair pair = merge->pairs.pairs[number];
    merge->left = pair.left;
    merge->right = pair.right;
    TDM_TRY(join_tokens(merge, pair.left, pair.right, &merge->merged));
    for (uint32_t i = 0; i < pair.place_count; i++)
        TDM_TRY(merge_word(merge, merge->pairs.places[pair.first_place + i]));
    TDM_TRY(settle_side(merge, &merge->before, true));
    TDM_TRY(settle_side(merge, &merge->behind, false));
    TDM_TRY(settle_repeated(merge));
    merge->pairs.pairs[number].count = 0;
    return TDM_OK;
}

/* ---- all merges ------------------------------------------------------------------------------ */

static tdm_status tell_progress(const merge_state *merge, int64_t merges)
{
    const tdm_vocab_options *options = merge->options;
    if (merges % PROGRESS_MERGES != 0)
        return TDM_OK;
    TDM_FAIL_IF(options->cancel != NULL && atomic_load(options->cancel), TDM_E_CANCELLED,
                "stopped; nothing was written");
    if (options->progress != NULL)
        options->progress(options->progress_context, merge->vocabulary->size);
    return TDM_OK;
}

static tdm_status merge_all(merge_state *merge, tdm_vocab_report *report)
{
    while (merge->vocabulary->size < merge->options->size && merge->queue.count > 0) {
        uint32_t number;
        int64_t count;
        tdm_merge_queue_pop(&merge->queue, &number, &count);
        int64_t count_now = merge->pairs.pairs[number].count;
        /* It became less frequent; where it became more frequent, it was pushed again. */
        if (count_now < count) {
            TDM_TRY(push_pair(merge, number));
            continue;
        }
        TDM_TRY(merge_pair(merge, number));
        report->merges++;
        report->last_count = count;
        TDM_TRY(tell_progress(merge, report->merges));
    }
    return TDM_OK;
}

static tdm_status open_side(merge_side *side, int64_t size)
{
    TDM_TRY(tdm_alloc((size_t)size, sizeof *side->neighbours, &side->neighbours));
    return tdm_alloc((size_t)size, sizeof *side->touched, &side->touched);
}

static void close_side(merge_side *side)
{
    tdm_free(side->neighbours);
    tdm_free(side->touched);
    tdm_free(side->places);
}

static void close_merger(merge_state *merge)
{
    close_side(&merge->before);
    close_side(&merge->behind);
    tdm_merge_queue_deinit(&merge->queue);
    tdm_pair_table_deinit(&merge->pairs);
    tdm_free(merge->repeated_places);
    tdm_free(merge->words);
    tdm_free(merge->token);
}

tdm_status tdm_vocab_merge(const tdm_word_list *words, const tdm_alphabet *alphabet,
                           const tdm_vocab_options *options, tdm_vocabulary *vocabulary,
                           tdm_vocab_report *report)
{
    merge_state merge = {
        .options = options,
        .vocabulary = vocabulary,
        .min_count = options->min_frequency > 1 ? options->min_frequency : 1,
    };
    tdm_merge_queue_init(&merge.queue, &merge.pairs, vocabulary);
    tdm_status status = spell_words(&merge, words, alphabet, report);
    if (status == TDM_OK)
        status = open_side(&merge.before, options->size);
    if (status == TDM_OK)
        status = open_side(&merge.behind, options->size);
    if (status == TDM_OK)
        status = find_pairs(&merge);
    if (status == TDM_OK)
        status = merge_all(&merge, report);
    close_merger(&merge);
    return status;
}
