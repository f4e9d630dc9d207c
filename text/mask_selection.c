#include "text/mask_selection.h"

#include <string.h>

void tdm_mask_words(const tdm_mask_selection *selection, int layer, uint32_t *words)
{
    tdm_random_fill(tdm_mask_key(selection, layer), selection->sample, selection->epoch, 0,
                    (selection->length + 3) / 4, words);
}

static uint32_t next_choice(tdm_mask_selection *selection)
{
    uint32_t at = selection->choice % TDM_MASK_FILL;
    if (at == 0)
        tdm_random_fill(tdm_mask_key(selection, TDM_LAYER_CHOICE), selection->sample,
                        selection->epoch, selection->choice / 4, TDM_RANDOM_GROUPS,
                        selection->choices);
    selection->choice++;
    return selection->choices[at];
}

static int64_t unit_end(const tdm_mask_selection *selection, int64_t begin)
{
    int64_t end = begin + 1;
    while (selection->states[end] == TDM_UNIT_CONTINUES)
        end++;
    return end;
}

/* A random one of the units that were not visited, of which there is one: positions are drawn until
 * one begins there, which is quicker than to list them. */
static int64_t visit_unit(tdm_mask_selection *selection)
{
    uint32_t length = (uint32_t)selection->length;
    uint32_t at;
    do
        at = tdm_random_below(next_choice(selection), length);
    while (selection->states[at] != TDM_UNIT_BEGINS);
    selection->states[at] = TDM_UNIT_VISITED;
    selection->units--;
    return at;
}

static void take_unit(tdm_mask_selection *selection, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end; at++)
        selection->bits[at / 64] |= (uint64_t)1 << at % 64;
    selection->count += end - begin;
}

void tdm_select_exactly(tdm_mask_selection *selection)
{
    while (selection->units > 0 && selection->count < selection->most) {
        int64_t begin = visit_unit(selection);
        int64_t end = unit_end(selection, begin);
        if (selection->count + end - begin <= selection->most)
            take_unit(selection, begin, end);
    }
}

/* Of the units that begin at begins[0, units), those that fit. */
static void limit_units(tdm_mask_selection *selection, int64_t units)
{
    for (int64_t i = 0; i < selection->length; i++) {
        if (selection->states[i] == TDM_UNIT_BEGINS)
            selection->states[i] = TDM_UNIT_VISITED;
    }
    for (int64_t u = 0; u < units; u++)
        selection->states[selection->begins[u]] = TDM_UNIT_BEGINS;
    selection->units = units;
    tdm_select_exactly(selection);
}

void tdm_select_each(tdm_mask_selection *selection, const uint32_t *words, uint64_t below,
                     bool at_least_one)
{
    uint16_t *begins = selection->begins;
    int64_t units = 0, tokens = 0;
    for (int64_t i = 0; i < selection->length; i++) {
        begins[units] = (uint16_t)i;
        units += (selection->states[i] == TDM_UNIT_BEGINS) & (words[i] < below);
    }
    if (units == 0 && at_least_one && selection->units > 0)
        begins[units++] = (uint16_t)visit_unit(selection);
    for (int64_t u = 0; u < units; u++)
        tokens += unit_end(selection, begins[u]) - begins[u];
    if (tokens > selection->most) {
        limit_units(selection, units);
        return;
    }
    for (int64_t u = 0; u < units; u++)
        take_unit(selection, begins[u], unit_end(selection, begins[u]));
}

static void take_word_of_span(tdm_mask_selection *selection, int64_t begin, int64_t end,
                              int64_t span)
{
    take_unit(selection, begin, end);
    for (int64_t at = begin; at < end; at++)
        selection->kind_at[at] = (uint16_t)span;
}

/* Takes words from `begin` on for a span of `length` words, which ends before what was visited or
 * is never selected, and where no more tokens fit. */
static void take_span(tdm_mask_selection *selection, int64_t begin, int length)
{
    for (int64_t at = begin; length > 0; length--) {
        int64_t end = unit_end(selection, at);
        if (selection->count + end - at > selection->most)
            break;
        take_word_of_span(selection, at, end, begin);
        at = end;
        if (selection->states[at] != TDM_UNIT_BEGINS || length == 1)
            break;
        selection->states[at] = TDM_UNIT_VISITED;
        selection->units--;
    }
}

void tdm_select_spans(tdm_mask_selection *selection, const uint64_t below[TDM_MASK_SPAN_WORDS])
{
    while (selection->units > 0 && selection->count < selection->most) {
        int64_t begin = visit_unit(selection);
        uint32_t drawn = next_choice(selection);
        int length = 1;
        while (length < TDM_MASK_SPAN_WORDS && drawn >= below[length - 1])
            length++;
        take_span(selection, begin, length);
    }
}

void tdm_select_shortest(tdm_mask_selection *selection)
{
    int64_t best = -1, shortest = INT64_MAX;
    for (int64_t i = 0; i < selection->length; i++) {
        uint8_t state = selection->states[i];
        if (state != TDM_UNIT_BEGINS && state != TDM_UNIT_VISITED)
            continue;
        int64_t tokens = unit_end(selection, i) - i;
        if (tokens < shortest) {
            shortest = tokens;
            best = i;
        }
    }
    if (best >= 0)
        take_word_of_span(selection, best, best + shortest, best);
}
