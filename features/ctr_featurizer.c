#include "features/ctr_featurizer.h"

#include "core/memory.h"
#include "data/order.h"
#include "features/distinct.h"
#include "features/hash.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bins that come up all the time have their ids ready. */
#define BIN_FIRST (-16)
#define BIN_COUNT 512

/* A field, ready to run. */
typedef struct field_plan {
    uint64_t salt;
    uint32_t *bin_ids; /* [BIN_COUNT] of a hashed transform, from BIN_FIRST; NULL for the rest */
} field_plan;

typedef struct ctr_featurizer {
    tdm_featurizer base;
    const tdm_feature_spec *spec;
    tdm_ctr_use use;
    field_plan *plans;
    tdm_ln_squared_bins *ln_squared;
    int ids_column, dense_column; /* of a block; -1 where there are none */
    int label_tensor, dense_tensor, ids_tensor;
    tdm_distinct_scratch *distinct; /* [threads] */
    int threads;
} ctr_featurizer;

#define FINISH_PARTS 8

/* The columns of one group of records. */
typedef struct record_view {
    const tdm_records *records;
    int32_t column;
    void (*reject)(void *context, int64_t record, int32_t column, const char *reason);
    void *context;
} record_view;

static tdm_span cell_at(const record_view *view, int64_t record)
{
    return view->records->cells[record * view->records->columns + view->column];
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void hash_values(const tdm_field *field, const field_plan *plan, const record_view *view,
                        uint32_t *ids, int64_t stride)
{
    const char *text = view->records->text;
    uint64_t salt = plan->salt;
    uint64_t buckets = (uint64_t)field->buckets;
    for (int64_t i = 0; i < view->records->count; i++) {
        tdm_span cell = cell_at(view, i);
        uint32_t bytes = cell.end - cell.begin;
        uint64_t hash = tdm_value_hash(text + cell.begin, bytes, salt);
        ids[i * stride] = bytes == 0 ? TDM_ID_MISSING : tdm_hash_row(hash, buckets);
    }
}

/* Kept out of line: XXH3's code for long texts makes no sense to the compiler on a short buffer. */
__attribute__((noinline)) static uint32_t text_id(const tdm_field *field, const field_plan *plan,
                                                  const char *text, size_t bytes)
{
    return tdm_hash_row(tdm_value_hash(text, bytes, plan->salt), (uint64_t)field->buckets);
}

static uint32_t bin_id(const tdm_field *field, const field_plan *plan, int64_t bin)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)bin);
    return text_id(field, plan, digits, (size_t)length);
}

/* The id of an integer bin; 0 and a reason where it is out of range. */
static uint32_t encode_bin(const tdm_field *field, const field_plan *plan, int64_t bin,
                           const char **reason)
{
    if (field->encoding == TDM_ENCODING_IDENTITY) {
        if (bin >= 0 && bin < field->buckets)
            return TDM_ID_FIRST + (uint32_t)bin;
        *reason = "id out of range: identity takes 0 to buckets - 1";
        return TDM_ID_PADDING;
    }
    if (bin >= BIN_FIRST && bin < BIN_FIRST + BIN_COUNT)
        return plan->bin_ids[bin - BIN_FIRST];
    return bin_id(field, plan, bin);
}

static const char *number_reason(const char *text, size_t bytes)
{
    if (bytes > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        bytes--;
    }
    bool special =
        bytes >= 3 && (strncasecmp(text, "nan", 3) == 0 || strncasecmp(text, "inf", 3) == 0);
    return special ? "nan and inf are not accepted; leave a missing value empty"
                   : "not a number, or out of range";
}

static uint32_t transform_value(const ctr_featurizer *featurizer, const tdm_field *field,
                                const field_plan *plan, const char *text, uint32_t bytes,
                                const char **reason)
{
    int32_t integer;
    if (field->transform == TDM_TRANSFORM_LN_SQUARED &&
        tdm_parse_short_integer(text, bytes, &integer))
        return encode_bin(field, plan, tdm_ln_squared_bin(featurizer->ln_squared, integer), reason);
    double number;
    if (!tdm_parse_number(text, bytes, &number)) {
        *reason = number_reason(text, bytes);
        return TDM_ID_PADDING;
    }
    int64_t bin = tdm_transform_bin(field->transform, number, field->min, field->max);
    return encode_bin(field, plan, bin, reason);
}

static void transform_values(const ctr_featurizer *featurizer, const tdm_field *field,
                             const field_plan *plan, const record_view *view, uint32_t *ids,
                             int64_t stride)
{
    for (int64_t i = 0; i < view->records->count; i++) {
        tdm_span cell = cell_at(view, i);
        uint32_t bytes = cell.end - cell.begin;
        if (bytes == 0) {
            ids[i * stride] = TDM_ID_MISSING;
            continue;
        }
        const char *reason = NULL;
        ids[i * stride] = transform_value(featurizer, field, plan, view->records->text + cell.begin,
                                          bytes, &reason);
        if (reason != NULL)
            view->reject(view->context, i, view->column, reason);
    }
}

/* A decimal integer as it stands, without a transform. */
static void identify_values(const tdm_field *field, const record_view *view, uint32_t *ids,
                            int64_t stride)
{
    for (int64_t i = 0; i < view->records->count; i++) {
        tdm_span cell = cell_at(view, i);
        const char *text = view->records->text + cell.begin;
        uint32_t bytes = cell.end - cell.begin;
        uint64_t value = 0;
        bool good = bytes <= 10;
        for (uint32_t c = 0; c < bytes && good; c++) {
            good = text[c] >= '0' && text[c] <= '9';
            value = value * 10 + (uint64_t)(text[c] - '0');
        }
        ids[i * stride] = bytes == 0 ? TDM_ID_MISSING : TDM_ID_FIRST + (uint32_t)value;
        if (!good || value >= (uint64_t)field->buckets) {
            ids[i * stride] = TDM_ID_PADDING;
            view->reject(view->context, i, view->column,
                         good ? "id out of range: identity takes 0 to buckets - 1"
                              : "identity takes an integer of at most 10 digits");
        }
    }
}

static void extract_field(const ctr_featurizer *featurizer, int32_t index, const record_view *view,
                          uint32_t *ids, int64_t stride)
{
    const tdm_field *field = &featurizer->spec->fields[index];
    const field_plan *plan = &featurizer->plans[index];
    if (field->transform != TDM_TRANSFORM_NONE)
        transform_values(featurizer, field, plan, view, ids, stride);
    else if (field->encoding == TDM_ENCODING_IDENTITY)
        identify_values(field, view, ids, stride);
    else
        hash_values(field, plan, view, ids, stride);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool parse_cell(const char *text, uint32_t bytes, double *number)
{
    int32_t integer;
    if (tdm_parse_short_integer(text, bytes, &integer)) {
        *number = integer;
        return true;
    }
    return tdm_parse_number(text, bytes, number);
}

static void extract_dense(const tdm_dense_feature *feature, const record_view *view, float *values,
                          int64_t stride)
{
    for (int64_t i = 0; i < view->records->count; i++) {
        tdm_span cell = cell_at(view, i);
        const char *text = view->records->text + cell.begin;
        uint32_t bytes = cell.end - cell.begin;
        values[i * stride] = 0;
        if (bytes == 0)
            continue;
        double number;
        if (!parse_cell(text, bytes, &number)) {
            view->reject(view->context, i, view->column, number_reason(text, bytes));
            continue;
        }
        number = tdm_transform_apply(feature->transform, number, feature->min, feature->max);
        number = number > FLT_MAX ? FLT_MAX : number < -FLT_MAX ? -FLT_MAX : number;
        values[i * stride] = (float)number;
    }
}

static void extract_labels(const record_view *view, float *labels)
{
    for (int64_t i = 0; i < view->records->count; i++) {
        tdm_span cell = cell_at(view, i);
        const char *text = view->records->text + cell.begin;
        uint32_t bytes = cell.end - cell.begin;
        double number = 0;
        bool good = bytes == 1 && (text[0] == '0' || text[0] == '1');
        if (good)
            number = text[0] - '0';
        else if (bytes > 0)
            good = tdm_parse_number(text, bytes, &number) && (number == 0 || number == 1);
        labels[i] = (float)number;
        if (!good)
            view->reject(view->context, i, view->column,
                         bytes == 0 ? "the label is missing" : "the label is not 0 or 1");
    }
}

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
    record_view view = {.records = records, .reject = note_refusal, .context = &noted};
    float *labels = (float *)out->columns[0] + out->rows;
    view.column = spec->label;
    if (featurizer->use == TDM_CTR_PREDICTION)
        memset(labels, 0, (size_t)records->count * sizeof *labels);
    else
        extract_labels(&view, labels);
    for (int32_t f = 0; f < spec->field_count; f++) {
        uint32_t *ids =
            (uint32_t *)out->columns[featurizer->ids_column] + out->rows * spec->field_count + f;
        view.column = spec->fields[f].column;
        extract_field(featurizer, f, &view, ids, spec->field_count);
    }
    for (int32_t d = 0; d < spec->dense_count; d++) {
        float *values =
            (float *)out->columns[featurizer->dense_column] + out->rows * spec->dense_count + d;
        view.column = spec->dense[d].column;
        extract_dense(&spec->dense[d], &view, values, spec->dense_count);
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
                    (uint32_t)window->epoch);
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
                     int64_t count, tdm_batch *batch, int64_t at)
{
    const ctr_featurizer *featurizer = (const ctr_featurizer *)base;
    int32_t fields = featurizer->spec->field_count;
    int32_t dense = featurizer->spec->dense_count;
    float *weights = tdm_batch_data(batch, TDM_BATCH_WEIGHT);
    uint64_t *samples = tdm_batch_data(batch, TDM_BATCH_SAMPLE);
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
        tdm_free(featurizer->plans[f].bin_ids);
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
    for (int32_t f = 0; f < spec->field_count; f++) {
        const tdm_field *field = &spec->fields[f];
        field_plan *plan = &featurizer->plans[f];
        plan->salt = tdm_field_salt(field->name, strlen(field->name), spec->hash_seed);
        if (field->transform == TDM_TRANSFORM_NONE || field->encoding != TDM_ENCODING_HASH)
            continue;
        TDM_TRY(tdm_alloc(BIN_COUNT, sizeof *plan->bin_ids, &plan->bin_ids));
        for (int32_t i = 0; i < BIN_COUNT; i++)
            plan->bin_ids[i] = bin_id(field, plan, BIN_FIRST + i);
    }
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

void tdm_featurizer_destroy(tdm_featurizer *featurizer)
{
    if (featurizer != NULL)
        featurizer->type->destroy(featurizer);
}
