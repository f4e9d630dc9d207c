#include "features/ctr_featurizer.h"

#include "core/memory.h"
#include "data/order.h"
#include "features/cells.h"
#include "features/distinct.h"

#include <string.h>

typedef struct ctr_featurizer {
    tdm_featurizer base;
    const tdm_feature_spec *spec;
    tdm_ctr_use use;
    tdm_field_plan *plans;
    tdm_ln_squared_bins *ln_squared;
    int ids_column, dense_column; /* of a block; -1 where there are none */
    int label_tensor, dense_tensor, ids_tensor;
    tdm_distinct_scratch *distinct; /* [threads] */
    int threads;
} ctr_featurizer;

#define FINISH_PARTS 8

/* ---- extract --------------------------------------------------------------------------------- */

/* Which records were refused, noted beside what the caller of extract wants to hear. */
typedef struct refusals {
    bool any;
    bool *refused;
    void (*reject)(void *context, int64_t record, int32_t column, const char *reason);
    void *context;
} refusals;

static void note_refusal(void *context, int64_t record, int32_t column, const char *reason)
{
    refusals *noted = context;
    noted->any = true;
    noted->refused[record] = true;
    noted->reject(noted->context, record, column, reason);
}

/* Closes the gaps that refused records left in the rows from `first` on. */
static int64_t drop_refused(const tdm_columns_layout *layout, const refusals *noted,
                            tdm_extract *out, uint32_t *row_records, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (noted->refused[i])
            continue;
        for (int c = 0; c < layout->count && kept != i; c++) {
            size_t bytes = tdm_column_row_bytes(&layout->columns[c]);
            char *rows = (char *)out->columns[c] + (size_t)out->rows * bytes;
            memcpy(rows + (size_t)kept * bytes, rows + (size_t)i * bytes, bytes);
        }
        row_records[kept++] = (uint32_t)i;
    }
    return kept;
}

static tdm_status extract(const tdm_featurizer *base, const tdm_records *records, tdm_extract *out,
                          uint32_t *row_records, int64_t *rows,
                          void (*reject)(void *context, int64_t record, int32_t column,
                                         const char *reason),
                          void *context)
{
    const ctr_featurizer *featurizer = (const ctr_featurizer *)base;
    const tdm_feature_spec *spec = featurizer->spec;
    bool refused[4096];
    TDM_FAIL_IF(records->count > (int64_t)sizeof refused, TDM_E_ARG, "too many records at once");
    memset(refused, 0, (size_t)records->count);
    refusals noted = {.refused = refused, .reject = reject, .context = context};
    tdm_cells cells = {.records = records, .reject = note_refusal, .context = &noted};
    float *labels = (float *)out->columns[0] + out->rows;
    cells.column = spec->label;
    if (featurizer->use == TDM_CTR_PREDICTION)
        memset(labels, 0, (size_t)records->count * sizeof *labels);
    else
        tdm_cells_labels(&cells, labels);
    for (int32_t f = 0; f < spec->field_count; f++) {
        uint32_t *ids =
            (uint32_t *)out->columns[featurizer->ids_column] + out->rows * spec->field_count + f;
        cells.column = spec->fields[f].column;
        tdm_cells_ids(&featurizer->plans[f], &cells, ids, spec->field_count);
    }
    for (int32_t d = 0; d < spec->dense_count; d++) {
        float *values =
            (float *)out->columns[featurizer->dense_column] + out->rows * spec->dense_count + d;
        cells.column = spec->dense[d].column;
        tdm_cells_numbers(&spec->dense[d], &cells, values, spec->dense_count);
    }
    *rows = records->count;
    if (noted.any) {
        *rows = drop_refused(&base->columns, &noted, out, row_records, records->count);
        return TDM_OK;
    }
    for (int64_t i = 0; i < records->count; i++)
        row_records[i] = (uint32_t)i;
    return TDM_OK;
}

/* ---- windows and batches --------------------------------------------------------------------- */

static tdm_status open_window(const tdm_featurizer *featurizer, uint64_t seed, bool shuffle,
                              tdm_window *window)
{
    (void)featurizer;
    window->rows = 0;
    size_t capacity = 0;
    for (int b = 0; b < window->block_count; b++) {
        window->rows += window->blocks[b]->rows;
        capacity += window->blocks[b]->capacity;
    }
    TDM_TRY(tdm_grow(&window->order, &window->order_capacity, capacity, sizeof *window->order));
    int64_t row = 0;
    for (int b = 0; b < window->block_count; b++) {
        for (int64_t r = 0; r < window->blocks[b]->rows; r++)
            window->order[row++] = (uint32_t)b << TDM_ORDER_ROW_BITS | (uint32_t)r;
    }
    if (shuffle && window->rows > 1) {
        tdm_philox_key key = tdm_philox_make_key(seed, TDM_PURPOSE_ROW_ORDER, 0);
        tdm_shuffle(window->order, window->rows, key, (uint64_t)window->blocks[0]->block,
                    tdm_extract_counter(window->blocks[0], window->epoch));
    }
    return TDM_OK;
}

/* Rows are moved in groups: a group's rows are read side by side, and each field's ids, which lie
 * apart in the batch, are written a cache line at a time. */
#define GROUP 16

static void assemble_ids(const ctr_featurizer *featurizer, const uint32_t *const *sources,
                         int64_t count, tdm_batch *batch, int64_t at)
{
    int32_t fields = featurizer->spec->field_count;
    int64_t batch_size = batch->layout->batch_size;
    uint32_t *ids = (uint32_t *)tdm_batch_data(batch, featurizer->ids_tensor) + at;
    for (int32_t f = 0; f < fields; f++) {
        for (int64_t i = 0; i < count; i++)
            ids[i] = sources[i][f];
        ids += batch_size;
    }
}

static void assemble(const tdm_featurizer *base, const tdm_window *window, int64_t first,
                     int64_t count, tdm_batch *batch, int64_t at, int64_t token)
{
    (void)token;
    const ctr_featurizer *featurizer = (const ctr_featurizer *)base;
    int32_t fields = featurizer->spec->field_count;
    int32_t dense = featurizer->spec->dense_count;
    float *weights = tdm_batch_data(batch, TDM_BATCH_WEIGHT);
    uint64_t *samples = tdm_batch_data(batch, TDM_BATCH_SAMPLE);
    uint32_t *occurrences = tdm_batch_data(batch, TDM_BATCH_OCCURRENCE);
    float *labels = tdm_batch_data(batch, featurizer->label_tensor);
    for (int64_t done = 0; done < count; done += GROUP) {
        int64_t group = count - done < GROUP ? count - done : GROUP;
        const uint32_t *sources[GROUP];
        for (int64_t i = 0; i < group; i++) {
            uint32_t packed = window->order[first + done + i];
            const tdm_extract *block = window->blocks[packed >> TDM_ORDER_ROW_BITS];
            int64_t row = packed & (((uint32_t)1 << TDM_ORDER_ROW_BITS) - 1);
            int64_t to = at + done + i;
            weights[to] = 1;
            samples[to] = (uint64_t)block->block << 32 | (uint64_t)row;
            occurrences[to] = (uint32_t)block->occurrence;
            labels[to] = ((const float *)block->columns[0])[row];
            if (fields > 0)
                sources[i] =
                    (const uint32_t *)block->columns[featurizer->ids_column] + row * fields;
            if (dense > 0)
                memcpy((float *)tdm_batch_data(batch, featurizer->dense_tensor) + to * dense,
                       (const float *)block->columns[featurizer->dense_column] + row * dense,
                       (size_t)dense * sizeof(float));
        }
        if (fields > 0)
            assemble_ids(featurizer, sources, group, batch, at + done);
    }
}

static void finish(const tdm_featurizer *base, tdm_batch *batch, int part)
{
    const ctr_featurizer *featurizer = (const ctr_featurizer *)base;
    for (int32_t f = part; f < featurizer->spec->field_count; f += FINISH_PARTS)
        tdm_find_distinct(batch, featurizer->ids_tensor, f,
                          &featurizer->distinct[tdm_pool_thread_index()]);
}

/* ---- creation -------------------------------------------------------------------------------- */

static void destroy(tdm_featurizer *base)
{
    ctr_featurizer *featurizer = (ctr_featurizer *)base;
    for (int32_t f = 0; featurizer->plans != NULL && f < featurizer->spec->field_count; f++)
        tdm_field_plan_deinit(&featurizer->plans[f]);
    for (int i = 0; featurizer->distinct != NULL && i < featurizer->threads; i++)
        tdm_distinct_scratch_deinit(&featurizer->distinct[i]);
    tdm_free(featurizer->plans);
    tdm_free(featurizer->distinct);
    tdm_free(featurizer->ln_squared);
    tdm_free(featurizer);
}

static const tdm_featurizer_type ctr_type = {
    .name = "ctr",
    .extract = extract,
    .open_window = open_window,
    .assemble = assemble,
    .finish = finish,
    .destroy = destroy,
};

static tdm_status plan_fields(ctr_featurizer *featurizer)
{
    const tdm_feature_spec *spec = featurizer->spec;
    TDM_TRY(tdm_alloc((size_t)spec->field_count, sizeof *featurizer->plans, &featurizer->plans));
    TDM_TRY(tdm_alloc(1, sizeof *featurizer->ln_squared, &featurizer->ln_squared));
    tdm_ln_squared_bins_init(featurizer->ln_squared);
    for (int32_t f = 0; f < spec->field_count; f++)
        TDM_TRY(tdm_field_plan_init(&featurizer->plans[f], &spec->fields[f], spec->hash_seed,
                                    featurizer->ln_squared));
    return TDM_OK;
}

static void lay_out_columns(ctr_featurizer *featurizer)
{
    tdm_columns_layout *columns = &featurizer->base.columns;
    const tdm_feature_spec *spec = featurizer->spec;
    columns->columns[columns->count++] = (tdm_column){"label", TDM_F32, 1};
    featurizer->ids_column = featurizer->dense_column = -1;
    if (spec->field_count > 0) {
        featurizer->ids_column = columns->count;
        columns->columns[columns->count++] = (tdm_column){"ids", TDM_U32, spec->field_count};
    }
    if (spec->dense_count > 0) {
        featurizer->dense_column = columns->count;
        columns->columns[columns->count++] = (tdm_column){"dense", TDM_F32, spec->dense_count};
    }
}

static tdm_status lay_out_batch(ctr_featurizer *featurizer, int64_t batch_size)
{
    tdm_batch_layout *batch = &featurizer->base.batch;
    const tdm_feature_spec *spec = featurizer->spec;
    tdm_batch_layout_init(batch, batch_size);
    featurizer->label_tensor =
        tdm_batch_layout_add(batch, "label", TDM_F32, (tdm_shape){1, {batch_size}});
    if (spec->dense_count > 0)
        featurizer->dense_tensor = tdm_batch_layout_add(
            batch, "dense", TDM_F32, (tdm_shape){2, {batch_size, spec->dense_count}});
    if (spec->field_count == 0)
        return TDM_OK;
    featurizer->ids_tensor = tdm_batch_layout_add(batch, "ids", TDM_U32,
                                                  (tdm_shape){2, {spec->field_count, batch_size}});
    if (featurizer->use != TDM_CTR_TRAINING)
        return TDM_OK;
    featurizer->base.finish_parts = FINISH_PARTS;
    tdm_distinct_layout_add(batch, spec->field_count);
    TDM_TRY(tdm_alloc((size_t)featurizer->threads, sizeof *featurizer->distinct,
                      &featurizer->distinct));
    for (int i = 0; i < featurizer->threads; i++)
        TDM_TRY(tdm_distinct_scratch_init(&featurizer->distinct[i], batch_size));
    return TDM_OK;
}

tdm_status tdm_ctr_featurizer_create(const tdm_feature_spec *spec, const tdm_record_format *format,
                                     tdm_pool *pool, int64_t batch_size, tdm_ctr_use use,
                                     tdm_featurizer **out)
{
    *out = NULL;
    ctr_featurizer *featurizer;
    TDM_TRY(tdm_alloc(1, sizeof *featurizer, &featurizer));
    featurizer->base.type = &ctr_type;
    featurizer->spec = spec;
    featurizer->use = use;
    featurizer->threads = tdm_pool_threads(pool);
    tdm_status status;
    TDM_TRY_GOTO(plan_fields(featurizer), fail);
    lay_out_columns(featurizer);
    TDM_TRY_GOTO(lay_out_batch(featurizer, batch_size), fail);
    TDM_TRY_GOTO(tdm_feature_spec_hash(spec, format, &featurizer->base.spec_hash), fail);
    /* Blocks without labels are others. */
    featurizer->base.spec_hash += use == TDM_CTR_PREDICTION;
    *out = &featurizer->base;
    return TDM_OK;
fail:
    destroy(&featurizer->base);
    return status;
}
