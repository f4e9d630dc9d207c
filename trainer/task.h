/* Tasks: what a recipe's `task` makes of records, of batches and of results. One table a task; the
 * rest of the trainer knows no more of them. Private to this folder. */
#ifndef TDM_TRAINER_TASK_H
#define TDM_TRAINER_TASK_H

#include "core/featurizer.h"
#include "data/input.h"
#include "models/encoder.h"
#include "trainer/metrics.h"
#include "trainer/recipe.h"

typedef enum tdm_use {
    TDM_USE_TRAINING = 0,
    TDM_USE_EVALUATION = 1,
    TDM_USE_PREDICTION = 2, /* labels are not looked at */
    TDM_USE_VECTORS = 3,    /* classify: likewise, and the model is the encoder without a head */
} tdm_use;

typedef struct tdm_task_type tdm_task_type;

/* A task that was opened. Everything is its own. */
typedef struct tdm_task {
    const tdm_task_type *type;
    tdm_featurizer *featurizer;
    tdm_model_inputs inputs;
    tdm_batch_layout model_batch; /* what the model reads at a time: a whole batch or a part of it,
                                     see batch_parts.h */
    const char *output; /* the model's, of which there is a copy for the metrics; NULL: none */
    tdm_metrics_spec metrics;
    tdm_feature_spec *spec;          /* ctr */
    tdm_tokenizer *tokenizer;        /* text */
    tdm_label_spec *labels;          /* classify */
    const tdm_bert_options *encoder; /* text: the recipe's, which lives as long; else NULL */
    tdm_model_field *fields;         /* ctr: of inputs */
} tdm_task;

/* What came of a batch, in host memory. */
typedef struct tdm_outcome {
    const tdm_batch *batch;
    const tdm_step_scalars *scalars;
    const float *output; /* of the task's output, row by row; NULL: none */
} tdm_outcome;

struct tdm_task_type {
    /* From a recipe, which is completed with what the input says, and that input. */
    tdm_status (*open)(tdm_task *task, tdm_recipe *recipe, tdm_input *input, tdm_pool *pool,
                       tdm_use use);
    /* From a run folder; *format is how its records are written. */
    tdm_status (*load)(tdm_task *task, const tdm_recipe *recipe, const char *folder, tdm_pool *pool,
                       tdm_use use, tdm_record_format **format);
    /* Writes to the run folder what load needs. */
    tdm_status (*save)(const tdm_task *task, const tdm_input *input, const char *folder);
    /* TDM_E_CONFIG unless the folder's is the same. */
    tdm_status (*check)(const tdm_task *task, const tdm_input *input, const char *folder);
    /* Sets the losses' weight_sum; NULL: the model makes it. */
    void (*weigh)(const tdm_task *task, const tdm_batch *batch, tdm_step_scalars *scalars);
    tdm_status (*add)(const tdm_task *task, tdm_metrics *metrics, const tdm_outcome *outcome);
};

const tdm_task_type *tdm_task_type_of(const tdm_recipe *recipe);

/* On failure nothing is left to close. */
TDM_MUST_CHECK tdm_status tdm_task_open(tdm_recipe *recipe, tdm_input *input, tdm_pool *pool,
                                        tdm_use use, tdm_task *out);
TDM_MUST_CHECK tdm_status tdm_task_load(const tdm_recipe *recipe, const char *folder,
                                        tdm_pool *pool, tdm_use use, tdm_record_format **format,
                                        tdm_task *out);
void tdm_task_close(tdm_task *task);

/* Plans the recipe's model for the task; see tdm_model_create(). */
TDM_MUST_CHECK tdm_status tdm_task_model(const tdm_task *task, const tdm_recipe *recipe,
                                         tdm_backend *backend, tdm_model **out);

extern const tdm_task_type tdm_ctr_task;
extern const tdm_task_type tdm_masked_task;
extern const tdm_task_type tdm_labels_task;

/* The feature spec of a ctr run folder and the shape of its records; see
 * tdm_feature_spec_load(). */
TDM_MUST_CHECK tdm_status tdm_run_load_features(const char *run_folder, tdm_feature_spec **spec,
                                                tdm_record_format **format);

#endif
