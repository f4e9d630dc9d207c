/* A recipe's records, read in order without a model: what check, features and the benchmark of
 * reading share. */
#ifndef TDM_CLI_READING_H
#define TDM_CLI_READING_H

#include "cli/options.h"
#include "data/block_stream.h"
#include "data/pipeline.h"
#include "features/ctr_featurizer.h"
#include "text/label_featurizer.h"
#include "text/text_featurizer.h"
#include "trainer/recipe.h"

typedef struct tdm_reading {
    tdm_recipe *recipe;
    tdm_input *input;
    tdm_feature_spec *spec;   /* ctr */
    tdm_tokenizer *tokenizer; /* mlm, classify */
    tdm_label_spec *labels;   /* classify */
    tdm_pool *pool;
    tdm_featurizer *featurizer;
    tdm_extractor *extractor;
} tdm_reading;

/* The first plain argument is the recipe, the others files that replace data.train. */
tdm_recipe_arguments tdm_command_recipe_arguments(const tdm_command *command);

/* `threads` 0: one a core; below 0: what the recipe says. `use` is of ctr; labels of classify are
 * read, and its classes found. On failure nothing is left to close. */
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

/* Leaves out what data.eval holds out, as a training does. Before anything is read. */
TDM_MUST_CHECK tdm_status tdm_reading_select_training(tdm_reading *reading);

/* How the batches of a recipe are read. */
typedef struct tdm_batch_run {
    int64_t epochs;
    const char *cache_path; /* NULL: no cache; where there is none yet it is written */
    const atomic_bool *cancel;
    /* Looks at a batch, or the end of an epoch; *stop ends the run early. */
    tdm_status (*take)(void *context, const tdm_delivery *delivery, bool *stop);
    void *context;
} tdm_batch_run;

/* Runs the records through the pipeline of a training, from the beginning on, in the order of its
 * epochs. Stops with TDM_E_CANCELLED where `cancel` (may be NULL) became true. */
TDM_MUST_CHECK tdm_status tdm_reading_batches(tdm_reading *reading, const tdm_batch_run *run);

#endif
