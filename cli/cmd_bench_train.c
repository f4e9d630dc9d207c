/* tandem bench train: from text to trained weights, how fast, and what would be the limit? */
#include "cli/op_profile.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/reading.h"
#include "cli/train_figures.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/memory.h"
#include "data/synth_ctr.h"

#include <math.h>

typedef struct bench_values {
    int64_t rows;
    bool profile;
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
    tdm_train_figures figures;
} bench;

/* ---- what is trained ------------------------------------------------------------------------- */

static tdm_status write_log(void *context, const char *bytes, size_t size)
{
    return tdm_output_write(context, bytes, size);
}

static tdm_status find_task(const bench *run, bool *is_ctr)
{
    const tdm_recipe_arguments arguments = tdm_command_recipe_arguments(run->command);
    tdm_recipe *recipe;
    TDM_TRY(tdm_recipe_load(run->command->plain[0], &arguments, &recipe));
    *is_ctr = recipe->task == TDM_TASK_CTR;
    tdm_recipe_free(recipe);
    return TDM_OK;
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

/* One epoch without evaluations, checkpoints and phases on the way, into the temporary folder. What
 * the user says comes later and wins, but for the folder. */
static tdm_status make_arguments(bench *run, bool is_ctr)
{
    static const char *const first[] = {"data.eval=~",
                                        "data.cache=off",
                                        "train.epochs=1",
                                        "checkpoint.every_steps=0",
                                        "checkpoint.every_minutes=0",
                                        "checkpoint.keep_best=none",
                                        "train.phases=[]"};
    int first_count = (int)(sizeof first / sizeof first[0]) - is_ctr; /* which has no phases */
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
    const bench_values *values = run->command->values;
    tdm_recipe *recipe;
    TDM_TRY(tdm_recipe_load(run->command->plain[0], &run->arguments, &recipe));
    tdm_progress progress;
    tdm_progress_init(&progress, "training", recipe->train.log_every_seconds);
    const tdm_train_control control = {.stop = run->command->cancel,
                                       .monitor = tdm_progress_train,
                                       .monitor_context = &progress,
                                       .watch = values->profile ? tdm_op_profile_watch : NULL};
    tdm_status status = tdm_train(recipe, &control, &run->figures.result);
    tdm_progress_end(&progress);
    tdm_recipe_free(recipe);
    return status;
}

static tdm_status measure_bytes(bench *run, const tdm_session *session)
{
    tdm_block_stream *stream;
    TDM_TRY(tdm_block_stream_open(session->extractor, session->pool, &stream));
    tdm_extract *block;
    tdm_status status = tdm_block_stream_next(stream, &block);
    if (status == TDM_OK && block != NULL && block->records > 0)
        run->figures.bytes_per_row = (double)block->stored_bytes / (double)block->records;
    tdm_block_stream_close(stream);
    return status;
}

/* What the session's steps are made of. */
static tdm_status measure_input(bench *run, const tdm_session *session)
{
    tdm_train_figures *figures = &run->figures;
    const tdm_recipe *recipe = session->recipe;
    TDM_FAIL_IF(tdm_input_is_stdin(session->input), TDM_E_ARG,
                "standard input cannot be read more than once: name a file");
    figures->is_text = session->task.encoder != NULL;
    figures->precision = recipe->train.precision == TDM_PRECISION_BF16 ? "bf16" : "fp32";
    figures->threads = tdm_pool_threads(session->pool);
    figures->batch_size = recipe->train.batch_size;
    if (!figures->is_text)
        return measure_bytes(run, session);
    TDM_TRY(tdm_step_work_count(session, run->command->cancel, &figures->work));
    TDM_FAIL_IF(figures->work.parts == 0, TDM_E_DATA, "there is no text to train on");
    return TDM_OK;
}

typedef struct part_rows {
    const tdm_batch_layout *layout;
    const tdm_step_work *work;
} part_rows;

/* A part's, in the mean. */
static int64_t rows_of_part(void *context, int count)
{
    const part_rows *part = context;
    const tdm_step_work *work = part->work;
    int64_t all = work->rows;
    if (count == tdm_batch_layout_find(part->layout, "token_count"))
        all = work->tokens;
    else if (count == tdm_batch_layout_find(part->layout, "mask_count"))
        all = work->predictions;
    double mean = (double)all / (double)work->parts;
    return mean < 1 ? 1 : llround(mean);
}

static tdm_status time_products(bench *run, tdm_session *session)
{
    tdm_train_figures *figures = &run->figures;
    bool is_bf16 = session->recipe->train.precision == TDM_PRECISION_BF16;
    part_rows part = {&session->task.model_batch, &figures->work};
    const tdm_product_options options = {.backend = session->backend,
                                         .threads = figures->threads,
                                         .compute = is_bf16 ? TDM_BF16 : TDM_F32,
                                         .rows_of = figures->is_text ? rows_of_part : NULL,
                                         .context = &part};
    return tdm_time_products(session->model, &options, &figures->products, &figures->product_count);
}

/* Before the training and after it, so that a noisy moment counts less. */
static tdm_status measure_limit(bench *run)
{
    tdm_recipe *recipe;
    tdm_session session;
    TDM_TRY(tdm_recipe_load(run->command->plain[0], &run->arguments, &recipe));
    tdm_status status = tdm_session_init(&session, recipe, run->command->cancel);
    if (status == TDM_OK) {
        if (run->figures.products == NULL)
            status = measure_input(run, &session);
        if (status == TDM_OK)
            status = time_products(run, &session);
        tdm_session_deinit(&session);
    }
    tdm_recipe_free(recipe);
    return status;
}

static tdm_status run_in_folder(bench *run)
{
    const bench_values *values = run->command->values;
    bool is_ctr;
    TDM_TRY(find_task(run, &is_ctr));
    if (is_ctr && run->command->plain_count == 1)
        TDM_TRY(make_log(run, values->rows));
    TDM_TRY(make_arguments(run, is_ctr));
    TDM_TRY(measure_limit(run));
    TDM_TRY(train(run));
    TDM_TRY(measure_limit(run));
    run->figures.profiled = values->profile;
    if (values->json)
        return tdm_train_figures_json(&run->figures);
    tdm_train_figures_print(&run->figures);
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
    tdm_free(state.figures.products);
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
     .help = "of the log that is made where a recipe of ctr names no file (500000)"},
    {.name = "profile",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(bench_values, profile),
     .help = "tell how long each kind of op took"},
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
        "threads. Their sum is the limit; of click logs the faster way counts for each product,\n"
        "of text oneDNN's, at the sizes that the batches have in the mean. Text comes from FILE.\n"
        "\n"
        "  tandem bench train recipes/ctr/deepfm_criteo.yaml\n"
        "  tandem bench train recipes/bert/bert_mini.yaml corpus.txt text.tokenizer=vocab.txt "
        "--profile\n"
        "  tandem bench train recipes/ctr/dcn_v2_criteo.yaml day_0.tsv --json train.max_steps=200",
    .options = options,
    .values_bytes = sizeof(bench_values),
    .min_plain = 1,
    .max_plain = -1,
    .takes_overrides = true,
    .run = run,
};
