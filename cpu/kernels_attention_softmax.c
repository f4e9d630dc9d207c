/* Softmax of a block of scores, the dropout of its weights, and the way back. */
#include "cpu/kernels_activation.h"
#include "cpu/kernels_attention_vector.h"
#include "cpu/kernels_philox.h"

#include <string.h>

/* What does not count in a row becomes -inf, whose exponential is 0. False where nothing counts. */
static ALWAYS_INLINE bool mask_row(const tdm_score_block *block, int64_t r, float *row)
{
    int64_t query = block->row + r - block->column, keys = block->keys - block->column;
    int64_t begin = smaller(query - block->window, block->columns);
    int64_t end = smaller(query + block->window + 1, smaller(keys, block->columns));
    for (int64_t i = 0; i < begin; i++)
        row[i] = -INFINITY;
    for (int64_t i = end < 0 ? 0 : end; i < block->columns; i++)
        row[i] = -INFINITY;
    return begin < end && end > 0;
}

/* The words of row r, in the block's room for them. They are drawn in whole groups. */
static ALWAYS_INLINE const uint32_t *draw_row(const tdm_score_block *block, const philox_row *start,
                                              int64_t r, uint32_t *words_of_row)
{
    int64_t first = block->first_draw + (block->row + r) * block->draw_stride + block->column;
    int64_t count = block->columns + (first & 3);
    uint32_t group = (uint32_t)(first >> 2);
    for (int64_t i = 0; i < count; i += 4 * WIDTH, group += WIDTH) {
        words32 drawn[4];
        philox_words(start, group, drawn);
        for (int part = 0; part < 4; part++)
            store((float *)(void *)(words_of_row + i + part * WIDTH), (vector)drawn[part]);
    }
    return words_of_row + (first & 3);
}

static ALWAYS_INLINE vector keep(const tdm_dropout_row *draws, const uint32_t *drawn, vector value)
{
    return where(kept_mask(draws, (words32)load((const float *)(const void *)drawn)), value);
}

static ALWAYS_INLINE float max_lanes(vector values)
{
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)values);
#else
    float lanes[WIDTH];
    store(lanes, values);
    float largest = lanes[0];
    for (int i = 1; i < WIDTH; i++)
        largest = lanes[i] > largest ? lanes[i] : largest;
    return largest;
#endif
}

static ALWAYS_INLINE void store_weights(unit *row, int64_t column, vector weights)
{
#if UNIT == 2
    store_half_row_units(row + column / 2, weights);
#else
    store(row + column, weights);
#endif
}

static ALWAYS_INLINE vector largest_score(const tdm_score_block *block, const float *row)
{
    vector largest = constant(-INFINITY);
    for (int64_t i = 0; i < block->columns; i += WIDTH)
        largest = max_vector(load(row + i) * block->scale, largest);
    return largest;
}

void KERNEL(softmax)(const tdm_score_block *block, float *scores, void *weights, float *maxima,
                     float *sums, float *factors)
{
    const tdm_dropout_row *draws = block->draws;
    philox_row start;
    if (draws != NULL)
        start = philox_start(draws);
    for (int64_t r = 0; r < block->rows; r++) {
        float *row = scores + r * block->stride;
        unit *to = (unit *)weights + r * (block->stride / UNIT);
        if (!mask_row(block, r, row)) {
            factors[r] = 1.0f;
            memset(to, 0, (size_t)(block->columns / UNIT) * sizeof(unit));
            continue;
        }
        float before = maxima[r], now = max_lanes(largest_score(block, row));
        now = before > now ? before : now;
        vector total = {0};
        const uint32_t *drawn = draws == NULL ? NULL : draw_row(block, &start, r, block->words);
        for (int64_t i = 0; i < block->columns; i += WIDTH) {
            vector e = exp_vector(
                multiply_add_vector(load(row + i), constant(block->scale), constant(-now)));
            total += e;
            store_weights(to, i, drawn == NULL ? e : keep(draws, drawn + i, e));
        }
        factors[r] = expf(before - now);
        maxima[r] = now;
        sums[r] = multiply_add(sums[r], factors[r], sum_vector(total));
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

typedef struct score_gradient {
    vector weights, gradients;
} score_gradient;

static ALWAYS_INLINE score_gradient gradient_at(const tdm_score_block *block, const float *scores,
                                                const float *d_weights, const uint32_t *drawn,
                                                float log_sum, float dot)
{
    vector p =
        exp_vector(multiply_add_vector(load(scores), constant(block->scale), constant(-log_sum)));
    vector d = load(d_weights), weights = p;
    if (drawn != NULL) {
        d = keep(block->draws, drawn, d * block->draws->scale);
        weights = keep(block->draws, drawn, p);
    }
    return (score_gradient){weights, p * (d - dot)};
}

static ALWAYS_INLINE void store_gradient(unit *weights, unit *gradients, unit *gradients_turned,
                                         int64_t stride, int64_t column,
                                         const score_gradient at[UNIT])
{
#if UNIT == 2
    store_units(weights + column, at[0].weights, at[1].weights);
    store_units(gradients_turned + column, at[0].gradients, at[1].gradients);
    store_half_row_units(gradients + column / 2, at[0].gradients);
    store_half_row_units(gradients + (stride + column) / 2, at[1].gradients);
#else
    (void)gradients_turned;
    (void)stride;
    store(weights + column, at[0].weights);
    store(gradients + column, at[0].gradients);
#endif
}

/* Rows of one unit at a time; in the last one, one may be missing. */
void KERNEL(softmax_bwd)(const tdm_score_block *block, float *scores, float *d_weights,
                         const float *log_sums, const float *dots, void *weights, void *gradients,
                         void *gradients_turned)
{
    const tdm_dropout_row *draws = block->draws;
    int64_t stride = block->stride;
    philox_row start;
    if (draws != NULL)
        start = philox_start(draws);
    for (int64_t r = 0; r < block->rows; r += UNIT) {
        int64_t count = smaller(UNIT, block->rows - r);
        const uint32_t *drawn[UNIT] = {NULL};
        for (int64_t q = 0; q < count; q++) {
            mask_row(block, r + q, scores + (r + q) * stride);
            if (draws != NULL)
                drawn[q] = draw_row(block, &start, r + q,
                                    block->words + q * (stride + TDM_ATTENTION_WORDS));
        }
        unit *to_weights = (unit *)weights + r / UNIT * stride;
        unit *to_gradients = (unit *)gradients + r * (stride / UNIT);
        unit *to_turned = (unit *)gradients_turned + r / UNIT * stride;
        for (int64_t i = 0; i < block->columns; i += WIDTH) {
            score_gradient at[UNIT] = {0};
            for (int64_t q = 0; q < count; q++)
                at[q] = gradient_at(
                    block, scores + (r + q) * stride + i, d_weights + (r + q) * stride + i,
                    drawn[q] == NULL ? NULL : drawn[q] + i, log_sums[r + q], dots[r + q]);
            store_gradient(to_weights, to_gradients, to_turned, stride, i, at);
        }
    }
}
