/* Products of packed bfloat16 blocks by oneDNN. Its primitives are compiled for fixed shapes and
 * write matrices without gaps, while the valid rows of a batch change with every step: so there are
 * blocks of a few sizes, from which everything else is put together. */
#ifndef TDM_CPU_BF16_PRODUCTS_H
#define TDM_CPU_BF16_PRODUCTS_H

#include "core/status.h"
#include "cpu/bf16.h"

/* The sizes of a block, falling; each is a multiple of the next. Depth is the dimension that is
 * summed over. */
#define TDM_BF16_ROWS    128, 32
#define TDM_BF16_COLUMNS 256, TDM_BF16_PANEL
#define TDM_BF16_DEPTHS  512, 256, 128, 64, 32
enum { TDM_BF16_ROW_SIZES = 2, TDM_BF16_COLUMN_SIZES = 2, TDM_BF16_DEPTH_SIZES = 5 };
extern const int64_t tdm_bf16_rows[TDM_BF16_ROW_SIZES];
extern const int64_t tdm_bf16_columns[TDM_BF16_COLUMN_SIZES];
extern const int64_t tdm_bf16_depths[TDM_BF16_DEPTH_SIZES];

/* The index of the largest size that is at most `left`, a positive multiple of the last. */
static inline int tdm_bf16_size(const int64_t *sizes, int64_t left)
{
    int index = 0;
    while (sizes[index] > left)
        index++;
    return index;
}

typedef struct tdm_bf16_products tdm_bf16_products;

/* Compiles all blocks. `threads`: how many may run products at once. */
TDM_MUST_CHECK tdm_status tdm_bf16_products_create(int threads, tdm_bf16_products **out);
void tdm_bf16_products_destroy(tdm_bf16_products *products); /* NULL is allowed */

/* c [rows, columns] = or += a · b. */
typedef struct tdm_bf16_block {
    int row_size, column_size, depth_size; /* indices */
    bool accumulate;
    const tdm_bf16 *a; /* [rows, depth] */
    const tdm_bf16 *b; /* columns / TDM_BF16_PANEL panels of `depth` rows */
    float *c;
} tdm_bf16_block;

/* On thread `thread` of the pool. False where oneDNN fails. */
bool tdm_bf16_multiply(const tdm_bf16_products *products, int thread, const tdm_bf16_block *block);

#endif
