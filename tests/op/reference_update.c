#include "tests/op/reference_ops.h"

#include <math.h>

void reference_dense_norm(op_world *world, const tdm_dense_norm_args *args)
{
    for (int64_t i = 0; i < args->count; i++) {
        double x = *op_value(world, args->x + i);
        world->expected.gradient_sum_squares += x * x;
    }
}

void reference_sparse_norm(op_world *world, const tdm_sparse_norm_args *args)
{
    const int32_t *counts = op_host(world, args->distinct.counts);
    for (int f = 0; f < args->field_count; f++) {
        const tdm_embedding_field *field = &args->fields[f];
        for (int64_t i = 0; i < counts[field->index] * field->dim; i++) {
            double x = *op_value(world, args->gradients + field->gradients + i);
            world->expected.gradient_sum_squares += x * x;
        }
    }
}

void reference_prepare_update(op_world *world, const tdm_prepare_update_args *args)
{
    (void)args;
    tdm_step_scalars *scalars = &world->expected;
    scalars->found_inf = isfinite(scalars->gradient_sum_squares) ? 0 : 1;
    scalars->gradient_norm = sqrt(scalars->gradient_sum_squares) / scalars->loss_scale;
    scalars->gradient_scale = 1.0 / scalars->loss_scale;
    if (scalars->clip_norm > 0.0 && scalars->gradient_norm > scalars->clip_norm)
        scalars->gradient_scale *= scalars->clip_norm / scalars->gradient_norm;
}

/* One element; pointers to moments that a rule does not use are NULL. */
static void update_element(const tdm_update_rule *rule, const tdm_step_scalars *scalars,
                           double learning_rate, double gradient, double *w, double *moment1,
                           double *moment2)
{
    double g = gradient * scalars->gradient_scale, l2 = (double)rule->l2;
    double beta1 = (double)rule->beta1, beta2 = (double)rule->beta2, eps = (double)rule->eps;
    double step = (double)scalars->step;
    if (rule->type != TDM_UPDATE_ADAMW)
        g += l2 * *w;
    switch (rule->type) {
    case TDM_UPDATE_SGD:
        if (moment1 != NULL)
            g = *moment1 = (double)rule->momentum * *moment1 + g;
        *w -= learning_rate * g;
        break;
    case TDM_UPDATE_ADAGRAD:
        *moment1 += g * g;
        *w -= learning_rate * g / (sqrt(*moment1) + eps);
        break;
    case TDM_UPDATE_ADAM:
    case TDM_UPDATE_ADAMW:
    case TDM_UPDATE_LAMB:
        *moment1 = beta1 * *moment1 + (1.0 - beta1) * g;
        *moment2 = beta2 * *moment2 + (1.0 - beta2) * g * g;
        if (rule->type == TDM_UPDATE_ADAMW)
            *w -= learning_rate * l2 * *w;
        *w -= learning_rate * (*moment1 / (1.0 - pow(beta1, step))) /
              (sqrt(*moment2 / (1.0 - pow(beta2, step))) + eps);
        break;
    }
}

/* With l2: without it, lamb is adam. The gradients become u. */
static void update_lamb(op_world *world, const tdm_dense_update_args *args)
{
    const tdm_update_rule *rule = &args->rule;
    const tdm_step_scalars *scalars = &world->expected;
    double beta1 = (double)rule->beta1, beta2 = (double)rule->beta2, l2 = (double)rule->l2;
    double step = (double)scalars->step, w_squares = 0.0, u_squares = 0.0;
    for (int64_t i = 0; i < args->count; i++) {
        double *m = op_value(world, args->moment1 + i), *v = op_value(world, args->moment2 + i);
        double w = *op_value(world, args->values + i);
        double g = *op_value(world, args->gradients + i) * scalars->gradient_scale;
        *m = beta1 * *m + (1.0 - beta1) * g;
        *v = beta2 * *v + (1.0 - beta2) * g * g;
        double u = *m / (1.0 - pow(beta1, step)) /
                       (sqrt(*v / (1.0 - pow(beta2, step))) + (double)rule->eps) +
                   l2 * w;
        *op_value(world, args->gradients + i) = u;
        w_squares += w * w;
        u_squares += u * u;
    }
    double ratio = w_squares > 0.0 && u_squares > 0.0 ? sqrt(w_squares / u_squares) : 1.0;
    for (int64_t i = 0; i < args->count; i++)
        *op_value(world, args->values + i) -=
            scalars->dense_learning_rate * ratio * *op_value(world, args->gradients + i);
}

static double *moment_at(const op_world *world, const float *moments, int64_t i)
{
    return moments == NULL ? NULL : op_value(world, moments + i);
}

void reference_dense_update(op_world *world, const tdm_dense_update_args *args)
{
    const tdm_step_scalars *scalars = &world->expected;
    if (args->rule.type == TDM_UPDATE_LAMB && args->rule.l2 > 0.0f && !scalars->found_inf) {
        update_lamb(world, args);
        return;
    }
    for (int64_t i = 0; i < args->count && !scalars->found_inf; i++)
        update_element(&args->rule, scalars, scalars->dense_learning_rate,
                       *op_value(world, args->gradients + i), op_value(world, args->values + i),
                       moment_at(world, args->moment1, i), moment_at(world, args->moment2, i));
}

void reference_sparse_update(op_world *world, const tdm_sparse_update_args *args)
{
    const tdm_step_scalars *scalars = &world->expected;
    const int32_t *counts = op_host(world, args->distinct.counts);
    for (int f = 0; f < args->field_count && !scalars->found_inf; f++) {
        const tdm_embedding_field *field = &args->fields[f];
        const uint32_t *ids = (const uint32_t *)op_host(world, args->distinct.ids) + field->values;
        for (int64_t i = 0; i < counts[field->index] * field->dim; i++) {
            int64_t at = field->table + (int64_t)ids[i / field->dim] * field->dim + i % field->dim;
            update_element(&args->rule, scalars, scalars->sparse_learning_rate,
                           *op_value(world, args->gradients + field->gradients + i),
                           op_value(world, args->tables + at), moment_at(world, args->moment1, at),
                           moment_at(world, args->moment2, at));
        }
    }
}
