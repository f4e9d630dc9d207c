/* tandem bench tokenize: from text to ids, how fast? */
#include "cli/bench.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/pool.h"
#include "data/source.h"
#include "text/word_ids.h"

#include <stdio.h>
#include <string.h>

typedef struct bench_values {
    int64_t threads;
    bool cased;
    bool json;
} bench_values;

/* Lines that one job tokenizes. */
#define PART_BYTES ((size_t)256 << 10)

/* A thread's. */
typedef struct bench_lane {
    tdm_word_ids *words;
    tdm_token_list tokens; /* of all its lines in this pass */
    tdm_error error;
} bench_lane;

typedef struct bench {
    const tdm_command *command;
    const bench_values *values;
    tdm_tokenizer_settings settings;
    tdm_tokenizer *tokenizer;
    tdm_pool *pool;
    bench_lane *lanes; /* [threads] */
    char *text;
    size_t bytes, capacity;
    size_t *parts; /* [part_count + 1]: where each begins */
    size_t part_count, parts_capacity;
    int64_t lines;
    tdm_passes open, cold, warm;
    double memory_bytes_per_second;
} bench;

/* ---- the text -------------------------------------------------------------------------------- */

static tdm_status read_text(bench *run, const char *path)
{
    tdm_source *source;
    TDM_TRY(tdm_source_open(path, run->command->cancel, &source));
    tdm_status status = TDM_OK;
    size_t got = 1;
    while (status == TDM_OK && got > 0) {
        status = tdm_grow(&run->text, &run->capacity, run->bytes + ((size_t)1 << 20), 1);
        if (status == TDM_OK)
            status =
                tdm_source_read(source, run->text + run->bytes, run->capacity - run->bytes, &got);
        run->bytes += status == TDM_OK ? got : 0;
    }
    tdm_source_close(source);
    return status;
}

static size_t line_end(const bench *run, size_t from)
{
    const char *end = from < run->bytes ? memchr(run->text + from, '\n', run->bytes - from) : NULL;
    return end == NULL ? run->bytes : (size_t)(end - run->text);
}

static tdm_status cut_parts(bench *run)
{
    for (size_t at = 0; at < run->bytes;) {
        TDM_TRY(
            tdm_grow(&run->parts, &run->parts_capacity, run->part_count + 2, sizeof *run->parts));
        run->parts[run->part_count++] = at;
        at = line_end(run, at + PART_BYTES - 1) + 1;
        run->parts[run->part_count] = at < run->bytes ? at : run->bytes;
    }
    for (size_t at = 0; at < run->bytes; at = line_end(run, at) + 1)
        run->lines++;
    return TDM_OK;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static void run_part(void *context, int64_t index)
{
    bench *run = context;
    bench_lane *lane = &run->lanes[tdm_pool_thread_index()];
    tdm_status status = TDM_OK;
    for (size_t at = run->parts[index]; at < run->parts[index + 1] && status == TDM_OK;) {
        size_t end = line_end(run, at);
        status = tdm_word_ids_append(lane->words, run->text + at, end - at, &lane->tokens);
        at = end + 1;
    }
    if (status != TDM_OK)
        tdm_error_keep(&lane->error, status);
}

static tdm_status warm_pass(void *context)
{
    bench *run = context;
    int threads = tdm_pool_threads(run->pool);
    for (int i = 0; i < threads; i++)
        run->lanes[i].tokens.count = 0;
    tdm_pool_for(run->pool, (int64_t)run->part_count, run_part, run);
    for (int i = 0; i < threads; i++)
        TDM_TRY(tdm_error_raise(&run->lanes[i].error));
    return TDM_OK;
}

static void close_lanes(bench *run)
{
    for (int i = 0; run->lanes != NULL && i < tdm_pool_threads(run->pool); i++) {
        tdm_word_ids_destroy(run->lanes[i].words);
        tdm_token_list_deinit(&run->lanes[i].tokens);
        run->lanes[i].words = NULL;
    }
    tdm_tokenizer_close(run->tokenizer);
    run->tokenizer = NULL;
}

/* What a program does before its first text: the vocabulary, one thread's caches. */
static tdm_status open_tokenizer(bench *run)
{
    size_t bytes = strlen(run->command->plain[0]);
    bool json = bytes >= 5 && strcmp(run->command->plain[0] + bytes - 5, ".json") == 0;
    TDM_TRY(
        tdm_tokenizer_open(run->command->plain[0], json ? NULL : &run->settings, &run->tokenizer));
    return tdm_word_ids_create(run->tokenizer, &run->lanes[0].words);
}

/* Everything anew: nothing is known of any word that is not in the vocabulary. */
static tdm_status cold_pass(bench *run)
{
    close_lanes(run);
    double start = tdm_clock_seconds();
    TDM_TRY(open_tokenizer(run));
    run->open.seconds[run->open.count++] = tdm_clock_seconds() - start;
    for (int i = 1; i < tdm_pool_threads(run->pool); i++)
        TDM_TRY(tdm_word_ids_create(run->tokenizer, &run->lanes[i].words));
    start = tdm_clock_seconds();
    TDM_TRY(warm_pass(run));
    run->cold.seconds[run->cold.count++] = tdm_clock_seconds() - start;
    return TDM_OK;
}

#define COLD_PASSES 9

static tdm_status measure(bench *run)
{
    TDM_TRY(read_text(run, run->command->plain[1]));
    TDM_FAIL_IF(run->bytes == 0, TDM_E_DATA, "%s is empty", run->command->plain[1]);
    TDM_TRY(cut_parts(run));
    TDM_TRY(tdm_pool_create((int)run->values->threads, &run->pool));
    TDM_TRY(tdm_alloc((size_t)tdm_pool_threads(run->pool), sizeof *run->lanes, &run->lanes));
    for (int i = 0; i < COLD_PASSES; i++)
        TDM_TRY(cold_pass(run));
    TDM_TRY(tdm_passes_run(warm_pass, run, &run->warm));
    return tdm_measure_memory(run->pool, 0.3, &run->memory_bytes_per_second);
}

/* ---- results --------------------------------------------------------------------------------- */

static int64_t count_tokens(const bench *run)
{
    int64_t count = 0;
    for (int i = 0; i < tdm_pool_threads(run->pool); i++)
        count += run->lanes[i].tokens.count;
    return count;
}

static tdm_status print_json(const bench *run)
{
    double bytes = (double)run->bytes, tokens = (double)count_tokens(run);
    double warm = tdm_passes_median(&run->warm);
    return tdm_console_json(json_pack(
        "{s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "threads",
        tdm_pool_threads(run->pool), "bytes", (json_int_t)run->bytes, "lines",
        (json_int_t)run->lines, "tokens", (json_int_t)tokens, "open_seconds",
        tdm_passes_median(&run->open), "cold_bytes_per_second",
        bytes / tdm_passes_median(&run->cold), "warm_bytes_per_second", bytes / warm,
        "best_cold_bytes_per_second", bytes / tdm_passes_best(&run->cold),
        "best_warm_bytes_per_second", bytes / tdm_passes_best(&run->warm), "warm_tokens_per_second",
        tokens / warm, "memory_bytes_per_second", run->memory_bytes_per_second));
}

static void print_text(const bench *run)
{
    double bytes = (double)run->bytes, tokens = (double)count_tokens(run);
    double warm = tdm_passes_median(&run->warm);
    printf("%lld lines, %s, %lld tokens, %d thread(s)\n", (long long)run->lines,
           tdm_bytes_text(bytes), (long long)tokens, tdm_pool_threads(run->pool));
    printf("opening         %.1f ms\n", 1e3 * tdm_passes_median(&run->open));
    printf("cold            %s/s   (best: %s/s)\n",
           tdm_bytes_text(bytes / tdm_passes_median(&run->cold)),
           tdm_bytes_text(bytes / tdm_passes_best(&run->cold)));
    printf("warm            %s/s   (best: %s/s), %.1f M tokens/s\n", tdm_bytes_text(bytes / warm),
           tdm_bytes_text(bytes / tdm_passes_best(&run->warm)), 1e-6 * tokens / warm);
    printf("memory scan     %s/s: warm is %.1f%% of that\n",
           tdm_bytes_text(run->memory_bytes_per_second),
           100 * bytes / warm / run->memory_bytes_per_second);
}

static tdm_status run(const tdm_command *command)
{
    const bench_values *values = command->values;
    bench state = {
        .command = command, .values = values, .settings = tdm_tokenizer_default_settings()};
    state.settings.lowercase = !values->cased;
    tdm_status status = measure(&state);
    if (status == TDM_OK && values->json)
        status = print_json(&state);
    else if (status == TDM_OK)
        print_text(&state);
    close_lanes(&state);
    tdm_free(state.lanes);
    tdm_free(state.parts);
    tdm_free(state.text);
    tdm_pool_destroy(state.pool);
    return status;
}

static const tdm_option options[] = {
    {.name = "threads",
     .type = TDM_OPTION_INT,
     .offset = offsetof(bench_values, threads),
     .value = "N",
     .max = 1024,
     .help = "threads to use; 0: one a core"},
    {.name = "cased",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(bench_values, cased),
     .help = "keep upper case and accents, with a vocabulary of such words"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(bench_values, json),
     .help = "print one JSON object"},
    {0},
};

const tdm_verb tdm_verb_bench_tokenize = {
    .name = "bench tokenize",
    .arguments = "VOCAB FILE",
    .summary = "how fast text becomes ids",
    .text =
        "Tokenizes the lines of a file in memory and tells the median of several passes: cold,\n"
        "with a tokenizer that has just been opened, and warm, when it has seen all words.\n"
        "Opening is the vocabulary and one thread's caches. Beside it a bare scan of memory.\n"
        "\n"
        "  tandem bench tokenize vocab.txt corpus.txt --threads 1\n"
        "  tandem bench tokenize tokenizer.json corpus.txt.gz --json",
    .options = options,
    .values_bytes = sizeof(bench_values),
    .min_plain = 2,
    .max_plain = 2,
    .run = run,
};
