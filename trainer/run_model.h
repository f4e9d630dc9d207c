/* A trained model, loaded from a run folder to evaluate or predict with. */
#ifndef TDM_TRAINER_RUN_MODEL_H
#define TDM_TRAINER_RUN_MODEL_H

#include "trainer/scorer.h"

typedef struct tdm_run_options {
    /* "best", "last" or a step; NULL: best if there is one, else the last */
    const char *checkpoint;
    int threads;   /* 0: one a core */
    tdm_use use;   /* any but TDM_USE_TRAINING */
    int precision; /* 1 + tdm_precision; 0: the recipe's */
} tdm_run_options;

/* Everything is the run's; borrow what you need. */
typedef struct tdm_run {
    char *folder;
    int64_t step; /* of the checkpoint */
    tdm_recipe *recipe;
    tdm_record_format *format;
    tdm_pool *pool;
    tdm_backend *backend;
    tdm_task task;
    tdm_model *model; /* allocated for inference, weights loaded */
    tdm_scorer *scorer;
} tdm_run;

/* Opens the run and loads the weights of the chosen checkpoint. Errors name what is missing or
 * damaged. */
TDM_MUST_CHECK tdm_status tdm_run_open(const char *run_folder, const tdm_run_options *options,
                                       tdm_run **out);
/* NULL is allowed. */
void tdm_run_close(tdm_run *run);

/* Opens files (globs, "-") as records of the run's own format. `eager`: see tdm_input_options. */
TDM_MUST_CHECK tdm_status tdm_run_open_input(const tdm_run *run, const tdm_strings *files,
                                             bool eager, const atomic_bool *cancel,
                                             tdm_input **out);

/* The device that runs a trained model: the recipe's (NULL: any), or where it was trained on a GPU
 * and there is none the CPU, which tdm_info() tells. */
TDM_MUST_CHECK tdm_status tdm_run_create_backend(const tdm_recipe *recipe, tdm_pool *pool,
                                                 tdm_backend **out);

#endif
