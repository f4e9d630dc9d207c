/* tandem bench train: from text to trained weights, how fast, and what would be the limit? */
#include "cli/bench.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/reading.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/memory.h"
#include "data/synth_ctr.h"
#include "trainer/run_model.h"
#include "trainer/trainer.h"

#include <stdio.h>

typedef struct bench_values {
    int64_t rows;
    bool json;
} bench_values;

typedef struct bench {
    const tdm_command *command;
    char *folder; /* temporary */
    char *log;    /* made for the benchmark; NULL where files are named */
    char *output; /* "output.dir=…" */
    const char **overrides;
    tdm_recipe_arguments arguments;
    const char *train; /* the made log */
    tdm_train_result result;
    double bytes_per_row;
    int64_t batch_size;
    tdm_product_speed *products;
    int product_count;
} bench;

/* ---- what is trained ------------------------------------------------------------------------- */

static tdm_status write_log(void *context, const char *bytes, size_t size)
{
    return tdm_output_write(context, bytes, size);
}

static tdm_status make_log(bench *run, int64_t rows)
{
    TDM_TRY(tdm_path_join(run->folder, "log.tsv", &run->log));
    tdm_synth_ctr_options options = TDM_SYNTH_CTR_DEFAULTS;
    options.rows = rows;
    tdm_pool *pool = NULL;
    tdm_output *output = NULL;
    tdm_synth_result result;
    tdm_status status;
    TDM_TRY_GOTO(tdm_pool_create(0, &pool), done);
    TDM_TRY_GOTO(tdm_output_open(run->log, false, &output), done);
    TDM_TRY_GOTO(tdm_synth_ctr(pool, &options, write_log, NULL, output, &result), done);
    status = tdm_output_commit(output);
done:
    tdm_output_close(output);
    tdm_pool_destroy(pool);
    return status;
}

/* One epoch without evaluations and checkpoints on the way, into the temporary folder. What the
 * user says comes later and wins, but for the folder. */
static tdm_status make_arguments(bench *run)
{
    static const char *const first[] = {"data.eval=~",
                                        "data.cache=off",
                                        "train.epochs=1",
                                        "checkpoint.every_steps=0",
                                        "checkpoint.every_minutes=0",
                                        "checkpoint.keep_best=none"};
    int first_count = (int)(sizeof first / sizeof first[0]);
    int count = first_count + run->command->override_count + 1;
    TDM_TRY(tdm_format(&run->output, "output.dir=%s/run", run->folder));
    TDM_TRY(tdm_alloc((size_t)count, sizeof *run->overrides, &run->overrides));
    for (int i = 0; i < first_count; i++)
        run->overrides[i] = first[i];
    for (int i = 0; i < run->command->override_count; i++)
        run->overrides[first_count + i] = run->command->overrides[i];
    run->overrides[count - 1] = run->output;
    run->arguments = tdm_command_recipe_arguments(run->command);
    run->arguments.overrides = run->overrides;
    run->arguments.override_count = count;
    if (run->log != NULL) {
        run->train = run->log;
        run->arguments.train = &run->train;
        run->arguments.train_count = 1;
    }
    return TDM_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static tdm_status train(bench *run)
{
    tdm_recipe *recipe;
    TDM_TRY(tdm_recipe_load(run->command->plain[0], &run->arguments, &recipe));
    tdm_progress progress;
    tdm_progress_init(&progress, "training", recipe->train.log_every_seconds);
    const tdm_train_control control = {
        .stop = run->command->cancel, .monitor = tdm_progress_train, .monitor_context = &progress};
    tdm_status status = tdm_train(recipe, &control, &run->result);
    tdm_progress_end(&progress);
    tdm_recipe_free(recipe);
    return status;
}

static tdm_status time_model(bench *run, const tdm_reading *reading, tdm_backend *backend)
{
    tdm_model *model;
    tdm_task task;
    TDM_TRY(tdm_task_open(reading->recipe, reading->input, reading->pool, TDM_USE_TRAINING, &task));
    tdm_status status = tdm_task_model(&task, reading->recipe, backend, &model);
    if (status == TDM_OK) {
        status = tdm_time_products(model, backend, tdm_pool_threads(reading->pool), &run->products,
                                   &run->product_count);
        tdm_model_destroy(model);
    }
    tdm_task_close(&task);
    return status;
}

static tdm_status measure_bytes(bench *run, const tdm_reading *reading)
{
    tdm_block_stream *stream;
    TDM_TRY(tdm_block_stream_open(reading->extractor, reading->pool, &stream));
    tdm_extract *block;
    tdm_status status = tdm_block_stream_next(stream, &block);
    if (status == TDM_OK && block != NULL && block->records > 0)
        run->bytes_per_row = (double)block->stored_bytes / (double)block->records;
    tdm_block_stream_close(stream);
    return status;
}

/* Before the training and after it, so that a noisy moment counts less. */
static tdm_status measure_limit(bench *run)
{
    tdm_reading reading;
    TDM_TRY(tdm_reading_open(run->command->plain[0], &run->arguments, -1, TDM_CTR_TRAINING,
                             run->command->cancel, &reading));
    run->batch_size = reading.recipe->train.batch_size;
    tdm_backend *backend = NULL;
    tdm_status status = tdm_recipe_check_training(reading.recipe);
    if (status == TDM_OK && tdm_input_is_stdin(reading.input))
        status = tdm_fail(TDM_E_ARG, "standard input cannot be read more than once: name a file");
    if (status == TDM_OK && run->bytes_per_row == 0)
        status = measure_bytes(run, &reading);
    if (status == TDM_OK)
        status = tdm_cpu_create(reading.pool, &backend);
    if (status == TDM_OK)
        status = time_model(run, &reading, backend);
    tdm_backend_destroy(backend);
    tdm_reading_close(&reading);
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

static double limit_of(const bench *run)
{
    return (double)run->batch_size / tdm_products_seconds(run->products, run->product_count);
}

static double flops(const tdm_product *product)
{
    return 2 * (double)product->m * (double)product->n * (double)product->k;
}

static tdm_status print_json(const bench *run)
{
    const tdm_train_result *result = &run->result;
    json_t *products = json_array();
    for (int i = 0; i < run->product_count; i++) {
        const tdm_product_speed *speed = &run->products[i];
        double work = flops(&speed->product);
        json_array_append_new(
            products,
            json_pack("{s:I, s:I, s:I, s:b, s:b, s:o, s:o}", "m", (json_int_t)speed->product.m, "n",
                      (json_int_t)speed->product.n, "k", (json_int_t)speed->product.k, "trans_a",
                      speed->product.trans_a, "trans_b", speed->product.trans_b, "gflops",
                      tdm_json_number(work / speed->ours / 1e9), "onednn_gflops",
                      tdm_json_number(work / speed->onednn / 1e9)));
    }
    bool has_limit = run->product_count > 0;
    return tdm_console_json(json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "rows", (json_int_t)result->rows, "steps",
        (json_int_t)result->step, "rows_per_second", tdm_json_number(result->rows_per_second),
        "bytes_per_second", tdm_json_number(result->rows_per_second * run->bytes_per_row),
        "matmul_limit_rows_per_second", has_limit ? tdm_json_number(limit_of(run)) : json_null(),
        "share_of_limit",
        has_limit ? tdm_json_number(result->rows_per_second / limit_of(run)) : json_null(),
        "logloss", tdm_json_number(tdm_metrics_result_get(&result->train, "logloss")), "products",
        products));
}

static void print_text(const bench *run)
{
    const tdm_train_result *result = &run->result;
    printf("%lld rows in %lld steps\n", (long long)result->rows, (long long)result->step);
    printf("text to trained weights  %s rows/s  %s/s\n", tdm_count_text(result->rows_per_second),
           tdm_bytes_text(result->rows_per_second * run->bytes_per_row));
    if (run->product_count == 0)
        return;
    printf("matrix products alone    %s rows/s: training is at %.0f%% of that\n\n",
           tdm_count_text(limit_of(run)), 100 * result->rows_per_second / limit_of(run));
    printf("%8s %8s %8s %12s %12s\n", "m", "n", "k", "ours GF/s", "oneDNN GF/s");
    for (int i = 0; i < run->product_count; i++) {
        const tdm_product_speed *speed = &run->products[i];
        double work = flops(&speed->product);
        printf("%8lld %8lld %8lld %12.1f %12.1f\n", (long long)speed->product.m,
               (long long)speed->product.n, (long long)speed->product.k, work / speed->ours / 1e9,
               work / speed->onednn / 1e9);
    }
}

static tdm_status run_in_folder(bench *run)
{
    const bench_values *values = run->command->values;
    if (run->command->plain_count == 1)
        TDM_TRY(make_log(run, values->rows));
    TDM_TRY(make_arguments(run));
    TDM_TRY(measure_limit(run));
    TDM_TRY(train(run));
    TDM_TRY(measure_limit(run));
    if (values->json)
        return print_json(run);
    print_text(run);
    return TDM_OK;
}

static tdm_status run(const tdm_command *command)
{
    bench state = {.command = command};
    TDM_TRY(tdm_temporary_folder(&state.folder));
    tdm_status status = run_in_folder(&state);
    tdm_temporary_folder_remove(state.folder);
    tdm_free(state.log);
    tdm_free(state.output);
    tdm_free(state.overrides);
    tdm_free(state.products);
    return status;
}

static const tdm_option options[] = {
    {.name = "rows",
     .type = TDM_OPTION_INT,
     .offset = offsetof(bench_values, rows),
     .value = "N",
     .min = 1000,
     .max = 1000000000,
     .fallback = 500000,
     .help = "of the log that is made where no file is named (500000)"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(bench_values, json),
     .help = "print one JSON object"},
    {0},
};

const tdm_verb tdm_verb_bench_train = {
    .name = "bench train",
    .arguments = "RECIPE [FILE...] [key=value]...",
    .summary = "how fast text becomes trained weights, and what would be the limit",
    .text =
        "Trains one epoch into a temporary folder, without evaluations. Before and after, times\n"
        "the matrix products of a step, each alone, by our tiles and by oneDNN with its own\n"
        "threads; the fastest counts. Their sum is the limit.\n"
        "\n"
        "  tandem bench train recipes/ctr/deepfm_criteo.yaml\n"
        "  tandem bench train recipes/ctr/dcn_v2_criteo.yaml day_0.tsv --json train.max_steps=200",
    .options = options,
    .values_bytes = sizeof(bench_values),
    .min_plain = 1,
    .max_plain = -1,
    .takes_overrides = true,
    .run = run,
};
