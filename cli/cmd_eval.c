/* tandem eval: how good is a run's model on these records? */
#include "cli/console.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "trainer/evaluate.h"

typedef struct eval_values {
    const char *checkpoint;
    int64_t threads;
    bool json;
} eval_values;

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

static tdm_status evaluate(const tdm_command *command, tdm_run *run)
{
    const eval_values *values = command->values;
    const tdm_data_options *data = &run->recipe->data;
    tdm_bad_record_log *log;
    TDM_TRY(tdm_bad_record_log_create((tdm_bad_record_policy)data->on_bad_record,
                                      data->max_bad_records, NULL, &log));
    /* The paths are only read. */
    const tdm_strings files = {.items = (char **)(uintptr_t)(command->plain + 1),
                               .count = command->plain_count - 1};
    tdm_progress progress;
    tdm_progress_init(&progress, "evaluating", run->recipe->train.log_every_seconds);
    tdm_evaluate_options options = {.stop = command->cancel,
                                    .progress = tdm_progress_rows,
                                    .context = &progress,
                                    .bad_records = log};
    tdm_evaluation evaluation;
    tdm_status status = tdm_evaluate_run(run, &files, &options, &evaluation);
    tdm_progress_end(&progress);
    if (status == TDM_OK)
        status = values->json ? print_json(run, &evaluation) : print_text(run, &evaluation);
    tdm_bad_record_log_destroy(log);
    return status;
}

static tdm_status run(const tdm_command *command)
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
    .text = "RUN is the folder that a training wrote (output.dir). The files hold labels, in the\n"
            "format that the run was trained on.\n"
            "\n"
            "  tandem eval runs/deepfm_criteo day_3.tsv.gz\n"
            "  tandem eval runs/deepfm_criteo day_3.tsv.gz --json\n"
            "  tandem eval runs/deepfm_criteo 'day_*.tsv' --checkpoint 12000",
    .options = options,
    .values_bytes = sizeof(eval_values),
    .min_plain = 2,
    .max_plain = -1,
    .run = run,
};
