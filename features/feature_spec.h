/* The `features` section of a recipe, resolved: which columns become which features. It is data:
 * saved in the run folder as features.json together with the shape of the records, and predicting
 * uses that file and no other. */
#ifndef TDM_FEATURES_FEATURE_SPEC_H
#define TDM_FEATURES_FEATURE_SPEC_H

#include "core/config.h"
#include "data/record_format.h"
#include "features/number.h"

typedef struct tdm_feature_options {
    char *label;
    int64_t hash_seed;
    struct tdm_field_defaults {
        int encoding;
        int64_t buckets;
        int64_t embedding_dim;
    } defaults;
    tdm_sections fields;
    tdm_sections dense;
} tdm_feature_options;

extern const tdm_config_schema tdm_feature_schema;

typedef enum tdm_field_encoding {
    TDM_ENCODING_HASH = 0,     /* a hash of the value, see hash.h */
    TDM_ENCODING_IDENTITY = 1, /* the value is an integer in [0, buckets) */
} tdm_field_encoding;

/* A value that becomes a row of an embedding table. */
typedef struct tdm_field {
    char *name;
    int32_t column; /* canonical */
    tdm_field_encoding encoding;
    int64_t buckets; /* the table has buckets + 4 rows */
    int32_t embedding_dim;
    tdm_transform transform;
    double min, max; /* clip */
} tdm_field;

/* A value that stays a number. */
typedef struct tdm_dense_feature {
    char *name;
    int32_t column;
    tdm_transform transform;
    double min, max;
} tdm_dense_feature;

typedef struct tdm_feature_spec {
    int32_t label; /* canonical column */
    uint64_t hash_seed;
    int32_t field_count;
    tdm_field *fields;
    int32_t dense_count;
    tdm_dense_feature *dense;
} tdm_feature_spec;

/* Resolves column ranges ("I1..I13"), inheritance and later lines against the format's columns.
 * `section` is where errors point: the recipe's `features` mapping. */
TDM_MUST_CHECK tdm_status tdm_feature_spec_create(const tdm_feature_options *options,
                                                  const tdm_config_node *section,
                                                  const tdm_record_format *format,
                                                  tdm_feature_spec **out);
/* NULL is allowed. */
void tdm_feature_spec_destroy(tdm_feature_spec *spec);

/* XXH3-64 of all that decides what a record becomes. */
TDM_MUST_CHECK tdm_status tdm_feature_spec_hash(const tdm_feature_spec *spec,
                                                const tdm_record_format *format, uint64_t *hash);

/* features.json. Loading makes the format too; the caller owns both. A file of a newer version is
 * TDM_E_VERSION, anything else that is off TDM_E_FORMAT with what and where. */
TDM_MUST_CHECK tdm_status tdm_feature_spec_save(const tdm_feature_spec *spec,
                                                const tdm_record_format *format, const char *path);
TDM_MUST_CHECK tdm_status tdm_feature_spec_load(const char *path, tdm_feature_spec **spec,
                                                tdm_record_format **format);

#endif
