#include "text/label_spec.h"

#include "core/memory.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* ---- columns --------------------------------------------------------------------------------- */

/* The names that columns are looked for among. */
typedef struct column_names {
    const char *const *items;
    int32_t count;
    const tdm_config_node *section;
} column_names;

static tdm_status find_column(const column_names *names, const char *key, const char *name,
                              int32_t *out)
{
    for (*out = 0; *out < names->count; (*out)++) {
        if (strcmp(names->items[*out], name) == 0)
            return TDM_OK;
    }
    char advice[TDM_ADVICE_BYTES], message[512];
    tdm_did_you_mean(name, names->items, names->count, advice);
    snprintf(message, sizeof message, "there is no column %.160s%s (columns: %.100s%s%.100s)", name,
             advice, names->items[0], names->count > 1 ? " .. " : "",
             names->count > 1 ? names->items[names->count - 1] : "");
    const tdm_config_node *node = tdm_config_get(names->section, key);
    if (node == NULL)
        return tdm_fail(TDM_E_CONFIG, "labels.%s: %s", key, message);
    return tdm_config_fail(node, "%s", message);
}

static tdm_status find_columns(const tdm_label_options *options, const column_names *names,
                               tdm_label_spec *spec)
{
    bool prediction = spec->use == TDM_LABEL_PREDICTION;
    spec->pair = spec->label = -1;
    if (prediction && names->count == 1 && options->text_pair == NULL)
        return TDM_OK;
    TDM_TRY(find_column(names, "text", options->text, &spec->text));
    if (options->text_pair != NULL)
        TDM_TRY(find_column(names, "text_pair", options->text_pair, &spec->pair));
    return prediction ? TDM_OK : find_column(names, "column", options->column, &spec->label);
}

static tdm_status add_classes(const tdm_label_options *options, tdm_label_spec *spec)
{
    bool none = options->type == TDM_LABEL_REGRESSION || tdm_label_classes_are_auto(options);
    for (int64_t i = 0; i < options->classes.count && !none; i++)
        TDM_TRY(tdm_vocabulary_add(&spec->classes, (uint32_t)i, options->classes.items[i],
                                   strlen(options->classes.items[i]), NULL));
    return TDM_OK;
}

static tdm_status fill(const tdm_label_options *options, const tdm_config_node *section,
                       const tdm_record_format *format, const tdm_strings *columns,
                       tdm_label_spec *spec)
{
    const char *const usual[] = {options->text, options->column};
    column_names names = {(const char *const *)format->columns, format->column_count, section};
    spec->type = (tdm_label_type)options->type;
    spec->separator = tdm_label_separator(options);
    spec->lines = options->type == TDM_LABEL_TOKENS && format->type == &tdm_format_text &&
                  format->documents != TDM_DOCUMENTS_LINE;
    if (spec->lines) {
        bool named = columns->count > 0;
        names.items = named ? (const char *const *)columns->items : usual;
        names.count = named ? (int32_t)columns->count : 2;
        spec->line_columns = names.count;
        spec->line_separator = format->separator;
    }
    TDM_TRY(find_columns(options, &names, spec));
    TDM_TRY(tdm_strdup(options->column, &spec->label_name));
    return add_classes(options, spec);
}

tdm_status tdm_label_spec_create(const tdm_label_options *options, const tdm_config_node *section,
                                 const tdm_record_format *format, const tdm_strings *columns,
                                 tdm_label_use use, tdm_label_spec **out)
{
    tdm_label_spec *spec;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *spec, &spec));
    spec->use = use;
    tdm_status status = fill(options, section, format, columns, spec);
    if (status == TDM_OK)
        *out = spec;
    else
        tdm_label_spec_destroy(spec);
    return status;
}

void tdm_label_spec_destroy(tdm_label_spec *spec)
{
    if (spec == NULL)
        return;
    tdm_vocabulary_deinit(&spec->classes);
    tdm_free(spec->label_name);
    tdm_free(spec);
}

/* ---- the hash -------------------------------------------------------------------------------- */

uint64_t tdm_label_spec_hash(const tdm_label_spec *spec, const tdm_record_format *format)
{
    const int32_t numbers[] = {(int32_t)spec->type,  (int32_t)spec->use, spec->lines,
                               spec->line_separator, spec->line_columns, spec->text,
                               spec->pair,           spec->label,        spec->separator,
                               format->separator,    format->header,     format->column_count};
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, numbers, sizeof numbers);
    for (int32_t i = 0; i < format->column_count; i++)
        XXH3_64bits_update(&state, format->columns[i], strlen(format->columns[i]) + 1);
    for (int64_t i = 0; i < spec->classes.size; i++) {
        size_t bytes;
        const char *name = tdm_class_name(spec, i, &bytes);
        XXH3_64bits_update(&state, &bytes, sizeof bytes);
        XXH3_64bits_update(&state, name, bytes);
    }
    return XXH3_64bits_digest(&state);
}
