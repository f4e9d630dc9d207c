#include "data/synth_ctr_model.h"

#include <string.h>

/* Random words of a row: word c draws column c's outcome, LABEL_WORD the label, VALUE_WORDS + c the
 * value within the outcome. */
#define LABEL_WORD  39u
#define VALUE_WORDS 40u
#define ROW_WORDS   80u

/* Sums from which a group's interactions follow: the sum over pairs of products is half of (the
 * sum) squared minus the sum of squares (Rendle, "Factorization machines", ICDM 2010). */
typedef struct logit_sums {
    int64_t first_order;
    int64_t latent[TDM_SYNTH_GROUPS + 1][TDM_SYNTH_LATENT_DIM];
    int64_t squares;
} logit_sums;

uint32_t tdm_synth_probability(const tdm_synth_model *model, int32_t logit)
{
    const uint32_t segment = 2 * TDM_SYNTH_LOGIT_LIMIT / TDM_SYNTH_SEGMENTS;
    uint32_t position = (uint32_t)(logit + TDM_SYNTH_LOGIT_LIMIT);
    const uint32_t *ends = &model->sigmoid[position / segment];
    uint64_t rise = ends[1] - ends[0];
    return ends[0] + (uint32_t)(rise * (position % segment) / segment);
}

static const tdm_synth_outcome *draw_outcome(const tdm_synth_column *column, uint32_t word)
{
    uint32_t cell = (uint32_t)((uint64_t)word >> (32 - column->cell_bits));
    uint32_t fraction = word & (uint32_t)(((uint64_t)1 << (32 - column->cell_bits)) - 1);
    if (fraction >= column->cells[cell].threshold)
        cell = column->cells[cell].alias;
    return &column->outcomes[cell];
}

static void add_to_logit(logit_sums *sums, const tdm_synth_outcome *outcome, int32_t group)
{
    sums->first_order += outcome->effect;
    if (group == 0)
        return;
    for (int d = 0; d < TDM_SYNTH_LATENT_DIM; d++) {
        int64_t latent = outcome->latent[d];
        sums->latent[group][d] += latent;
        sums->squares += latent * latent;
    }
}

static int32_t finish_logit(const tdm_synth_model *model, const logit_sums *sums)
{
    int64_t twice = -sums->squares;
    for (int group = 1; group <= TDM_SYNTH_GROUPS; group++)
        for (int d = 0; d < TDM_SYNTH_LATENT_DIM; d++)
            twice += sums->latent[group][d] * sums->latent[group][d];
    int64_t logit = model->bias + sums->first_order + twice / (2 * TDM_SYNTH_LOGIT_ONE);
    if (logit < -TDM_SYNTH_LOGIT_LIMIT)
        return -TDM_SYNTH_LOGIT_LIMIT;
    return logit < TDM_SYNTH_LOGIT_LIMIT ? (int32_t)logit : TDM_SYNTH_LOGIT_LIMIT - 1;
}

static char *put_integer(char *out, int32_t value)
{
    char digits[10];
    int count = 0;
    uint32_t left = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    if (value < 0)
        *out++ = '-';
    do {
        digits[count++] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    while (count > 0)
        *out++ = digits[--count];
    return out;
}

/* The string of an id: a one-to-one mixing (MurmurHash3's finalizer), so ids of a column never
 * share one. */
static char *put_category(char *out, uint32_t id, uint32_t column)
{
    uint32_t mixed = id ^ (column + 1) * 0x9E3779B9u;
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6Bu;
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35u;
    mixed ^= mixed >> 16;
    for (int i = 0; i < 8; i++)
        out[i] = "0123456789abcdef"[mixed >> (28 - 4 * i) & 15];
    return out + 8;
}

size_t tdm_synth_row(const tdm_synth_model *model, uint64_t row, bool label_column, char *out,
                     int32_t *logit, bool *positive)
{
    uint32_t words[ROW_WORDS];
    for (uint32_t group = 0; group < ROW_WORDS / 4; group++) {
        tdm_philox_words four = tdm_random4(model->row_key, row, 0, group);
        memcpy(&words[4 * group], four.words, sizeof four.words);
    }
    logit_sums sums = {.first_order = 0};
    char *end = label_column ? out + 2 : out;
    for (uint32_t c = 0; c < TDM_SYNTH_COLUMNS; c++) {
        const tdm_synth_outcome *outcome = draw_outcome(&model->columns[c], words[c]);
        add_to_logit(&sums, outcome, model->columns[c].group);
        uint32_t offset = (uint32_t)((uint64_t)words[VALUE_WORDS + c] * outcome->width >> 32);
        int32_t value = outcome->base + (int32_t)offset;
        if (outcome->width > 0)
            end = c < TDM_SYNTH_INTEGERS ? put_integer(end, value)
                                         : put_category(end, (uint32_t)value, c);
        *end++ = c + 1 < TDM_SYNTH_COLUMNS ? '\t' : '\n';
    }
    *logit = finish_logit(model, &sums);
    *positive = words[LABEL_WORD] < tdm_synth_probability(model, *logit);
    if (label_column) {
        out[0] = *positive ? '1' : '0';
        out[1] = '\t';
    }
    return (size_t)(end - out);
}
