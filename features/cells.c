#include "features/cells.h"

#include "core/memory.h"
#include "features/hash.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

/* Bins that come up all the time have their ids ready. */
#define BIN_FIRST (-16)
#define BIN_COUNT 512

static tdm_span cell_at(const tdm_cells *cells, int64_t record)
{
    return cells->records->cells[record * cells->records->columns + cells->column];
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void hash_values(const tdm_field_plan *plan, const tdm_cells *cells, uint32_t *ids,
                        int64_t stride)
{
    const char *text = cells->records->text;
    uint64_t salt = plan->salt;
    uint64_t buckets = (uint64_t)plan->field->buckets;
    for (int64_t i = 0; i < cells->records->count; i++) {
        tdm_span cell = cell_at(cells, i);
        uint32_t bytes = cell.end - cell.begin;
        uint64_t hash = tdm_value_hash(text + cell.begin, bytes, salt);
        ids[i * stride] = bytes == 0 ? TDM_ID_MISSING : tdm_hash_row(hash, buckets);
    }
}

/* Kept out of line: XXH3's code for long texts makes no sense to the compiler on a short buffer. */
__attribute__((noinline)) static uint32_t text_id(const tdm_field_plan *plan, const char *text,
                                                  size_t bytes)
{
    return tdm_hash_row(tdm_value_hash(text, bytes, plan->salt), (uint64_t)plan->field->buckets);
}

static uint32_t bin_id(const tdm_field_plan *plan, int64_t bin)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)bin);
    return text_id(plan, digits, (size_t)length);
}

/* The id of an integer bin; 0 and a reason where it is out of range. */
static uint32_t encode_bin(const tdm_field_plan *plan, int64_t bin, const char **reason)
{
    const tdm_field *field = plan->field;
    if (field->encoding == TDM_ENCODING_IDENTITY) {
        if (bin >= 0 && bin < field->buckets)
            return TDM_ID_FIRST + (uint32_t)bin;
        *reason = "id out of range: identity takes 0 to buckets - 1";
        return TDM_ID_PADDING;
    }
    if (bin >= BIN_FIRST && bin < BIN_FIRST + BIN_COUNT)
        return plan->bin_ids[bin - BIN_FIRST];
    return bin_id(plan, bin);
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

static uint32_t transform_value(const tdm_field_plan *plan, const char *text, uint32_t bytes,
                                const char **reason)
{
    const tdm_field *field = plan->field;
    int32_t integer;
    if (field->transform == TDM_TRANSFORM_LN_SQUARED &&
        tdm_parse_short_integer(text, bytes, &integer))
        return encode_bin(plan, tdm_ln_squared_bin(plan->ln_squared, integer), reason);
    double number;
    if (!tdm_parse_number(text, bytes, &number)) {
        *reason = number_reason(text, bytes);
        return TDM_ID_PADDING;
    }
    int64_t bin = tdm_transform_bin(field->transform, number, field->min, field->max);
    return encode_bin(plan, bin, reason);
}

static void transform_values(const tdm_field_plan *plan, const tdm_cells *cells, uint32_t *ids,
                             int64_t stride)
{
    for (int64_t i = 0; i < cells->records->count; i++) {
        tdm_span cell = cell_at(cells, i);
        uint32_t bytes = cell.end - cell.begin;
        if (bytes == 0) {
            ids[i * stride] = TDM_ID_MISSING;
            continue;
        }
        const char *reason = NULL;
        ids[i * stride] = transform_value(plan, cells->records->text + cell.begin, bytes, &reason);
        if (reason != NULL)
            cells->reject(cells->context, i, cells->column, reason);
    }
}

/* A decimal integer as it stands, without a transform. */
static void identify_values(const tdm_field *field, const tdm_cells *cells, uint32_t *ids,
                            int64_t stride)
{
    for (int64_t i = 0; i < cells->records->count; i++) {
        tdm_span cell = cell_at(cells, i);
        const char *text = cells->records->text + cell.begin;
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
            cells->reject(cells->context, i, cells->column,
                          good ? "id out of range: identity takes 0 to buckets - 1"
                               : "identity takes an integer of at most 10 digits");
        }
    }
}

void tdm_cells_ids(const tdm_field_plan *plan, const tdm_cells *cells, uint32_t *ids,
                   int64_t stride)
{
    if (plan->field->transform != TDM_TRANSFORM_NONE)
        transform_values(plan, cells, ids, stride);
    else if (plan->field->encoding == TDM_ENCODING_IDENTITY)
        identify_values(plan->field, cells, ids, stride);
    else
        hash_values(plan, cells, ids, stride);
}

tdm_status tdm_field_plan_init(tdm_field_plan *plan, const tdm_field *field, uint64_t hash_seed,
                               const tdm_ln_squared_bins *ln_squared)
{
    *plan = (tdm_field_plan){.field = field, .ln_squared = ln_squared};
    plan->salt = tdm_field_salt(field->name, strlen(field->name), hash_seed);
    if (field->transform == TDM_TRANSFORM_NONE || field->encoding != TDM_ENCODING_HASH)
        return TDM_OK;
    TDM_TRY(tdm_alloc(BIN_COUNT, sizeof *plan->bin_ids, &plan->bin_ids));
    for (int32_t i = 0; i < BIN_COUNT; i++)
        plan->bin_ids[i] = bin_id(plan, BIN_FIRST + i);
    return TDM_OK;
}

void tdm_field_plan_deinit(tdm_field_plan *plan)
{
    tdm_free(plan->bin_ids);
    *plan = (tdm_field_plan){0};
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

void tdm_cells_numbers(const tdm_dense_feature *feature, const tdm_cells *cells, float *values,
                       int64_t stride)
{
    for (int64_t i = 0; i < cells->records->count; i++) {
        tdm_span cell = cell_at(cells, i);
        const char *text = cells->records->text + cell.begin;
        uint32_t bytes = cell.end - cell.begin;
        values[i * stride] = 0;
        if (bytes == 0)
            continue;
        double number;
        if (!parse_cell(text, bytes, &number)) {
            cells->reject(cells->context, i, cells->column, number_reason(text, bytes));
            continue;
        }
        number = tdm_transform_apply(feature->transform, number, feature->min, feature->max);
        number = number > FLT_MAX ? FLT_MAX : number < -FLT_MAX ? -FLT_MAX : number;
        values[i * stride] = (float)number;
    }
}

/* ---- labels ---------------------------------------------------------------------------------- */

void tdm_cells_labels(const tdm_cells *cells, float *labels)
{
    for (int64_t i = 0; i < cells->records->count; i++) {
        tdm_span cell = cell_at(cells, i);
        const char *text = cells->records->text + cell.begin;
        uint32_t bytes = cell.end - cell.begin;
        double number = 0;
        bool good = bytes == 1 && (text[0] == '0' || text[0] == '1');
        if (good)
            number = text[0] - '0';
        else if (bytes > 0)
            good = tdm_parse_number(text, bytes, &number) && (number == 0 || number == 1);
        labels[i] = (float)number;
        if (!good)
            cells->reject(cells->context, i, cells->column,
                          bytes == 0 ? "the label is missing" : "the label is not 0 or 1");
    }
}
