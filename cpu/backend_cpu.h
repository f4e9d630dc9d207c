/* What the files of the CPU backend share. */
#ifndef TDM_CPU_BACKEND_CPU_H
#define TDM_CPU_BACKEND_CPU_H

#include "core/backend.h"
#include "core/ops.h"
#include "cpu/kernels.h"

typedef struct tdm_cpu_backend {
    tdm_backend base;
    const tdm_kernels *kernels;
    void *scratch; /* of the op that runs */
    size_t scratch_bytes;
    bool bf16; /* products in bfloat16; tests clear it */
    struct tdm_bf16_products *bf16_products;
} tdm_cpu_backend;

static inline tdm_cpu_backend *tdm_cpu(tdm_backend *backend)
{
    return (tdm_cpu_backend *)(void *)backend;
}

/* The direct mode, on which the deferred mode is built. */
extern const tdm_backend_type tdm_cpu_direct;
extern const tdm_ops tdm_cpu_direct_ops;

/* Fills in a backend that lies in zeroed memory; deinit frees what it came to own. */
void tdm_cpu_init(tdm_cpu_backend *backend, tdm_pool *pool, const tdm_backend_type *type,
                  const tdm_ops *ops);
void tdm_cpu_deinit(tdm_cpu_backend *backend);

/* Tests: uses the kernels called `name` from now on; TDM_E_UNSUPPORTED where this CPU lacks them.
 */
TDM_MUST_CHECK tdm_status tdm_cpu_use_kernels(tdm_backend *backend, const char *name);

/* At least `bytes` of memory for the op that runs, not set; it is the backend's, grows, and stays.
 */
TDM_MUST_CHECK tdm_status tdm_cpu_scratch(tdm_cpu_backend *backend, size_t bytes, void *out);

/* ---- helpers of the ops ---------------------------------------------------------------------- */

/* The count of valid rows of a matrix with `all` rows. */
static inline int64_t tdm_cpu_rows(const int64_t *rows, int64_t all)
{
    return rows == NULL || *rows > all ? all : *rows;
}

static inline float *tdm_cpu_row(const tdm_matrix *matrix, int64_t row)
{
    return (float *)matrix->data + row * matrix->stride;
}

static inline int64_t tdm_cpu_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Tiles of `size` that cover `count`. */
static inline int64_t tdm_cpu_tiles(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}

/* Rows that make a tile of about 16 Ki elements: enough work to pay for handing it out. */
static inline int64_t tdm_cpu_tile_rows(int64_t columns)
{
    int64_t rows = 16384 / (columns > 0 ? columns : 1);
    return rows < 8 ? 8 : rows;
}

/* The draws of rows, but for what the two below set. With rate 0 nothing is looked at. */
tdm_dropout_row tdm_cpu_dropout_row(const tdm_dropout_draws *draws);

/* Those of row `row` of the batch, from its first element on. */
static inline void tdm_cpu_dropout_of(const tdm_dropout_draws *draws, int64_t row,
                                      tdm_dropout_row *out)
{
    uint32_t occurrence = draws->occurrences == NULL ? 0 : draws->occurrences[row];
    out->sample = draws->samples[row];
    out->epoch = (uint32_t)draws->scalars->epoch | occurrence << 16;
}

/* Those of row `row` of a matrix of so many columns. */
static inline void tdm_cpu_dropout_at(const tdm_dropout_draws *draws, int64_t row, int64_t columns,
                                      tdm_dropout_row *out)
{
    tdm_cpu_dropout_of(draws, draws->sample_rows == NULL ? row : draws->sample_rows[row], out);
    out->first = draws->positions == NULL ? 0 : draws->positions[row] * (uint32_t)columns;
}

/* TDM_E_UNSUPPORTED naming `op` unless each of the matrices is F32. */
TDM_MUST_CHECK tdm_status tdm_cpu_need_f32(const char *op, const tdm_matrix *matrices, int count);

#define TDM_CPU_NEED_F32(op, ...)                                                                  \
    TDM_TRY(                                                                                       \
        tdm_cpu_need_f32((op), (const tdm_matrix[]){__VA_ARGS__},                                  \
                         (int)(sizeof((const tdm_matrix[]){__VA_ARGS__}) / sizeof(tdm_matrix))))

/* TDM_E_UNSUPPORTED where this CPU does not multiply bfloat16. */
TDM_MUST_CHECK tdm_status tdm_cpu_need_bf16(const tdm_backend *backend);

#define TDM_CPU_OP(name, kind)                                                                     \
    tdm_status tdm_cpu_##name(tdm_backend *backend, const tdm_##name##_args *args,                 \
                              tdm_stream *stream);
TDM_OPS_LIST(TDM_CPU_OP)
#undef TDM_CPU_OP

#endif
