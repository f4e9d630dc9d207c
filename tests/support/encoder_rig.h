/* An encoder on a CPU backend with a batch and the scalars of a step, for tests. Whatever fails,
 * fails the test. */
#ifndef TDM_TESTS_ENCODER_RIG_H
#define TDM_TESTS_ENCODER_RIG_H

#include "models/encoder.h"
#include "tests/support/ctr_rig.h"

typedef struct tdm_encoder_rig_options {
    tdm_bert_options model;
    tdm_model_inputs inputs;
    tdm_model_setup setup;
    int64_t sequences, tokens, predictions; /* the most of a batch */
    bool pairs;                             /* pair_labels are there */
    bool padded;
    int threads; /* 0: 1 */
    bool deferred;
    bool inference; /* allocated without gradients; batches without labels */
} tdm_encoder_rig_options;

typedef struct tdm_encoder_rig {
    tdm_encoder_rig_options options;
    /* What the functions of ctr_rig.h that read and copy are given. `rig.scalars` is what the last
     * run left. */
    tdm_rig rig;
    int64_t step; /* of the next run, from 1 */
    int64_t epoch;
    double learning_rate, clip_norm;
    double weight_sums[TDM_LOSSES]; /* of the loaded batch; a test may set others */
} tdm_encoder_rig;

#define TDM_RIG_MAX_LENGTH  96
#define TDM_RIG_MAX_CLASSES 8

/* A sequence as it goes into a batch. */
typedef struct tdm_rig_sequence {
    uint64_t sample;
    uint32_t occurrence;
    float weight;
    int64_t length;
    uint32_t ids[TDM_RIG_MAX_LENGTH], types[TDM_RIG_MAX_LENGTH];
    uint32_t
        labels[TDM_RIG_MAX_LENGTH]; /* of tokens to predict or with a class, else TDM_NO_LABEL */
    uint32_t label;                 /* of TDM_HEAD_CLASSES */
    uint32_t pair_label;
    float numbers[TDM_RIG_MAX_CLASSES]; /* of TDM_HEAD_LABELS and TDM_HEAD_REGRESSION */
} tdm_rig_sequence;

tdm_batch_layout tdm_encoder_rig_layout(const tdm_encoder_rig_options *options);

/* Creates pool, backend and model, and allocates and initializes the model. */
void tdm_encoder_rig_init(tdm_encoder_rig *rig, const tdm_encoder_rig_options *options);
void tdm_encoder_rig_deinit(tdm_encoder_rig *rig);

/* The tensor of the batch in host memory, which must be there. */
void *tdm_encoder_rig_tensor(const tdm_encoder_rig *rig, const char *name);

/* Makes a batch of the sequences and puts it on the device. Where nothing may be read, it holds
 * NaN and ids of no row. */
void tdm_encoder_rig_load(tdm_encoder_rig *rig, const tdm_rig_sequence *sequences, int64_t count);

/* Puts the batch in host memory on the device, and sums its weights. */
void tdm_encoder_rig_put(tdm_encoder_rig *rig);

/* Forward and backward of the loaded batch, with dropout. With `accumulate` sums of losses and
 * gradients are added to those of the last run. Answers the step's loss. */
double tdm_encoder_rig_run(tdm_encoder_rig *rig, bool accumulate);

/* The forward pass alone, with dropout where `training`. */
double tdm_encoder_rig_forward(tdm_encoder_rig *rig, bool training);

/* Clips the gradients and updates by AdamW (0.9, 0.999, eps 1e-6), `decay` where parameters have
 * decay. */
void tdm_encoder_rig_update(tdm_encoder_rig *rig, double decay);

/* The first `rows` rows of an output of the model, [rows, columns] in new memory, freed with
 * free().
 */
double *tdm_encoder_rig_output(tdm_encoder_rig *rig, const char *name, int64_t rows,
                               int64_t *columns);

/* Sets a parameter. */
void tdm_encoder_rig_set(tdm_encoder_rig *rig, const tdm_parameter *parameter, const float *values);

/* Random sequences `first` to `first` + `count` - 1 of a seed: 1 to max_length tokens, a sixth of
 * them with a label, the second one always. */
void tdm_encoder_rig_sequences(const tdm_encoder_rig_options *options, uint64_t seed, int64_t first,
                               int64_t count, tdm_rig_sequence *out);

#endif
