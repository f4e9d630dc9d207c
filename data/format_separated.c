/* Separated columns: CSV, whose cells may stand in quotes, and TSV, which has no quoting; with a
 * header line or with names from the recipe. */
#include "core/log.h"
#include "core/memory.h"
#include "data/record_format.h"

#include <string.h>

static tdm_status names_from_header(const char *file, const char *line, size_t bytes,
                                    tdm_record_format *format)
{
    tdm_span *cells;
    int32_t count;
    TDM_TRY(tdm_split_header(format, file, line, bytes, &cells, &count));
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)count, sizeof *format->columns, &format->columns), out);
    format->column_count = count;
    for (int32_t i = 0; i < count; i++) {
        size_t length = cells[i].end - cells[i].begin;
        if (length == 0) {
            status = tdm_fail(TDM_E_DATA, "%s:1: column %d of the header has no name", file, i + 1);
            goto out;
        }
        TDM_TRY_GOTO(tdm_strndup(line + cells[i].begin, length, &format->columns[i]), out);
        for (int32_t j = 0; j < i; j++) {
            if (strcmp(format->columns[j], format->columns[i]) == 0) {
                status = tdm_fail(TDM_E_DATA, "%s:1: the header names %s twice", file,
                                  format->columns[i]);
                goto out;
            }
        }
    }
out:
    tdm_free(cells);
    return status;
}

static tdm_status create(const tdm_format_options *options, const char *file,
                         const char *first_line, size_t bytes, tdm_record_format *format)
{
    if (options->columns.count > 0)
        return tdm_format_copy_columns(&options->columns, format);
    TDM_FAIL_IF(options->header == TDM_HEADER_NO, TDM_E_CONFIG,
                "data.columns: a %s file without a header needs the names of its columns here",
                format->type->name);
    return names_from_header(file, first_line, bytes, format);
}

/* The column that a header cell names, tried at the cell's own place first. */
static int32_t find_cell(const tdm_record_format *format, int32_t place, const char *text,
                         size_t bytes)
{
    for (int32_t i = -1; i < format->column_count; i++) {
        int32_t column = i < 0 ? place : i;
        if (column < format->column_count && strncmp(format->columns[column], text, bytes) == 0 &&
            format->columns[column][bytes] == '\0')
            return column;
    }
    return -1;
}

static tdm_status map_cells(const tdm_record_format *format, const char *name, const char *line,
                            const tdm_span *cells, tdm_file_layout *out, bool *found)
{
    int32_t known = 0;
    out->identity = out->physical_count == format->column_count;
    for (int32_t i = 0; i < out->physical_count; i++) {
        int32_t column = find_cell(format, i, line + cells[i].begin, cells[i].end - cells[i].begin);
        out->canonical[i] = column;
        out->identity = out->identity && column == i;
        if (column < 0)
            continue;
        TDM_FAIL_IF(found[column], TDM_E_DATA, "%s:1: the header names %s twice", name,
                    format->columns[column]);
        found[column] = true;
        known++;
    }
    TDM_FAIL_IF(known == 0, TDM_E_DATA,
                "%s:1: the first line names none of the columns (%s, …): a file without a header "
                "needs data.header: false and data.columns",
                name, format->columns[0]);
    for (int32_t column = 0; column < format->column_count; column++) {
        if (!found[column])
            tdm_warn("%s:1: the header lacks the column %s: its values are missing", name,
                     format->columns[column]);
    }
    return TDM_OK;
}

static tdm_status layout_from_header(const tdm_record_format *format, const char *name,
                                     const char *line, size_t bytes, tdm_file_layout *out)
{
    tdm_span *cells;
    bool *found = NULL;
    tdm_status status;
    out->header = true;
    TDM_TRY(tdm_split_header(format, name, line, bytes, &cells, &out->physical_count));
    TDM_TRY_GOTO(tdm_alloc((size_t)out->physical_count, sizeof *out->canonical, &out->canonical),
                 done);
    TDM_TRY_GOTO(tdm_alloc((size_t)format->column_count, sizeof *found, &found), done);
    status = map_cells(format, name, line, cells, out, found);
done:
    tdm_free(found);
    tdm_free(cells);
    return status;
}

static tdm_status open_file(const tdm_record_format *format, const char *name, const char *line,
                            size_t bytes, tdm_file_layout *out)
{
    *out = (tdm_file_layout){0};
    if (format->header == TDM_HEADER_YES)
        return layout_from_header(format, name, line, bytes, out);
    return tdm_file_layout_identity(format->column_count, 0, out);
}

const tdm_record_format_type tdm_format_csv = {
    .name = "csv",
    .help = "cells separated by commas (or data.separator), some in quotes",
    .separator = ',',
    .quotes = true,
    .create = create,
    .open_file = open_file,
    .parse = tdm_parse_separated_lines,
};

const tdm_record_format_type tdm_format_tsv = {
    .name = "tsv",
    .help = "cells separated by tabs (or data.separator), without quoting",
    .separator = '\t',
    .create = create,
    .open_file = open_file,
    .parse = tdm_parse_separated_lines,
};
