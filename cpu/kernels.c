/* Dense runs and dropout, and the table of all kernels. */
#include "cpu/kernels_activation.h"
#include "cpu/kernels_philox.h"

/* ---- dense runs ------------------------------------------------------------------------------ */

static void add(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void add_scaled(int64_t n, float a, const float *x, float *y)
{
    add_scaled_inline(n, a, x, y);
}

static void scale(int64_t n, float a, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a * x[i];
}

static ALWAYS_INLINE vector epilogue_vector(vector sum, tdm_activation activation, float *before)
{
    if (before != NULL)
        store(before, sum);
    return activation_vector(activation, sum);
}

static ALWAYS_INLINE void epilogue_run(int64_t n, const float *x, const float *bias,
                                       tdm_activation activation, float *preactivation, float *y)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        vector sum = bias == NULL ? load(x + i) : load(x + i) + load(bias + i);
        float *before = preactivation == NULL ? NULL : preactivation + i;
        store(y + i, epilogue_vector(sum, activation, before));
    }
    if (i == n)
        return;
    float rest[WIDTH] = {0}, before[WIDTH];
    for (int64_t j = i; j < n; j++)
        rest[j - i] = bias == NULL ? x[j] : x[j] + bias[j];
    store(rest, epilogue_vector(load(rest), activation, before));
    for (int64_t j = i; j < n; j++) {
        y[j] = rest[j - i];
        if (preactivation != NULL)
            preactivation[j] = before[j - i];
    }
}

/* One loop for each activation. */
static void epilogue(int64_t n, const float *x, const float *bias, tdm_activation activation,
                     float *preactivation, float *y)
{
    switch (activation) {
    case TDM_ACTIVATION_NONE:
        epilogue_run(n, x, bias, TDM_ACTIVATION_NONE, preactivation, y);
        break;
    case TDM_ACTIVATION_RELU:
        epilogue_run(n, x, bias, TDM_ACTIVATION_RELU, preactivation, y);
        break;
    case TDM_ACTIVATION_GELU:
        epilogue_run(n, x, bias, TDM_ACTIVATION_GELU, preactivation, y);
        break;
    case TDM_ACTIVATION_GELU_TANH:
        epilogue_run(n, x, bias, TDM_ACTIVATION_GELU_TANH, preactivation, y);
        break;
    case TDM_ACTIVATION_TANH:
        epilogue_run(n, x, bias, TDM_ACTIVATION_TANH, preactivation, y);
        break;
    }
}

/* Four vectors in flight hide the latency of the additions. */
static float dot(int64_t n, const float *x, const float *y)
{
    vector sums[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH) {
        for (int part = 0; part < 4; part++)
            sums[part] = multiply_add_vector(load(x + i + part * WIDTH), load(y + i + part * WIDTH),
                                             sums[part]);
    }
    for (; i + WIDTH <= n; i += WIDTH)
        sums[0] = multiply_add_vector(load(x + i), load(y + i), sums[0]);
    float rest = 0.0f, lanes[WIDTH];
    for (; i < n; i++)
        rest = multiply_add(x[i], y[i], rest);
    store(lanes, (sums[0] + sums[1]) + (sums[2] + sums[3]));
    return sum_lanes(lanes, WIDTH) + rest;
}

/* A line of `to` at a time, whose lines of `from` then stay in the cache. */
static void transpose(int64_t rows, int64_t columns, const float *from, int64_t from_stride,
                      float *to, int64_t to_stride)
{
    int64_t whole_rows = 0, whole_columns = 0;
#if defined(__SSE2__)
    whole_rows = rows / LINE * LINE;
    whole_columns = columns / 4 * 4;
    for (int64_t r = 0; r < whole_rows; r += LINE) {
        for (int64_t c = 0; c < whole_columns; c += 4) {
            for (int64_t part = r; part < r + LINE; part += 4)
                transpose4(from + part * from_stride + c, from_stride, to + c * to_stride + part,
                           to_stride);
        }
    }
#endif
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            to[c * to_stride + r] = from[r * from_stride + c];
    }
}

static double sum_squares(int64_t n, const float *restrict x)
{
    double lanes[LINE] = {0};
    int64_t i = 0;
    for (; i + LINE <= n; i += LINE) {
        for (int d = 0; d < LINE; d++)
            lanes[d] += (double)x[i + d] * (double)x[i + d];
    }
    double sum = 0.0;
    for (; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    for (int d = 0; d < LINE; d++)
        sum += lanes[d];
    return sum;
}

static void relu_bwd(int64_t n, float scaling, const float *y, const float *dy, float *dx,
                     float *sums)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        vector kept = where(load(y + i) > 0.0f, load(dy + i) * scaling);
        store(dx + i, kept);
        if (sums != NULL)
            store(sums + i, load(sums + i) + kept);
    }
    for (; i < n; i++) {
        dx[i] = y[i] > 0.0f ? dy[i] * scaling : 0.0f;
        if (sums != NULL)
            sums[i] += dx[i];
    }
}

static void cross_fwd(int64_t n, const float *restrict x0, const float *restrict x,
                      const float *restrict u, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = multiply_add(x0[i], u[i], x[i]);
}

static void cross_bwd(int64_t n, const float *restrict x0, const float *restrict u,
                      const float *restrict dy, float *restrict du, bool accumulate,
                      float *restrict dx0)
{
    if (accumulate) {
        for (int64_t i = 0; i < n; i++) {
            du[i] = dy[i] * x0[i];
            dx0[i] = multiply_add(dy[i], u[i], dx0[i]);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            du[i] = dy[i] * x0[i];
            dx0[i] = dy[i] * u[i];
        }
    }
}

/* ---- dropout --------------------------------------------------------------------------------- */

static ALWAYS_INLINE float drop(const tdm_dropout_row *row, uint32_t word, float x)
{
    return word >> 8 >= row->threshold ? x * row->scale : 0.0f;
}

/* Elements that begin with the first of `group`. */
static ALWAYS_INLINE void drop_groups(int64_t n, const tdm_dropout_row *row, uint32_t group,
                                      const float *x, float *y)
{
    const philox_row start = philox_start(row);
    words32 drawn[4];
    int64_t i = 0;
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH) {
        philox_words(&start, group + (uint32_t)(i / 4), drawn);
        for (int part = 0; part < 4; part++)
            store(y + i + part * WIDTH,
                  where(kept_mask(row, drawn[part]), load(x + i + part * WIDTH) * row->scale));
    }
    if (i == n)
        return;
    philox_words(&start, group + (uint32_t)(i / 4), drawn);
    for (int64_t rest = i; i < n; i++)
        y[i] = drop(row, drawn[(i - rest) / WIDTH][(i - rest) % WIDTH], x[i]);
}

/* Elements before the first whole group are drawn one at a time. */
static void dropout(int64_t n, const tdm_dropout_row *row, const float *x, float *y)
{
    int64_t head = -(int64_t)row->first & 3;
    for (int64_t i = 0; i < head && i < n; i++)
        y[i] = drop(row, tdm_random(row->key, row->sample, row->epoch, row->first + (uint32_t)i),
                    x[i]);
    if (n > head)
        drop_groups(n - head, row, (row->first + 3) >> 2, x + head, y + head);
}

extern const tdm_encoder_kernels JOIN(tdm_encoder_kernels_, TDM_KERNELS);
extern const tdm_kernels JOIN(tdm_kernels_, TDM_KERNELS);
const tdm_kernels JOIN(tdm_kernels_, TDM_KERNELS) = {
    .name = STRING(TDM_KERNELS),
    .encoder = &JOIN(tdm_encoder_kernels_, TDM_KERNELS),
    .add = add,
    .add_scaled = add_scaled,
    .scale = scale,
    .epilogue = epilogue,
    .dot = dot,
    .transpose = transpose,
    .sum_squares = sum_squares,
    .relu_bwd = relu_bwd,
    .dropout = dropout,
    .gather = KERNEL(gather),
    .pool = KERNEL(pool),
    .sum_positions = KERNEL(sum_positions),
    .fm_fwd = KERNEL(fm_fwd),
    .fm_bwd = KERNEL(fm_bwd),
    .cross_fwd = cross_fwd,
    .cross_bwd = cross_bwd,
    .update = KERNEL(update),
    .update_rows = KERNEL(update_rows),
    .lamb_direction = KERNEL(lamb_direction),
    .attention = &KERNEL(attention),
};
