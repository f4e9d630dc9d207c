/* The inner loops of attention, over blocks that stay in the caches. As in kernels.h, one source is
 * compiled for each instruction set; for AVX512_BF16 a second time, with operands of bfloat16.
 *
 * Products are made of units of 32 bits: a float, or two bfloat16 of neighbouring k, which one
 * instruction multiplies and adds. An operand of [m, k] is rows of units; an operand of [k, n] lies
 * in panels: the columns, padded with zeros to a multiple of TDM_ATTENTION_PAD, are cut into panels
 * of some vectors, and a panel holds its part of one row of units after the other. */
#ifndef TDM_CPU_KERNELS_ATTENTION_H
#define TDM_CPU_KERNELS_ATTENTION_H

#include "cpu/kernels.h"

#define TDM_ATTENTION_PAD   16 /* floats */
#define TDM_ATTENTION_PANEL 32 /* a multiple of the columns of a panel of each table */

/* An operand of [units, columns]. */
typedef struct tdm_panels {
    void *data;
    int64_t units;
    int64_t columns; /* padded */
} tdm_panels;

/* Rows of `columns` floats that are wanted soon. A product fetches some of them into the cache with
 * each of its parts: they come from far away, and packing would wait for every line. */
#define TDM_FETCH_RUNS 8
typedef struct tdm_fetch_run {
    const float *row; /* the next one */
    int64_t stride, count;
    bool write; /* they are wanted to be written */
} tdm_fetch_run;

typedef struct tdm_fetch {
    tdm_fetch_run runs[TDM_FETCH_RUNS];
    int run_count; /* those at and behind it are not used */
    int64_t columns;
} tdm_fetch;

/* c [m, n] = a · b, or c = factors ∘ c + a · b. */
typedef struct tdm_panel_product {
    int64_t m, n, units; /* n padded */
    const void *a;
    int64_t a_stride; /* units */
    bool a_turned;    /* a lies as [units, m] */
    tdm_panels b;
    int64_t b_unit, b_column; /* where [units, n] begins; the column at the beginning of a panel */
    bool accumulate;
    const float *factors; /* [m]; NULL: 1 */
    float *c;
    int64_t c_stride;
    tdm_fetch *fetch; /* used up */
} tdm_panel_product;

/* A block of scores: rows of queries, columns of keys. */
typedef struct tdm_score_block {
    int64_t rows, columns; /* columns padded */
    int64_t stride;        /* floats from one row to the next, padded */
    int64_t row, column;   /* where it begins among the queries and keys of the sequence */
    int64_t keys;          /* from this one on, keys are padding */
    int64_t window;        /* keys that far from the query are the last that count */
    float scale;
    const tdm_dropout_row *draws; /* NULL: nothing is dropped */
    int64_t first_draw;           /* the element of query 0 and key 0 */
    int64_t draw_stride;          /* elements from one query to the next */
    uint32_t *words;              /* room for 2 · (stride + TDM_ATTENTION_WORDS) */
} tdm_score_block;
#define TDM_ATTENTION_WORDS 80

typedef struct tdm_attention_kernels {
    int unit; /* elements of k in a unit */

    /* x [rows, k] as rows of units, `stride` units apart, padded with zeros up to there */
    void (*pack_rows)(int64_t rows, int64_t k, const float *x, int64_t x_stride, void *to,
                      int64_t stride);
    /* x [k, n] as panels; to->units and to->columns say how large they are */
    void (*pack_panels)(int64_t k, int64_t n, const float *x, int64_t x_stride,
                        const tdm_panels *to);
    /* The transpose of x [n, k] as panels. */
    void (*pack_turned)(int64_t k, int64_t n, const float *x, int64_t x_stride,
                        const tdm_panels *to);
    void (*product)(const tdm_panel_product *product);

    /* Goes on with a softmax: maxima and sums [rows], -inf and 0 at first, take this block in;
     * weights = keep · e^(scale · scores - maxima) as rows of units, and what was added up with the
     * maxima of before has to be multiplied by `factors`. Weights of float may be the scores. The
     * scores are used up. */
    void (*softmax)(const tdm_score_block *block, float *scores, void *weights, float *maxima,
                    float *sums, float *factors);
    /* With p = e^(scale · scores - log_sums): weights = p ∘ keep, turned: [rows, columns] as rows
     * of units of k = rows; and gradients = p ∘ (keep / (1 - rate) ∘ d_weights - dots), as rows of
     * units and turned. In float the two are one, and may be d_weights, and weights the scores;
     * these are used up. */
    void (*softmax_bwd)(const tdm_score_block *block, float *scores, float *d_weights,
                        const float *log_sums, const float *dots, void *weights, void *gradients,
                        void *gradients_turned);
} tdm_attention_kernels;

/* Products of bfloat16; NULL where this CPU lacks AVX512_BF16. */
const tdm_attention_kernels *tdm_attention_kernels_bf16(void);

#endif
