#include "trainer/schedule.h"

#include <math.h>
#include <stddef.h>

static const char *const schedule_types[] = {"constant", "linear", "cosine", NULL};

static const tdm_config_key schedule_keys[] = {
    {.name = "type",
     .type = TDM_CONFIG_CHOICE,
     .offset = offsetof(tdm_schedule_options, type),
     .fallback = "constant",
     .choices = schedule_types,
     .help = "how learning rates fall after the warm-up"},
    {.name = "warmup_steps",
     .type = TDM_CONFIG_INT,
     .offset = offsetof(tdm_schedule_options, warmup_steps),
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .help = "steps over which learning rates rise to their full size"},
    {.name = "final",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_schedule_options, final),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "share of the learning rates that linear and cosine end at"},
};

const tdm_config_schema tdm_schedule_schema = {
    .size = sizeof(tdm_schedule_options),
    .keys = schedule_keys,
    .count = sizeof schedule_keys / sizeof schedule_keys[0],
};

/* The share of the decay that lies before the step. With progress p after d steps, all steps are
 * about d / p, so that the share is (d - warmup) / (d / p - warmup). */
static double decayed_share(double done, double warmup, double progress)
{
    double after_warmup = done - warmup;
    if (after_warmup <= 0.0 || progress <= 0.0)
        return 0.0;
    return progress >= 1.0 ? 1.0 : progress * after_warmup / (done - warmup * progress);
}

double tdm_schedule_factor(const tdm_schedule_options *options, int64_t step, double progress)
{
    const double pi = 3.14159265358979323846;
    if (step < options->warmup_steps)
        return (double)step / (double)options->warmup_steps;
    if (options->type == TDM_SCHEDULE_CONSTANT)
        return 1.0;
    double share = decayed_share((double)(step - 1), (double)options->warmup_steps, progress);
    double left =
        options->type == TDM_SCHEDULE_LINEAR ? 1.0 - share : 0.5 * (1.0 + cos(pi * share));
    return options->final + (1.0 - options->final) * left;
}
