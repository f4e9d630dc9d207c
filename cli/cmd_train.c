/* tandem train: from a recipe and data to a run folder. */
#include "cli/console.h"
#include "cli/progress.h"
#include "cli/reading.h"
#include "cli/verbs.h"

typedef struct train_values {
    tdm_strings eval;
    bool resume;
    bool dry_run;
    bool json;
} train_values;

static tdm_status load_recipe(const tdm_command *command, tdm_recipe **recipe)
{
    const train_values *values = command->values;
    tdm_recipe_arguments arguments = tdm_command_recipe_arguments(command);
    arguments.eval = (const char *const *)values->eval.items;
    arguments.eval_count = (int)values->eval.count;
    TDM_TRY(tdm_recipe_load(command->plain[0], &arguments, recipe));
    tdm_status status = tdm_recipe_check_training(*recipe);
    if (status != TDM_OK) {
        tdm_recipe_free(*recipe);
        *recipe = NULL;
    }
    return status;
}

/* ---- the dry run ----------------------------------------------------------------------------- */

static json_t *plan_json(const tdm_train_plan *plan)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:i, s:s}",
        "parameters", (json_int_t)plan->parameters, "dense_bytes", (json_int_t)plan->dense_bytes,
        "gradient_bytes", (json_int_t)plan->gradient_bytes, "sparse_bytes",
        (json_int_t)plan->sparse_bytes, "moment_bytes", (json_int_t)plan->moment_bytes,
        "arena_bytes", (json_int_t)plan->arena_bytes, "batch_bytes", (json_int_t)plan->batch_bytes,
        "pipeline_bytes", (json_int_t)plan->pipeline_bytes, "eval_bytes",
        (json_int_t)plan->eval_bytes, "metrics_bytes", (json_int_t)plan->metrics_bytes,
        "checkpoint_bytes", (json_int_t)plan->checkpoint_bytes, "other_bytes",
        (json_int_t)plan->other_bytes, "peak_bytes", (json_int_t)plan->peak_bytes,
        "checkpoint_disk_bytes", (json_int_t)plan->checkpoint_disk_bytes, "rows",
        (json_int_t)plan->rows, "tokens", (json_int_t)plan->tokens, "steps",
        (json_int_t)plan->steps, "eval_rows", (json_int_t)plan->eval_rows, "threads", plan->threads,
        "device", plan->device);
}

static tdm_status dry_run(const tdm_command *command, tdm_recipe *recipe, bool json)
{
    tdm_train_plan plan;
    TDM_TRY(tdm_train_plan_make(recipe, command->cancel, &plan));
    if (json)
        return tdm_console_json(plan_json(&plan));
    tdm_text text = {0};
    return tdm_console_text(tdm_train_plan_text(&plan, &text), &text);
}

/* ---- training -------------------------------------------------------------------------------- */

static tdm_status result_json(const tdm_recipe *recipe, const tdm_train_result *result)
{
    json_t *train = NULL, *eval = NULL;
    TDM_TRY(tdm_metrics_result_json(&result->train, &train));
    if (result->has_eval) {
        tdm_status status = tdm_metrics_result_json(&result->eval, &eval);
        if (status != TDM_OK) {
            json_decref(train);
            return status;
        }
    }
    json_t *json = json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "run",
        recipe->output.dir, "step", (json_int_t)result->step, "epochs", (json_int_t)result->epoch,
        "rows", (json_int_t)result->rows, "seconds", tdm_json_number(result->seconds),
        "rows_per_second", tdm_json_number(result->rows_per_second), "train", train, "eval",
        eval != NULL ? eval : json_null(), "best_step",
        result->best_step >= 0 ? json_integer(result->best_step) : json_null(), "best_score",
        result->best_step >= 0 ? tdm_json_number(result->best_score) : json_null(), "records",
        (json_int_t)result->records, "bad_records", (json_int_t)result->bad_records,
        "encoding_errors", (json_int_t)result->encoding_errors, "resumed_step",
        result->resumed_step >= 0 ? json_integer(result->resumed_step) : json_null());
    (void)tdm_metrics_result_set_speed(&result->train, result->rows_per_second, json);
    const tdm_train_pace *pace = &result->pace;
    json_t *speed = json_pack(
        "{s:o, s:o, s:o, s:o}", "flops", tdm_json_number(result->flops), "wait_for_batches",
        tdm_json_number(tdm_ratio(pace->wait_seconds, pace->seconds)), "wait_for_step",
        tdm_json_number(tdm_ratio((double)pace->full_steps, (double)pace->steps)), "cut_share",
        tdm_json_number(result->cut_share));
    (void)json_object_update_new(json, speed);
    return tdm_console_json(json);
}

static tdm_status append_metrics(tdm_text *text, const char *title,
                                 const tdm_metrics_result *metrics)
{
    TDM_TRY(tdm_text_printf(text, "%s\n", title));
    return tdm_metrics_result_text(metrics, text);
}

static tdm_status append_pace(tdm_text *text, const tdm_train_result *result)
{
    const tdm_train_pace *pace = &result->pace;
    if (pace->steps > 0 && pace->seconds > 0)
        TDM_TRY(tdm_text_printf(text,
                                "the model waited %.1f%% of the time for batches; %.0f%% of the "
                                "steps found all batches ready\n",
                                100 * pace->wait_seconds / pace->seconds,
                                100.0 * (double)pace->full_steps / (double)pace->steps));
    if (isfinite(result->flops))
        TDM_TRY(tdm_text_printf(text, "%.1f GFLOP/s of matrix products\n", result->flops / 1e9));
    if (result->cut_share > 0)
        TDM_TRY(tdm_text_printf(text, "%.1f%% of the tokens had no room in their sequence\n",
                                100 * result->cut_share));
    return TDM_OK;
}

static tdm_status append_result(tdm_text *text, const tdm_recipe *recipe,
                                const tdm_train_result *result)
{
    const char *work;
    double per_row = tdm_metrics_result_work(&result->train, &work);
    TDM_TRY(tdm_text_printf(text, "%s: %s rows in %lld steps, %s", recipe->output.dir,
                            tdm_count_text((double)result->rows), (long long)result->step,
                            tdm_duration_text(result->seconds)));
    /* A run that had ended before has no speed. */
    if (result->rows_per_second > 0)
        TDM_TRY(tdm_text_printf(text, ", %s %s/s",
                                tdm_count_text(result->rows_per_second * per_row), work));
    TDM_TRY(tdm_text_printf(text, "\n"));
    TDM_TRY(append_pace(text, result));
    if (result->bad_records > 0)
        TDM_TRY(tdm_text_printf(text, "%lld of %lld records were bad\n",
                                (long long)result->bad_records, (long long)result->records));
    if (result->encoding_errors > 0)
        TDM_TRY(tdm_text_printf(text, "%lld records held bytes that are not UTF-8\n",
                                (long long)result->encoding_errors));
    TDM_TRY(
        append_metrics(text, "progressive (each row before it is trained on):", &result->train));
    if (result->has_eval)
        TDM_TRY(append_metrics(text, "eval:", &result->eval));
    if (result->best_step >= 0)
        TDM_TRY(
            tdm_text_printf(text, "best checkpoint: step %lld\n", (long long)result->best_step));
    return TDM_OK;
}

static tdm_status print_result(const tdm_recipe *recipe, const tdm_train_result *result, bool json)
{
    if (json)
        return result_json(recipe, result);
    tdm_text text = {0};
    return tdm_console_text(append_result(&text, recipe, result), &text);
}

static tdm_status train(const tdm_command *command, tdm_recipe *recipe)
{
    const train_values *values = command->values;
    tdm_progress progress;
    tdm_progress_init(&progress, "training", recipe->train.log_every_seconds);
    tdm_train_control control = {.resume = values->resume,
                                 .stop = command->cancel,
                                 .monitor = tdm_progress_train,
                                 .monitor_context = &progress};
    tdm_train_result result = {0};
    tdm_console_print("%s: %s into %s (Ctrl-C saves and stops)", recipe->path,
                      recipe->model_type->name, recipe->output.dir);
    tdm_status status = tdm_train(recipe, &control, &result);
    tdm_progress_end(&progress);
    TDM_TRY(status);
    return print_result(recipe, &result, values->json);
}

static tdm_status run(const tdm_command *command)
{
    const train_values *values = command->values;
    tdm_recipe *recipe;
    TDM_TRY(load_recipe(command, &recipe));
    tdm_status status =
        values->dry_run ? dry_run(command, recipe, values->json) : train(command, recipe);
    tdm_recipe_free(recipe);
    return status;
}

static const tdm_option options[] = {
    {.name = "eval",
     .type = TDM_OPTION_TEXTS,
     .offset = offsetof(train_values, eval),
     .value = "FILE",
     .help = "evaluate on this file, in place of data.eval; may be repeated"},
    {.name = "resume",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(train_values, resume),
     .help = "go on from the newest good checkpoint; start where there is none"},
    {.name = "dry-run",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(train_values, dry_run),
     .help = "print what the training would hold in memory, and stop"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(train_values, json),
     .help = "print the result as one JSON object"},
    {0},
};

const tdm_verb tdm_verb_train = {
    .name = "train",
    .arguments = "RECIPE [FILE...] [key=value]...",
    .summary = "train a model from a recipe, or go on with --resume",
    .text =
        "Files on the command line replace data.train; key=value replaces a key of the recipe.\n"
        "The model, its checkpoints and metrics.jsonl go to output.dir. SIGINT and SIGTERM finish\n"
        "the step, save, and exit with 130 or 143.\n"
        "\n"
        "  tandem train recipes/ctr/deepfm_criteo.yaml day_0.tsv.gz day_1.tsv.zst --eval "
        "day_2.tsv.gz\n"
        "  tandem train recipes/ctr/deepfm_criteo.yaml day_0.tsv.gz --resume\n"
        "  tandem train recipes/ctr/deepfm_criteo.yaml 'logs/*.tsv' train.epochs=2 "
        "output.dir=runs/b\n"
        "  tandem train recipes/ctr/deepfm_criteo.yaml log.tsv --dry-run\n"
        "  zcat log.gz | tandem train recipes/ctr/deepfm_criteo.yaml - train.max_steps=1000\n"
        "\n"
        "Text: encoders are pretrained on documents (task: mlm), or trained on texts with labels\n"
        "(task: classify); model.init_from begins with the weights of a run, or of a BERT in a\n"
        "folder of Hugging Face or google-research/bert.\n"
        "\n"
        "  tandem train recipes/bert/bert_mini.yaml 'corpus/*.txt.gz' text.tokenizer=vocab.txt\n"
        "  tandem train recipes/bert/continue.yaml corpus.txt model.init_from=bert-base-uncased/\n"
        "  tandem train recipes/bert/classify.yaml reviews.tsv model.init_from=runs/bert_mini\n"
        "\n"
        "A file whose name looks like key=value is written ./key=value.",
    .options = options,
    .values_bytes = sizeof(train_values),
    .min_plain = 1,
    .max_plain = -1,
    .takes_overrides = true,
    .run = run,
};
