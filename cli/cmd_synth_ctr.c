/* tandem synth ctr: a click log with a known best answer. */
#include "cli/console.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "data/synth_ctr.h"

#include <stdio.h>

typedef struct synth_values {
    int64_t rows;
    int64_t seed;
    const char *output;
    int64_t threads;
    bool no_label;
    bool force;
    bool json;
} synth_values;

typedef struct synthesis {
    tdm_output *output;
    const atomic_bool *cancel;
    tdm_progress progress;
    int64_t rows; /* in all */
    int64_t bytes;
} synthesis;

static tdm_status write_bytes(void *context, const char *bytes, size_t size)
{
    synthesis *synth = context;
    TDM_FAIL_IF(atomic_load(synth->cancel), TDM_E_CANCELLED, "stopped; nothing was written");
    synth->bytes += (int64_t)size;
    return tdm_output_write(synth->output, bytes, size);
}

static void tell_progress(void *context, int64_t rows)
{
    synthesis *synth = context;
    tdm_progress_rows(&synth->progress, rows, (double)rows / (double)synth->rows);
}

static tdm_status print_result(const synth_values *values, const synthesis *synth,
                               const tdm_synth_result *result)
{
    bool to_stdout = tdm_output_is_stdout(synth->output);
    if (values->json && !to_stdout)
        return tdm_console_json(
            json_pack("{s:s, s:I, s:I, s:I, s:o, s:o}", "file", values->output, "rows",
                      (json_int_t)result->rows, "positives", (json_int_t)result->positives, "bytes",
                      (json_int_t)synth->bytes, "planted_auc", tdm_json_number(result->auc),
                      "planted_logloss", tdm_json_number(result->logloss)));
    char line[256];
    snprintf(line, sizeof line,
             "%lld rows, %lld positive\nplanted AUC      %.5f\nplanted logloss  %.5f",
             (long long)result->rows, (long long)result->positives, result->auc, result->logloss);
    if (to_stdout)
        tdm_console_print("%s", line);
    else
        puts(line);
    return TDM_OK;
}

static tdm_status make_log(const tdm_command *command, synthesis *synth)
{
    const synth_values *values = command->values;
    tdm_synth_ctr_options log = TDM_SYNTH_CTR_DEFAULTS;
    log.rows = values->rows;
    log.seed = (uint64_t)values->seed;
    log.labels = !values->no_label;
    tdm_pool *pool;
    TDM_TRY(tdm_pool_create((int)values->threads, &pool));
    tdm_synth_result result;
    tdm_status status = tdm_synth_ctr(pool, &log, write_bytes, tell_progress, synth, &result);
    tdm_pool_destroy(pool);
    tdm_progress_end(&synth->progress);
    TDM_TRY(status);
    TDM_TRY(tdm_output_commit(synth->output));
    return print_result(values, synth, &result);
}

static tdm_status run(const tdm_command *command)
{
    const synth_values *values = command->values;
    synthesis synth = {.cancel = command->cancel, .rows = values->rows};
    tdm_progress_init(&synth.progress, "writing", 10);
    TDM_TRY(tdm_output_open(values->output, values->force, &synth.output));
    tdm_status status = make_log(command, &synth);
    tdm_output_close(synth.output);
    return status;
}

static const tdm_option options[] = {
    {.name = "rows",
     .type = TDM_OPTION_INT,
     .offset = offsetof(synth_values, rows),
     .value = "N",
     .min = 1,
     .max = 1000000000000,
     .fallback = 1000000,
     .help = "lines to write (1000000)"},
    {.name = "seed",
     .type = TDM_OPTION_INT,
     .offset = offsetof(synth_values, seed),
     .value = "S",
     .max = INT64_MAX,
     .fallback = 1,
     .help = "of the planted model and the rows (1): the same bytes on any machine"},
    {.name = "no-label",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(synth_values, no_label),
     .help = "leave the label out, as in a file to predict"},
    {.name = "output",
     .letter = 'o',
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(synth_values, output),
     .value = "FILE",
     .help = "write to this file, which is whole or not there; else to standard output"},
    {.name = "force",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(synth_values, force),
     .help = "overwrite the file of -o"},
    {.name = "threads",
     .type = TDM_OPTION_INT,
     .offset = offsetof(synth_values, threads),
     .value = "N",
     .max = 1024,
     .help = "threads to use; 0: one a core"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(synth_values, json),
     .help = "with -o: print the result as one JSON object"},
    {0},
};

const tdm_verb tdm_verb_synth_ctr = {
    .name = "synth ctr",
    .arguments = "",
    .summary = "write a click log with a planted model, whose AUC is the best possible",
    .text =
        "Lines in Criteo's format (label, I1..I13, C1..C26), drawn from a model whose own AUC and\n"
        "logloss are printed: training can come near them and not beyond.\n"
        "\n"
        "  tandem synth ctr --rows 2000000 --seed 1 -o sample.tsv\n"
        "  tandem synth ctr --rows 1000 --no-label -o requests.tsv\n"
        "  tandem synth ctr --rows 50000000 | zstd > sample.tsv.zst",
    .options = options,
    .values_bytes = sizeof(synth_values),
    .run = run,
};
