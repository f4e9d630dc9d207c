/* The `optimizer` section: a rule each for dense parameters and for tables, or in tasks of text,
 * whose models have no tables, one rule. */
#include "trainer/optimizer.h"

#include <stddef.h>
#include <stdio.h>

static const char *const update_types[] = {"sgd", "adagrad", "adam", "adamw", "lamb", NULL};

/* Places of the members of a rule in the struct that is bound. */
#define OF_RULE(member) offsetof(tdm_update_options, member)
#define OF_TEXT(member) offsetof(tdm_optimizer_options, dense.member)

#define RULE_TYPE(place, value)                                                                    \
    {                                                                                              \
        .name = "type", .type = TDM_CONFIG_CHOICE, .offset = place(type), .fallback = (value),     \
        .choices = update_types, .help = "the update rule"                                         \
    }
#define RULE_NUMBER(place, member, value, most, text)                                              \
    {                                                                                              \
        .name = #member, .type = TDM_CONFIG_FLOAT, .offset = place(member), .fallback = (value),   \
        .min = 0, .max = (most), .help = (text)                                                    \
    }
#define BETWEEN_STEPS 0.999999 /* the most of what a step keeps of the one before it */

#define RULE_MOMENTS(place)                                                                        \
    RULE_NUMBER(place, momentum, "0", BETWEEN_STEPS, "of sgd"),                                    \
        RULE_NUMBER(place, beta1, "0.9", BETWEEN_STEPS,                                            \
                    "of adam, adamw and lamb: decay of the mean gradient"),                        \
        RULE_NUMBER(place, beta2, "0.999", BETWEEN_STEPS,                                          \
                    "of adam, adamw and lamb: decay of the mean squared gradient")

#define DECAY_HELP                                                                                 \
    "of adamw and lamb: share of the parameter, times the learning rate, that a step takes away"

static const tdm_config_key update_keys[] = {
    RULE_TYPE(OF_RULE, "adam"),
    RULE_NUMBER(OF_RULE, learning_rate, "0.001", 1e6, "before the schedule"),
    RULE_MOMENTS(OF_RULE),
    RULE_NUMBER(OF_RULE, eps, "0", 1,
                "added to the root that updates are divided by; 0: 1e-10 for adagrad, 1e-6 for "
                "lamb, else 1e-8"),
    RULE_NUMBER(OF_RULE, l2, "0", 1e6,
                "of sgd, adagrad and adam: adds l2 times the parameter to its gradient"),
    RULE_NUMBER(OF_RULE, weight_decay, "0", 1e6, DECAY_HELP),
    RULE_NUMBER(OF_RULE, initial_accumulator, "0.1", 1e6,
                "of adagrad: what the sums of squared gradients begin with"),
};

static const tdm_config_schema update_schema = {
    .size = sizeof(tdm_update_options),
    .keys = update_keys,
    .count = sizeof update_keys / sizeof update_keys[0],
};

#define SECTION(member, of, text)                                                                  \
    {                                                                                              \
        .name = #member, .type = TDM_CONFIG_SECTION,                                               \
        .offset = offsetof(tdm_optimizer_options, member), .section = (of), .help = (text)         \
    }

static const tdm_config_key optimizer_keys[] = {
    SECTION(dense, &update_schema, "of all parameters but embedding tables"),
    SECTION(sparse, &update_schema, "of embedding tables, the rows that a batch uses"),
    SECTION(schedule, &tdm_schedule_schema, "of both learning rates"),
};

const tdm_config_schema tdm_optimizer_schema = {
    .size = sizeof(tdm_optimizer_options),
    .keys = optimizer_keys,
    .count = sizeof optimizer_keys / sizeof optimizer_keys[0],
};

/* What BERT was pretrained with. */
static const tdm_config_key text_keys[] = {
    RULE_TYPE(OF_TEXT, "adamw"),
    RULE_NUMBER(OF_TEXT, learning_rate, "0.0001", 1e6, "before the schedule"),
    RULE_MOMENTS(OF_TEXT),
    RULE_NUMBER(OF_TEXT, eps, "0", 1,
                "added to the root that updates are divided by; 0: 1e-10 for adagrad, else 1e-6"),
    RULE_NUMBER(OF_TEXT, weight_decay, "0.01", 1e6, DECAY_HELP),
    SECTION(schedule, &tdm_schedule_schema, "of the learning rate"),
};

const tdm_config_schema tdm_text_optimizer_schema = {
    .size = sizeof(tdm_optimizer_options),
    .keys = text_keys,
    .count = sizeof text_keys / sizeof text_keys[0],
};

static tdm_status refuse(const tdm_config_node *section, const char *key, const char *message)
{
    const tdm_config_node *node = tdm_config_get(section, key);
    return node == NULL ? tdm_fail(TDM_E_CONFIG, "%s: %s", key, message)
                        : tdm_config_fail(node, "%s", message);
}

static tdm_status refuse_for(int type, const tdm_config_node *section, const char *key,
                             const char *advice)
{
    char message[128];
    snprintf(message, sizeof message, "%s has none: %s", update_types[type], advice);
    return refuse(section, key, message);
}

/* Decays weights apart from the gradient. */
static bool has_weight_decay(int type)
{
    return type == TDM_UPDATE_ADAMW || type == TDM_UPDATE_LAMB;
}

static tdm_status check_rule(const tdm_config_node *section, const tdm_update_options *options,
                             const char *decay_advice)
{
    int type = options->type;
    if (options->momentum > 0.0 && type != TDM_UPDATE_SGD)
        return refuse_for(type, section, "momentum",
                          "remove it, or choose type: sgd (adam, adamw and lamb have beta1)");
    if (options->l2 > 0.0 && has_weight_decay(type))
        return refuse_for(type, section, "l2", "set weight_decay, or choose type: adam");
    if (options->weight_decay > 0.0 && !has_weight_decay(type))
        return refuse_for(type, section, "weight_decay", decay_advice);
    if (options->weight_decay == 0.0 && type == TDM_UPDATE_LAMB)
        return refuse(section, "type",
                      "lamb without weight_decay is adam: set it, or choose type: adam");
    return TDM_OK;
}

static double default_eps(int type, double of_adam)
{
    if (type == TDM_UPDATE_ADAGRAD)
        return 1e-10;
    return type == TDM_UPDATE_LAMB ? 1e-6 : of_adam;
}

static tdm_status resolve_side(const tdm_config_node *section, tdm_update_options *options)
{
    TDM_TRY(check_rule(section, options, "set l2, or choose type: adamw"));
    if (options->eps == 0.0)
        options->eps = default_eps(options->type, 1e-8);
    return TDM_OK;
}

tdm_status tdm_optimizer_resolve(const tdm_config_node *node, tdm_optimizer_options *options)
{
    const tdm_config_node *sparse = tdm_config_get(node, "sparse");
    TDM_TRY(resolve_side(tdm_config_get(node, "dense"), &options->dense));
    if (options->sparse.type == TDM_UPDATE_LAMB)
        return refuse(sparse, "type",
                      "lamb goes by the norm of a whole tensor, but a step updates those rows of a "
                      "table that its batch uses: choose adagrad or adam");
    TDM_TRY(resolve_side(sparse, &options->sparse));
    return tdm_schedule_resolve(tdm_config_get(node, "schedule"), &options->schedule);
}

tdm_status tdm_text_optimizer_resolve(const tdm_config_node *node, tdm_optimizer_options *options)
{
    tdm_update_options *rule = &options->dense;
    if (!has_weight_decay(rule->type) && tdm_config_get(node, "weight_decay") == NULL)
        rule->weight_decay = 0.0;
    TDM_TRY(check_rule(node, rule, "remove it, or choose type: adamw"));
    if (rule->eps == 0.0)
        rule->eps = default_eps(rule->type, 1e-6);
    return tdm_schedule_resolve(tdm_config_get(node, "schedule"), &options->schedule);
}

void tdm_optimizer_learning_rates(const tdm_optimizer_options *options, int64_t step,
                                  double progress, tdm_step_scalars *scalars)
{
    double factor = tdm_schedule_factor(&options->schedule, step, progress);
    scalars->dense_learning_rate = options->dense.learning_rate * factor;
    scalars->sparse_learning_rate = options->sparse.learning_rate * factor;
}
