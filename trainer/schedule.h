/* The learning-rate schedule: a factor for each step, a pure function of how far training is. */
#ifndef TDM_TRAINER_SCHEDULE_H
#define TDM_TRAINER_SCHEDULE_H

#include "core/config.h"

typedef enum tdm_schedule_type {
    TDM_SCHEDULE_CONSTANT = 0,
    TDM_SCHEDULE_LINEAR = 1,
    TDM_SCHEDULE_COSINE = 2, /* half a cosine (Loshchilov and Hutter, SGDR, 2017), no restarts */
    /* warm-up, stable, decay (Hu et al., MiniCPM, 2024); the decay is 1 − √share (Hägele et al.,
     * 2024), as ModernBERT's */
    TDM_SCHEDULE_WSD = 3,
} tdm_schedule_type;

typedef struct tdm_schedule_options {
    int type;             /* tdm_schedule_type */
    int64_t warmup_steps; /* the factor rises evenly to 1 at this step */
    double warmup_share;  /* in place of warmup_steps: of the training; it rises to 1 there */
    double decay_share;   /* wsd: the share of the training, at its end, that is decay */
    double final;         /* the factor that linear, cosine and wsd end at */
} tdm_schedule_options;

extern const tdm_config_schema tdm_schedule_schema;

/* Completes options that were bound from `node`, the section (NULL is allowed): decay_share 0 of
 * wsd becomes 0.1. TDM_E_CONFIG where both warmup_steps and warmup_share are set, where decay_share
 * is set and the type is not wsd, or where both shares are more than 1 together. */
TDM_MUST_CHECK tdm_status tdm_schedule_resolve(const tdm_config_node *node,
                                               tdm_schedule_options *options);

/* The factor depends on the progress, so that the length of the training has to be known. */
bool tdm_schedule_needs_progress(const tdm_schedule_options *options);

/* The factor of the learning rates at `step`, 1 for the first. `progress` in [0, 1] is the share of
 * the training that lies before it: (step - 1) / max_steps, or without max_steps (epoch + share of
 * the epoch's bytes consumed) / epochs, epoch from 0.
 *
 * The warm-up is step / warmup_steps up to there, or progress / warmup_share up to there, which is
 * 0 at the first step. A warm-up that is longer than the training just does not end.
 *
 * Decay then runs from 1 at the end of the warm-up to `final` at progress 1; with warmup_steps the
 * progress at the warm-up's end is taken from the mean progress of a step so far. With max_steps =
 * N and w = warmup_steps this is 1 - (1 - final) (step - 1 - w) / (N - w) for linear. wsd stays at
 * 1 until progress is 1 - decay_share, or the warm-up ends if that is later. */
double tdm_schedule_factor(const tdm_schedule_options *options, int64_t step, double progress);

#endif
