/* Cells of records into ids, numbers and labels, a column of a group of records at a time. Private
 * to this folder. */
#ifndef TDM_FEATURES_CELLS_H
#define TDM_FEATURES_CELLS_H

#include "features/feature_spec.h"
#include "tandem/plugin.h"

/* A column of a group of records, and whom to tell of cells that cannot be used. */
typedef struct tdm_cells {
    const tdm_records *records;
    int32_t column;
    void (*reject)(void *context, int64_t record, int32_t column, const char *reason);
    void *context;
} tdm_cells;

/* A field, ready to run. */
typedef struct tdm_field_plan {
    const tdm_field *field;
    const tdm_ln_squared_bins *ln_squared;
    uint64_t salt;
    uint32_t *bin_ids; /* of the usual bins of a hashed transform; NULL for other fields */
} tdm_field_plan;

/* `field` and `ln_squared` are borrowed. */
TDM_MUST_CHECK tdm_status tdm_field_plan_init(tdm_field_plan *plan, const tdm_field *field,
                                              uint64_t hash_seed,
                                              const tdm_ln_squared_bins *ln_squared);
/* A plan that is all zero is allowed. */
void tdm_field_plan_deinit(tdm_field_plan *plan);

/* ids[r · stride] of record r: see features/hash.h. An empty cell is TDM_ID_MISSING. */
void tdm_cells_ids(const tdm_field_plan *plan, const tdm_cells *cells, uint32_t *ids,
                   int64_t stride);

/* values[r · stride] of record r, transformed and finite; 0 for an empty cell. */
void tdm_cells_numbers(const tdm_dense_feature *feature, const tdm_cells *cells, float *values,
                       int64_t stride);

/* labels[r] of record r, 0 or 1. */
void tdm_cells_labels(const tdm_cells *cells, float *labels);

#endif
