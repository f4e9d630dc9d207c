/* Embeddings, factorization machines and updates. */
#include "cpu/kernels_vector.h"

/* ---- embeddings ------------------------------------------------------------------------------ */

static ALWAYS_INLINE void gather_rows(int64_t count, int64_t dim, const float *restrict table,
                                      int64_t table_stride, const uint32_t *restrict ids,
                                      bool accumulate, float *restrict out, int64_t stride)
{
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            fetch_row(table + (int64_t)ids[i + AHEAD] * table_stride, dim);
        const float *row = table + (int64_t)ids[i] * table_stride;
        float *to = out + i * stride;
        for (int64_t d = 0; d < dim; d++)
            to[d] = accumulate ? to[d] + row[d] : row[d];
    }
}

void KERNEL(gather)(int64_t count, int64_t dim, const float *table, int64_t table_stride,
                    const uint32_t *ids, bool accumulate, float *out, int64_t stride)
{
    if (dim == LINE && table_stride == LINE && !accumulate)
        gather_rows(count, LINE, table, LINE, ids, false, out, stride);
    else if (dim == 1 && table_stride == 1 && accumulate)
        gather_rows(count, 1, table, 1, ids, true, out, stride);
    else if (accumulate)
        gather_rows(count, dim, table, table_stride, ids, true, out, stride);
    else
        gather_rows(count, dim, table, table_stride, ids, false, out, stride);
}

void KERNEL(pool)(int64_t count, int64_t dim, const float *table, const uint32_t *ids,
                  const float *weights, float scale, float *out)
{
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            fetch_row(table + (int64_t)ids[i + AHEAD] * dim, dim);
        float weight = weights == NULL ? scale : scale * weights[i];
        add_scaled_inline(dim, weight, table + (int64_t)ids[i] * dim, out);
    }
}

/* `width` columns of one sum, at most a line of them. */
static ALWAYS_INLINE void sum_columns(int width, int32_t begin, int32_t end,
                                      const int32_t *restrict positions, const float *restrict dout,
                                      int64_t stride, float *restrict out)
{
    float total[LINE] = {0};
    for (int32_t chunk = begin; chunk < end; chunk += SUM_CHUNK) {
        int32_t chunk_end = end - chunk < SUM_CHUNK ? end : chunk + SUM_CHUNK;
        float sum[LINE] = {0};
        for (int32_t i = chunk; i < chunk_end; i++) {
            const float *row = dout + positions[i] * stride;
            for (int d = 0; d < width; d++)
                sum[d] += row[d];
        }
        for (int d = 0; d < width; d++)
            total[d] += sum[d];
    }
    for (int d = 0; d < width; d++)
        out[d] = total[d];
}

static ALWAYS_INLINE void sum_rows(int64_t count, int64_t dim, const int32_t *restrict starts,
                                   const int32_t *restrict positions, const float *restrict dout,
                                   int64_t stride, float *restrict out)
{
    int32_t last = starts[count];
    for (int64_t u = 0; u < count; u++) {
        int32_t begin = starts[u], end = starts[u + 1];
        for (int32_t i = begin + AHEAD; i < end + AHEAD && i < last; i++)
            fetch_row(dout + positions[i] * stride, dim);
        int64_t d = 0;
        for (; d + LINE <= dim; d += LINE)
            sum_columns(LINE, begin, end, positions, dout + d, stride, out + u * dim + d);
        for (; d + LINE / 2 <= dim; d += LINE / 2)
            sum_columns(LINE / 2, begin, end, positions, dout + d, stride, out + u * dim + d);
        for (; d < dim; d++)
            sum_columns(1, begin, end, positions, dout + d, stride, out + u * dim + d);
    }
}

/* Gradients of one element fit into the cache: nothing is fetched ahead. */
static void sum_elements(int64_t count, const int32_t *restrict starts,
                         const int32_t *restrict positions, const float *restrict dout,
                         int64_t stride, float *restrict out)
{
    for (int64_t u = 0; u < count; u++) {
        double sum = 0.0;
        for (int32_t i = starts[u]; i < starts[u + 1]; i++)
            sum += (double)dout[positions[i] * stride];
        out[u] = (float)sum;
    }
}

void KERNEL(sum_positions)(int64_t count, int64_t dim, const int32_t *starts,
                           const int32_t *positions, const float *dout, int64_t stride, float *out)
{
    if (dim == LINE)
        sum_rows(count, LINE, starts, positions, dout, stride, out);
    else if (dim == 1)
        sum_elements(count, starts, positions, dout, stride, out);
    else
        sum_rows(count, dim, starts, positions, dout, stride, out);
}

/* ---- factorization machine ------------------------------------------------------------------- */

static ALWAYS_INLINE float fm_columns(int width, int64_t fields, int64_t dim,
                                      const float *restrict embeddings, float *restrict sums)
{
    float sum[LINE] = {0}, squares[LINE] = {0};
    for (int64_t f = 0; f < fields; f++) {
        const float *row = embeddings + f * dim;
        for (int d = 0; d < width; d++) {
            sum[d] += row[d];
            squares[d] = multiply_add(row[d], row[d], squares[d]);
        }
    }
    for (int d = 0; d < width; d++) {
        sums[d] = sum[d];
        squares[d] = multiply_add(sum[d], sum[d], -squares[d]);
    }
    return sum_lanes(squares, width);
}

float KERNEL(fm_fwd)(int64_t fields, int64_t dim, const float *embeddings, float *sums)
{
    float total = 0.0f;
    int64_t d = 0;
    for (; d + LINE <= dim; d += LINE)
        total += fm_columns(LINE, fields, dim, embeddings + d, sums + d);
    for (; d + LINE / 2 <= dim; d += LINE / 2)
        total += fm_columns(LINE / 2, fields, dim, embeddings + d, sums + d);
    for (; d < dim; d++)
        total += fm_columns(1, fields, dim, embeddings + d, sums + d);
    return 0.5f * total;
}

static ALWAYS_INLINE void fm_bwd_rows(int64_t fields, int64_t dim, const float *restrict embeddings,
                                      const float *restrict sums, float dout, bool accumulate,
                                      float *restrict d_embeddings)
{
    for (int64_t f = 0; f < fields; f++) {
        const float *row = embeddings + f * dim;
        float *to = d_embeddings + f * dim;
        for (int64_t d = 0; d < dim; d++) {
            float gradient = dout * (sums[d] - row[d]);
            to[d] = accumulate ? to[d] + gradient : gradient;
        }
    }
}

void KERNEL(fm_bwd)(int64_t fields, int64_t dim, const float *embeddings, const float *sums,
                    float dout, bool accumulate, float *d_embeddings)
{
    if (dim == LINE && accumulate)
        fm_bwd_rows(fields, LINE, embeddings, sums, dout, true, d_embeddings);
    else if (dim == LINE)
        fm_bwd_rows(fields, LINE, embeddings, sums, dout, false, d_embeddings);
    else
        fm_bwd_rows(fields, dim, embeddings, sums, dout, accumulate, d_embeddings);
}

/* ---- updates --------------------------------------------------------------------------------- */

static ALWAYS_INLINE float scaled_gradient(const tdm_update_factors *factors, float gradient,
                                           float value)
{
    return multiply_add(factors->l2, value, gradient * factors->gradient_scale);
}

static ALWAYS_INLINE void update_sgd(int64_t n, tdm_update_factors f, const float *restrict g,
                                     float *restrict w, float *restrict m)
{
    if (m == NULL) {
        for (int64_t i = 0; i < n; i++)
            w[i] -= f.learning_rate * scaled_gradient(&f, g[i], w[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        m[i] = multiply_add(f.momentum, m[i], scaled_gradient(&f, g[i], w[i]));
        w[i] -= f.learning_rate * m[i];
    }
}

static ALWAYS_INLINE void update_adagrad(int64_t n, tdm_update_factors f, const float *restrict g,
                                         float *restrict w, float *restrict a)
{
    for (int64_t i = 0; i < n; i++) {
        float gradient = scaled_gradient(&f, g[i], w[i]);
        a[i] = multiply_add(gradient, gradient, a[i]);
        w[i] -= f.learning_rate * gradient / (sqrtf(a[i]) + f.eps);
    }
}

static ALWAYS_INLINE void update_adam(int64_t n, tdm_update_factors f, const float *restrict g,
                                      float *restrict w, float *restrict m, float *restrict v)
{
    float decay = 0.0f;
    if (f.type == TDM_UPDATE_ADAMW) {
        decay = f.learning_rate * f.l2;
        f.l2 = 0.0f;
    }
    for (int64_t i = 0; i < n; i++) {
        float gradient = scaled_gradient(&f, g[i], w[i]);
        m[i] = multiply_add(f.beta1, m[i], (1.0f - f.beta1) * gradient);
        v[i] = multiply_add(f.beta2, v[i], (1.0f - f.beta2) * gradient * gradient);
        w[i] -= decay * w[i];
        w[i] -= f.step_size * m[i] / (sqrtf(v[i] * f.moment2_scale) + f.eps);
    }
}

static ALWAYS_INLINE void update_run(int64_t n, const tdm_update_factors *factors, const float *g,
                                     float *w, float *moment1, float *moment2)
{
    switch (factors->type) {
    case TDM_UPDATE_SGD:
        update_sgd(n, *factors, g, w, moment1);
        break;
    case TDM_UPDATE_ADAGRAD:
        update_adagrad(n, *factors, g, w, moment1);
        break;
    case TDM_UPDATE_ADAM:
    case TDM_UPDATE_ADAMW:
    case TDM_UPDATE_LAMB: /* without l2, which makes it adam */
        update_adam(n, *factors, g, w, moment1, moment2);
        break;
    }
}

void KERNEL(update)(int64_t n, const tdm_update_factors *factors, const float *gradients,
                    float *values, float *moment1, float *moment2)
{
    update_run(n, factors, gradients, values, moment1, moment2);
}

static ALWAYS_INLINE void find_direction(int64_t n, tdm_update_factors f, const float *restrict w,
                                         float *restrict g, float *restrict m, float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        float gradient = g[i] * f.gradient_scale;
        m[i] = multiply_add(f.beta1, m[i], (1.0f - f.beta1) * gradient);
        v[i] = multiply_add(f.beta2, v[i], (1.0f - f.beta2) * gradient * gradient);
        g[i] = f.step_size * m[i] / (sqrtf(v[i] * f.moment2_scale) + f.eps) + f.l2 * w[i];
    }
}

static ALWAYS_INLINE void add_squares(int64_t n, const float *restrict x, double *restrict lanes)
{
    int64_t i = 0;
    for (; i + LINE <= n; i += LINE) {
        for (int d = 0; d < LINE; d++)
            lanes[d] += (double)x[i + d] * (double)x[i + d];
    }
    for (int d = 0; i + d < n; d++)
        lanes[d] += (double)x[i + d] * (double)x[i + d];
}

static ALWAYS_INLINE double sum_of(const double *lanes)
{
    double sum = 0.0;
    for (int d = 0; d < LINE; d++)
        sum += lanes[d];
    return sum;
}

/* In pieces whose sums find them in the nearest cache. */
void KERNEL(lamb_direction)(int64_t n, const tdm_update_factors *factors, const float *values,
                            float *gradients, float *moment1, float *moment2, double squares[2])
{
    double w[LINE] = {0}, u[LINE] = {0};
    for (int64_t begin = 0; begin < n; begin += BUFFER_SIZE) {
        int64_t count = n - begin < BUFFER_SIZE ? n - begin : BUFFER_SIZE;
        find_direction(count, *factors, values + begin, gradients + begin, moment1 + begin,
                       moment2 + begin);
        add_squares(count, values + begin, w);
        add_squares(count, gradients + begin, u);
    }
    squares[0] = sum_of(w);
    squares[1] = sum_of(u);
}

static ALWAYS_INLINE void update_wide_rows(int64_t count, int64_t dim,
                                           const tdm_update_factors *factors, const uint32_t *ids,
                                           const float *gradients, float *values, float *moment1,
                                           float *moment2)
{
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count) {
            int64_t ahead = (int64_t)ids[i + AHEAD] * dim;
            fetch_row(values + ahead, dim);
            if (moment1 != NULL)
                fetch_row(moment1 + ahead, dim);
            if (moment2 != NULL)
                fetch_row(moment2 + ahead, dim);
        }
        int64_t row = (int64_t)ids[i] * dim;
        update_run(dim, factors, gradients + i * dim, values + row, at(moment1, row),
                   at(moment2, row));
    }
}

static ALWAYS_INLINE void fetch_rows(int64_t count, int64_t dim, const uint32_t *ids,
                                     const float *table)
{
    for (int64_t i = 0; i < count; i++)
        __builtin_prefetch(table + (int64_t)ids[i] * dim);
}

static ALWAYS_INLINE void read_rows(int64_t count, int64_t dim, const uint32_t *ids,
                                    const float *table, float *buffer)
{
    for (int64_t i = 0; i < count; i++) {
        for (int64_t d = 0; d < dim; d++)
            buffer[i * dim + d] = table[(int64_t)ids[i] * dim + d];
    }
}

static ALWAYS_INLINE void write_rows(int64_t count, int64_t dim, const uint32_t *ids,
                                     const float *buffer, float *table)
{
    for (int64_t i = 0; i < count; i++) {
        for (int64_t d = 0; d < dim; d++)
            table[(int64_t)ids[i] * dim + d] = buffer[i * dim + d];
    }
}

/* Rows of a few elements are brought together first, so that the arithmetic fills vectors. */
static ALWAYS_INLINE void update_narrow_rows(int64_t count, int64_t dim,
                                             const tdm_update_factors *factors, const uint32_t *ids,
                                             const float *gradients, float *tables[3])
{
    float buffers[3][BUFFER_SIZE];
    int64_t group = BUFFER_SIZE / dim;
    for (int64_t begin = 0; begin < count; begin += group) {
        int64_t rows = count - begin < group ? count - begin : group;
        int64_t left = count - begin - rows;
        for (int t = 0; t < 3; t++) {
            if (tables[t] == NULL)
                continue;
            fetch_rows(left < group ? left : group, dim, ids + begin + rows, tables[t]);
            read_rows(rows, dim, ids + begin, tables[t], buffers[t]);
        }
        update_run(rows * dim, factors, gradients + begin * dim, buffers[0],
                   tables[1] == NULL ? NULL : buffers[1], buffers[2]);
        for (int t = 0; t < 3; t++) {
            if (tables[t] != NULL)
                write_rows(rows, dim, ids + begin, buffers[t], tables[t]);
        }
    }
}

void KERNEL(update_rows)(int64_t count, int64_t dim, const tdm_update_factors *factors,
                         const uint32_t *ids, const float *gradients, float *values, float *moment1,
                         float *moment2)
{
    if (dim == LINE)
        update_wide_rows(count, LINE, factors, ids, gradients, values, moment1, moment2);
    else if (dim == 1)
        update_narrow_rows(count, 1, factors, ids, gradients,
                           (float *[3]){values, moment1, moment2});
    else if (dim < NARROW)
        update_narrow_rows(count, dim, factors, ids, gradients,
                           (float *[3]){values, moment1, moment2});
    else
        update_wide_rows(count, dim, factors, ids, gradients, values, moment1, moment2);
}
