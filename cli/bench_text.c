#include "cli/bench_text.h"

#include "cli/bench.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "cli/token_bench.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/memory.h"

#include <stdio.h>

/* Tokens of a pass, all epochs of it together: starting a pipeline and filling its memory count for
 * little, as in a training. */
#define PASS_TOKENS ((int64_t)8 << 20)

/* Text and tokenizer alone are measured in turns, so that both see the same noise of a machine. */
#define ROUNDS 9

typedef struct text_bench {
    tdm_reading *reading;
    const atomic_bool *cancel;
    tdm_token_bench bare;
    int64_t tokens; /* of the text */
    int64_t batches;
    char *cache_path;
    int64_t epochs; /* of a pass */
    int64_t cache_bytes;
    tdm_passes bare_passes, text_passes, cached_passes; /* each of `epochs` */
    tdm_passes shares; /* of a round: bare seconds over text seconds */
} text_bench;

static tdm_status count_batch(void *context, const tdm_delivery *delivery, bool *stop)
{
    text_bench *run = context;
    (void)stop;
    run->batches += !delivery->epoch_end;
    return TDM_OK;
}

static tdm_status run_epochs(text_bench *run, int64_t epochs, const char *cache_path)
{
    const tdm_batch_run batches = {.epochs = epochs,
                                   .cache_path = cache_path,
                                   .cancel = run->cancel,
                                   .take = count_batch,
                                   .context = run};
    int64_t before = tdm_text_featurizer_counts(run->reading->featurizer).tokens;
    run->batches = 0;
    TDM_TRY(tdm_reading_batches(run->reading, &batches));
    run->tokens = (tdm_text_featurizer_counts(run->reading->featurizer).tokens - before) / epochs;
    run->batches /= epochs;
    return TDM_OK;
}

static tdm_status text_pass(void *context)
{
    text_bench *run = context;
    return run_epochs(run, run->epochs, NULL);
}

static tdm_status cached_pass(void *context)
{
    text_bench *run = context;
    return run_epochs(run, run->epochs, run->cache_path);
}

static tdm_status find_cache_bytes(text_bench *run)
{
    tdm_cache *cache;
    TDM_TRY(tdm_cache_open(run->cache_path, &run->reading->featurizer->columns, &cache));
    TDM_FAIL_IF(cache == NULL, TDM_E_IO, "the cache was not written");
    run->cache_bytes = tdm_cache_bytes(cache);
    tdm_cache_close(cache);
    return TDM_OK;
}

static tdm_status measure_cache(text_bench *run)
{
    char *folder;
    TDM_TRY(tdm_temporary_folder(&folder));
    tdm_status status;
    TDM_TRY_GOTO(tdm_path_join(folder, "bench.cache", &run->cache_path), done);
    TDM_TRY_GOTO(run_epochs(run, 1, run->cache_path), done);
    TDM_TRY_GOTO(find_cache_bytes(run), done);
    TDM_TRY_GOTO(tdm_passes_run(cached_pass, run, &run->cached_passes), done);
done:
    tdm_free(run->cache_path);
    tdm_temporary_folder_remove(folder);
    return status;
}

/* The tokenizer alone, on the same text and threads. */
static tdm_status open_bare(text_bench *run)
{
    tdm_reading *reading = run->reading;
    for (int32_t f = 0; f < tdm_input_file_count(reading->input); f++)
        TDM_TRY(tdm_token_bench_read(&run->bare, tdm_input_file_get(reading->input, f)->path,
                                     run->cancel));
    TDM_TRY(tdm_token_bench_cut(&run->bare));
    return tdm_token_bench_open(&run->bare, reading->tokenizer, 0, tdm_pool_threads(reading->pool));
}

static tdm_status bare_pass(text_bench *run)
{
    for (int64_t e = 0; e < run->epochs; e++)
        TDM_TRY(tdm_token_bench_pass(&run->bare));
    return TDM_OK;
}

static tdm_status measure_round(text_bench *run, double *bare, double *text)
{
    double start = tdm_clock_seconds();
    TDM_TRY(bare_pass(run));
    double between = tdm_clock_seconds();
    TDM_TRY(text_pass(run));
    *bare = between - start;
    *text = tdm_clock_seconds() - between;
    return TDM_OK;
}

static tdm_status measure_text(text_bench *run)
{
    double *bare = run->bare_passes.seconds, *text = run->text_passes.seconds;
    /* One that does not count, as in tdm_passes_run(). */
    TDM_TRY(measure_round(run, &bare[0], &text[0]));
    for (int i = 0; i < ROUNDS; i++) {
        TDM_TRY(measure_round(run, &bare[i], &text[i]));
        run->shares.seconds[i] = bare[i] / text[i];
    }
    run->bare_passes.count = run->text_passes.count = run->shares.count = ROUNDS;
    return TDM_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Seconds of an epoch. */
static double median_of(const text_bench *run, const tdm_passes *passes)
{
    return tdm_passes_median(passes) / (double)run->epochs;
}

static double best_of(const text_bench *run, const tdm_passes *passes)
{
    return tdm_passes_best(passes) / (double)run->epochs;
}

static tdm_status print_json(const text_bench *run)
{
    double tokens = (double)run->tokens, bytes = (double)run->bare.bytes;
    double text = median_of(run, &run->text_passes);
    json_t *json =
        json_pack("{s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "threads",
                  tdm_pool_threads(run->reading->pool), "text_bytes", (json_int_t)run->bare.bytes,
                  "tokens", (json_int_t)run->tokens, "batches", (json_int_t)run->batches,
                  "tokens_per_second", tokens / text, "bytes_per_second", bytes / text,
                  "best_bytes_per_second", bytes / best_of(run, &run->text_passes),
                  "tokenizer_bytes_per_second", bytes / median_of(run, &run->bare_passes),
                  "share_of_tokenizer", tdm_passes_median(&run->shares));
    if (run->cached_passes.count > 0) {
        json_object_set_new(json, "cache_bytes", json_integer(run->cache_bytes));
        json_object_set_new(json, "cache_tokens_per_second",
                            json_real(tokens / median_of(run, &run->cached_passes)));
        json_object_set_new(json, "best_cache_tokens_per_second",
                            json_real(tokens / best_of(run, &run->cached_passes)));
    }
    return tdm_console_json(json);
}

static void print_speed(const text_bench *run, const char *what, double bytes,
                        const tdm_passes *passes)
{
    double tokens = (double)run->tokens, seconds = median_of(run, passes);
    double best = best_of(run, passes);
    printf("%-18s%s tokens/s  %s/s   (best: %s tokens/s)\n", what, tdm_count_text(tokens / seconds),
           tdm_bytes_text(bytes / seconds), tdm_count_text(tokens / best));
}

static void print_text(const text_bench *run)
{
    double bytes = (double)run->bare.bytes;
    printf("%s of text, %lld tokens, %lld batches, %d thread(s), %d passes of %lld epochs\n",
           tdm_bytes_text(bytes), (long long)run->tokens, (long long)run->batches,
           tdm_pool_threads(run->reading->pool), run->text_passes.count, (long long)run->epochs);
    print_speed(run, "text to batches", bytes, &run->text_passes);
    print_speed(run, "tokenizer alone", bytes, &run->bare_passes);
    printf("text to batches is %.0f%% of the tokenizer alone, pass by pass\n",
           100 * tdm_passes_median(&run->shares));
    if (run->cached_passes.count > 0)
        print_speed(run, "cache to batches", (double)run->cache_bytes, &run->cached_passes);
}

static tdm_status measure(text_bench *run, bool cache)
{
    TDM_FAIL_IF(tdm_input_is_stdin(run->reading->input), TDM_E_ARG,
                "standard input cannot be read more than once: name a file");
    TDM_TRY(open_bare(run));
    TDM_TRY(run_epochs(run, 1, NULL));
    TDM_FAIL_IF(run->tokens == 0, TDM_E_DATA, "there is no document with a word in it");
    run->epochs = PASS_TOKENS / run->tokens + 1;
    TDM_TRY(measure_text(run));
    return cache ? measure_cache(run) : TDM_OK;
}

tdm_status tdm_bench_text(tdm_reading *reading, bool cache, bool json, const atomic_bool *cancel)
{
    text_bench run = {.reading = reading, .cancel = cancel};
    TDM_TRY(tdm_token_bench_init(&run.bare, reading->pool));
    tdm_status status = measure(&run, cache);
    if (status == TDM_OK && json)
        status = print_json(&run);
    else if (status == TDM_OK)
        print_text(&run);
    tdm_token_bench_deinit(&run.bare);
    return status;
}
