/* Dense runs and dropout, and the table of all kernels. */
#include "cpu/kernels_activation.h"

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

static ALWAYS_INLINE void epilogue_run(int64_t n, const float *bias, tdm_activation activation,
                                       float *preactivation, float *y)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        vector sum = bias == NULL ? load(y + i) : load(y + i) + load(bias + i);
        float *before = preactivation == NULL ? NULL : preactivation + i;
        store(y + i, epilogue_vector(sum, activation, before));
    }
    if (i == n)
        return;
    float rest[WIDTH] = {0}, before[WIDTH];
    for (int64_t j = i; j < n; j++)
        rest[j - i] = bias == NULL ? y[j] : y[j] + bias[j];
    store(rest, epilogue_vector(load(rest), activation, before));
    for (int64_t j = i; j < n; j++) {
        y[j] = rest[j - i];
        if (preactivation != NULL)
            preactivation[j] = before[j - i];
    }
}

/* One loop for each activation. */
static void epilogue(int64_t n, const float *bias, tdm_activation activation, float *preactivation,
                     float *y)
{
    switch (activation) {
    case TDM_ACTIVATION_NONE:
        epilogue_run(n, bias, TDM_ACTIVATION_NONE, preactivation, y);
        break;
    case TDM_ACTIVATION_RELU:
        epilogue_run(n, bias, TDM_ACTIVATION_RELU, preactivation, y);
        break;
    case TDM_ACTIVATION_GELU:
        epilogue_run(n, bias, TDM_ACTIVATION_GELU, preactivation, y);
        break;
    case TDM_ACTIVATION_GELU_TANH:
        epilogue_run(n, bias, TDM_ACTIVATION_GELU_TANH, preactivation, y);
        break;
    case TDM_ACTIVATION_TANH:
        epilogue_run(n, bias, TDM_ACTIVATION_TANH, preactivation, y);
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

#if defined(__SSE2__)
typedef uint64_t words __attribute__((vector_size(WIDTH * 4)));
typedef uint32_t words32 __attribute__((vector_size(WIDTH * 4)));

static ALWAYS_INLINE words multiply_low(words a, uint64_t factor)
{
    return (words)MM(mul_epu32)((mm_words)a, (mm_words)((words){0} + factor));
}

#define ROUNDS 10

/* What the rounds of tdm_philox have in common for one row. */
typedef struct philox_row {
    words sample_low, sample_high, epoch;
    words keys[ROUNDS][2];
} philox_row;

static ALWAYS_INLINE philox_row philox_start(const tdm_dropout_row *row)
{
    philox_row start = {.sample_low = (words){0} + (uint32_t)row->sample,
                        .sample_high = (words){0} + (uint32_t)(row->sample >> 32),
                        .epoch = (words){0} + row->epoch};
    uint32_t k0 = row->key.words[0], k1 = row->key.words[1];
    for (int round = 0; round < ROUNDS; round++) {
        start.keys[round][0] = (words){0} + k0;
        start.keys[round][1] = (words){0} + k1;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return start;
}

/* tdm_philox for WIDTH / 2 groups, one in the lower half of each lane; the upper halves hold what
 * is left over, which no step looks at. */
static ALWAYS_INLINE void philox_lanes(const philox_row *row, words groups, words out[4])
{
    words c0 = groups, c1 = row->sample_low, c2 = row->sample_high, c3 = row->epoch;
    for (int round = 0; round < ROUNDS; round++) {
        words p0 = multiply_low(c0, 0xD2511F53u), p1 = multiply_low(c2, 0xCD9E8D57u);
        c0 = (p1 >> 32) ^ c1 ^ row->keys[round][0];
        c2 = (p0 >> 32) ^ c3 ^ row->keys[round][1];
        c1 = p1;
        c3 = p0;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The words of WIDTH groups that begin with `group`, in the order of their elements. Word k of a
 * 128-bit block q is that of group k · WIDTH / 4 + q, so that turning 4 × 4 blocks orders them. */
static ALWAYS_INLINE void philox_words(const philox_row *row, uint32_t group, words32 out[4])
{
    words even = {0}, odd, even_words[4], odd_words[4];
    for (uint32_t lane = 0; lane < WIDTH / 2; lane++)
        even[lane] = lane / 2 + lane % 2 * (WIDTH / 2);
    even += group;
    odd = even + WIDTH / 4;
    philox_lanes(row, even, even_words);
    philox_lanes(row, odd, odd_words);
    mm_words all[4];
    for (int i = 0; i < 4; i++)
        all[i] = (mm_words)((even_words[i] & 0xffffffffu) | odd_words[i] << 32);
    mm_words low01 = MM(unpacklo_epi32)(all[0], all[1]);
    mm_words low23 = MM(unpacklo_epi32)(all[2], all[3]);
    mm_words high01 = MM(unpackhi_epi32)(all[0], all[1]);
    mm_words high23 = MM(unpackhi_epi32)(all[2], all[3]);
    out[0] = (words32)MM(unpacklo_epi64)(low01, low23);
    out[1] = (words32)MM(unpackhi_epi64)(low01, low23);
    out[2] = (words32)MM(unpacklo_epi64)(high01, high23);
    out[3] = (words32)MM(unpackhi_epi64)(high01, high23);
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
        for (int part = 0; part < 4; part++) {
            mask kept = (mask)(drawn[part] >> 8) >= (int32_t)row->threshold;
            store(y + i + part * WIDTH, where(kept, load(x + i + part * WIDTH) * row->scale));
        }
    }
    if (i == n)
        return;
    philox_words(&start, group + (uint32_t)(i / 4), drawn);
    for (int64_t rest = i; i < n; i++)
        y[i] = drop(row, drawn[(i - rest) / WIDTH][(i - rest) % WIDTH], x[i]);
}

#else

static void drop_groups(int64_t n, const tdm_dropout_row *row, uint32_t group, const float *x,
                        float *y)
{
    for (int64_t i = 0; i < n; i += 4) {
        tdm_philox_words drawn =
            tdm_random4(row->key, row->sample, row->epoch, group + (uint32_t)(i / 4));
        for (int64_t j = i; j < n && j < i + 4; j++)
            y[j] = drop(row, drawn.words[j - i], x[j]);
    }
}

#endif

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
