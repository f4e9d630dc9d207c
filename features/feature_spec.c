#include "features/feature_spec.h"

#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

/* A line of `fields` or `dense`. 0 and "default" stand for what an earlier line or the defaults
 * say. */
typedef struct feature_line {
    tdm_strings columns;
    char *name;
    int encoding;
    int64_t buckets;
    int64_t embedding_dim;
    int transform;
    double min, max;
} feature_line;

static const char *const encodings[] = {"hash", "identity", NULL};
static const char *const line_encodings[] = {"default", "hash", "identity", NULL};
static const char *const line_transforms[] = {"default",    "none",       "identity", "log1p",
                                              "signed_log", "ln_squared", "clip",     NULL};

#define LINE(member)    offsetof(feature_line, member)
#define OPTIONS(member) offsetof(tdm_feature_options, member)
#define DEFAULT(member) offsetof(struct tdm_field_defaults, member)
#define BUCKETS_MAX     4294967291.0 /* ids are 32 bits */

#define COLUMN_KEYS                                                                                \
    {.name = "column",                                                                             \
     .type = TDM_CONFIG_STRINGS,                                                                   \
     .offset = LINE(columns),                                                                      \
     .help = "a column, a range such as I1..I13, or a list of both"},                              \
        {.name = "name",                                                                           \
         .type = TDM_CONFIG_STRING,                                                                \
         .offset = LINE(name),                                                                     \
         .fallback = "~",                                                                          \
         .help = "of the feature, for a single column: its own name unless said"},                 \
        {.name = "transform",                                                                      \
         .type = TDM_CONFIG_CHOICE,                                                                \
         .offset = LINE(transform),                                                                \
         .fallback = "default",                                                                    \
         .choices = line_transforms,                                                               \
         .help = "of a number"},                                                                   \
        {.name = "min",                                                                            \
         .type = TDM_CONFIG_FLOAT,                                                                 \
         .offset = LINE(min),                                                                      \
         .fallback = "0",                                                                          \
         .help = "clip: the least value"},                                                         \
    {                                                                                              \
        .name = "max", .type = TDM_CONFIG_FLOAT, .offset = LINE(max), .fallback = "0",             \
        .help = "clip: the greatest value"                                                         \
    }

static const tdm_config_key field_keys[] = {
    COLUMN_KEYS,
    {.name = "encoding",
     .type = TDM_CONFIG_CHOICE,
     .offset = LINE(encoding),
     .fallback = "default",
     .choices = line_encodings,
     .help = "how a value becomes an id"},
    {.name = "buckets",
     .type = TDM_CONFIG_INT,
     .offset = LINE(buckets),
     .fallback = "0",
     .min = 0,
     .max = BUCKETS_MAX,
     .help = "values that the table has room for; 0: default"},
    {.name = "embedding_dim",
     .type = TDM_CONFIG_INT,
     .offset = LINE(embedding_dim),
     .fallback = "0",
     .min = 0,
     .max = 4096,
     .help = "length of its vectors; 0: default"},
};

static const tdm_config_key dense_keys[] = {COLUMN_KEYS};

static const tdm_config_schema field_schema = {.size = sizeof(feature_line),
                                               .keys = field_keys,
                                               .count = sizeof field_keys / sizeof field_keys[0]};
static const tdm_config_schema dense_schema = {.size = sizeof(feature_line),
                                               .keys = dense_keys,
                                               .count = sizeof dense_keys / sizeof dense_keys[0]};

static const tdm_config_key default_keys[] = {
    {.name = "encoding",
     .type = TDM_CONFIG_CHOICE,
     .offset = DEFAULT(encoding),
     .fallback = "hash",
     .choices = encodings,
     .help = "how a value becomes an id"},
    {.name = "buckets",
     .type = TDM_CONFIG_INT,
     .offset = DEFAULT(buckets),
     .fallback = "100000",
     .min = 1,
     .max = BUCKETS_MAX,
     .help = "values that a field's table has room for"},
    {.name = "embedding_dim",
     .type = TDM_CONFIG_INT,
     .offset = DEFAULT(embedding_dim),
     .fallback = "16",
     .min = 1,
     .max = 4096,
     .help = "length of the vectors"},
};

static const tdm_config_schema default_schema = {.size = sizeof(struct tdm_field_defaults),
                                                 .keys = default_keys,
                                                 .count =
                                                     sizeof default_keys / sizeof default_keys[0]};

static const tdm_config_key feature_keys[] = {
    {.name = "label",
     .type = TDM_CONFIG_STRING,
     .offset = OPTIONS(label),
     .fallback = "label",
     .help = "the column that holds 0 or 1"},
    {.name = "hash_seed",
     .type = TDM_CONFIG_INT,
     .offset = OPTIONS(hash_seed),
     .fallback = "0",
     .min = 0,
     .max = 9007199254740992.0,
     .help = "of every field's hash"},
    {.name = "defaults",
     .type = TDM_CONFIG_SECTION,
     .offset = OPTIONS(defaults),
     .fallback = "{}",
     .section = &default_schema,
     .help = "for fields that do not say"},
    {.name = "fields",
     .type = TDM_CONFIG_SECTIONS,
     .offset = OPTIONS(fields),
     .fallback = "[]",
     .section = &field_schema,
     .help = "values that become embeddings; the later line wins"},
    {.name = "dense",
     .type = TDM_CONFIG_SECTIONS,
     .offset = OPTIONS(dense),
     .fallback = "[]",
     .section = &dense_schema,
     .help = "values that stay numbers"},
};

const tdm_config_schema tdm_feature_schema = {.size = sizeof(tdm_feature_options),
                                              .keys = feature_keys,
                                              .count =
                                                  sizeof feature_keys / sizeof feature_keys[0]};

/* Where the lines are resolved, and where errors point. */
typedef struct spec_builder {
    const tdm_feature_options *options;
    const tdm_record_format *format;
    const tdm_config_node *line_node;
    bool dense;
    tdm_feature_spec *spec;
    size_t field_capacity;
    size_t dense_capacity;
} spec_builder;

static tdm_status unknown_column(const spec_builder *builder, const char *name)
{
    const tdm_record_format *format = builder->format;
    char advice[TDM_ADVICE_BYTES];
    tdm_did_you_mean(name, (const char *const *)format->columns, format->column_count, advice);
    return tdm_config_fail(builder->line_node, "there is no column %s%s (columns: %s .. %s)", name,
                           advice, format->columns[0], format->columns[format->column_count - 1]);
}

/* The place of a field or dense feature with that name: an old one, or a new one at the end. */
static tdm_status find_field(spec_builder *builder, const char *name, int32_t column,
                             tdm_field **out)
{
    tdm_feature_spec *spec = builder->spec;
    const struct tdm_field_defaults *defaults = &builder->options->defaults;
    for (int32_t i = 0; i < spec->field_count; i++) {
        *out = &spec->fields[i];
        if (strcmp((*out)->name, name) == 0)
            return TDM_OK;
    }
    TDM_TRY(tdm_grow(&spec->fields, &builder->field_capacity, (size_t)spec->field_count + 1,
                     sizeof *spec->fields));
    *out = &spec->fields[spec->field_count];
    **out = (tdm_field){.column = column,
                        .encoding = (tdm_field_encoding)defaults->encoding,
                        .buckets = defaults->buckets,
                        .embedding_dim = (int32_t)defaults->embedding_dim};
    TDM_TRY(tdm_strdup(name, &(*out)->name));
    spec->field_count++;
    return TDM_OK;
}

static tdm_status find_dense(spec_builder *builder, const char *name, int32_t column,
                             tdm_dense_feature **out)
{
    tdm_feature_spec *spec = builder->spec;
    for (int32_t i = 0; i < spec->dense_count; i++) {
        *out = &spec->dense[i];
        if (strcmp((*out)->name, name) == 0)
            return TDM_OK;
    }
    TDM_TRY(tdm_grow(&spec->dense, &builder->dense_capacity, (size_t)spec->dense_count + 1,
                     sizeof *spec->dense));
    *out = &spec->dense[spec->dense_count];
    **out = (tdm_dense_feature){.column = column};
    TDM_TRY(tdm_strdup(name, &(*out)->name));
    spec->dense_count++;
    return TDM_OK;
}

static tdm_status apply_to_column(spec_builder *builder, const feature_line *line,
                                  const char *column_name)
{
    int32_t column = tdm_record_format_find(builder->format, column_name);
    if (column < 0)
        return unknown_column(builder, column_name);
    if (column == builder->spec->label)
        return tdm_config_fail(builder->line_node, "column %s is the label: it can be no feature",
                               column_name);
    if (line->transform == TDM_TRANSFORM_CLIP + 1 && !(line->min < line->max))
        return tdm_config_fail(builder->line_node, "clip needs min and max, min being the less");
    const char *name = line->name != NULL ? line->name : column_name;
    if (builder->dense) {
        tdm_dense_feature *feature;
        TDM_TRY(find_dense(builder, name, column, &feature));
        feature->column = column;
        if (line->transform > 0) {
            feature->transform = (tdm_transform)(line->transform - 1);
            feature->min = line->min;
            feature->max = line->max;
        }
        return TDM_OK;
    }
    tdm_field *field;
    TDM_TRY(find_field(builder, name, column, &field));
    field->column = column;
    if (line->encoding > 0)
        field->encoding = (tdm_field_encoding)(line->encoding - 1);
    if (line->transform > 0) {
        field->transform = (tdm_transform)(line->transform - 1);
        field->min = line->min;
        field->max = line->max;
    }
    field->buckets = line->buckets > 0 ? line->buckets : field->buckets;
    field->embedding_dim =
        line->embedding_dim > 0 ? (int32_t)line->embedding_dim : field->embedding_dim;
    return TDM_OK;
}

/* "I1..I13": the same letters before both numbers. */
static bool split_range(const char *text, int *prefix, long *first, long *last)
{
    const char *dots = strstr(text, "..");
    if (dots == NULL)
        return false;
    const char *number = dots;
    while (number > text && number[-1] >= '0' && number[-1] <= '9')
        number--;
    *prefix = (int)(number - text);
    const char *second = dots + 2;
    if (number == dots || strncmp(text, second, (size_t)*prefix) != 0)
        return false;
    second += *prefix;
    if (*second == '\0' || second[strspn(second, "0123456789")] != '\0')
        return false;
    *first = strtol(number, NULL, 10);
    *last = strtol(second, NULL, 10);
    return *first <= *last && *last - *first < 100000;
}

static tdm_status apply_line(spec_builder *builder, const feature_line *line)
{
    if (line->columns.count == 0)
        return tdm_config_fail(builder->line_node, "column: names no column");
    for (int64_t i = 0; i < line->columns.count; i++) {
        const char *text = line->columns.items[i];
        int prefix;
        long first, last;
        bool range = tdm_record_format_find(builder->format, text) < 0 &&
                     split_range(text, &prefix, &first, &last);
        if (line->name != NULL && (range || line->columns.count > 1))
            return tdm_config_fail(builder->line_node, "name: goes with a single column");
        if (!range) {
            TDM_TRY(apply_to_column(builder, line, text));
            continue;
        }
        for (long number = first; number <= last; number++) {
            char *name;
            TDM_TRY(tdm_format(&name, "%.*s%ld", prefix, text, number));
            tdm_status status = apply_to_column(builder, line, name);
            tdm_free(name);
            TDM_TRY(status);
        }
    }
    return TDM_OK;
}

static tdm_status apply_lines(spec_builder *builder, const tdm_sections *lines, bool dense,
                              const tdm_config_node *section)
{
    const tdm_config_node *nodes = tdm_config_get(section, dense ? "dense" : "fields");
    builder->dense = dense;
    for (int64_t i = 0; i < lines->count; i++) {
        builder->line_node = tdm_config_item(nodes, i);
        TDM_TRY(apply_line(builder, (const feature_line *)lines->items + i));
    }
    return TDM_OK;
}

tdm_status tdm_feature_spec_create(const tdm_feature_options *options,
                                   const tdm_config_node *section, const tdm_record_format *format,
                                   tdm_feature_spec **out)
{
    *out = NULL;
    spec_builder builder = {.options = options, .format = format, .line_node = section};
    TDM_TRY(tdm_alloc(1, sizeof *builder.spec, &builder.spec));
    builder.spec->hash_seed = (uint64_t)options->hash_seed;
    builder.spec->label = tdm_record_format_find(format, options->label);
    tdm_status status;
    if (builder.spec->label < 0) {
        const tdm_config_node *label = tdm_config_get(section, "label");
        builder.line_node = label != NULL ? label : section;
        status = unknown_column(&builder, options->label);
        goto fail;
    }
    TDM_TRY_GOTO(apply_lines(&builder, &options->fields, false, section), fail);
    TDM_TRY_GOTO(apply_lines(&builder, &options->dense, true, section), fail);
    if (builder.spec->field_count == 0 && builder.spec->dense_count == 0) {
        status = tdm_config_fail(section, "names no feature: add fields or dense");
        goto fail;
    }
    *out = builder.spec;
    return TDM_OK;
fail:
    tdm_feature_spec_destroy(builder.spec);
    return status;
}

void tdm_feature_spec_destroy(tdm_feature_spec *spec)
{
    if (spec == NULL)
        return;
    for (int32_t i = 0; i < spec->field_count; i++)
        tdm_free(spec->fields[i].name);
    for (int32_t i = 0; i < spec->dense_count; i++)
        tdm_free(spec->dense[i].name);
    tdm_free(spec->fields);
    tdm_free(spec->dense);
    tdm_free(spec);
}
