#include "text/masking.h"

#include "core/memory.h"
#include "text/mask_selection.h"
#include "text/token_loops.h"

#include <math.h>
#include <string.h>

/* SpanBERT: Joshi et al., "SpanBERT: Improving pre-training by representing and predicting spans",
 * 2020, arXiv 1907.10529. */
#define SPAN_P 0.2

struct tdm_masker {
    tdm_masking_options options;
    const tdm_token_loops *loops;
    uint32_t never[TDM_SPECIALS]; /* ids that are not selected */
    uint32_t mask_id;
    uint32_t *random_ids;
    uint32_t random_count;
    uint64_t rate_below; /* a word below it: yes */
    uint64_t mask_below, random_below;
    uint64_t random_step; /* from a word between these to an index in random_ids, in 2^-32 */
    /* A word below span_below[i]: a span of at most i + 1 words. */
    uint64_t span_below[TDM_MASK_SPAN_WORDS];
    uint16_t *counts; /* [max_length + 1], exact */
};

struct tdm_mask_scratch {
    uint8_t *never;    /* [1 + max_length] */
    uint8_t *states;   /* [max_length + 1] */
    uint64_t *bits;    /* [max_length / 64 + 1] */
    uint16_t *begins;  /* [max_length + 1] */
    uint16_t *kind_at; /* [max_length] */
    uint32_t *words;   /* [max_length + TDM_MASK_FILL]: of positions */
    uint32_t *others;  /* likewise, of spans */
};

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
    for (int i = 0; i < TDM_MASK_SPAN_WORDS; i++)
        masker->span_below[i] =
            below((1 - pow(1 - SPAN_P, i + 1)) / (1 - pow(1 - SPAN_P, TDM_MASK_SPAN_WORDS)));
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
    uint64_t range = masker->random_below - masker->mask_below;
    masker->random_step = range == 0 ? 0 : ((uint64_t)masker->random_count << 32) / range;
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
    masker->loops = tdm_token_loops_choose(true);
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
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc(length + 1, sizeof *scratch->never, &scratch->never), fail);
    TDM_TRY_GOTO(tdm_alloc(length + 1, sizeof *scratch->states, &scratch->states), fail);
    TDM_TRY_GOTO(tdm_alloc(length / 64 + 1, sizeof *scratch->bits, &scratch->bits), fail);
    TDM_TRY_GOTO(tdm_alloc(length + 1, sizeof *scratch->begins, &scratch->begins), fail);
    TDM_TRY_GOTO(tdm_alloc(length, sizeof *scratch->kind_at, &scratch->kind_at), fail);
    TDM_TRY_GOTO(tdm_alloc(length + TDM_MASK_FILL, sizeof *scratch->words, &scratch->words), fail);
    TDM_TRY_GOTO(tdm_alloc(length + TDM_MASK_FILL, sizeof *scratch->others, &scratch->others),
                 fail);
    *out = scratch;
    return TDM_OK;
fail:
    tdm_mask_scratch_destroy(scratch);
    return status;
}

void tdm_mask_scratch_destroy(tdm_mask_scratch *scratch)
{
    if (scratch == NULL)
        return;
    tdm_free(scratch->never);
    tdm_free(scratch->states);
    tdm_free(scratch->bits);
    tdm_free(scratch->begins);
    tdm_free(scratch->kind_at);
    tdm_free(scratch->words);
    tdm_free(scratch->others);
    tdm_free(scratch);
}

/* ---- units ----------------------------------------------------------------------------------- */

/* Says of each token whether a unit begins there. What follows a token that is never selected
 * begins a word: the rest of one that was cut off does. */
static void find_units(const tdm_masker *masker, const uint32_t *ids, const uint8_t *marks,
                       tdm_mask_scratch *scratch, tdm_mask_selection *selection)
{
    uint8_t *never = scratch->never + 1;
    never[-1] = 1;
    masker->loops->find(ids, selection->length, masker->never, never);
    if (masker->options.unit == TDM_MASK_TOKEN)
        marks = NULL;
    selection->units = masker->loops->units(never, marks, selection->length, selection->states);
    selection->states[selection->length] = TDM_UNIT_NONE;
}

/* ---- replacement ----------------------------------------------------------------------------- */

/* What a token becomes. The random one is looked up for all: which kind it is, no branch can know
 * before. */
static uint32_t replacement(const tdm_masker *masker, uint32_t kind, uint32_t index, uint32_t id)
{
    uint32_t other = masker->random_ids[index];
    id = kind < masker->random_below ? other : id;
    return kind < masker->mask_below ? masker->mask_id : id;
}

/* One word tells the kind and, by where it lies in the range of that kind, the random token. */
static uint32_t replace_token(const tdm_masker *masker, const tdm_mask_scratch *scratch, int64_t at,
                              uint32_t id)
{
    uint32_t word = scratch->words[at];
    bool is_random = word >= masker->mask_below && word < masker->random_below;
    uint64_t offset = is_random ? word - masker->mask_below : 0;
    return replacement(masker, word, (uint32_t)((offset * masker->random_step) >> 32), id);
}

static uint32_t replace_in_span(const tdm_masker *masker, const tdm_mask_scratch *scratch,
                                int64_t at, uint32_t id)
{
    uint32_t kind = scratch->words[scratch->kind_at[at]];
    uint32_t index = tdm_random_below(scratch->others[at], masker->random_count);
    return replacement(masker, kind, index, id);
}

static void replace_tokens(const tdm_masker *masker, const tdm_mask_selection *selection,
                           const tdm_mask_scratch *scratch, uint32_t *ids,
                           tdm_prediction *predictions)
{
    bool spans = masker->options.unit == TDM_MASK_SPAN;
    int64_t count = 0;
    for (int64_t word = 0; word <= selection->length / 64; word++) {
        for (uint64_t bits = selection->bits[word]; bits != 0; bits &= bits - 1) {
            int64_t at = 64 * word + __builtin_ctzll(bits);
            uint32_t id = ids[at];
            predictions[count++] = (tdm_prediction){.position = (uint32_t)at, .label = id};
            ids[at] = spans ? replace_in_span(masker, scratch, at, id)
                            : replace_token(masker, scratch, at, id);
        }
    }
}

static void select_tokens(const tdm_masker *masker, tdm_mask_scratch *scratch,
                          tdm_mask_selection *selection)
{
    const tdm_masking_options *options = &masker->options;
    if (options->count == TDM_MASK_BERNOULLI) {
        selection->most =
            options->max_predictions > 0 ? options->max_predictions : selection->length;
        tdm_mask_words(selection, TDM_LAYER_UNIT, scratch->words);
        tdm_select_each(selection, scratch->words, masker->rate_below, options->at_least_one);
    } else if (options->unit == TDM_MASK_SPAN) {
        tdm_select_spans(selection, masker->span_below);
    } else {
        tdm_select_exactly(selection);
    }
    if (selection->count == 0 && options->at_least_one)
        tdm_select_shortest(selection);
}

int64_t tdm_mask_sequence(const tdm_masker *masker, uint64_t seed, uint64_t sample, uint32_t epoch,
                          uint32_t *ids, const uint8_t *marks, int64_t length,
                          tdm_mask_scratch *scratch, tdm_prediction *predictions)
{
    tdm_mask_selection selection;
    selection.seed = seed;
    selection.sample = sample;
    selection.epoch = epoch;
    selection.length = length;
    selection.states = scratch->states;
    selection.bits = scratch->bits;
    selection.begins = scratch->begins;
    selection.kind_at = scratch->kind_at;
    selection.most = masker->counts[length];
    selection.count = 0;
    selection.choice = 0;
    memset(selection.bits, 0, (size_t)(length / 64 + 1) * sizeof *selection.bits);
    find_units(masker, ids, marks, scratch, &selection);
    select_tokens(masker, scratch, &selection);
    tdm_mask_words(&selection, TDM_LAYER_REPLACEMENT, scratch->words);
    if (masker->options.unit == TDM_MASK_SPAN)
        tdm_mask_words(&selection, TDM_LAYER_TOKEN, scratch->others);
    replace_tokens(masker, &selection, scratch, ids, predictions);
    return selection.count;
}
