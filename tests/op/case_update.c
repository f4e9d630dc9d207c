#include "tests/op/op_cases.h"

#include <math.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- updates --------------------------------------------------------------------------------- */

static const int64_t run_lengths[] = {1, 5, 16, 67, 16384, 16385, 50001};

/* The last case holds numbers whose squares do not fit into a float. */
bool case_dense_norm(op_world *world, int n, tdm_dense_norm_args *args)
{
    if (n > COUNT(run_lengths))
        return false;
    int64_t count = n < COUNT(run_lengths) ? run_lengths[n] : 100;
    float *x = op_floats(world, "x", count, OP_RANDOM);
    if (n == COUNT(run_lengths))
        ((float *)op_host(world, x))[57] = 1e30f;
    *args = (tdm_dense_norm_args){.x = x, .count = count, .scalars = world->scalars};
    return true;
}

/* No clipping, clipping that does nothing, clipping, no gradient, infinity, NaN. */
bool case_prepare_update(op_world *world, int n, tdm_prepare_update_args *args)
{
    static const double cases[][2] = {{0.0, 2.5}, {100.0, 2.5},    {0.1, 2.5},
                                      {0.1, 0.0}, {0.1, INFINITY}, {0.0, NAN}};
    if (n >= COUNT(cases))
        return false;
    tdm_step_scalars *scalars = op_host(world, world->scalars);
    scalars->clip_norm = cases[n][0];
    scalars->gradient_sum_squares = cases[n][1];
    args->scalars = world->scalars;
    return true;
}

tdm_update_rule op_rule(int n)
{
    static const tdm_update_rule rules[OP_RULES] = {
        {.type = TDM_UPDATE_SGD, .l2 = 0.01f},
        {.type = TDM_UPDATE_SGD, .momentum = 0.9f},
        {.type = TDM_UPDATE_ADAGRAD, .eps = 1e-8f, .l2 = 0.02f},
        {.type = TDM_UPDATE_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .l2 = 0.1f},
        {.type = TDM_UPDATE_ADAMW, .beta1 = 0.8f, .beta2 = 0.99f, .eps = 1e-6f, .l2 = 0.1f},
        {.type = TDM_UPDATE_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f},
    };
    return rules[n];
}

void op_moments(op_world *world, const tdm_update_rule *rule, int64_t count, float **moment1,
                float **moment2)
{
    bool adam = rule->type == TDM_UPDATE_ADAM || rule->type == TDM_UPDATE_ADAMW ||
                rule->type == TDM_UPDATE_LAMB;
    bool first = adam || rule->type == TDM_UPDATE_ADAGRAD || rule->momentum != 0.0f;
    *moment1 = first ? op_floats(world, "moment1", count, OP_POSITIVE) : NULL;
    *moment2 = adam ? op_floats(world, "moment2", count, OP_POSITIVE) : NULL;
}

void op_set_found_inf(op_world *world, bool found)
{
    ((tdm_step_scalars *)op_host(world, world->scalars))->found_inf = found;
}

/* Decaying, decaying values that are 0, without decay, and with a gradient that is not finite. */
#define LAMB_CASES  4
#define DENSE_RULES (OP_RULES + LAMB_CASES)

bool case_dense_update(op_world *world, int n, tdm_dense_update_args *args)
{
    static const tdm_update_rule lamb = {
        .type = TDM_UPDATE_LAMB, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-6f, .l2 = 0.05f};
    if (n / DENSE_RULES >= COUNT(run_lengths))
        return false;
    int64_t count = run_lengths[n / DENSE_RULES];
    int rule = n % DENSE_RULES, lamb_case = rule - OP_RULES;
    *args = (tdm_dense_update_args){.rule = lamb_case < 0 ? op_rule(rule) : lamb,
                                    .scalars = world->scalars,
                                    .values = op_floats(world, "values", count, OP_RANDOM),
                                    .gradients = op_floats(world, "gradients", count, OP_RANDOM),
                                    .count = count};
    op_moments(world, &args->rule, count, &args->moment1, &args->moment2);
    if (lamb_case == 1)
        memset(op_host(world, args->values), 0, (size_t)count * sizeof(float));
    if (lamb_case == 2)
        args->rule.l2 = 0.0f;
    op_set_found_inf(world, rule == OP_RULES - 1 || rule == DENSE_RULES - 1);
    return true;
}
