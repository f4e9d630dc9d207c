#include "trainer/schedule.h"

#include <math.h>
#include <stddef.h>

static const char *const schedule_types[] = {"constant", "linear", "cosine", "wsd", NULL};

static const tdm_config_key schedule_keys[] = {
    {.name = "type",
     .type = TDM_CONFIG_CHOICE,
     .offset = offsetof(tdm_schedule_options, type),
     .fallback = "constant",
     .choices = schedule_types,
     .help =
         "how learning rates fall after the warm-up: not at all, evenly, as half a cosine, or at "
         "the end only"},
    {.name = "warmup_steps",
     .type = TDM_CONFIG_INT,
     .offset = offsetof(tdm_schedule_options, warmup_steps),
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .help = "steps over which learning rates rise to their full size"},
    {.name = "warmup_share",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_schedule_options, warmup_share),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "share of the training over which learning rates rise, in place of warmup_steps"},
    {.name = "decay_share",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_schedule_options, decay_share),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "of wsd: share of the training, at its end, over which learning rates fall by 1 - "
             "sqrt; 0: 0.1"},
    {.name = "final",
     .type = TDM_CONFIG_FLOAT,
     .offset = offsetof(tdm_schedule_options, final),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "share of the learning rates that linear, cosine and wsd end at"},
};

const tdm_config_schema tdm_schedule_schema = {
    .size = sizeof(tdm_schedule_options),
    .keys = schedule_keys,
    .count = sizeof schedule_keys / sizeof schedule_keys[0],
};

static tdm_status refuse(const tdm_config_node *section, const char *key, const char *message)
{
    const tdm_config_node *node = tdm_config_get(section, key);
    return node == NULL ? tdm_fail(TDM_E_CONFIG, "schedule.%s: %s", key, message)
                        : tdm_config_fail(node, "%s", message);
}

tdm_status tdm_schedule_resolve(const tdm_config_node *node, tdm_schedule_options *options)
{
    if (options->warmup_steps > 0 && options->warmup_share > 0.0)
        return refuse(node, "warmup_share", "warmup_steps is set too: remove one of them");
    if (options->decay_share > 0.0 && options->type != TDM_SCHEDULE_WSD)
        return refuse(node, "decay_share",
                      "only wsd has one, others decay from the warm-up on: remove it, or choose "
                      "type: wsd");
    if (options->type == TDM_SCHEDULE_WSD && options->decay_share == 0.0)
        options->decay_share = 0.1;
    if (options->warmup_share + options->decay_share > 1.0 + 1e-9)
        return refuse(node, "warmup_share", "with decay_share it is more than the whole training");
    return TDM_OK;
}

bool tdm_schedule_needs_progress(const tdm_schedule_options *options)
{
    return options->type != TDM_SCHEDULE_CONSTANT || options->warmup_share > 0.0;
}

/* The share of the decay that lies before the step. With progress p after d steps, all steps are
 * about d / p, so that the share is (d - warmup) / (d / p - warmup). */
static double decayed_share(double done, double warmup, double progress)
{
    double after_warmup = done - warmup;
    if (after_warmup <= 0.0 || progress <= 0.0)
        return 0.0;
    return progress >= 1.0 ? 1.0 : progress * after_warmup / (done - warmup * progress);
}

/* How far `progress` is from `begin` to 1. */
static double share_behind(double begin, double progress)
{
    if (progress <= begin)
        return 0.0;
    return progress >= 1.0 ? 1.0 : (progress - begin) / (1.0 - begin);
}

static double left_at(int type, double share)
{
    const double pi = 3.14159265358979323846;
    switch ((tdm_schedule_type)type) {
    case TDM_SCHEDULE_CONSTANT:
        break;
    case TDM_SCHEDULE_LINEAR:
        return 1.0 - share;
    case TDM_SCHEDULE_COSINE:
        return 0.5 * (1.0 + cos(pi * share));
    case TDM_SCHEDULE_WSD:
        return 1.0 - sqrt(share);
    }
    return 1.0;
}

double tdm_schedule_factor(const tdm_schedule_options *options, int64_t step, double progress)
{
    if (step < options->warmup_steps)
        return (double)step / (double)options->warmup_steps;
    if (options->warmup_share > 0.0 && progress < options->warmup_share)
        return fmax(progress, 0.0) / options->warmup_share;
    if (options->type == TDM_SCHEDULE_CONSTANT)
        return 1.0;
    double share = options->warmup_share > 0.0
                       ? share_behind(options->warmup_share, progress)
                       : decayed_share((double)(step - 1), (double)options->warmup_steps, progress);
    if (options->type == TDM_SCHEDULE_WSD)
        share = fmin(share, share_behind(1.0 - options->decay_share, progress));
    return options->final + (1.0 - options->final) * left_at(options->type, share);
}
