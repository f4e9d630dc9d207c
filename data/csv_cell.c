#include "data/csv_cell.h"

#include <stdbool.h>
#include <string.h>

char *tdm_csv_cell_write(char *to, const char *cell, size_t bytes)
{
    bool quote = false;
    for (size_t i = 0; i < bytes; i++)
        quote = quote || cell[i] == ',' || cell[i] == '"' || cell[i] == '\n' || cell[i] == '\r';
    if (!quote) {
        memcpy(to, cell, bytes);
        return to + bytes;
    }
    *to++ = '"';
    for (size_t i = 0; i < bytes; i++) {
        if (cell[i] == '"')
            *to++ = '"';
        *to++ = cell[i];
    }
    *to++ = '"';
    return to;
}
