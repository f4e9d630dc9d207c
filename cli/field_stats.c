#include "cli/field_stats.h"

#include "cli/console.h"
#include "cli/progress.h"
#include "core/memory.h"
#include "features/hash.h"

#include <math.h>
#include <string.h>

/* Distinct ids are counted by HyperLogLog (Flajolet et al., 2007) with 2^12 registers: the standard
 * error is 1.6 %. */
#define REGISTER_BITS 12
#define REGISTERS     (1 << REGISTER_BITS)

typedef struct field_counts {
    int64_t missing;
    uint8_t registers[REGISTERS];
} field_counts;

typedef struct dense_counts {
    int64_t zeros;
    double min, max, sum;
} dense_counts;

struct tdm_field_stats {
    const tdm_feature_spec *spec;
    field_counts *fields;
    dense_counts *dense;
    int64_t rows;
    double label_sum;
};

tdm_status tdm_field_stats_create(const tdm_feature_spec *spec, tdm_field_stats **out)
{
    *out = NULL;
    tdm_field_stats *stats;
    TDM_TRY(tdm_alloc(1, sizeof *stats, &stats));
    stats->spec = spec;
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)spec->field_count, sizeof *stats->fields, &stats->fields), fail);
    TDM_TRY_GOTO(tdm_alloc((size_t)spec->dense_count, sizeof *stats->dense, &stats->dense), fail);
    for (int32_t d = 0; d < spec->dense_count; d++)
        stats->dense[d] = (dense_counts){.min = INFINITY, .max = -INFINITY};
    *out = stats;
    return TDM_OK;
fail:
    tdm_field_stats_destroy(stats);
    return status;
}

void tdm_field_stats_destroy(tdm_field_stats *stats)
{
    if (stats == NULL)
        return;
    tdm_free(stats->fields);
    tdm_free(stats->dense);
    tdm_free(stats);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* The finalizer of MurmurHash3: ids are no hashes. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

static void count_id(field_counts *counts, uint32_t id)
{
    counts->missing += id == TDM_ID_MISSING;
    if (id < TDM_ID_FIRST)
        return;
    uint64_t hash = mix(id);
    uint64_t rest = hash << REGISTER_BITS | (uint64_t)1 << (REGISTER_BITS - 1);
    uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);
    uint8_t *place = &counts->registers[hash >> (64 - REGISTER_BITS)];
    *place = rank > *place ? rank : *place;
}

static double distinct_ids(const field_counts *counts)
{
    double sum = 0;
    int empty = 0;
    for (int i = 0; i < REGISTERS; i++) {
        sum += ldexp(1, -counts->registers[i]);
        empty += counts->registers[i] == 0;
    }
    double m = REGISTERS;
    double estimate = 0.7213 / (1 + 1.079 / m) * m * m / sum;
    return estimate < 2.5 * m && empty > 0 ? m * log(m / empty) : estimate;
}

void tdm_field_stats_add(tdm_field_stats *stats, const tdm_featurizer *featurizer,
                         const tdm_extract *block, int64_t rows)
{
    const tdm_feature_spec *spec = stats->spec;
    const float *labels = block->columns[tdm_columns_find(&featurizer->columns, "label")];
    int ids_column = tdm_columns_find(&featurizer->columns, "ids");
    int dense_column = tdm_columns_find(&featurizer->columns, "dense");
    for (int64_t r = 0; r < rows; r++) {
        stats->label_sum += (double)labels[r];
        for (int32_t f = 0; f < spec->field_count; f++) {
            const uint32_t *ids = (const uint32_t *)block->columns[ids_column];
            count_id(&stats->fields[f], ids[r * spec->field_count + f]);
        }
        for (int32_t d = 0; d < spec->dense_count; d++) {
            const float *values = (const float *)block->columns[dense_column];
            double x = (double)values[r * spec->dense_count + d];
            dense_counts *counts = &stats->dense[d];
            counts->zeros += x == 0;
            counts->min = x < counts->min ? x : counts->min;
            counts->max = x > counts->max ? x : counts->max;
            counts->sum += x;
        }
    }
    stats->rows += rows;
}

int64_t tdm_field_stats_rows(const tdm_field_stats *stats)
{
    return stats->rows;
}

double tdm_field_stats_label_mean(const tdm_field_stats *stats)
{
    return stats->rows > 0 ? stats->label_sum / (double)stats->rows : NAN;
}

/* ---- results --------------------------------------------------------------------------------- */

typedef struct field_result {
    double missing_share;
    double ids;  /* distinct ones */
    double load; /* of the buckets */
} field_result;

static field_result field_result_of(const tdm_field_stats *stats, int32_t f)
{
    const field_counts *counts = &stats->fields[f];
    double buckets = (double)stats->spec->fields[f].buckets;
    double ids = distinct_ids(counts);
    ids = ids > buckets ? buckets : ids;
    return (field_result){.missing_share = (double)counts->missing / (double)stats->rows,
                          .ids = ids,
                          .load = ids / buckets};
}

tdm_status tdm_field_stats_text(const tdm_field_stats *stats, tdm_text *text)
{
    const tdm_feature_spec *spec = stats->spec;
    if (spec->field_count > 0)
        TDM_TRY(tdm_text_printf(text, "%-16s %9s %10s %10s %7s\n", "field", "missing", "ids used",
                                "buckets", "load"));
    for (int32_t f = 0; f < spec->field_count; f++) {
        field_result result = field_result_of(stats, f);
        TDM_TRY(tdm_text_printf(text, "%-16s %8.2f%% %10s %10lld %6.1f%%%s\n", spec->fields[f].name,
                                100 * result.missing_share, tdm_count_text(round(result.ids)),
                                (long long)spec->fields[f].buckets, 100 * result.load,
                                result.load > 0.6 ? "  many values share a bucket" : ""));
    }
    if (spec->dense_count > 0)
        TDM_TRY(tdm_text_printf(text, "%-16s %9s %10s %10s %10s\n", "dense", "0 or none", "min",
                                "mean", "max"));
    for (int32_t d = 0; d < spec->dense_count; d++) {
        const dense_counts *counts = &stats->dense[d];
        double rows = (double)stats->rows;
        TDM_TRY(tdm_text_printf(text, "%-16s %8.2f%% %10.4g %10.4g %10.4g\n", spec->dense[d].name,
                                100 * (double)counts->zeros / rows, counts->min, counts->sum / rows,
                                counts->max));
    }
    return TDM_OK;
}

tdm_status tdm_field_stats_json(const tdm_field_stats *stats, json_t **out)
{
    const tdm_feature_spec *spec = stats->spec;
    json_t *fields = json_array(), *dense = json_array();
    for (int32_t f = 0; f < spec->field_count; f++) {
        field_result result = field_result_of(stats, f);
        json_array_append_new(fields,
                              json_pack("{s:s, s:o, s:o, s:I, s:o}", "name", spec->fields[f].name,
                                        "missing_share", tdm_json_number(result.missing_share),
                                        "ids_used", tdm_json_number(round(result.ids)), "buckets",
                                        (json_int_t)spec->fields[f].buckets, "load",
                                        tdm_json_number(result.load)));
    }
    for (int32_t d = 0; d < spec->dense_count; d++) {
        const dense_counts *counts = &stats->dense[d];
        double rows = (double)stats->rows;
        json_array_append_new(dense,
                              json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", spec->dense[d].name,
                                        "zero_share", tdm_json_number((double)counts->zeros / rows),
                                        "min", tdm_json_number(counts->min), "mean",
                                        tdm_json_number(counts->sum / rows), "max",
                                        tdm_json_number(counts->max)));
    }
    *out = json_pack("{s:o, s:o}", "fields", fields, "dense", dense);
    TDM_FAIL_IF(*out == NULL, TDM_E_NOMEM, "out of memory while writing JSON");
    return TDM_OK;
}
