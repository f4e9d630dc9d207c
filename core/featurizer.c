#include "core/featurizer.h"

#include "core/memory.h"

#include <string.h>

void tdm_featurizer_destroy(tdm_featurizer *featurizer)
{
    if (featurizer != NULL)
        featurizer->type->destroy(featurizer);
}

size_t tdm_column_row_bytes(const tdm_column *column)
{
    return (size_t)column->width * tdm_dtype_size(column->dtype);
}

size_t tdm_columns_row_bytes(const tdm_columns_layout *layout)
{
    size_t bytes = 0;
    for (int i = 0; i < layout->count; i++)
        bytes += tdm_column_row_bytes(&layout->columns[i]);
    return bytes;
}

int tdm_columns_find(const tdm_columns_layout *layout, const char *name)
{
    for (int i = 0; i < layout->count; i++) {
        if (strcmp(layout->columns[i].name, name) == 0)
            return i;
    }
    return -1;
}

int64_t tdm_extract_row_bytes(const tdm_columns_layout *layout)
{
    size_t row_record = sizeof *((tdm_extract *)NULL)->row_records;
    size_t order = sizeof *((tdm_window *)NULL)->order;
    return (int64_t)(tdm_columns_row_bytes(layout) +
                     (layout->rows_are_pieces ? 0 : row_record + order));
}

tdm_status tdm_extract_reserve(const tdm_columns_layout *layout, tdm_extract *out, size_t rows)
{
    if (rows > out->capacity) {
        /* A power of two: blocks are alike, and what has held some of them holds the others. */
        size_t wanted = out->capacity > 0 ? out->capacity : 256;
        while (wanted < rows)
            wanted *= 2;
        for (int i = 0; i < layout->count; i++) {
            const tdm_column *column = &layout->columns[i];
            size_t capacity = out->capacity;
            TDM_TRY(tdm_grow(&out->columns[i], &capacity, wanted, tdm_column_row_bytes(column)));
        }
        out->capacity = wanted;
    }
    if (layout->rows_are_pieces)
        return TDM_OK;
    return tdm_grow(&out->row_records, &out->row_records_capacity, out->capacity,
                    sizeof *out->row_records);
}

void tdm_window_deinit(tdm_window *window)
{
    tdm_free(window->order);
    tdm_free(window->details);
    tdm_free(window->token_ends);
}

void tdm_bad_records_free(tdm_bad_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tdm_free(records[i].reason);
        tdm_free(records[i].text);
    }
}

void tdm_extract_clear(tdm_extract *extract)
{
    tdm_bad_records_free(extract->bad, extract->bad_count);
    extract->bad_count = 0;
    extract->rows = 0;
    extract->records = 0;
    extract->key_count = 0;
    extract->encoding_errors = 0;
    extract->lines = 0;
}

void tdm_extract_deinit(tdm_extract *extract)
{
    tdm_extract_clear(extract);
    for (int i = 0; i < TDM_MAX_COLUMNS; i++)
        tdm_free(extract->columns[i]);
    tdm_free(extract->row_records);
    tdm_free(extract->keys);
    tdm_free(extract->key_ends);
    tdm_free(extract->bad);
    *extract = (tdm_extract){0};
}
