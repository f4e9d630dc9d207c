/* tandem export: a run's model as a folder for other programs. */
#include "cli/console.h"
#include "cli/verbs.h"
#include "trainer/export_run.h"

#include <string.h>

typedef struct export_values {
    const char *output;
    const char *format;
    const char *checkpoint;
    bool force;
} export_values;

static tdm_status run(const tdm_command *command)
{
    const export_values *values = command->values;
    const tdm_export_options options = {.checkpoint = values->checkpoint, .force = values->force};
    int64_t step;
    TDM_FAIL_IF(values->output == NULL, TDM_E_ARG, "name the folder to write: -o DIR");
    TDM_FAIL_IF(values->format == NULL || strcmp(values->format, "huggingface") != 0, TDM_E_ARG,
                "say for whom the folder is: --format huggingface");
    TDM_TRY(tdm_export_run(command->plain[0], values->output, &options, &step));
    tdm_console_print("%s: step %lld of %s", values->output, (long long)step, command->plain[0]);
    return TDM_OK;
}

static const tdm_option options[] = {
    {.name = "output",
     .letter = 'o',
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(export_values, output),
     .value = "DIR",
     .help = "the folder to write, which is whole or not there"},
    {.name = "format",
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(export_values, format),
     .value = "F",
     .help = "huggingface: what Transformers loads"},
    {.name = "checkpoint",
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(export_values, checkpoint),
     .value = "WHICH",
     .help = "best, last, or a step; the best if there is one, else the last"},
    {.name = "force",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(export_values, force),
     .help = "replace the folder of an earlier export"},
    {0},
};

const tdm_verb tdm_verb_export = {
    .name = "export",
    .arguments = "RUN -o DIR --format huggingface",
    .summary = "a run's encoder as a folder that Transformers loads",
    .text = "RUN is the folder that a training of text wrote (output.dir). DIR gets config.json,\n"
            "model.safetensors, vocab.txt, tokenizer.json and what belongs to them, for the class\n"
            "that computes the same: Bert, MegatronBert (model.norm: pre) or ModernBert (rotary\n"
            "positions, gated MLPs), with the head that was trained. Settings that no class has\n"
            "are refused by name.\n"
            "\n"
            "  tandem export runs/bert_mini -o bert-mini --format huggingface\n"
            "  tandem export runs/reviews -o reviews --format huggingface --checkpoint last\n"
            "\n"
            "  AutoModelForMaskedLM.from_pretrained(\"bert-mini\")\n"
            "  AutoTokenizer.from_pretrained(\"bert-mini\")",
    .options = options,
    .values_bytes = sizeof(export_values),
    .min_plain = 1,
    .max_plain = 1,
    .run = run,
};
