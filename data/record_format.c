#include "data/record_format.h"

#include "core/memory.h"

#include <string.h>

const tdm_record_format_type *const tdm_record_formats[] = {&tdm_format_criteo, &tdm_format_csv,
                                                            &tdm_format_tsv,    &tdm_format_text,
                                                            &tdm_format_jsonl,  NULL};
const char *const tdm_record_format_names[] = {"criteo", "csv", "tsv", "text", "jsonl", NULL};

tdm_status tdm_record_format_create(const tdm_format_options *options, const char *file,
                                    const char *first_line, size_t bytes, tdm_record_format **out)
{
    *out = NULL;
    tdm_record_format *format;
    TDM_TRY(tdm_alloc(1, sizeof *format, &format));
    format->type = tdm_record_formats[options->type];
    format->separator = options->separator != 0 ? options->separator : format->type->separator;
    format->header = options->header;
    format->encoding_errors = options->encoding_errors;
    tdm_status status = format->type->create(options, file, first_line, bytes, format);
    if (status != TDM_OK) {
        tdm_record_format_destroy(format);
        return status;
    }
    *out = format;
    return TDM_OK;
}

void tdm_record_format_destroy(tdm_record_format *format)
{
    if (format == NULL)
        return;
    for (int32_t i = 0; format->columns != NULL && i < format->column_count; i++)
        tdm_free(format->columns[i]);
    tdm_free(format->columns);
    tdm_free(format->field);
    tdm_free(format);
}

int32_t tdm_record_format_find(const tdm_record_format *format, const char *name)
{
    for (int32_t i = 0; i < format->column_count; i++) {
        if (strcmp(format->columns[i], name) == 0)
            return i;
    }
    return -1;
}

tdm_status tdm_format_copy_columns(const tdm_strings *names, tdm_record_format *format)
{
    TDM_FAIL_IF(names->count > TDM_MAX_RECORD_COLUMNS, TDM_E_CONFIG,
                "data.columns: %lld columns, more than %d", (long long)names->count,
                TDM_MAX_RECORD_COLUMNS);
    for (int64_t i = 0; i < names->count; i++) {
        for (int64_t j = 0; j < i; j++)
            TDM_FAIL_IF(strcmp(names->items[i], names->items[j]) == 0, TDM_E_CONFIG,
                        "data.columns: names %s twice", names->items[i]);
    }
    TDM_TRY(tdm_alloc((size_t)names->count, sizeof *format->columns, &format->columns));
    format->column_count = (int32_t)names->count;
    for (int64_t i = 0; i < names->count; i++)
        TDM_TRY(tdm_strdup(names->items[i], &format->columns[i]));
    return TDM_OK;
}
