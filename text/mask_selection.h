/* Which tokens of a sequence are masked. Not for other files than text/masking.c. */
#ifndef TDM_TEXT_MASK_SELECTION_H
#define TDM_TEXT_MASK_SELECTION_H

#include "core/random_fill.h"
#include "text/masking.h"

#define TDM_MASK_SPAN_WORDS 10

#define TDM_MASK_FILL (4 * TDM_RANDOM_GROUPS) /* words of a call of tdm_random_fill() */

/* What of TDM_PURPOSE_MASK is drawn with which layer. */
enum {
    TDM_LAYER_CHOICE = 0,      /* elements in the order of the choices */
    TDM_LAYER_UNIT = 1,        /* element: the position where a unit begins */
    TDM_LAYER_REPLACEMENT = 2, /* element: the position; of a span, where it begins */
    TDM_LAYER_TOKEN = 3,       /* element: the position; random tokens of spans */
};

/* What a token is: units are tokens, or words. */
enum {
    TDM_UNIT_NONE = 0, /* never selected */
    TDM_UNIT_BEGINS = 1,
    TDM_UNIT_CONTINUES = 2,
    TDM_UNIT_VISITED = 3, /* one that began here was looked at, and taken or passed over */
};

/* A sequence while its tokens are selected. */
typedef struct tdm_mask_selection {
    uint64_t seed, sample;
    uint32_t epoch;
    int64_t length;
    uint8_t *states;   /* [length + 1], and a token before it that is never selected */
    int64_t units;     /* that begin and were not visited */
    int64_t most;      /* tokens to select */
    uint64_t *bits;    /* [length / 64 + 1]: of the positions that are selected */
    int64_t count;     /* of them */
    uint16_t *kind_at; /* [length], of spans: where the span of a selected token begins */
    uint16_t *begins;  /* [length + 1]: for tdm_select_each() */
    uint32_t choice;   /* the next element of TDM_LAYER_CHOICE */
    uint32_t choices[TDM_MASK_FILL];
} tdm_mask_selection;

static inline tdm_philox_key tdm_mask_key(const tdm_mask_selection *selection, int layer)
{
    return tdm_philox_make_key(selection->seed, TDM_PURPOSE_MASK, (uint32_t)layer);
}

/* words[i]: element i of the layer, for all positions. */
void tdm_mask_words(const tdm_mask_selection *selection, int layer, uint32_t *words);

/* Units in random order, until `most` tokens are selected; one that is too long is passed over. */
void tdm_select_exactly(tdm_mask_selection *selection);

/* Each unit with probability `below` / 2^32, by its word; then of those at most `most` tokens. */
void tdm_select_each(tdm_mask_selection *selection, const uint32_t *words, uint64_t below,
                     bool at_least_one);

/* Spans that begin at random words; of at most i + 1 words where a random word is below
 * below[i]. */
void tdm_select_spans(tdm_mask_selection *selection, const uint64_t below[TDM_MASK_SPAN_WORDS]);

/* The shortest unit, the first of several, where nothing is selected. */
void tdm_select_shortest(tdm_mask_selection *selection);

#endif
