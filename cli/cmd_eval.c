/* tandem eval: how good is a run's model on these records? */
#include "cli/console.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "trainer/evaluate.h"
#include "trainer/pseudo_perplexity.h"

#include <math.h>

typedef struct eval_values {
    const char *checkpoint;
    int64_t threads;
    bool pseudo;
    bool json;
} eval_values;

/* ---- metrics --------------------------------------------------------------------------------- */

static tdm_status print_json(const tdm_run *run, const tdm_evaluation *evaluation)
{
    json_t *json;
    TDM_TRY(tdm_metrics_result_json(&evaluation->metrics, &json));
    json_object_set_new(json, "run", json_string(run->folder));
    json_object_set_new(json, "step", json_integer(run->step));
    json_object_set_new(json, "records", json_integer(evaluation->records));
    json_object_set_new(json, "bad_records", json_integer(evaluation->bad_records));
    json_object_set_new(json, "seconds", tdm_json_number(evaluation->seconds));
    return tdm_console_json(json);
}

static tdm_status append_result(tdm_text *text, const tdm_run *run,
                                const tdm_evaluation *evaluation)
{
    TDM_TRY(tdm_text_printf(text, "%s, step %lld\n", run->folder, (long long)run->step));
    TDM_TRY(tdm_metrics_result_text(&evaluation->metrics, text));
    if (evaluation->bad_records > 0)
        TDM_TRY(tdm_text_printf(text, "%lld of %lld records were bad\n",
                                (long long)evaluation->bad_records,
                                (long long)evaluation->records));
    return TDM_OK;
}

static tdm_status print_text(const tdm_run *run, const tdm_evaluation *evaluation)
{
    tdm_text text = {0};
    return tdm_console_text(append_result(&text, run, evaluation), &text);
}

/* How files are read, and what is done on the way. */
typedef struct reading {
    tdm_strings files;
    tdm_progress progress;
    tdm_bad_record_log *log;
    tdm_evaluate_options options;
} reading;

static tdm_status begin_reading(const tdm_command *command, const tdm_recipe *recipe, reading *read)
{
    const tdm_data_options *data = &recipe->data;
    TDM_TRY(tdm_bad_record_log_create((tdm_bad_record_policy)data->on_bad_record,
                                      data->max_bad_records, NULL, &read->log));
    read->files = tdm_command_files(command, 1);
    tdm_progress_init(&read->progress, "evaluating", recipe->train.log_every_seconds);
    read->options = (tdm_evaluate_options){.stop = command->cancel,
                                           .progress = tdm_progress_rows,
                                           .context = &read->progress,
                                           .bad_records = read->log};
    return TDM_OK;
}

static void end_reading(reading *read)
{
    tdm_progress_end(&read->progress);
    tdm_bad_record_log_destroy(read->log);
}

static tdm_status evaluate(const tdm_command *command, tdm_run *run)
{
    const eval_values *values = command->values;
    reading read;
    tdm_evaluation evaluation;
    TDM_TRY(begin_reading(command, run->recipe, &read));
    tdm_status status = tdm_evaluate_run(run, &read.files, &read.options, &evaluation);
    end_reading(&read);
    TDM_TRY(status);
    return values->json ? print_json(run, &evaluation) : print_text(run, &evaluation);
}

static tdm_status evaluate_run(const tdm_command *command)
{
    const eval_values *values = command->values;
    tdm_run_options run_options = {.checkpoint = values->checkpoint,
                                   .threads = (int)values->threads,
                                   .use = TDM_USE_EVALUATION};
    tdm_run *loaded;
    TDM_TRY(tdm_run_open(command->plain[0], &run_options, &loaded));
    tdm_status status = evaluate(command, loaded);
    tdm_run_close(loaded);
    return status;
}

/* ---- pseudo-perplexity ----------------------------------------------------------------------- */

#define COPY_TOKENS 4096 /* that go through the model at a time */

static tdm_status print_pseudo_json(const char *run, int64_t step, const tdm_pseudo_perplexity *all)
{
    return tdm_console_json(
        json_pack("{s:s, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:f}", "run", run, "step",
                  (json_int_t)step, "pseudo_perplexity", tdm_json_number(all->perplexity),
                  "pseudo_loss", tdm_json_number(all->loss), "pseudo_accuracy",
                  tdm_json_number(all->accuracy), "tokens", (json_int_t)all->tokens, "sequences",
                  (json_int_t)all->sequences, "records", (json_int_t)all->records, "bad_records",
                  (json_int_t)all->bad_records, "seconds", all->seconds));
}

static tdm_status append_number(tdm_text *text, const char *name, double value)
{
    if (isnan(value))
        return tdm_text_printf(text, "  %-28s n/a\n", name);
    return tdm_text_printf(text, "  %-28s %.6f\n", name, value);
}

static tdm_status append_pseudo(const char *run, int64_t step, const tdm_pseudo_perplexity *all,
                                tdm_text *text)
{
    TDM_TRY(tdm_text_printf(text, "%s, step %lld\n", run, (long long)step));
    TDM_TRY(tdm_text_printf(text, "  %-28s %lld\n", "sequences", (long long)all->sequences));
    TDM_TRY(tdm_text_printf(text, "  %-28s %lld\n", "tokens", (long long)all->tokens));
    TDM_TRY(append_number(text, "pseudo-loss", all->loss));
    TDM_TRY(append_number(text, "pseudo-accuracy", all->accuracy));
    TDM_TRY(append_number(text, "pseudo-perplexity", all->perplexity));
    if (all->bad_records > 0)
        TDM_TRY(tdm_text_printf(text, "%lld of %lld records were bad\n",
                                (long long)all->bad_records, (long long)all->records));
    return TDM_OK;
}

static tdm_status measure(const tdm_command *command, tdm_encoder_run *run)
{
    const eval_values *values = command->values;
    const char *name = command->plain[0];
    reading read;
    tdm_pseudo_perplexity all;
    TDM_FAIL_IF(run->source.recipe == NULL, TDM_E_CONFIG,
                "%s: is no run, whose recipe says how files are read", name);
    TDM_TRY(begin_reading(command, run->source.recipe, &read));
    tdm_status status = tdm_measure_pseudo_perplexity(run, &read.files, &read.options, &all);
    end_reading(&read);
    TDM_TRY(status);
    if (values->json)
        return print_pseudo_json(name, run->source.step, &all);
    tdm_text text = {0};
    return tdm_console_text(append_pseudo(name, run->source.step, &all, &text), &text);
}

static tdm_status measure_run(const tdm_command *command)
{
    const eval_values *values = command->values;
    const tdm_encoder_run_options options = {.checkpoint = values->checkpoint,
                                             .threads = (int)values->threads,
                                             .head = TDM_HEAD_MASKED,
                                             .batch_tokens = COPY_TOKENS,
                                             .predictions = COPY_TOKENS / 3, /* [CLS] x [SEP] */
                                             .precision = TDM_PRECISION_FP32};
    tdm_encoder_run *loaded;
    TDM_TRY(tdm_encoder_run_open(command->plain[0], &options, &loaded));
    tdm_status status = measure(command, loaded);
    tdm_encoder_run_close(loaded);
    return status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static tdm_status run(const tdm_command *command)
{
    const eval_values *values = command->values;
    return values->pseudo ? measure_run(command) : evaluate_run(command);
}

static const tdm_option options[] = {
    {.name = "checkpoint",
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(eval_values, checkpoint),
     .value = "WHICH",
     .help = "best, last, or a step; the best if there is one, else the last"},
    {.name = "threads",
     .type = TDM_OPTION_INT,
     .offset = offsetof(eval_values, threads),
     .value = "N",
     .max = 1024,
     .help = "threads to use; 0: one a core"},
    {.name = "pseudo-perplexity",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(eval_values, pseudo),
     .help = "of masked text: e to the mean loss of tokens that are masked one by one"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(eval_values, json),
     .help = "print the result as one JSON object"},
    {0},
};

const tdm_verb tdm_verb_eval = {
    .name = "eval",
    .arguments = "RUN FILE...",
    .summary =
        "how good a run's model is: AUC and logloss, loss and accuracy, as its task has them",
    .text =
        "RUN is the folder that a training wrote (output.dir). The files hold labels, in the\n"
        "format that the run was trained on.\n"
        "\n"
        "  tandem eval runs/deepfm_criteo day_3.tsv.gz\n"
        "  tandem eval runs/deepfm_criteo day_3.tsv.gz --json\n"
        "  tandem eval runs/deepfm_criteo 'day_*.tsv' --checkpoint 12000\n"
        "\n"
        "A run of masked text (task: mlm) masks what it reads, the same tokens every time. With\n"
        "--pseudo-perplexity each token of each sequence is masked alone, as Salazar et al. "
        "(2020)\n"
        "do; a sequence is run as often as it has tokens.\n"
        "\n"
        "  tandem eval runs/bert_mini held_out.txt\n"
        "  tandem eval runs/bert_mini some_lines.txt --pseudo-perplexity",
    .options = options,
    .values_bytes = sizeof(eval_values),
    .min_plain = 2,
    .max_plain = -1,
    .run = run,
};
