/* tandem inspect: what is in a run folder? */
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "trainer/checkpoint.h"
#include "trainer/run_folder.h"
#include "trainer/run_model.h"

#include <stdio.h>
#include <string.h>

#define STATE_LIMIT ((size_t)256 << 20)

typedef struct inspect_values {
    const char *checkpoint;
    bool json;
} inspect_values;

typedef struct inspection {
    const char *folder;
    tdm_recipe *recipe;
    tdm_feature_spec *spec;    /* ctr; else NULL */
    tdm_record_format *format; /* the same */
    tdm_checkpoint_list checkpoints;
    int64_t best_step; /* -1: none */
    int64_t step;      /* of the checkpoint that is looked at; -1: none is good */
    char problem[TDM_ERROR_BYTES];
    tdm_safetensors *tensors; /* NULL where step is -1 */
    json_t *state;            /* the same */
} inspection;

/* ---- looking --------------------------------------------------------------------------------- */

static tdm_status load_state(inspection *found)
{
    char *path;
    TDM_TRY(tdm_checkpoint_path(found->folder, found->step, "state.json", &path));
    tdm_status status = tdm_json_file_get(path, STATE_LIMIT, &found->state);
    tdm_free(path);
    return status;
}

static tdm_status open_tensors(inspection *found)
{
    char *path;
    TDM_TRY(tdm_checkpoint_path(found->folder, found->step, "model.safetensors", &path));
    tdm_status status = tdm_safetensors_open(path, &found->tensors);
    tdm_free(path);
    return status;
}

static tdm_status look(inspection *found, const char *choice)
{
    TDM_TRY(tdm_recipe_load_run(found->folder, &found->recipe));
    if (found->recipe->task == TDM_TASK_CTR)
        TDM_TRY(tdm_run_load_features(found->folder, &found->spec, &found->format));
    TDM_TRY(tdm_checkpoint_list_read(found->folder, &found->checkpoints));
    bool has_best;
    TDM_TRY(tdm_checkpoint_best(found->folder, &found->best_step, &has_best));
    if (!has_best)
        found->best_step = -1;
    tdm_status status = tdm_run_folder_choose(found->folder, choice, &found->step);
    if (status != TDM_OK && choice == NULL) {
        /* A folder without a good checkpoint can be looked at too. */
        found->step = -1;
        snprintf(found->problem, sizeof found->problem, "%s", tdm_error_message());
        return TDM_OK;
    }
    TDM_TRY(status);
    TDM_TRY(load_state(found));
    return open_tensors(found);
}

/* "" where the checkpoint is whole, as the chosen one is. */
static const char *checkpoint_problem(const inspection *found, int64_t step)
{
    if (step == found->step)
        return "";
    return tdm_checkpoint_verify(found->folder, step) == TDM_OK ? "" : tdm_error_message();
}

static int64_t parameter_count(const inspection *found)
{
    int64_t elements = 0;
    for (int i = 0; found->tensors != NULL && i < tdm_safetensors_count(found->tensors); i++)
        elements += tdm_shape_elements(&tdm_safetensors_get(found->tensors, i)->shape);
    return elements;
}

/* ---- results --------------------------------------------------------------------------------- */

static json_t *shape_json(const tdm_shape *shape)
{
    json_t *sizes = json_array();
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(sizes, json_integer(shape->sizes[i]));
    return sizes;
}

static json_t *tensors_json(const inspection *found)
{
    json_t *list = json_array();
    for (int i = 0; found->tensors != NULL && i < tdm_safetensors_count(found->tensors); i++) {
        const tdm_safetensors_tensor *tensor = tdm_safetensors_get(found->tensors, i);
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:I}", "name", tensor->name, "dtype",
                                              tdm_dtype_name(tensor->dtype), "shape",
                                              shape_json(&tensor->shape), "bytes",
                                              (json_int_t)tensor->bytes));
    }
    return list;
}

static json_t *checkpoints_json(const inspection *found)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < found->checkpoints.count; i++) {
        int64_t step = found->checkpoints.steps[i];
        const char *problem = checkpoint_problem(found, step);
        json_array_append_new(list, json_pack("{s:I, s:b, s:b, s:s}", "step", (json_int_t)step,
                                              "good", problem[0] == '\0', "best",
                                              step == found->best_step, "problem", problem));
    }
    return list;
}

static const char *format_name(const inspection *found)
{
    return tdm_record_formats[found->recipe->data.format]->name;
}

static tdm_status print_json(const inspection *found)
{
    json_t *eval = json_object_get(found->state, "eval");
    bool has_eval = json_integer_value(json_object_get(found->state, "eval_step")) >= 0;
    return tdm_console_json(json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:O?, s:O?, s:o}", "run", found->folder,
        "model", found->recipe->model_type->name, "format", format_name(found), "fields",
        found->spec == NULL ? json_null() : json_integer(found->spec->field_count), "dense",
        found->spec == NULL ? json_null() : json_integer(found->spec->dense_count), "step",
        found->step >= 0 ? json_integer(found->step) : json_null(), "parameters",
        (json_int_t)parameter_count(found), "checkpoints", checkpoints_json(found), "tensors",
        tensors_json(found), "rows", json_object_get(found->state, "rows"), "eval",
        has_eval ? eval : NULL, "problem",
        found->step >= 0 ? json_null() : json_string(found->problem)));
}

static void print_checkpoints(const inspection *found)
{
    printf("\ncheckpoints\n");
    if (found->checkpoints.count == 0)
        printf("  none yet\n");
    for (int64_t i = 0; i < found->checkpoints.count; i++) {
        int64_t step = found->checkpoints.steps[i];
        const char *problem = checkpoint_problem(found, step);
        printf("  step %-10lld %s%s%s\n", (long long)step,
               problem[0] == '\0' ? "good" : "damaged: ", problem,
               step == found->best_step ? ", best" : "");
    }
}

static void print_state(const inspection *found)
{
    const json_t *state = found->state;
    printf("\nstep %lld\n", (long long)found->step);
    printf("  rows trained on       %lld\n",
           (long long)json_integer_value(json_object_get(state, "rows")));
    printf("  time                  %s\n",
           tdm_duration_text(json_number_value(json_object_get(state, "seconds"))));
    printf("  bad records           %lld of %lld\n",
           (long long)json_integer_value(json_object_get(state, "bad_records")),
           (long long)json_integer_value(json_object_get(state, "records")));
    if (json_integer_value(json_object_get(state, "eval_step")) < 0)
        return;
    printf("  last eval, step       %lld\n",
           (long long)json_integer_value(json_object_get(state, "eval_step")));
    const tdm_metrics_type *type = tdm_recipe_metrics(found->recipe).type;
    const json_t *eval = json_object_get(state, "eval");
    for (int i = 0; i < type->metric_count; i++) {
        const tdm_metric *metric = &type->metrics[i];
        const json_t *value = json_object_get(eval, metric->name);
        if (metric->headline > 0 && json_is_number(value))
            printf("    %-20s%.6f\n", metric->name, json_number_value(value));
    }
}

static void print_tensors(const inspection *found)
{
    printf("\n  %-32s %-6s %16s %12s\n", "tensor", "type", "shape", "size");
    int64_t bytes = 0;
    for (int i = 0; i < tdm_safetensors_count(found->tensors); i++) {
        const tdm_safetensors_tensor *tensor = tdm_safetensors_get(found->tensors, i);
        char shape[96] = "";
        for (int d = 0; d < tensor->shape.rank; d++) {
            size_t length = strlen(shape);
            snprintf(shape + length, sizeof shape - length, "%s%lld", d > 0 ? " x " : "",
                     (long long)tensor->shape.sizes[d]);
        }
        printf("  %-32s %-6s %16s %12s\n", tensor->name, tdm_dtype_name(tensor->dtype), shape,
               tdm_bytes_text((double)tensor->bytes));
        bytes += tensor->bytes;
    }
    printf("  %lld numbers, %s\n", (long long)parameter_count(found),
           tdm_bytes_text((double)bytes));
}

static tdm_status print_text(const inspection *found)
{
    printf("%s: %s, ", found->folder, found->recipe->model_type->name);
    if (found->spec != NULL)
        printf("%d fields and %d dense features of ", found->spec->field_count,
               found->spec->dense_count);
    printf("%s records\n", format_name(found));
    print_checkpoints(found);
    if (found->step < 0) {
        printf("\n%s\n", found->problem);
        return TDM_OK;
    }
    print_state(found);
    print_tensors(found);
    return TDM_OK;
}

static tdm_status run(const tdm_command *command)
{
    const inspect_values *values = command->values;
    inspection found = {.folder = command->plain[0], .best_step = -1, .step = -1};
    tdm_status status = look(&found, values->checkpoint);
    if (status == TDM_OK)
        status = values->json ? print_json(&found) : print_text(&found);
    json_decref(found.state);
    tdm_safetensors_close(found.tensors);
    tdm_checkpoint_list_free(&found.checkpoints);
    tdm_feature_spec_destroy(found.spec);
    tdm_record_format_destroy(found.format);
    tdm_recipe_free(found.recipe);
    return status;
}

static const tdm_option options[] = {
    {.name = "checkpoint",
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(inspect_values, checkpoint),
     .value = "WHICH",
     .help = "best, last, or a step; the best if there is one, else the last"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(inspect_values, json),
     .help = "print one JSON object"},
    {0},
};

const tdm_verb tdm_verb_inspect = {
    .name = "inspect",
    .arguments = "RUN",
    .summary = "what is in a run folder: checkpoints, metrics, tensors",
    .text = "Checks every checkpoint against its checksums, and shows what the one that eval and\n"
            "predict would use holds.\n"
            "\n"
            "  tandem inspect runs/deepfm_criteo\n"
            "  tandem inspect runs/deepfm_criteo --checkpoint last --json",
    .options = options,
    .values_bytes = sizeof(inspect_values),
    .min_plain = 1,
    .max_plain = 1,
    .run = run,
};
