/* tandem bench features: from text to rows, how fast? */
#include "cli/bench.h"
#include "cli/bench_text.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "cli/reading.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/memory.h"
#include "data/cache.h"

#include <pthread.h>
#include <stdio.h>

typedef struct bench_values {
    int64_t threads;
    bool cache;
    bool json;
} bench_values;

typedef struct bench {
    tdm_reading reading;
    const tdm_command *command;
    int64_t rows;
    int64_t bad_records;
    int64_t stored_bytes;  /* of the files */
    int64_t text_bytes;    /* uncompressed */
    double source_seconds; /* to read the text alone, on one thread */
    double memory_bytes_per_second;
    tdm_passes text;
    tdm_passes cached; /* with --cache */
    int64_t cache_bytes;
    tdm_cache *cache;
    tdm_cache_writer *writer;
    tdm_extract *extracts; /* [threads] */
} bench;

/* ---- text ------------------------------------------------------------------------------------ */

static tdm_status count_block(void *context, const tdm_extract *block)
{
    bench *run = context;
    run->rows += block->rows;
    run->bad_records += (int64_t)block->bad_count;
    return TDM_OK;
}

static tdm_status text_pass(void *context)
{
    bench *run = context;
    run->rows = 0;
    run->bad_records = 0;
    return tdm_reading_blocks(&run->reading, run->command->cancel, count_block, NULL, NULL, run);
}

/* Reads a file's text and nothing more. */
static tdm_status read_source(bench *run, const char *path, char *buffer, size_t bytes)
{
    tdm_source *source;
    TDM_TRY(tdm_source_open(path, run->command->cancel, &source));
    size_t got = 1;
    tdm_status status = TDM_OK;
    while (status == TDM_OK && got > 0) {
        status = tdm_source_read(source, buffer, bytes, &got);
        run->text_bytes += (int64_t)got;
    }
    tdm_source_close(source);
    return status;
}

static tdm_status source_pass(bench *run)
{
    size_t bytes = (size_t)1 << 20;
    char *buffer;
    TDM_TRY(tdm_alloc(bytes, 1, &buffer));
    run->text_bytes = 0;
    double start = tdm_clock_seconds();
    tdm_status status = TDM_OK;
    for (int32_t f = 0; f < tdm_input_file_count(run->reading.input) && status == TDM_OK; f++)
        status = read_source(run, tdm_input_file_get(run->reading.input, f)->path, buffer, bytes);
    run->source_seconds = tdm_clock_seconds() - start;
    tdm_free(buffer);
    return status;
}

/* ---- the cache ------------------------------------------------------------------------------- */

typedef struct cache_reader {
    bench *run;
    pthread_mutex_t lock;
    tdm_error error;
} cache_reader;

static tdm_status write_block(void *context, const tdm_extract *block)
{
    bench *run = context;
    return tdm_cache_writer_add(run->writer, block);
}

static void read_block(void *context, int64_t block)
{
    cache_reader *reader = context;
    tdm_extract *extract = &reader->run->extracts[tdm_pool_thread_index()];
    tdm_status status = tdm_cache_read(reader->run->cache, block, extract);
    if (status == TDM_OK)
        return;
    pthread_mutex_lock(&reader->lock);
    tdm_error_keep(&reader->error, status);
    pthread_mutex_unlock(&reader->lock);
}

static tdm_status cache_pass(void *context)
{
    cache_reader reader = {.run = context, .lock = PTHREAD_MUTEX_INITIALIZER};
    tdm_pool_for(reader.run->reading.pool, tdm_cache_block_count(reader.run->cache), read_block,
                 &reader);
    return tdm_error_raise(&reader.error);
}

static tdm_status write_cache(bench *run, const char *path)
{
    const tdm_columns_layout *layout = &run->reading.featurizer->columns;
    int64_t blocks = tdm_input_block_count(run->reading.input);
    TDM_FAIL_IF(blocks < 0, TDM_E_ARG, "--cache measures plain files, not compressed ones");
    TDM_TRY(tdm_cache_writer_create(path, layout, &run->writer));
    tdm_status status =
        tdm_reading_blocks(&run->reading, run->command->cancel, write_block, NULL, NULL, run);
    if (status == TDM_OK)
        status = tdm_cache_writer_commit(run->writer, blocks);
    tdm_cache_writer_close(run->writer);
    TDM_TRY(status);
    return tdm_cache_open(path, layout, &run->cache);
}

static tdm_status measure_cache(bench *run)
{
    char *folder, *path = NULL;
    TDM_TRY(tdm_temporary_folder(&folder));
    int threads = tdm_pool_threads(run->reading.pool);
    tdm_status status;
    TDM_TRY_GOTO(tdm_path_join(folder, "bench.cache", &path), done);
    TDM_TRY_GOTO(tdm_alloc((size_t)threads, sizeof *run->extracts, &run->extracts), done);
    TDM_TRY_GOTO(write_cache(run, path), done);
    run->cache_bytes = tdm_cache_bytes(run->cache);
    TDM_TRY_GOTO(tdm_passes_run(cache_pass, run, &run->cached), done);
done:
    tdm_cache_close(run->cache);
    for (int i = 0; run->extracts != NULL && i < threads; i++)
        tdm_extract_deinit(&run->extracts[i]);
    tdm_free(run->extracts);
    tdm_free(path);
    tdm_temporary_folder_remove(folder);
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

static double rate(double count, const tdm_passes *passes)
{
    return count / tdm_passes_median(passes);
}

static tdm_status print_json(const bench *run)
{
    double rows = (double)run->rows, bytes = (double)run->text_bytes;
    json_t *json = json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "threads",
        tdm_pool_threads(run->reading.pool), "rows", (json_int_t)run->rows, "bad_records",
        (json_int_t)run->bad_records, "text_bytes", (json_int_t)run->text_bytes, "stored_bytes",
        (json_int_t)run->stored_bytes, "rows_per_second", tdm_json_number(rate(rows, &run->text)),
        "bytes_per_second", tdm_json_number(rate(bytes, &run->text)), "best_rows_per_second",
        tdm_json_number(rows / tdm_passes_best(&run->text)), "best_bytes_per_second",
        tdm_json_number(bytes / tdm_passes_best(&run->text)), "source_bytes_per_second",
        tdm_json_number(bytes / run->source_seconds), "memory_bytes_per_second",
        tdm_json_number(run->memory_bytes_per_second));
    if (run->cached.count > 0) {
        json_object_set_new(json, "cache_bytes", json_integer(run->cache_bytes));
        json_object_set_new(json, "cache_rows_per_second",
                            tdm_json_number(rate(rows, &run->cached)));
        json_object_set_new(json, "best_cache_rows_per_second",
                            tdm_json_number(rows / tdm_passes_best(&run->cached)));
    }
    return tdm_console_json(json);
}

static void print_text(const bench *run)
{
    double rows = (double)run->rows, bytes = (double)run->text_bytes;
    printf("%lld rows, %s of text, %d thread(s), %d passes\n", (long long)run->rows,
           tdm_bytes_text(bytes), tdm_pool_threads(run->reading.pool), run->text.count);
    printf("text to rows    %s rows/s  %s/s   (best: %s rows/s)\n",
           tdm_count_text(rate(rows, &run->text)), tdm_bytes_text(rate(bytes, &run->text)),
           tdm_count_text(rows / tdm_passes_best(&run->text)));
    if (run->cached.count > 0)
        printf("cache to rows   %s rows/s   (best: %s rows/s), %s\n",
               tdm_count_text(rate(rows, &run->cached)),
               tdm_count_text(rows / tdm_passes_best(&run->cached)),
               tdm_bytes_text((double)run->cache_bytes));
    printf("reading alone   %s/s on one thread%s\n", tdm_bytes_text(bytes / run->source_seconds),
           run->text_bytes != run->stored_bytes ? ", decompression included" : "");
    printf("memory scan     %s/s: text to rows is %.1f%% of that\n",
           tdm_bytes_text(run->memory_bytes_per_second),
           100 * rate(bytes, &run->text) / run->memory_bytes_per_second);
}

static tdm_status measure(bench *run, const bench_values *values)
{
    TDM_FAIL_IF(tdm_input_is_stdin(run->reading.input), TDM_E_ARG,
                "standard input cannot be read more than once: name a file");
    run->stored_bytes = tdm_input_stored_bytes(run->reading.input);
    TDM_TRY(tdm_passes_run(text_pass, run, &run->text));
    TDM_FAIL_IF(run->rows == 0, TDM_E_DATA, "there is no good record");
    TDM_TRY(source_pass(run));
    if (values->cache)
        TDM_TRY(measure_cache(run));
    TDM_TRY(tdm_measure_memory(run->reading.pool, 0.3, &run->memory_bytes_per_second));
    if (values->json)
        return print_json(run);
    print_text(run);
    return TDM_OK;
}

static tdm_status run(const tdm_command *command)
{
    const bench_values *values = command->values;
    const tdm_recipe_arguments arguments = tdm_command_recipe_arguments(command);
    bench state = {.command = command};
    TDM_TRY(tdm_reading_open(command->plain[0], &arguments, (int)values->threads, TDM_CTR_TRAINING,
                             command->cancel, &state.reading));
    tdm_status status =
        state.reading.recipe->task != TDM_TASK_CTR
            ? tdm_bench_text(&state.reading, values->cache, values->json, command->cancel)
            : measure(&state, values);
    tdm_reading_close(&state.reading);
    return status;
}

static const tdm_option options[] = {
    {.name = "threads",
     .type = TDM_OPTION_INT,
     .offset = offsetof(bench_values, threads),
     .value = "N",
     .max = 1024,
     .help = "threads to use; 0: one a core"},
    {.name = "cache",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(bench_values, cache),
     .help = "measure the same from the cache, too"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(bench_values, json),
     .help = "print one JSON object"},
    {0},
};

const tdm_verb tdm_verb_bench_features = {
    .name = "bench features",
    .arguments = "RECIPE FILE... [key=value]...",
    .summary = "how fast text becomes rows",
    .text =
        "Reads the files several times, so that they lie in the page cache, and tells the median:\n"
        "text to extracted rows, before the ids of batches are deduplicated. Beside it: reading\n"
        "and decompressing alone, and a bare scan of memory. Of a text recipe: text to masked\n"
        "batches, through the pipeline of a training, beside the tokenizer alone.\n"
        "\n"
        "  tandem bench features recipes/ctr/deepfm_criteo.yaml sample.tsv --threads 1\n"
        "  tandem bench features recipes/ctr/deepfm_criteo.yaml sample.tsv --cache --json",
    .options = options,
    .values_bytes = sizeof(bench_values),
    .min_plain = 2,
    .max_plain = -1,
    .takes_overrides = true,
    .run = run,
};
