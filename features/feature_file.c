/* features.json: the feature spec and the shape of the records it was made for. */
#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"
#include "features/feature_spec.h"
#include "features/hash.h"

#define VERSION 1
#define LIMIT   ((size_t)64 << 20)

static const char *const encoding_names[] = {"hash", "identity"};
static const char *const transform_names[] = {"none",       "identity",   "log1p",
                                              "signed_log", "ln_squared", "clip"};

static json_t *transform_json(const char *name, int32_t column, const tdm_record_format *format,
                              tdm_transform transform, double min, double max)
{
    json_t *json = json_pack("{s:s, s:s, s:s}", "name", name, "column", format->columns[column],
                             "transform", transform_names[transform]);
    if (json != NULL && transform == TDM_TRANSFORM_CLIP) {
        json_object_set_new(json, "min", json_real(min));
        json_object_set_new(json, "max", json_real(max));
    }
    return json;
}

static json_t *records_json(const tdm_record_format *format)
{
    json_t *columns = json_array();
    for (int32_t i = 0; i < format->column_count; i++)
        json_array_append_new(columns, json_string(format->columns[i]));
    return json_pack("{s:s, s:s#, s:b, s:o}", "format", format->type->name, "separator",
                     &format->separator, 1, "header", format->header == TDM_HEADER_YES, "columns",
                     columns);
}

/* NULL where memory is out. */
static json_t *spec_json(const tdm_feature_spec *spec, const tdm_record_format *format)
{
    json_t *fields = json_array();
    for (int32_t i = 0; i < spec->field_count; i++) {
        const tdm_field *field = &spec->fields[i];
        json_t *json = transform_json(field->name, field->column, format, field->transform,
                                      field->min, field->max);
        json_object_set_new(json, "encoding", json_string(encoding_names[field->encoding]));
        json_object_set_new(json, "buckets", json_integer(field->buckets));
        json_object_set_new(json, "embedding_dim", json_integer(field->embedding_dim));
        json_array_append_new(fields, json);
    }
    json_t *dense = json_array();
    for (int32_t i = 0; i < spec->dense_count; i++) {
        const tdm_dense_feature *feature = &spec->dense[i];
        json_array_append_new(dense,
                              transform_json(feature->name, feature->column, format,
                                             feature->transform, feature->min, feature->max));
    }
    return json_pack("{s:i, s:o, s:s, s:I, s:o, s:o}", "version", VERSION, "records",
                     records_json(format), "label", format->columns[spec->label], "hash_seed",
                     (json_int_t)spec->hash_seed, "fields", fields, "dense", dense);
}

static tdm_status spec_text(const tdm_feature_spec *spec, const tdm_record_format *format,
                            char **text)
{
    json_t *json = spec_json(spec, format);
    *text = json == NULL ? NULL : json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    json_decref(json);
    TDM_FAIL_IF(*text == NULL, TDM_E_NOMEM, "out of memory while describing the features");
    return TDM_OK;
}

tdm_status tdm_feature_spec_hash(const tdm_feature_spec *spec, const tdm_record_format *format,
                                 uint64_t *hash)
{
    char *text;
    TDM_TRY(spec_text(spec, format, &text));
    *hash = XXH3_64bits(text, strlen(text));
    free(text);
    return TDM_OK;
}

tdm_status tdm_feature_spec_save(const tdm_feature_spec *spec, const tdm_record_format *format,
                                 const char *path)
{
    char *text;
    TDM_TRY(spec_text(spec, format, &text));
    tdm_status status = tdm_file_put(path, text, strlen(text), NULL);
    free(text);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

static tdm_status damaged(const char *path, const char *what)
{
    return tdm_fail(TDM_E_FORMAT, "%s: damaged: %s", path, what);
}

static int name_index(const char *const *names, size_t count, const json_t *json)
{
    const char *text = json_string_value(json);
    for (size_t i = 0; text != NULL && i < count; i++) {
        if (strcmp(names[i], text) == 0)
            return (int)i;
    }
    return -1;
}

static tdm_status load_format(const char *path, const json_t *records, tdm_record_format **out)
{
    const char *name = json_string_value(json_object_get(records, "format"));
    const char *separator = json_string_value(json_object_get(records, "separator"));
    const json_t *columns = json_object_get(records, "columns");
    tdm_format_options options = {.type = -1};
    for (int i = 0; name != NULL && tdm_record_formats[i] != NULL; i++) {
        if (strcmp(tdm_record_format_names[i], name) == 0)
            options.type = i;
    }
    const json_t *header = json_object_get(records, "header");
    if (options.type < 0 || separator == NULL || strlen(separator) != 1 || separator[0] < 1 ||
        strchr("\n\r\"", separator[0]) != NULL || json_array_size(columns) == 0 ||
        !json_is_boolean(header))
        return damaged(path, "records");
    options.separator = separator[0];
    options.header = json_is_true(header) ? TDM_HEADER_YES : TDM_HEADER_NO;
    tdm_strings names = {.count = (int64_t)json_array_size(columns)};
    TDM_TRY(tdm_alloc((size_t)names.count, sizeof *names.items, &names.items));
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < names.count && status == TDM_OK; i++) {
        const char *text = json_string_value(json_array_get(columns, (size_t)i));
        if (text == NULL)
            status = damaged(path, "records.columns");
        names.items[i] = (char *)(uintptr_t)text;
    }
    options.columns = names;
    if (status == TDM_OK)
        status = tdm_record_format_create(&options, path, "", 0, out);
    /* Some formats have columns of their own, which must be these. */
    bool same = status == TDM_OK && (*out)->column_count == names.count;
    for (int64_t i = 0; same && i < names.count; i++)
        same = strcmp((*out)->columns[i], names.items[i]) == 0;
    if (status == TDM_E_CONFIG || (status == TDM_OK && !same))
        status = damaged(path, "records.columns");
    tdm_free(names.items);
    return status;
}

/* The part that fields and dense features share. */
static tdm_status load_feature(const char *path, const json_t *json,
                               const tdm_record_format *format, char **name, int32_t *column,
                               tdm_transform *transform, double *min, double *max)
{
    const char *text = json_string_value(json_object_get(json, "name"));
    const char *column_name = json_string_value(json_object_get(json, "column"));
    int index = name_index(transform_names, sizeof transform_names / sizeof transform_names[0],
                           json_object_get(json, "transform"));
    *column = column_name == NULL ? -1 : tdm_record_format_find(format, column_name);
    if (text == NULL || index < 0 || *column < 0)
        return damaged(path, "a feature lacks its name, column or transform");
    *transform = (tdm_transform)index;
    const json_t *least = json_object_get(json, "min"), *most = json_object_get(json, "max");
    *min = json_number_value(least);
    *max = json_number_value(most);
    if (*transform == TDM_TRANSFORM_CLIP &&
        !(json_is_number(least) && json_is_number(most) && *min < *max))
        return damaged(path, "clip lacks its min and max");
    return tdm_strdup(text, name);
}

static tdm_status load_fields(const char *path, const json_t *json, const tdm_record_format *format,
                              tdm_feature_spec *spec)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json))
        return damaged(path, "fields");
    TDM_TRY(tdm_alloc(count, sizeof *spec->fields, &spec->fields));
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(json, i);
        tdm_field *field = &spec->fields[i];
        TDM_TRY(load_feature(path, item, format, &field->name, &field->column, &field->transform,
                             &field->min, &field->max));
        spec->field_count++;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(spec->fields[j].name, field->name) == 0)
                return damaged(path, "two fields have the same name");
        }
        int encoding = name_index(encoding_names, 2, json_object_get(item, "encoding"));
        field->buckets = json_integer_value(json_object_get(item, "buckets"));
        json_int_t dim = json_integer_value(json_object_get(item, "embedding_dim"));
        if (encoding < 0 || field->buckets < 1 || field->buckets > UINT32_MAX - 4 || dim < 1 ||
            dim > 4096)
            return damaged(path, "a field lacks its encoding, buckets or embedding_dim");
        field->encoding = (tdm_field_encoding)encoding;
        field->embedding_dim = (int32_t)dim;
    }
    return TDM_OK;
}

static tdm_status load_dense(const char *path, const json_t *json, const tdm_record_format *format,
                             tdm_feature_spec *spec)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json))
        return damaged(path, "dense");
    TDM_TRY(tdm_alloc(count, sizeof *spec->dense, &spec->dense));
    for (size_t i = 0; i < count; i++) {
        tdm_dense_feature *feature = &spec->dense[i];
        TDM_TRY(load_feature(path, json_array_get(json, i), format, &feature->name,
                             &feature->column, &feature->transform, &feature->min, &feature->max));
        spec->dense_count++;
    }
    return TDM_OK;
}

static tdm_status load_spec(const char *path, const json_t *json, tdm_feature_spec *spec,
                            tdm_record_format **format)
{
    json_int_t version = json_integer_value(json_object_get(json, "version"));
    TDM_FAIL_IF(version > VERSION, TDM_E_VERSION,
                "%s: has version %lld, this tandem reads up to %d: use a newer tandem", path,
                (long long)version, VERSION);
    if (version != VERSION)
        return damaged(path, "it has no version");
    TDM_TRY(load_format(path, json_object_get(json, "records"), format));
    const char *label = json_string_value(json_object_get(json, "label"));
    spec->label = label == NULL ? -1 : tdm_record_format_find(*format, label);
    if (spec->label < 0)
        return damaged(path, "label");
    const json_t *hash_seed = json_object_get(json, "hash_seed");
    if (!json_is_integer(hash_seed))
        return damaged(path, "hash_seed");
    spec->hash_seed = (uint64_t)json_integer_value(hash_seed);
    TDM_TRY(load_fields(path, json_object_get(json, "fields"), *format, spec));
    TDM_TRY(load_dense(path, json_object_get(json, "dense"), *format, spec));
    return spec->field_count + spec->dense_count > 0 ? TDM_OK : damaged(path, "it has no feature");
}

tdm_status tdm_feature_spec_load(const char *path, tdm_feature_spec **spec,
                                 tdm_record_format **format)
{
    *spec = NULL;
    *format = NULL;
    json_t *json;
    TDM_TRY(tdm_json_file_get(path, LIMIT, &json));
    tdm_status status = tdm_alloc(1, sizeof **spec, spec);
    if (status == TDM_OK)
        status = load_spec(path, json, *spec, format);
    json_decref(json);
    if (status != TDM_OK) {
        tdm_feature_spec_destroy(*spec);
        tdm_record_format_destroy(*format);
        *spec = NULL;
        *format = NULL;
    }
    return status;
}
