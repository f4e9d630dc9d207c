#include "text/truncation.h"

#include "core/status.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Only the longer one is cut where that is enough; else both to halves, the odd token going to the
 * longer one, or the second of equals. */
static void cut_longest(int64_t budget, const int64_t counts[2], int64_t lengths[2])
{
    int shorter = counts[0] > counts[1] ? 1 : 0;
    int64_t small = counts[shorter];
    int64_t large = small > budget ? small : larger(small, budget - small);
    if (small + large > budget) {
        small = budget / 2;
        large = small + budget % 2;
    }
    lengths[shorter] = small;
    lengths[1 - shorter] = large;
}

tdm_status tdm_truncation_lengths(tdm_truncation truncation, int64_t budget, bool has_pair,
                                  const int64_t counts[2], int64_t lengths[2])
{
    int64_t total = counts[0] + counts[1];
    lengths[0] = counts[0];
    lengths[1] = counts[1];
    if (budget < 0 || total <= budget)
        return TDM_OK;
    if (budget == 0) {
        lengths[0] = lengths[1] = 0;
        return TDM_OK;
    }
    if (truncation == TDM_TRUNCATE_LONGEST_FIRST) {
        if (has_pair)
            cut_longest(budget, counts, lengths);
        else
            lengths[0] = budget;
        return TDM_OK;
    }
    int which = truncation == TDM_TRUNCATE_ONLY_FIRST ? 0 : 1;
    TDM_FAIL_IF(which == 1 && !has_pair, TDM_E_DATA,
                "there is no second text that could be truncated: use longest_first or only_first");
    TDM_FAIL_IF(counts[which] <= total - budget, TDM_E_DATA,
                "the %s text has %lld tokens, of which %lld must go: too few to truncate it alone",
                which == 0 ? "first" : "second", (long long)counts[which],
                (long long)(total - budget));
    lengths[which] -= total - budget;
    return TDM_OK;
}

static tdm_text_range range_of(int64_t begin, int64_t end)
{
    return (tdm_text_range){(uint32_t)begin, (uint32_t)end};
}

int64_t tdm_truncation_windows(int64_t count, int64_t length, int64_t stride, bool left,
                               tdm_text_range *windows)
{
    int64_t made = 0;
    if (length >= count) {
        windows[0] = range_of(0, count);
        return 1;
    }
    if (length == 0) {
        windows[0] = range_of(0, 0);
        windows[1] = range_of(0, count);
        return 2;
    }
    for (int64_t done = 0; made == 0 || done + length < count; made++) {
        done = made * (length - stride);
        int64_t end = done + length < count ? done + length : count;
        windows[made] = left ? range_of(count - end, count - done) : range_of(done, end);
    }
    return made;
}
