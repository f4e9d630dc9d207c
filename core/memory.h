/* The one way to the heap: aligned, counted, and able to fail on demand in tests. */
#ifndef TDM_CORE_MEMORY_H
#define TDM_CORE_MEMORY_H

#include "core/status.h"

#include <stdbool.h>

#define TDM_ALIGNMENT 64 /* bytes: a cache line, and the widest vector */

/* Allocates `count` items of `size` bytes, set to zero, aligned to TDM_ALIGNMENT, or from 4 MiB on
 * to a huge page. *out is NULL on failure and for zero bytes. `out` is the address of a pointer of
 * any type. */
TDM_MUST_CHECK tdm_status tdm_alloc(size_t count, size_t size, void *out);

/* Grows *pointer, which tdm_alloc or tdm_grow made or which is NULL, to hold at least `needed`
 * items; *capacity is updated. Capacity at least doubles, contents are kept, new items are not set.
 * On failure *pointer still holds what it held. The alignment is that of malloc. */
TDM_MUST_CHECK tdm_status tdm_grow(void *pointer, size_t *capacity, size_t needed, size_t size);

TDM_MUST_CHECK tdm_status tdm_strdup(const char *text, char **out);
TDM_MUST_CHECK tdm_status tdm_strndup(const char *text, size_t bytes, char **out);

/* printf into a new string that the caller frees with tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_format(char **out, const char *format, ...) TDM_PRINTF(2, 3);

void tdm_free(void *pointer);

typedef struct tdm_memory_stats {
    int64_t allocations; /* calls that asked the system for memory since the start */
    int64_t live_bytes;
    int64_t peak_bytes;
} tdm_memory_stats;

tdm_memory_stats tdm_memory_stats_get(void);

/* Tests only: the n-th allocation from now on fails (1: the next), and all later ones too where
 * `persistent`. 0 turns it off. */
void tdm_memory_fail_at(int64_t n, bool persistent);

#endif
