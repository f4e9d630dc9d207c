/* The learning-rate schedule: a factor for each step, a pure function of how far training is. */
#ifndef TDM_TRAINER_SCHEDULE_H
#define TDM_TRAINER_SCHEDULE_H

#include "core/config.h"

typedef enum tdm_schedule_type {
    TDM_SCHEDULE_CONSTANT = 0,
    TDM_SCHEDULE_LINEAR = 1,
    TDM_SCHEDULE_COSINE = 2, /* half a cosine (Loshchilov and Hutter, SGDR, 2017), no restarts */
} tdm_schedule_type;

typedef struct tdm_schedule_options {
    int type;             /* tdm_schedule_type */
    int64_t warmup_steps; /* the factor rises evenly to 1 at this step */
    double final;         /* the factor that linear and cosine end at */
} tdm_schedule_options;

extern const tdm_config_schema tdm_schedule_schema;

/* The factor of the learning rates at `step`, 1 for the first. `progress` in [0, 1] is the share of
 * the training that lies before it: (step - 1) / max_steps, or without max_steps (epoch + share of
 * the epoch's bytes consumed) / epochs, epoch from 0.
 *
 * step / warmup_steps up to there. Decay then runs from 1 at the end of the warm-up to `final` at
 * progress 1; the progress at the warm-up's end is taken from the mean progress of a step so far.
 * With max_steps = N and w = warmup_steps this is 1 - (1 - final) (step - 1 - w) / (N - w) for
 * linear. */
double tdm_schedule_factor(const tdm_schedule_options *options, int64_t step, double progress);

#endif
