/* The planted model behind data/synth_ctr.h: how each column's values are drawn and what they add
 * to the logit. Logits are integers in units of 1/65536, probabilities integers in units of 2^-32.
 */
#ifndef TDM_DATA_SYNTH_CTR_MODEL_H
#define TDM_DATA_SYNTH_CTR_MODEL_H

#include "core/rng.h"
#include "core/status.h"

#include <stdbool.h>

#define TDM_SYNTH_INTEGERS    13
#define TDM_SYNTH_COLUMNS     39
#define TDM_SYNTH_OUTCOMES    512 /* most outcomes of a column */
#define TDM_SYNTH_GROUPS      2   /* of columns that interact with each other */
#define TDM_SYNTH_LATENT_DIM  2
#define TDM_SYNTH_LOGIT_ONE   65536
#define TDM_SYNTH_LOGIT_LIMIT (8 * TDM_SYNTH_LOGIT_ONE) /* logits lie in [-limit, limit) */
#define TDM_SYNTH_SEGMENTS    1024                      /* of the sigmoid */
#define TDM_SYNTH_ROW_BYTES   368                       /* more than any line needs */

/* What one draw from a column can give: a missing value (width 0), or a value of [base, base +
 * width), each as likely. */
typedef struct tdm_synth_outcome {
    int32_t base;
    uint32_t width;
    int32_t effect;
    int32_t latent[TDM_SYNTH_LATENT_DIM];
} tdm_synth_outcome;

/* A cell of an alias table (Vose, "A linear algorithm for generating random numbers with a given
 * distribution", 1991): the cell's own outcome below the threshold, else the alias. */
typedef struct tdm_synth_cell {
    uint32_t threshold;
    uint16_t alias;
} tdm_synth_cell;

typedef struct tdm_synth_column {
    int32_t count;     /* of outcomes */
    int32_t cell_bits; /* 1 << cell_bits cells, as many as outcomes or more */
    int32_t group;     /* 1 .. TDM_SYNTH_GROUPS, or 0 */
    uint32_t probability[TDM_SYNTH_OUTCOMES];
    tdm_synth_outcome outcomes[TDM_SYNTH_OUTCOMES];
    tdm_synth_cell cells[TDM_SYNTH_OUTCOMES];
} tdm_synth_column;

typedef struct tdm_synth_model {
    tdm_philox_key row_key;
    int32_t bias;
    tdm_synth_column columns[TDM_SYNTH_COLUMNS];
    uint32_t sigmoid[TDM_SYNTH_SEGMENTS + 1]; /* at the segments' ends */
} tdm_synth_model;

/* The caller frees *out with tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_synth_model_create(uint64_t seed, tdm_synth_model **out);

/* The probability that a row of this logit is positive: the sigmoid within 3e-6, rising. */
uint32_t tdm_synth_probability(const tdm_synth_model *model, int32_t logit);

/* Writes row `row` at `out`, which has room for TDM_SYNTH_ROW_BYTES, and returns the line's length;
 * without the label where `label_column` is false. */
size_t tdm_synth_row(const tdm_synth_model *model, uint64_t row, bool label_column, char *out,
                     int32_t *logit, bool *positive);

#endif
