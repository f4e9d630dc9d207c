/* tandem predict: what a trained model answers. */
#include "cli/predict.h"
#include "cli/verbs.h"

static tdm_status refuse(const char *option, const char *of)
{
    return tdm_fail(TDM_E_ARG, "--%s is of %s: the two go together", option, of);
}

static tdm_status run(const tdm_command *command)
{
    const tdm_predict_values *values = command->values;
    bool fill = values->fill_mask != NULL;
    TDM_FAIL_IF(fill && values->embed, TDM_E_ARG,
                "--fill-mask and --embed are two questions: ask one of them");
    if (values->with != NULL && (fill || values->embed))
        return tdm_fail(TDM_E_ARG, "--with is of records, and goes with neither --fill-mask nor "
                                   "--embed");
    if (values->top > 0 && !fill)
        return refuse("top", "--fill-mask");
    if (values->pooling != NULL && !values->embed)
        return refuse("pooling", "--embed");
    if (values->precision != NULL && !values->embed)
        return refuse("precision", "--embed");
    if (values->batch_tokens > 0 && !values->embed)
        return refuse("batch-tokens", "--embed");
    if (values->max_length > 0 && !values->embed)
        return refuse("max-length", "--embed");
    if (fill)
        return tdm_predict_masks(command);
    return values->embed ? tdm_predict_vectors(command) : tdm_predict_records(command);
}

#define AT(member) offsetof(tdm_predict_values, member)

static const tdm_option options[] = {
    {.name = "with",
     .type = TDM_OPTION_TEXT,
     .offset = AT(with),
     .value = "C1,C2",
     .help = "put these columns of the record before its probability, as CSV"},
    {.name = "fill-mask",
     .type = TDM_OPTION_TEXT,
     .offset = AT(fill_mask),
     .value = "TEXT",
     .help = "guess what stands where the text says [MASK]; -: of each line of FILE..."},
    {.name = "top",
     .type = TDM_OPTION_INT,
     .offset = AT(top),
     .value = "N",
     .max = 1000,
     .help = "guesses for each mask (5)"},
    {.name = "embed",
     .type = TDM_OPTION_FLAG,
     .offset = AT(embed),
     .help = "a vector for each line, as .npy where -o is so named"},
    {.name = "pooling",
     .type = TDM_OPTION_TEXT,
     .offset = AT(pooling),
     .value = "HOW",
     .help = "the vector is the mean of all tokens' states, or that of [CLS]: mean, cls"},
    {.name = "max-length",
     .type = TDM_OPTION_INT,
     .offset = AT(max_length),
     .value = "N",
     .max = 1 << 20,
     .help = "tokens of a text at most; else what the run was trained with, or positions"},
    {.name = "precision",
     .type = TDM_OPTION_TEXT,
     .offset = AT(precision),
     .value = "WHICH",
     .help = "of matrix products: fp32, bf16, auto: bf16 where the device has it (fp32)"},
    {.name = "batch-tokens",
     .type = TDM_OPTION_INT,
     .offset = AT(batch_tokens),
     .value = "N",
     .max = 1 << 24,
     .help = "that go through the model at a time (4096)"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = AT(json),
     .help = "a line of JSON for each text"},
    {.name = "output",
     .letter = 'o',
     .type = TDM_OPTION_TEXT,
     .offset = AT(output),
     .value = "FILE",
     .help = "write to this file, which is whole or not there"},
    {.name = "force",
     .type = TDM_OPTION_FLAG,
     .offset = AT(force),
     .help = "overwrite the file of -o"},
    {.name = "checkpoint",
     .type = TDM_OPTION_TEXT,
     .offset = AT(checkpoint),
     .value = "WHICH",
     .help = "best, last, or a step; the best if there is one, else the last"},
    {.name = "threads",
     .type = TDM_OPTION_INT,
     .offset = AT(threads),
     .value = "N",
     .max = 1024,
     .help = "threads to use; 0: one a core"},
    {0},
};

const tdm_verb tdm_verb_predict = {
    .name = "predict",
    .arguments = "RUN [FILE...]",
    .summary = "what a model answers: of records, of [MASK] in a text; vectors of texts",
    .text =
        "RUN is the folder that a training wrote (output.dir). Records are in the format that it\n"
        "was trained on; labels may be missing. Every record is answered by one line, a bad one\n"
        "by an empty line. Without a file, or for -, standard input is answered as it is read.\n"
        "\n"
        "  tandem predict runs/deepfm_criteo requests.tsv > probabilities.txt\n"
        "  tandem predict runs/deepfm_criteo requests.tsv --with C1,C2 -o scores.csv\n"
        "  zcat requests.tsv.gz | tandem predict runs/deepfm_criteo - --checkpoint last\n"
        "\n"
        "Of an encoder that was trained on masked text (task: mlm), or a folder of Hugging Face "
        "or\n"
        "google-research/bert with such a head, --fill-mask prints the likeliest tokens and their\n"
        "probabilities; in JSON [{\"token\":, \"id\":, \"probability\":}, ...], and a list of "
        "such\n"
        "lists where a text has several masks.\n"
        "\n"
        "  tandem predict runs/bert_mini --fill-mask \"the [MASK] of god\" --top 10\n"
        "  tandem predict runs/bert_mini lines.txt --fill-mask - --json\n"
        "\n"
        "Of any encoder, --embed makes a vector of each line: numbers with tabs between them, a\n"
        "list in JSON, or a file of NumPy where -o names one.\n"
        "\n"
        "  tandem predict runs/bert_mini lines.txt --embed -o vectors.npy\n"
        "  tandem predict bert-folder/ lines.txt.gz --embed --pooling cls --json",
    .options = options,
    .values_bytes = sizeof(tdm_predict_values),
    .min_plain = 1,
    .max_plain = -1,
    .run = run,
};
