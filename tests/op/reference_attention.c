#include "tests/op/reference_ops.h"

#include <math.h>
#include <stdlib.h>

typedef struct sequence {
    int64_t begin, length, number;
} sequence;

static sequence find_sequence(const op_world *world, const tdm_sequence_spans *spans, int64_t i)
{
    if (spans->cu_seqlens == NULL) {
        const int32_t *lengths = op_host(world, spans->lengths);
        return (sequence){i * spans->stride, lengths[i], i};
    }
    const int32_t *cu = op_host(world, spans->cu_seqlens);
    return (sequence){cu[i], cu[i + 1] - cu[i], i};
}

static bool sees(int64_t window, int64_t i, int64_t j)
{
    return window < 0 || llabs((long long)(i - j)) <= window;
}

/* keep / (1 - rate) */
static double kept_scale(const op_world *world, const tdm_dropout_draws *draws,
                         const tdm_sequence_spans *spans, const sequence *s, int64_t head,
                         int64_t i, int64_t j)
{
    if (draws->rate == 0.0f)
        return 1.0;
    int64_t element = (head * spans->max_length + i) * spans->max_length + j;
    return reference_kept(world, draws, s->number, (uint32_t)element);
}

typedef struct heads_shape {
    const tdm_matrix *qkv;
    int64_t heads, dim;
} heads_shape;

/* Row i of a part of qkv: 0 the queries, 1 the keys, 2 the values. */
static double *part_row(const op_world *world, const heads_shape *shape, const sequence *s,
                        int64_t i, int part, int64_t head)
{
    return op_at(world, shape->qkv, s->begin + i, (part * shape->heads + head) * shape->dim);
}

static double dot(int64_t count, const double *a, const double *b)
{
    double sum = 0.0;
    for (int64_t d = 0; d < count; d++)
        sum += a[d] * b[d];
    return sum;
}

static double absolute_dot(int64_t count, const double *a, const double *b)
{
    double sum = 0.0;
    for (int64_t d = 0; d < count; d++)
        sum += fabs(a[d] * b[d]);
    return sum;
}

static void set(op_world *world, double *at, double value, double magnitude)
{
    *at = value;
    world->magnitudes[at - world->values] = magnitude;
}

static void clear(op_world *world, const tdm_matrix *matrix)
{
    for (int64_t r = 0; r < matrix->rows; r++) {
        for (int64_t c = 0; c < matrix->columns; c++)
            set(world, op_at(world, matrix, r, c), 0.0, 0.0);
    }
}

/* One query of one head. */
static void attend(op_world *world, const tdm_attention_fwd_args *args, const heads_shape *shape,
                   const sequence *s, int64_t head, int64_t i)
{
    const double scale = (double)args->scale;
    const double *q = part_row(world, shape, s, i, 0, head);
    double *out = op_at(world, &args->out, s->begin + i, head * shape->dim);
    double sum = 0.0, largest = -INFINITY, size = 0.0;
    for (int64_t j = 0; j < s->length; j++) {
        const double *k = part_row(world, shape, s, j, 1, head);
        if (!sees(args->window, i, j))
            continue;
        largest = fmax(largest, scale * dot(shape->dim, q, k));
        size = fmax(size, fabs(scale) * absolute_dot(shape->dim, q, k));
    }
    for (int64_t j = 0; j < s->length; j++) {
        if (sees(args->window, i, j))
            sum += exp(scale * dot(shape->dim, q, part_row(world, shape, s, j, 1, head)) - largest);
    }
    for (int64_t j = 0; j < s->length; j++) {
        if (!sees(args->window, i, j))
            continue;
        const double *v = part_row(world, shape, s, j, 2, head);
        double p = exp(scale * dot(shape->dim, q, part_row(world, shape, s, j, 1, head)) - largest);
        p *= kept_scale(world, &args->dropout, &args->spans, s, head, i, j) / sum;
        for (int64_t d = 0; d < shape->dim; d++) {
            double magnitude = world->magnitudes[out + d - world->values] + fabs(p * v[d]);
            set(world, out + d, out[d] + p * v[d], magnitude);
        }
    }
    if (args->log_sums != NULL)
        set(world, op_value(world, args->log_sums + (s->begin + i) * shape->heads + head),
            largest + log(sum), size + log(sum));
}

void reference_attention_fwd(op_world *world, const tdm_attention_fwd_args *args)
{
    heads_shape shape = {&args->qkv, args->heads, args->out.columns / args->heads};
    int64_t sequences = op_valid(world, args->spans.rows, args->spans.batch);
    clear(world, &args->out);
    for (int64_t n = 0; n < sequences; n++) {
        sequence s = find_sequence(world, &args->spans, n);
        for (int64_t head = 0; head < shape.heads; head++) {
            for (int64_t i = 0; i < s.length; i++)
                attend(world, args, &shape, &s, head, i);
        }
    }
}

static void add_scaled(op_world *world, int64_t count, double factor, double magnitude,
                       const double *x, double *to)
{
    for (int64_t d = 0; d < count; d++) {
        double before = world->magnitudes[to + d - world->values];
        set(world, to + d, to[d] + factor * x[d], before + magnitude * fabs(x[d]));
    }
}

/* What one query of one head and one key give to the gradients. */
static void attend_back(op_world *world, const tdm_attention_bwd_args *args,
                        const heads_shape *shape, const sequence *s, int64_t head, int64_t i,
                        int64_t j)
{
    const double scale = (double)args->scale;
    const int64_t dim = shape->dim;
    const heads_shape gradients = {&args->dqkv, shape->heads, dim};
    const double *q = part_row(world, shape, s, i, 0, head);
    const double *k = part_row(world, shape, s, j, 1, head);
    const double *v = part_row(world, shape, s, j, 2, head);
    const double *out = op_at(world, &args->out, s->begin + i, head * dim);
    const double *dout = op_at(world, &args->dout, s->begin + i, head * dim);
    double log_sum = *op_value(world, args->log_sums + (s->begin + i) * shape->heads + head);
    double p = exp(scale * dot(dim, q, k) - log_sum);
    double kept = kept_scale(world, &args->dropout, &args->spans, s, head, i, j);
    double ds = scale * p * (kept * dot(dim, dout, v) - dot(dim, dout, out));
    double magnitude =
        fabs(scale) * p * (kept * absolute_dot(dim, dout, v) + absolute_dot(dim, dout, out));
    add_scaled(world, dim, ds, magnitude, k, part_row(world, &gradients, s, i, 0, head));
    add_scaled(world, dim, ds, magnitude, q, part_row(world, &gradients, s, j, 1, head));
    add_scaled(world, dim, p * kept, p * kept, dout, part_row(world, &gradients, s, j, 2, head));
}

void reference_attention_bwd(op_world *world, const tdm_attention_bwd_args *args)
{
    heads_shape shape = {&args->qkv, args->heads, args->out.columns / args->heads};
    int64_t sequences = op_valid(world, args->spans.rows, args->spans.batch);
    clear(world, &args->dqkv);
    for (int64_t n = 0; n < sequences; n++) {
        sequence s = find_sequence(world, &args->spans, n);
        for (int64_t head = 0; head < shape.heads; head++) {
            for (int64_t i = 0; i < s.length; i++) {
                for (int64_t j = 0; j < s.length; j++) {
                    if (sees(args->window, i, j))
                        attend_back(world, args, &shape, &s, head, i, j);
                }
            }
        }
    }
}
