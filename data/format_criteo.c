/* Criteo's click logs: tab-separated, no header, `label I1..I13 C1..C26`; files for prediction may
 * lack the label. A missing value is an empty cell. (Criteo Display Advertising Challenge, 2014,
 * and the Terabyte click logs, which share the shape.) */
#include "core/memory.h"
#include "data/record_format.h"

#include <stdio.h>

#define INTEGERS    13
#define CATEGORIES  26
#define ALL_COLUMNS (1 + INTEGERS + CATEGORIES)

static tdm_status create(const tdm_format_options *options, const char *file,
                         const char *first_line, size_t bytes, tdm_record_format *format)
{
    (void)options;
    (void)file;
    (void)first_line;
    (void)bytes;
    TDM_TRY(tdm_alloc(ALL_COLUMNS, sizeof *format->columns, &format->columns));
    format->column_count = ALL_COLUMNS;
    for (int i = 0; i < ALL_COLUMNS; i++) {
        if (i == 0)
            TDM_TRY(tdm_strdup("label", &format->columns[i]));
        else if (i <= INTEGERS)
            TDM_TRY(tdm_format(&format->columns[i], "I%d", i));
        else
            TDM_TRY(tdm_format(&format->columns[i], "C%d", i - INTEGERS));
    }
    return TDM_OK;
}

/* The first line tells whether a file has labels. Any other count is left to the records: a first
 * line that is broken must not decide for the file. */
static tdm_status open_file(const tdm_record_format *format, const char *name, const char *line,
                            size_t bytes, tdm_file_layout *out)
{
    (void)name;
    int32_t tabs = 0;
    for (size_t i = 0; i < bytes; i++)
        tabs += line[i] == format->separator;
    bool labels = tabs + 1 != ALL_COLUMNS - 1;
    return tdm_file_layout_identity(labels ? ALL_COLUMNS : ALL_COLUMNS - 1, labels ? 0 : 1, out);
}

const tdm_record_format_type tdm_format_criteo = {
    .name = "criteo",
    .help = "Criteo's logs: label, I1..I13, C1..C26, separated by tabs, no header",
    .separator = '\t',
    .create = create,
    .open_file = open_file,
    .parse = tdm_parse_separated_lines,
};
