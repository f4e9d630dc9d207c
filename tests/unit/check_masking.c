/* The contract of masking, mostly as statistics over many sequences. */
#include "core/memory.h"
#include "core/random_fill.h"
#include "tests/support/check_main.h"
#include "tests/support/text_rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define VOCABULARY 1016
#define LONGEST    512

static const tdm_masking_options google = {
    .rate = 0.15, .replace = {0.8, 0.1, 0.1}, .max_predictions = 80, .at_least_one = true};

typedef struct mask_rig {
    tdm_tokenizer tokenizer;
    tdm_masker *masker;
    tdm_mask_scratch *scratch;
    uint32_t original[LONGEST], ids[LONGEST];
    uint8_t marks[LONGEST];
    tdm_prediction predictions[LONGEST];
    int64_t count;
} mask_rig;

static mask_rig *open_rig(const tdm_masking_options *options)
{
    mask_rig *out;
    ck_assert_ok(tdm_alloc(1, sizeof *out, &out));
    tdm_rig_tokenizer(VOCABULARY, &out->tokenizer);
    ck_assert_ok(tdm_masker_create(options, &out->tokenizer, LONGEST, &out->masker));
    ck_assert_ok(tdm_mask_scratch_create(LONGEST, &out->scratch));
    return out;
}

static void close_rig(mask_rig *rig)
{
    tdm_masker_destroy(rig->masker);
    tdm_mask_scratch_destroy(rig->scratch);
    tdm_rig_tokenizer_free(&rig->tokenizer);
    tdm_free(rig);
}

/* [CLS], words of 1 to 3 tokens, a [SEP] in the middle and one at the end, some [UNK]. */
static void make_sequence(mask_rig *rig, int64_t length, uint64_t number)
{
    uint64_t state = number * 2654435761u + 1;
    for (int64_t i = 0; i < length; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t random = (uint32_t)(state >> 40);
        rig->original[i] =
            random % 31 == 0 ? TDM_RIG_UNK
                             : TDM_RIG_FIRST_WORD + random / 31 % (VOCABULARY - TDM_RIG_FIRST_WORD);
        rig->marks[i] = i < 2 || (random >> 20) % 4 > 0 || rig->original[i] == TDM_RIG_UNK ||
                        rig->original[i - 1] == TDM_RIG_UNK;
    }
    rig->original[0] = TDM_RIG_CLS;
    rig->original[length - 1] = TDM_RIG_SEP;
    if (length > 20)
        rig->original[length / 2] = TDM_RIG_SEP;
    memcpy(rig->ids, rig->original, (size_t)length * sizeof *rig->ids);
}

static void mask(mask_rig *rig, int64_t length, uint64_t sample, uint32_t epoch)
{
    rig->count = tdm_mask_sequence(rig->masker, 5, sample, epoch, rig->ids, rig->marks, length,
                                   rig->scratch, rig->predictions);
}

/* What every call must give: labels are the originals, each position once, and nothing else
 * changes. One assertion for all: they cost more than masking does. */
static void check_predictions(const mask_rig *rig, int64_t length, bool *selected)
{
    bool good = true;
    memset(selected, 0, (size_t)length);
    for (int64_t i = 0; i < rig->count; i++) {
        const tdm_prediction *made = &rig->predictions[i];
        good = good && made->position < (uint32_t)length && !selected[made->position] &&
               made->label == rig->original[made->position];
        if (good)
            selected[made->position] = true;
    }
    for (int64_t i = 0; i < length; i++)
        good = good && (selected[i] || rig->ids[i] == rig->original[i]);
    ck_assert(good);
}

/* Pearson's statistic of counts against expected ones. */
static double chi_square(const double *counts, const double *expected, int cells)
{
    double sum = 0;
    for (int i = 0; i < cells; i++)
        sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
    return sum;
}

/* ---- counts ---------------------------------------------------------------------------------- */

START_TEST(test_counts_round_half_to_even)
{
    static const int64_t table[][2] = {{3, 1},   {1, 1},    {10, 2},   {50, 8}, {70, 10},
                                       {90, 14}, {128, 19}, {512, 77}, {20, 3}};
    mask_rig *rig = open_rig(&google);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        ck_assert_int_eq(tdm_masker_count(rig->masker, table[i][0]), table[i][1]);
    close_rig(rig);
    tdm_masking_options options = google;
    options.max_predictions = 20;
    rig = open_rig(&options);
    ck_assert_int_eq(tdm_masker_count(rig->masker, 128), 19);
    ck_assert_int_eq(tdm_masker_count(rig->masker, 512), 20);
    close_rig(rig);
    options.at_least_one = false;
    options.max_predictions = 0;
    rig = open_rig(&options);
    ck_assert_int_eq(tdm_masker_count(rig->masker, 3), 0);
    ck_assert_int_eq(tdm_masker_count(rig->masker, 512), 77);
    close_rig(rig);
}
END_TEST

START_TEST(test_tokens_are_exactly_as_many)
{
    mask_rig *rig = open_rig(&google);
    bool selected[LONGEST];
    for (int64_t length = 3; length <= LONGEST; length++) {
        make_sequence(rig, length, (uint64_t)length);
        int64_t ordinary = 0;
        for (int64_t i = 0; i < length; i++)
            ordinary += rig->original[i] >= TDM_RIG_FIRST_WORD;
        int64_t expected = tdm_masker_count(rig->masker, length);
        mask(rig, length, 1, 0);
        check_predictions(rig, length, selected);
        ck_assert_int_eq(rig->count, expected < ordinary ? expected : ordinary);
    }
    close_rig(rig);
}
END_TEST

START_TEST(test_most_bounds_what_is_selected)
{
    static const int64_t lengths[] = {3, 7, 8, 10, 50, 128, 500};
    for (int bernoulli = 0; bernoulli < 2; bernoulli++) {
        tdm_masking_options options = google;
        options.count = bernoulli ? TDM_MASK_BERNOULLI : TDM_MASK_EXACT;
        options.max_predictions = 0;
        mask_rig *rig = open_rig(&options);
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            int64_t total = 0;
            for (uint64_t n = 0; n < 300; n++) {
                make_sequence(rig, lengths[l], n);
                mask(rig, lengths[l], n, 0);
                total += rig->count;
            }
            int64_t most = tdm_masker_most(rig->masker, 300, 300 * lengths[l]);
            ck_assert_int_le(total, most);
            /* It is no waste either. */
            ck_assert_int_le(most,
                             (int64_t)(0.16 * 300 * (double)lengths[l]) + 300 +
                                 (bernoulli ? (int64_t)(40 * sqrt((double)lengths[l])) + 200 : 0));
        }
        close_rig(rig);
    }
}
END_TEST

/* ---- statistics ------------------------------------------------------------------------------ */

/* A million tokens: no special one is selected or comes as a random one, and the three kinds and
 * the positions have their shares. */
static void check_shares(const tdm_masking_options *options, double rate, double tolerance)
{
    enum { LENGTH = 128, SEQUENCES = 8000 };
    mask_rig *rig = open_rig(options);
    bool selected[LENGTH];
    double kinds[TDM_MASK_KINDS] = {0}, by_position[LENGTH] = {0}, candidates[LENGTH] = {0};
    double total = 0, possible = 0;
    bool good = true;
    double *randoms;
    ck_assert_ok(tdm_alloc(VOCABULARY, sizeof *randoms, &randoms));
    for (uint64_t n = 0; n < SEQUENCES; n++) {
        make_sequence(rig, LENGTH, n);
        mask(rig, LENGTH, n, 3);
        check_predictions(rig, LENGTH, selected);
        for (int i = 0; i < LENGTH; i++) {
            bool ordinary = rig->original[i] >= TDM_RIG_FIRST_WORD;
            candidates[i] += ordinary;
            possible += ordinary;
            by_position[i] += selected[i];
            good = good && (ordinary || !selected[i]);
            if (!selected[i])
                continue;
            total++;
            int kind = rig->ids[i] == TDM_RIG_MASK       ? TDM_MASK_BY_MASK
                       : rig->ids[i] == rig->original[i] ? TDM_MASK_KEPT
                                                         : TDM_MASK_BY_RANDOM;
            kinds[kind]++;
            good = good && (kind == TDM_MASK_BY_MASK || rig->ids[i] >= TDM_RIG_FIRST_WORD);
            if (kind == TDM_MASK_BY_RANDOM)
                randoms[rig->ids[i]]++;
        }
    }
    ck_assert(good);
    double expected[TDM_MASK_KINDS];
    for (int k = 0; k < TDM_MASK_KINDS; k++)
        expected[k] = options->replace[k] * total;
    /* 2 degrees of freedom: above 20 in one of 22,000 cases. Spans have one draw for several. */
    ck_assert_double_lt(chi_square(kinds, expected, TDM_MASK_KINDS),
                        options->unit == TDM_MASK_SPAN ? 100 : 20);
    ck_assert_double_eq_tol(total / possible, rate, tolerance);
    for (int i = 0; i < LENGTH; i++) {
        /* Fewer spans reach what stands behind [CLS] or [SEP]. */
        double least = options->unit == TDM_MASK_SPAN ? 0.05 : rate - 0.06;
        double share = candidates[i] > 0 ? by_position[i] / candidates[i] : rate;
        ck_assert(share > least && share < rate + 0.06);
    }
    double ordinary = VOCABULARY - TDM_RIG_FIRST_WORD, each = kinds[TDM_MASK_BY_RANDOM] / ordinary;
    double sum = 0;
    for (int id = TDM_RIG_FIRST_WORD; id < VOCABULARY; id++)
        sum += (randoms[id] - each) * (randoms[id] - each) / each;
    /* 999 degrees of freedom: mean 999, standard deviation 45. */
    ck_assert_double_eq_tol(sum, 999, 300);
    tdm_free(randoms);
    close_rig(rig);
}

START_TEST(test_tokens_have_their_shares)
{
    /* 19 of 128, of which 3 and about 4 [UNK] are never selected. */
    check_shares(&google, 19.0 / (125 * 30.0 / 31), 0.002);
    tdm_masking_options options = google;
    options.count = TDM_MASK_BERNOULLI;
    options.max_predictions = 0;
    check_shares(&options, 0.15, 0.002);
    options.rate = 0.4;
    options.replace[0] = 0.5;
    options.replace[1] = 0.3;
    options.replace[2] = 0.2;
    check_shares(&options, 0.4, 0.003);
}
END_TEST

START_TEST(test_words_and_spans_have_their_shares)
{
    tdm_masking_options options = google;
    options.unit = TDM_MASK_WHOLE_WORD;
    check_shares(&options, 19.0 / (125 * 30.0 / 31), 0.004);
    options.unit = TDM_MASK_SPAN;
    check_shares(&options, 19.0 / (125 * 30.0 / 31), 0.004);
    options.unit = TDM_MASK_WHOLE_WORD;
    options.count = TDM_MASK_BERNOULLI;
    options.max_predictions = 0;
    check_shares(&options, 0.15, 0.003);
}
END_TEST

/* ---- units ----------------------------------------------------------------------------------- */

/* The word that token i belongs to is selected as a whole or not at all. */
static void check_words_are_whole(const mask_rig *rig, const bool *selected, int64_t length)
{
    bool good = true;
    for (int64_t i = 1; i < length; i++) {
        bool continues = rig->marks[i] == 0 && rig->original[i] >= TDM_RIG_FIRST_WORD &&
                         rig->original[i - 1] >= TDM_RIG_FIRST_WORD;
        good = good && (!continues || selected[i] == selected[i - 1]);
    }
    ck_assert(good);
}

START_TEST(test_words_are_selected_whole)
{
    bool selected[LONGEST];
    for (int way = 0; way < 3; way++) {
        tdm_masking_options options = google;
        options.unit = way == 1 ? TDM_MASK_SPAN : TDM_MASK_WHOLE_WORD;
        options.count = way == 2 ? TDM_MASK_BERNOULLI : TDM_MASK_EXACT;
        mask_rig *rig = open_rig(&options);
        for (uint64_t n = 0; n < 3000; n++) {
            int64_t length = 10 + (int64_t)(n % 200);
            make_sequence(rig, length, n);
            mask(rig, length, n, 0);
            check_predictions(rig, length, selected);
            check_words_are_whole(rig, selected, length);
            ck_assert_int_gt(rig->count, 0);
            if (way < 2 && length > 20)
                ck_assert_int_le(rig->count, tdm_masker_count(rig->masker, length));
        }
        close_rig(rig);
    }
}
END_TEST

/* How many spans of each length come up where 10 tokens are to be selected, the last span being
 * cut: the sum over the lengths of the first. */
static void expect_spans(int left, double share, double expected[11])
{
    double rest = 1;
    for (int l = 1; l < left; l++) {
        double p = 0.2 * pow(0.8, l - 1) / (1 - pow(0.8, 10));
        expected[l] += share * p;
        expect_spans(left - l, share * p, expected);
        rest -= p;
    }
    expected[left] += share * rest;
}

START_TEST(test_spans_have_geometric_lengths)
{
    tdm_masking_options options = google;
    options.unit = TDM_MASK_SPAN;
    options.rate = 0.02; /* 10 tokens of 512 */
    options.replace[0] = 1;
    options.replace[1] = options.replace[2] = 0;
    mask_rig *rig = open_rig(&options);
    bool selected[LONGEST];
    double lengths[11] = {0};
    for (uint64_t n = 0; n < 40000; n++) {
        for (int i = 0; i < LONGEST; i++) {
            rig->original[i] = TDM_RIG_FIRST_WORD + (uint32_t)i;
            rig->marks[i] = 1;
        }
        rig->original[0] = TDM_RIG_CLS;
        rig->original[LONGEST - 1] = TDM_RIG_SEP;
        memcpy(rig->ids, rig->original, sizeof rig->ids);
        mask(rig, LONGEST, n, 0);
        check_predictions(rig, LONGEST, selected);
        /* Spans seldom touch: a run is a span. */
        for (int i = 1, run = 0; i < LONGEST; i++) {
            if (selected[i]) {
                run++;
            } else if (run > 0) {
                lengths[run > 10 ? 10 : run]++;
                run = 0;
            }
        }
    }
    double expected[11] = {0};
    expect_spans(10, 40000, expected);
    for (int l = 1; l <= 10; l++)
        ck_assert_double_eq_tol(lengths[l], expected[l], 0.03 * expected[l] + 150);
    close_rig(rig);
}
END_TEST

/* All of a span get the same kind; SpanBERT draws it once. */
START_TEST(test_spans_are_replaced_as_one)
{
    tdm_masking_options options = google;
    options.unit = TDM_MASK_SPAN;
    options.rate = 0.01;
    options.replace[0] = 0.5;
    options.replace[1] = 0;
    options.replace[2] = 0.5;
    mask_rig *rig = open_rig(&options);
    int64_t mixed = 0, runs = 0;
    for (uint64_t n = 0; n < 2000; n++) {
        make_sequence(rig, LONGEST, n);
        for (int i = 0; i < LONGEST; i++)
            rig->marks[i] = 1;
        mask(rig, LONGEST, n, 0);
        for (int64_t i = 0; i + 1 < rig->count; i++) {
            const tdm_prediction *a = &rig->predictions[i], *b = a + 1;
            if (b->position != a->position + 1)
                continue;
            runs++;
            mixed +=
                (rig->ids[a->position] == TDM_RIG_MASK) != (rig->ids[b->position] == TDM_RIG_MASK);
        }
    }
    ck_assert_int_gt(runs, 3000);
    ck_assert_int_lt(mixed, runs / 50); /* neighbours that are two spans */
    close_rig(rig);
}
END_TEST

/* ---- what it depends on ---------------------------------------------------------------------- */

static uint64_t selection_of(mask_rig *rig, uint64_t seed, uint64_t sample, uint32_t epoch)
{
    memcpy(rig->ids, rig->original, sizeof rig->ids);
    rig->count = tdm_mask_sequence(rig->masker, seed, sample, epoch, rig->ids, rig->marks, 128,
                                   rig->scratch, rig->predictions);
    uint64_t hash = 0;
    for (int i = 0; i < 128; i++)
        hash = hash * 1099511628211u + rig->ids[i];
    return hash;
}

START_TEST(test_masks_follow_seed_sample_and_epoch)
{
    for (int unit = 0; unit < 3; unit++) {
        tdm_masking_options options = google;
        options.unit = unit;
        mask_rig *rig = open_rig(&options);
        make_sequence(rig, 128, 77);
        uint64_t first = selection_of(rig, 1, 2, 3);
        ck_assert_uint_ne(selection_of(rig, 1, 2, 4), first);
        ck_assert_uint_ne(selection_of(rig, 1, 3, 3), first);
        ck_assert_uint_ne(selection_of(rig, 1, 2 + ((uint64_t)1 << 32), 3), first);
        ck_assert_uint_ne(selection_of(rig, 2, 2, 3), first);
        ck_assert_uint_eq(selection_of(rig, 1, 2, 3), first);
        close_rig(rig);
    }
}
END_TEST

/* The masks of one sequence, so that they never change from version to version. */
START_TEST(test_masks_are_what_they_were)
{
    static const uint64_t expected[3] = {12145318049603032058u, 15525732901806043492u,
                                         2690213784280059360u};
    for (int unit = 0; unit < 3; unit++) {
        tdm_masking_options options = google;
        options.unit = unit;
        mask_rig *rig = open_rig(&options);
        make_sequence(rig, 128, 1);
        ck_assert_uint_eq(selection_of(rig, 1, 2, 3), expected[unit]);
        /* On another CPU, too. */
        for (int level = 0; level < 3; level++) {
            if (tdm_random_fill_force(level))
                ck_assert_uint_eq(selection_of(rig, 1, 2, 3), expected[unit]);
        }
        ck_assert(tdm_random_fill_force(-1));
        close_rig(rig);
    }
}
END_TEST

/* ---- edges ----------------------------------------------------------------------------------- */

START_TEST(test_unknown_words_by_flag)
{
    tdm_masking_options options = google;
    options.mask_unk = true;
    options.rate = 1;
    options.max_predictions = 0;
    mask_rig *rig = open_rig(&options);
    for (int way = 0; way < 2; way++) {
        uint32_t ids[] = {TDM_RIG_CLS, TDM_RIG_UNK, 20, TDM_RIG_SEP, TDM_RIG_MASK, TDM_RIG_PAD};
        uint8_t marks[] = {0, 1, 1, 0, 1, 0};
        int64_t count =
            tdm_mask_sequence(rig->masker, 1, 1, 0, ids, marks, 6, rig->scratch, rig->predictions);
        ck_assert_int_eq(count, way == 0 ? 2 : 1);
        ck_assert_uint_eq(ids[0], TDM_RIG_CLS);
        ck_assert_uint_eq(ids[3], TDM_RIG_SEP);
        ck_assert_uint_eq(ids[4], TDM_RIG_MASK);
        ck_assert_uint_eq(ids[5], TDM_RIG_PAD);
        close_rig(rig);
        options.mask_unk = false;
        rig = open_rig(&options);
    }
    close_rig(rig);
}
END_TEST

/* One word of five tokens in a sequence that may have one: by flag it is taken, or nothing is. */
START_TEST(test_at_least_one)
{
    for (int unit = TDM_MASK_WHOLE_WORD; unit <= TDM_MASK_SPAN; unit++) {
        for (int flag = 0; flag < 2; flag++) {
            tdm_masking_options options = google;
            options.unit = unit;
            options.at_least_one = flag;
            mask_rig *rig = open_rig(&options);
            uint32_t ids[] = {TDM_RIG_CLS, 20, 21, 22, 23, 24, TDM_RIG_SEP};
            uint8_t marks[] = {0, 1, 0, 0, 0, 0, 0};
            ck_assert_int_eq(tdm_mask_sequence(rig->masker, 1, 1, 0, ids, marks, 7, rig->scratch,
                                               rig->predictions),
                             flag ? 5 : 0);
            uint32_t empty[] = {TDM_RIG_CLS, TDM_RIG_UNK, TDM_RIG_SEP};
            ck_assert_int_eq(tdm_mask_sequence(rig->masker, 1, 1, 0, empty, marks, 3, rig->scratch,
                                               rig->predictions),
                             0);
            close_rig(rig);
        }
    }
    /* With a probability that nothing meets, one is taken at random. */
    tdm_masking_options options = google;
    options.count = TDM_MASK_BERNOULLI;
    options.rate = 1e-9;
    mask_rig *rig = open_rig(&options);
    bool selected[LONGEST], seen[LONGEST] = {0};
    int different = 0;
    for (uint64_t n = 0; n < 100; n++) {
        make_sequence(rig, 30, 1);
        mask(rig, 30, n, 0);
        check_predictions(rig, 30, selected);
        ck_assert_int_eq(rig->count, 1);
        different += !seen[rig->predictions[0].position];
        seen[rig->predictions[0].position] = true;
    }
    ck_assert_int_gt(different, 15);
    close_rig(rig);
}
END_TEST

START_TEST(test_probabilities_are_limited_too)
{
    tdm_masking_options options = google;
    options.count = TDM_MASK_BERNOULLI;
    options.unit = TDM_MASK_WHOLE_WORD;
    options.rate = 0.5;
    options.max_predictions = 7;
    mask_rig *rig = open_rig(&options);
    bool selected[LONGEST];
    double by_half[2] = {0};
    for (uint64_t n = 0; n < 2000; n++) {
        make_sequence(rig, 100, n);
        mask(rig, 100, n, 0);
        check_predictions(rig, 100, selected);
        check_words_are_whole(rig, selected, 100);
        ck_assert_int_le(rig->count, 7);
        ck_assert_int_ge(rig->count, 5);
        for (int64_t i = 0; i < rig->count; i++)
            by_half[rig->predictions[i].position / 50]++;
    }
    /* Not the first ones. */
    ck_assert_double_eq_tol(by_half[0] / by_half[1], 1, 0.1);
    close_rig(rig);
}
END_TEST

START_TEST(test_vocabularies_that_cannot_be_masked)
{
    tdm_tokenizer tokenizer;
    tdm_masker *masker;
    tdm_rig_tokenizer(100, &tokenizer);
    tokenizer.specials[TDM_SPECIAL_MASK] = -1;
    ck_assert_fails(tdm_masker_create(&google, &tokenizer, 128, &masker), TDM_E_CONFIG, "[MASK]");
    ck_assert_ptr_null(masker);
    tdm_rig_tokenizer_free(&tokenizer);
    tdm_rig_tokenizer(0, &tokenizer);
    ck_assert_fails(tdm_masker_create(&google, &tokenizer, 128, &masker), TDM_E_CONFIG,
                    "special tokens only");
    tdm_rig_tokenizer_free(&tokenizer);
    /* Others may lack: a vocabulary without [PAD] and [UNK] is as good. */
    tdm_rig_tokenizer(100, &tokenizer);
    tokenizer.specials[TDM_SPECIAL_PAD] = tokenizer.specials[TDM_SPECIAL_UNK] = -1;
    ck_assert_ok(tdm_masker_create(&google, &tokenizer, 128, &masker));
    tdm_masker_destroy(masker);
    tdm_rig_tokenizer_free(&tokenizer);
    tdm_rig_tokenizer(100, &tokenizer);
    ck_assert_fails(tdm_masker_create(&google, &tokenizer, 40000, &masker), TDM_E_ARG, "40000");
    tdm_rig_tokenizer_free(&tokenizer);
}
END_TEST

/* Added special tokens are not drawn, other added ones are. */
START_TEST(test_added_tokens_are_ordinary_or_not)
{
    tdm_masking_options options = google;
    options.rate = 1;
    options.replace[0] = options.replace[2] = 0;
    options.replace[1] = 1;
    mask_rig *rig = open_rig(&options);
    tdm_added_token added[] = {{.id = 16, .special = true}, {.id = 18}};
    rig->tokenizer.added = added;
    rig->tokenizer.added_count = 2;
    tdm_masker_destroy(rig->masker);
    ck_assert_ok(tdm_masker_create(&options, &rig->tokenizer, LONGEST, &rig->masker));
    bool seen[2] = {0};
    for (uint64_t n = 0; n < 200; n++) {
        make_sequence(rig, LONGEST, n);
        mask(rig, LONGEST, n, 0);
        for (int64_t i = 0; i < rig->count; i++) {
            uint32_t id = rig->ids[rig->predictions[i].position];
            seen[0] = seen[0] || id == 16;
            seen[1] = seen[1] || id == 18;
        }
    }
    ck_assert(!seen[0] && seen[1]);
    close_rig(rig);
}
END_TEST

TDM_CHECK_MAIN(test_counts_round_half_to_even, test_tokens_are_exactly_as_many,
               test_most_bounds_what_is_selected, test_tokens_have_their_shares,
               test_words_and_spans_have_their_shares, test_words_are_selected_whole,
               test_spans_have_geometric_lengths, test_spans_are_replaced_as_one,
               test_masks_follow_seed_sample_and_epoch, test_masks_are_what_they_were,
               test_unknown_words_by_flag, test_at_least_one, test_probabilities_are_limited_too,
               test_vocabularies_that_cannot_be_masked, test_added_tokens_are_ordinary_or_not)
