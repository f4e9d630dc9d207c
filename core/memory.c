#include "core/memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Pieces from LARGE_BYTES on are aligned to, and asked to be made of, huge pages: embedding tables
 * are read at random, and a miss of the page tables costs as much as a miss of the caches. */
#define LARGE_BYTES     ((size_t)4 << 20)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static _Atomic int64_t allocations;
static _Atomic int64_t live_bytes;
static _Atomic int64_t peak_bytes;
static _Atomic int64_t fail_countdown;
static atomic_bool fail_persistent;

static bool must_fail(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0)
        return false;
    int64_t left = atomic_fetch_sub(&fail_countdown, 1) - 1;
    if (left > 0)
        return false;
    atomic_store(&fail_countdown, atomic_load(&fail_persistent) ? 1 : 0);
    return true;
}

static void count_live(int64_t change)
{
    int64_t live = atomic_fetch_add(&live_bytes, change) + change;
    int64_t peak = atomic_load(&peak_bytes);
    while (live > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, live))
        ;
}

static tdm_status out_of_memory(size_t bytes)
{
    return tdm_fail(TDM_E_NOMEM, "out of memory: %zu bytes were asked for", bytes);
}

static void *aligned_memory(size_t bytes)
{
    void *memory;
    bool large = bytes >= LARGE_BYTES;
    if (posix_memalign(&memory, large ? HUGE_PAGE_BYTES : TDM_ALIGNMENT, bytes) != 0)
        return NULL;
    if (large)
        madvise(memory, bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, MADV_HUGEPAGE);
    return memory;
}

tdm_status tdm_alloc(size_t count, size_t size, void *out)
{
    void *memory = NULL;
    memcpy(out, &memory, sizeof memory);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - TDM_ALIGNMENT)
        return out_of_memory(SIZE_MAX);
    if (bytes == 0)
        return TDM_OK;
    bytes = (bytes + TDM_ALIGNMENT - 1) / TDM_ALIGNMENT * TDM_ALIGNMENT;
    memory = must_fail() ? NULL : aligned_memory(bytes);
    if (memory == NULL)
        return out_of_memory(bytes);
    memset(memory, 0, bytes);
    atomic_fetch_add(&allocations, 1);
    count_live((int64_t)malloc_usable_size(memory));
    memcpy(out, &memory, sizeof memory);
    return TDM_OK;
}

tdm_status tdm_grow(void *pointer, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity)
        return TDM_OK;
    size_t items = *capacity < SIZE_MAX / 2 && *capacity * 2 > needed ? *capacity * 2 : needed;
    if (items < 16 / size)
        items = 16 / size;
    size_t bytes;
    if (__builtin_mul_overflow(items, size, &bytes))
        return out_of_memory(SIZE_MAX);
    void *old;
    memcpy(&old, pointer, sizeof old);
    int64_t before = old == NULL ? 0 : (int64_t)malloc_usable_size(old);
    void *memory = must_fail() ? NULL : realloc(old, bytes);
    if (memory == NULL)
        return out_of_memory(bytes);
    atomic_fetch_add(&allocations, 1);
    count_live((int64_t)malloc_usable_size(memory) - before);
    memcpy(pointer, &memory, sizeof memory);
    *capacity = items;
    return TDM_OK;
}

tdm_status tdm_strndup(const char *text, size_t bytes, char **out)
{
    TDM_TRY(tdm_alloc(bytes + 1, 1, out));
    memcpy(*out, text, bytes);
    return TDM_OK;
}

tdm_status tdm_strdup(const char *text, char **out)
{
    return tdm_strndup(text, strlen(text), out);
}

tdm_status tdm_format(char **out, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    tdm_status status = tdm_alloc((size_t)length + 1, 1, out);
    if (status == TDM_OK)
        vsnprintf(*out, (size_t)length + 1, format, again);
    va_end(again);
    return status;
}

void tdm_free(void *pointer)
{
    if (pointer == NULL)
        return;
    count_live(-(int64_t)malloc_usable_size(pointer));
    free(pointer);
}

tdm_memory_stats tdm_memory_stats_get(void)
{
    return (tdm_memory_stats){
        .allocations = atomic_load(&allocations),
        .live_bytes = atomic_load(&live_bytes),
        .peak_bytes = atomic_load(&peak_bytes),
    };
}

void tdm_memory_fail_at(int64_t n, bool persistent)
{
    atomic_store(&fail_persistent, persistent);
    atomic_store(&fail_countdown, n);
}
