#include "trainer/auc.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

/* Scores have 30 bits (1.0f is 0x3f800000), sorted by ten at a time from the top. */
#define DIGIT_BITS    10
#define DIGITS        (1 << DIGIT_BITS)
#define TOP_SHIFT     20
#define SHORT_ENTRIES 48 /* fewer are sorted by insertion */

tdm_status tdm_auc_init(tdm_auc *auc, int64_t exact_rows)
{
    *auc = (tdm_auc){.exact_rows = exact_rows};
    if (exact_rows > 0)
        return TDM_OK;
    return tdm_alloc(TDM_AUC_BINS, sizeof *auc->bins, &auc->bins);
}

void tdm_auc_deinit(tdm_auc *auc)
{
    tdm_free(auc->entries);
    tdm_free(auc->bins);
    *auc = (tdm_auc){0};
}

void tdm_auc_reset(tdm_auc *auc)
{
    auc->count = 0;
    if (auc->exact_rows > 0) {
        tdm_free(auc->bins);
        auc->bins = NULL;
    } else {
        memset(auc->bins, 0, TDM_AUC_BINS * sizeof *auc->bins);
    }
}

/* ---- adding ---------------------------------------------------------------------------------- */

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The bits of the score, brought into [0, 1]; the bits of floats that are not negative order as
 * they do. Without branches, as find_bin: scores come in no order. */
static uint32_t score_bits(float score)
{
    const int32_t one = 0x3f800000;
    int32_t bits = (int32_t)float_bits(score);
    bits = bits > 0 ? bits : 0;
    return (uint32_t)(bits < one ? bits : one);
}

/* The nearer of the score's distances to 0 and 1, taken as 15 bits of its exponent and mantissa
 * above 2^-17. 1 - score is exact in the upper half, so bins order as scores do. */
static uint32_t find_bin(uint32_t bits)
{
    const uint32_t lowest = 0x37000000, half = 0x3f000000; /* 2^-17, 1/2 */
    const uint32_t last = TDM_AUC_BINS / 2 - 1;
    float score;
    memcpy(&score, &bits, sizeof score);
    uint32_t other = float_bits(1.0f - score);
    uint32_t nearer = bits < other ? bits : other;
    uint32_t bin = ((nearer > lowest ? nearer : lowest) - lowest) >> 12;
    bin = bin < last ? bin : last;
    uint32_t upper = (half - 1 - bits) >> 31; /* 1 or 0: bits stay below 2^31 */
    return (bin ^ (0u - upper)) & (TDM_AUC_BINS - 1);
}

static void add_to_bins(tdm_auc_bin *bins, const float *scores, const float *labels,
                        const float *weights, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double weight = weights == NULL ? 1.0 : (double)weights[i];
        double positive = weight == 0.0 ? 0.0 : weight * (double)labels[i];
        tdm_auc_bin *bin = &bins[find_bin(score_bits(scores[i]))];
        bin->negatives += weight - positive;
        bin->positives += positive;
    }
}

static void add_entry_to_bins(tdm_auc_bin *bins, tdm_auc_entry entry)
{
    tdm_auc_bin *bin = &bins[find_bin(entry.score)];
    if (entry.weight < 0.0f)
        bin->negatives -= (double)entry.weight;
    else
        bin->positives += (double)entry.weight;
}

static tdm_status go_over_to_bins(tdm_auc *auc)
{
    TDM_TRY(tdm_alloc(TDM_AUC_BINS, sizeof *auc->bins, &auc->bins));
    for (size_t i = 0; i < auc->count; i++)
        add_entry_to_bins(auc->bins, auc->entries[i]);
    tdm_free(auc->entries);
    auc->entries = NULL;
    auc->count = auc->capacity = 0;
    return TDM_OK;
}

static void append_row(tdm_auc *auc, float score, float label, float weight)
{
    uint32_t bits = score_bits(score);
    float positive = weight * label;
    float negative = weight - positive;
    if (positive > 0.0f)
        auc->entries[auc->count++] = (tdm_auc_entry){bits, positive};
    if (negative > 0.0f)
        auc->entries[auc->count++] = (tdm_auc_entry){bits, -negative};
}

static bool fits(const tdm_auc *auc, size_t more)
{
    return auc->bins == NULL && auc->count + more <= (size_t)auc->exact_rows;
}

/* How many entries the rows make. */
static size_t count_entries(const float *labels, const float *weights, int64_t count)
{
    size_t entries = 0;
    for (int64_t i = 0; i < count; i++) {
        if (weights == NULL || weights[i] != 0.0f)
            entries += labels[i] > 0.0f && labels[i] < 1.0f ? 2 : 1;
    }
    return entries;
}

tdm_status tdm_auc_add(tdm_auc *auc, const float *scores, const float *labels, const float *weights,
                       int64_t count)
{
    if (auc->bins == NULL) {
        size_t more = count_entries(labels, weights, count);
        if (fits(auc, more)) {
            TDM_TRY(
                tdm_grow(&auc->entries, &auc->capacity, auc->count + more, sizeof *auc->entries));
            for (int64_t i = 0; i < count; i++)
                append_row(auc, scores[i], labels[i], weights == NULL ? 1.0f : weights[i]);
            return TDM_OK;
        }
        TDM_TRY(go_over_to_bins(auc));
    }
    add_to_bins(auc->bins, scores, labels, weights, count);
    return TDM_OK;
}

tdm_status tdm_auc_merge(tdm_auc *into, const tdm_auc *from)
{
    if (from->bins == NULL && fits(into, from->count)) {
        TDM_TRY(tdm_grow(&into->entries, &into->capacity, into->count + from->count,
                         sizeof *into->entries));
        if (from->count > 0)
            memcpy(into->entries + into->count, from->entries, from->count * sizeof *from->entries);
        into->count += from->count;
        return TDM_OK;
    }
    if (into->bins == NULL)
        TDM_TRY(go_over_to_bins(into));
    for (size_t i = 0; i < from->count; i++)
        add_entry_to_bins(into->bins, from->entries[i]);
    for (int i = 0; from->bins != NULL && i < TDM_AUC_BINS; i++) {
        into->bins[i].positives += from->bins[i].positives;
        into->bins[i].negatives += from->bins[i].negatives;
    }
    return TDM_OK;
}

/* ---- sorting --------------------------------------------------------------------------------- */

static void sort_by_insertion(tdm_auc_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        tdm_auc_entry entry = entries[i];
        size_t at = i;
        for (; at > 0 && entries[at - 1].score > entry.score; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

static uint32_t digit_of(tdm_auc_entry entry, int shift)
{
    return entry.score >> shift & (DIGITS - 1);
}

/* Groups entries by one digit, in place (American flag sort: McIlroy, Bostic and McIlroy,
 * "Engineering radix sort", 1993). Digit d is at [starts[d], starts[d + 1]). */
static void group_by_digit(tdm_auc_entry *entries, size_t count, int shift, size_t *starts)
{
    size_t next[DIGITS];
    memset(starts, 0, (DIGITS + 1) * sizeof *starts);
    for (size_t i = 0; i < count; i++)
        starts[digit_of(entries[i], shift) + 1]++;
    for (int digit = 0; digit < DIGITS; digit++) {
        next[digit] = starts[digit];
        starts[digit + 1] += starts[digit];
    }
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        while (next[digit] < starts[digit + 1]) {
            tdm_auc_entry entry = entries[next[digit]];
            for (uint32_t home; (home = digit_of(entry, shift)) != digit;) {
                tdm_auc_entry other = entries[next[home]];
                entries[next[home]++] = entry;
                entry = other;
            }
            entries[next[digit]++] = entry;
        }
    }
}

static void sort_entries(tdm_auc_entry *entries, size_t count, int shift)
{
    if (count <= SHORT_ENTRIES) {
        sort_by_insertion(entries, count);
        return;
    }
    size_t starts[DIGITS + 1];
    group_by_digit(entries, count, shift, starts);
    if (shift == 0)
        return;
    for (int digit = 0; digit < DIGITS; digit++)
        sort_entries(entries + starts[digit], starts[digit + 1] - starts[digit],
                     shift - DIGIT_BITS);
}

/* ---- the result ------------------------------------------------------------------------------ */

/* What is known of a run of rows of rising score. */
typedef struct auc_tally {
    double negatives, positives; /* weights */
    double wins;                 /* weight of the pairs that are in order, ties counted half */
    double ties;                 /* weight of the pairs that are told apart no further */
} auc_tally;

static void append_tally(auc_tally *tally, const auc_tally *next)
{
    tally->wins += next->wins + next->positives * tally->negatives;
    tally->ties += next->ties;
    tally->positives += next->positives;
    tally->negatives += next->negatives;
}

static void append_tie(auc_tally *tally, double negatives, double positives)
{
    double pairs = negatives * positives;
    auc_tally next = {negatives, positives, 0.5 * pairs, pairs};
    append_tally(tally, &next);
}

static auc_tally tally_sorted(const tdm_auc_entry *entries, size_t count)
{
    auc_tally tally = {0};
    for (size_t i = 0; i < count;) {
        uint32_t score = entries[i].score;
        double negatives = 0.0, positives = 0.0;
        for (; i < count && entries[i].score == score; i++) {
            if (entries[i].weight < 0.0f)
                negatives -= (double)entries[i].weight;
            else
                positives += (double)entries[i].weight;
        }
        append_tie(&tally, negatives, positives);
    }
    return tally;
}

typedef struct sort_job {
    tdm_auc_entry *entries;
    size_t starts[DIGITS + 1];
    auc_tally tallies[DIGITS];
} sort_job;

static void sort_top_digit(void *context, int64_t digit)
{
    sort_job *job = context;
    tdm_auc_entry *entries = job->entries + job->starts[digit];
    size_t count = job->starts[digit + 1] - job->starts[digit];
    sort_entries(entries, count, TOP_SHIFT - DIGIT_BITS);
    job->tallies[digit] = tally_sorted(entries, count);
}

static tdm_status tally_entries(tdm_auc *auc, tdm_pool *pool, auc_tally *tally)
{
    sort_job *job;
    TDM_TRY(tdm_alloc(1, sizeof *job, &job));
    job->entries = auc->entries;
    group_by_digit(auc->entries, auc->count, TOP_SHIFT, job->starts);
    tdm_pool_for(pool, DIGITS, sort_top_digit, job);
    for (int digit = 0; digit < DIGITS; digit++)
        append_tally(tally, &job->tallies[digit]);
    tdm_free(job);
    return TDM_OK;
}

tdm_status tdm_auc_get(tdm_auc *auc, tdm_pool *pool, tdm_auc_result *out)
{
    auc_tally tally = {0};
    if (auc->bins == NULL)
        TDM_TRY(tally_entries(auc, pool, &tally));
    for (int i = 0; auc->bins != NULL && i < TDM_AUC_BINS; i++)
        append_tie(&tally, auc->bins[i].negatives, auc->bins[i].positives);

    double pairs = tally.positives * tally.negatives;
    *out = (tdm_auc_result){NAN, NAN};
    if (pairs > 0.0) {
        out->auc = tally.wins / pairs;
        out->error = auc->bins == NULL ? 0.0 : 0.5 * tally.ties / pairs;
    }
    return TDM_OK;
}
