#include "cli/machine.h"

#include "core/clock.h"
#include "core/memory.h"
#include "core/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tdm_bytes_text(double bytes)
{
    static _Thread_local char texts[5][32];
    static _Thread_local int next;
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1000;
        unit++;
    }
    char *text = texts[next++ % 5];
    snprintf(text, sizeof texts[0], "%.*f %s", unit == 0 || bytes >= 100 ? 0 : 1, bytes,
             units[unit]);
    return text;
}

/* ---- what is there --------------------------------------------------------------------------- */

/* The rest of the first line of `path` that begins with `key` and blanks, ':' between. */
static bool read_field(const char *path, const char *key, char *value, size_t bytes)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    char line[8192];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        size_t length = strlen(key);
        if (strncmp(line, key, length) != 0)
            continue;
        const char *rest = line + length;
        rest += strspn(rest, " \t:");
        snprintf(value, bytes, "%.*s", (int)strcspn(rest, "\n"), rest);
        found = true;
    }
    fclose(file);
    return found;
}

static void find_instructions(char *out, size_t bytes)
{
    static const char *const wanted[] = {"sse4_2",      "avx2",        "fma",      "avx512f",
                                         "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_tile"};
    static char flags[8192];
    out[0] = '\0';
    if (!read_field("/proc/cpuinfo", "flags", flags, sizeof flags))
        return;
    char *rest = NULL;
    for (char *flag = strtok_r(flags, " ", &rest); flag != NULL;
         flag = strtok_r(NULL, " ", &rest)) {
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
            size_t length = strlen(out);
            if (strcmp(flag, wanted[i]) == 0)
                snprintf(out + length, bytes - length, "%s%s", length > 0 ? " " : "", flag);
        }
    }
}

static int64_t read_kilobytes(const char *key)
{
    char value[64];
    if (!read_field("/proc/meminfo", key, value, sizeof value))
        return 0;
    return strtoll(value, NULL, 10) * 1024;
}

/* A control group's limit, or INT64_MAX. */
static int64_t read_limit(const char *path)
{
    char value[64];
    if (!read_field(path, "", value, sizeof value) || value[0] < '0' || value[0] > '9')
        return INT64_MAX;
    return strtoll(value, NULL, 10);
}

void tdm_machine_get(tdm_machine *out)
{
    *out = (tdm_machine){0};
    read_field("/proc/cpuinfo", "model name", out->cpu, sizeof out->cpu);
    find_instructions(out->instructions, sizeof out->instructions);
    out->memory_bytes = read_kilobytes("MemTotal");
    out->memory_free_bytes = read_kilobytes("MemAvailable");
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        int64_t limit = read_limit(limits[i]);
        if (limit < out->memory_bytes)
            out->memory_bytes = limit;
        if (limit < out->memory_free_bytes)
            out->memory_free_bytes = limit;
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

#define SCAN_BYTES       ((size_t)256 << 20)
#define SCAN_CHUNK_BYTES ((size_t)1 << 20)

typedef struct memory_scan {
    const uint64_t *words;
    uint64_t sums[SCAN_BYTES / SCAN_CHUNK_BYTES];
} memory_scan;

static void scan_chunk(void *context, int64_t index)
{
    memory_scan *scan = context;
    const uint64_t *words = scan->words + (size_t)index * (SCAN_CHUNK_BYTES / sizeof *words);
    uint64_t sums[8] = {0};
    for (size_t i = 0; i < SCAN_CHUNK_BYTES / sizeof *words; i += 8) {
        for (size_t k = 0; k < 8; k++)
            sums[k] += words[i + k];
    }
    for (size_t k = 1; k < 8; k++)
        sums[0] += sums[k];
    scan->sums[index] = sums[0];
}

tdm_status tdm_measure_memory(tdm_pool *pool, double seconds, double *bytes_per_second)
{
    *bytes_per_second = 0;
    unsigned char *bytes;
    TDM_TRY(tdm_alloc(SCAN_BYTES, 1, &bytes));
    memory_scan *scan;
    tdm_status status = tdm_alloc(1, sizeof *scan, &scan);
    if (status == TDM_OK) {
        /* Pages of zeros may all be the same one. */
        memset(bytes, 1, SCAN_BYTES);
        scan->words = (const uint64_t *)(const void *)bytes;
        double end = tdm_clock_seconds() + seconds;
        do {
            double start = tdm_clock_seconds();
            tdm_pool_for(pool, (int64_t)(SCAN_BYTES / SCAN_CHUNK_BYTES), scan_chunk, scan);
            double speed = (double)SCAN_BYTES / (tdm_clock_seconds() - start);
            *bytes_per_second = speed > *bytes_per_second ? speed : *bytes_per_second;
        } while (tdm_clock_seconds() < end);
    }
    tdm_free(scan);
    tdm_free(bytes);
    return status;
}

/* ---- matrix products ------------------------------------------------------------------------- */

#define SQUARE 1024

static tdm_matrix square_of(float *data)
{
    return (tdm_matrix){
        .data = data, .rows = SQUARE, .columns = SQUARE, .stride = SQUARE, .dtype = TDM_F32};
}

static tdm_status time_products(tdm_backend *backend, float *memory, double seconds, double *best)
{
    size_t elements = (size_t)SQUARE * SQUARE;
    tdm_gemm_args args = {.a = square_of(memory),
                          .b = square_of(memory + elements),
                          .c = square_of(memory + 2 * elements)};
    double end = tdm_clock_seconds() + seconds;
    do {
        double start = tdm_clock_seconds();
        TDM_TRY(backend->ops->gemm(backend, &args, NULL));
        TDM_TRY(backend->type->stream_sync(backend, NULL));
        double speed = 2.0 * SQUARE * SQUARE * SQUARE / (tdm_clock_seconds() - start);
        *best = speed > *best ? speed : *best;
    } while (tdm_clock_seconds() < end);
    return TDM_OK;
}

tdm_status tdm_measure_matmul(tdm_backend *backend, double seconds, double *flops_per_second)
{
    *flops_per_second = 0;
    float *memory;
    TDM_TRY(backend->type->alloc(backend, 3 * sizeof(float) * SQUARE * SQUARE, &memory));
    tdm_status status = time_products(backend, memory, seconds, flops_per_second);
    backend->type->free(backend, memory);
    return status;
}
