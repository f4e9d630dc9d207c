#include "data/synth_ctr_model.h"

#include "core/memory.h"

/* A column's distribution and its part in the planted model. */
typedef struct column_plan {
    uint16_t missing_permille;
    uint16_t negatives; /* integers: -1 .. -negatives occur */
    int32_t size;       /* integers: how many ranges above 2; categories: how many ids */
    uint8_t exponent;   /* in quarters: rank or value x has weight (x + shift)^-(exponent / 4) */
    uint8_t shift;
    uint8_t effect; /* standard deviation of the first-order effect, in 1/100 logit */
    uint8_t group;
} column_plan;

/* Missing rates and cardinalities follow the Criteo Kaggle data, as far as a million ids. */
static const column_plan plans[TDM_SYNTH_COLUMNS] = {
    {454, 0, 10, 5, 1, 30, 1},     /* I1 */
    {0, 3, 14, 3, 1, 30, 2},       /* I2 */
    {215, 0, 13, 4, 2, 20, 0},     /* I3 */
    {217, 0, 9, 3, 2, 15, 0},      /* I4 */
    {26, 0, 18, 3, 4, 30, 1},      /* I5 */
    {224, 0, 16, 4, 8, 25, 2},     /* I6 */
    {43, 0, 12, 5, 2, 30, 0},      /* I7 */
    {1, 0, 11, 3, 4, 0, 0},        /* I8 */
    {43, 0, 13, 3, 8, 15, 0},      /* I9 */
    {454, 1, 4, 6, 1, 10, 0},      /* I10 */
    {43, 0, 8, 5, 1, 30, 0},       /* I11 */
    {765, 0, 11, 6, 1, 0, 0},      /* I12 */
    {217, 0, 12, 4, 2, 20, 0},     /* I13 */
    {0, 0, 1460, 5, 1, 25, 0},     /* C1 */
    {0, 0, 583, 5, 1, 30, 1},      /* C2 */
    {34, 0, 1000000, 5, 1, 20, 1}, /* C3 */
    {34, 0, 900000, 5, 4, 20, 0},  /* C4 */
    {0, 0, 305, 6, 1, 15, 0},      /* C5 */
    {121, 0, 24, 4, 1, 20, 1},     /* C6 */
    {0, 0, 12517, 5, 2, 15, 0},    /* C7 */
    {0, 0, 633, 5, 2, 10, 0},      /* C8 */
    {0, 0, 3, 6, 1, 15, 2},        /* C9 */
    {0, 0, 93145, 5, 2, 25, 2},    /* C10 */
    {0, 0, 5683, 4, 4, 20, 0},     /* C11 */
    {34, 0, 800000, 5, 4, 15, 0},  /* C12 */
    {0, 0, 3194, 5, 2, 0, 0},      /* C13 */
    {0, 0, 27, 4, 1, 25, 1},       /* C14 */
    {0, 0, 14992, 5, 3, 15, 0},    /* C15 */
    {34, 0, 1000000, 6, 4, 20, 0}, /* C16 */
    {0, 0, 10, 4, 1, 25, 2},       /* C17 */
    {0, 0, 5652, 5, 2, 25, 0},     /* C18 */
    {440, 0, 2173, 5, 2, 10, 0},   /* C19 */
    {440, 0, 4, 4, 1, 10, 1},      /* C20 */
    {34, 0, 1000000, 5, 2, 10, 0}, /* C21 */
    {762, 0, 18, 6, 1, 0, 0},      /* C22 */
    {0, 0, 15, 4, 1, 20, 2},       /* C23 */
    {34, 0, 286181, 6, 6, 20, 0},  /* C24 */
    {440, 0, 105, 5, 1, 15, 2},    /* C25 */
    {440, 0, 142572, 6, 4, 10, 0}, /* C26 */
};

#define BIAS            (-100000) /* of the logit: -1.526 */
#define LATENT_PERCENT  32        /* standard deviation of a latent component, in 1/100 */
#define HEAD_IDS        500       /* ids drawn one by one; the rest in octaves */
#define EFFECT_ROWS     10000     /* values expected less often in EFFECT_OF_ROWS have no effect */
#define EFFECT_OF_ROWS  2000000
#define MODEL_KEY_LAYER 1

/* Where ranges of integers start. Each is the smallest integer at which floor(ln(x)^2), the usual
 * bin of Criteo's integers, reaches 1 + n (n + 1) / 2, so no bin lies across two ranges. */
static const int32_t range_starts[] = {3,     5,     8,      15,     28,    55,   109,
                                       219,   439,   883,    1779,   3589,  7246, 14643,
                                       29603, 59875, 121140, 245162, 496294};

static uint64_t square_root(uint64_t x)
{
    uint64_t root = 0;
    for (int bit = 31; bit >= 0; bit--) {
        uint64_t candidate = root | (uint64_t)1 << bit;
        if (candidate * candidate <= x)
            root = candidate;
    }
    return root;
}

/* 2^46 / x^(quarters / 4), for 1 <= x < 2^21 and quarters <= 7. */
static uint64_t power_weight(uint64_t x, unsigned quarters)
{
    uint64_t root = square_root(x << 32); /* x^(1/2), 16 binary digits */
    uint64_t power = (uint64_t)1 << 16;
    if ((quarters & 1) != 0)
        power = square_root(root << 16);
    if ((quarters & 2) != 0)
        power = power * root >> 16;
    if ((quarters & 4) != 0)
        power *= x;
    return ((uint64_t)1 << 62) / power;
}

/* Weights of a column being planned, one an outcome; outcome 0 is the missing value and has none.
 */
typedef struct outcome_weights {
    uint64_t values[TDM_SYNTH_OUTCOMES];
    uint64_t total;
} outcome_weights;

static void add_outcome(tdm_synth_column *column, outcome_weights *weights, int32_t base,
                        uint32_t width, uint64_t weight)
{
    column->outcomes[column->count] = (tdm_synth_outcome){.base = base, .width = width};
    weights->values[column->count] = weight;
    weights->total += weight;
    column->count++;
}

/* [base, base + width), by the weight of its middle. */
static void add_range(tdm_synth_column *column, outcome_weights *weights, const column_plan *plan,
                      int32_t base, uint32_t width)
{
    uint64_t middle = (uint64_t)base + (width - 1) / 2 + plan->shift;
    add_outcome(column, weights, base, width, width * power_weight(middle, plan->exponent));
}

static void list_integers(tdm_synth_column *column, outcome_weights *weights,
                          const column_plan *plan)
{
    for (int32_t value = -plan->negatives; value < 0; value++) {
        uint64_t one = power_weight(1u + plan->shift, plan->exponent);
        add_outcome(column, weights, value, 1, one >> -value);
    }
    for (int32_t value = 0; value < range_starts[0]; value++)
        add_range(column, weights, plan, value, 1);
    for (int32_t i = 0; i < plan->size; i++)
        add_range(column, weights, plan, range_starts[i],
                  (uint32_t)(range_starts[i + 1] - range_starts[i]));
}

static void list_ids(tdm_synth_column *column, outcome_weights *weights, const column_plan *plan)
{
    for (int32_t id = 0; id < plan->size && id < HEAD_IDS; id++)
        add_range(column, weights, plan, id, 1);
    for (int32_t id = HEAD_IDS; id < plan->size; id *= 2) {
        int32_t width = id < plan->size - id ? id : plan->size - id;
        add_range(column, weights, plan, id, (uint32_t)width);
    }
}

/* Scales weights to probabilities that add up to 2^32. What rounding leaves goes to the likeliest.
 */
static void set_probabilities(tdm_synth_column *column, const outcome_weights *weights,
                              unsigned missing_permille)
{
    const uint64_t all = (uint64_t)1 << 32;
    uint64_t missing = all * missing_permille / 1000;
    uint64_t left = all - missing;
    int32_t likeliest = 1;
    column->probability[0] = (uint32_t)missing;
    for (int32_t i = 1; i < column->count; i++) {
        unsigned __int128 share = (unsigned __int128)weights->values[i] * (all - missing);
        column->probability[i] = (uint32_t)(share / weights->total);
        left -= column->probability[i];
        if (column->probability[i] > column->probability[likeliest])
            likeliest = i;
    }
    column->probability[likeliest] += (uint32_t)left;
}

static void build_alias_table(tdm_synth_column *column)
{
    while (1 << column->cell_bits < column->count)
        column->cell_bits++;
    const int32_t cells = 1 << column->cell_bits;
    const uint32_t full = (uint32_t)((uint64_t)1 << (32 - column->cell_bits));
    uint32_t left[TDM_SYNTH_OUTCOMES];
    uint16_t small[TDM_SYNTH_OUTCOMES], large[TDM_SYNTH_OUTCOMES];
    int32_t smalls = 0, larges = 0;
    for (int32_t i = 0; i < cells; i++) {
        left[i] = i < column->count ? column->probability[i] : 0;
        if (left[i] < full)
            small[smalls++] = (uint16_t)i;
        else
            large[larges++] = (uint16_t)i;
    }
    while (smalls > 0) {
        uint16_t receiver = small[--smalls], giver = large[larges - 1];
        column->cells[receiver] = (tdm_synth_cell){.threshold = left[receiver], .alias = giver};
        left[giver] -= full - left[receiver];
        if (left[giver] < full) {
            small[smalls++] = giver;
            larges--;
        }
    }
    while (larges > 0)
        column->cells[large[--larges]].threshold = full;
}

/* About normal, standard deviation 209, |draw| <= 1024. */
static int32_t draw_normal(tdm_philox_key key, uint64_t sample, uint32_t number)
{
    tdm_philox_words words = tdm_random4(key, sample, 0, number);
    int32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int32_t)(words.words[i] & 0xffff) + (int32_t)(words.words[i] >> 16);
    return (sum - 4 * 65535) / 256;
}

/* Centres the effects that are set under the column's distribution and scales them to a standard
 * deviation of `percent` / 100 logits: interactions then add nothing that one column explains, and
 * the logit's variance does not depend on the seed. */
static void standardise(const tdm_synth_column *column, const bool *has_effect, int64_t *effects,
                        int64_t percent)
{
    int64_t mass = 0, sum = 0;
    uint64_t squares = 0;
    for (int32_t i = 0; i < column->count; i++) {
        if (has_effect[i]) {
            mass += column->probability[i];
            sum += column->probability[i] * effects[i];
        }
    }
    for (int32_t i = 0; i < column->count; i++) {
        if (has_effect[i]) {
            effects[i] -= sum / mass;
            squares += column->probability[i] * (uint64_t)(effects[i] * effects[i]);
        }
    }
    int64_t deviation = (int64_t)square_root(squares >> 16); /* 8 binary digits */
    if (deviation == 0)
        deviation = 1;
    for (int32_t i = 0; i < column->count; i++)
        effects[i] = effects[i] * percent * (256 * TDM_SYNTH_LOGIT_ONE / 100) / deviation;
}

/* Effect number `number` of every outcome that is frequent enough. Those of integers follow a
 * random walk, so that near numbers act alike. */
static void draw_effects(tdm_philox_key key, uint32_t index, const tdm_synth_column *column,
                         uint32_t number, int64_t percent, int64_t *effects)
{
    const uint32_t least = (uint32_t)(((uint64_t)1 << 32) * EFFECT_ROWS / EFFECT_OF_ROWS);
    bool has_effect[TDM_SYNTH_OUTCOMES];
    int64_t walk = 0;
    for (int32_t i = 0; i < column->count; i++) {
        int64_t draw = draw_normal(key, (uint64_t)index << 32 | (uint32_t)i, number);
        if (index < TDM_SYNTH_INTEGERS && i > 0)
            draw = walk += draw;
        has_effect[i] = column->probability[i] >= least &&
                        (index < TDM_SYNTH_INTEGERS || column->outcomes[i].width <= 1);
        effects[i] = has_effect[i] ? draw : 0;
    }
    standardise(column, has_effect, effects, percent);
}

static void build_column(tdm_philox_key key, uint32_t index, tdm_synth_column *column)
{
    const column_plan *plan = &plans[index];
    outcome_weights weights = {.total = 0};
    add_outcome(column, &weights, 0, 0, 0);
    if (index < TDM_SYNTH_INTEGERS)
        list_integers(column, &weights, plan);
    else
        list_ids(column, &weights, plan);
    set_probabilities(column, &weights, plan->missing_permille);
    build_alias_table(column);

    int64_t effects[TDM_SYNTH_OUTCOMES];
    draw_effects(key, index, column, 0, plan->effect, effects);
    for (int32_t i = 0; i < column->count; i++)
        column->outcomes[i].effect = (int32_t)effects[i];
    column->group = plan->group;
    for (uint32_t d = 0; d < TDM_SYNTH_LATENT_DIM && column->group > 0; d++) {
        draw_effects(key, index, column, d + 1, LATENT_PERCENT, effects);
        for (int32_t i = 0; i < column->count; i++)
            column->outcomes[i].latent[d] = (int32_t)effects[i];
    }
}

/* Powers of e^(-1/64) by repeated products give the sigmoid at every 1/64 of a logit. */
static void build_sigmoid(uint32_t *sigmoid)
{
    const uint64_t ratio = 18160753814917686419u; /* e^(-1/64), 64 binary digits */
    const int32_t middle = TDM_SYNTH_SEGMENTS / 2;
    uint64_t power = UINT64_MAX;
    for (int32_t i = 0; i <= middle; i++) {
        uint64_t one_plus_power = ((uint64_t)1 << 31) + (power >> 33);
        uint64_t upper = ((uint64_t)1 << 63) / one_plus_power;
        sigmoid[middle + i] = (uint32_t)upper;
        sigmoid[middle - i] = (uint32_t)(((uint64_t)1 << 32) - upper);
        power = (uint64_t)((unsigned __int128)power * ratio >> 64);
    }
}

tdm_status tdm_synth_model_create(uint64_t seed, tdm_synth_model **out)
{
    tdm_synth_model *model;
    TDM_TRY(tdm_alloc(1, sizeof *model, &model));
    tdm_philox_key key = tdm_philox_make_key(seed, TDM_PURPOSE_SYNTH, MODEL_KEY_LAYER);
    model->row_key = tdm_philox_make_key(seed, TDM_PURPOSE_SYNTH, 0);
    model->bias = BIAS;
    for (uint32_t i = 0; i < TDM_SYNTH_COLUMNS; i++)
        build_column(key, i, &model->columns[i]);
    build_sigmoid(model->sigmoid);
    *out = model;
    return TDM_OK;
}
