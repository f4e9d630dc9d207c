/* A recipe's records, read in order without a model: what check, features and the benchmark of
 * reading share. */
#ifndef TDM_CLI_READING_H
#define TDM_CLI_READING_H

#include "cli/options.h"
#include "data/block_stream.h"
#include "features/ctr_featurizer.h"
#include "trainer/recipe.h"

typedef struct tdm_reading {
    tdm_recipe *recipe;
    tdm_input *input;
    tdm_feature_spec *spec;
    tdm_pool *pool;
    tdm_featurizer *featurizer;
    tdm_extractor *extractor;
} tdm_reading;

/* The first plain argument is the recipe, the others files that replace data.train. */
tdm_recipe_arguments tdm_command_recipe_arguments(const tdm_command *command);

/* `threads` 0: one a core; below 0: what the recipe says. On failure nothing is left to close. */
TDM_MUST_CHECK tdm_status tdm_reading_open(const char *recipe,
                                           const tdm_recipe_arguments *arguments, int threads,
                                           tdm_ctr_use use, const atomic_bool *cancel,
                                           tdm_reading *out);
void tdm_reading_close(tdm_reading *reading);

/* Calls `take` for each block in order, and `progress` (may be NULL) with the rows and the share of
 * stored bytes behind it. Stops with TDM_E_CANCELLED where `cancel` (may be NULL) became true. */
TDM_MUST_CHECK tdm_status
tdm_reading_blocks(tdm_reading *reading, const atomic_bool *cancel,
                   tdm_status (*take)(void *context, const tdm_extract *block),
                   void (*progress)(void *context, int64_t rows, double share),
                   void *progress_context, void *context);

#endif
