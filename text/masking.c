#include "text/masking.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

/* SpanBERT: Joshi et al., "SpanBERT: Improving pre-training by representing and predicting spans",
 * 2020, arXiv 1907.10529. */
#define SPAN_WORDS 10
#define SPAN_P     0.2

/* What of TDM_PURPOSE_MASK is drawn with which layer. */
enum {
    LAYER_CHOICE = 0,      /* elements in the order of the choices */
    LAYER_UNIT = 1,        /* element: the position where a unit begins */
    LAYER_REPLACEMENT = 2, /* element: position * 4, and 1 more for a random token */
};

struct tdm_masker {
    tdm_masking_options options;
    uint32_t never[TDM_SPECIALS]; /* ids that are not selected */
    uint32_t mask_id;
    uint32_t *random_ids;
    uint32_t random_count;
    uint64_t rate_below; /* a word below it: yes */
    uint64_t mask_below, random_below;
    uint64_t span_below[SPAN_WORDS]; /* a word below span_below[i]: a span of at most i + 1 words */
    uint16_t *counts;                /* [max_length + 1], exact */
};

/* Tokens that are selected together. */
typedef struct mask_unit {
    uint16_t begin, count;
    uint16_t span; /* the position where its span begins */
} mask_unit;

struct tdm_mask_scratch {
    mask_unit *units;  /* [max_length] */
    uint16_t *order;   /* [max_length] */
    uint16_t *span_of; /* [max_length]: 1 + where the span of a word begins, 0: not selected */
};

/* One sequence being masked. */
typedef struct masking {
    const tdm_masker *masker;
    uint64_t seed, sample;
    uint32_t epoch;
    tdm_random_stream choices;
    mask_unit *units;
    int64_t unit_count;
    int64_t most; /* tokens to select */
} masking;

/* ---- the masker ------------------------------------------------------------------------------ */

static uint64_t below(double probability)
{
    return (uint64_t)(probability * 0x1p32 + 0.5);
}

static void set_thresholds(tdm_masker *masker)
{
    const tdm_masking_options *options = &masker->options;
    masker->rate_below = below(options->rate);
    masker->mask_below = below(options->replace[TDM_MASK_BY_MASK]);
    masker->random_below =
        below(options->replace[TDM_MASK_BY_MASK] + options->replace[TDM_MASK_BY_RANDOM]);
    for (int i = 0; i < SPAN_WORDS; i++)
        masker->span_below[i] =
            below((1 - pow(1 - SPAN_P, i + 1)) / (1 - pow(1 - SPAN_P, SPAN_WORDS)));
}

static tdm_status set_counts(tdm_masker *masker, int64_t max_length)
{
    const tdm_masking_options *options = &masker->options;
    TDM_TRY(tdm_alloc((size_t)max_length + 1, sizeof *masker->counts, &masker->counts));
    for (int64_t length = 0; length <= max_length; length++) {
        /* The default rounding: half to even, as in Google's Python. */
        double count = nearbyint((double)length * options->rate);
        if (options->at_least_one && count < 1)
            count = 1;
        if (options->max_predictions > 0 && count > (double)options->max_predictions)
            count = (double)options->max_predictions;
        masker->counts[length] = (uint16_t)count;
    }
    return TDM_OK;
}

static tdm_status set_specials(tdm_masker *masker, const tdm_tokenizer *tokenizer)
{
    const int64_t *specials = tokenizer->specials;
    TDM_FAIL_IF(specials[TDM_SPECIAL_MASK] < 0, TDM_E_CONFIG,
                "the vocabulary has no [MASK]: take one that has, or train one with tandem vocab");
    masker->mask_id = (uint32_t)specials[TDM_SPECIAL_MASK];
    for (int i = 0; i < TDM_SPECIALS; i++) {
        bool never = specials[i] >= 0 && !(i == TDM_SPECIAL_UNK && masker->options.mask_unk);
        masker->never[i] = never ? (uint32_t)specials[i] : masker->mask_id;
    }
    return TDM_OK;
}

static bool is_unused(const char *token, size_t bytes)
{
    static const char begin[] = "[unused";
    size_t at = sizeof begin - 1;
    if (bytes < at + 2 || memcmp(token, begin, at) != 0 || token[bytes - 1] != ']')
        return false;
    while (token[at] >= '0' && token[at] <= '9')
        at++;
    return at == bytes - 1;
}

static bool is_ordinary(const tdm_tokenizer *tokenizer, uint32_t id)
{
    const tdm_vocabulary *vocabulary = &tokenizer->vocabulary;
    if (vocabulary->bytes[id] == 0)
        return false;
    for (int i = 0; i < TDM_SPECIALS; i++) {
        if (tokenizer->specials[i] == (int64_t)id)
            return false;
    }
    for (int64_t i = 0; i < tokenizer->added_count; i++) {
        if (tokenizer->added[i].id == id && tokenizer->added[i].special)
            return false;
    }
    return !is_unused(vocabulary->text + vocabulary->begins[id], vocabulary->bytes[id]);
}

static tdm_status set_random_ids(tdm_masker *masker, const tdm_tokenizer *tokenizer)
{
    int64_t size = tokenizer->vocabulary.size;
    TDM_TRY(tdm_alloc((size_t)size, sizeof *masker->random_ids, &masker->random_ids));
    for (int64_t id = 0; id < size; id++) {
        if (is_ordinary(tokenizer, (uint32_t)id))
            masker->random_ids[masker->random_count++] = (uint32_t)id;
    }
    TDM_FAIL_IF(
        masker->random_count == 0, TDM_E_CONFIG,
        "the vocabulary has special tokens only: there is nothing to draw a random one from");
    return TDM_OK;
}

tdm_status tdm_masker_create(const tdm_masking_options *options, const tdm_tokenizer *tokenizer,
                             int64_t max_length, tdm_masker **out)
{
    *out = NULL;
    TDM_FAIL_IF(max_length < 1 || max_length > TDM_MAX_SEQUENCE_LENGTH, TDM_E_ARG,
                "sequences of %lld tokens cannot be masked", (long long)max_length);
    tdm_masker *masker;
    TDM_TRY(tdm_alloc(1, sizeof *masker, &masker));
    masker->options = *options;
    set_thresholds(masker);
    tdm_status status = set_counts(masker, max_length);
    if (status == TDM_OK)
        status = set_specials(masker, tokenizer);
    if (status == TDM_OK)
        status = set_random_ids(masker, tokenizer);
    if (status == TDM_OK)
        *out = masker;
    else
        tdm_masker_destroy(masker);
    return status;
}

void tdm_masker_destroy(tdm_masker *masker)
{
    if (masker == NULL)
        return;
    tdm_free(masker->counts);
    tdm_free(masker->random_ids);
    tdm_free(masker);
}

int64_t tdm_masker_count(const tdm_masker *masker, int64_t length)
{
    return masker->counts[length];
}

int64_t tdm_masker_most(const tdm_masker *masker, int64_t sequences, int64_t tokens)
{
    const tdm_masking_options *options = &masker->options;
    double mean = options->rate * (double)tokens;
    double most = mean + (double)sequences; /* rounding, or at_least_one, adds at most 1 to each */
    if (options->count == TDM_MASK_BERNOULLI)
        most += 8 * sqrt(mean * (1 - options->rate));
    double limit = (double)options->max_predictions * (double)sequences;
    if (limit > 0 && most > limit)
        most = limit;
    return most < (double)tokens ? (int64_t)ceil(most) : tokens;
}

/* ---- scratch --------------------------------------------------------------------------------- */

tdm_status tdm_mask_scratch_create(int64_t max_length, tdm_mask_scratch **out)
{
    *out = NULL;
    tdm_mask_scratch *scratch;
    size_t length = (size_t)max_length;
    TDM_TRY(tdm_alloc(1, sizeof *scratch, &scratch));
    tdm_status status = tdm_alloc(length, sizeof *scratch->units, &scratch->units);
    if (status == TDM_OK)
        status = tdm_alloc(length, sizeof *scratch->order, &scratch->order);
    if (status == TDM_OK)
        status = tdm_alloc(length, sizeof *scratch->span_of, &scratch->span_of);
    if (status == TDM_OK)
        *out = scratch;
    else
        tdm_mask_scratch_destroy(scratch);
    return status;
}

void tdm_mask_scratch_destroy(tdm_mask_scratch *scratch)
{
    if (scratch == NULL)
        return;
    tdm_free(scratch->units);
    tdm_free(scratch->order);
    tdm_free(scratch->span_of);
    tdm_free(scratch);
}

/* ---- units ----------------------------------------------------------------------------------- */

static bool is_never(const tdm_masker *masker, uint32_t id)
{
    const uint32_t *never = masker->never;
    return (id == never[0]) | (id == never[1]) | (id == never[2]) | (id == never[3]) |
           (id == never[4]);
}

static int64_t find_tokens(const tdm_masker *masker, const uint32_t *ids, int64_t length,
                           mask_unit *units)
{
    int64_t count = 0;
    for (int64_t i = 0; i < length; i++) {
        units[count] = (mask_unit){.begin = (uint16_t)i, .count = 1};
        count += !is_never(masker, ids[i]);
    }
    return count;
}

/* What follows a token that is not selected begins a word: the rest of one that was cut off does. */
static int64_t find_words(const tdm_masker *masker, const uint32_t *ids, const uint8_t *marks,
                          int64_t length, mask_unit *units)
{
    int64_t count = 0;
    bool in_word = false;
    for (int64_t i = 0; i < length; i++) {
        if (is_never(masker, ids[i])) {
            in_word = false;
            continue;
        }
        if (!in_word || (marks[i] & TDM_MARK_WORD) != 0)
            units[count++] = (mask_unit){.begin = (uint16_t)i};
        units[count - 1].count++;
        in_word = true;
    }
    return count;
}

/* ---- selection ------------------------------------------------------------------------------- */

static tdm_philox_key key_of(const masking *run, int layer)
{
    return tdm_philox_make_key(run->seed, TDM_PURPOSE_MASK, (uint32_t)layer);
}

/* A random one of units[from, unit_count), moved to `from`. */
static const mask_unit *draw_unit(masking *run, int64_t from)
{
    mask_unit *units = run->units;
    uint32_t left = (uint32_t)(run->unit_count - from);
    int64_t at = from + tdm_random_below(tdm_random_next(&run->choices), left);
    mask_unit unit = units[at];
    units[at] = units[from];
    units[from] = unit;
    return &units[from];
}

static void swap_units(mask_unit *units, int64_t a, int64_t b)
{
    mask_unit unit = units[a];
    units[a] = units[b];
    units[b] = unit;
}

/* Moves random units of at most `most` tokens together to the front, and returns how many. */
static int64_t choose_units(masking *run)
{
    int64_t chosen = 0, tokens = 0;
    for (int64_t i = 0; i < run->unit_count && tokens < run->most; i++) {
        const mask_unit *unit = draw_unit(run, i);
        if (tokens + unit->count > run->most)
            continue;
        tokens += unit->count;
        swap_units(run->units, chosen++, i);
    }
    return chosen;
}

/* The shortest unit, the first of several, is chosen alone. */
static int64_t choose_shortest(masking *run)
{
    mask_unit *units = run->units;
    int64_t best = 0;
    for (int64_t i = 1; i < run->unit_count; i++) {
        if (units[i].count < units[best].count ||
            (units[i].count == units[best].count && units[i].begin < units[best].begin))
            best = i;
    }
    units[best].span = units[best].begin;
    swap_units(units, 0, best);
    return 1;
}

static int64_t choose_each(masking *run)
{
    const tdm_masker *masker = run->masker;
    mask_unit *units = run->units;
    tdm_philox_key key = key_of(run, LAYER_UNIT);
    tdm_philox_words words = {{0}};
    int64_t chosen = 0, tokens = 0, drawn = -1;
    for (int64_t i = 0; i < run->unit_count; i++) {
        uint32_t at = units[i].begin;
        if (at >> 2 != drawn) {
            drawn = at >> 2;
            words = tdm_random4(key, run->sample, run->epoch, at >> 2);
        }
        if (words.words[at & 3] >= masker->rate_below)
            continue;
        tokens += units[i].count;
        swap_units(units, chosen++, i);
    }
    bool at_least_one = masker->options.at_least_one && run->unit_count > 0;
    if (chosen == 0 && at_least_one) {
        draw_unit(run, 0);
        chosen = 1;
        tokens = units[0].count;
    }
    if (tokens <= run->most)
        return chosen;
    int64_t all = run->unit_count;
    run->unit_count = chosen;
    chosen = choose_units(run);
    run->unit_count = all;
    return chosen;
}

/* Takes words from `word` on for a span of `length` words, which ends before what is taken, where
 * the sequence has a gap, and where no more tokens fit. Returns the tokens that it took. */
static int64_t take_span(const masking *run, uint16_t *span_of, int64_t word, int length,
                         int64_t room)
{
    const mask_unit *units = run->units;
    int64_t tokens = 0;
    for (int64_t i = word; i < run->unit_count && i < word + length; i++) {
        bool apart = i > word && units[i].begin != units[i - 1].begin + units[i - 1].count;
        if (span_of[i] != 0 || apart || tokens + units[i].count > room)
            break;
        span_of[i] = (uint16_t)(units[word].begin + 1);
        tokens += units[i].count;
    }
    return tokens;
}

/* Spans begin at words in random order, those in earlier spans passed over. */
static int64_t choose_spans(masking *run, tdm_mask_scratch *scratch)
{
    uint16_t *order = scratch->order, *span_of = scratch->span_of;
    int64_t count = run->unit_count, tokens = 0, chosen = 0;
    for (int64_t i = 0; i < count; i++)
        order[i] = (uint16_t)i;
    memset(span_of, 0, (size_t)count * sizeof *span_of);
    for (int64_t i = 0; i < count && tokens < run->most; i++) {
        int64_t at = i + tdm_random_below(tdm_random_next(&run->choices), (uint32_t)(count - i));
        uint16_t word = order[at];
        order[at] = order[i];
        if (span_of[word] != 0)
            continue;
        uint32_t drawn = tdm_random_next(&run->choices);
        int length = 1;
        while (length < SPAN_WORDS && drawn >= run->masker->span_below[length - 1])
            length++;
        tokens += take_span(run, span_of, word, length, run->most - tokens);
    }
    for (int64_t i = 0; i < count; i++) {
        if (span_of[i] == 0)
            continue;
        run->units[i].span = (uint16_t)(span_of[i] - 1);
        swap_units(run->units, chosen++, i);
    }
    return chosen;
}

/* ---- replacement ----------------------------------------------------------------------------- */

static uint32_t replacement(const tdm_masker *masker, uint32_t kind, uint32_t random, uint32_t id)
{
    if (kind < masker->mask_below)
        return masker->mask_id;
    return kind < masker->random_below
               ? masker->random_ids[tdm_random_below(random, masker->random_count)]
               : id;
}

static int64_t replace_units(const masking *run, int64_t chosen, uint32_t *ids,
                             tdm_prediction *predictions)
{
    const tdm_masker *masker = run->masker;
    bool spans = masker->options.unit == TDM_MASK_SPAN;
    tdm_philox_key key = key_of(run, LAYER_REPLACEMENT);
    int64_t count = 0;
    for (int64_t u = 0; u < chosen; u++) {
        const mask_unit *unit = &run->units[u];
        for (uint32_t at = unit->begin; at < (uint32_t)unit->begin + unit->count; at++) {
            tdm_philox_words words = tdm_random4(key, run->sample, run->epoch, at);
            uint32_t kind = words.words[0];
            if (spans && unit->span != at)
                kind = tdm_random4(key, run->sample, run->epoch, unit->span).words[0];
            predictions[count++] = (tdm_prediction){.position = at, .label = ids[at]};
            ids[at] = replacement(masker, kind, words.words[1], ids[at]);
        }
    }
    return count;
}

int64_t tdm_mask_sequence(const tdm_masker *masker, uint64_t seed, uint64_t sample, uint32_t epoch,
                          uint32_t *ids, const uint8_t *marks, int64_t length,
                          tdm_mask_scratch *scratch, tdm_prediction *predictions)
{
    const tdm_masking_options *options = &masker->options;
    masking run = {.masker = masker,
                   .seed = seed,
                   .sample = sample,
                   .epoch = epoch,
                   .units = scratch->units,
                   .most = masker->counts[length]};
    run.choices =
        (tdm_random_stream){.key = key_of(&run, LAYER_CHOICE), .sample = sample, .epoch = epoch};
    run.unit_count = options->unit == TDM_MASK_TOKEN
                         ? find_tokens(masker, ids, length, run.units)
                         : find_words(masker, ids, marks, length, run.units);
    int64_t chosen;
    if (options->count == TDM_MASK_BERNOULLI) {
        run.most = options->max_predictions > 0 ? options->max_predictions : length;
        chosen = choose_each(&run);
    } else if (options->unit == TDM_MASK_SPAN) {
        chosen = choose_spans(&run, scratch);
    } else {
        chosen = choose_units(&run);
    }
    if (chosen == 0 && options->at_least_one && run.unit_count > 0)
        chosen = choose_shortest(&run);
    return replace_units(&run, chosen, ids, predictions);
}
