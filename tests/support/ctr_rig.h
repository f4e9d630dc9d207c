/* A CTR model on a CPU backend with a batch and the scalars of a step, for tests. Whatever fails,
 * fails the test. */
#ifndef TDM_TESTS_CTR_RIG_H
#define TDM_TESTS_CTR_RIG_H

#include "models/ctr_models.h"

/* Rows as a featurizer would make them, [batch_size] each. */
typedef struct tdm_rig_rows {
    int64_t rows;        /* valid ones */
    const uint32_t *ids; /* [fields, batch_size] */
    const float *dense;  /* [batch_size, dense_count] */
    const float *label, *weight;
} tdm_rig_rows;

typedef struct tdm_rig_options {
    const tdm_model_type *type;
    const void *options;
    tdm_model_inputs inputs;
    int64_t batch_size;
    uint64_t seed;
    int threads;
    bool deferred;
    bool inference; /* batches without labels and distinct ids */
} tdm_rig_options;

typedef struct tdm_rig {
    tdm_rig_options options;
    tdm_pool *pool;
    tdm_backend *backend;
    tdm_batch_layout layout;
    tdm_model *model;
    unsigned char *host_batch;
    unsigned char *batch;     /* on the device */
    tdm_step_scalars scalars; /* as read back by the last tdm_rig_step */
    tdm_step_scalars *device_scalars;
    float *moments[4]; /* dense m, v, sparse m, v; on the device */
} tdm_rig;

/* The layout that a CTR featurizer has. */
tdm_batch_layout tdm_rig_layout(const tdm_model_inputs *inputs, int64_t batch_size, bool inference);

/* Creates pool, backend and model, and allocates and initializes the model. */
void tdm_rig_init(tdm_rig *rig, const tdm_rig_options *options);
void tdm_rig_deinit(tdm_rig *rig);

/* Puts a batch with its distinct ids on the device. */
void tdm_rig_load(tdm_rig *rig, const tdm_rig_rows *rows);

/* Forward, backward where `training`, of the loaded batch in step `step` (from 1) of epoch `epoch`.
 * Answers the loss. */
double tdm_rig_run(tdm_rig *rig, int64_t step, int64_t epoch, bool training);

/* An update by Adam (0.9, 0.999, 1e-8) of dense and sparse parameters. */
void tdm_rig_update(tdm_rig *rig);

/* Copies `bytes` off the device into `host`. */
void tdm_rig_copy_out(tdm_rig *rig, void *host, const void *device, size_t bytes);

/* The first `count` probabilities of the last run. */
void tdm_rig_probabilities(tdm_rig *rig, float *host, int64_t count);

const tdm_parameter *tdm_rig_parameter(const tdm_rig *rig, const char *name);
float *tdm_rig_values(const tdm_rig *rig, const tdm_parameter *parameter); /* on the device */

/* Values and gradients of a parameter in new memory, freed with free(); a sparse gradient as the
 * whole table. */
double *tdm_rig_read_values(tdm_rig *rig, const tdm_parameter *parameter);
double *tdm_rig_read_gradients(tdm_rig *rig, const tdm_parameter *parameter);

/* Random rows in new memory, freed with tdm_rig_rows_free(). A third of a field's ids is below ten,
 * so that ids repeat, and all are below its table's rows. */
tdm_rig_rows tdm_rig_random_rows(const tdm_rig_options *options, int64_t rows, uint64_t seed);
void tdm_rig_rows_free(tdm_rig_rows *rows);

#endif
