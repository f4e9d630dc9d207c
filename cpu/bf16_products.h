/* Products of packed bfloat16 blocks by oneDNN. Its primitives are compiled for fixed shapes, while
 * the valid rows of a batch change with every step: so a product is cut along its rows and its depth
 * (the dimension that is summed over) into few sizes, all of which are compiled when a shape is
 * first met. */
#ifndef TDM_CPU_BF16_PRODUCTS_H
#define TDM_CPU_BF16_PRODUCTS_H

#include "core/status.h"
#include "cpu/bf16.h"

#define TDM_BF16_ROW_SIZES   5
#define TDM_BF16_DEPTH_SIZES 5
/* Falling; the last divides the others. */
extern const int64_t tdm_bf16_row_sizes[TDM_BF16_ROW_SIZES];     /* down to 1 */
extern const int64_t tdm_bf16_depth_sizes[TDM_BF16_DEPTH_SIZES]; /* down to 32: packed depths */
#define TDM_BF16_MOST_ROWS  128
#define TDM_BF16_MOST_DEPTH 512
#define TDM_BF16_DEPTH_UNIT 32

/* The first size that is at most `left`. */
static inline int tdm_bf16_size(const int64_t *sizes, int64_t left)
{
    int index = 0;
    while (sizes[index] > left)
        index++;
    return index;
}

/* Members are all of one type: shapes are compared as bytes. */
typedef struct tdm_bf16_shape {
    int64_t columns[2]; /* of b and c: two widths, the second may be 0 */
    int64_t c_stride;
    int64_t trans_a;                /* blocks of a are [depth, rows], else [rows, depth] */
    int64_t row_sizes, depth_sizes; /* bits: which indices are needed */
    int64_t first_sizes;            /* depths that overwrite c; depth_sizes are added to it */
} tdm_bf16_shape;

typedef struct tdm_bf16_products tdm_bf16_products;
typedef struct tdm_bf16_plan tdm_bf16_plan;

/* `threads`: how many may run products at once. */
TDM_MUST_CHECK tdm_status tdm_bf16_products_create(int threads, tdm_bf16_products **out);
void tdm_bf16_products_destroy(tdm_bf16_products *products); /* NULL is allowed */

/* Borrowed; compiled at the first call with this shape. */
TDM_MUST_CHECK tdm_status tdm_bf16_products_get(tdm_bf16_products *products,
                                                const tdm_bf16_shape *shape,
                                                const tdm_bf16_plan **out);

/* Working memory that a run needs. */
size_t tdm_bf16_plan_scratch(const tdm_bf16_plan *plan);

typedef struct tdm_bf16_run {
    int row_size, depth_size, column_width; /* indices */
    bool accumulate;
    const tdm_bf16 *a; /* a block as tdm_bf16_pack leaves it */
    const tdm_bf16 *b; /* panels */
    float *c;
    void *scratch;
} tdm_bf16_run;

/* c = or += a · b on thread `thread` of the pool. False where oneDNN fails. */
bool tdm_bf16_plan_run(const tdm_bf16_plan *plan, int thread, const tdm_bf16_run *run);

#endif
