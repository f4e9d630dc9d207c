/* Operands and products of attention. */
#include "cpu/kernels_attention_vector.h"

/* The rows of c in registers, by two vectors of columns. */
#if defined(__AVX512F__)
#define ROWS 8
#elif defined(__AVX2__)
#define ROWS 6
#else
#define ROWS 4
#endif
#define FEW_ROWS 4
#define PANEL    (2 * WIDTH)

#define BLOCK 16 /* units and columns that are turned at a time */

/* ---- operands -------------------------------------------------------------------------------- */

static ALWAYS_INLINE vector load_up_to(const float *from, int64_t count)
{
    return count >= WIDTH ? load(from) : count > 0 ? load_part(from, count) : (vector){0};
}

/* `k` floats, then zeros, as `count` units. */
static void pack_row(int64_t k, const float *x, unit *to, int64_t count)
{
    for (int64_t u = 0; u < count; u += WIDTH) {
        int64_t at = u * UNIT;
        store_row_units(to + u, load_up_to(x + at, k - at),
                        load_up_to(x + at + WIDTH, k - at - WIDTH));
    }
}

static void pack_rows(int64_t rows, int64_t k, const float *x, int64_t x_stride, void *to,
                      int64_t stride)
{
    for (int64_t r = 0; r < rows; r++)
        pack_row(k, x + r * x_stride, (unit *)to + r * stride, stride);
}

/* Where a column begins, and the units from there to the same column of the next k. */
static ALWAYS_INLINE unit *panel_column(const tdm_panels *panels, int64_t column, int64_t *step)
{
    int64_t first = column / PANEL * PANEL;
    *step = smaller(PANEL, panels->columns - first);
    return (unit *)panels->data + first * panels->units + (column - first);
}

static void pack_panels(int64_t k, int64_t n, const float *x, int64_t x_stride,
                        const tdm_panels *to)
{
    for (int64_t u = 0; u < to->units; u++) {
        int64_t r = u * UNIT;
        for (int64_t column = 0; column < to->columns; column += WIDTH) {
            int64_t step;
            unit *at = panel_column(to, column, &step);
            const float *row = x + r * x_stride + column;
            vector first = load_up_to(row, r < k ? n - column : 0);
            vector second = {0};
            if (UNIT == 2)
                second = load_up_to(row + x_stride, r + 1 < k ? n - column : 0);
            store_units(at + u * step, first, second);
        }
    }
}

/* The transpose of BLOCK columns of BLOCK units, to the column `column` of rows from `row` on. */
static ALWAYS_INLINE void turn_block(const unit *from, const tdm_panels *to, int64_t row,
                                     int64_t column, int64_t rows)
{
    for (int64_t c = 0; c < BLOCK; c += 4) {
        int64_t step;
        unit *at = panel_column(to, column + c, &step) + row * step;
        const float *block = (const float *)(const void *)(from + c * BLOCK);
        int64_t r = 0;
        for (; r + 4 <= rows; r += 4)
            transpose4(block + r, BLOCK, (float *)(void *)(at + r * step), step);
        for (; r < rows; r++) {
            for (int64_t i = 0; i < 4; i++)
                at[r * step + i] = from[(c + i) * BLOCK + r];
        }
    }
}

static void pack_turned(int64_t k, int64_t n, const float *x, int64_t x_stride,
                        const tdm_panels *to)
{
    unit block[BLOCK * BLOCK];
    for (int64_t column = 0; column < to->columns; column += BLOCK) {
        for (int64_t row = 0; row < to->units; row += BLOCK) {
            for (int64_t c = 0; c < BLOCK; c++)
                pack_row(column + c < n ? k - row * UNIT : 0,
                         x + smaller(column + c, n - 1) * x_stride + row * UNIT, block + c * BLOCK,
                         BLOCK);
            turn_block(block, to, row, column, smaller(BLOCK, to->units - row));
        }
    }
}

/* ---- products -------------------------------------------------------------------------------- */

/* `rows` rows of c by `vectors` vectors of columns, both constants where it is inlined. */
static ALWAYS_INLINE void product_part(int rows, int vectors, int64_t units, const unit *a,
                                       int64_t row_step, int64_t unit_step, const unit *b,
                                       const tdm_panel_product *p, int64_t row, float *c)
{
    vector sums[ROWS][2];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            sums[r][v] = (vector){0};
    }
    for (int64_t u = 0; u < units; u++) {
        vector columns[2];
        for (int v = 0; v < vectors; v++)
            columns[v] = load_units(b + v * WIDTH);
        for (int r = 0; r < rows; r++) {
            vector x = broadcast_unit(a + r * row_step + u * unit_step);
            for (int v = 0; v < vectors; v++)
                sums[r][v] = multiply_add_units(x, columns[v], sums[r][v]);
        }
        b += vectors * WIDTH;
    }
    for (int r = 0; r < rows; r++) {
        float *to = c + r * p->c_stride;
        float factor = p->factors == NULL ? 1.0f : p->factors[row + r];
        for (int v = 0; v < vectors; v++) {
            vector sum = sums[r][v];
            if (p->accumulate)
                sum = multiply_add_vector(load(to + v * WIDTH), constant(factor), sum);
            store(to + v * WIDTH, sum);
        }
    }
}

#define FETCH_ROWS 8

static ALWAYS_INLINE void fetch_some(tdm_fetch *fetch)
{
    if (fetch->run_count == 0)
        return;
    tdm_fetch_run *run = &fetch->runs[fetch->run_count - 1];
    for (int i = 0; i < FETCH_ROWS && run->count > 0; i++, run->count--) {
        for (int64_t d = 0; d < fetch->columns; d += LINE) {
            if (run->write)
                __builtin_prefetch(run->row + d, 1, 3);
            else
                __builtin_prefetch(run->row + d, 0, 2);
        }
        run->row += run->stride;
    }
    fetch->run_count -= run->count == 0;
}

/* All rows of one panel; a_turned and vectors are constants where it is inlined. */
static ALWAYS_INLINE void product_panel(const tdm_panel_product *p, bool a_turned, int vectors,
                                        const unit *b, float *c)
{
    int64_t row_step = a_turned ? 1 : p->a_stride, unit_step = a_turned ? p->a_stride : 1;
    const unit *a = p->a;
    int64_t row = 0;
#define PART(rows)                                                                                 \
    for (; row + (rows) <= p->m; row += (rows)) {                                                  \
        fetch_some(p->fetch);                                                                      \
        product_part(rows, vectors, p->units, a + row * row_step, row_step, unit_step, b, p, row,  \
                     c + row * p->c_stride);                                                       \
    }
    PART(ROWS)
    PART(FEW_ROWS)
    PART(1)
#undef PART
}

static void product(const tdm_panel_product *p)
{
    for (int64_t column = 0; column < p->n; column += PANEL) {
        int64_t step;
        const unit *b = panel_column(&p->b, p->b_column + column, &step) + p->b_unit * step;
        bool whole = PANEL <= TDM_ATTENTION_PAD || step == PANEL;
        if (whole && p->a_turned)
            product_panel(p, true, 2, b, p->c + column);
        else if (whole)
            product_panel(p, false, 2, b, p->c + column);
        else if (p->a_turned)
            product_panel(p, true, 1, b, p->c + column);
        else
            product_panel(p, false, 1, b, p->c + column);
    }
}

const tdm_attention_kernels KERNEL(attention) = {
    .unit = UNIT,
    .pack_rows = pack_rows,
    .pack_panels = pack_panels,
    .pack_turned = pack_turned,
    .product = product,
    .softmax = KERNEL(softmax),
    .softmax_bwd = KERNEL(softmax_bwd),
};
