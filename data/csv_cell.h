/* Cells of CSV (RFC 4180) on their way out. */
#ifndef TDM_DATA_CSV_CELL_H
#define TDM_DATA_CSV_CELL_H

#include <stddef.h>

/* The most bytes that a cell of so many takes. */
static inline size_t tdm_csv_cell_most(size_t bytes)
{
    return 2 * bytes + 2;
}

/* Writes a cell, in quotes where it needs them, and returns the byte behind it; `to` has room for
 * tdm_csv_cell_most(bytes). */
char *tdm_csv_cell_write(char *to, const char *cell, size_t bytes);

#endif
