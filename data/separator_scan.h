/* Where the separators of a text are: the one loop of parsing that looks at every byte. */
#ifndef TDM_DATA_SEPARATOR_SCAN_H
#define TDM_DATA_SEPARATOR_SCAN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tdm_separator_scan {
    uint32_t *positions; /* out: of separators and newlines, rising; room for room + 64 */
    uint32_t count;
    uint32_t *newlines; /* out: indices in positions, of the newlines; room for room + 64 */
    uint32_t newline_count;
    uint32_t end; /* out: bytes scanned, a multiple of 64 from begin, or size */
    bool plain;   /* out: all bytes scanned are ASCII and none is NUL */
} tdm_separator_scan;

/* Scans text[begin, size) until at least `room` positions or `newline_room` newlines are found.
 * Reads up to 63 bytes behind size. Chooses the widest vectors that the CPU has. */
void tdm_scan_separators(const char *text, uint32_t begin, uint32_t size, char separator,
                         uint32_t room, uint32_t newline_room, tdm_separator_scan *scan);

/* Tests: 0 baseline, 1 AVX2, 2 AVX-512; -1 lets the CPU decide. False where the CPU lacks it. */
bool tdm_scan_separators_force(int level);

#endif
