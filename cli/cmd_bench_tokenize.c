/* tandem bench tokenize: from text to ids, how fast? */
#include "cli/bench.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/token_bench.h"
#include "cli/verbs.h"
#include "core/clock.h"

#include <stdio.h>
#include <string.h>

typedef struct bench_values {
    int64_t threads;
    bool cased;
    bool json;
} bench_values;

typedef struct bench {
    const tdm_command *command;
    const bench_values *values;
    tdm_tokenizer_settings settings;
    tdm_tokenizer *tokenizer;
    tdm_pool *pool;
    tdm_token_bench text;
    tdm_passes open, cold, warm;
    double memory_bytes_per_second;
} bench;

/* ---- passes ---------------------------------------------------------------------------------- */

static void close_tokenizer(bench *run)
{
    if (run->pool != NULL)
        tdm_token_bench_close(&run->text);
    tdm_tokenizer_close(run->tokenizer);
    run->tokenizer = NULL;
}

/* What a program does before its first text: the vocabulary, one thread's caches. */
static tdm_status open_tokenizer(bench *run)
{
    TDM_TRY(tdm_tokenizer_open(run->command->plain[0], run->values->cased ? &run->settings : NULL,
                               &run->tokenizer));
    return tdm_token_bench_open(&run->text, run->tokenizer, 0, 1);
}

/* Everything anew: nothing is known of any word that is not in the vocabulary. */
static tdm_status cold_pass(bench *run)
{
    close_tokenizer(run);
    double start = tdm_clock_seconds();
    TDM_TRY(open_tokenizer(run));
    run->open.seconds[run->open.count++] = tdm_clock_seconds() - start;
    TDM_TRY(tdm_token_bench_open(&run->text, run->tokenizer, 1, tdm_pool_threads(run->pool)));
    start = tdm_clock_seconds();
    TDM_TRY(tdm_token_bench_pass(&run->text));
    run->cold.seconds[run->cold.count++] = tdm_clock_seconds() - start;
    return TDM_OK;
}

#define COLD_PASSES 9

static tdm_status measure(bench *run)
{
    TDM_TRY(tdm_pool_create((int)run->values->threads, &run->pool));
    TDM_TRY(tdm_token_bench_init(&run->text, run->pool));
    TDM_TRY(tdm_token_bench_read(&run->text, run->command->plain[1], run->command->cancel));
    TDM_FAIL_IF(run->text.bytes == 0, TDM_E_DATA, "%s is empty", run->command->plain[1]);
    TDM_TRY(tdm_token_bench_cut(&run->text));
    for (int i = 0; i < COLD_PASSES; i++)
        TDM_TRY(cold_pass(run));
    TDM_TRY(tdm_passes_run(tdm_token_bench_pass, &run->text, &run->warm));
    return tdm_measure_memory(run->pool, 0.3, &run->memory_bytes_per_second);
}

/* ---- results --------------------------------------------------------------------------------- */

static tdm_status print_json(const bench *run)
{
    double bytes = (double)run->text.bytes;
    double tokens = (double)tdm_token_bench_tokens(&run->text);
    double warm = tdm_passes_median(&run->warm);
    return tdm_console_json(json_pack(
        "{s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "threads",
        tdm_pool_threads(run->pool), "bytes", (json_int_t)run->text.bytes, "lines",
        (json_int_t)run->text.lines, "tokens", (json_int_t)tokens, "open_seconds",
        tdm_passes_median(&run->open), "cold_bytes_per_second",
        bytes / tdm_passes_median(&run->cold), "warm_bytes_per_second", bytes / warm,
        "best_cold_bytes_per_second", bytes / tdm_passes_best(&run->cold),
        "best_warm_bytes_per_second", bytes / tdm_passes_best(&run->warm), "warm_tokens_per_second",
        tokens / warm, "memory_bytes_per_second", run->memory_bytes_per_second));
}

static void print_text(const bench *run)
{
    double bytes = (double)run->text.bytes;
    double tokens = (double)tdm_token_bench_tokens(&run->text);
    double warm = tdm_passes_median(&run->warm);
    printf("%lld lines, %s, %lld tokens, %d thread(s)\n", (long long)run->text.lines,
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
    close_tokenizer(&state);
    if (state.pool != NULL)
        tdm_token_bench_deinit(&state.text);
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
