/* tandem doctor: is this machine fit for training, and how fast may it be? */
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/verbs.h"
#include "core/comm.h"

#include <dnnl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <xxhash.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>

typedef struct doctor_values {
    bool json;
} doctor_values;

typedef struct checkup {
    tdm_machine machine;
    tdm_backend_properties properties;
    char libraries[256];
    char gpu[160], mpi[160]; /* what a build without them says */
    double disk_free_bytes;
    double memory_one, memory_all; /* bytes a second */
    double matmul;                 /* floating-point operations a second */
} checkup;

static void name_libraries(char *out, size_t bytes)
{
    const dnnl_version_t *onednn = dnnl_version();
    unsigned xxhash = XXH_versionNumber();
    snprintf(out, bytes,
             "oneDNN %d.%d.%d, zlib %s, zstd %s, libyaml %s, jansson %s, xxHash %u.%u.%u",
             onednn->major, onednn->minor, onednn->patch, zlibVersion(), ZSTD_versionString(),
             yaml_get_version_string(), JANSSON_VERSION, xxhash / 10000, xxhash / 100 % 100,
             xxhash % 100);
}

static void ask_gpu(tdm_pool *pool, char *out, size_t bytes)
{
    tdm_backend *gpu = NULL;
    tdm_backend_properties properties = {0};
    tdm_status status = tdm_gpu_create(pool, 0, &gpu);
    if (status == TDM_OK)
        status = gpu->type->properties(gpu, &properties);
    snprintf(out, bytes, "%s", status == TDM_OK ? properties.name : tdm_error_message());
    tdm_backend_destroy(gpu);
}

static void ask_mpi(char *out, size_t bytes)
{
    tdm_comm *comm = NULL;
    if (tdm_mpi_create(&comm) == TDM_OK) {
        snprintf(out, bytes, "%d ranks", comm->size);
        comm->type->destroy(comm);
        return;
    }
    snprintf(out, bytes, "%s", tdm_error_message());
}

static double free_disk_bytes(void)
{
    struct statvfs info;
    return statvfs(".", &info) == 0 ? (double)info.f_bavail * (double)info.f_frsize : 0;
}

static tdm_status measure_one_core(checkup *found)
{
    tdm_pool *pool;
    TDM_TRY(tdm_pool_create(1, &pool));
    tdm_status status = tdm_measure_memory(pool, 0.4, &found->memory_one);
    tdm_pool_destroy(pool);
    return status;
}

static tdm_status examine(checkup *found)
{
    tdm_machine_get(&found->machine);
    name_libraries(found->libraries, sizeof found->libraries);
    found->disk_free_bytes = free_disk_bytes();
    TDM_TRY(measure_one_core(found));
    tdm_pool *pool;
    TDM_TRY(tdm_pool_create(0, &pool));
    tdm_backend *backend = NULL;
    tdm_status status;
    found->machine.cores = tdm_pool_threads(pool);
    ask_gpu(pool, found->gpu, sizeof found->gpu);
    ask_mpi(found->mpi, sizeof found->mpi);
    TDM_TRY_GOTO(tdm_measure_memory(pool, 0.4, &found->memory_all), done);
    TDM_TRY_GOTO(tdm_cpu_create(pool, &backend), done);
    TDM_TRY_GOTO(backend->type->properties(backend, &found->properties), done);
    TDM_TRY_GOTO(tdm_measure_matmul(backend, 1.0, &found->matmul), done);
done:
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
    return status;
}

/* What to do about what was found, one sentence a line; NULL where `index` is behind the last. */
static const char *advice(const checkup *found, int index)
{
    const struct {
        bool applies;
        const char *text;
    } list[] = {
        {strstr(found->machine.instructions, "avx2") == NULL,
         "The CPU has no AVX2: parsing and matrix products will be several times slower."},
        {found->machine.cores < 2,
         "One core: reading waits while the model trains. Two or more overlap."},
        {found->machine.memory_free_bytes < (int64_t)2 << 30,
         "Less than 2 GiB of memory is free: tandem train RECIPE --dry-run says what a run needs; "
         "fewer buckets or a smaller batch need less."},
        {found->disk_free_bytes < 5e9,
         "Less than 5 GB of disk is free here: checkpoints hold three times the weights (adam), "
         "and checkpoint.keep_last of them are kept."},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (list[i].applies && index-- == 0)
            return list[i].text;
    }
    return NULL;
}

static void print_text(const checkup *found)
{
    const tdm_machine *machine = &found->machine;
    printf("tandem          %s\n", TDM_VERSION);
    printf("CPU             %s\n", machine->cpu[0] != '\0' ? machine->cpu : "unknown");
    printf("cores           %d\n", machine->cores);
    printf("instructions    %s (in use: %s)\n", machine->instructions,
           found->properties.instructions);
    printf("memory          %s, %s free\n", tdm_bytes_text((double)machine->memory_bytes),
           tdm_bytes_text((double)machine->memory_free_bytes));
    printf("disk            %s free in this folder\n", tdm_bytes_text(found->disk_free_bytes));
    printf("libraries       %s\n", found->libraries);
    printf("GPU             %s\n", found->gpu);
    printf("MPI             %s\n", found->mpi);
    printf("memory speed    %.1f GB/s on one core, %.1f GB/s on all\n", found->memory_one / 1e9,
           found->memory_all / 1e9);
    printf("matrix product  %.0f GFLOP/s (fp32, 1024 x 1024 x 1024, all cores)\n",
           found->matmul / 1e9);
    if (advice(found, 0) == NULL)
        printf("\nNothing stands in the way of training.\n");
    for (int i = 0; advice(found, i) != NULL; i++)
        printf("%s%s\n", i == 0 ? "\n" : "", advice(found, i));
}

static tdm_status print_json(const checkup *found)
{
    const tdm_machine *machine = &found->machine;
    json_t *notes = json_array();
    for (int i = 0; advice(found, i) != NULL; i++)
        json_array_append_new(notes, json_string(advice(found, i)));
    return tdm_console_json(json_pack(
        "{s:s, s:s, s:i, s:s, s:s, s:I, s:I, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "tandem",
        TDM_VERSION, "cpu", machine->cpu, "cores", machine->cores, "instructions",
        machine->instructions, "instructions_in_use", found->properties.instructions,
        "memory_bytes", (json_int_t)machine->memory_bytes, "memory_free_bytes",
        (json_int_t)machine->memory_free_bytes, "disk_free_bytes",
        tdm_json_number(found->disk_free_bytes), "libraries", found->libraries, "gpu", found->gpu,
        "mpi", found->mpi, "memory_bytes_per_second_one_core", tdm_json_number(found->memory_one),
        "memory_bytes_per_second", tdm_json_number(found->memory_all), "matmul_flops_per_second",
        tdm_json_number(found->matmul), "advice", notes));
}

static tdm_status run(const tdm_command *command)
{
    const doctor_values *values = command->values;
    checkup found = {0};
    TDM_TRY(examine(&found));
    if (values->json)
        return print_json(&found);
    print_text(&found);
    return TDM_OK;
}

static const tdm_option options[] = {
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(doctor_values, json),
     .help = "one JSON object"},
    {0},
};

const tdm_verb tdm_verb_doctor = {
    .name = "doctor",
    .arguments = "",
    .summary = "what this machine has, how fast it is, and what to mind",
    .text =
        "Looks at the CPU, memory, disk and libraries, measures memory and matrix products for\n"
        "two seconds, and says what stands in the way of training here.\n"
        "\n"
        "  tandem doctor\n"
        "  tandem doctor --json",
    .options = options,
    .values_bytes = sizeof(doctor_values),
    .run = run,
};
