#include "tests/op/reference_ops.h"

#include <math.h>

/* ---- lookups --------------------------------------------------------------------------------- */

void reference_lookup_fwd(op_world *world, const tdm_lookup_fwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->out.rows);
    const uint32_t *ids = op_host(world, args->ids);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < args->out.columns; c++) {
            double *out = op_at(world, &args->out, r, c);
            *out = (args->accumulate ? *out : 0.0) + *op_at(world, &args->table, ids[r], c);
        }
    }
}

void reference_lookup_bwd(op_world *world, const tdm_lookup_bwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->dout.rows);
    const uint32_t *ids = op_host(world, args->ids);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < args->dout.columns; c++) {
            double *gradient = op_at(world, &args->table_gradient, ids[r], c);
            double *magnitude = &world->magnitudes[gradient - world->values];
            if (*magnitude == 0.0)
                *magnitude = fabs(*gradient);
            *gradient += *op_at(world, &args->dout, r, c);
            *magnitude += fabs(*op_at(world, &args->dout, r, c));
        }
    }
}

/* ---- layer normalization --------------------------------------------------------------------- */

/* y of a row whose sum is made. */
static void normalize(op_world *world, const tdm_layer_norm_fwd_args *args, const tdm_matrix *sums,
                      int64_t r)
{
    int64_t n = sums->columns;
    const double *sum = op_at(world, sums, r, 0);
    double mean = 0.0, variance = 0.0;
    for (int64_t c = 0; c < n; c++)
        mean += sum[c] / (double)n;
    for (int64_t c = 0; c < n; c++)
        variance += (sum[c] - mean) * (sum[c] - mean) / (double)n;
    double rstd = 1.0 / sqrt(variance + (double)args->eps);
    for (int64_t c = 0; c < n; c++) {
        double beta = args->beta == NULL ? 0.0 : *op_value(world, args->beta + c);
        double gamma = *op_value(world, args->gamma + c);
        double *y = op_at(world, &args->y, r, c);
        *y = (sum[c] - mean) * rstd * gamma + beta;
        world->magnitudes[y - world->values] =
            (fabs(sum[c]) + fabs(mean)) * rstd * gamma + fabs(beta);
    }
    if (args->means == NULL)
        return;
    *op_value(world, args->means + r) = mean;
    *op_value(world, args->rstds + r) = rstd;
}

void reference_layer_norm_fwd(op_world *world, const tdm_layer_norm_fwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x.rows), n = args->x.columns;
    bool plain = args->residual.data == NULL && args->dropout.rate == 0.0f;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < n && !plain; c++) {
            double x = *op_at(world, &args->x, r, c);
            double residual =
                args->residual.data == NULL ? 0.0 : *op_at(world, &args->residual, r, c);
            *op_at(world, &args->sum, r, c) =
                residual + x * reference_keep(world, &args->dropout, r, n, c);
        }
        if (args->y.data != NULL)
            normalize(world, args, plain ? &args->x : &args->sum, r);
    }
}

/* Σ_k dy_k · gamma_k of a row, that times the normalized sum, and their magnitudes. */
typedef struct norm_totals {
    double gradients, products, gradient_magnitude, product_magnitude;
} norm_totals;

static norm_totals sum_norm_row(const op_world *world, const tdm_layer_norm_bwd_args *args,
                                int64_t r)
{
    norm_totals sums = {0};
    double mean = *op_value(world, args->means + r), rstd = *op_value(world, args->rstds + r);
    for (int64_t c = 0; c < args->sum.columns; c++) {
        double gradient = *op_at(world, &args->dy, r, c) * *op_value(world, args->gamma + c);
        double normalized = (*op_at(world, &args->sum, r, c) - mean) * rstd;
        sums.gradients += gradient;
        sums.products += gradient * normalized;
        sums.gradient_magnitude += fabs(gradient);
        sums.product_magnitude += fabs(gradient * normalized);
    }
    return sums;
}

/* The gradient of element c of a row's sum through y. */
static double norm_gradient(const op_world *world, const tdm_layer_norm_bwd_args *args,
                            const norm_totals *sums, int64_t r, int64_t c, double *magnitude)
{
    double n = (double)args->sum.columns;
    double mean = *op_value(world, args->means + r), rstd = *op_value(world, args->rstds + r);
    double gradient = *op_at(world, &args->dy, r, c) * *op_value(world, args->gamma + c);
    double normalized = (*op_at(world, &args->sum, r, c) - mean) * rstd;
    *magnitude = rstd * (fabs(gradient) + sums->gradient_magnitude / n +
                         fabs(normalized) * sums->product_magnitude / n);
    return rstd * (gradient - sums->gradients / n - normalized * sums->products / n);
}

static void add_norm_parameters(op_world *world, const tdm_layer_norm_bwd_args *args, int64_t r,
                                int64_t c)
{
    double mean = *op_value(world, args->means + r), rstd = *op_value(world, args->rstds + r);
    double dy = *op_at(world, &args->dy, r, c);
    double term = dy * (*op_at(world, &args->sum, r, c) - mean) * rstd;
    *op_value(world, args->gamma_gradient + c) += term;
    *op_magnitude(world, args->gamma_gradient + c) += fabs(term);
    if (args->beta_gradient == NULL)
        return;
    *op_value(world, args->beta_gradient + c) += dy;
    *op_magnitude(world, args->beta_gradient + c) += fabs(dy);
}

static void give(op_world *world, const tdm_matrix *to, int64_t r, int64_t c, bool accumulate,
                 double gradient, double magnitude)
{
    if (to->data == NULL)
        return;
    double *out = op_at(world, to, r, c);
    world->magnitudes[out - world->values] = magnitude + (accumulate ? fabs(*out) : 0.0);
    *out = (accumulate ? *out : 0.0) + gradient;
}

#define MOST_COLUMNS 4096

void reference_layer_norm_bwd(op_world *world, const tdm_layer_norm_bwd_args *args)
{
    static double totals[MOST_COLUMNS], magnitudes[MOST_COLUMNS];
    int64_t rows = op_valid(world, args->rows, args->sum.rows), n = args->sum.columns;
    for (int64_t r = 0; r < rows; r++) {
        norm_totals sums = {0};
        if (args->dy.data != NULL)
            sums = sum_norm_row(world, args, r);
        for (int64_t c = 0; c < n; c++) {
            double dsum = args->dsum.data == NULL ? 0.0 : *op_at(world, &args->dsum, r, c);
            totals[c] = magnitudes[c] = 0.0;
            if (args->dy.data != NULL) {
                totals[c] = norm_gradient(world, args, &sums, r, c, &magnitudes[c]);
                add_norm_parameters(world, args, r, c);
            }
            totals[c] += dsum;
            magnitudes[c] += fabs(dsum);
        }
        for (int64_t c = 0; c < n; c++) {
            double keep = reference_keep(world, &args->dropout, r, n, c);
            give(world, &args->dx, r, c, args->accumulate_dx, keep * totals[c],
                 keep * magnitudes[c]);
            give(world, &args->d_residual, r, c, args->accumulate_residual, totals[c],
                 magnitudes[c]);
        }
    }
}

/* ---- activations ----------------------------------------------------------------------------- */

static double gelu_tanh_inner(double x)
{
    return sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
}

double reference_activation(tdm_activation activation, double x)
{
    switch (activation) {
    case TDM_ACTIVATION_NONE:
        return x;
    case TDM_ACTIVATION_RELU:
        return fmax(x, 0.0);
    case TDM_ACTIVATION_GELU:
        return 0.5 * x * erfc(-x * M_SQRT1_2);
    case TDM_ACTIVATION_GELU_TANH:
        return x / (1.0 + exp(-2.0 * gelu_tanh_inner(x))); /* ½ x (1 + tanh) */
    case TDM_ACTIVATION_TANH:
        return tanh(x);
    }
    return NAN;
}

/* f'(x), from x or, of tanh, from y. */
static double slope(tdm_activation activation, double x)
{
    if (activation == TDM_ACTIVATION_TANH)
        return 1.0 - x * x;
    if (activation == TDM_ACTIVATION_GELU)
        return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) / sqrt(2.0 * M_PI);
    if (fabs(x) > 100.0)
        return x > 0.0 ? 1.0 : 0.0;
    double t = tanh(gelu_tanh_inner(x));
    return 0.5 * (1.0 + t) +
           0.5 * x * (1.0 - t * t) * sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
}

static void add_bias(op_world *world, float *bias_gradient, int64_t c, double gradient)
{
    if (bias_gradient == NULL)
        return;
    *op_value(world, bias_gradient + c) += gradient;
    *op_magnitude(world, bias_gradient + c) += fabs(gradient);
}

void reference_activation_bwd(op_world *world, const tdm_activation_bwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x.rows);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < args->x.columns; c++) {
            double dy = *op_at(world, &args->dy, r, c);
            double dx = dy * slope(args->activation, *op_at(world, &args->x, r, c));
            give(world, &args->dx, r, c, false, dx, fabs(dy));
            add_bias(world, args->bias_gradient, c, dx);
        }
    }
}

void reference_gated_fwd(op_world *world, const tdm_gated_fwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x.rows), n = args->y.columns;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < n; c++)
            *op_at(world, &args->y, r, c) =
                reference_activation(args->activation, *op_at(world, &args->x, r, c)) *
                *op_at(world, &args->x, r, n + c);
    }
}

void reference_gated_bwd(op_world *world, const tdm_gated_bwd_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x.rows), n = args->dy.columns;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < n; c++) {
            double dy = *op_at(world, &args->dy, r, c), x = *op_at(world, &args->x, r, c);
            double gate = *op_at(world, &args->x, r, n + c);
            double inner = dy * gate * slope(args->activation, x);
            double outer = dy * reference_activation(args->activation, x);
            give(world, &args->dx, r, c, false, inner, fabs(dy * gate));
            give(world, &args->dx, r, n + c, false, outer, fabs(dy * x));
            add_bias(world, args->bias_gradient, c, inner);
            add_bias(world, args->bias_gradient, n + c, outer);
        }
    }
}

/* ---- rotary positions ------------------------------------------------------------------------ */

void reference_rotary(op_world *world, const tdm_rotary_args *args)
{
    int64_t rows = op_valid(world, args->rows, args->x.rows), half = args->dim / 2;
    const uint32_t *positions = op_host(world, args->positions);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < args->x.columns / 2; i++) {
            int64_t d = i % half, first = i / half * args->dim + d;
            double angle = positions[r] * pow(args->theta, -2.0 * (double)d / (double)args->dim);
            double sine = args->inverse ? -sin(angle) : sin(angle);
            double x1 = *op_at(world, &args->x, r, first);
            double x2 = *op_at(world, &args->x, r, first + half);
            *op_at(world, &args->x, r, first) = x1 * cos(angle) - x2 * sine;
            *op_at(world, &args->x, r, first + half) = x2 * cos(angle) + x1 * sine;
        }
    }
}
