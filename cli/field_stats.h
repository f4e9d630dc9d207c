/* What the features of a log look like: how full the tables get, what is missing, how numbers lie.
 */
#ifndef TDM_CLI_FIELD_STATS_H
#define TDM_CLI_FIELD_STATS_H

#include "core/featurizer.h"
#include "features/feature_spec.h"

#include <jansson.h>

typedef struct tdm_field_stats tdm_field_stats;

/* `spec` is borrowed. Memory is a few KiB a field, however many rows follow. */
TDM_MUST_CHECK tdm_status tdm_field_stats_create(const tdm_feature_spec *spec,
                                                 tdm_field_stats **out);
/* NULL is allowed. */
void tdm_field_stats_destroy(tdm_field_stats *stats);

/* Adds a block's first `rows` rows. */
void tdm_field_stats_add(tdm_field_stats *stats, const tdm_featurizer *featurizer,
                         const tdm_extract *block, int64_t rows);

/* Rows that were added, and the mean of their labels (NaN without rows). */
int64_t tdm_field_stats_rows(const tdm_field_stats *stats);
double tdm_field_stats_label_mean(const tdm_field_stats *stats);

/* Appends a table: a line a field, then a line a dense feature. */
TDM_MUST_CHECK tdm_status tdm_field_stats_text(const tdm_field_stats *stats, tdm_text *text);

/* *out is a new object {"fields": [...], "dense": [...]}. */
TDM_MUST_CHECK tdm_status tdm_field_stats_json(const tdm_field_stats *stats, json_t **out);

#endif
